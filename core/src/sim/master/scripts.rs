//! EVAL, EVALSHA and SCRIPT, and what the scripts of the lock do.
//!
//! The server's clock stands still while a script runs.

use super::call::Call;
use super::command::{script_by_sha1, script_by_text};
use super::expiry::{Unit, end_from_now};
use super::number::{integer, lua_number};
use super::reply::{Failure, NOT_AN_INTEGER};
use crate::wire::{EXTEND, RELEASE, Script, UNDO};

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
    let mut body = Body { call, script, key: keys.first(), values };
    if *script == RELEASE {
        body.release()
    } else if *script == EXTEND {
        body.extend()
    } else if *script == UNDO {
        body.undo()
    } else {
        Err(UNKNOWN_SCRIPT)
    }
}

/// A script while it runs. Its methods are the scripts' texts, statement by statement, with what Lua makes of missing arguments.
struct Body<'a, 'b> {
    call: &'a mut Call<'b>,
    script: &'static Script,
    key: Option<&'b Vec<u8>>,
    values: &'b [Vec<u8>],
}

/// What `redis.pcall('GET', KEYS[1])` gives, beside the token.
enum Got {
    Nothing,
    Token,
    Other(Vec<u8>),
}

impl Body<'_, '_> {
    fn release(&mut self) -> Result<(), Failure> {
        match self.got() {
            Ok(Got::Token) => return self.delete(2),
            Ok(_) => {}
            Err(error) => no_wrong_type(error)?,
        }
        self.call.reply.integer(0);
        Ok(())
    }

    fn extend(&mut self) -> Result<(), Failure> {
        match self.got() {
            Ok(Got::Token) => {
                self.lengthen().map_err(|failure| self.raised(4, &failure))?;
                self.call.reply.integer(1);
                return Ok(());
            }
            Ok(_) => {}
            Err(error) => no_wrong_type(error)?,
        }
        self.call.reply.integer(0);
        Ok(())
    }

    fn undo(&mut self) -> Result<(), Failure> {
        match self.got()? {
            Got::Token => return self.delete(2),
            Got::Nothing => self.call.reply.integer(0),
            Got::Other(held) => {
                let shown = held.get(..SHOWN_BYTES).unwrap_or(&held);
                let digest = sha1_smol::Sha1::from(shown).digest().to_string();
                let left = self.pttl();
                self.call.reply.array(2);
                self.call.reply.bulk(digest.as_bytes());
                self.call.reply.integer(left);
            }
        }
        Ok(())
    }

    fn got(&self) -> Result<Got, Failure> {
        let Some(key) = self.key else {
            return Err(Failure::new("ERR Lua redis lib command arguments must be strings or integers"));
        };
        let held = self.call.master.keyspace.text(self.call.session.database, key, self.call.now)?;
        Ok(match held {
            None => Got::Nothing,
            Some(held) if self.values.first().is_some_and(|token| token == held) => Got::Token,
            Some(held) => Got::Other(held.to_vec()),
        })
    }

    fn delete(&mut self, line: u32) -> Result<(), Failure> {
        self.call.master.takes_writes().map_err(|failure| self.raised(line, &failure))?;
        let Some(key) = self.key else { return Ok(()) };
        let removed = self.call.master.keyspace.remove(self.call.session.database, key, self.call.now);
        self.call.reply.integer(removed.into());
        Ok(())
    }

    fn lengthen(&mut self) -> Result<(), Failure> {
        let left = self.pttl();
        let Some(key) = self.key else { return Ok(()) };
        if left < 0 {
            return Ok(());
        }
        let wanted = self.values.get(1);
        let Some(life) = wanted.and_then(|wanted| lua_number(wanted)) else {
            return Err(Failure::new("ERR user_script:4: attempt to compare number with nil"));
        };
        if left as f64 >= life {
            return Ok(());
        }
        self.call.master.takes_writes()?;
        let end =
            end_from_now(wanted.map_or(&[][..], Vec::as_slice), Unit::Millis, "pexpire", self.call.now)?;
        self.call.master.expire_at(self.call.session.database, key, end, self.call.now);
        Ok(())
    }

    /// Lua's numbers are doubles, so a PTTL above 2^53 comes back rounded.
    #[allow(
        clippy::cast_possible_truncation,
        reason = "a double that was an i64 fits, and the cast saturates"
    )]
    fn pttl(&self) -> i64 {
        let Some(key) = self.key else { return -2 };
        self.call.master.keyspace.pttl(self.call.session.database, key, self.call.now) as f64 as i64
    }

    /// An error that ended the script in one of its lines.
    fn raised(&self, line: u32, failure: &Failure) -> Failure {
        let place = format!(" script: {}, on @user_script:{line}.", self.script.sha1_hex);
        Failure::raw([failure.text(), place.as_bytes()].concat())
    }
}

/// A foreign type is not our lock; any other error stays one.
fn no_wrong_type(failure: Failure) -> Result<(), Failure> {
    if failure == super::reply::WRONG_TYPE { Ok(()) } else { Err(failure) }
}

const UNKNOWN_SCRIPT: Failure = Failure::new("ERR this model of a master runs only the scripts of Quorlock");
const SHA1_DIGITS: usize = 40;
/// How much of a value UNDO makes its digest of.
const SHOWN_BYTES: usize = 64;
