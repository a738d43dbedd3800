//! Commands inside the scripts of several targets, with any keys.

use super::{Body, Given, NO_ARGUMENT};
use crate::master::expiry::{Unit, end_from_now};
use crate::master::keyspace::{Millis, Scores};
use crate::master::reply::Failure;
use crate::master::scores::add;

impl<'b> Body<'_, 'b> {
    /// `unpack(KEYS, from, last)`
    pub(super) fn keys_between(&self, from: usize, last: usize) -> Result<&'b [Vec<u8>], Failure> {
        let keys = self.keys.get(from - 1..last.max(from - 1));
        keys.ok_or(NO_ARGUMENT)
    }

    /// `MGET`: a key of another type counts as none.
    pub(super) fn mget(&mut self, keys: &[Vec<u8>]) -> Vec<Option<Vec<u8>>> {
        let mut values = Vec::new();
        for part in keys.chunks(PORTION) {
            self.read(&part.iter().map(Vec::as_slice).collect::<Vec<_>>());
            let (keyspace, database) = (&self.call.master.keyspace, self.call.session.database);
            let text = |key: &Vec<u8>| keyspace.text(database, key, self.call.now).ok().flatten();
            values.extend(part.iter().map(|key| text(key).map(<[u8]>::to_vec)));
        }
        values
    }

    /// `EXISTS`: how many of the keys exist.
    pub(super) fn exists(&mut self, keys: &[Vec<u8>]) -> usize {
        let mut found = 0;
        for part in keys.chunks(PORTION) {
            self.read(&part.iter().map(Vec::as_slice).collect::<Vec<_>>());
            let (keyspace, database) = (&self.call.master.keyspace, self.call.session.database);
            let is_there = |key: &&Vec<u8>| keyspace.get(database, key, self.call.now).is_some();
            found += part.iter().filter(is_there).count();
        }
        found
    }

    pub(super) fn delete_all(&mut self, keys: &[&[u8]]) -> Result<(), Failure> {
        for key in keys {
            self.begin_write(key)?;
            self.call.master.keyspace.remove(self.call.session.database, key, self.call.now);
        }
        Ok(())
    }

    /// `PEXPIRE`: whether the key exists.
    pub(super) fn pexpire(&mut self, key: &[u8], life: &[u8]) -> Result<bool, Failure> {
        self.begin_write(key)?;
        let end = end_from_now(life, Unit::Millis, "pexpire", self.clock())?;
        let database = self.call.session.database;
        if self.call.master.keyspace.get(database, key, self.call.now).is_none() {
            return Ok(false);
        }
        let now = self.clock();
        self.call.master.expire_at(database, key, end, now);
        Ok(true)
    }

    /// `ZADD key XX INCR 0 member`: the score of a member, by a command that writes.
    pub(super) fn score_by_write(&mut self, key: &[u8], member: &[u8]) -> Result<Option<f64>, Failure> {
        self.may_write()?;
        self.begin_write(key)?;
        let scores = self.call.master.keyspace.scores(self.call.session.database, key, self.call.now)?;
        Ok(scores.and_then(|scores| scores.get(member)).map(|score| *score as f64))
    }

    pub(super) fn scores(&mut self, key: &[u8]) -> Result<Option<&Scores>, Failure> {
        self.read(&[key]);
        self.call.master.keyspace.scores(self.call.session.database, key, self.call.now)
    }

    pub(super) fn zadd(&mut self, key: &[u8], scored: &[(Millis, &[u8])]) -> Result<(), Failure> {
        self.may_write()?;
        let scored = scored.iter().map(|(score, member)| (*score, member.to_vec()));
        self.change_scores(key, |scores| add(scores, scored)).map(drop)
    }

    pub(super) fn zrem(&mut self, key: &[u8], member: &[u8]) -> Result<bool, Failure> {
        let removed = self.change_scores(key, |scores| usize::from(scores.remove(member).is_some()))?;
        Ok(removed > 0)
    }

    fn change_scores(
        &mut self,
        key: &[u8],
        change: impl FnOnce(&mut Scores) -> usize,
    ) -> Result<usize, Failure> {
        self.begin_write(key)?;
        let (database, now) = (self.call.session.database, self.call.now);
        self.call.master.keyspace.change_scores(database, key, now, change)
    }

    /// A command that writes, whether or not it changes anything: memory is not checked any more.
    fn begin_write(&mut self, key: &[u8]) -> Result<(), Failure> {
        self.call.master.takes_writes()?;
        self.has_written = true;
        self.call.come_by(key);
        Ok(())
    }

    /// A key that the command requires.
    pub(super) fn named(&self, number: usize) -> Result<&'b [u8], Failure> {
        given(self.key(number))
    }

    /// A value that the command requires.
    pub(super) fn worth(&self, number: usize) -> Result<&'b [u8], Failure> {
        given(self.value(number))
    }
}

fn given<'b>(argument: Given<'b>) -> Result<&'b [u8], Failure> {
    argument.ok_or(NO_ARGUMENT)
}

/// How many keys a script passes to one command, and how many members it requests.
const PORTION: usize = 1000;
