//! What is in front of the scripts that carry votes, on masters with replicas.

use quorlock_core::internals::{REPLICATED, Script};

use super::Body;
use crate::master::call::Role;
use crate::master::number::lua_number;
use crate::master::reply::Failure;

/// Whether the script is one of those, and the one that it goes on with; a plain `SET` is none.
pub(in crate::master) fn behind_check(script: &Script) -> Option<Option<&'static Script>> {
    REPLICATED.iter().find(|(_, replicated)| *replicated == script).map(|(plain, _)| *plain)
}

impl Body<'_, '_> {
    /// Whether the script goes on: the replicas are those that are declared.
    pub(super) fn check_replicas(&mut self) -> Result<bool, Failure> {
        if self.call.master.conditions.role == Role::Replica {
            return Err(Failure::new("READONLY this server is a replica"));
        }
        let Some(marked) = self.value(self.values.len()).and_then(lua_number) else {
            let line = "local declared = ";
            return Err(self.stopped(line, "attempt to perform arithmetic on a nil value"));
        };
        let replicas = self.call.master.conditions.replicas;
        let declared = (marked / 1000.0).floor();
        if [replicas.following, replicas.connected].into_iter().all(|there| f64::from(there) == declared) {
            return Ok(true);
        }
        self.call.reply.array(3);
        self.call.reply.bulk(b"alone");
        self.call.reply.integer(replicas.following.into());
        self.call.reply.integer(replicas.connected.into());
        Ok(false)
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
