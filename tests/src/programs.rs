//! Files that can be executed.
//!
//! Linux does not execute a file that any process has open for writing. If this process wrote it,
//! a child that another thread forks at that moment would have it open until it executes its own
//! program. So processes of their own write these files.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

/// Writes a script that everybody can execute.
pub fn write_program(file: &Path, text: &str) {
    shell("printf %s \"$1\" >\"$2\" && chmod 755 \"$2\"", [text.as_ref(), file.as_os_str()]);
}

/// Copies a program, for everybody to execute. `mode` may have more bits than those, in octal.
pub fn copy_program(from: &Path, to: &Path, mode: &str) {
    let words = [from.as_os_str(), to.as_os_str(), mode.as_ref()];
    shell("cp \"$1\" \"$2\" && chmod \"$3\" \"$2\"", words);
}

fn shell<const N: usize>(script: &str, words: [&OsStr; N]) {
    let status = Command::new("sh").args(["-c", script, "sh"]).args(words).status();
    assert!(status.as_ref().is_ok_and(|status| status.success()), "{script} {words:?}: {status:?}");
}
