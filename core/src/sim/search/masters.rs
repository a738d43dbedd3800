//! The masters: `SET NX PX`, the scripts of `wire::script`, and the clocks.

use super::item::{Item, Said};
use super::properties::{self, Violation};
use super::state::{Key, State};
use super::story::Party;
use super::world::World;
use crate::protocol::Action as Does;

impl World {
    /// A master executes a request.
    pub(super) fn execute(
        &mut self,
        state: &mut State,
        client: usize,
        master: usize,
        item: Item,
        is_late: bool,
    ) -> Result<Said, Violation> {
        let is_timed = !self.scenario.asynchronous;
        let own = Key {
            client: u8::try_from(client).unwrap_or(u8::MAX),
            attempt: item.attempt(),
            life: if is_timed { item.ttl() + self.scenario.late } else { 1 },
            is_late: is_late && is_timed,
        };
        let stands = state.master_mut(master);
        let (before, counter) = (stands.key, stands.counter);
        let said = if stands.quarantine > 0 && item.action() == Does::Acquire {
            Said::Quarantined
        } else {
            run(&mut stands.key, self.scenario.fenced.then_some(&mut stands.counter), own, item)
        };
        let after = stands.key;
        self.story.executes(client, master, item, said, is_late);
        properties::executed(before, after, item.action(), own)?;
        // An absent client's key is nowhere in the state, but might stand there.
        let foreign = Some(Key { client: 1 - own.client, ..own });
        let (mut other, mut count) = (foreign, counter);
        run(&mut other, self.scenario.fenced.then_some(&mut count), own, item);
        properties::executed(foreign, other, item.action(), own)?;
        Ok(said)
    }

    /// The master executes a request while an absent client has the key.
    pub(super) fn refuse(&mut self, client: usize, master: usize, item: Item) -> Said {
        let is_told = item.action() == Does::Undo || item.action() == Does::Acquire && self.scenario.fenced;
        let said = if is_told { Said::Holder } else { Said::No };
        self.story.says(Party::Master(master), || "somebody else has its key".to_owned());
        self.story.executes(client, master, item, said, false);
        said
    }

    pub(super) fn execute_late(
        &mut self,
        state: &mut State,
        client: usize,
        master: usize,
        place: usize,
        twice: bool,
    ) -> Result<(), Violation> {
        let Some(item) = state.link(client, master).behind.as_slice().get(place).copied() else {
            return Ok(());
        };
        if twice {
            state.duplicates -= 1;
        } else if !item.is_again() {
            let behind = &mut state.link_mut(client, master).behind;
            behind.remove(place);
            if let Some(next) = behind.as_mut_slice().get_mut(place).filter(|next| !next.is_first()) {
                *next = next.as_first(true);
            }
        }
        self.execute(state, client, master, item, true).map(|_| ())
    }

    /// A tick of all clocks. A client's clock that nothing depends on any more stands still, so that there is an end of states.
    pub(super) fn tick(&mut self, state: &mut State) {
        for client in state.clients.iter_mut().filter(|client| client.is_alive()) {
            let is_awaited = self.book.deadline(client.lock).is_some_and(|deadline| client.now < deadline);
            if is_awaited || client.now < client.bound {
                client.now += 1;
            }
        }
        for master in &mut state.masters {
            if let Some(key) = &mut master.key {
                key.life -= 1;
            }
            master.key = master.key.filter(|key| key.life > 0);
            master.quarantine = master.quarantine.saturating_sub(1);
            for link in &mut master.links {
                link.debts.as_mut_slice().iter_mut().for_each(|debt| debt.life -= 1);
                let debts = link.debts.take();
                debts.iter().filter(|debt| debt.life > 0).for_each(|debt| link.debts.push(debt));
            }
        }
    }
}

/// `SET NX PX` and the scripts of `wire::script`, for a request that would set the key `own`. Without a counter where grants are not numbered.
fn run(key: &mut Option<Key>, mut counter: Option<&mut u8>, own: Key, item: Item) -> Said {
    let mut raise = |least: u8| {
        let counter = counter.as_deref_mut()?;
        *counter = least.max(*counter);
        Some(*counter)
    };
    match (item.action(), &mut *key) {
        (Does::Acquire, None) => {
            let number = raise(0).and_then(|number| raise(number + 1));
            *key = Some(own);
            number.map_or(Said::Yes, Said::Counted)
        }
        (Does::Heal, None) => {
            raise(item.number());
            *key = Some(own);
            Said::Yes
        }
        (Does::Heal, Some(_)) => Said::No,
        (Does::Acquire, Some(held)) => match raise(0) {
            Some(number) if held.is_of(own) => Said::Counted(number),
            // Scripts tell by whom it is held; `SET NX` does not.
            Some(_) => Said::Holder,
            None => Said::No,
        },
        (action, Some(held)) if held.is_of(own) => {
            match action {
                Does::Raise => return raise(item.number()).map_or(Said::No, Said::Counted),
                Does::Extend => {
                    raise(item.number());
                    if held.life < own.life {
                        *held = Key { is_late: held.is_late || own.is_late, ..own };
                    }
                }
                _ => *key = None,
            }
            Said::Yes
        }
        (Does::Undo, Some(_)) => Said::Holder,
        _ => Said::No,
    }
}
