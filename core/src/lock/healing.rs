//! Healing: keys are restored on masters that lost them, or never had them, while a quorum still
//! holds the lock.
//!
//! A restored key counts from the next round of extensions on. So each extension of the validity
//! was confirmed by a quorum of masters that held the token before that round began, and every
//! client that acquires the lock later meets one of them.
//!
//! If another locker may know the token, it may count the restored key. Then no release follows the
//! request on a connection that is given up, and if the request is executed late, the key stays
//! until it expires.
//!
//! Under the restart guard the key is also restored on a quarantined master. It may have lost a
//! vote for another client, so there the restored key does not count before the end of the
//! quarantine, unless the lock was held there without a gap ([`Context::holder_vote`]).

use super::context::Context;
use super::holding::Held;
use crate::protocol::{Action, Answer, Fate, MasterId, MasterSet};

impl Held {
    /// A round has shown that a quorum still holds the lock and that these masters do not.
    pub(super) fn heal(&mut self, masters: MasterSet, cx: &mut Context<'_, '_>) {
        // If a release may follow the token at any time, the key would not stay.
        let masters = masters.without(cx.keys.forsaken);
        if !cx.base.heals || masters.is_empty() {
            return;
        }
        masters.iter().for_each(|master| self.unsettled.insert(master));
        self.healed_at = Some(cx.effects.now);
        for master in masters.iter() {
            if !cx.keys.reached.contains(master) {
                cx.keys.reached.insert(master);
                cx.keys.unproven.insert(master);
            }
        }
        cx.order_numbered(masters, self.healing_round, Action::Heal, cx.base.ttl, cx.keys.fence);
    }

    pub(super) fn heal_answered(&mut self, master: MasterId, answer: Answer, cx: &mut Context<'_, '_>) {
        match answer {
            Answer::Yes | Answer::OursInQuarantine { .. } => {
                cx.keys.unproven.remove(master);
                self.unsettled.remove(master);
            }
            // A request that was not sent says nothing about an earlier one, which may have
            // restored the key before its answer was lost.
            Answer::Failed { fate: Fate::NotSent, .. } => {}
            Answer::Failed { .. } => cx.keys.note_fate(master, answer),
            // A key exists. It may be ours, from a request whose answer was lost, so it must be
            // released; or it may be another master's (one server behind two addresses), so it must
            // not count.
            _ => {}
        }
    }
}
