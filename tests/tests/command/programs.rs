//! The programs that pages show, as a reader sees them. The doc tests compile them with the lines
//! that are hidden from readers.

use std::fs;

use crate::documented::{pages, root};

/// The pages that a newcomer reads first.
const FIRST_PAGES: [&str; 2] = ["README.md", "core/docs/start.md"];

/// The crates whose programs a newcomer copies.
const TRANSPORTS: [&str; 3] = ["transport-blocking", "transport-smol", "transport-tokio"];

/// A reader who follows a page from the top can build each program when it comes.
#[test]
fn the_crates_of_a_first_program_are_added_before_it() {
    let added = [
        ("quorlock_blocking::", "cargo add quorlock-blocking"),
        ("quorlock_smol::", "cargo add quorlock-smol"),
        ("quorlock_tokio::", "cargo add quorlock-tokio"),
        ("smol::block_on", "cargo add smol"),
        ("#[tokio::main]", "cargo add tokio --features macros,rt-multi-thread"),
    ];
    let mut programs = 0;
    let pages = pages().into_iter().filter(|(name, _)| FIRST_PAGES.contains(&&**name));
    for (name, page) in pages {
        for (at, _) in page.match_indices("```rust") {
            let (before, rest) = page.split_at(at);
            let (program, _) = rest[3..].split_once("```").unwrap();
            // A paragraph may break a command between two lines.
            let before = before.replace('\n', " ");
            for (_, command) in added.iter().filter(|(used, _)| program.contains(used)) {
                assert!(before.contains(command), "{name}: {command} is not before {program}");
            }
            programs += 1;
        }
    }
    assert!(programs >= 4, "{programs} programs");
}

/// The programs in the rustdoc of a file, each as its lines.
fn programs(source: &str) -> Vec<Vec<&str>> {
    let (mut programs, mut open) = (Vec::new(), None);
    let comments = source.lines().filter_map(|line| line.trim_start().strip_prefix("//"));
    for line in comments.filter_map(|line| line.strip_prefix(['!', '/'])).map(str::trim_start) {
        match (line.strip_prefix("```"), &mut open) {
            (Some(_), None) => open = Some(Vec::new()),
            (Some(_), Some(_)) => programs.extend(open.take()),
            (None, Some(program)) => program.push(line),
            (None, None) => {}
        }
    }
    programs
}

/// The name that a line defines.
fn defined(line: &str) -> Option<&str> {
    line.trim_start_matches("# ").strip_prefix("let ")?.split(' ').next()
}

fn uses(line: &str, name: &str) -> bool {
    let (code, _) = line.split_once("// ").unwrap_or((line, ""));
    code.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == name)
}

/// Hidden lines start masters for the doc test. What they define must not be missing in the rest.
#[test]
fn the_programs_of_the_transports_define_every_name_that_they_show() {
    let mut hiding = 0;
    for (folder, file) in
        TRANSPORTS.iter().flat_map(|folder| ["lib.rs", "through.rs"].map(|file| (folder, file)))
    {
        let source = fs::read_to_string(root().join(folder).join("src").join(file)).unwrap();
        for program in programs(&source) {
            let (hidden, shown): (Vec<&str>, Vec<&str>) =
                program.into_iter().partition(|line| line.starts_with("# "));
            for name in hidden.iter().filter_map(|line| defined(line)) {
                let is_used = shown.iter().any(|line| uses(line, name));
                let is_defined = shown.iter().any(|line| defined(line) == Some(name));
                assert!(is_defined || !is_used, "{folder}/src/{file}: only a hidden line defines `{name}`");
            }
            hiding += usize::from(!hidden.is_empty());
        }
    }
    assert!(hiding >= 6, "{hiding} programs with hidden lines");
}
