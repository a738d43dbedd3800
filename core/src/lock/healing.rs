//! Healing: keys are put back on masters that lost them, or never had them, while a quorum still holds the lock.
//!
//! A key that was put back counts from the next round of extensions on. So every end of validity rests on masters that held the
//! token before its round began, and whoever acquires the lock later meets one of them.

use super::{Effects, Lock, Phase};
use crate::protocol::{Action, Answer, Fate, MasterId, MasterSet};

impl Lock {
    /// A round has shown that a quorum still holds the lock and that these masters do not.
    pub(super) fn heal(&mut self, masters: MasterSet, effects: &mut Effects<'_>) {
        // Where a release may follow the token at any time it would not stay.
        let masters = masters.without(self.forsaken);
        if !self.healing || masters.is_empty() {
            return;
        }
        let Phase::Held(held) = &mut self.phase else { return };
        let round = held.healing_round;
        masters.iter().for_each(|master| held.unsettled.insert(master));
        for master in masters.iter() {
            if !self.reached.contains(master) {
                self.reached.insert(master);
                self.unproven.insert(master);
            }
        }
        effects.order(masters, self.request(Some(round), Action::Heal, self.ttl, self.fence));
    }

    pub(super) fn heal_answered(&mut self, master: MasterId, answer: Answer) {
        match answer {
            Answer::Yes => {
                self.unproven.remove(master);
                if let Phase::Held(held) = &mut self.phase {
                    held.unsettled.remove(master);
                }
            }
            // One that was not sent says nothing about an earlier one, which may have put the key back before its answer was lost.
            Answer::Failed { fate: Fate::NotSent, .. } => {}
            Answer::Failed { .. } => self.note_fate(master, answer),
            // Somebody's key stands there. It may be ours, from a request whose answer was lost, so that it is to be released; but it may as
            // well be another master's (one server behind two addresses), so that it must not be counted.
            _ => {}
        }
    }
}
