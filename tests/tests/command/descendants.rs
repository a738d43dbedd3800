//! What the command starts, on Linux.

use std::fs;
use std::io::Write;
use std::time::{Duration, Instant};

use quorlock_tests::supervision::terminal;
use quorlock_tests::{Fleet, eventually, masters};
use rustix::process::{Pid, Signal, kill_process};

use crate::binary;
use crate::running::{JOB, Running, SOON, assert_free, run, start};

/// The names of the processes below the one with the number `id`, ended ones included.
fn below(id: u32) -> Vec<String> {
    let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
    let ids = children.split_whitespace().map(|id| id.parse().unwrap());
    ids.flat_map(|id: u32| {
        let name = fs::read_to_string(format!("/proc/{id}/comm")).unwrap_or_default();
        [vec![name.trim_end().to_owned()], below(id)].concat()
    })
    .collect()
}

#[test]
fn orphans_are_reaped() {
    let masters = masters(1);
    let script = "n=0; while [ $n -lt 20 ]; do (sleep 0.01 &); n=$((n + 1)); done; echo runs; exec cat";
    let mut run = start(&masters, &[], &["sh", "-c", script]);
    run.first_line();
    eventually(SOON, "only the command is left", || below(run.id()) == ["cat"]);
    assert_eq!(run.end().code, Some(0));
}

#[test]
fn what_goes_on_after_the_command_is_named() {
    let masters = masters(3);
    let ended = run(&masters, &[], &["sh", "-c", "setsid sleep 2 >/dev/null & echo $!; exit 3"]);
    assert_eq!(ended.code, Some(3));
    let named = format!("process {} (sleep)", ended.out.trim_end());
    assert!(ended.err.contains(&named), "{}: {}", ended.out, ended.err);
    assert!(ended.took < Duration::from_secs(2), "it was waited for: {:?}", ended.took);
    assert_free(&masters);
}

#[test]
fn what_ends_at_once_after_the_command_is_not_named() {
    let masters = masters(3);
    let ended = run(&masters, &[], &["sh", "-c", "sleep 0.02 & exit 3"]);
    assert_eq!((ended.code, ended.err.as_str()), (Some(3), ""));
}

#[test]
fn the_lock_is_kept_until_the_last_child_has_ended_if_that_is_wished() {
    let masters = masters(3);
    let script = "(setsid sh -c 'sleep 0.7; setsid sleep 0.7 &' &) ; exit 3";
    let begun = Instant::now();
    let mut run = start(&masters, &["--ttl", "1s", "--wait-for-children"], &["sh", "-c", script]);
    eventually(SOON, "it has the lock", || masters.holding(JOB) == 3);
    while run.goes_on() {
        let is_held = masters.holding(JOB) >= 2;
        assert!(
            is_held || !run.goes_on() || begun.elapsed() > Duration::from_millis(1400),
            "released too early"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(begun.elapsed() >= Duration::from_millis(1400), "{:?}", begun.elapsed());
    let ended = run.end();
    assert_eq!((ended.code, ended.err.as_str()), (Some(3), ""));
    assert_free(&masters);
}

#[test]
fn children_that_are_waited_for_get_the_signals() {
    let masters = masters(3);
    let run = start(&masters, &["--wait-for-children"], &["sh", "-c", "setsid sleep 60 & exit 3"]);
    eventually(SOON, "the command has ended", || below(run.id()) == ["sleep"]);
    run.signal(Signal::TERM);
    assert_eq!(run.end_by_itself().code, Some(3));
    assert_free(&masters);
}

#[test]
fn the_longest_hold_ends_children_that_are_waited_for() {
    let masters = masters(3);
    let options = ["--wait-for-children", "--ttl", "1s", "--max-hold", "500ms"];
    let script = "setsid sh -c 'trap \"\" TERM; exec sleep 60' & exit 3";
    let ended = run(&masters, &options, &["sh", "-c", script]);
    assert_eq!(ended.code, Some(75), "{}", ended.err);
    assert!(ended.took < Duration::from_secs(5), "{:?}", ended.took);
}

#[test]
fn a_lost_lock_ends_hundreds_of_processes_in_sessions_of_their_own() {
    let masters = masters(3);
    let script = "n=0; while [ $n -lt 300 ]; do setsid sh -c 'trap \"\" TERM; exec sleep 60' & n=$((n + 1)); done; \
                  echo runs; wait";
    let mut run = start(&masters, &["--ttl", "3s"], &["sh", "-c", script]);
    run.first_line();
    eventually(SOON, "all have been started", || {
        below(run.id()).iter().filter(|name| *name == "sleep").count() == 300
    });
    let all = ids_below(run.id());
    let end = end_of_lock(&masters);
    masters.iter().for_each(|master| assert!(master.del(JOB)));
    let ended = run.end_by_itself();
    assert_eq!(ended.code, Some(75), "{}", ended.err);
    assert!(Instant::now() < end, "too late by {:?}: {}", Instant::now() - end, ended.err);
    let living: Vec<_> = all.into_iter().filter(|id| lives(*id)).collect();
    assert!(living.is_empty(), "{living:?} live: {}", ended.err);
}

#[test]
fn what_is_left_is_ended_if_the_lock_is_found_to_be_lost_when_the_command_ends() {
    let masters = masters(3);
    let script = "setsid sleep 60 >/dev/null & echo $!; exec cat";
    let mut run = start(&masters, &["--ttl", "1m"], &["sh", "-c", script]);
    let left: u32 = run.first_line().parse().unwrap();
    eventually(SOON, "the key is on every master", || masters.holding(JOB) == 3);
    masters.iter().for_each(|master| assert!(master.del(JOB)));
    assert_eq!(run.end().code, Some(75));
    assert!(!lives(left));
}

#[test]
fn processes_that_fork_and_end_again_and_again_are_caught() {
    let masters = masters(3);
    let directory = tempfile::tempdir().unwrap();
    let (stop, script) = (directory.path().join("stop"), directory.path().join("script"));
    // Each process starts the next one and ends; so does the command.
    let next = format!("[ -e {} ] || sh {} &", stop.display(), script.display());
    fs::write(&script, format!("trap '' TERM; echo .; {next}")).unwrap();
    let options = ["--wait-for-children", "--ttl", "2s", "--max-hold", "500ms"];
    let mut run = start(&masters, &options, &["sh", script.to_str().unwrap()]);
    eventually(SOON, "it is caught, or quorlock has lost it", || !run.goes_on());
    let before = run.out().len();
    std::thread::sleep(Duration::from_millis(300));
    let after = run.out().len();
    fs::write(&stop, "").unwrap();
    let ended = run.end();
    assert_eq!((ended.code, after), (Some(75), before), "{}", ended.err);
}

fn ids_below(id: u32) -> Vec<u32> {
    let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
    let ids = children.split_whitespace().map(|id| id.parse().unwrap());
    ids.flat_map(|id: u32| [vec![id], ids_below(id)].concat()).collect()
}

/// Whether a process runs. One that has ended is still listed until its parent has seen that.
fn lives(id: u32) -> bool {
    fs::read_to_string(format!("/proc/{id}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

/// When the keys would have expired.
fn end_of_lock(masters: &Fleet) -> Instant {
    let left = masters.iter().map(|master| master.pttl(JOB)).max().expect("there are masters");
    Instant::now() + Duration::from_millis(u64::try_from(left).expect("a life that is left"))
}

#[test]
fn children_that_were_there_before_the_command_are_left_alone() {
    let masters = masters(3);
    // The shell becomes `quorlock`, whose child the first `sleep` is then.
    let mut shell = std::process::Command::new("sh");
    let script = "sleep 60 >/dev/null 2>&1 & echo $!; exec \"$@\"";
    shell.args(["-c", script, "sh"]).arg(binary::quorlock()).args([
        "run",
        "--ttl",
        "1s",
        "--max-hold",
        "300ms",
    ]);
    shell.args([JOB, "sh", "-c", "setsid sleep 60 & wait"]).env("QUORLOCK_MASTERS", masters.urls().join(","));
    let mut run = Running::of(&mut shell);
    let earlier: u32 = run.first_line().parse().unwrap();
    let ended = run.end_by_itself();
    assert_eq!(ended.code, Some(75), "{}", ended.err);
    assert!(lives(earlier));
    kill_process(Pid::from_raw(earlier.try_into().unwrap()).unwrap(), Signal::KILL).unwrap();
}

#[test]
fn the_command_ends_with_quorlock_if_that_is_killed() {
    let masters = masters(3);
    let mut run = start(&masters, &["--ttl", "1s"], &["sh", "-c", "echo $$; exec sleep 60"]);
    let command: u32 = run.first_line().parse().unwrap();
    run.signal(Signal::KILL);
    eventually(SOON, "the command has ended", || !lives(command));
}

/// An interactive shell at a terminal of its own.
struct Shell {
    child: std::process::Child,
    keys: fs::File,
}

impl Shell {
    fn start(masters: &Fleet) -> Self {
        let (ours, theirs) = terminal().expect("a terminal");
        let mut shell = std::process::Command::new("setsid");
        shell.args(["--ctty", "bash", "--norc", "-i"]).env("QUORLOCK_MASTERS", masters.urls().join(","));
        shell.env("QUORLOCK", binary::quorlock()).stdin(theirs.try_clone().unwrap());
        shell.stdout(theirs.try_clone().unwrap()).stderr(theirs);
        let keys = fs::File::from(ours);
        let mut shown = keys.try_clone().unwrap();
        // What is shown must be read, or the programs would wait.
        std::thread::spawn(move || std::io::copy(&mut shown, &mut std::io::sink()));
        Self { child: shell.spawn().unwrap(), keys }
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// The states of the processes with this name below the shell.
    fn states(&self, name: &str) -> String {
        let marked = format!("({name}) ");
        let stats = ids_below(self.child.id())
            .into_iter()
            .filter_map(|id| fs::read_to_string(format!("/proc/{id}/stat")).ok());
        stats.filter_map(|stat| stat.split_once(&marked)?.1.chars().next()).collect()
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn processes_in_sessions_of_their_own_stop_with_a_job_and_are_continued_with_it() {
    let masters = masters(3);
    let mut shell = Shell::start(&masters);
    shell.press("$QUORLOCK run --ttl 4s job sh -c 'setsid sleep 600 & sleep 600'\n");
    eventually(SOON, "both run", || shell.states("sleep") == "SS");
    shell.press("\x1a");
    eventually(SOON, "both are stopped", || shell.states("sleep") == "TT");
    shell.press("fg\n");
    eventually(SOON, "both are continued", || shell.states("sleep") == "SS");
    shell.press("\x1a");
    eventually(SOON, "both are stopped", || shell.states("sleep") == "TT");
    eventually(SOON, "the lock is over", || masters.holding(JOB) == 0);
    shell.press("fg\n");
    eventually(SOON, "both are ended", || shell.states("sleep").is_empty());
}

#[test]
fn processes_that_are_waited_for_stop_with_the_job_and_are_continued_with_it() {
    let masters = masters(3);
    let mut shell = Shell::start(&masters);
    shell.press("$QUORLOCK run --wait-for-children job setsid --fork sleep 600\n");
    eventually(SOON, "the command has ended", || {
        shell.states("setsid").is_empty() && shell.states("sleep") == "S"
    });
    shell.press("\x1a");
    eventually(SOON, "it is stopped", || shell.states("sleep") == "T" && shell.states("quorlock") == "T");
    shell.press("fg\n");
    eventually(SOON, "it is continued", || shell.states("sleep") == "S" && shell.states("quorlock") == "S");
    shell.press("\x03");
    eventually(SOON, "it is interrupted", || shell.states("quorlock").is_empty());
    assert_eq!(shell.states("sleep"), "");
}
