//! Installs the foreign clients into a temporary directory.

use std::path::Path;
use std::process::{Command, Stdio};

/// What npm installs; version 5 has been in beta for a long time and is used anyway.
const NODE: [&str; 3] = ["redlock@4.2.0", "redlock5@npm:redlock@5.0.0-beta.2", "ioredis@6.0.0"];
const PYTHON: [&str; 2] = ["redlock-py==1.0.8", "pottery==3.0.1"];

/// Installs packages for node, and the program that uses them, into a directory.
pub(crate) fn node(directory: &Path) -> Result<(), String> {
    let needed = "install Node.js 20 or later, with npm, so that both are on PATH";
    run(Command::new("node").arg("--version"), needed)?;
    let mut npm = Command::new("npm");
    npm.args(["install", "--no-audit", "--no-fund", "--prefix"]).arg(directory).args(NODE);
    run(&mut npm, needed)?;
    write(&directory.join("redlock.js"), include_str!("redlock.js"))
}

/// Creates a virtual environment for Python, with the program in it.
pub(crate) fn python(directory: &Path) -> Result<(), String> {
    let needed = "install Python 3 with venv and pip, so that python3 is on PATH";
    run(Command::new("python3").args(["-m", "venv"]).arg(directory), needed)?;
    let mut pip = Command::new(directory.join("bin/pip"));
    pip.args(["install", "--quiet", "--disable-pip-version-check"]).args(PYTHON);
    run(&mut pip, needed)?;
    write(&directory.join("redlock_clients.py"), include_str!("redlock_clients.py"))
}

fn run(command: &mut Command, needed: &str) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output =
        command.stdin(Stdio::null()).output().map_err(|error| format!("{name}: {error}; {needed}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("{name} ended with {}; {needed}\n{said}", output.status))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}
