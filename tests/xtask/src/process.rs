//! Commands that run in the workspace's root.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Outcome;

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    // The manifest is in `tests/xtask`.
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap_or(Path::new(".")).to_owned()
}

/// The folder that cargo builds into.
pub(crate) fn target() -> PathBuf {
    root().join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

/// A program with its arguments, in the workspace's root.
pub(crate) fn program(name: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(name);
    command.args(arguments).current_dir(root());
    command
}

/// The cargo that runs this tool, with these arguments.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let name = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    program(&name, arguments)
}

/// Runs a command to its end, which must be a success.
pub(crate) fn run(command: &mut Command) -> Outcome {
    let status = command.status().map_err(|error| format!("{}: {error}", shown(command)))?;
    if status.success() { Ok(()) } else { Err(format!("{} failed: {status}", shown(command)).into()) }
}

/// Runs a command that must succeed, and returns what it prints.
pub(crate) fn read(command: &mut Command) -> Outcome<String> {
    let output =
        command.stderr(Stdio::inherit()).output().map_err(|error| format!("{}: {error}", shown(command)))?;
    if output.status.success() {
        Ok(String::from_utf8(output.stdout)?)
    } else {
        Err(format!("{} failed: {}", shown(command), output.status).into())
    }
}

/// Runs a command with this text as its input. It must succeed.
pub(crate) fn feed(command: &mut Command, input: &str) -> Outcome {
    let mut child = command.stdin(Stdio::piped()).spawn()?;
    if let Some(mut pipe) = child.stdin.take() {
        pipe.write_all(input.as_bytes())?;
    }
    let status = child.wait()?;
    if status.success() { Ok(()) } else { Err(format!("{} failed: {status}", shown(command)).into()) }
}

/// The files of the working tree that Git does not ignore, by their paths from the root.
pub(crate) fn files() -> Outcome<Vec<String>> {
    let arguments = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let listed = read(&mut program("git", &arguments))?;
    let mut files: Vec<_> = listed.split('\0').map(str::to_owned).collect();
    files.retain(|file| root().join(file).is_file());
    files.sort();
    files.dedup();
    Ok(files)
}

/// A command as it would be typed.
fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
