//! One failover after the other, while clients contend for a lock.

use std::io;
use std::thread::sleep;
use std::time::{Duration, SystemTime};

use super::contest::{Clientele, Contest, LONGEST_TTL};
use super::{Befallen, Deed, Outcome, Timing, Trust};
use crate::chaos::history::now;
use crate::groups::SentinelGroup;
use crate::proxy::FaultProxy;
use crate::random::Random;

/// A run on a group under sentinels.
#[derive(Clone, Debug)]
pub struct Run {
    /// The clients of the run.
    pub clientele: Clientele,
    /// How clients find the primary.
    pub found: Found,
    /// What happens to the primaries, one after the other.
    pub deeds: Vec<Deed>,
}

/// How clients find a primary. Clients still reach a primary that is cut off from sentinels and
/// replicas.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Found {
    /// By a name, like a virtual address: new connections lead to the new primary, and open ones
    /// stay.
    ByName,
    /// By the sentinels.
    BySentinels,
}

impl Run {
    /// Carries out the run, and returns the outcome. `tell` is called with each failover when it is
    /// over. The histories stay in their files.
    ///
    /// # Errors
    /// When a client ends by itself, or when clients with confirmed votes are granted nothing
    /// although a failover is over.
    pub fn go(&self, mut tell: impl FnMut(&Timing)) -> io::Result<Outcome> {
        let group = SentinelGroup::start();
        let mut random = Random::new(self.clientele.seed);
        let name = FaultProxy::start(group.server(group.await_complete()).address());
        let url = |trust: Trust| match self.found {
            Found::ByName => trust.url(name.address(), SentinelGroup::REPLICAS),
            Found::BySentinels => trust.url_by_sentinels(&group),
        };
        let ways = [Trust::Confirmed, Trust::GuardAlone].map(|trust| (trust, vec![url(trust)]));
        let mut contest = Contest::start(&self.clientele, ways.into(), &group.routes(), &mut random)?;
        for deed in &self.deeds {
            sleep(random.millis(0..=700));
            let old = group.await_complete();
            let sleepers = contest.sleepers(&mut random)?;
            let began = now();
            contest.befalls(&deed.to_string(), old);
            let Befallen { new, until } = deed.befall(&group, old);
            let promoted = now();
            name.set_upstream(group.server(new).address());
            contest.renew_half()?;
            // Waits for the end of the new primary's quarantine, for clients with the restart guard
            // alone.
            sleep(Duration::from_millis(LONGEST_TTL) + random.millis(500..=1_500));
            let loses = random.one_in(2);
            let ahead = SystemTime::now() + Duration::from_millis(50);
            sleep(until.duration_since(ahead).unwrap_or_default());
            sleepers.wake_before(|| deed.undo(&group, old, loses));
            name.set_upstream(group.server(group.await_complete()).address());
            tell(&contest.goes_on(&deed.to_string(), began, promoted)?);
        }
        contest.end()
    }
}
