//! The messages of `quorlock`. They go to standard error only, because standard output belongs to
//! the command that it runs. No message is waited for: see [`printer`].

use std::io::{self, ErrorKind, IsTerminal, Write};
use std::os::fd::AsFd;

use rustix::fs::{OFlags, Stat, fcntl_getfl, fstat, stat};
use rustix::termios::{tcgetpgrp, tcgetwinsize};
use serde::{Serialize, Serializer};

use crate::ending::UNWRITTEN;
use crate::json;
use crate::printer::{self, Line};
use crate::terminal::own_group;

/// How much is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verbosity {
    /// Errors only.
    Quiet,
    /// What the user should know, and with each `-v` more.
    Normal(u8),
}

/// How much a message matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Level {
    /// What made `quorlock` fail. Always printed.
    Error,
    /// What the user should look at, although the command runs.
    Warning,
    /// What happened, for a reader of the log: printed with `-v`, and always as JSON.
    Info,
    /// The details: printed with `-vv`.
    Debug,
}

/// A value of a field in a JSON record.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(untagged)]
pub(crate) enum JsonValue<'a> {
    /// A string.
    Text(&'a str),
    /// Several strings.
    Texts(&'a [String]),
    /// A whole number.
    Number(u64),
    /// A boolean.
    Flag(bool),
}

/// A JSON record: `event`, `level`, `text`, and the fields of this kind of event.
#[derive(Serialize)]
struct Record<'a> {
    event: &'a str,
    level: Level,
    text: &'a str,
    #[serde(flatten, serialize_with = "as_map")]
    fields: &'a [(&'a str, JsonValue<'a>)],
}

fn as_map<S: Serializer>(fields: &[(&str, JsonValue<'_>)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(fields.iter().copied())
}

/// Standard error, and how much to print there.
#[derive(Debug)]
pub(crate) struct Output {
    verbosity: Verbosity,
    json: bool,
    /// Whether a progress line may be shown: on a terminal that understands it, unless JSON is
    /// requested.
    progress: bool,
}

impl Output {
    /// Returns the output that the options describe.
    pub(crate) fn new(verbosity: Verbosity, json: bool) -> Self {
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let progress = verbosity != Verbosity::Quiet && !json && !dumb && io::stderr().is_terminal();
        Self { verbosity, json, progress }
    }

    /// Whether [`Output::progress`] shows anything, so that a caller need not wake up for it
    /// otherwise.
    pub(crate) fn shows_progress(&self) -> bool {
        self.progress
    }

    /// Prints `text`; as JSON, an event named `message`.
    pub(crate) fn message(&self, level: Level, text: &str) {
        self.record(level, "message", text, &[]);
    }

    /// Prints an event: `text` for people; as JSON one object in one line, with `event`, `level`,
    /// `text` and `fields`.
    pub(crate) fn record(&self, level: Level, event: &str, text: &str, fields: &[(&str, JsonValue<'_>)]) {
        if !self.says(level) {
            return;
        }
        let (text, missing): (_, fn(u64) -> String) = if self.json {
            (json::line(&Record { event, level, text, fields }), missing_as_json)
        } else {
            (plain_line(text), |number| plain_line(&missing_text(number)))
        };
        printer::say(Line { text, missing });
    }

    /// Shows `text` as a line that the next one replaces; not in a pipe, nor from the background,
    /// where it would be written over what others show.
    pub(crate) fn progress(&self, text: &str) {
        let stderr = io::stderr();
        if !self.progress || !tcgetpgrp(&stderr).is_ok_and(|foreground| Some(foreground) == own_group()) {
            return;
        }
        // A terminal that does not know its size reports zero.
        let columns = tcgetwinsize(&stderr).map_or(0, |size| usize::from(size.ws_col));
        let columns = if columns == 0 { 80 } else { columns };
        // A line as wide as the terminal would wrap, and then only its end would be replaced.
        let fitting: String = plain_line(text).trim_end().chars().take(columns.saturating_sub(1)).collect();
        printer::show(fitting);
    }

    /// Removes the progress line.
    pub(crate) fn clear_progress(&self) {
        if self.progress {
            printer::hide();
        }
    }

    fn says(&self, level: Level) -> bool {
        match (level, self.verbosity) {
            (Level::Error, _) => true,
            (_, Verbosity::Quiet) => false,
            (Level::Warning, _) => true,
            (Level::Info, Verbosity::Normal(more)) => self.json || more >= 1,
            (Level::Debug, Verbosity::Normal(more)) => more >= 2,
        }
    }
}

fn missing_text(number: u64) -> String {
    format!("{number} messages are missing here, because standard error was not read for a while")
}

fn missing_as_json(number: u64) -> String {
    let fields = [("missing", JsonValue::Number(number))];
    let (event, level, text) = ("messages_missing", Level::Warning, &missing_text(number));
    json::line(&Record { event, level, text, fields: &fields })
}

/// Prints the result `text` of a subcommand on standard output, and returns the exit code. A reader
/// that does not read it to the end changes nothing.
///
/// This waits until the result is read. A subcommand with a result holds no lock, is connected to
/// no master by then, and is ended by signals as any program is.
pub(crate) fn print(text: &str, code: u8) -> u8 {
    // Warnings come first.
    printer::finish();
    match io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            let sentence = format!("standard output cannot be written: {error}");
            Output::new(Verbosity::Normal(0), false).message(Level::Error, &sentence);
            UNWRITTEN
        }
        _ => code,
    }
}

/// Standard output as it is, without a buffer. Unlike that of the standard library, it fails if it
/// was closed when the process was started.
#[derive(Debug)]
pub(crate) struct Stdout;

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let stdout = io::stdout();
        if was_closed(&stdout)? {
            return Err(io::Error::other("it is closed, or is /dev/null opened for reading and writing"));
        }
        Ok(rustix::io::write(stdout, bytes)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Whether a standard stream was probably closed when the process was started. The standard library
/// has then opened `/dev/null` in its place, for reading and writing. What is written there is lost
/// in any case; a shell's `>/dev/null`, for writing only, means that it is to be.
fn was_closed(stream: impl AsFd) -> rustix::io::Result<bool> {
    let is_both = fcntl_getfl(&stream)? & OFlags::RWMODE == OFlags::RDWR;
    let device = |file: Stat| (file.st_mode, file.st_rdev);
    Ok(is_both
        && stat("/dev/null").is_ok_and(|null| fstat(&stream).is_ok_and(|file| device(null) == device(file))))
}

/// The line for people.
fn plain_line(text: &str) -> String {
    format!("quorlock: {}\n", without_control(text))
}

/// Control characters, which a key or a server's text may contain, must not reach a terminal.
pub(crate) fn without_control(text: &str) -> String {
    let mut plain = String::new();
    for character in text.chars() {
        if character.is_control() {
            plain.extend(character.escape_default());
        } else {
            plain.push(character);
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_one_object_with_its_fields_after_the_common_ones() {
        let fields = [("for_ms", JsonValue::Number(7)), ("key", JsonValue::Text("\0"))];
        assert_eq!(
            json::line(&Record { event: "lost", level: Level::Error, text: "a \"b\"", fields: &fields }),
            "{\"event\":\"lost\",\"level\":\"error\",\"text\":\"a \\\"b\\\"\",\"for_ms\":7,\"key\":\"\\u0000\"}\n"
        );
    }

    #[test]
    fn a_line_for_people_moves_no_cursor() {
        assert_eq!(plain_line("a\x1b[2J\nb é"), "quorlock: a\\u{1b}[2J\\nb é\n");
    }

    #[test]
    fn verbosity_decides_which_levels_are_printed() {
        let says = |verbosity, json| {
            let output = Output::new(verbosity, json);
            [Level::Error, Level::Warning, Level::Info, Level::Debug].map(|level| output.says(level))
        };
        assert_eq!(says(Verbosity::Quiet, false), [true, false, false, false]);
        assert_eq!(says(Verbosity::Quiet, true), [true, false, false, false]);
        assert_eq!(says(Verbosity::Normal(0), false), [true, true, false, false]);
        assert_eq!(says(Verbosity::Normal(0), true), [true, true, true, false]);
        assert_eq!(says(Verbosity::Normal(1), false), [true, true, true, false]);
        assert_eq!(says(Verbosity::Normal(2), false), [true, true, true, true]);
    }
}
