//! The changes that cargo-mutants lists: bodies, operators, arms and guards.

use std::ops::Range;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::Outcome;
use crate::change::{Change, Form};

const INSTALL: &str =
    "cargo-mutants lists the changes, and is not installed: cargo install --locked cargo-mutants";

/// Lists the changes of the files that `.cargo/mutants.toml` names; with a diff, only those that it
/// touches.
pub(crate) fn listed(root: &Path, diff: Option<&Path>) -> Outcome<Vec<Change>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["mutants", "--list", "--json"]).current_dir(root);
    if let Some(diff) = diff {
        command.arg("--in-diff").arg(diff);
    }
    let said = command.output()?;
    if !said.status.success() {
        let error = String::from_utf8_lossy(&said.stderr);
        return Err(if error.contains("no such command") { INSTALL.into() } else { error.into() });
    }
    // Without anything to list it says so in words.
    let list =
        if said.stdout.starts_with(b"[") { serde_json::from_slice(&said.stdout)? } else { Value::Null };
    let mut changes = Vec::new();
    let (mut file, mut text) = (String::new(), String::new());
    for entry in list.as_array().into_iter().flatten() {
        let of = entry["file"].as_str().ok_or("an entry of cargo-mutants has no file")?;
        if of != file {
            (file, text) = (of.to_owned(), std::fs::read_to_string(root.join(of))?);
        }
        changes.push(change(entry, &text).ok_or_else(|| format!("not understood: {entry}"))?);
    }
    Ok(changes)
}

fn change(entry: &Value, text: &str) -> Option<Change> {
    let file = entry["file"].as_str()?.to_owned();
    let start = offset(text, entry.pointer("/span/start")?)?;
    let range: Range<usize> = start..offset(text, entry.pointer("/span/end")?)?;
    let form = if entry["genre"] == "MatchArm" { Form::NoArm } else { Form::Code };
    // Its line and column are not part of the name: they change with every edit above.
    let what = entry["name"].as_str()?.splitn(4, ':').nth(3)?.trim();
    let line = text.get(..start)?.rfind('\n').map_or(0, |end| end + 1);
    let line = text.get(line..)?.lines().next()?.trim();
    let name = format!("{file}: {what}: {line}");
    Some(Change { name, file, range, with: entry["replacement"].as_str()?.to_owned(), form, is_listed: true })
}

/// The place of a line and a column, which counts characters; both begin with one.
fn offset(text: &str, place: &Value) -> Option<usize> {
    let [line, column] = ["line", "column"].map(|name| usize::try_from(place[name].as_u64()?).ok());
    let line_start: usize = text.split_inclusive('\n').take(line? - 1).map(str::len).sum();
    let before: usize = text.get(line_start..)?.chars().take(column? - 1).map(char::len_utf8).sum();
    Some(line_start + before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_names_the_text_between_two_places() {
        let text = "fn one() {}\nfn two() -> bool {\n    \"ä\" == \"b\"\n}\n";
        let entry = serde_json::json!({
            "file": "a.rs",
            "genre": "BinaryOperator",
            "name": "a.rs:3:9: replace == with != in two",
            "replacement": "!=",
            "span": {"start": {"line": 3, "column": 9}, "end": {"line": 3, "column": 11}},
        });
        let change = change(&entry, text).unwrap();
        assert_eq!(&text[change.range.clone()], "==");
        assert_eq!(change.name, "a.rs: replace == with != in two: \"ä\" == \"b\"");
        assert_eq!((change.with.as_str(), change.form), ("!=", Form::Code));
    }
}
