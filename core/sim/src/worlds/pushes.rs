//! Pushes of masters: notifications that keys which a client has read have changed.

use std::time::Duration;

use super::clock::TrueTime;
use super::event::Event;
use super::fault::PushFate;
use super::link::LinkId;
use super::random::nanos;
use super::state::State;
use super::timeline::Happening;
use crate::master::Push;

/// How long after its expiry a server deletes a key that no client accesses: it checks ten times a
/// second.
const ROUND: std::ops::RangeInclusive<Duration> = Duration::ZERO..=Duration::from_millis(100);

/// One master's pushes.
#[derive(Debug, Default)]
pub(super) struct Pushing {
    lost_until: TrueTime,
    pub(super) late_until: TrueTime,
    repeated_until: TrueTime,
    /// The pushes that are held back until `late_until`.
    held: Vec<(LinkId, Vec<u8>)>,
    /// The first expiry of a key that a client has read, and when the master deletes the key.
    round: Option<(Duration, TrueTime)>,
}

impl State {
    /// Sends the pushes after an action of a master. The pushes on the connection `own`, whose
    /// command the master has just executed, are returned, because they belong after the reply.
    pub(super) fn tell_readers(&mut self, master: usize, own: Option<LinkId>) -> Vec<u8> {
        let (now, mut behind) = (self.now, Vec::new());
        let Some(node) = self.masters.get_mut(master).filter(|node| now >= node.hangs_until) else {
            return behind;
        };
        for Push { session, bytes } in node.model.take_pushes() {
            let Some(id) = self.reader(master, session) else { continue };
            let Some(pushing) = self.masters.get_mut(master).map(|node| &mut node.pushing) else { break };
            let is_held = now < pushing.late_until;
            let (copies, fate) = match () {
                () if now < pushing.lost_until => (0, ", which is lost"),
                () if now < pushing.repeated_until => (2, " twice"),
                () if is_held => (1, ", which is held back"),
                () => (1, ""),
            };
            if copies == 0 {
                self.observer.turns.loses_push();
            }
            let all = bytes.repeat(copies);
            if is_held {
                pushing.held.push((id, all));
            } else if own == Some(id) {
                behind.extend_from_slice(&all);
            } else {
                self.say(id, &all);
            }
            if let Some(client) = self.link(id).map(|link| link.client) {
                self.note(|| Happening::Pushed { client, master, fate });
            }
        }
        self.plan_round(master);
        behind
    }

    /// The connection with this session.
    fn reader(&self, master: usize, session: u64) -> Option<LinkId> {
        let links = self.clients.iter().filter_map(|node| node.links.get(master)).flatten();
        links.copied().find(|id| {
            self.link(*id).is_some_and(|link| link.master_end_open && link.session.id() == session)
        })
    }

    /// Makes the master delete the next expired key that a client has read.
    fn plan_round(&mut self, master: usize) {
        let Some(node) = self.masters.get(master) else { return };
        let Some(end) = node.model.next_end() else { return };
        if node.pushing.round.is_some_and(|(planned, _)| planned <= end) {
            return;
        }
        let at = node.clock.when(nanos(end)).max(self.now) + nanos(self.random.within(ROUND));
        if let Some(node) = self.masters.get_mut(master) {
            node.pushing.round = Some((end, at));
        }
        self.schedule(at, Event::Round { master });
    }

    /// The master deletes its expired keys, unless it has planned to do so earlier.
    pub(super) fn round(&mut self, master: usize) {
        let now = self.now;
        let Some(node) = self.masters.get_mut(master) else { return };
        if node.pushing.round.is_none_or(|(_, at)| at != now) {
            return;
        }
        node.pushing.round = None;
        if now >= node.hangs_until && now >= node.away_until {
            node.model.remove_ended(Duration::from_nanos(node.clock.read(now)));
            self.tell_readers(master, None);
        }
    }

    /// The master's clock has changed, or it continues: what was planned by its clock is planned
    /// again.
    pub(super) fn plan_round_again(&mut self, master: usize) {
        if let Some(node) = self.masters.get_mut(master) {
            node.pushing.round = None;
        }
        self.tell_readers(master, None);
    }

    /// Nothing is planned any more.
    pub(super) fn forget_rounds(&mut self) {
        for node in &mut self.masters {
            node.pushing.round = None;
        }
    }

    /// Sets the fate of a master's pushes for this time.
    pub(super) fn set_push_fate(&mut self, master: usize, fate: PushFate, span: Duration) {
        let until = self.now + nanos(span);
        let Some(pushing) = self.masters.get_mut(master).map(|node| &mut node.pushing) else { return };
        let end = match fate {
            PushFate::Lost => &mut pushing.lost_until,
            PushFate::Late => &mut pushing.late_until,
            PushFate::Repeated => &mut pushing.repeated_until,
        };
        *end = until.max(*end);
        if fate == PushFate::Late {
            self.schedule(until, Event::LatePushes { master });
        }
    }

    /// Sends the pushes that were held back, unless they are held for longer by now.
    pub(super) fn release_pushes(&mut self, master: usize) {
        let now = self.now;
        let pushing = self.masters.get_mut(master).map(|node| &mut node.pushing);
        let Some(pushing) = pushing.filter(|pushing| now >= pushing.late_until) else { return };
        for (id, bytes) in std::mem::take(&mut pushing.held) {
            if self.link(id).is_some_and(|link| link.master_end_open) {
                self.say(id, &bytes);
            }
        }
    }

    /// Delivers all pushes from now on.
    pub(super) fn heal_pushes(&mut self, master: usize) {
        let now = self.now;
        if let Some(pushing) = self.masters.get_mut(master).map(|node| &mut node.pushing) {
            for end in [&mut pushing.lost_until, &mut pushing.late_until, &mut pushing.repeated_until] {
                *end = now.min(*end);
            }
        }
        self.release_pushes(master);
    }
}

#[cfg(test)]
mod tests {
    use super::super::fault::Fault;
    use super::super::groups::Groups;
    use super::super::state::Inbound;
    use super::*;
    use crate::master::Keep;

    const TOLD: &str = ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\na\r\n";
    const LONG: Duration = Duration::from_secs(5);

    /// One master and two clients, each with a connection that tracks keys.
    struct Desk {
        state: State,
        links: [LinkId; 2],
    }

    impl Desk {
        fn new(seed: u64) -> Self {
            let mut state = State::new(seed, Groups::new(1, 0, None), Duration::ZERO, false);
            let links = [0, 1].map(|client| {
                state.add_client(vec![0]);
                state.connect(client, 0, 1);
                state.client_link(client, 0, 1).unwrap()
            });
            let mut desk = Self { state, links };
            desk.pass(LONG);
            for client in 0..2 {
                desk.ask(client, "HELLO 3\nCLIENT TRACKING ON NOLOOP\nGET a\n");
                assert!(desk.heard(client).ends_with("+OK\r\n_\r\n"));
            }
            desk
        }

        fn ask(&mut self, client: usize, commands: &str) {
            self.state.send(self.links[client], commands.as_bytes());
            self.pass(LONG);
        }

        fn pass(&mut self, span: Duration) {
            let end = self.state.now + nanos(span);
            while self.state.next_at().is_some_and(|at| at <= end) {
                match self.state.next_event().unwrap() {
                    Event::Fault(fault) => self.state.inject(fault),
                    event => self.state.happen(event),
                }
            }
            self.state.now = end;
        }

        fn heard(&mut self, client: usize) -> String {
            let inbox = std::mem::take(&mut self.state.clients[client].inbox);
            let bytes = inbox.into_iter().flat_map(|item| match item {
                Inbound::Bytes(_, bytes) => bytes,
                _ => Vec::new(),
            });
            String::from_utf8(bytes.collect()).unwrap()
        }
    }

    #[test]
    fn pushes_reach_the_readers_after_earlier_replies() {
        for seed in 0..50 {
            let mut desk = Desk::new(seed);
            desk.state.send(desk.links[0], b"GET a\nECHO long\n");
            desk.ask(1, "SET a 1 PX 60\n");
            assert_eq!(desk.heard(1), "+OK\r\n");
            let heard = desk.heard(0);
            assert!(heard.contains(TOLD) && heard.replace(TOLD, "").ends_with("$4\r\nlong\r\n"), "{heard}");
            // Only the master itself accesses the key when it expires.
            desk.ask(0, "GET a\nSET b 1\nSET a 1 PX 2000\nGET a\nGET b\n");
            assert_eq!(desk.heard(0).matches(TOLD).count(), 1);
            desk.state.inject(Fault::Flush { master: 0 });
            desk.pass(LONG);
            assert_eq!(desk.heard(0) + &desk.heard(1), ">2\r\n$10\r\ninvalidate\r\n_\r\n".repeat(2));
        }
    }

    #[test]
    fn the_expiry_of_a_key_is_notified_within_a_tenth_of_a_second() {
        for seed in 0..50 {
            let mut desk = Desk::new(seed);
            let clock = desk.state.masters[0].clock;
            desk.ask(1, "SET a 1 PX 12000\n");
            desk.ask(0, "GET a\n");
            desk.heard(0);
            let server_now = Duration::from_nanos(clock.read(desk.state.now));
            let end = desk.state.masters[0].model.expires_at(0, b"a", server_now).unwrap();
            let span = end - server_now;
            desk.pass(span);
            assert_eq!(desk.heard(0), "");
            desk.pass(Duration::from_millis(150));
            assert_eq!(desk.heard(0), TOLD);
        }
    }

    #[test]
    fn pushes_follow_a_clock_that_jumps_and_a_master_that_hangs() {
        let mut desk = Desk::new(1);
        desk.ask(1, "SET a 1 PX 3600000\n");
        desk.ask(0, "GET a\n");
        desk.heard(0);
        desk.state.inject(Fault::Hang { master: 0, span: LONG * 2 });
        desk.state.inject(Fault::MasterJump { master: 0, by_millis: 3_600_000 });
        desk.pass(LONG);
        assert_eq!(desk.heard(0), "");
        desk.pass(LONG * 2);
        assert_eq!(desk.heard(0), TOLD);
    }

    #[test]
    fn pushes_are_lost_late_or_repeated_and_replies_are_not() {
        let span = LONG * 2;
        let set = "SET a 1\n";
        for (fate, at_once, later) in
            [(PushFate::Lost, "", ""), (PushFate::Late, "", TOLD), (PushFate::Repeated, &*TOLD.repeat(2), "")]
        {
            let mut desk = Desk::new(1);
            desk.state.inject(Fault::Pushes { master: 3, fate, span });
            desk.ask(1, set);
            assert_eq!(desk.heard(0), at_once, "{fate:?}");
            desk.state.send(desk.links[0], b"PING\n");
            desk.pass(span);
            assert_eq!(desk.heard(0), format!("+PONG\r\n{later}"), "{fate:?}");
            desk.ask(0, "GET a\n");
            desk.ask(1, set);
            assert_eq!(desk.heard(0), format!("$1\r\n1\r\n{TOLD}"));
        }
        let mut desk = Desk::new(1);
        desk.state.inject(Fault::Pushes { master: 0, fate: PushFate::Late, span: LONG * 100 });
        desk.ask(1, set);
        desk.state.heal();
        desk.pass(LONG);
        assert_eq!(desk.heard(0), TOLD);
    }

    #[test]
    fn nothing_is_pushed_on_a_closed_connection() {
        let mut desk = Desk::new(1);
        desk.state.inject(Fault::Crash { master: 0, span: LONG, keep: Keep::Everything });
        desk.pass(LONG * 2);
        desk.state.close(desk.links[1]);
        assert_eq!(desk.heard(0), "");
        desk.state.connect(1, 0, 2);
        desk.pass(LONG);
        desk.links[1] = desk.state.client_link(1, 0, 2).unwrap();
        desk.ask(1, "SET a 1\n");
        assert_eq!((desk.heard(0), desk.heard(1)), (String::new(), "+OK\r\n".to_owned()));
    }
}
