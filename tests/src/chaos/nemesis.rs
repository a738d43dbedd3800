//! The faults of a run, one after the other, chosen by a seed. Some last while the next ones
//! happen.

use std::fmt::Display;
use std::io;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::clients::Clients;
use super::history::{What, Writer};
use crate::eventually::poll;
use crate::random::Random;
use crate::server::RedisServer;

/// Far longer than the sync of a replica with a few keys takes.
const SYNC_WITHIN: Duration = Duration::from_secs(15);
const PAUSE_BETWEEN: std::ops::RangeInclusive<u64> = 100..=900;

type Deed<N> = fn(&mut N) -> io::Result<()>;

/// Something that lasts until it is undone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Lasting {
    MasterIsDown(usize),
    MasterIsStopped(usize),
    ClientIsPaused(usize),
}

pub(super) struct Nemesis<'a> {
    masters: &'a [RedisServer],
    /// A server that no client uses: a master becomes its replica sometimes.
    spare: &'a RedisServer,
    clients: &'a mut Clients,
    history: &'a Writer,
    random: Random,
    lasting: Vec<(Instant, Lasting)>,
}

impl<'a> Nemesis<'a> {
    /// All faults, with their relative frequency.
    const DEEDS: [(usize, Deed<Self>); 9] = [
        (4, Self::kill_master),
        (4, Self::stop_masters),
        (3, Self::flush),
        (1, Self::flush_many),
        (1, Self::flush_scripts),
        (3, Self::resync_from_another),
        (3, Self::resync_from_own_former_replica),
        (10, Self::pause_clients),
        (3, Self::kill_client),
    ];

    pub(super) fn new(
        masters: &'a [RedisServer],
        spare: &'a RedisServer,
        clients: &'a mut Clients,
        history: &'a Writer,
        random: Random,
    ) -> Self {
        Self { masters, spare, clients, history, random, lasting: Vec::new() }
    }

    /// Injects one fault after the other until the time is over, and then ends lasting ones.
    pub(super) fn run(&mut self, span: Duration) -> io::Result<()> {
        let end = Instant::now() + span;
        loop {
            let next = Instant::now() + self.random.millis(PAUSE_BETWEEN);
            self.undo_until(next.min(end))?;
            self.clients.assert_alive()?;
            if next >= end {
                break;
            }
            let (_, deed) = Self::DEEDS[self.random.weighted(Self::DEEDS.iter().map(|(weight, _)| *weight))];
            deed(self)?;
        }
        for (_, lasting) in std::mem::take(&mut self.lasting) {
            self.undo(lasting)?;
        }
        Ok(())
    }

    /// Waits, and ends faults that have lasted long enough.
    fn undo_until(&mut self, end: Instant) -> io::Result<()> {
        loop {
            self.lasting.sort_by_key(|(until, _)| *until);
            let due = self.lasting.first().map(|(until, _)| *until).filter(|until| *until < end);
            sleep(due.unwrap_or(end).saturating_duration_since(Instant::now()));
            if due.is_none() {
                return Ok(());
            }
            let (_, lasting) = self.lasting.remove(0);
            self.undo(lasting)?;
        }
    }

    fn undo(&mut self, lasting: Lasting) -> io::Result<()> {
        match lasting {
            Lasting::MasterIsDown(place) => self.masters[place].restart(),
            Lasting::MasterIsStopped(place) => self.masters[place].cont(),
            Lasting::ClientIsPaused(place) => self.clients.resume(place, self.history),
        }
        Ok(())
    }

    fn last(&mut self, span: Duration, lasting: Lasting) {
        self.lasting.push((Instant::now() + span, lasting));
    }

    fn is(&self, lasting: Lasting) -> bool {
        self.lasting.iter().any(|(_, each)| *each == lasting)
    }

    fn tell(&self, kind: &str, detail: &dyn Display) {
        self.history.note(What::Fault { kind: kind.to_owned(), detail: detail.to_string() });
    }

    /// The masters that answer, in a random order.
    fn masters_up(&mut self) -> Vec<usize> {
        let is_up = |place: &usize| {
            !self.is(Lasting::MasterIsDown(*place)) && !self.is(Lasting::MasterIsStopped(*place))
        };
        let up: Vec<_> = (0..self.masters.len()).filter(is_up).collect();
        self.shuffled(up)
    }

    fn shuffled(&mut self, mut places: Vec<usize>) -> Vec<usize> {
        for place in (1..places.len()).rev() {
            places.swap(place, self.random.below(place + 1));
        }
        places
    }

    /// A master that may fail without the loss of the quorum.
    fn master_to_spare(&mut self) -> Option<usize> {
        let up = self.masters_up();
        let quorum = self.masters.len() / 2 + 1;
        up.first().copied().filter(|_| up.len() > quorum)
    }

    /// Kills a master, which comes back empty, or with what its append-only file holds.
    fn kill_master(&mut self) -> io::Result<()> {
        let Some(place) = self.master_to_spare() else { return Ok(()) };
        let keeps = if super::keeps_data(place) { "killed-with-data" } else { "killed-empty" };
        self.tell(keeps, &place);
        self.masters[place].kill();
        let span = self.random.millis(0..=1_200);
        self.last(span, Lasting::MasterIsDown(place));
        Ok(())
    }

    fn stop_masters(&mut self) -> io::Result<()> {
        for _ in 0..=self.random.below(2) {
            let Some(place) = self.master_to_spare() else { break };
            self.tell("stopped", &place);
            self.masters[place].stop();
            let span = self.random.millis(50..=2_000);
            self.last(span, Lasting::MasterIsStopped(place));
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.flush_some(1)
    }

    /// Deletes all keys of a majority of masters, one right after the other, while clients hold
    /// locks.
    fn flush_many(&mut self) -> io::Result<()> {
        self.flush_some(self.masters.len())
    }

    fn flush_some(&mut self, most: usize) -> io::Result<()> {
        for place in self.masters_up().into_iter().take(most) {
            self.tell("flushed", &place);
            self.masters[place].command(&["FLUSHALL"]);
        }
        Ok(())
    }

    fn flush_scripts(&mut self) -> io::Result<()> {
        for place in self.masters_up() {
            self.tell("scripts-flushed", &place);
            self.masters[place].command(&["SCRIPT", "FLUSH"]);
        }
        Ok(())
    }

    /// Makes a master copy another's data as its replica, and promotes it again. Its connections
    /// stay open.
    fn resync_from_another(&mut self) -> io::Result<()> {
        let up = self.masters_up();
        let [place, source, ..] = up[..] else { return Ok(()) };
        self.tell("resynced-from-another", &format!("{place} from {source}"));
        self.resync(place, &self.masters[source])
    }

    /// A master returns to the data that its replica had when it was promoted: the marker in the
    /// old data is the master's own.
    fn resync_from_own_former_replica(&mut self) -> io::Result<()> {
        let Some(place) = self.masters_up().first().copied() else { return Ok(()) };
        self.tell("resynced-from-former-replica", &place);
        self.spare.become_replica_of(&self.masters[place]);
        Self::await_sync(self.spare)?;
        sleep(self.random.millis(0..=300));
        self.spare.become_master();
        // Grants from here on are lost.
        sleep(self.random.millis(0..=400));
        self.resync(place, self.spare)
    }

    /// Makes a master a replica of `source`, and promotes it again. If the clients are stopped
    /// meanwhile, none of them sees the master as a replica.
    fn resync(&mut self, place: usize, source: &RedisServer) -> io::Result<()> {
        let running: Vec<_> =
            (0..self.clients.len()).filter(|client| !self.is(Lasting::ClientIsPaused(*client))).collect();
        let unseen = if self.random.one_in(2) { running } else { Vec::new() };
        for client in &unseen {
            self.clients.pause(*client, self.history);
        }
        let master = &self.masters[place];
        master.become_replica_of(source);
        Self::await_sync(master)?;
        master.become_master();
        for client in unseen {
            self.clients.resume(client, self.history);
        }
        Ok(())
    }

    fn await_sync(replica: &RedisServer) -> io::Result<()> {
        let is_synced = || {
            let info = replica.command(&["INFO", "replication"]);
            info.text().is_some_and(|info| info.contains("master_link_status:up")).then_some(())
        };
        poll(SYNC_WITHIN, is_synced).ok_or_else(|| io::Error::other(format!("no sync:\n{}", replica.log())))
    }

    /// Pauses clients, usually for longer than the TTL of their locks.
    fn pause_clients(&mut self) -> io::Result<()> {
        let running =
            (0..self.clients.len()).filter(|client| !self.is(Lasting::ClientIsPaused(*client))).collect();
        let running = self.shuffled(running);
        let count = 1 + self.random.below(3);
        for client in running.into_iter().take(count) {
            self.tell("client-paused", &client);
            self.clients.pause(client, self.history);
            let span = self.random.millis(400..=3_000);
            self.last(span, Lasting::ClientIsPaused(client));
        }
        Ok(())
    }

    fn kill_client(&mut self) -> io::Result<()> {
        let client = self.random.below(self.clients.len());
        self.tell("client-killed", &client);
        // A stopped process can be killed too; the one in its place runs.
        self.lasting.retain(|(_, lasting)| *lasting != Lasting::ClientIsPaused(client));
        self.clients.replace(client)
    }
}
