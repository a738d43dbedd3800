//! The examples for users: how each begins, where it is listed, and that the checks run it.

use std::fs;

use crate::documented::root;

const FOLDERS: [&str; 5] = [
    "core/examples",
    "tests/fencing/examples",
    "transport-blocking/examples",
    "transport-smol/examples",
    "transport-tokio/examples",
];

/// These examples measure something, for developers.
const LEFT_OUT: [&str; 2] = ["give_up", "pairs"];

#[test]
fn every_example_begins_with_its_problem_and_is_listed_and_run() {
    let read = |file: &str| fs::read_to_string(root().join(file)).unwrap();
    let (gallery, checks) = (read("core/docs/start.md"), read("tests/xtask/src/check/scenarios.rs"));
    let mut examples = 0;
    for folder in FOLDERS {
        for file in fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path()) {
            let name = file.file_stem().unwrap().to_str().unwrap();
            if LEFT_OUT.contains(&name) {
                continue;
            }
            let source = fs::read_to_string(&file).unwrap();
            let opening: String = source.lines().take_while(|line| line.starts_with("//!")).collect();
            assert!(opening.starts_with("//! Problem: "), "{name}");
            for part in ["//! Run: ", "//! Watch: ", &format!("--example {name}")] {
                assert!(opening.contains(part), "{name} has no {part:?}");
            }
            let link = format!("[{name}]: ../../{folder}/{name}.rs\n");
            assert!(gallery.contains(&link), "core/docs/start.md does not list {name}");
            assert!(checks.contains(&format!("\"{name}\"")), "the step `examples` does not run {name}");
            examples += 1;
        }
    }
    assert!(examples >= 21, "{examples} examples");
}
