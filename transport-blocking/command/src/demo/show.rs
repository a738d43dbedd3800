//! The output of the demonstration: lines in a pipe, a changing picture in a terminal.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Stdout, Write};
use std::time::Duration;

use rustix::termios::tcgetwinsize;

use super::TTL;
use super::event::{Event, Tone, master_name, worker_name};
use super::masters::{State, View};
use super::stage::{Doing, Scene, Worker};
use crate::duration::spoken;

/// How many lines the frame has besides those of the last events.
const FIXED_LINES: usize = 15;
const MOST_EVENTS: usize = 8;
const LEAST_COLUMNS: usize = 60;
const BAR: usize = 20;

pub(super) enum Show {
    Lines(Stdout),
    Screen(Screen),
}

/// A terminal in which the same lines are rewritten repeatedly.
pub(super) struct Screen {
    out: Stdout,
    columns: usize,
    events: VecDeque<(Duration, Event)>,
    room: usize,
    /// How many lines are shown.
    drawn: usize,
    ink: Ink,
}

/// The capabilities of the terminal.
#[derive(Clone, Copy)]
struct Ink {
    is_coloured: bool,
    /// A full and an empty part of a bar.
    bar: [&'static str; 2],
}

impl Show {
    /// The capabilities of standard output.
    pub(super) fn open() -> Self {
        let out = io::stdout();
        let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let is_dumb = set("TERM").is_none_or(|term| term == "dumb");
        let size = tcgetwinsize(&out).ok().filter(|_| out.is_terminal() && !is_dumb);
        // A terminal that does not know its size says zero.
        let or = |number: u16, usual: usize| if number == 0 { usual } else { number.into() };
        let size = size.map(|size| (or(size.ws_col, 80), or(size.ws_row, 24)));
        match size {
            Some((columns, rows)) if columns >= LEAST_COLUMNS && rows > FIXED_LINES + 2 => {
                let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(set).unwrap_or_default();
                let is_unicode = locale.to_ascii_uppercase().replace('-', "").contains("UTF8");
                let bar = if is_unicode { ["█", "░"] } else { ["#", "-"] };
                let ink = Ink { is_coloured: set("NO_COLOR").is_none(), bar };
                let room = (rows - FIXED_LINES - 1).min(MOST_EVENTS);
                Self::Screen(Screen { out, columns, events: VecDeque::new(), room, drawn: 0, ink })
            }
            _ => Self::Lines(out),
        }
    }

    pub(super) fn events(&mut self, events: &[(Duration, Event)]) -> io::Result<()> {
        match self {
            Self::Lines(out) => {
                for (at, event) in events {
                    writeln!(out, "{}  {:<8}  {}", clock(*at), event.who(), event.words())?;
                }
                out.flush()
            }
            Self::Screen(screen) => {
                // The states of workers are shown above.
                let told = events.iter().filter(|(_, event)| event.tone() != Tone::Quiet);
                screen.events.extend(told.copied());
                let surplus = screen.events.len().saturating_sub(screen.room);
                screen.events.drain(..surplus);
                Ok(())
            }
        }
    }

    /// Shows the state of everything.
    pub(super) fn frame(&mut self, now: Duration, scene: &Scene, masters: &[View]) -> io::Result<()> {
        match self {
            Self::Lines(_) => Ok(()),
            Self::Screen(screen) => screen.frame(now, scene, masters),
        }
    }

    /// Prints a text below everything else.
    pub(super) fn say(&mut self, text: &str) -> io::Result<()> {
        let (Self::Lines(out) | Self::Screen(Screen { out, .. })) = self;
        out.write_all(text.as_bytes())?;
        out.flush()
    }

    /// Restores the terminal, and leaves the last frame on it. May be called at any time, and
    /// repeatedly.
    pub(super) fn rest(&mut self) {
        if let Self::Screen(screen) = self {
            if std::mem::take(&mut screen.drawn) > 0 {
                // If the terminal is gone, its cursor does not matter.
                let _ = screen.out.write_all(b"\x1b[?25h").and_then(|()| screen.out.flush());
            }
        }
    }
}

impl Drop for Show {
    fn drop(&mut self) {
        self.rest();
    }
}

impl Screen {
    fn frame(&mut self, now: Duration, scene: &Scene, masters: &[View]) -> io::Result<()> {
        let mut lines = vec![
            self.line()
                .dim(&format!("{}  ", clock(now)))
                .bold("one lock, five masters, four workers, one store"),
        ];
        lines.push(self.line());
        for (number, worker) in scene.workers.iter().enumerate() {
            lines.push(self.worker(now, number, worker));
        }
        lines.push(self.line());
        for (number, master) in masters.iter().enumerate() {
            lines.push(self.master(number, *master));
        }
        lines.push(self.line());
        let largest = scene.store.largest.map_or(0, |largest| scene.number_of(largest));
        let mut store = self
            .line()
            .bold("  store     ")
            .plain(&format!("holds {}, has seen #{largest}", scene.store.value));
        if scene.store.refused > 0 {
            store = store.paint(RED, &format!(", refused {} late", scene.store.refused));
        }
        lines.extend([store, self.line()]);
        for place in 0..self.room {
            let line = self.line();
            lines.push(match self.events.get(place) {
                None => line,
                Some((at, event)) => {
                    let text = format!("{:<8}  {}", event.who(), event.words());
                    let line = line.dim(&format!("{}  ", clock(*at)));
                    match event.tone() {
                        Tone::Alarm => line.paint(RED, &text),
                        Tone::Fault => line.paint(YELLOW, &text),
                        Tone::Plain | Tone::Quiet => line.plain(&text),
                    }
                }
            });
        }
        let mut text = String::new();
        if self.drawn == 0 {
            text.push_str("\x1b[?25l");
        } else {
            // Writing to a String cannot fail, here and below.
            let _ = write!(text, "\x1b[{}A\r", self.drawn);
        }
        for line in &lines {
            let _ = writeln!(text, "{}\x1b[K", line.text);
        }
        self.drawn = lines.len();
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }

    fn line(&self) -> Line {
        Line { text: String::new(), room: self.columns - 1, is_coloured: self.ink.is_coloured }
    }

    fn worker(&self, now: Duration, number: usize, worker: &Worker) -> Line {
        let line = self.line().paint(colour(number), &format!("  {}  ", worker_name(number)));
        let since = spoken(now.saturating_sub(worker.since));
        match worker.doing {
            Doing::Rests => line.dim("does something else"),
            Doing::Waits => line.plain(&format!("waits for the lock, {since}")),
            Doing::Holds => {
                let line = line.bold(&format!("{:<13} ", format!("HOLDS #{}", worker.number)));
                self.validity(line, number, worker.left())
            }
            Doing::Pauses if worker.left().is_zero() => {
                let text = format!("PAUSES for {since}; its lock #{} has run out", worker.number);
                line.paint(RED, &text)
            }
            Doing::Pauses => {
                let line = line.paint(YELLOW, &format!("{:<13} ", format!("PAUSES #{}", worker.number)));
                self.validity(line, number, worker.left())
            }
        }
    }

    fn validity(&self, line: Line, number: usize, left: Duration) -> Line {
        let share = left.as_secs_f64() / TTL.as_secs_f64();
        let full = (0..BAR).filter(|part| share * 20.0 > f64::from(u8::try_from(*part).unwrap_or(0))).count();
        let [one, none] = self.ink.bar;
        line.paint(colour(number), &one.repeat(full)).dim(&none.repeat(BAR - full)).plain(&format!(
            "  {}.{} s left",
            left.as_secs(),
            left.subsec_millis() / 100
        ))
    }

    fn master(&self, number: usize, master: View) -> Line {
        let line = self.line().plain(&format!("  {}  ", master_name(number)));
        let line = match master.state {
            State::Up => line.paint(GREEN, &format!("{:<20}", "votes")),
            State::Hangs => line.paint(RED, &format!("{:<20}", "HANGS")),
            State::Dead => line.paint(RED, &format!("{:<20}", "DEAD")),
            State::Quarantined(left) => {
                let text = format!("quarantined {}.{} s", left.as_secs(), left.subsec_millis() / 100);
                line.paint(YELLOW, &format!("{text:<20}"))
            }
        };
        match master.key_of {
            Some(worker) => line.paint(colour(worker), &format!("has the key of {}", worker_name(worker))),
            None => line,
        }
    }
}

const RED: u8 = 31;
const GREEN: u8 = 32;
const YELLOW: u8 = 33;

/// The colour of a worker.
fn colour(worker: usize) -> u8 {
    [36, 35, 34, 92].get(worker % 4).copied().unwrap_or(36)
}

/// A line that ends where the terminal does: a longer one would wrap, and not be overwritten.
struct Line {
    text: String,
    room: usize,
    is_coloured: bool,
}

impl Line {
    fn plain(mut self, text: &str) -> Self {
        let fitting: String = text.chars().take(self.room).collect();
        self.room -= fitting.chars().count();
        self.text.push_str(&fitting);
        self
    }

    fn paint(mut self, code: u8, text: &str) -> Self {
        if !self.is_coloured {
            return self.plain(text);
        }
        let _ = write!(self.text, "\x1b[{code}m");
        self = self.plain(text);
        self.text.push_str("\x1b[0m");
        self
    }

    fn bold(self, text: &str) -> Self {
        self.paint(1, text)
    }

    fn dim(self, text: &str) -> Self {
        self.paint(2, text)
    }
}

/// A time since the start.
fn clock(at: Duration) -> String {
    format!("{:>3}.{:03} s", at.as_secs(), at.subsec_millis())
}
