//! Tools from PyPI, each in a Python environment of its own in the target folder: that needs no
//! permission.

use std::fs;
use std::path::PathBuf;

use crate::Outcome;
use crate::process::{program, run, target};

/// The environment with this version of a package. If it is missing, it is made.
pub(crate) fn environment(package: &str, version: &str) -> Outcome<PathBuf> {
    let folder = target().join(format!("{package}-{version}"));
    // The last file that is written: an incomplete installation does not have it.
    let complete = folder.join("complete");
    if complete.exists() {
        return Ok(folder);
    }
    println!("installing {package} {version} into {}", folder.display());
    run(program("python3", &["-m", "venv", "--clear"]).arg(&folder))?;
    let python = folder.join("bin/python");
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    run(program(&python.to_string_lossy(), &pip).arg(format!("{package}=={version}")))?;
    fs::write(complete, "")?;
    Ok(folder)
}
