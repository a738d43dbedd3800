//! The scripts that ask about a lock, or delete its key without holding it.

use super::Body;
use super::many::SHARED;
use super::plain::digest;
use crate::master::info;
use crate::master::reply::{Failure, WRONG_TYPE};
use crate::master::sharers;

impl Body<'_, '_> {
    pub(super) fn inspect(&mut self) -> Result<(), Failure> {
        let Some(tokens) = self.value(1) else {
            let what = "bad argument #1 to 'gmatch' (string expected, got nil)";
            return Err(self.stopped("string.gmatch(ARGV[1]", what));
        };
        let tokens = tokens.split(|byte| !byte.is_ascii_hexdigit());
        let tokens: Vec<_> = tokens.filter(|token| !token.is_empty()).collect();
        let holder = |value: &[u8], left: i64| {
            let digits = &digest(value)[..FINGERPRINT_DIGITS];
            format!("{digits} {left} {}", u8::from(tokens.contains(&value)))
        };
        let clock = self.clock();
        let (mut keys, mut sharers, mut group, mut mark) = (Vec::new(), Vec::<String>::new(), Vec::new(), -2);
        for (place, key) in (1..).zip(self.keys) {
            match self.get(Some(key)) {
                Ok(None) => {}
                Err(error) if error == WRONG_TYPE => keys.push(format!("{place} other")),
                Err(error) => return Err(error),
                Ok(Some(held)) => {
                    let is_shared = self.value(3).is_some() && held.starts_with(SHARED);
                    let kind = if is_shared { "shared" } else { "held" };
                    let left = self.pttl_of(key);
                    keys.push(format!("{place} {kind} {}", holder(&held, left)));
                    if is_shared {
                        let (name, entries) = sharers::read(&held).unwrap_or_default();
                        group = name.to_vec();
                        let alive = sharers::each(entries).filter(|(end, _)| *end > clock).take(MOST_SHARERS);
                        sharers.extend(alive.map(|(end, token)| holder(token, end - clock)));
                        mark = self.value(3).map_or(-2, |mark| self.pttl_of(mark));
                    }
                }
            }
        }
        let marker = match self.get(self.value(2)) {
            Ok(marker) => marker.unwrap_or_default(),
            Err(_) => b"denied".to_vec(),
        };
        let [server, replication] =
            ["server", "replication"].map(|section| info::text(self.call, &[section]));
        let reply = &mut self.call.reply;
        reply.array(9);
        reply.bulk(keys.join("\n").as_bytes());
        reply.bulk(sharers.join("\n").as_bytes());
        reply.bulk(&group);
        reply.integer(mark);
        reply.bulk((clock / 1000).to_string().as_bytes());
        reply.bulk((clock % 1000 * 1000).to_string().as_bytes());
        reply.bulk(&marker);
        reply.bulk(server.as_bytes());
        reply.bulk(replication.as_bytes());
        Ok(())
    }

    pub(super) fn force_release(&mut self) -> Result<(), Failure> {
        let Some(held) = self.get(self.key(1))? else { return self.number(0.0) };
        let (_, entries) = sharers::read(&held).unwrap_or_default();
        let there = sharers::each(entries).filter(|(end, _)| *end > 0);
        let mut holders: Vec<_> = there.take(MOST_SHARERS).collect();
        let longest = holders.iter().copied().rev().max_by_key(|(end, _)| *end);
        if longest.is_none() {
            holders = vec![(0, held.as_slice())];
        }
        let is_named =
            |(_, token): &(_, &[u8])| digest(token).as_bytes().get(..FINGERPRINT_DIGITS) == self.value(1);
        if holders.iter().any(is_named) {
            let key = self.named(1)?;
            self.delete_all(&[key])?;
            return self.number(1.0);
        }
        self.tell_holder(longest.map_or(held.as_slice(), |(_, token)| token));
        Ok(())
    }
}

const FINGERPRINT_DIGITS: usize = 16;
/// How many sharers are listed.
const MOST_SHARERS: usize = 1000;
