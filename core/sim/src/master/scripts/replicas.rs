//! The checks before scripts that carry votes, on masters with replicas.

use quorlock_core::internals::{REPLICATED, Script};

use super::Body;
use super::claim::written;
use crate::master::call::Role;
use crate::master::command::CommandKind;
use crate::master::number::lua_number;
use crate::master::reply::Failure;

/// If `script` begins with the check, returns the script that follows the check.
pub(in crate::master) fn behind_check(script: &Script) -> Option<&'static Script> {
    REPLICATED.iter().find(|(_, replicated)| *replicated == script).map(|(plain, _)| *plain)
}

impl Body<'_, '_> {
    /// Replicas do not vote.
    pub(super) fn check_role(&self) -> Result<(), Failure> {
        match self.call.master.conditions.role {
            Role::Master => Ok(()),
            Role::Replica => Err(Failure::new("READONLY this server is a replica")),
        }
    }

    /// Whether the script continues: the number of replicas is the declared one.
    pub(super) fn check_replicas(&mut self) -> Result<bool, Failure> {
        self.check_role()?;
        let Some(marked) = self.value(self.values.len()).and_then(lua_number) else {
            let line = "local declared = ";
            return Err(self.stopped(line, "attempt to perform arithmetic on a nil value"));
        };
        let replicas = &self.call.master.conditions.replicas;
        let there = [replicas.following(self.call.now), replicas.connected()];
        let declared = (marked / 1000.0).floor() - 1.0;
        if there.into_iter().all(|there| there as f64 == declared) {
            return Ok(true);
        }
        self.call.reply.array(3);
        self.call.reply.bulk(b"alone");
        for number in there {
            self.call.reply.integer(i64::try_from(number).unwrap_or(i64::MAX));
        }
        Ok(false)
    }

    /// Runs a script with the write that follows a yes.
    pub(super) fn run_and_write(&mut self, script: &Script, checks_replicas: bool) -> Result<(), Failure> {
        let before = self.call.reply.length();
        self.run_inner(script, checks_replicas)?;
        if self.call.command.kind() == CommandKind::Attend {
            return Ok(());
        }
        let said = self.call.reply.take_behind(before);
        // An infinite counter is more than 0 in Lua, and the smallest integer in the reply.
        let is_infinite = said.as_slice() == format!(":{}\r\n", i64::MIN).as_bytes();
        let is_count = said.starts_with(b":") && said.get(1) > Some(&b'0');
        let is_word =
            [&b"*3\r\n$5\r\nseats"[..], b"*2\r\n$4\r\nours"].iter().any(|word| said.starts_with(word));
        let is_yes = is_word || is_count || is_infinite;
        if !is_yes {
            self.call.reply.put_back(&said);
            return Ok(());
        }
        for key in self.keys {
            let left = self.pttl_of(key);
            if left > 0 {
                self.pexpire(key, written(left as f64).as_bytes())?;
            } else if left == -1 {
                let value = self.get(Some(key))?;
                self.set(Some(key), value.as_deref())?;
            } else {
                continue;
            }
            self.call.reply.put_back(&said);
            return Ok(());
        }
        self.number(0.0)
    }

    /// Puts back a lock that is not numbered.
    pub(super) fn heal(&mut self) -> Result<(), Failure> {
        let Some(key) = self.key(1) else { return self.number(0.0) };
        self.read(&[key]);
        if self.call.master.keyspace.get(self.call.session.database, key, self.call.now).is_some() {
            return self.number(0.0);
        }
        self.set_lock()?;
        self.number(1.0)
    }
}
