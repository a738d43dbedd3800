//! Programs that run as another user than the one who starts them.

use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use rustix::process::getuid;

use crate::descendants::can_be_refused;

/// The bit of a file's mode with which the program runs as the owner of the file.
const SET_USER_ID: u32 = 0o4000;

/// The number of the user under which `program` runs, if that is another one than ours and we may
/// therefore be unable to send it signals.
pub(crate) fn owner_of(program: &OsStr) -> Option<u32> {
    let file = find(program)?;
    let changes_user = file.mode() & SET_USER_ID != 0 && file.uid() != getuid().as_raw();
    (changes_user && can_be_refused()).then(|| file.uid())
}

/// The file that `exec` takes for `program`.
fn find(program: &OsStr) -> Option<Metadata> {
    let paths = if program.as_bytes().contains(&b'/') {
        vec![PathBuf::from(program)]
    } else {
        let path = std::env::var_os("PATH")?;
        std::env::split_paths(&path).map(|directory| directory.join(program)).collect()
    };
    let is_program = |file: &Metadata| file.is_file() && file.mode() & 0o111 != 0;
    paths.iter().filter_map(|path| fs::metadata(path).ok()).find(is_program)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn programs_are_found_as_exec_finds_them() {
        assert!(find(OsStr::new("sh")).is_some());
        assert!(find(OsStr::new("/bin/sh")).is_some());
        assert!(find(OsStr::new("/etc/passwd")).is_none(), "not executable");
        assert!(find(OsStr::new("no-such-program-anywhere")).is_none());
    }

    #[test]
    fn our_own_set_user_id_programs_run_as_ourselves() {
        let directory = tempfile::tempdir().expect("a directory");
        let program = directory.path().join("program");
        fs::write(&program, "").expect("a file");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o4755)).expect("it is ours");
        assert_eq!(owner_of(program.as_os_str()), None);
    }
}
