//! Writes the SHA-1 of each script whose text has changed. A test of the core knows them, because
//! the compiler puts most texts together.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use crate::Outcome;
use crate::process::{cargo, root};

/// Where the scripts are.
pub(crate) const SCRIPTS: &str = "core/src/wire/script/";

const HELP: &str = "\
cargo xtask digests   writes the SHA-1 of each script whose text has changed into its source";

/// The arguments with which cargo runs the test.
pub(crate) const TEST: [&str; 4] =
    ["-p", "quorlock-core", "--lib", "wire::script::tests::each_script_has_the_sha_1_of_its_text"];

pub(crate) fn run(options: &[&str]) -> Outcome {
    match options {
        [] => {}
        ["-h" | "--help"] => {
            println!("{HELP}");
            return Ok(());
        }
        [other, ..] => {
            return Err(format!("{other:?} is not an option; try cargo xtask digests --help").into());
        }
    }
    let said = cargo(&["test", "--quiet"]).args(TEST).stderr(Stdio::inherit()).output()?;
    let changed = write(&root(), &String::from_utf8_lossy(&said.stdout))?;
    if changed == 0 && !said.status.success() {
        return Err("the test failed, and not because of a SHA-1: see above".into());
    }
    println!("{changed} changed");
    Ok(())
}

/// Writes the digests that the test asks for into the sources of this tree. Returns how many.
pub(crate) fn write(tree: &Path, said: &str) -> Outcome<usize> {
    let mut files = Vec::new();
    for entry in fs::read_dir(tree.join(SCRIPTS))? {
        let path = entry?.path();
        files.push((fs::read_to_string(&path)?, path));
    }
    let mut count = 0;
    for (old, new, name) in said.lines().filter_map(wrong) {
        let quoted = format!("\"{old}\"");
        let mut places = files.iter_mut().filter(|(text, _)| text.contains(&quoted));
        let (Some((text, _)), None) = (places.next(), places.next()) else {
            return Err(format!("\"{old}\" is not in one place: write {new} for {name:?} by hand").into());
        };
        *text = text.replacen(&quoted, &format!("\"{new}\""), 1);
        count += 1;
    }
    if count > 0 {
        files.into_iter().try_for_each(|(text, path)| fs::write(path, text))?;
    }
    Ok(count)
}

/// `OLD becomes NEW: NAME`
fn wrong(line: &str) -> Option<(&str, &str, &str)> {
    let (digests, name) = line.split_once(": ")?;
    let (old, new) = digests.split_once(" becomes ")?;
    let is_digest = |text: &str| text.len() == 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    (is_digest(old) && is_digest(new)).then_some((old, new, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_test_says_which_digest_becomes_which() {
        let [old, new] = ["0f", "1e"].map(|text| text.repeat(20));
        let line = format!("{old} becomes {new}: keep all");
        assert_eq!(wrong(&line), Some((old.as_str(), new.as_str(), "keep all")));
        assert_eq!(wrong(&format!("{old} becomes {}: keep", &new[1..])), None);
        assert_eq!(wrong("test result: FAILED"), None);
    }
}
