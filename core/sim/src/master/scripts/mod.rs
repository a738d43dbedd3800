//! EVAL, EVALSHA and SCRIPT, and the effects of the lock's scripts.
//!
//! While a script runs, the server's clock stops for its view of keys; TIME and the expiries that
//! it sets see the clock advance.

mod claim;
mod fence;
mod fleet;
mod inspect;
mod keep;
mod many;
mod plain;
mod queue;
mod replicas;
mod seat;
mod store;

use quorlock_core::internals::Script;

use fleet::Standing;
pub(super) use fleet::before_look;
pub(super) use replicas::behind_check;

use super::call::Call;
use super::command::{CommandKind, script_by_sha1, script_by_text};
use super::expiry::{Unit, end_from_now, end_of_set};
use super::keyspace::{Entry, Millis, Value};
use super::number::{integer, lua_integer, lua_number};
use super::reply::{Failure, NOT_AN_INTEGER};

pub(super) fn eval(call: &mut Call<'_>) -> Result<(), Failure> {
    let keys = key_count(call)?;
    let script = script_by_text(call.argument(1)).ok_or(UNKNOWN_SCRIPT)?;
    call.master.scripts.insert(script.sha1_hex, script.text);
    run(call, script, keys)
}

pub(super) fn evalsha(call: &mut Call<'_>) -> Result<(), Failure> {
    let missing = || Failure::new("NOSCRIPT No matching script. Please use EVAL.");
    if call.argument(1).len() != SHA1_DIGITS {
        return Err(missing());
    }
    let keys = key_count(call)?;
    let script = script_by_sha1(call.argument(1)).ok_or_else(missing)?;
    if !call.master.scripts.contains_key(script.sha1_hex) {
        return Err(missing());
    }
    run(call, script, keys)
}

pub(super) fn load(call: &mut Call<'_>) -> Result<(), Failure> {
    let script = script_by_text(call.argument(2)).ok_or(UNKNOWN_SCRIPT)?;
    call.master.scripts.insert(script.sha1_hex, script.text);
    call.reply.bulk(script.sha1_hex.as_bytes());
    Ok(())
}

pub(super) fn exists(call: &mut Call<'_>) -> Result<(), Failure> {
    let asked = call.arguments_from(2);
    call.reply.array(asked.len());
    for sha1 in asked {
        let is_there =
            script_by_sha1(sha1).is_some_and(|script| call.master.scripts.contains_key(script.sha1_hex));
        call.reply.integer(is_there.into());
    }
    Ok(())
}

pub(super) fn flush(call: &mut Call<'_>) -> Result<(), Failure> {
    call.accept_last_word(2, ["ASYNC", "SYNC"])
        .map_err(|_| Failure::new("ERR SCRIPT FLUSH only support SYNC|ASYNC option"))?;
    call.master.flush_scripts();
    call.reply.ok();
    Ok(())
}

fn key_count(call: &Call<'_>) -> Result<usize, Failure> {
    let keys = integer(call.argument(2)).ok_or(NOT_AN_INTEGER)?;
    if keys > i64::try_from(call.count() - 3).unwrap_or(i64::MAX) {
        return Err(Failure::new("ERR Number of keys can't be greater than number of args"));
    }
    usize::try_from(keys).map_err(|_| Failure::new("ERR Number of keys can't be negative"))
}

fn run(call: &mut Call<'_>, script: &'static Script, keys: usize) -> Result<(), Failure> {
    let arguments = call.arguments_from(3);
    let (keys, values) = arguments.split_at_checked(keys).unwrap_or_default();
    if let Some(clock) = &mut call.master.conditions.script_clock {
        clock.readings = 0;
    }
    let mut body = Body { call, script, keys, values, has_written: false };
    let Some(plain) = behind_check(script) else { return body.run_inner(script, false) };
    let gives_no_vote = ["open", "raise"].into_iter().any(|word| plain.name.starts_with(word));
    let is_early = body.call.master.conditions.early_quarantine && !gives_no_vote;
    if is_early && before_look(plain).is_none() && matches!(body.check_marker()?, Standing::Answered) {
        return Ok(());
    }
    // A release that keeps its key does so before the check.
    let keeps = plain.name.starts_with("keep");
    if keeps || body.check_replicas()? { body.run_and_write(plain, keeps) } else { Ok(()) }
}

/// A script while it runs. Its methods follow the scripts' texts, statement by statement, including
/// Lua's treatment of missing arguments.
///
/// If the script returns an error table of `redis.pcall`, the reply is that error. An error that
/// ends the script is an error reply too, with the place in the script.
struct Body<'a, 'b> {
    call: &'a mut Call<'b>,
    script: &'static Script,
    keys: &'b [Vec<u8>],
    values: &'b [Vec<u8>],
    /// Memory is checked only before the first write: Redis does not stop a script halfway.
    has_written: bool,
}

/// A key or a value of a command inside the script. If the caller did not give it, the command
/// fails before it is executed.
type Given<'b> = Option<&'b [u8]>;

impl<'b> Body<'_, 'b> {
    /// A script without the check of the replicas before it.
    fn run_inner(&mut self, script: &Script, checks_replicas: bool) -> Result<(), Failure> {
        if before_look(script).is_some() { self.run_and_look(checks_replicas) } else { self.run() }
    }

    /// The innermost script, which others may contain or which is used alone.
    fn run(&mut self) -> Result<(), Failure> {
        match self.call.command.kind() {
            CommandKind::Release => self.release(),
            CommandKind::Extend => self.extend(),
            CommandKind::Undo => self.undo(),
            CommandKind::AcquireFenced => self.acquire_fenced(),
            CommandKind::Raise => self.raise(),
            CommandKind::ExtendFenced => self.extend_fenced(),
            CommandKind::HealFenced => self.heal_fenced(),
            CommandKind::AcquireGuarded => self.acquire_guarded(),
            CommandKind::AcquireFencedGuarded => self.acquire_fenced_guarded(),
            CommandKind::Attend => self.attend(),
            CommandKind::Open => self.open(),
            CommandKind::AcquireReading => self.acquire_reading(),
            CommandKind::AcquireAll => self.acquire_all(),
            CommandKind::RaiseAll => self.raise_all(),
            CommandKind::ExtendAll => self.extend_all(),
            CommandKind::HealAll => self.heal_all(),
            CommandKind::ReleaseAll => self.release_all(),
            CommandKind::KeepAll => self.keep_all(),
            CommandKind::Take => self.take(),
            CommandKind::Keep => self.keep(),
            CommandKind::Inspect => self.inspect(),
            CommandKind::ForceRelease => self.force_release(),
            CommandKind::ReleaseAny => self.release_any(),
            CommandKind::Enter => self.enter_queue(),
            CommandKind::Leave => self.leave_queue(),
            CommandKind::KeepLeaving => self.keep_leaving(),
            CommandKind::Heal => self.heal(),
            _ => Err(UNKNOWN_SCRIPT),
        }
    }

    /// `KEYS[number]`
    fn key(&self, number: usize) -> Given<'b> {
        self.keys.get(number.checked_sub(1)?).map(Vec::as_slice)
    }

    /// `ARGV[number]`
    fn value(&self, number: usize) -> Given<'b> {
        self.values.get(number.checked_sub(1)?).map(Vec::as_slice)
    }

    /// `GET`: `None` is Lua's `false`.
    fn get(&mut self, key: Given<'b>) -> Result<Option<Vec<u8>>, Failure> {
        let key = key.ok_or(NO_ARGUMENT)?;
        self.read(&[key]);
        let held = self.call.master.keyspace.text(self.call.session.database, key, self.call.now)?;
        Ok(held.map(<[u8]>::to_vec))
    }

    /// Every reading command inside a script calls this.
    fn read(&mut self, keys: &[&[u8]]) {
        keys.iter().for_each(|key| self.call.come_by(key));
        let (master, session) = (&mut *self.call.master, self.call.session.id);
        if master.conditions.tracks_scripts {
            keys.iter().for_each(|key| master.keyspace.has_read(session, key));
        } else {
            self.keys.iter().for_each(|key| master.keyspace.has_read(session, key));
        }
    }

    /// `GET KEYS[1]`, compared with `ARGV[1]`.
    fn holder(&mut self) -> Result<Holder, Failure> {
        Ok(match self.get(self.key(1))? {
            None => Holder::Nobody,
            Some(held) if self.value(1) == Some(&held) => Holder::We,
            Some(held) => Holder::Another(held),
        })
    }

    /// `SET key value`
    fn set(&mut self, key: Given<'b>, value: Given<'_>) -> Result<(), Failure> {
        let (Some(key), Some(value)) = (key, value) else { return Err(NO_ARGUMENT) };
        self.may_write()?;
        self.put(key, value, None);
        Ok(())
    }

    /// `SET KEYS[1] ARGV[1] PX ARGV[2]`
    fn set_lock(&mut self) -> Result<(), Failure> {
        let (Some(key), Some(token), Some(life)) = (self.key(1), self.value(1), self.value(2)) else {
            return Err(NO_ARGUMENT);
        };
        self.set_with_end(key, token, life)
    }

    /// `SET key value PX life`
    fn set_with_end(&mut self, key: &[u8], value: &[u8], life: &[u8]) -> Result<(), Failure> {
        self.may_write()?;
        let end = end_of_set(Unit::Millis, life, self.clock())?;
        self.put(key, value, Some(end));
        Ok(())
    }

    fn put(&mut self, key: &[u8], value: &[u8], end: Option<Millis>) {
        let entry = Entry { value: Value::Text(value.to_vec()), end };
        self.call.master.keyspace.put(self.call.session.database, key, entry, self.call.now);
        self.has_written = true;
    }

    fn may_write(&self) -> Result<(), Failure> {
        self.call.master.takes_writes()?;
        if self.has_written { Ok(()) } else { self.call.master.has_memory() }
    }

    /// `PTTL KEYS[1]`
    fn pttl(&mut self) -> i64 {
        self.key(1).map_or(-2, |key| self.pttl_of(key))
    }

    /// Lua's numbers are doubles, so a PTTL above 2^53 comes back rounded.
    fn pttl_of(&mut self, key: &[u8]) -> i64 {
        self.read(&[key]);
        let database = self.call.session.database;
        if self.call.master.keyspace.get(database, key, self.call.now).is_none() {
            return -2;
        }
        let now = self.clock();
        lua_integer(self.call.master.keyspace.pttl_of(database, key, now) as f64)
    }

    /// `if left >= 0 then redis.call('PEXPIRE', KEYS[1], left < tonumber(ARGV[2]) and ARGV[2] or
    /// left) end`
    fn lengthen(&mut self) -> Result<(), Failure> {
        const LINE: &str = "redis.call('PEXPIRE'";
        let left = self.pttl();
        let Some(key) = self.key(1) else { return Ok(()) };
        if left < 0 {
            return Ok(());
        }
        let wanted = self.value(2);
        let Some(life) = wanted.and_then(lua_number) else {
            return Err(self.stopped(LINE, "attempt to compare number with nil"));
        };
        let left = left as f64;
        let text = (left >= life).then(|| claim::written(left));
        let life = text.as_ref().map_or(wanted.unwrap_or_default(), |text| text.as_bytes());
        let given = self.call.master.takes_writes();
        let now = self.clock();
        let end = given.and_then(|()| end_from_now(life, Unit::Millis, "pexpire", now));
        let end = end.map_err(|failure| self.raised(LINE, &failure))?;
        self.has_written = true;
        let now = self.clock();
        self.call.master.expire_at(self.call.session.database, key, end, now);
        Ok(())
    }

    /// The server's clock, which may have advanced since the script began.
    fn clock(&mut self) -> Millis {
        let Some(clock) = &mut self.call.master.conditions.script_clock else { return self.call.now };
        let passed = clock.steps.iter().filter(|step| **step <= clock.readings).count();
        clock.readings += 1;
        self.call.now.saturating_add(Millis::try_from(passed).unwrap_or(Millis::MAX))
    }

    /// A number as a reply: its fraction is cut off.
    fn number(&mut self, number: f64) -> Result<(), Failure> {
        self.call.reply.integer(lua_integer(number));
        Ok(())
    }

    /// An error that ended the script in the first line with this text.
    fn raised(&self, line: &str, failure: &Failure) -> Failure {
        let number = self.line(line);
        let place = format!(" script: {}, on @user_script:{number}.", self.script.sha1_hex);
        Failure::raw([failure.text(), place.as_bytes()].concat())
    }

    /// An error of Lua's own in the first line with this text.
    fn stopped(&self, line: &str, what: &str) -> Failure {
        let text = format!("ERR user_script:{}: {what}", self.line(line));
        self.raised(line, &Failure::raw(text.into_bytes()))
    }

    fn line(&self, text: &str) -> usize {
        let found = self.script.text.lines().position(|line| line.contains(text));
        found.map_or(0, |before| before + 1)
    }
}

/// The holder of the lock's key.
enum Holder {
    Nobody,
    We,
    Another(Vec<u8>),
}

const UNKNOWN_SCRIPT: Failure = Failure::new("ERR this model of a master runs only the scripts of Quorlock");
const NO_ARGUMENT: Failure = Failure::new("ERR Lua redis lib command arguments must be strings or integers");
const NO_COUNTER: Failure = Failure::new("ERR the fencing counter is not a number");
const USED_UP: Failure = Failure::new("ERR the fencing counter is used up");
/// The largest number that a counter may have: doubles hold it exactly.
const LAST_FENCE: f64 = 9_007_199_254_740_991.0;
const SHA1_DIGITS: usize = 40;
