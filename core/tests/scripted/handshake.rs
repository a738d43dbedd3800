//! The opening of a connection.

use quorlock_core::{AcquireError, Cause, Config, Fleet, MasterState, ServerError, Warning};

use quorlock_sim::Dialect;

use super::world::{Flow, World, ms, one_try, settings};

fn states(world: &World) -> Vec<MasterState> {
    world.nodes[0].machine.masters().map(|(_, state)| state).collect()
}

fn ready(warnings: &[Warning]) -> MasterState {
    MasterState::Ready { warnings: warnings.to_vec() }
}

fn greeted_by(url: &str, change: impl Fn(&mut super::world::Master)) -> World {
    let mut world = World::cold(Config::builder([url]).client_name("test"));
    world.each(change);
    world.pump();
    world
}

#[test]
fn the_handshake_is_one_write_with_everything_in_it() {
    let world = greeted_by("redis://user:secret@a/5", |master| master.server.add_user("user", "secret"));
    assert_eq!(world.nodes[0].writes[0], 1);
    let names: Vec<_> = world.masters[0].executed.iter().map(|(_, name, _)| *name).collect();
    assert_eq!(
        names,
        [
            "HELLO", "SELECT", "INFO", "INFO", "CLIENT", "CLIENT", "other", "other", "SCRIPT", "SCRIPT",
            "SCRIPT", "GET"
        ]
    );
    let written = String::from_utf8(world.nodes[0].written.clone()).unwrap();
    assert!(written.contains("AUTH\r\n$4\r\nuser\r\n$6\r\nsecret\r\n$7\r\nSETNAME\r\n$4\r\ntest\r\n"));
    let info = format!(
        "LIB-NAME\r\n$8\r\nquorlock\r\n*4\r\n$6\r\nCLIENT\r\n$7\r\nSETINFO\r\n$7\r\nLIB-VER\r\n$5\r\n{}\r\n",
        env!("CARGO_PKG_VERSION")
    );
    assert!(written.contains(&info), "{written}");
    // Servers before 7.2 do not know `CLIENT SETINFO`.
    assert_eq!(states(&world), [ready(&[])]);
}

#[test]
fn a_server_without_hello_gets_a_password_in_a_second_flight_and_speaks_resp_2() {
    let mut world = greeted_by("redis://:secret@a/5", |master| {
        master.server.set_knows_hello(false);
        master.server.set_password(Some("secret"));
    });
    assert_eq!(world.nodes[0].writes[0], 2);
    assert!(world.masters[0].count("AUTH") == 1 && world.masters[0].count("CLIENT") == 5);
    assert_eq!(states(&world), [ready(&[])]);
    // The server's nulls are those of RESP 2.
    world.masters[0].server.hold(5, super::world::KEY.as_bytes(), b"another's token", None);
    world.acquire(&one_try());
    let error = world.refusal();
    assert!(matches!(error, AcquireError::HeldByAnother(_)), "{error}");
}

#[test]
fn a_wrong_password_is_distinguished_with_and_without_hello() {
    for knows_hello in [true, false] {
        let world = greeted_by("redis://:wrong@a", |master| {
            master.server.set_knows_hello(knows_hello);
            master.server.set_password(Some("secret"));
        });
        assert_eq!(states(&world), [MasterState::Down(Cause::Server(ServerError::WrongPass))]);
    }
}

#[test]
fn any_plain_error_to_auth_counts_as_a_wrong_password_as_in_redis_5() {
    for text in ["ERR invalid password", "ERR no"] {
        let world = greeted_by("redis://:wrong@a", |master| {
            master.server.set_knows_hello(false);
            master.fails("AUTH", text);
        });
        assert_eq!(states(&world), [MasterState::Down(Cause::Server(ServerError::WrongPass))], "{text}");
    }
}

#[test]
fn a_server_without_a_usable_login_is_reported_with_what_to_do() {
    assert_eq!(states(&World::cold(settings(1))), [MasterState::Opening]);
    for (text, error, advice) in [
        (
            "DENIED Redis is running in protected mode because protected mode is enabled",
            ServerError::Denied,
            "is in protected mode: set a password or bind it to this network (DENIED)",
        ),
        (
            "ERR max number of clients reached",
            ServerError::MaxClients,
            "has no connection left: raise its maxclients",
        ),
    ] {
        let mut world = greeted_by("redis://a", |master| master.fails("HELLO", text));
        assert_eq!(states(&world), [MasterState::Down(Cause::Server(error))]);
        world.acquire(&one_try());
        let refusal = world.refusal().to_string();
        assert!(refusal.contains(advice), "{refusal}");
    }
}

#[test]
fn a_missing_database_is_reported() {
    let mut world =
        greeted_by("redis://a/99", |master| master.fails("SELECT", "ERR DB index is out of range"));
    assert_eq!(states(&world), [MasterState::Down(Cause::Server(ServerError::NoDatabase))]);
    world.acquire(&one_try());
    let error = world.refusal();
    assert!(matches!(error, AcquireError::Misconfigured(_)), "{error}");
    assert!(error.to_string().contains("has no database of this number: change it in the URL"), "{error}");
}

#[test]
fn a_missing_password_is_reported() {
    let world = greeted_by("redis://a", |master| master.server.set_password(Some("secret")));
    assert_eq!(states(&world), [MasterState::Down(Cause::Server(ServerError::NoAuth))]);
    assert_eq!(world.nodes[0].writes[0], 1, "there is nothing to try in a second flight");
}

#[test]
fn a_server_that_asks_for_the_password_before_it_looks_at_hello_gets_it_in_a_second_flight() {
    let mut world = greeted_by("redis://:secret@a", |master| {
        master.fails("HELLO", "NOAUTH Authentication required.");
        master.server.set_password(Some("secret"));
    });
    assert_eq!(states(&world), [ready(&[])]);
    assert_eq!(world.nodes[0].writes[0], 2);
    world.hold(&one_try());
}

#[test]
fn a_denied_optional_command_is_a_warning() {
    let noperm = "NOPERM this user has no permissions to run this command";
    let world = greeted_by("redis://a", |master| master.fails("CLIENT", noperm));
    assert_eq!(states(&world), [ready(&[])], "nothing depends on the name of the library");
    for (command, warning) in [
        ("HELLO", Warning::HelloDenied),
        ("INFO", Warning::InfoDenied),
        ("SCRIPT", Warning::ScriptLoadDenied),
    ] {
        let mut world = greeted_by("redis://a", |master| master.fails(command, noperm));
        assert_eq!(states(&world), [ready(&[warning])]);
        let lock = world.hold(&one_try());
        world.release(lock);
        world.pump();
        assert!(world.holders().is_empty(), "with {command} denied");
    }
    let world = greeted_by("redis://a", |master| {
        master.server.set_knows_hello(false);
        master.fails("CLIENT", noperm);
    });
    assert_eq!(states(&world), [ready(&[Warning::ClientDenied])]);
}

/// A master whose database 5 has the restart guard's marker of other clients.
fn marked(master: &mut super::world::Master) {
    master.server.hold(5, Fleet::MARKER.as_bytes(), b"id 1 2 60000 3", None);
}

#[test]
fn a_client_without_the_restart_guard_is_warned_of_a_marker_in_its_database_and_still_gets_votes() {
    for knows_hello in [true, false] {
        let mut world = greeted_by("redis://a/5", |master| {
            master.server.set_knows_hello(knows_hello);
            marked(master);
        });
        assert_eq!(states(&world), [ready(&[Warning::NoRestartGuard])]);
        world.hold(&one_try());
    }
    assert_eq!(states(&greeted_by("redis://a/4", marked)), [ready(&[])]);
}

#[test]
fn a_marker_that_is_written_later_is_noticed_at_the_next_connection() {
    let mut world = greeted_by("redis://a/5", |_| ());
    world.each(marked);
    world.hold(&one_try());
    assert_eq!((states(&world), world.masters[0].count("GET")), (vec![ready(&[])], 1));
    world.cut(0, 0);
    world.pass(ms(50));
    assert_eq!(states(&world), [ready(&[Warning::NoRestartGuard])]);
}

#[test]
fn a_marker_that_cannot_be_read_causes_no_warning_and_keeps_no_master_from_voting() {
    for text in [
        "NOPERM this user has no permissions to access one of the keys used as arguments",
        "WRONGTYPE Operation against a key holding the wrong kind of value",
    ] {
        let mut world = greeted_by("redis://a/5", |master| {
            marked(master);
            master.fails("GET", text);
        });
        assert_eq!(states(&world), [ready(&[])], "{text}");
        world.hold(&one_try());
    }
}

#[test]
fn a_replica_has_no_vote_whether_hello_or_info_reports_it() {
    for knows_hello in [true, false] {
        let world = greeted_by("redis://a", |master| {
            master.server.set_knows_hello(knows_hello);
            master.server.set_replica(true);
        });
        assert_eq!(states(&world), [MasterState::Down(Cause::Replica)]);
    }
    // One of the two reports is enough.
    let noperm = "NOPERM this user has no permissions to run this command";
    for denied in ["INFO", "HELLO"] {
        let world = greeted_by("redis://a", |master| {
            master.server.set_replica(true);
            master.fails(denied, noperm);
        });
        assert_eq!(states(&world), [MasterState::Down(Cause::Replica)], "without {denied}");
    }
}

#[test]
fn a_replica_is_asked_seldom_whether_it_has_become_a_master() {
    let mut world = greeted_by("redis://a", |master| master.server.set_replica(true));
    world.pass(ms(20_000));
    assert!((8..=11).contains(&world.nodes[0].opened[0]), "{} connections", world.nodes[0].opened[0]);
    world.masters[0].server.set_replica(false);
    world.pass(ms(2_500));
    assert_eq!(states(&world), [ready(&[])]);
}

#[test]
fn one_server_behind_two_addresses_has_one_vote_and_the_error_names_both() {
    let mut world = World::cold(settings(3));
    world.masters[1].server = world.masters[0].server.clone();
    world.masters[2].reach = super::world::Reach::Refuses;
    world.acquire(&one_try());
    let error = world.refusal();
    let text = error.to_string();
    assert!(text.contains("b:6379 is the same server as a:6379"), "{text}");
    assert!(matches!(error, AcquireError::NoQuorum(_)), "{text}");
    assert_eq!(world.masters[1].count("SET"), 0, "it is not even asked");
}

#[test]
fn three_addresses_of_one_server_are_a_configuration_error() {
    let mut world = World::cold(settings(3));
    let server = world.masters[0].server.clone();
    world.each(|master| master.server.clone_from(&server));
    world.acquire(&one_try());
    let error = world.refusal();
    assert!(matches!(error, AcquireError::Misconfigured(_)), "{error}");
}

#[test]
fn a_server_that_is_loading_votes_when_it_has_loaded() {
    let mut world = World::cold(settings(1));
    world.masters[0].fails("SCRIPT", "LOADING Redis is loading the dataset in memory");
    world.pump();
    assert_eq!(states(&world), [MasterState::Down(Cause::Server(ServerError::Loading))]);
    world.masters[0].server.clear_failures();
    world.pass(ms(2_500));
    world.hold(&one_try());
}

#[test]
fn a_server_without_scripts_has_no_vote_and_a_proxy_without_script_load_has_one() {
    let greeted = |dialect| greeted_by("redis://a", |master| master.server.set_dialect(dialect));
    let world = greeted(Dialect::Garnet);
    assert_eq!(states(&world), [MasterState::Down(Cause::LacksCommand("EVAL"))]);
    let mut world = greeted(Dialect::Envoy);
    let warnings = [Warning::ClientDenied, Warning::InfoDenied, Warning::ScriptLoadDenied];
    assert_eq!(states(&world), [ready(&warnings)]);
    world.hold(&one_try());
}

#[test]
fn a_server_that_reports_no_replication_id_is_misconfigured_under_the_restart_guard() {
    for dialect in [Dialect::Enterprise, Dialect::Kvrocks] {
        let mut world = World::cold(Config::builder(["redis://a"]).restart_guard(ms(60_000)));
        world.each(|master| master.server.set_dialect(dialect));
        world.pump();
        let cause = Cause::Server(ServerError::NoReplicationId);
        assert_eq!(states(&world), [MasterState::Down(cause)]);
        let said = "reports no replication id, so the restart guard cannot work: use another server, or no restart guard";
        assert_eq!(cause.to_string(), said);
        world.acquire(&one_try());
        assert!(matches!(world.refusal(), AcquireError::Misconfigured(_)));
    }
}

#[test]
fn a_connection_that_ends_before_any_answer_has_its_own_error() {
    let mut world = World::cold(Config::builder(["redis://a"]));
    world.each(|master| master.flow = Flow::RepliesHeld);
    world.pump();
    world.cut(0, 0);
    assert_eq!(states(&world), [MasterState::Down(Cause::HungUp)]);
}
