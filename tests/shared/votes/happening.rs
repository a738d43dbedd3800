//! What happens in each history, in steps that a model and real servers have alike.

use quorlock_core::Fleet;

use super::client::Site;
use super::{FIRST, FIRSTS_REPLICA, History, REPLICA, SEAT, SPARE, Setting};

/// What a server has after a restart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kept {
    Data,
    /// The older snapshot.
    Snapshot,
    Nothing,
}

/// Servers for one life, by their numbers. Those of the three seats have the numbers of the seats
/// until a history gives the last seat to another one.
pub trait Servers: Site + Sized {
    /// Starts the servers; an error says why this machine cannot make the life.
    ///
    /// # Errors
    /// A reason.
    fn start(history: History, setting: Setting) -> Result<Self, String>;

    /// Which server is at the last seat.
    fn at_the_seat(&self) -> usize;

    /// Another server is at the last seat from now on.
    fn take_seat(&mut self, server: usize);

    /// The state of the seat's server now is the older snapshot.
    fn snapshot(&mut self);

    /// The seat's replica receives nothing from now on, until it is promoted.
    fn cut_replica_off(&mut self);

    /// The seat's server restarts, and its replicas follow it again.
    fn restart(&mut self, kept: Kept);

    /// The server ends.
    fn stop(&mut self, server: usize);

    fn promote(&mut self, server: usize);

    /// The server has the data of another one from now on, and so have its own replicas.
    fn follow(&mut self, server: usize, of: usize);

    /// The server is followed by exactly one replica, and knows it.
    fn await_replica(&mut self, server: usize);

    /// The slot of the seat, with its keys, belongs to the spare server.
    fn move_slot(&mut self);

    fn keys(&mut self, server: usize) -> Vec<String>;

    fn value(&mut self, server: usize, key: &str) -> String;

    /// Writes a key of the first seat's server on that of the last seat, with the rest of its time.
    fn copy(&mut self, key: &str);

    /// Executes a command that must succeed.
    fn command(&mut self, server: usize, words: &[&str]);
}

/// The history happens.
pub(super) fn happen(servers: &mut impl Servers, history: History, setting: Setting) {
    let has_declared = setting == Setting::Replicas;
    match history {
        History::Untouched | History::TwoAddresses | History::TwoAddressesWithoutInfo => {}
        History::RestartedWithItsData => servers.restart(Kept::Data),
        History::RestartedFromAnOlderSnapshot => servers.restart(Kept::Snapshot),
        History::RestartedEmpty => servers.restart(Kept::Nothing),
        History::Flushed | History::QuarantineOver => servers.command(SEAT, &["FLUSHALL"]),
        History::KeysPutBackByHand => {
            servers.command(SEAT, &["FLUSHALL"]);
            servers.keys(FIRST).iter().filter(|key| is_of_a_lock(key)).for_each(|key| servers.copy(key));
        }
        History::RebuiltFromAnother => {
            servers.follow(SEAT, FIRST);
            servers.promote(SEAT);
        }
        History::RebuiltAlone => {
            servers.promote(REPLICA);
            servers.follow(SEAT, FIRST);
            servers.promote(SEAT);
        }
        // With declared replicas, one more would cost the first seat its vote.
        History::BecameAReplica => servers.follow(SEAT, if has_declared { FIRSTS_REPLICA } else { FIRST }),
        History::PromotedWithTheLastWrite | History::PromotedWithoutTheLastWrite => {
            servers.stop(SEAT);
            servers.promote(REPLICA);
            servers.take_seat(REPLICA);
        }
        History::FormerPrimaryGoesOn | History::FormerPrimaryOutlivesTheQuarantine => {
            servers.promote(REPLICA);
            servers.take_seat(REPLICA);
        }
        History::DemotedAndBack => {
            servers.promote(REPLICA);
            servers.follow(SEAT, REPLICA);
            servers.promote(SEAT);
            if has_declared {
                servers.follow(REPLICA, SEAT);
            }
        }
        History::OtherFleetsMarker => set_marker(servers, |words| words[3] = "9999 7".to_owned()),
        History::LaterVersionsMarker => set_marker(servers, |words| words.push("1".to_owned())),
        History::SlotMovedAway => servers.move_slot(),
    }
    if has_declared {
        complete(servers, history);
    }
}

/// The groups are complete again, if the history does not say otherwise.
fn complete(servers: &mut impl Servers, history: History) {
    let primary = servers.at_the_seat();
    match primary {
        REPLICA => servers.follow(SPARE, REPLICA),
        SPARE => servers.follow(REPLICA, SPARE),
        _ => {}
    }
    if !matches!(history, History::RebuiltAlone | History::BecameAReplica) {
        servers.await_replica(FIRST);
        servers.await_replica(primary);
    }
}

/// Whether a lock has the key: neither the marker nor a counter.
fn is_of_a_lock(key: &str) -> bool {
    !key.starts_with("quorlock:") || key.starts_with("quorlock:seat:")
}

/// Changes the words of the marker; the fourth and the rest are the fleet.
fn set_marker(servers: &mut impl Servers, change: impl FnOnce(&mut Vec<String>)) {
    let marker = servers.value(SEAT, Fleet::MARKER);
    let mut words: Vec<_> = marker.splitn(4, ' ').map(str::to_owned).collect();
    change(&mut words);
    servers.command(SEAT, &["SET", Fleet::MARKER, &words.join(" ")]);
}
