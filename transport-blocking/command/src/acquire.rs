//! `quorlock acquire`: take the lock, print its token, and leave it held.

use std::io::{self, Write};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Instant;

use crate::arguments::{AcquireArguments, Environment};
use crate::child::Ending;
use crate::ending::{Finish, LOST, UNWRITTEN};
use crate::output::{Level, Output};
use crate::signals::{self, Happening, Notifier, Signals};
use crate::terminal::Terminal;
use crate::waiting::{Changed, Hold, Lock, NAP, Released, wait_for};

/// Acquires `lock`, writes the lines that a shell evaluates, and leaves the lock held.
pub(crate) fn acquire<L: Lock>(
    arguments: &AcquireArguments,
    lock: L,
    signals: &Signals<Changed>,
    terminal: &Terminal,
    output: &Output,
    to: impl Write + Send + 'static,
) -> Finish {
    let claim = &arguments.seek.claim;
    let mut hold = match wait_for(&arguments.seek, lock, signals, terminal, output) {
        Ok(hold) => hold,
        Err(finish) => return finish,
    };
    let subject = claim.subject();
    let (name, fields) = (&subject.name, subject.fields([]));
    let lines = exports(claim.as_bytes(), &Environment::of_lock(claim, &hold, hold.proof()));
    let written = write(lines, to, signals.notifier());
    let unheld = match until_written(&written, &mut hold, signals) {
        Written::Yes => None,
        Written::No(error) => {
            let text = format!("{name} is released, because standard output cannot be written: {error}");
            output.record(Level::Error, "unwritten", &text, &fields);
            Some(Finish::Code(UNWRITTEN))
        }
        Written::Interrupted(signal) => {
            let text = format!("{name} is released: {} before its lines were read", signals::name(signal));
            output.record(Level::Info, "interrupted", &text, &fields);
            Some(Finish::Code(Ending::Signalled(signal).exit_code()))
        }
        Written::TooLate => {
            output.record(
                Level::Error,
                "lost",
                &format!("{name} was lost before its lines were read"),
                &fields,
            );
            Some(Finish::Code(LOST))
        }
    };
    if let Some(finish) = unheld {
        if let Released::Unknown(text) = hold.release(None) {
            output.record(Level::Warning, "release_unconfirmed", &text, &fields);
        }
        return finish;
    }
    match hold.hand_over() {
        Ok(()) => Finish::Code(0),
        Err(cause) => {
            output.record(Level::Error, "lost", &format!("{name} was lost at once: {cause}"), &fields);
            Finish::Code(LOST)
        }
    }
}

/// What happened to the lines.
enum Written {
    Yes,
    No(io::Error),
    /// This signal asked to end while nobody read them.
    Interrupted(i32),
    /// The lock is not held any more, and nobody has read them.
    TooLate,
}

/// Writes `lines` on a thread of its own: nobody may read standard output, and signals and the end
/// of the lock must be seen meanwhile.
fn write(
    lines: String,
    mut to: impl Write + Send + 'static,
    notifier: Notifier<Changed>,
) -> Receiver<io::Result<()>> {
    let (tell, told) = mpsc::sync_channel(1);
    let writer = thread::Builder::new().name("writer".to_owned());
    // If the system has no thread left, the closure with the sender is dropped.
    let _ = writer.spawn(move || {
        let _ = tell.send(to.write_all(lines.as_bytes()).and_then(|()| to.flush()));
        notifier.send(Changed);
    });
    told
}

/// Waits until the lines are written, while the lock is held and no signal asks to end.
fn until_written(
    written: &Receiver<io::Result<()>>,
    hold: &mut impl Hold,
    signals: &Signals<Changed>,
) -> Written {
    loop {
        match written.try_recv() {
            Ok(Ok(())) => return Written::Yes,
            Ok(Err(error)) => return Written::No(error),
            Err(mpsc::TryRecvError::Disconnected) => {
                return Written::No(io::Error::other("no thread can be started"));
            }
            Err(mpsc::TryRecvError::Empty) => {}
        }
        let standing = hold.standing();
        if standing.lost || standing.remaining.is_zero() {
            return Written::TooLate;
        }
        match signals.next(Some(Instant::now() + standing.remaining.min(NAP))) {
            Some(Happening::Signal(signal)) if signals::asks_to_end(signal) => {
                return Written::Interrupted(signal);
            }
            _ => {}
        }
    }
}

/// Each line ends with a semicolon, so that `eval $(…)` without quotes works too. A variable
/// without a value is unset.
fn exports(resource: &[u8], variables: &[(String, Option<String>)]) -> String {
    let mut lines = String::new();
    let mut line = |name: &str, value: Option<&str>| {
        let line =
            value.map_or_else(|| format!("unset {name};\n"), |value| format!("export {name}={value};\n"));
        lines.push_str(&line);
    };
    line(Environment::RESOURCE, quoted(resource).as_deref());
    for (name, value) in variables {
        line(name, value.as_deref());
    }
    lines
}

/// Quotes `name` for a shell. Returns nothing if the name could confuse the shell or the terminal:
/// control characters, and bytes that are not text.
fn quoted(name: &[u8]) -> Option<String> {
    let name = std::str::from_utf8(name).ok().filter(|name| !name.contains(char::is_control))?;
    Some(format!("'{}'", name.replace('\'', "'\\''")))
}

#[cfg(test)]
#[path = "acquire_tests.rs"]
mod tests;
