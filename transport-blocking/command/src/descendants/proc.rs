//! What `/proc` says about processes.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;

use rustix::process::{Pid, getpid};

/// The capability to send signals to processes of all users: `CAP_KILL` of capabilities(7).
const CAP_KILL: u32 = 5;

/// A line of `/proc/PID/stat`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Stat {
    pub(super) name: String,
    pub(super) has_ended: bool,
    pub(super) is_stopped: bool,
    pub(super) parent: i32,
    pub(super) group: i32,
    pub(super) started: u64,
}

/// Whether `/proc` is there, is that of our PID namespace, and lists the children of processes.
pub(super) fn is_usable() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    // In the `/proc` of another namespace we have a number there and another one here.
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    let own = getpid().as_raw_pid().to_string();
    numbers.is_some_and(|numbers| numbers.split_whitespace().eq([own.as_str()]))
        && fs::metadata(format!("/proc/self/task/{own}/children")).is_ok()
}

/// Whether the system can refuse that we send a signal to a process that we started, because it
/// has become another user's.
pub(crate) fn can_be_refused() -> bool {
    may_be_refused(&fs::read_to_string("/proc/self/status").unwrap_or_default())
}

fn may_be_refused(status: &str) -> bool {
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let capabilities = field("CapEff:").and_then(|mask| u64::from_str_radix(mask, 16).ok()).unwrap_or(0);
    // With this flag no program gets another user's rights, such as those of a set-user-ID file.
    let no_new_rights = field("NoNewPrivs:") == Some("1");
    capabilities >> CAP_KILL & 1 == 0 && !no_new_rights
}

/// A number that changes whenever a process or thread is started.
pub(super) fn newest() -> Option<String> {
    let load = read("/proc/loadavg")?;
    load.split_whitespace().nth(4).map(str::to_owned)
}

/// The numbers of the children of the process `id`, those that have ended included. The list is
/// complete if none of them ends meanwhile.
pub(super) fn children(id: Pid) -> Vec<Pid> {
    let id = id.as_raw_pid();
    let threads = format!("/proc/{id}/task");
    // A directory has a link for each directory in it, besides its own two.
    let number = fs::metadata(&threads).map_or(0, |threads| threads.nlink().saturating_sub(2));
    let of_thread = |thread: &str| read(&format!("{threads}/{thread}/children"));
    let lists: Vec<_> = if number <= 1 {
        of_thread(&id.to_string()).into_iter().collect()
    } else {
        let entries = fs::read_dir(&threads).into_iter().flatten().flatten();
        entries.filter_map(|entry| of_thread(entry.file_name().to_str()?)).collect()
    };
    let numbers = lists.iter().flat_map(|list| list.split_whitespace());
    numbers.filter_map(|number| number.parse().ok().and_then(Pid::from_raw)).collect()
}

/// What the system says about the process `id`.
pub(super) fn stat(id: Pid) -> Option<Stat> {
    parse(&read(&format!("/proc/{}/stat", id.as_raw_pid()))?)
}

/// Reads a file of `/proc`. Its size is not asked for, because it is always 0.
fn read(path: &str) -> Option<String> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(u64::MAX).read_to_end(&mut bytes).ok()?;
    // The name of a program need not be valid UTF-8.
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The fields are numbered in proc_pid_stat(5). The second one, the name in parentheses, may
/// contain anything.
fn parse(line: &str) -> Option<Stat> {
    let (before, after) = line.rsplit_once(") ")?;
    let (_, name) = before.split_once(" (")?;
    let fields: Vec<_> = after.split_whitespace().collect();
    let field = |number: usize| fields.get(number - 3).copied();
    let number = |place: usize| field(place)?.parse::<i32>().ok();
    let state = field(3)?;
    Some(Stat {
        name: name.to_owned(),
        // A process whose first thread has ended is shown as ended, but others may go on.
        has_ended: matches!(state, "Z" | "X") && number(20)? <= 1,
        is_stopped: matches!(state, "T" | "t"),
        parent: number(4)?,
        group: number(5)?,
        started: field(22)?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_whatever_the_name_of_the_program_is() {
        let line = "7 (a) Z 9 (b) T 5 6 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4242 1 2 3\n";
        let expected = Stat {
            name: "a) Z 9 (b".to_owned(),
            has_ended: false,
            is_stopped: true,
            parent: 5,
            group: 6,
            started: 4242,
        };
        assert_eq!(parse(line), Some(expected));
        let zombie = |threads: i32| format!("7 (a) Z 5 6 7 0 -1 4 1 0 0 0 0 0 0 0 20 0 {threads} 0 4242 1\n");
        assert_eq!(
            [1, 2].map(|threads| parse(&zombie(threads)).map(|stat| stat.has_ended)),
            [Some(true), Some(false)]
        );
        assert_eq!(parse("7 (a) Z 5"), None);
        assert_eq!(parse(""), None);
    }

    #[test]
    fn only_other_users_processes_can_refuse_a_signal() {
        let status = |capabilities: &str, flag: u8| {
            format!("Name:\tx\nCapEff:\t{capabilities}\nNoNewPrivs:\t{flag}\n")
        };
        assert!(may_be_refused(&status("0000000000000000", 0)));
        assert!(may_be_refused(&status("ffffffffffffffdf", 0)));
        assert!(!may_be_refused(&status("0000000000000020", 0)));
        assert!(!may_be_refused(&status("0000000000000000", 1)));
        assert!(may_be_refused(""));
    }

    #[test]
    fn our_own_child_is_found() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("sleep runs");
        let id = Pid::from_child(&child);
        assert!(children(getpid()).contains(&id), "it is listed");
        let found = stat(id).expect("it is there");
        assert_eq!((found.parent, found.has_ended), (getpid().as_raw_pid(), false));
        child.kill().expect("it is ours");
        child.wait().expect("it ends");
        assert!(!children(getpid()).contains(&id));
    }
}
