//! One command on its way through the server: the checks before it runs, in their order.

use super::command::Command;
use super::keyspace::Millis;
use super::reply::{Failure, OUT_OF_MEMORY, Reply, SYNTAX};
use super::session::Session;
use super::table::{self, DENY_OOM, LOADING, NO_AUTH, READ, READ_FIRST, Spec, WRITE};
use super::{Flow, Master};

/// Whether the server accepts writes.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, Debug)]
pub(super) enum Role {
    #[default]
    Master,
    Replica,
}

/// A command with all that its function needs.
pub(super) struct Call<'a> {
    pub(super) master: &'a mut Master,
    pub(super) session: &'a mut Session,
    pub(super) command: &'a Command,
    pub(super) now: Millis,
    pub(super) reply: Reply<'a>,
}

impl<'a> Call<'a> {
    pub(super) fn run(mut self) -> Flow {
        // Redis 7.0 checks for this command first, with any arguments.
        if self.command.name().eq_ignore_ascii_case(b"QUIT") {
            self.reply.ok();
            return Flow::Close;
        }
        if table::is_http(self.command.name()) {
            return Flow::Close;
        }
        if self.master.conditions.dialect.hangs_up() && self.known().is_err() {
            return Flow::Close;
        }
        let outcome = match self.injected() {
            Some(failure) => Err(failure),
            None => self.admitted().and_then(|spec| self.carry_out(spec)),
        };
        if let Err(failure) = outcome {
            self.reply.error(&failure);
        }
        Flow::Open
    }

    fn carry_out(&mut self, spec: &Spec) -> Result<(), Failure> {
        let outcome = (spec.run)(self);
        // The key counts as read even if it does not exist or is not a string.
        let keys = self.arguments_from(1);
        let read = if spec.has(READ) { keys.len() } else { usize::from(spec.has(READ_FIRST)) };
        for key in keys.iter().take(read) {
            self.master.keyspace.has_read(self.session.id, key);
        }
        outcome
    }

    /// Looks up a key, as every command does with its keys: an expired key is deleted.
    pub(super) fn come_by(&mut self, key: &[u8]) {
        if self.master.removes_ended() {
            self.master.keyspace.remove_ended(self.session.database, key, self.now);
        }
    }

    pub(super) fn count(&self) -> usize {
        self.command.arguments().len()
    }

    /// Returns an argument that the command's arity guarantees.
    pub(super) fn argument(&self, place: usize) -> &'a [u8] {
        self.command.argument(place).unwrap_or_default()
    }

    /// The arguments from this index on.
    pub(super) fn arguments_from(&self, place: usize) -> &'a [Vec<u8>] {
        self.command.arguments().get(place..).unwrap_or_default()
    }

    /// Accepts nothing but one of two words here, which have no effect in the model.
    pub(super) fn accept_last_word(&self, place: usize, words: [&str; 2]) -> Result<(), Failure> {
        match self.arguments_from(place) {
            [] => Ok(()),
            [word] if words.iter().any(|known| word.eq_ignore_ascii_case(known.as_bytes())) => Ok(()),
            _ => Err(SYNTAX),
        }
    }

    /// The error that a test has set for this command.
    fn injected(&self) -> Option<Failure> {
        let failures = &self.master.conditions.failures;
        if failures.is_empty() {
            return None;
        }
        let by_name = || failures.get(std::str::from_utf8(&self.command.name().to_ascii_uppercase()).ok()?);
        let by_script = || {
            let script = self.command.script()?;
            let is_text = self.command.name().len() == "EVAL".len();
            let is_known = is_text || self.master.scripts.contains_key(script.sha1_hex);
            is_known.then(|| failures.get(self.command.kind().name()))?
        };
        by_name().or_else(by_script).map(|text| Failure::raw(text.clone().into_bytes()))
    }

    /// Makes the checks in the order of Redis's `processCommand`.
    fn admitted(&self) -> Result<&'static Spec, Failure> {
        let spec = self.known()?;
        if !spec.takes(self.count()) {
            return Err(spec.wrong_arity());
        }
        let conditions = &self.master.conditions;
        if self.session.is_limited && !spec.has(NO_AUTH) {
            return Err(Failure::new("NOAUTH Authentication required."));
        }
        self.served(spec)?;
        if spec.has(DENY_OOM) {
            self.master.has_memory()?;
        }
        if spec.has(WRITE) {
            self.master.takes_writes()?;
        }
        if conditions.loading && !spec.has(LOADING) {
            return Err(Failure::new("LOADING Redis is loading the dataset in memory"));
        }
        Ok(spec)
    }

    fn known(&self) -> Result<&'static Spec, Failure> {
        let name = self.command.name();
        let conditions = &self.master.conditions;
        let is_there = |spec: &&Spec| conditions.dialect.knows(spec.name);
        let spec = table::find(table::COMMANDS, name)
            .filter(|spec| is_there(spec) && (spec.name != "hello" || !conditions.lacks_hello));
        let Some(spec) = spec else { return Err(self.unknown()) };
        let Some(subcommand) = self.command.argument(1).filter(|_| !spec.subcommands.is_empty()) else {
            return Ok(spec);
        };
        table::find_subcommand(spec, subcommand).filter(is_there).ok_or_else(|| {
            Failure::of(&[
                b"ERR unknown subcommand '",
                shortened(subcommand, ECHOED_BYTES),
                b"'. Try ",
                &name.to_ascii_uppercase(),
                b" HELP.",
            ])
        })
    }

    /// Redis echoes the first arguments, passwords too: it cannot recognize them in a command that
    /// it does not know.
    fn unknown(&self) -> Failure {
        let mut echoed = Vec::new();
        for argument in self.arguments_from(1) {
            if echoed.len() >= ECHOED_BYTES {
                break;
            }
            let room = ECHOED_BYTES - echoed.len();
            let argument = argument.split(|byte| *byte == 0).next().unwrap_or_default();
            echoed.extend([b"'", shortened(argument, room), b"' "].concat());
        }
        let name = shortened(self.command.name(), ECHOED_BYTES);
        Failure::of(&[b"ERR unknown command '", name, b"', with args beginning with: ", &echoed])
    }
}

impl Master {
    pub(super) fn has_memory(&self) -> Result<(), Failure> {
        if self.is_out_of_memory() { Err(OUT_OF_MEMORY) } else { Ok(()) }
    }

    pub(super) fn takes_writes(&self) -> Result<(), Failure> {
        match self.conditions.role {
            Role::Master => Ok(()),
            Role::Replica => Err(Failure::new("READONLY You can't write against a read only replica.")),
        }
    }
}

fn shortened(bytes: &[u8], length: usize) -> &[u8] {
    bytes.get(..length).unwrap_or(bytes)
}

/// How much of an unknown command a server repeats in its error.
const ECHOED_BYTES: usize = 128;
