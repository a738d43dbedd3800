//! The masters: `SET NX PX`, the scripts of `wire::script`, and the clocks.

use super::properties::{self, Violation};
use super::row::{Item, Said};
use super::state::{Key, State};
use super::story::Party;
use super::world::World;
use crate::connection::Action as Does;

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
        let own = Key {
            client: u8::try_from(client).unwrap_or(u8::MAX),
            attempt: item.attempt(),
            life: item.ttl() + self.scenario.late,
            is_late,
        };
        let key = &mut state.master_mut(master).key;
        let before = *key;
        let said = run(key, own, item.action());
        let after = *key;
        self.story.executes(client, master, item, said, is_late);
        properties::executed(before, after, item.action(), own)?;
        // An absent client's key is nowhere in the state, but might stand there.
        let foreign = Some(Key { client: 1 - own.client, ..own });
        let mut other = foreign;
        run(&mut other, own, item.action());
        properties::executed(foreign, other, item.action(), own)?;
        Ok(said)
    }

    /// The master executes a request while an absent client has the key.
    pub(super) fn refuse(&mut self, client: usize, master: usize, item: Item) -> Said {
        let said = if item.action() == Does::Undo { Said::Holder } else { Said::No };
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
            for link in &mut master.links {
                link.debts.as_mut_slice().iter_mut().for_each(|debt| debt.life -= 1);
                let debts = link.debts.take();
                debts.iter().filter(|debt| debt.life > 0).for_each(|debt| link.debts.push(debt));
            }
        }
    }
}

/// `SET NX PX` and the scripts of `wire::script`, for a request that would set the key `own`.
fn run(key: &mut Option<Key>, own: Key, action: Does) -> Said {
    match (action, &mut *key) {
        (Does::Acquire, None) => {
            *key = Some(own);
            Said::Yes
        }
        (Does::Acquire, Some(_)) => Said::No,
        (action, Some(held)) if held.is_of(own) => {
            match action {
                Does::Extend if held.life < own.life => {
                    *held = Key { is_late: held.is_late || own.is_late, ..own };
                }
                Does::Extend => {}
                _ => *key = None,
            }
            Said::Yes
        }
        (Does::Undo, Some(_)) => Said::Holder,
        _ => Said::No,
    }
}
