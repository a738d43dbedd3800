//! The observer's record of tokens that more than one guard may have: locks that were handed over,
//! or whose resumptions were copied or delivered twice, and locks that were force-released.

use std::collections::{BTreeMap, BTreeSet};

use quorlock_core::internals::seats_of;

use super::clock::TrueTime;
use super::groups::untagged;
use super::kept::Kept;
use super::observer::{Held, Observer};
use super::state::State;
use super::violation::Violation;
use crate::master::{Command, CommandKind};

type Token = Vec<u8>;

#[derive(Debug, Default)]
pub(super) struct Delivered {
    /// Locks that were handed over, and that nobody has resumed or released since: their keys stay
    /// until they end.
    handed: BTreeSet<Token>,
    /// Locks of which a holder has given a copy away.
    copied: BTreeSet<Token>,
    /// Locks that several may hold at once, by a copy or a second delivery.
    shared: BTreeSet<Token>,
    /// When a client last began to resume a lock.
    begun: BTreeMap<(usize, Token), TrueTime>,
    /// When a client began the resumptions of a lock that have not ended.
    open: BTreeMap<(usize, Token), Vec<TrueTime>>,
    /// When a client began the last resumption of a lock that was granted.
    granted: BTreeMap<(usize, Token), TrueTime>,
    /// When a master last executed a release of a token.
    parted: BTreeMap<Token, TrueTime>,
    /// Tokens that were force-released on some master.
    forced: BTreeSet<Token>,
    /// When a client's last force-release ended, unless there is another one.
    force_ended: BTreeMap<usize, TrueTime>,
    /// How often each master has named a holder to a client since its force-release began. The
    /// client then asks this master once more.
    named: BTreeMap<(usize, usize), u32>,
}

impl Delivered {
    pub(super) fn handed_over(&mut self, token: &[u8]) {
        self.handed.insert(token.to_vec());
    }

    pub(super) fn copied(&mut self, token: &[u8]) {
        self.copied.insert(token.to_vec());
        self.shared.insert(token.to_vec());
    }

    pub(super) fn repeats(&mut self, token: &[u8]) {
        self.shared.insert(token.to_vec());
    }

    /// A client begins to resume a lock.
    pub(super) fn resumes(&mut self, client: usize, token: &[u8], now: TrueTime) {
        let key = (client, token.to_vec());
        self.begun.insert(key.clone(), now);
        // A lock that comes back later has no excuse from its first time here.
        self.granted.remove(&key);
        self.open.entry(key).or_default().push(now);
    }

    /// The resumption that a client began then has ended, with the lock or without it.
    pub(super) fn has_resumed(&mut self, client: usize, token: &[u8], began: TrueTime, is_granted: bool) {
        let key = (client, token.to_vec());
        if is_granted {
            self.granted.insert(key.clone(), began);
        }
        let open = self.open.entry(key).or_default();
        if let Some(place) = open.iter().position(|other| *other == began) {
            open.remove(place);
        }
    }

    /// A client has resumed or released a lock that was handed over. It is responsible for the keys
    /// from now on.
    pub(super) fn received(&mut self, token: &[u8]) {
        self.handed.remove(token);
    }

    /// A client begins a force-release, or ends it at this time.
    pub(super) fn forces(&mut self, client: usize, ended: Option<TrueTime>) {
        match ended {
            Some(ended) => {
                self.force_ended.insert(client, ended);
            }
            None => {
                self.force_ended.remove(&client);
                self.named.retain(|(asking, _), _| *asking != client);
            }
        }
    }

    /// How often a client's force-release asks the master that it asks most often: to name the
    /// holder, to delete that holder's key, and again for each holder that took it meanwhile.
    pub(super) fn force_asks(&self, client: usize) -> u32 {
        let named = self.named.iter().filter(|((asking, _), _)| *asking == client);
        1 + named.map(|(_, times)| *times).max().unwrap_or_default()
    }

    /// When a client began to ask for a lock that was delivered to it. If it was delivered twice,
    /// and the client still asks for both, the grant may be that of the earlier request. It is
    /// noticed when its request has ended, or before.
    pub(super) fn begun(&self, client: usize, token: &[u8]) -> Option<TrueTime> {
        let key = (client, token.to_vec());
        let open = self.open.get(&key).into_iter().flatten();
        open.chain(self.granted.get(&key)).min().copied()
    }

    /// Whether several guards may have this token at once.
    pub(super) fn is_shared(&self, token: &[u8]) -> bool {
        self.shared.contains(token)
    }

    /// Whether the keys of this token may stay although no client holds it: a copy may restore them
    /// behind a release, and a lock whose time has ended leaves them if another may count them.
    pub(super) fn may_stay(&self, token: &[u8]) -> bool {
        self.handed.contains(token) || self.copied.contains(token) || self.is_unreleased(token)
    }

    /// Whether no master has executed a release of a lock since a client last began to resume it.
    fn is_unreleased(&self, token: &[u8]) -> bool {
        let begun = self.begun.iter().filter(|((_, of), _)| of == token).map(|(_, begun)| *begun).max();
        begun.is_some_and(|begun| self.parted.get(token).is_none_or(|parted| *parted < begun))
    }

    /// Whether a guard is not worth anything, which its client cannot know: another client that had
    /// the same token released it after this one had begun to ask for the lock, or the lock was
    /// force-released. A token that was delivered after its release is no excuse.
    pub(super) fn is_undermined(&self, held: &Held) -> bool {
        let token = held.token.as_slice();
        let parted = self.parted.get(token).filter(|_| self.is_shared(token));
        parted.is_some_and(|parted| *parted >= held.asked_at) || self.forced.contains(token)
    }
}

impl Observer {
    /// A master has executed a command that ends a lock.
    pub(super) fn parts(&mut self, command: &Command, now: TrueTime) {
        if let Some(token) = command.token() {
            self.delivered.parted.insert(token.to_vec(), now);
        }
    }
}

impl State {
    /// The token alone at the key of a force-release, before it is executed.
    pub(super) fn aim(&self, master: usize, command: &Command) -> Option<Token> {
        if command.kind() != CommandKind::ForceRelease {
            return None;
        }
        let node = self.masters.get(master)?;
        let clock = std::time::Duration::from_nanos(node.clock.read(self.now));
        node.model.value(0, command.key()?, clock).map(<[u8]>::to_vec)
    }

    /// A force-release was executed. It must not delete a lock that was requested after it ended.
    pub(super) fn hits(&mut self, (client, master): (usize, usize), command: &Command, aim: &[u8]) {
        if self.aim(master, command).is_some() {
            *self.observer.delivered.named.entry((client, master)).or_default() += 1;
            return;
        }
        // It also frees what a release keeps.
        let key = command.key().map(untagged).unwrap_or_default();
        let is_hit = |kept: &Kept| {
            let seats = seats_of(&kept.targets);
            kept.targets.resources().any(|resource| {
                resource.key() == key || seats.iter().any(|seat| resource.seat_key((*seat).into()) == key)
            })
        };
        self.observer.kept.retain(|kept| !is_hit(kept));
        let sharers = crate::master::sharers::read(aim).map(|(_, entries)| entries);
        let each = crate::master::sharers::each(sharers.unwrap_or_default());
        let forced: Vec<Token> = each.map(|(_, token)| token.to_vec()).collect();
        let is_alone = sharers.is_none();
        let delivered = &mut self.observer.delivered;
        delivered.forced.extend(forced);
        if is_alone {
            delivered.forced.insert(aim.to_vec());
            let ended = delivered.force_ended.get(&client).copied();
            let requested = self.observer.known.get(aim).map(|known| known.first_sent);
            if ended.zip(requested).is_some_and(|(ended, requested)| ended < requested) {
                self.observer.report(Violation::ForcedTooLate { client });
            }
        }
    }
}
