//! What the cells share: programs that other users can execute, and what this machine can do.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio as ProcessStdio};

use rustix::process::getuid;
use tempfile::TempDir;

use super::cell::{Cell, Job, Stdio, Who};
use crate::copy_program;

/// The user that owns nothing.
const NOBODY: &str = "65534";

/// How long a job lasts if nothing ends it, in seconds: longer than the lock would be valid.
const LASTS: &str = "4";

/// A directory with the programs.
#[derive(Debug)]
pub struct Stage {
    directory: TempDir,
    has_namespaces: bool,
    has_set_user_id: bool,
    has_bash: bool,
}

impl Stage {
    /// Prepares for runs of this binary.
    pub fn new(quorlock: &Path) -> Self {
        let directory = tempfile::Builder::new().prefix("quorlock-").tempdir().expect("a directory");
        fs::set_permissions(directory.path(), Permissions::from_mode(0o755)).expect("it is ours");
        let binary = directory.path().join("quorlock");
        copy_program(quorlock, &binary, "755");
        let mut stage = Self { directory, has_namespaces: false, has_set_user_id: false, has_bash: false };
        let works = |words: &[String]| {
            let (program, rest) = words.split_first().expect("a program");
            let mut command = Command::new(program);
            command.args(rest).stdin(ProcessStdio::null()).stderr(ProcessStdio::null());
            command.output().is_ok_and(|output| output.status.success() && output.stdout.ends_with(b"0\n"))
        };
        let echo = ["sh", "-c", "echo 0"].map(str::to_owned);
        stage.has_bash = works(&["bash", "-c", "echo 0"].map(str::to_owned));
        stage.has_namespaces = works(&[Self::as_whom(Who::First), echo.to_vec()].concat());
        if getuid().is_root() {
            let helper = stage.helper();
            let setpriv = ["/usr/bin/setpriv", "/bin/setpriv"].map(Path::new);
            let setpriv = setpriv.into_iter().find(|path| path.is_file());
            if let Some(setpriv) = setpriv {
                copy_program(setpriv, &helper, "4755");
            }
            let become_root =
                [helper.display().to_string(), "--reuid=0".to_owned(), "id".to_owned(), "-ru".to_owned()];
            stage.has_set_user_id =
                setpriv.is_some() && works(&[Self::as_whom(Who::User), become_root.to_vec()].concat());
        }
        stage
    }

    fn helper(&self) -> PathBuf {
        self.directory.path().join("setpriv")
    }

    /// A directory of its own for a cell, in which every user can write.
    pub(super) fn room(&self) -> TempDir {
        let room = tempfile::tempdir_in(self.directory.path()).expect("a directory");
        fs::set_permissions(room.path(), Permissions::from_mode(0o777)).expect("it is ours");
        room
    }

    /// The words before `quorlock`, with which it becomes this user.
    fn as_whom(who: Who) -> Vec<String> {
        let is_root = getuid().is_root();
        let words: &[&str] = match who {
            Who::User if is_root => &["setpriv", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"],
            Who::User => &[],
            Who::First if is_root => &["unshare", "--pid", "--fork", "--mount-proc"],
            Who::First => &["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc"],
        };
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    /// The words of a run with these options, up to the name of the lock. The error says why this
    /// machine cannot make the cell.
    pub(super) fn words(&self, cell: Cell, options: &[String], pipe: &Path) -> Result<Vec<String>, String> {
        if cell.who == Who::First && !self.has_namespaces {
            return Err("no namespaces".to_owned());
        }
        if cell.job == Job::SetM && !self.has_bash {
            return Err("no bash".to_owned());
        }
        let mut words = Self::as_whom(cell.who);
        let around: &[&str] = match cell.stdio {
            // With the terminal as the controlling one.
            Stdio::Terminal | Stdio::TerminalStopped => &["setsid", "--ctty"],
            Stdio::Closed => &["sh", "-c", "exec \"$@\" >&- 2>&-", "sh"],
            Stdio::PipeRead | Stdio::PipeFull | Stdio::DevFull => &[],
        };
        words.splice(0..0, around.iter().map(|word| (*word).to_owned()));
        words.push(self.directory.path().join("quorlock").display().to_string());
        words.push("run".to_owned());
        words.extend_from_slice(options);
        if matches!(cell.job, Job::ForksAndExitsWaitedFor | Job::SetsidWaitedFor) {
            words.push("--wait-for-children".to_owned());
        }
        words.extend(["job".to_owned(), "--".to_owned()]);
        words.extend(self.job(cell, pipe)?);
        Ok(words)
    }

    /// The command. It opens the pipe for writing, and so do all that it starts: the pipe has a
    /// writer for as long as one of them lives.
    fn job(&self, cell: Cell, pipe: &Path) -> Result<Vec<String>, String> {
        let deaf = "trap '' TERM INT HUP ALRM;";
        let long = format!("sleep {LASTS}");
        let begin = format!("exec 9>{}; echo runs >&9;", pipe.display());
        let in_shell = |shell: &str, script: String| {
            vec![shell.to_owned(), "-c".to_owned(), format!("{begin} {script}")]
        };
        Ok(match cell.job {
            Job::EndsByItself => in_shell("sh", "exec sleep 3".to_owned()),
            Job::IgnoresTerm => in_shell("sh", format!("{deaf} exec {long}")),
            Job::ForksAndExits | Job::ForksAndExitsWaitedFor => {
                in_shell("sh", format!("({deaf} exec {long}) & exit 0"))
            }
            Job::Setsid | Job::SetsidWaitedFor => {
                in_shell("sh", format!("setsid sh -c \"{deaf} exec {long}\" & wait"))
            }
            Job::Timeout => in_shell("sh", format!("timeout 60 sh -c \"{deaf} exec {long}\"; exit 0")),
            Job::SetM => in_shell("bash", format!("set -m; ({deaf} exec {long}) & wait")),
            Job::StopsItself => in_shell("sh", format!("kill -STOP $$; {long}")),
            Job::SetUserId => {
                let (program, user) = match cell.who {
                    Who::User if self.has_set_user_id => (self.helper().display().to_string(), "0"),
                    Who::First if getuid().is_root() => ("setpriv".to_owned(), NOBODY),
                    Who::User | Who::First => return Err("no setuid".to_owned()),
                };
                let mut words = vec![program, format!("--reuid={user}")];
                words.extend(in_shell("sh", format!("exec {long}")));
                words
            }
        })
    }
}
