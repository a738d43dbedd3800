//! What `quorlock run` says.

use std::ffi::OsStr;

use crate::arguments::RunArguments;
use crate::child::Ending;
use crate::descendants::Process;
use crate::duration::spoken;
use crate::output::{JsonValue, Level, Output};
use crate::set_user_id::owner_of;
use crate::signals;
use crate::subject::Subject;
use crate::waiting::{Released, milliseconds};

/// The most processes that one line names.
const NAMED: usize = 10;

/// Why the command is being ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    Lost,
    RunsOut,
    MaxHold,
}

/// The events of one run.
pub(crate) struct Report<'a> {
    subject: Subject,
    arguments: &'a RunArguments,
    output: &'a Output,
    /// The processes that refused SIGKILL, as they have been named.
    refused: Vec<String>,
}

impl<'a> Report<'a> {
    pub(crate) fn new(arguments: &'a RunArguments, output: &'a Output) -> Self {
        Self { subject: arguments.seek.claim.subject(), arguments, output, refused: Vec::new() }
    }

    /// Says what is known already to escape from supervision. `has_descendants` is whether what the
    /// command starts can be found.
    pub(crate) fn before_start(&self, command: &[&OsStr], has_descendants: bool) {
        let name = &self.subject.name;
        if cfg!(target_os = "linux") && !has_descendants {
            let text = "only the command's process group is supervised: /proc is missing, belongs to another PID \
                        namespace, or does not list children";
            self.tell(Level::Warning, "group_only", text);
        }
        let program = command.first().copied().unwrap_or_default();
        if let Some(user) = owner_of(program) {
            let program = program.to_string_lossy();
            let text = format!(
                "{program} is set-user-ID and runs as user {user}: quorlock may be unable to end it when {name} is \
                 lost. Have that user call quorlock instead (sudo quorlock run …)"
            );
            self.tell(Level::Warning, "set_user_id", &text);
        }
    }

    pub(crate) fn started(&self, id: u32) {
        self.tell(Level::Info, "started", &format!("the command runs as process {id}"));
    }

    pub(crate) fn passed_on(&self, signal: i32, refused: bool) {
        let signal = signals::name(signal);
        if refused {
            let text = format!("the system refused to pass {signal} on: the command runs as another user");
            self.tell(Level::Warning, "signal_refused", &text);
        } else {
            self.tell(Level::Debug, "signal", &format!("passed {signal} on to the command"));
        }
    }

    /// Descendants run as another user.
    pub(crate) fn refusing(&self, processes: &[Process]) {
        let name = &self.subject.name;
        if !processes.is_empty() {
            let (list, goes_on) = (list(processes), plural(processes, "it goes", "they go"));
            let text = format!(
                "{list} cannot be ended by quorlock, because {runs} as another user: if {name} is lost, {goes_on} on \
                 beside the next holder",
                runs = plural(processes, "it runs", "they run"),
            );
            self.tell_of(Level::Warning, "another_user", &text, processes);
        }
    }

    pub(crate) fn cause(&self, cause: Cause) {
        let name = &self.subject.name;
        let (event, text) = match cause {
            Cause::Lost => ("lost", format!("{name} was lost, so the command is ended")),
            Cause::RunsOut if self.arguments.no_renew => (
                "runs_out",
                format!("{name} is about to expire and is not renewed (--no-renew), so the command is ended"),
            ),
            Cause::RunsOut => (
                "runs_out",
                format!("{name} could not be renewed and is about to expire, so the command is ended"),
            ),
            Cause::MaxHold => (
                "max_hold",
                format!("{name} has been held for as long as --max-hold allows, so the command is ended"),
            ),
        };
        self.tell(Level::Error, event, &text);
    }

    /// The command, with the number `id`, and all that it started got SIGKILL, except for those in
    /// `refused`.
    pub(crate) fn killed(&self, id: u32, refused: &[Process]) {
        if !refused.iter().any(|process| process.has_number(id)) {
            self.tell(Level::Warning, "killed", "the command got SIGKILL, because the lock runs out");
        }
    }

    /// These refused SIGKILL. Each is named once.
    pub(crate) fn refused(&mut self, processes: &[Process]) {
        let is_new = |process: &&Process| !self.refused.contains(&process.to_string());
        let new: Vec<_> = processes.iter().filter(is_new).cloned().collect();
        if !new.is_empty() {
            self.refused.extend(new.iter().map(ToString::to_string));
            let name = &self.subject.name;
            let text = format!(
                "{list} could not be ended: the system refused SIGKILL, because {runs} as another user. {name} is not \
                 held any more, and another client may act at the same time",
                list = list(&new),
                runs = plural(&new, "it runs", "they run"),
            );
            self.tell_of(Level::Error, "not_ended", &text, &new);
        }
    }

    /// These got SIGKILL and live.
    pub(crate) fn not_ended(&self, processes: &[Process]) {
        let is_news = |process: &&Process| !self.refused.contains(&process.to_string());
        let living: Vec<_> = processes.iter().filter(is_news).cloned().collect();
        // All of them have refused it, and have been named.
        let are_all_known = living.is_empty() && !processes.is_empty();
        if !are_all_known {
            let text = format!(
                "{} got SIGKILL, but the system has not ended {} yet",
                list(&living),
                plural(&living, "it", "them")
            );
            self.tell_of(Level::Error, "not_ended", &text, &living);
        }
    }

    /// These go on after the command.
    pub(crate) fn left_behind(&self, processes: &[Process]) {
        let name = &self.subject.name;
        let text = format!(
            "the command has ended, but not what it started: {list} {goes} on while {name} is released \
             (--wait-for-children keeps it)",
            list = list(processes),
            goes = plural(processes, "goes", "go"),
        );
        self.tell_of(Level::Warning, "left_behind", &text, processes);
    }

    /// The lock is kept for these.
    pub(crate) fn waits_for(&self, processes: &[Process]) {
        let name = &self.subject.name;
        let text =
            format!("the command has ended, and {name} is kept for what it started: {}", list(processes));
        self.tell_of(Level::Warning, "waits_for_children", &text, processes);
    }

    pub(crate) fn ended(&self, ending: Ending) {
        let text = match ending {
            Ending::Exited(_) => format!("the command exited with code {}", ending.exit_code()),
            Ending::Signalled(signal) => format!("{} ended the command", signals::name(signal)),
        };
        self.tell(Level::Info, "ended", &text);
    }

    /// The result of the release. `is_lost` is whether the lock is known to be lost already: then
    /// the masters only confirm it.
    pub(crate) fn released(&self, released: Released, is_lost: bool) {
        let name = &self.subject.name;
        let fields = self.subject.fields([]);
        match released {
            Released::Ours => {
                self.output.record(Level::Info, "released", &format!("released {name}"), &fields);
            }
            Released::Kept(left) => {
                let text = format!("released {name}, and others are kept out for {} more", spoken(left));
                let fields = self.subject.fields([("kept_ms", milliseconds(left))]);
                self.output.record(Level::Info, "released", &text, &fields);
            }
            Released::NotOurs(text) if is_lost => self.output.record(Level::Info, "released", &text, &fields),
            Released::NotOurs(text) => self.output.record(Level::Error, "lost", &text, &fields),
            Released::Unknown(text) => {
                self.output.record(Level::Warning, "release_unconfirmed", &text, &fields);
            }
        }
    }

    fn tell(&self, level: Level, event: &str, text: &str) {
        self.output.record(level, event, text, &self.subject.fields([]));
    }

    /// The same about `processes`, which are a field of the event.
    fn tell_of(&self, level: Level, event: &str, text: &str, processes: &[Process]) {
        let processes: Vec<_> = processes.iter().map(ToString::to_string).collect();
        let fields = self.subject.fields([("processes", JsonValue::Texts(&processes))]);
        self.output.record(level, event, text, &fields);
    }
}

/// The processes as a sentence names them: `processes 12 (sleep), 13 (tee)`.
fn list(processes: &[Process]) -> String {
    if processes.is_empty() {
        return "processes that start others and end before they can be named".to_owned();
    }
    let named: Vec<_> = processes.iter().take(NAMED).map(ToString::to_string).collect();
    let more = processes.len().saturating_sub(NAMED);
    let word = plural(processes, "process", "processes");
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{word} {}{more}", named.join(", "))
}

/// The words for one process or for several.
fn plural<'a>(processes: &[Process], one: &'a str, several: &'a str) -> &'a str {
    if processes.len() == 1 { one } else { several }
}
