//! Changes that are written by hand: `changes.txt`, which describes its own form.

use std::fs;
use std::ops::Range;
use std::path::Path;

use crate::Outcome;
use crate::change::{Change, Form};
use crate::scripts;

pub(crate) const FILE: &str = "tests/changes/changes.txt";

/// Reads the changes, and finds each in its file.
pub(crate) fn listed(root: &Path) -> Outcome<Vec<Change>> {
    let text = fs::read_to_string(root.join(FILE))?;
    let mut changes: Vec<Change> = Vec::new();
    for entry in text.split("\n== ").skip(1) {
        let change = change(entry, |file| fs::read_to_string(root.join(file)).ok())
            .map_err(|error| format!("{FILE}: {}: {error}", entry.lines().next().unwrap_or_default()))?;
        if changes.iter().any(|other| other.name == change.name) {
            return Err(format!("{FILE}: two changes are named {}", change.name).into());
        }
        changes.push(change);
    }
    Ok(changes)
}

fn change(entry: &str, read: impl Fn(&str) -> Option<String>) -> Outcome<Change> {
    let mut lines = entry.lines().map(str::trim_end).filter(|line| !line.is_empty());
    let name = lines.next().unwrap_or_default().to_owned();
    let (mut what, mut file, mut original, mut changed) = (Vec::new(), None, Vec::new(), Vec::new());
    for line in lines {
        match (
            line.strip_prefix("- ").or(line.strip_prefix('-')),
            line.strip_prefix("+ ").or(line.strip_prefix('+')),
        ) {
            (Some(line), _) => original.push(line.trim()),
            (None, Some(line)) => changed.push(line.trim()),
            (None, None) if file.is_none() && line.ends_with(".rs") => file = Some(line.to_owned()),
            (None, None) => what.push(line),
        }
    }
    let file = file.ok_or("no line names a file, such as core/src/lock/mod.rs")?;
    if what.is_empty() || original.is_empty() || changed.is_empty() {
        return Err("it needs a sentence, a line with - and a line with +".into());
    }
    let text = read(&file).ok_or_else(|| format!("there is no {file}"))?;
    let found = found(&text, &original);
    let [range] = found.as_slice() else {
        return Err(format!("the original is in {file} {} times, and must be there once", found.len()).into());
    };
    let (range, with) = difference(&text, range.clone(), &changed.join("\n"));
    let form = match file.starts_with(scripts::FOLDER) {
        true => scripts::form_of(&text, &range, &with).unwrap_or(Form::Code),
        false => Form::Code,
    };
    if range.is_empty() && with.is_empty() {
        return Err("the changed text is the original".into());
    }
    Ok(Change { name, file, range, with, form, is_listed: false })
}

/// Where these lines are, whatever their indentation. The first may begin and the last may end
/// within a line.
fn found(text: &str, lines: &[&str]) -> Vec<Range<usize>> {
    let Some((first, others)) = lines.split_first() else { return Vec::new() };
    let whole = |start: usize| {
        let mut end = start + first.len();
        for line in others {
            let rest = text.get(end..)?.strip_prefix('\n')?;
            let content = rest.trim_start_matches(' ');
            content.strip_prefix(line)?;
            end += 1 + (rest.len() - content.len()) + line.len();
        }
        Some(start..end)
    };
    text.match_indices(first).filter_map(|(start, _)| whole(start)).collect()
}

/// The part of a range that differs from the text that takes its place.
fn difference(text: &str, range: Range<usize>, with: &str) -> (Range<usize>, String) {
    let original = text.get(range.clone()).unwrap_or_default();
    let same = |one: &mut dyn Iterator<Item = char>, other: &mut dyn Iterator<Item = char>| -> usize {
        one.zip(other).take_while(|(one, other)| one == other).map(|(char, _)| char.len_utf8()).sum()
    };
    let front = same(&mut original.chars(), &mut with.chars());
    let (rest, rest_with) =
        (original.get(front..).unwrap_or_default(), with.get(front..).unwrap_or_default());
    let back = same(&mut rest.chars().rev(), &mut rest_with.chars().rev());
    let with = rest_with.get(..rest_with.len() - back).unwrap_or_default().to_owned();
    (range.start + front..range.end - back, with)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "fn f() {\n    a.insert(b);\n    if c > 0 {\n        d();\n    }\n    d();\n}\n";

    fn read(entry: &str) -> Outcome<Change> {
        change(entry, |file| (file == "core/src/a.rs").then(|| TEXT.to_owned()))
    }

    fn error(entry: &str) -> String {
        read(entry).unwrap_err().to_string()
    }

    #[test]
    fn a_change_is_the_part_of_a_line_that_differs() {
        let change = read("never\nIt never\ndoes.\ncore/src/a.rs\n- if c > 0 {\n+ if c > 1 {\n").unwrap();
        assert_eq!(
            (change.name.as_str(), &TEXT[change.range.clone()], change.with.as_str()),
            ("never", "0", "1")
        );
        assert_eq!(TEXT.find("0 {"), Some(change.range.start));
    }

    #[test]
    fn a_line_may_be_left_out_and_found_by_the_lines_around_it() {
        let change = read("x\nIt.\ncore/src/a.rs\n- a.insert(b);\n+\n").unwrap();
        assert_eq!((&TEXT[change.range.clone()], change.with.as_str()), ("a.insert(b);", ""));
        let change = read("x\nIt.\ncore/src/a.rs\n- }\n- d();\n+ }\n").unwrap();
        assert_eq!((TEXT[change.range.clone()].trim(), change.with.as_str()), ("d();", ""));
        assert!(change.range.start > 50);
    }

    #[test]
    fn an_original_that_is_not_there_once_is_an_error() {
        assert!(error("x\nIt.\ncore/src/a.rs\n- d();\n+ e();\n").contains("2 times"));
        assert!(error("x\nIt.\ncore/src/a.rs\n- e();\n+ d();\n").contains("0 times"));
        assert!(error("x\nIt.\ncore/src/b.rs\n- d();\n+ e();\n").contains("there is no core/src/b.rs"));
        assert!(error("x\nIt.\n- d();\n+ e();\n").contains("no line names a file"));
        assert!(error("x\ncore/src/a.rs\n- d();\n+ e();\n").contains("a sentence"));
        assert!(error("x\nIt.\ncore/src/a.rs\n- a.insert(b);\n+ a.insert(b);\n").contains("is the original"));
    }
}
