//! Checks by tools that do not come with Rust. Where a tool is missing, they say that they did not
//! run.

use std::fs;
use std::path::{Path, PathBuf};

use super::NotRun;
use crate::Outcome;
use crate::process::{program, read, run, target};

/// The version that the words in `typos.toml` were chosen with.
const TYPOS: &str = "1.52.0";

/// Looks for misspelt words: with the `typos` on PATH, or else with one of its own.
pub(super) fn spelling() -> Outcome {
    let typos = if version("typos").is_ok() { PathBuf::from("typos") } else { own_typos()? };
    let typos = typos.to_string_lossy();
    print!("{}", version(&typos)?);
    run(&mut program(&typos, &["--format", "brief"]))
}

fn version(name: &str) -> Outcome<String> {
    read(&mut program(name, &["--version"]))
}

/// The `typos` of a Python environment in the target folder, which needs no permission.
fn own_typos() -> Outcome<PathBuf> {
    let folder = target().join(format!("typos-{TYPOS}"));
    let typos = folder.join("bin/typos");
    if version(&typos.to_string_lossy()).is_ok() {
        return Ok(typos);
    }
    install_typos(&folder).map_err(|error| {
        // What is half installed would be taken for installed. If it cannot be removed, the next
        // installation says why.
        let _ = fs::remove_dir_all(&folder);
        NotRun(format!("typos is not on PATH and could not be installed with pip ({error})"))
    })?;
    Ok(typos)
}

fn install_typos(folder: &Path) -> Outcome {
    println!("installing typos {TYPOS} into {}", folder.display());
    run(program("python3", &["-m", "venv"]).arg(folder))?;
    let python = folder.join("bin/python");
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    run(program(&python.to_string_lossy(), &pip).arg(format!("typos=={TYPOS}")))
}
