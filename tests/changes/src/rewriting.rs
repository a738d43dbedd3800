//! Puts changes beside their originals, each with a switch.

use std::collections::BTreeSet;
use std::ops::Range;

use syn::Block;
use syn::parse::Parser as _;

use crate::change::{Change, Form as ChangeForm};
use crate::places::{Form, Place, Places};

/// How far out a change is put: at the smallest place that it is in, or, if that does not compile,
/// at the body of its function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    Smallest,
    Body,
}

/// Why a change cannot be switched on at run time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fixed {
    /// The compiler evaluates it.
    Constant,
    /// There is no place for it.
    NoPlace,
}

/// Texts before and behind a part of the original.
struct Wrap {
    range: Range<usize>,
    before: String,
    after: &'static str,
    change: usize,
    /// Where the changed text is in `before`.
    changed: Range<usize>,
}

/// Where a change is in the text that was written.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) change: usize,
    pub(crate) changed: Range<usize>,
    /// With the original beside it.
    pub(crate) whole: Range<usize>,
}

/// A file with changes.
pub(crate) struct Rewriting<'a> {
    original: &'a str,
    places: Places,
    wraps: Vec<Wrap>,
    /// The `const fn`s that become plain ones, by their keywords.
    plain: BTreeSet<usize>,
}

impl<'a> Rewriting<'a> {
    pub(crate) fn of(original: &'a str) -> syn::Result<Self> {
        let places = Places::of(original)?;
        Ok(Self { original, places, wraps: Vec::new(), plain: BTreeSet::new() })
    }

    /// Adds a change with its number. `kept` are the names of functions that must stay `const`.
    pub(crate) fn add(
        &mut self,
        number: usize,
        change: &Change,
        level: Level,
        kept: &BTreeSet<String>,
    ) -> Result<(), Fixed> {
        let const_fn = self.places.const_fns.iter().find(|it| encloses(&it.body, &change.range));
        let keyword = match const_fn {
            Some(it) if kept.contains(&it.name) => return Err(Fixed::Constant),
            other => other.map(|it| it.keyword.start),
        };
        let wraps = match change.form {
            ChangeForm::NoArm if level == Level::Smallest => {
                self.never(number, change).ok_or(Fixed::NoPlace)?
            }
            _ => vec![self.beside(number, change, level)?],
        };
        self.wraps.extend(wraps);
        self.plain.extend(keyword);
        Ok(())
    }

    /// Adds `()` behind each of these words: a field becomes a method.
    pub(crate) fn call(&mut self, words: &[&str]) {
        for at in words.iter().flat_map(|word| self.original.match_indices(word)) {
            let end = at.0 + at.1.len();
            let (before, changed) = ("()".to_owned(), 0..0);
            self.wraps.push(Wrap { range: end..end, before, after: "", change: usize::MAX, changed });
        }
    }

    /// An arm with a guard that is false while the change is on.
    fn never(&self, number: usize, change: &Change) -> Option<Vec<Wrap>> {
        let arm = self.places.arms.iter().find(|arm| arm.start == change.range.start)?;
        let (range, word, more, after) = match &arm.guard {
            Some(guard) => (guard.clone(), "", " && (", ")"),
            None => (arm.pattern_end..arm.pattern_end, " if ", "", ""),
        };
        let before = format!("{word}!{}{more}", on(number));
        let guard = Wrap { range, changed: 0..before.len(), before, after, change: number };
        // If the other arms are not enough, the compiler's error is about the whole `match`.
        let whole =
            Wrap { range: arm.of.clone(), before: String::new(), after: "", change: number, changed: 0..0 };
        Some(vec![whole, guard])
    }

    fn beside(&self, number: usize, change: &Change, level: Level) -> Result<Wrap, Fixed> {
        let mut around: Vec<_> =
            self.places.places.iter().filter(|place| encloses(&place.range, &change.range)).collect();
        around.sort_by_key(|place| place.range.len());
        let body = around.iter().position(|place| place.form == Form::Body).ok_or(Fixed::Constant)?;
        let from = if level == Level::Body { body } else { 0 };
        let fits = |place: &&Place| {
            let changed = self.changed(place, change);
            match place.form {
                Form::Value | Form::Bare => syn::parse_str::<syn::Expr>(&changed).is_ok(),
                Form::Statement => Block::parse_within.parse_str(&changed).is_ok(),
                Form::Body => syn::parse_str::<Block>(&changed).is_ok(),
            }
        };
        let around = around.get(from..=body).unwrap_or_default();
        let place = around.iter().copied().find(fits).ok_or(Fixed::NoPlace)?;
        let changed = self.changed(place, change);
        let (open, after) = match place.form {
            Form::Value => ("(", "})"),
            Form::Bare | Form::Statement => ("", "}"),
            Form::Body => ("{", "}}"),
        };
        let head = format!("{open}if {} {{", on(number));
        let at = head.len()..head.len() + changed.len();
        let before = format!("{head}{changed}}} else {{");
        Ok(Wrap { range: place.range.clone(), before, after, change: number, changed: at })
    }

    /// The text of a place with a change.
    fn changed(&self, place: &Place, change: &Change) -> String {
        let part = |range| self.original.get::<Range<usize>>(range).unwrap_or_default();
        let before = part(place.range.start..change.range.start);
        [before, &change.with, part(change.range.end..place.range.end)].concat()
    }

    /// The new text, with the places of the changes in it.
    pub(crate) fn write(mut self) -> (String, Vec<Mark>) {
        let mut original = self.original.to_owned();
        for keyword in &self.plain {
            original.replace_range(*keyword..keyword + "const".len(), "     ");
        }
        // Outer ones first; of the same place, the first one is the outer one.
        self.wraps.sort_by_key(|wrap| (wrap.range.start, std::cmp::Reverse(wrap.range.end)));
        let (mut text, mut marks) = (String::new(), Vec::new());
        let mut open: Vec<(&Wrap, Mark)> = Vec::new();
        let mut at = 0;
        let mut copy = |text: &mut String, to: usize| {
            *text += original.get(at..to).unwrap_or_default();
            at = to;
        };
        let mut close = |text: &mut String, (wrap, mut mark): (&Wrap, Mark)| {
            *text += wrap.after;
            mark.whole.end = text.len();
            marks.push(mark);
        };
        for wrap in &self.wraps {
            while open.last().is_some_and(|(outer, _)| is_behind(wrap, outer)) {
                let Some(inner) = open.pop() else { break };
                copy(&mut text, inner.0.range.end);
                close(&mut text, inner);
            }
            copy(&mut text, wrap.range.start);
            let start = text.len();
            text += &wrap.before;
            let changed = start + wrap.changed.start..start + wrap.changed.end;
            open.push((wrap, Mark { change: wrap.change, changed, whole: start..start }));
        }
        while let Some(inner) = open.pop() {
            copy(&mut text, inner.0.range.end);
            close(&mut text, inner);
        }
        copy(&mut text, original.len());
        marks.retain(|mark| mark.change != usize::MAX);
        (text, marks)
    }
}

/// Whether the second one has ended where the first one begins. What is added at its end is still
/// in it.
fn is_behind(wrap: &Wrap, before: &Wrap) -> bool {
    let end = before.range.end;
    end < wrap.range.start || end == wrap.range.start && !wrap.range.is_empty()
}

fn encloses(outer: &Range<usize>, inner: &Range<usize>) -> bool {
    outer.start <= inner.start && inner.end <= outer.end
}

fn on(number: usize) -> String {
    format!("crate::switch::on({number})")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Changes the only `from` to `to`, and returns the line that it becomes.
    fn rewritten(text: &str, from: &str, to: &str, level: Level) -> String {
        let changes = [change(text, from, to)];
        written(text, &changes, level)
    }

    fn change(text: &str, from: &str, to: &str) -> Change {
        let start = text.find(from).unwrap();
        let form = if to.is_empty() && from.contains("=>") { ChangeForm::NoArm } else { ChangeForm::Code };
        let (name, file) = (String::new(), String::new());
        Change { name, file, range: start..start + from.len(), with: to.to_owned(), form, is_listed: true }
    }

    fn written(text: &str, changes: &[Change], level: Level) -> String {
        let mut rewriting = Rewriting::of(text).unwrap();
        for (number, change) in changes.iter().enumerate() {
            rewriting.add(number, change, level, &BTreeSet::new()).unwrap();
        }
        let (written, marks) = rewriting.write();
        syn::parse_file(&written).unwrap();
        for mark in marks {
            let expected = changes[mark.change].with.as_str();
            assert!(mark.changed.is_empty() || written[mark.changed].contains(expected));
            assert!(written[mark.whole].contains(expected));
        }
        written.replace("crate::switch::on", "on")
    }

    #[test]
    fn an_operator_is_changed_within_its_expression() {
        let text = "fn f() -> bool { let all = g(a + b < c); all }";
        let expected = "fn f() -> bool { let all = g((if on(0) {a + b <= c} else {a + b < c})); all }";
        assert_eq!(rewritten(text, "<", "<=", Level::Smallest), expected);
        let text = "fn f() -> bool { !a }";
        assert_eq!(rewritten(text, "!", "", Level::Smallest), "fn f() -> bool { if on(0) {a} else {!a} }");
        let text = "fn f() { if a { b } else if c && d { e } }";
        let expected = "fn f() { if a { b } else if (if on(0) {c || d} else {c && d}) { e } }";
        assert_eq!(rewritten(text, "&&", "||", Level::Smallest), expected);
    }

    #[test]
    fn a_body_is_changed_as_a_whole() {
        let text = "fn f() -> u8 { g(); 7 }";
        let expected = "fn f() -> u8 {if on(0) {{ 1 }} else {{ g(); 7 }}}";
        assert_eq!(rewritten(text, "g(); 7", "1", Level::Smallest), expected);
    }

    #[test]
    fn an_arm_is_never_taken_while_its_removal_is_on() {
        let text = "fn f() { match a { Some(1) => b, Some(2) if c || d => e, _ => {} } }";
        let expected = "fn f() { match a { Some(1) if !on(0) => b, Some(2) if c || d => e, _ => {} } }";
        assert_eq!(rewritten(text, "Some(1) => b,", "", Level::Smallest), expected);
        let expected = "fn f() { match a { Some(1) => b, Some(2) if !on(0) && (c || d) => e, _ => {} } }";
        assert_eq!(rewritten(text, "Some(2) if c || d => e,", "", Level::Smallest), expected);
    }

    #[test]
    fn a_guard_is_replaced() {
        let text = "fn f() { match a { b if c || d => {} _ => {} } }";
        let expected = "fn f() { match a { b if (if on(0) {true} else {c || d}) => {} _ => {} } }";
        assert_eq!(rewritten(text, "c || d", "true", Level::Smallest), expected);
    }

    #[test]
    fn a_statement_is_removed_or_added() {
        let text = "fn f() { g(); h(); }";
        let expected = "fn f() { g(); if on(0) {} else {h();} }";
        assert_eq!(rewritten(text, "h();", "", Level::Smallest), expected);
        let text = "fn f() { match a { B => g(), C => h() } }";
        let expected = "fn f() { match a { B => if on(0) {i()} else {g()}, C => h() } }";
        assert_eq!(rewritten(text, "g()", "i()", Level::Smallest), expected);
    }

    #[test]
    fn a_pattern_is_changed_with_what_is_around_it() {
        let text = "fn f() { if let Some(a) = b { g(); } }";
        let expected = "fn f() { if on(0) {if let Ok(a) = b { g(); }} else {if let Some(a) = b { g(); }} }";
        assert_eq!(rewritten(text, "Some(a)", "Ok(a)", Level::Smallest), expected);
        let text = "fn f() { if a { b } else if let C = d { e } }";
        let expected = "fn f() { if a { b } else if on(0) {if let D = d { e }} else {if let C = d { e }} }";
        assert_eq!(rewritten(text, "C", "D", Level::Smallest), expected);
    }

    #[test]
    fn changes_within_others_are_switched_in_the_originals() {
        let text = "fn f() -> bool { a < b && c }";
        let changes = [change(text, "&&", "||"), change(text, "<", ">"), change(text, "a < b && c", "true")];
        let expected = "fn f() -> bool { if on(0) {a < b || c} else {if on(2) {true} else \
                        {(if on(1) {a > b} else {a < b}) && c}} }";
        assert_eq!(written(text, &changes, Level::Smallest), expected);
    }

    #[test]
    fn a_constant_function_becomes_a_plain_one_or_keeps_what_it_has() {
        let text = "const fn f() -> bool { a < b }";
        let expected = "      fn f() -> bool { if on(0) {a > b} else {a < b} }";
        assert_eq!(rewritten(text, "<", ">", Level::Smallest), expected);
        let mut rewriting = Rewriting::of(text).unwrap();
        let kept = BTreeSet::from(["f".to_owned()]);
        let added = rewriting.add(0, &change(text, "<", ">"), Level::Smallest, &kept);
        assert_eq!(added, Err(Fixed::Constant));
        let text = "const A: bool = b < c;";
        let mut rewriting = Rewriting::of(text).unwrap();
        let added = rewriting.add(0, &change(text, "<", ">"), Level::Smallest, &BTreeSet::new());
        assert_eq!(added, Err(Fixed::Constant));
    }

    #[test]
    fn a_field_becomes_a_method_within_what_is_changed() {
        let text = "fn f() -> bool { a == script.text }";
        let mut rewriting = Rewriting::of(text).unwrap();
        rewriting.add(0, &change(text, "==", "!="), Level::Smallest, &BTreeSet::new()).unwrap();
        rewriting.call(&["script.text"]);
        let expected =
            "fn f() -> bool { if crate::switch::on(0) {a != script.text} else {a == script.text()} }";
        assert_eq!(rewriting.write().0, expected);
    }
}
