//! The rooms of `core/src` use only themselves and rooms below: every import is compared with the
//! table in `src/lib.rs`.

use std::fs;
use std::path::{Path, PathBuf};

/// The rooms, lowest first: the first column of the table under "The rooms" in the crate's
/// documentation.
fn rooms(lib: &str) -> Vec<&str> {
    let table = lib.split_once("# The rooms").expect("lib.rs has a table of rooms").1;
    let rows = table.lines().map(|line| line.trim_start_matches("//!").trim());
    let rows = rows.skip_while(|row| !row.starts_with("|---")).skip(1);
    rows.map_while(|row| row.strip_prefix("| `")?.split('`').next()).collect()
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the sources are there") {
        let path = entry.expect("a name").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The rooms that a line of code names: the name behind each `crate::`, or each name of
/// `crate::{…}`.
fn named(line: &str) -> impl Iterator<Item = &str> {
    let code = line.split("//").next().unwrap_or_default();
    code.split("crate::").skip(1).flat_map(|behind| match behind.strip_prefix('{') {
        Some(list) => list.split(", ").collect::<Vec<_>>(),
        None => vec![behind],
    })
}

fn word(text: &str) -> &str {
    let end = text.find(|letter: char| !letter.is_alphanumeric() && letter != '_');
    text.get(..end.unwrap_or(text.len())).unwrap_or_default()
}

/// How many modules a file lies within, itself included: an import with as many `super` leaves its
/// room.
fn depth(within: &Path) -> usize {
    within.iter().count() - usize::from(within.ends_with("mod.rs"))
}

/// Each import from above in this file, as its line and what is wrong with it.
fn faults(rooms: &[&str], room: &str, depth: usize, source: &str) -> Vec<String> {
    let rank = |name: &str| rooms.iter().position(|room| *room == name);
    let Some(ours) = rank(room) else { return vec![format!("1: `{room}` is not in the table of rooms")] };
    let mut faults = Vec::new();
    for (number, line) in (1..).zip(source.lines()) {
        if line.starts_with("use super") && line.matches("super::").count() >= depth {
            faults.push(format!("{number}: name the room: {line}"));
        }
        for name in named(line).map(word) {
            match rank(name) {
                Some(theirs) if theirs > ours => {
                    faults.push(format!("{number}: `{room}` is below `{name}`: {}", line.trim()));
                }
                Some(_) => {}
                // What `lib.rs` re-exports comes from any room.
                None => faults.push(format!("{number}: name the room of `{name}`: {}", line.trim())),
            }
        }
    }
    faults
}

#[test]
fn every_room_imports_only_from_itself_and_from_below() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let lib = fs::read_to_string(src.join("lib.rs")).expect("lib.rs is there");
    let rooms = rooms(&lib);
    assert!(rooms.len() > 5, "{rooms:?}");
    let mut files = Vec::new();
    sources(&src, &mut files);
    let mut all = Vec::new();
    for file in files.iter().filter(|file| **file != src.join("lib.rs")) {
        let within = file.strip_prefix(&src).expect("a source of this crate");
        let room = within.iter().next().and_then(|name| name.to_str()).unwrap_or_default();
        let source = fs::read_to_string(file).expect("a source is text");
        let found = faults(&rooms, room.trim_end_matches(".rs"), depth(within), &source);
        all.extend(found.into_iter().map(|fault| format!("src/{}:{fault}", within.display())));
    }
    assert!(all.is_empty(), "imports from above:\n{}", all.join("\n"));
}

#[test]
fn an_import_from_a_room_above_is_found() {
    let rooms = ["time", "protocol", "lock", "machine"];
    let below = "use crate::time::Instant;\nuse super::Lock;\n// use crate::machine::Machine;\n";
    assert_eq!(faults(&rooms, "lock", 2, below), Vec::<String>::new());
    let above = "use crate::{machine::Machine, time::Instant};\n    let it = crate::Lock::new();\n";
    let found = faults(&rooms, "lock", 2, above);
    assert!(
        matches!(found.as_slice(), [upwards, unnamed] if upwards.starts_with("1: `lock` is below `machine`")
        && unnamed.starts_with("2: name the room of `Lock`")),
        "{found:?}"
    );
    assert_eq!(faults(&rooms, "lock", 1, "use super::machine::Machine;\n").len(), 1);
    assert_eq!(faults(&rooms, "attic", 1, "").len(), 1);
}
