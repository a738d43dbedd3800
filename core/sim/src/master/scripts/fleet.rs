//! The scripts of the restart guard.

use quorlock_core::internals::{GUARDED, Script};

use super::Body;
use crate::master::number::{lua_number, lua_text};
use crate::master::reply::Failure;

/// Whether the master votes, by its marker.
pub(super) enum Standing {
    /// It votes from then on.
    Votes { opens: f64 },
    /// It does not vote, and the reply says why.
    Answered,
}

/// The text of a marker.
struct Marker<'a> {
    id: &'a [u8],
    born: &'a [u8],
    opens: &'a [u8],
    longest: &'a [u8],
    masters: &'a [u8],
    /// What follows these words, in the marker of a later version.
    more: &'a [u8],
}

/// If a look at the marker follows `script`, returns the script before it. The inner `None` stands
/// for a plain `SET`, which is no script.
pub(in crate::master) fn before_look(script: &Script) -> Option<Option<&'static Script>> {
    GUARDED.iter().find(|(_, guarded)| *guarded == script).map(|(plain, _)| *plain)
}

impl Body<'_, '_> {
    /// Runs the inner script. If the key is ours, the master answers whether it votes; if it is to
    /// be followed, also whether it is.
    pub(super) fn run_and_look(&mut self, checks_replicas: bool) -> Result<(), Failure> {
        let before = self.call.reply.length();
        self.run()?;
        let said = self.call.reply.take_behind(before);
        let is_ours = said.as_slice() == b":1\r\n";
        if is_ours && checks_replicas && !self.check_replicas()? {
            return Ok(());
        }
        if !is_ours || matches!(self.check_marker_or(b"ours")?, Standing::Votes { .. }) {
            self.call.reply.put_back(&said);
        }
        Ok(())
    }

    pub(super) fn acquire_guarded(&mut self) -> Result<(), Failure> {
        match self.check_marker()? {
            Standing::Votes { .. } => self.acquire_reading(),
            Standing::Answered => Ok(()),
        }
    }

    pub(super) fn acquire_fenced_guarded(&mut self) -> Result<(), Failure> {
        match self.check_marker()? {
            Standing::Votes { opens } => self.grant_fenced(opens * 1024.0),
            Standing::Answered => Ok(()),
        }
    }

    pub(super) fn attend(&mut self) -> Result<(), Failure> {
        match self.check_marker()? {
            Standing::Votes { .. } => self.number(1.0),
            Standing::Answered => Ok(()),
        }
    }

    pub(super) fn open(&mut self) -> Result<(), Failure> {
        let (now, id) = (self.time(), self.replication_id()?);
        let mut text = format!("{id} {now:.0} {now:.0}").into_bytes();
        for (number, argument) in [(1, 5), (2, 6)] {
            let Some(value) = self.value(number) else {
                let what = format!("bad argument #{argument} to 'format' (string expected, got nil)");
                return Err(self.stopped("string.format", &what));
            };
            text.extend([b" ", lua_text(value)].concat());
        }
        self.set(self.key(1), Some(&text))?;
        self.number(1.0)
    }

    pub(super) fn check_marker(&mut self) -> Result<Standing, Failure> {
        self.check_marker_or(b"quarantined")
    }

    /// The look at the marker, which answers this word in a quarantine.
    fn check_marker_or(&mut self, word: &[u8]) -> Result<Standing, Failure> {
        let last = self.values.len();
        let (longest, masters) = (self.value(last.saturating_sub(1)), self.value(last));
        let (now, id) = (self.time(), self.replication_id()?);
        self.check_role()?;
        let found = self.get(self.key(self.keys.len()))?.unwrap_or_default();
        let seen = Marker::read(&found);
        let is_other = |seen: &&Marker<'_>| {
            Some(seen.longest) != longest || Some(seen.masters) != masters || !seen.more.is_empty()
        };
        if let Some(seen) = seen.as_ref().filter(is_other) {
            self.call.reply.array(3);
            self.call.reply.bulk(b"fleet");
            let numbers = [seen.longest, seen.masters];
            return self.answered(numbers.map(|number| lua_number(number).unwrap_or_default()));
        }
        let written = seen.filter(|seen| seen.id == id.as_bytes());
        let written = written.and_then(|seen| Some((lua_number(seen.born)?, lua_number(seen.opens)?)));
        let opens = match written.filter(|(born, _)| *born <= now) {
            Some((_, opens)) => opens,
            None => {
                let Some(span) = longest.and_then(lua_number) else {
                    let kind = if longest.is_some() { "string" } else { "nil" };
                    let what = format!("attempt to perform arithmetic on local 'longest' (a {kind} value)");
                    return Err(self.stopped("born, opens = now, now + longest", &what));
                };
                let mut text = format!("{id} {now:.0} {:.0}", now + span).into_bytes();
                for value in [longest, masters] {
                    text.extend([b" ", lua_text(value.unwrap_or_default())].concat());
                }
                self.set(self.key(self.keys.len()), Some(&text))?;
                now + span
            }
        };
        if now < opens {
            self.call.reply.array(2);
            self.call.reply.bulk(word);
            return self.answered([opens - now]);
        }
        Ok(Standing::Votes { opens })
    }

    fn answered<const N: usize>(&mut self, numbers: [f64; N]) -> Result<Standing, Failure> {
        numbers.into_iter().try_for_each(|number| self.number(number))?;
        Ok(Standing::Answered)
    }

    /// The answer to `INFO replication`.
    fn replication_id(&self) -> Result<String, Failure> {
        let master = &self.call.master;
        let is_told = master.conditions.dialect.tells_replication_id();
        let missing = Failure::new("ERR INFO tells no master_replid");
        is_told.then(|| master.replication_id.clone()).ok_or(missing)
    }

    /// The answer to TIME, in milliseconds.
    pub(super) fn time(&mut self) -> f64 {
        self.clock() as f64
    }
}

impl<'a> Marker<'a> {
    /// `string.match(found, '^(%x+) (%d+) (%d+) (%d+) (%d+)(.*)$')`
    fn read(found: &'a [u8]) -> Option<Self> {
        let mut words = found.splitn(5, |byte| *byte == b' ');
        let [id, born, opens, longest, rest] = std::array::from_fn(|_| words.next().unwrap_or_default());
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (masters, more) = rest.split_at(digits);
        let is_id = !id.is_empty() && id.iter().all(u8::is_ascii_hexdigit);
        let is_number = |word: &[u8]| !word.is_empty() && word.iter().all(u8::is_ascii_digit);
        let is_marker = is_id && [born, opens, longest, masters].into_iter().all(is_number);
        is_marker.then_some(Self { id, born, opens, longest, masters, more })
    }
}
