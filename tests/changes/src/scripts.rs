//! Changes of the Lua scripts: one operator, one condition or one line at a time.

use std::fs;
use std::ops::Range;
use std::path::Path;

use proc_macro2::{TokenStream, TokenTree};

use crate::Outcome;
use crate::change::{Change, Form};

pub(crate) const FOLDER: &str = "core/src/wire/script/";

/// Texts, and what takes their places.
const OPERATORS: [(&str, &str); 18] = [
    (" == ", " ~= "),
    (" ~= ", " == "),
    (" < ", " <= "),
    (" <= ", " < "),
    (" > ", " >= "),
    (" >= ", " > "),
    (" and ", " or "),
    (" or ", " and "),
    (" not ", " "),
    (" + ", " - "),
    (" - ", " + "),
    (" * ", " / "),
    ("math.max(", "math.min("),
    ("math.min(", "math.max("),
    ("return 1", "return 0"),
    ("return 0", "return 1"),
    (" true", " false"),
    (" false", " true"),
];

/// The beginnings of lines that cannot be left out: the script would not be a script without them.
const KEPT: [&str; 14] = [
    "local ",
    "function ",
    "for ",
    "while ",
    "repeat",
    "until ",
    "else",
    "elseif ",
    "end",
    "and ",
    "or ",
    "return ",
    "return",
    "--",
];

/// A part of a script's text in a source file.
struct Literal {
    /// Between the quotes.
    inner: Range<usize>,
}

/// Lists the changes of all scripts.
pub(crate) fn listed(root: &Path) -> Outcome<Vec<Change>> {
    let mut names: Vec<_> =
        fs::read_dir(root.join(FOLDER))?.map(|entry| Ok(entry?.file_name())).collect::<Outcome<_>>()?;
    names.sort();
    let mut changes = Vec::new();
    for name in names {
        let file = format!("{FOLDER}{}", name.to_string_lossy());
        let text = fs::read_to_string(root.join(&file))?;
        for literal in literals(&text)? {
            for (range, with) in edits(&text, &literal) {
                changes.extend(change(&file, &text, &literal, range, &with));
            }
        }
    }
    Ok(changes)
}

/// The change of a script that a replacement in its file makes; `None` if it is not in a text.
pub(crate) fn form_of(text: &str, range: &Range<usize>, with: &str) -> Option<Form> {
    let literals = literals(text).ok()?;
    let around = literals.iter().find(|it| it.inner.start <= range.start && range.end <= it.inner.end)?;
    form(text, around, range, with)
}

fn form(text: &str, literal: &Literal, range: &Range<usize>, with: &str) -> Option<Form> {
    let value = |inner: &str| Some(syn::parse_str::<syn::LitStr>(&format!("\"{inner}\"")).ok()?.value());
    let part = |range: Range<usize>| text.get(range);
    let (before, behind) = (part(literal.inner.start..range.start)?, part(range.end..literal.inner.end)?);
    Some(Form::Script(value(part(literal.inner.clone())?)?, value(&[before, with, behind].concat())?))
}

fn change(file: &str, text: &str, literal: &Literal, range: Range<usize>, with: &str) -> Option<Change> {
    let form = form(text, literal, &range, with)?;
    let start = text.get(..range.start)?.rfind('\n').map_or(0, |end| end + 1);
    let end = range.end + text.get(range.end..)?.find('\n')?;
    let (line, changed) =
        (text.get(start..end)?, [text.get(start..range.start)?, with, text.get(range.end..end)?].concat());
    let (line, changed) = (line.trim(), changed.trim());
    let name = match changed {
        "" => format!("{file}: script without: {line}"),
        changed => format!("{file}: script: {line} => {changed}"),
    };
    Some(Change { name, file: file.to_owned(), range, with: with.to_owned(), form, is_listed: false })
}

/// The literals with parts of scripts, outside of tests and comments.
fn literals(text: &str) -> Outcome<Vec<Literal>> {
    let text = text.split("#[cfg(test)]\nmod tests").next().unwrap_or(text);
    let mut literals = Vec::new();
    find(text.parse().map_err(|error| format!("{error}"))?, &mut literals);
    let is_script = |literal: &Literal| {
        let inner = text.get(literal.inner.clone()).unwrap_or_default();
        inner.contains('\n') || inner.starts_with("return ") || inner.starts_with("local ")
    };
    literals.retain(is_script);
    Ok(literals)
}

fn find(tokens: TokenStream, literals: &mut Vec<Literal>) {
    for token in tokens {
        match token {
            TokenTree::Group(group) => find(group.stream(), literals),
            TokenTree::Literal(literal) if literal.to_string().starts_with('"') => {
                let range = literal.span().byte_range();
                literals.push(Literal { inner: range.start + 1..range.end - 1 });
            }
            _ => {}
        }
    }
}

/// The parts of a literal that are replaced, each with what takes its place.
fn edits(text: &str, literal: &Literal) -> Vec<(Range<usize>, String)> {
    let mut edits = Vec::new();
    let mut start = literal.inner.start;
    let inner = text.get(literal.inner.clone()).unwrap_or_default();
    let lines: Vec<_> = inner.split('\n').collect();
    for (at, line) in lines.iter().enumerate() {
        let mut note = |range: Range<usize>, with: &str| {
            edits.push((start + range.start..start + range.end, with.to_owned()));
        };
        for (from, to) in OPERATORS {
            let places = line.match_indices(from).map(|(at, _)| at).filter(|at| !is_quoted(line, *at));
            places.for_each(|at| note(at..at + from.len(), to));
        }
        for (begin, _) in line.match_indices("if ") {
            let begin = begin + "if ".len();
            if let Some(length) = line.get(begin..).and_then(|rest| rest.find(" then")) {
                note(begin..begin + length, "true");
                note(begin..begin + length, "false");
            }
        }
        let next = lines.get(at + 1).map_or("", |next| next.trim());
        if may_be_left_out(line, next) {
            note(0..line.len(), "");
        }
        start += line.len() + 1;
    }
    edits
}

/// Whether this place of a line is in one of the script's strings, such as the text of an error.
fn is_quoted(line: &str, at: usize) -> bool {
    line.get(..at).is_some_and(|before| before.matches('\'').count() % 2 == 1)
}

/// Whether a line is a statement of its own.
fn may_be_left_out(line: &str, next: &str) -> bool {
    let count =
        |word: &str| line.split(|char: char| !char.is_alphanumeric()).filter(|it| *it == word).count();
    let opened = count("then") + count("do") + count("function");
    let balanced = [('(', ')'), ('{', '}'), ('[', ']')];
    let is_balanced =
        balanced.iter().all(|(open, close)| line.matches(*open).count() == line.matches(*close).count());
    let goes_on = ["and ", "or ", ".. "].iter().any(|word| next.starts_with(word));
    let is_kept = KEPT.iter().any(|word| line.trim().starts_with(word));
    !line.trim().is_empty()
        && !line.contains('\\')
        && opened == count("end")
        && is_balanced
        && !goes_on
        && !is_kept
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "/// Does \"this\n/// and that\".\nconst A: &str = \"\\\nlocal held = get()\nif held == a then \
                          return 1 end\nset(held)\nreturn 0\";\n#[cfg(test)]\nmod tests { const B: &str = \"\\\nreturn 1\"; }\n";

    #[test]
    fn operators_conditions_and_lines_of_a_script_are_changed() {
        let mut lines = Vec::new();
        for literal in literals(SOURCE).unwrap() {
            for (range, with) in edits(SOURCE, &literal) {
                lines.push(change("a.rs", SOURCE, &literal, range, &with).unwrap().name);
            }
        }
        let original = "a.rs: script: if held == a then return 1 end =>";
        let expected = [
            &format!("{original} if held ~= a then return 1 end"),
            &format!("{original} if held == a then return 0 end"),
            &format!("{original} if true then return 1 end"),
            &format!("{original} if false then return 1 end"),
            "a.rs: script without: if held == a then return 1 end",
            "a.rs: script without: set(held)",
            "a.rs: script: return 0\"; => return 1\";",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn only_a_statement_on_a_line_of_its_own_is_left_out_and_no_text_is_changed() {
        for line in ["set(held)", "stop = held", "if a then return 1 end", "for i = 1, 2 do set(i) end"] {
            assert_eq!(may_be_left_out(line, "end"), !line.starts_with("for "), "{line}");
        }
        for line in ["if a then", "end", "local a = get()", "a = all('MGET', function(b)", "return {'"] {
            assert!(!may_be_left_out(line, "end"), "{line}");
        }
        assert!(!is_quoted("say('a') + b", 8) && is_quoted("say('a + b')", 6));
        assert!(!may_be_left_out("a = b", "  and c".trim()) && !may_be_left_out("return 1", "end"));
    }

    #[test]
    fn a_changed_text_is_what_the_compiler_makes_of_the_changed_literal() {
        let start = SOURCE.find("set(held)").unwrap();
        let form = form_of(SOURCE, &(start..start + 9), "").unwrap();
        let from = "local held = get()\nif held == a then return 1 end\nset(held)\nreturn 0";
        assert_eq!(form, Form::Script(from.to_owned(), from.replace("set(held)", "")));
        assert_eq!(form_of(SOURCE, &(0..3), "x"), None);
    }
}
