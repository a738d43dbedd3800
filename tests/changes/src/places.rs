//! The places of a file at which a change can stand beside its original.

use std::ops::Range;

use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};
use syn::{Block, Expr, Signature, Stmt};

/// What a place is, which decides how two versions of it stand side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// A value within an expression.
    Value,
    /// A whole expression in a place where parentheses would be wrong: a statement, the body of an
    /// arm, or what follows `else`.
    Bare,
    /// A statement with its semicolon.
    Statement,
    /// The body of a function.
    Body,
}

pub(crate) struct Place {
    pub(crate) range: Range<usize>,
    pub(crate) form: Form,
}

/// An arm of a `match`.
pub(crate) struct ArmPlace {
    /// The whole `match`.
    pub(crate) of: Range<usize>,
    pub(crate) start: usize,
    pub(crate) pattern_end: usize,
    pub(crate) guard: Option<Range<usize>>,
}

/// A `const fn`: at run time it may be a plain one.
pub(crate) struct ConstFn {
    pub(crate) name: String,
    pub(crate) keyword: Range<usize>,
    pub(crate) body: Range<usize>,
}

#[derive(Default)]
pub(crate) struct Places {
    pub(crate) places: Vec<Place>,
    pub(crate) arms: Vec<ArmPlace>,
    pub(crate) const_fns: Vec<ConstFn>,
}

impl Places {
    pub(crate) fn of(text: &str) -> syn::Result<Self> {
        let mut places = Self::default();
        places.visit_file(&syn::parse_file(text)?);
        Ok(places)
    }

    fn note(&mut self, range: Range<usize>, form: Form) {
        self.places.push(Place { range, form });
    }

    /// Notes an expression in this form, and looks into it.
    fn look(&mut self, expr: &Expr, form: Form) {
        if may_stand_aside(expr) {
            self.note(expr.span().byte_range(), form);
        }
        visit::visit_expr(self, expr);
    }

    fn function(&mut self, sig: &Signature, block: &Block) {
        let body = block.span().byte_range();
        if let Some(keyword) = &sig.constness {
            let (name, keyword) = (sig.ident.to_string(), keyword.span().byte_range());
            self.const_fns.push(ConstFn { name, keyword, body: body.clone() });
        }
        self.note(body, Form::Body);
        self.visit_block(block);
    }
}

/// Whether an `if` with this expression in one of its branches means the same. Not if the place
/// itself is meant, and not its value, and not if a reference would end with the branch.
fn may_stand_aside(expr: &Expr) -> bool {
    !matches!(
        expr,
        Expr::Let(_)
            | Expr::Path(_)
            | Expr::Field(_)
            | Expr::Index(_)
            | Expr::Reference(_)
            | Expr::Closure(_)
            | Expr::Unary(syn::ExprUnary { op: syn::UnOp::Deref(_), .. })
    )
}

impl<'ast> Visit<'ast> for Places {
    fn visit_expr(&mut self, expr: &'ast Expr) {
        self.look(expr, Form::Value);
    }

    fn visit_stmt(&mut self, stmt: &'ast Stmt) {
        match stmt {
            Stmt::Expr(expr, semicolon) => {
                if semicolon.is_some() {
                    self.note(stmt.span().byte_range(), Form::Statement);
                }
                self.look(expr, Form::Bare);
            }
            Stmt::Macro(_) => self.note(stmt.span().byte_range(), Form::Statement),
            _ => visit::visit_stmt(self, stmt),
        }
    }

    fn visit_expr_match(&mut self, all: &'ast syn::ExprMatch) {
        self.visit_expr(&all.expr);
        for arm in &all.arms {
            let guard = arm.guard.as_ref().map(|(_, guard)| guard);
            self.arms.push(ArmPlace {
                of: all.span().byte_range(),
                start: arm.span().byte_range().start,
                pattern_end: arm.pat.span().byte_range().end,
                guard: guard.map(|guard| guard.span().byte_range()),
            });
            if let Some(guard) = guard {
                self.visit_expr(guard);
            }
            self.look(&arm.body, Form::Bare);
        }
    }

    fn visit_expr_if(&mut self, branches: &'ast syn::ExprIf) {
        self.visit_expr(&branches.cond);
        self.visit_block(&branches.then_branch);
        match branches.else_branch.as_ref().map(|(_, other)| &**other) {
            // The block of an `else` is no value of its own.
            Some(Expr::Block(block)) => self.visit_block(&block.block),
            Some(other) => self.look(other, Form::Bare),
            None => {}
        }
    }

    fn visit_expr_closure(&mut self, closure: &'ast syn::ExprClosure) {
        match (&closure.output, &*closure.body) {
            // With a return type, the body must stay a block.
            (syn::ReturnType::Type(..), Expr::Block(block)) => self.visit_block(&block.block),
            (_, body) => self.visit_expr(body),
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.function(&item.sig, &item.block);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.function(&item.sig, &item.block);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.function(&item.sig, block);
        }
    }

    // What the compiler evaluates knows no switch.
    fn visit_expr_repeat(&mut self, repeat: &'ast syn::ExprRepeat) {
        self.visit_expr(&repeat.expr);
    }
    fn visit_expr_const(&mut self, _: &'ast syn::ExprConst) {}
    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}
    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}
    fn visit_trait_item_const(&mut self, _: &'ast syn::TraitItemConst) {}
    fn visit_item_static(&mut self, _: &'ast syn::ItemStatic) {}
    fn visit_variant(&mut self, _: &'ast syn::Variant) {}
    fn visit_type(&mut self, _: &'ast syn::Type) {}
    fn visit_generic_argument(&mut self, _: &'ast syn::GenericArgument) {}
    fn visit_pat(&mut self, _: &'ast syn::Pat) {}
}
