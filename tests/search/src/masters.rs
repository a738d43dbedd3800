//! The masters: what they execute, and their clocks.

use quorlock_core::internals::Action as Does;

use super::item::{Item, Said};
use super::places::{CROWD, Key, LONG, Place};
use super::properties::{self, Violation};
use super::scenario::{Aim, Flaw};
use super::scripts::Call;
use super::state::{Master, State};
use super::story::Party;
use super::world::World;

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
        let aims = self.scenario.aims_of_item(client, item);
        let takes_any = self.scenario.takes_any(item);
        let call = Call { aims, own, item, takes_any, flaw: self.scenario.flaw };
        let is_fenced = self.scenario.fenced;
        let stands = state.master_mut(master);
        let (before, counters) = (stands.places, stands.counters);
        let said = if stands.quarantine > 0 && item.action() == Does::Acquire {
            Said::Quarantined
        } else {
            let said = call.run(&mut stands.places, is_fenced.then_some(&mut stands.counters));
            let is_kept = said == Said::Yes && matches!(item.action(), Does::Extend | Does::Heal);
            let counts = self.scenario.flaw == Some(Flaw::RestoredKeyCountsInQuarantine);
            if is_kept && stands.quarantine > 0 && !counts { Said::ThereInQuarantine } else { said }
        };
        let after = stands.places;
        self.story.executes(client, master, item, said, is_late);
        if self.scenario.flaw.is_some() {
            // No check here: the search finds the consequences of the flaw.
            return Ok(said);
        }
        properties::executed(&before, &after, item.action(), own)?;
        if state.shape.clients == 2 {
            // An absent client's keys are not in the state, but might be there.
            let foreign = Key { client: 1 - own.client, ..own };
            let has = Call { aims: self.scenario.aims_of(1 - client), own: foreign, ..call };
            let (mut others, mut count) = (has.alone(), counters);
            let stood = others;
            call.run(&mut others, is_fenced.then_some(&mut count));
            properties::executed(&stood, &others, item.action(), own)?;
        }
        Ok(said)
    }

    /// The master executes a request while an absent client has a key of its claim.
    pub(super) fn refuse(&mut self, state: &mut State, client: usize, master: usize, item: Item) -> Said {
        let is_one = matches!(self.scenario.aims_of(client), [Aim::Write(_)]);
        let is_script = self.scenario.fenced || !is_one || self.scenario.takes_any(item);
        let is_told = item.action() == Does::Undo || item.action() == Does::Acquire && is_script;
        let said = if is_told { Said::Holder } else { Said::No };
        if item.action().clears() {
            // The other keys of its own claim are still removed.
            let owns = |key: Key| (usize::from(key.client), key.attempt) == (client, item.attempt());
            state.master_mut(master).places.iter_mut().for_each(|place| place.keep(|key| !owns(key)));
        }
        self.story.says(Party::Master(master), || "another client has its key".to_owned());
        self.story.executes(client, master, item, said, false);
        said
    }

    /// Readers of the first resource that are not examined individually: one of them comes, or the
    /// last one leaves.
    pub(super) fn crowd(&self, does: Does, master: &mut Master) {
        let flaw = self.scenario.flaw;
        // The life of the new reader matters only with the flaw, where a short life does harm.
        let life = if flaw == Some(Flaw::KeyEndsWithTheLastReader) { 1 } else { LONG };
        let own = Key { client: CROWD, attempt: 0, life, is_late: false };
        let item = Item::new(does, 0, 0, 0);
        let call = Call { aims: &[Aim::Read(0)], own, item, takes_any: false, flaw };
        call.run(&mut master.places, None);
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
            state.budgets.duplicates -= 1;
        } else if !item.is_again() {
            let behind = &mut state.link_mut(client, master).behind;
            behind.remove(place);
            if let Some(next) = behind.as_mut_slice().get_mut(place).filter(|next| !next.is_first()) {
                *next = next.as_first(true);
            }
        }
        self.execute(state, client, master, item, true).map(|_| ())
    }

    /// A tick of all clocks. A client's clock stops once nothing depends on it any more, so that
    /// the number of states is finite.
    pub(super) fn tick(&mut self, state: &mut State) {
        for client in state.clients_mut().iter_mut().filter(|client| client.is_alive()) {
            let is_awaited = self.book.deadline(client.lock).is_some_and(|deadline| client.now < deadline);
            if is_awaited || client.now < client.bound {
                client.now += 1;
            }
        }
        for master in &mut state.masters {
            master.places.iter_mut().for_each(Place::tick);
            master.quarantine = master.quarantine.saturating_sub(1);
            master.lost_a_vote &= master.quarantine > 0;
            for link in &mut master.links {
                link.debts.as_mut_slice().iter_mut().for_each(|debt| debt.life -= 1);
                let debts = link.debts.take();
                debts.iter().filter(|debt| debt.life > 0).for_each(|debt| link.debts.push(debt));
            }
        }
    }
}
