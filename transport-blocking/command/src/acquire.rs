//! `quorlock acquire`: take the lock, print its token, and leave it held.

use std::io::Write;

use crate::arguments::{AcquireArguments, Environment};
use crate::ending::{Finish, LOST, UNWRITTEN};
use crate::output::{Level, Output};
use crate::signals::Signals;
use crate::terminal::Terminal;
use crate::waiting::{Changed, Hold, Lock, Released, wait_for};

/// Acquires `lock`, writes the lines that a shell evaluates, and leaves the lock held.
pub(crate) fn acquire<L: Lock>(
    arguments: &AcquireArguments,
    lock: L,
    signals: &Signals<Changed>,
    terminal: &Terminal,
    output: &Output,
    to: &mut impl Write,
) -> Finish {
    let claim = &arguments.seek.claim;
    let hold = match wait_for(&arguments.seek, lock, signals, terminal, output) {
        Ok(hold) => hold,
        Err(finish) => return finish,
    };
    let subject = claim.subject();
    let (name, fields) = (&subject.name, subject.fields([]));
    let lines = exports(claim.as_bytes(), &Environment::of_lock(claim, &hold, hold.proof()));
    if let Err(error) = to.write_all(lines.as_bytes()).and_then(|()| to.flush()) {
        let text = format!("{name} is released, because standard output cannot be written: {error}");
        output.record(Level::Error, "unwritten", &text, &fields);
        if let Released::Unknown(text) = hold.release(None) {
            output.record(Level::Warning, "release_unconfirmed", &text, &fields);
        }
        return Finish::Code(UNWRITTEN);
    }
    match hold.hand_over() {
        Ok(()) => Finish::Code(0),
        Err(cause) => {
            output.record(Level::Error, "lost", &format!("{name} was lost at once: {cause}"), &fields);
            Finish::Code(LOST)
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
