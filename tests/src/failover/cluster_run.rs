//! Slots that change their owners while clients contend for locks in them.

use std::fmt;
use std::io;
use std::thread::sleep;
use std::time::Duration;

use super::contest::{Clientele, Contest, LONGEST_TTL};
use super::{Outcome, Timing, Trust};
use crate::chaos::history::now;
use crate::groups::{ClusterGroup, Takeover};
use crate::random::Random;

/// The tags, whose slots lie on different masters at first.
const TAGS: [&str; 3] = ["q0", "q1", "q2"];

/// What happens to the owner of a slot. Lasting faults are undone later.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ShardDeed {
    /// Its replica takes its place.
    Replace(Takeover),
    /// It is stopped until another node owns the slot, and then continued.
    Stop,
    /// The slot is moved to another owner key by key, and back.
    Move,
}

/// A run on a cluster of three shards.
#[derive(Clone, Debug)]
pub struct ClusterRun {
    /// The contenders.
    pub clientele: Clientele,
    /// What happens to the owners, one after the other.
    pub deeds: Vec<ShardDeed>,
    /// The most further owners to stop, until two clients that rely on the restart guard alone have
    /// held one lock. This may take several: an owner that continues may learn of its successor
    /// before it reads the requests of clients, and over TLS it always does.
    pub stops: usize,
}

impl ShardDeed {
    /// All kinds of faults.
    pub const ALL: &[Self] = &[
        Self::Replace(Takeover::Alone),
        Self::Stop,
        Self::Move,
        Self::Replace(Takeover::Agreed),
        Self::Replace(Takeover::Forced),
    ];
}

impl ClusterRun {
    /// Carries out the run, and returns the outcome. `tell` is called with each failover when it is
    /// over. The histories stay in their files.
    ///
    /// # Errors
    /// When a client ends by itself, or when clients with confirmed votes are granted nothing
    /// although a failover is over.
    pub fn go(&self, mut tell: impl FnMut(&Timing)) -> io::Result<Outcome> {
        let cluster = ClusterGroup::start();
        let mut random = Random::new(self.clientele.seed);
        let slot = cluster.slot(TAGS[0]);
        // Masters that vote in two ways have separate keys for each way, in the same slots.
        let mut tags = Tags { cluster: &cluster, tried: 0 };
        let ways = [
            (Trust::Confirmed, vec![TAGS[0].to_owned()]),
            (Trust::GuardAlone, vec![tags.beside(TAGS[0])]),
            (Trust::Quorum, TAGS.map(|tag| tags.beside(tag)).into()),
        ];
        let urls = |(trust, tags): (Trust, Vec<String>)| {
            (trust, tags.iter().map(|tag| trust.url_in_cluster(&cluster, tag)).collect())
        };
        let ways = ways.into_iter().map(urls).collect();
        let mut contest = Contest::start(&self.clientele, ways, &Vec::new(), &mut random)?;
        let more = std::iter::repeat_n(&ShardDeed::Stop, self.stops);
        for (place, deed) in self.deeds.iter().chain(more).enumerate() {
            if place >= self.deeds.len() && contest.has_two_holders(Trust::GuardAlone)? {
                break;
            }
            sleep(random.millis(0..=700));
            cluster.await_complete();
            let old = cluster.await_owner(slot);
            let sleepers = contest.sleepers(&mut random)?;
            let began = now();
            contest.befalls(&deed.to_string(), old);
            match deed {
                ShardDeed::Replace(how) => {
                    cluster.fail_over(slot, *how);
                }
                ShardDeed::Stop => {
                    cluster.node(old).stop();
                    cluster.owner_after(old, slot);
                }
                ShardDeed::Move => {
                    let other = cluster.await_owner(cluster.slot(TAGS[1]));
                    cluster.move_slot(slot, other, || sleep(Duration::from_millis(20)));
                }
            }
            let changed = now();
            contest.renew_half()?;
            sleep(Duration::from_millis(LONGEST_TTL) + random.millis(500..=1_500));
            sleepers.wake_before(|| match deed {
                ShardDeed::Replace(_) => {}
                ShardDeed::Stop => cluster.node(old).cont(),
                ShardDeed::Move => cluster.move_slot(slot, old, || sleep(Duration::from_millis(20))),
            });
            cluster.await_complete();
            tell(&contest.goes_on(&deed.to_string(), began, changed)?);
        }
        contest.end()
    }
}

/// Further tags in the slots of other tags.
struct Tags<'a> {
    cluster: &'a ClusterGroup,
    tried: usize,
}

impl Tags<'_> {
    /// Another tag in the slot of this one.
    fn beside(&mut self, tag: &str) -> String {
        let slot = self.cluster.slot(tag);
        loop {
            self.tried += 1;
            let other = format!("t{}", self.tried);
            if self.cluster.slot(&other) == slot {
                return other;
            }
        }
    }
}

impl fmt::Display for ShardDeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Replace(Takeover::Agreed) => "replaced",
            Self::Replace(Takeover::Forced) => "replaced-by-force",
            Self::Replace(Takeover::Alone) => "taken-over",
            Self::Stop => "stopped",
            Self::Move => "moved",
        })
    }
}
