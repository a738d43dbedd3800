//! `cargo xtask platforms`: on which platforms the libraries and the command compile.

mod checks;
mod debian;
mod lowest;
mod table;
mod tools;

use std::fs;

use crate::Outcome;
use crate::check::NotRun;
use crate::results::Run;
use checks::{PARTS, Part, Tools};
use table::{Claim, PLATFORMS};

const HELP: &str = "\
Checks on which platforms the libraries and the command compile.

cargo xtask platforms            checks all of them, and keeps the table of the README
cargo xtask platforms NAME ...   checks some
cargo xtask platforms --list     lists them, with what is claimed

Rust of the libraries' oldest version is used, with the sources of its standard library. If it is
missing, rustup installs it, or else it is unpacked from packages of Debian into the target folder.
C is compiled with zig, which pip installs into the target folder.";

pub(crate) fn run(words: &[&str]) -> Outcome {
    match words {
        ["-h" | "--help"] => {
            println!("{HELP}");
            return Ok(());
        }
        ["--list"] => {
            list();
            return Ok(());
        }
        _ => {}
    }
    if let Some(unknown) = words.iter().find(|word| !PLATFORMS.iter().any(|one| one.name == **word)) {
        return Err(
            format!("there is no platform {unknown:?}; cargo xtask platforms --list lists them").into()
        );
    }
    // A table of some platforms would take the place of that of all.
    let results = if words.is_empty() { Run::of("platforms", words)? } else { None };
    let tools = Tools::new();
    let (mut failed, mut not_run) = (Vec::new(), Vec::new());
    for platform in PLATFORMS.iter().filter(|one| words.is_empty() || words.contains(&one.name)) {
        println!("\n== {} ({})", platform.about, platform.name);
        for part in PARTS {
            match tools.check(platform, part) {
                Ok(said) => println!("{}: {said}", part.column()),
                Err(error) => {
                    println!("{}: {error}", part.column());
                    let list = if error.is::<NotRun>() { &mut not_run } else { &mut failed };
                    list.push(format!("{}, {}: {error}", platform.name, part.column()));
                }
            }
        }
    }
    if !failed.is_empty() {
        return Err(failed.join("\n").into());
    }
    match results {
        Some(results) if not_run.is_empty() => {
            println!();
            list();
            fs::write(results.variable().1, lines())?;
            results.keep(words)
        }
        Some(_) => {
            println!("\nthe table is not kept, because some of it was not checked:");
            not_run.iter().for_each(|what| println!("{what}"));
            Ok(())
        }
        // What was named must run.
        None if not_run.is_empty() => Ok(()),
        None => Err(not_run.join("\n").into()),
    }
}

/// Prints all platforms, with what is claimed.
fn list() {
    for platform in &PLATFORMS {
        let claims = PARTS.map(|part| format!("{} {:<13}", part.column(), part.claim(platform).word()));
        println!("{:<30} {}", platform.name, claims.join(" ").trim_end());
    }
}

/// What is kept: the table for users, and why something is not checked.
fn lines() -> String {
    let mut lines = format!("figure\tplatforms\t{}\t\n", PLATFORMS.len());
    lines += &format!("row\tplatforms\tplatform\t{}\n", PARTS.map(Part::column).join("\t"));
    for platform in &PLATFORMS {
        let claims = PARTS.map(|part| part.claim(platform).word());
        lines += &format!("row\tplatforms\t{}\t{}\n", platform.about, claims.join("\t"));
    }
    lines += "row\treasons\tplatform\tpart\tclaim\treason\n";
    for platform in &PLATFORMS {
        for part in PARTS {
            let claim = part.claim(platform);
            if let Claim::Expected(reason) | Claim::No(reason) = claim {
                let cells = [platform.about, part.column(), claim.word(), reason];
                lines += &format!("row\treasons\t{}\n", cells.join("\t"));
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use table::How;

    #[test]
    fn only_the_tests_say_that_something_is_tested() {
        for platform in &PLATFORMS {
            let tested = PARTS.map(|part| part.claim(platform) == Claim::Tested);
            assert_eq!(tested, [platform.how == How::Ci; 3], "{}", platform.name);
        }
    }

    #[test]
    fn what_compiles_c_is_checked_only_where_zig_compiles_it() {
        for platform in &PLATFORMS {
            let is_checked = [platform.tls, platform.command].contains(&Claim::Checked);
            assert!(!is_checked || platform.how != How::Target { zig: None }, "{}", platform.name);
        }
    }

    #[test]
    fn each_claim_that_nothing_checks_has_its_reason() {
        let lines = lines();
        let rows = |table: &str| lines.lines().filter(|line| line.starts_with(table)).count() - 1;
        assert_eq!(rows("row\tplatforms\t"), PLATFORMS.len());
        let unchecked = PLATFORMS.iter().flat_map(|platform| PARTS.map(|part| part.claim(platform)));
        let unchecked = unchecked.filter(|claim| matches!(claim, Claim::Expected(_) | Claim::No(_)));
        assert_eq!(rows("row\treasons\t"), unchecked.count());
    }
}
