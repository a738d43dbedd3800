//! The servers that the first page starts in a shell.

use std::fs;
use std::path::Path;
use std::process::Command;

use rustix::process::{Pid, Signal, kill_process_group};

use crate::binary;
use crate::documented::{blocks, pages, with_masters};
use crate::running::Running;

/// A shell that has started servers in the background.
struct Shell(Running);

impl Drop for Shell {
    fn drop(&mut self) {
        // The servers are in the group of the shell, which has not been waited for yet.
        if let Some(group) = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

/// Whether this is the folder of a server that keeps its data.
fn has_data(folder: &Path) -> bool {
    folder.join("appendonlydir").is_dir() || folder.join("appendonly.aof").is_file()
}

#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
fn the_servers_that_the_first_page_starts_grant_a_lock_and_keep_their_data_apart() {
    let (_, page) = pages().into_iter().find(|(name, _)| name == "core/docs/start.md").unwrap();
    let starts = |(language, text): &(String, String)| language == "sh" && text.contains("redis-server ");
    let (_, start) = blocks(&page).into_iter().find(starts).unwrap();

    let directory = tempfile::tempdir().unwrap();
    let urls = "-m redis://127.0.0.1:7001 -m redis://127.0.0.1:7002 -m redis://127.0.0.1:7003";
    // The last command keeps the shell, and so its group, until the test is over.
    let script =
        with_masters(&format!("{start}\"$QUORLOCK\" run -q -w 20s {urls} job -- echo runs\ncat\n"), &[]);
    let mut command = Command::new("sh");
    command.args(["-c", &script]).current_dir(directory.path()).env("QUORLOCK", binary::quorlock());
    let mut shell = Shell(Running::of(&mut command));

    assert_eq!(shell.0.first_line(), "runs", "{}", shell.0.err());
    let folders = fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().path());
    assert_eq!(folders.filter(|folder| has_data(folder)).count(), 3, "{}", shell.0.err());
}
