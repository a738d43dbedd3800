//! Acknowledgements that an old primary may count as fresh: its replicas have sent them before the
//! failover, and it reads them afterwards.

use std::thread::sleep;
use std::time::{Duration, SystemTime};

use quorlock_tests::failover::keep_busy;
use quorlock_tests::{Direction, FaultProxy};

use super::scene::{Scene, Story, tell};

/// Long enough for an acknowledgement: a replica sends one each second.
const AN_ACKNOWLEDGEMENT: Duration = Duration::from_millis(1_300);
/// Longer than the failover and the quarantine of the new primary.
const BUSY_SECONDS: u64 = 5;

/// The primary is stopped. Its clients have been idle, and send requests shortly before it
/// continues.
struct Stopped {
    asked_before: Duration,
}

impl Story for Stopped {
    fn blind(&mut self, scene: &Scene) {
        scene.primary.stop();
        sleep(AN_ACKNOWLEDGEMENT);
    }

    fn see(&mut self, scene: &Scene, ask: &mut dyn FnMut()) {
        ask();
        sleep(self.asked_before);
        scene.primary.cont();
    }
}

#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
fn an_idle_client_asks_shortly_before_a_stopped_primary_goes_on() {
    tell(Stopped { asked_before: Duration::from_millis(20) });
}

#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
fn requests_are_queued_at_a_stopped_primary_behind_acknowledgements() {
    tell(Stopped { asked_before: Duration::from_millis(600) });
}

/// The primary runs a script during the failover; no process is stopped.
struct Busy {
    until: SystemTime,
}

impl Story for Busy {
    fn blind(&mut self, scene: &Scene) {
        self.until = keep_busy(&scene.primary, BUSY_SECONDS);
        sleep(AN_ACKNOWLEDGEMENT);
    }

    fn see(&mut self, _: &Scene, ask: &mut dyn FnMut()) {
        let ahead = Duration::from_millis(100);
        sleep(self.until.duration_since(SystemTime::now() + ahead).unwrap_or_default());
        ask();
    }
}

#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
fn a_client_asks_shortly_before_a_long_script_of_the_primary_ends() {
    tell(Busy { until: SystemTime::UNIX_EPOCH });
}

/// The network between the primary and its replicas is down, and TCP delivers everything later: the
/// acknowledgements first, and the ends of the connections 300 ms after them.
struct Late;

impl Story for Late {
    fn blind(&mut self, scene: &Scene) {
        scene.links.iter().for_each(|link| link.stall(Direction::Both));
        // Older than an acknowledgement that scripts accept as fresh, so that they find no replica.
        sleep(2 * AN_ACKNOWLEDGEMENT);
    }

    fn see(&mut self, scene: &Scene, ask: &mut dyn FnMut()) {
        ask();
        scene.links.iter().for_each(|link| link.resume_without_ends(Direction::ToServer));
        sleep(Duration::from_millis(300));
        scene.links.iter().for_each(FaultProxy::heal);
    }
}

#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
fn acknowledgements_arrive_after_the_failover_when_the_network_heals() {
    tell(Late);
}
