//! The connections' own requests: new logins, signs of life; and one name with several servers.

use std::time::Duration;

use quorlock_core::{
    AcquireError, Cause, Config, ConfigBuilder, ConfigError, Endpoint, Event, Instant, Login, MasterState,
    ServerError, Ttl, Unavailable, Warning,
};

use super::world::master::wall_clock;
use super::world::{Flow, KEY, Reach, World, ms, one_try, settings, wanted};

fn states(world: &World) -> Vec<MasterState> {
    world.nodes[0].machine.masters().map(|(_, state)| state).collect()
}

fn ready(warnings: &[Warning]) -> MasterState {
    MasterState::Ready { warnings: warnings.to_vec() }
}

// Logins.

fn of_urls(password: &str) -> ConfigBuilder {
    Config::builder(["a", "b", "c"].map(|name| format!("redis://:{password}@{name}")))
}

/// Masters that require a password, and a configuration whose logins change.
fn with_password() -> World {
    let never = |_: &Endpoint| Err(Unavailable::Because("the driver asks, and there is none here"));
    let mut world = World::cold(of_urls("old").credentials(never));
    world.each(|master| master.server.set_password(Some("old")));
    world.pump();
    assert_eq!(states(&world), [(); 3].map(|()| ready(&[])));
    world
}

fn log_in_with(world: &mut World, password: &str) {
    for master in 0..3 {
        let (id, now) = (world.id(master), world.now);
        world.nodes[0].machine.reauthenticate(id, Login::new(password), now);
    }
    world.drain(0);
}

#[test]
fn a_new_login_is_sent_in_order_and_its_answer_is_not_a_vote() {
    let mut world = with_password();
    world.each(|master| {
        master.server.set_password(Some("new"));
        master.flow = Flow::RepliesHeld;
    });
    world.acquire(&one_try());
    log_in_with(&mut world, "new");
    let behind = world.acquire(&wanted(ms(10_000)));
    world.each(|master| assert_eq!(master.count("AUTH"), 0, "nothing was read yet"));
    // Two answers of one master are one vote of three: the answer to the login is none.
    for _ in 0..2 {
        assert!(world.deliver(0, 0));
        assert!(world.nodes[0].events.is_empty());
    }
    world.each(|master| master.flow = Flow::Free);
    assert!(matches!(world.events_now()[..], [Event::Granted { .. }]));
    world.each(|master| assert_eq!(master.count("AUTH"), 1));
    assert_eq!(states(&world), [(); 3].map(|()| ready(&[])));
    world.cancel(behind);
}

#[test]
fn a_refused_login_closes_the_connection_and_it_is_soon_reopened() {
    let mut world = with_password();
    let held = world.hold(&one_try());
    let opened = world.nodes[0].opened.clone();
    log_in_with(&mut world, "wrong");
    world.pump();
    let refused = MasterState::Down(Cause::LoginRefused(ServerError::WrongPass));
    assert_eq!(states(&world), [(); 3].map(|()| refused.clone()));
    // An ordinary pause, not the one for a person.
    world.pass(ms(50));
    assert_eq!(states(&world), [(); 3].map(|()| ready(&[])));
    let again: Vec<_> = opened.iter().map(|opened| opened + 1).collect();
    assert_eq!(world.nodes[0].opened, again);
    world.release(held);
    assert!(matches!(world.next_event(), Event::Released { .. }));
}

#[test]
fn a_refused_login_that_may_change_is_not_a_configuration_error() {
    let never = |_: &Endpoint| Err(Unavailable::Panicked);
    for changes in [true, false] {
        let mut settings = of_urls("wrong");
        if changes {
            settings = settings.credentials(never);
        }
        let mut world = World::cold(settings);
        world.each(|master| master.server.set_password(Some("right")));
        let lock = world.acquire(&wanted(ms(10_000)));
        world.pass(ms(1_000));
        let opened = world.nodes[0].opened[0];
        if changes {
            assert!((5..=9).contains(&opened), "{opened} openings in a second");
            world.each(|master| master.server.set_password(Some("wrong")));
            assert_eq!(world.next_event().lock(), lock);
            assert!(world.take(lock).is_some());
        } else {
            assert_eq!(opened, 1);
            assert!(matches!(world.refusal(), AcquireError::Misconfigured(_)));
        }
    }
}

#[test]
fn a_new_login_during_the_greeting_is_sent_after_the_greeting() {
    let mut world = World::cold(of_urls("old"));
    world.each(|master| {
        master.server.set_password(Some("old"));
        master.flow = Flow::Stopped;
    });
    world.pump();
    world.each(|master| master.server.set_password(None));
    log_in_with(&mut world, "new");
    world.each(|master| master.flow = Flow::Free);
    world.pump();
    world.each(|master| assert_eq!(master.count("AUTH"), 1));
    assert_eq!(states(&world), [(); 3].map(|()| ready(&[])));
}

#[test]
fn a_login_for_a_closed_connection_is_sent_with_its_next_greeting() {
    let mut world = with_password();
    world.masters[0].reach = Reach::Refuses;
    world.cut(0, 0);
    world.pump();
    log_in_with(&mut world, "old");
    world.masters[0].reach = Reach::Accepts;
    world.pass(ms(1_000));
    assert_eq!(world.masters[0].count("AUTH"), 0);
    assert_eq!(states(&world)[0], ready(&[]));
}

#[test]
fn no_password_is_shown() {
    let world = with_password();
    let shown = format!("{:?} {:?}", world.nodes[0].machine, Login::new("hunter2").with_user("worker"));
    assert!(!shown.contains("old") && !shown.contains("hunter2") && !shown.contains("worker"), "{shown}");
}

// Quiet connections.

const QUIET: Duration = ms(60_000);

/// Pings have no kind of command in the model. Neither have two commands of each greeting.
fn pings(world: &World, master: usize) -> usize {
    world.masters[master].count("other") - 2 * world.nodes[0].opened[master]
}

#[test]
fn a_connection_is_pinged_after_the_keep_alive_span_and_not_before() {
    let mut world = World::ready(settings(3).keep_alive(QUIET));
    world.pass(QUIET - ms(1));
    assert_eq!(pings(&world, 0), 0);
    // A request counts as a sign of life.
    let held = world.hold(&one_try());
    world.release(held);
    world.pass(QUIET - ms(1));
    assert_eq!(pings(&world, 0), 0);
    world.pass(ms(1));
    assert_eq!((0..3).map(|master| pings(&world, master)).collect::<Vec<_>>(), [1; 3]);
    world.pass(10 * QUIET);
    assert_eq!(pings(&world, 0), 11);
    assert_eq!(world.nodes[0].opened, [1; 3]);
}

#[test]
fn no_pings_are_sent_unless_keep_alive_is_set() {
    let mut world = World::of(1);
    let writes = world.nodes[0].writes[0];
    world.pass(100 * QUIET);
    assert_eq!((world.nodes[0].writes[0], world.nodes[0].wake), (writes, None));
}

#[test]
fn a_master_that_does_not_answer_a_ping_is_connected_again() {
    let mut world = World::ready(settings(3).keep_alive(QUIET));
    world.dead.insert((0, world.generation(0)));
    world.pass(QUIET);
    assert_eq!(world.nodes[0].opened, [1; 3]);
    world.pass(ms(100));
    assert_eq!(world.nodes[0].opened, [2, 1, 1]);
    assert_eq!(states(&world)[0], ready(&[]));
}

#[test]
fn the_answer_to_a_ping_is_not_a_vote() {
    let mut world = World::ready(settings(1).keep_alive(QUIET));
    world.masters[0].hold_by_another(KEY, None);
    world.masters[0].flow = Flow::RepliesHeld;
    world.pass(QUIET);
    world.acquire(&one_try());
    assert!(world.deliver(0, 0), "the answer to the ping");
    assert_eq!(world.events_now(), []);
    assert!(world.deliver(0, 0), "the answer to the request");
    world.masters[0].flow = Flow::Free;
    assert!(matches!(world.refusal(), AcquireError::HeldByAnother(_)));
}

#[test]
fn an_error_to_a_ping_is_a_sign_of_life() {
    let mut world = World::ready(settings(1).keep_alive(QUIET));
    world.masters[0].fails("other", "NOPERM this user has no permissions to run the 'ping' command");
    world.pass(3 * QUIET);
    assert_eq!((pings(&world, 0), world.nodes[0].opened[0]), (3, 1));
    assert_eq!(states(&world), [ready(&[])]);
}

#[test]
fn an_unusable_keep_alive_span_is_refused() {
    let refused = |quiet| settings(1).keep_alive(quiet).build().unwrap_err();
    assert_eq!(refused(Duration::ZERO), ConfigError::ZeroSpan { setting: "keep_alive" });
    let span = Ttl::MAX + ms(1);
    assert_eq!(refused(span), ConfigError::EndlessSpan { setting: "keep_alive", span });
    assert_eq!(settings(1).keep_alive(QUIET).build().unwrap().keep_alive(), Some(QUIET));
}

// One name, several servers.

const TTL: Duration = ms(10_000);

/// Another server that was first heard of at that instant.
fn server(number: u64, first: Instant) -> quorlock_sim::Master {
    let mut server = quorlock_sim::Master::new(number);
    let mut session = server.accept();
    let _ = server.serve(&mut session, b"PING\r\n", wall_clock(first), &mut Vec::new());
    server
}

/// The last answer of the server behind the address comes after `heard`, and another server is
/// there after `silent`, which has been up for `up` by then.
fn changed(heard: Duration, silent: Duration, up: Duration) -> World {
    let mut world = World::of(1);
    world.pass(heard);
    let held = world.hold(&one_try());
    world.release(held);
    world.next_event();
    world.masters[0].reach = Reach::Refuses;
    world.cut(0, 0);
    world.pass(silent);
    world.masters[0].server = server(77, world.now - up);
    world.masters[0].reach = Reach::Accepts;
    // The longest pause.
    world.pass(ms(2_500));
    world
}

#[test]
fn another_server_that_ran_beside_the_former_one_has_no_vote_for_the_longest_ttl() {
    let mut world = changed(ms(60_000), ms(3_000), ms(30_000));
    assert_eq!(states(&world), [ready(&[Warning::OtherServer])]);
    world.acquire(&one_try());
    let error = world.refusal();
    assert!(error.to_string().contains("a:6379 quarantined for "), "{error}");
    assert!(world.masters[0].value(KEY, world.now).is_none());
    // Also over a connection to the same server.
    world.cut(0, 0);
    world.pass(ms(2_500));
    assert_eq!(states(&world), [ready(&[Warning::OtherServer])]);
    world.acquire(&one_try());
    assert!(matches!(world.refusal(), AcquireError::Quarantined(_)));
    world.pass(TTL);
    world.hold(&one_try());
}

#[test]
fn the_quarantine_of_another_server_lasts_for_the_longest_requested_ttl() {
    let mut world = World::of(1);
    world.pass(ms(5_000));
    let held = world.hold(&wanted(ms(100_000)));
    world.release(held);
    world.next_event();
    world.cut(0, 0);
    world.masters[0].server = server(77, Instant::ORIGIN);
    world.pass(ms(99_000));
    world.acquire(&one_try());
    assert!(matches!(world.refusal(), AcquireError::Quarantined(_)));
    world.pass(ms(1_000));
    world.hold(&one_try());
}

#[test]
fn a_server_that_was_restarted_is_not_another_server() {
    for up in [ms(0), ms(1_000), ms(3_000)] {
        let mut world = changed(ms(60_000), ms(3_000), up);
        assert_eq!(states(&world), [ready(&[])], "up for {up:?}");
        world.hold(&one_try());
    }
    // First the same server returns. The uptime of the next one, in whole seconds, does not show
    // that it was already up when the former one last answered.
    let mut world = World::of(1);
    world.pass(ms(60_000));
    world.cut(0, 0);
    world.pass(ms(50));
    assert_eq!(states(&world), [ready(&[])]);
    world.cut(0, 0);
    world.masters[0].server = server(77, world.now - ms(600));
    world.pass(ms(50));
    assert_eq!(states(&world), [ready(&[])]);
}

#[test]
fn a_restart_while_the_process_slept_is_not_another_server() {
    let mut world = World::of(1);
    world.pass(ms(60_000));
    world.masters[0].flow = Flow::RepliesHeld;
    world.acquire(&one_try());
    world.pump();
    // The answer lies in the socket while the server is restarted.
    world.now = world.now + ms(5_000);
    assert!(world.deliver(0, 0));
    world.masters[0].flow = Flow::Free;
    world.cut(0, 0);
    world.masters[0].server = server(77, world.now - ms(4_000));
    world.pass(ms(50));
    assert_eq!(states(&world), [ready(&[])]);
}
