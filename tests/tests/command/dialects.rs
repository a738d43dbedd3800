//! The messages to a user on servers and proxies without some features of Redis, word by word.

use quorlock_embedded::{Dialect, Masters};

use crate::running::{Ended, JOB, Running, SHOW, quorlock};

/// Runs the command with these words, over masters that lack the features of their dialect.
#[track_caller]
fn told(masters: &Masters, words: &[&str]) -> Ended {
    let mut command = quorlock(words);
    Running::of(command.env("QUORLOCK_MASTERS", masters.urls().join(","))).end()
}

/// Runs a single try, without and with the restart guard. Masters have a second for it, and on a
/// busy machine that may pass before they get to run. Then it is run again.
#[track_caller]
fn tries(masters: &Masters) -> [Ended; 2] {
    let run = |options: &[&str]| {
        let words = [&["run", "-n"], options, &[JOB, "--"], &SHOW].concat();
        let mut ended = (0..5).map(|_| told(masters, &words));
        ended.find(|ended| !ended.err.contains("no connection in 1 s")).expect("masters that answer in time")
    };
    [run(&[]), run(&["--restart-guard", "1m"])]
}

/// The lines of `quorlock doctor` about what does not hold or is not known, with `a` and `b` for
/// the masters.
#[track_caller]
fn complaints(masters: &Masters) -> String {
    let mut out = told(masters, &["doctor", "--restart-guard", "1m"]).out;
    for (name, master) in ["a", "b"].iter().zip(masters.iter()) {
        out = out.replace(&master.address().to_string(), name);
    }
    let is_complaint = |line: &&str| line.contains("  DOES NOT HOLD: ") || line.contains("  not known: ");
    out.lines().filter(is_complaint).map(|line| format!("{line}\n")).collect()
}

/// Each master's complaint after its name.
fn each(masters: &Masters, complaint: &str) -> String {
    let all: Vec<_> = masters.iter().map(|master| format!("{} {complaint}", master.address())).collect();
    all.join(", ")
}

#[test]
fn without_a_replication_id_there_is_no_restart_guard() {
    let masters = Masters::like(2, Dialect::Enterprise).unwrap();
    let [plain, guarded] = tries(&masters);
    assert_eq!((plain.code, plain.err.as_str()), (Some(0), ""));
    assert_eq!(guarded.code, Some(64), "{}", guarded.err);
    let said = "reports no replication id, so the restart guard cannot work: use another server, or no restart guard";
    assert!(guarded.err.contains(said), "{}", guarded.err);
    let bootstrap = told(&masters, &["bootstrap", "--restart-guard", "1m"]);
    let complaint = each(&masters, said);
    let expected = format!("quorlock: all masters must answer, and these did not: {complaint}\n");
    assert_eq!((bootstrap.code, bootstrap.err), (Some(64), expected));
    assert_eq!(
        complaints(&masters),
        "\
availability       DOES NOT HOLD: reports no replication id, so the restart guard cannot work: a, b
restarts           DOES NOT HOLD: reports no replication id, so the restart guard cannot work: a, b
restart guard      DOES NOT HOLD: reports no replication id, so the restart guard cannot work: a, b
fencing            DOES NOT HOLD: reports no replication id, so the restart guard cannot work: a, b
"
    );
}

#[test]
fn without_notifications_waiters_ask_again() {
    let masters = Masters::like(2, Dialect::Kvrocks).unwrap();
    let [plain, guarded] = tries(&masters);
    assert_eq!((plain.code, guarded.code), (Some(0), Some(64)), "{}{}", plain.err, guarded.err);
    let unknown = "does not know a command that Quorlock needs";
    let expected = format!(
        "wake-ups           DOES NOT HOLD: does not notify waiters, which retry after retry_delay: a ({unknown}), b ({unknown})\n"
    );
    assert!(complaints(&masters).ends_with(&expected), "{}", complaints(&masters));
}

/// Clients do not ask such a server to notify them, although it would.
#[test]
fn notifications_of_a_version_that_clients_do_not_use_are_none() {
    let masters = Masters::start(2).unwrap();
    assert!(!complaints(&masters).contains("wake-ups"), "{}", complaints(&masters));
    masters.iter().for_each(|master| master.model(|model| model.set_version("7.0.4")));
    let echoes = "this version also notifies them of their own requests";
    let expected = format!(
        "wake-ups           DOES NOT HOLD: does not notify waiters, which retry after retry_delay: a ({echoes}), b ({echoes})\n"
    );
    assert!(complaints(&masters).ends_with(&expected), "{}", complaints(&masters));
    let whole = told(&masters, &["doctor"]).out;
    assert!(whole.contains("- update the server, to Redis 6.2.8, 7.0.5 or later\n"), "{whole}");
    assert_eq!(whole.matches(&format!("does not notify waiters: {echoes}\n")).count(), 2, "{whole}");
}

/// Not even a plain lock is granted, because it could never be released.
#[test]
fn without_scripts_nothing_is_granted() {
    const UNKNOWN: &str = "does not know the command EVAL, which this lock needs: do not rename or remove it";
    let masters = Masters::like(2, Dialect::Garnet).unwrap();
    let complaint = each(&masters, UNKNOWN);
    for tried in tries(&masters) {
        let expected = format!("quorlock: job not acquired: 0 of 2 votes, 2 needed ({complaint})\n");
        assert_eq!((tried.code, tried.out.as_str()), (Some(64), ""));
        assert!(tried.err == expected || tried.err.contains("not waited for"), "{}", tried.err);
    }
    for master in masters.iter() {
        assert_eq!(master.model(|model| model.keys(quorlock_embedded::now()).count()), 0);
    }
    let status = told(&masters, &["status", JOB]);
    assert_eq!(status.code, Some(64), "{}", status.out);
    assert_eq!(status.out.matches(&format!("{UNKNOWN}\n")).count(), 2);
    let expected = "availability       DOES NOT HOLD: does not know: a (EVAL, EVALSHA), b (EVAL, EVALSHA)\n";
    assert!(complaints(&masters).starts_with(expected), "{}", complaints(&masters));
}

#[test]
fn behind_a_proxy_without_hello_and_info_promises_cannot_be_checked() {
    let masters = Masters::like(2, Dialect::Envoy).unwrap();
    let [plain, guarded] = tries(&masters);
    assert_eq!((plain.code, plain.err.as_str()), (Some(0), ""));
    assert_eq!(guarded.code, Some(69), "{}", guarded.err);
    let told = complaints(&masters);
    for expected in [
        "exclusion          not known: INFO is not reported: a, b\n",
        "failover           not known: INFO is not reported: a, b\n",
    ] {
        assert!(told.contains(expected), "{told}");
    }
}

#[test]
fn a_proxy_that_hangs_up_is_distinguished_from_a_server_that_went() {
    let masters = Masters::like(2, Dialect::Twemproxy).unwrap();
    let complaint =
        "closed before any answer: is this a TLS port (use rediss://), or a proxy that hides the server?";
    for tried in tries(&masters) {
        assert_eq!(tried.code, Some(69), "{}", tried.err);
        assert!(tried.err.contains(complaint), "{}", tried.err);
    }
    let status = told(&masters, &["status", JOB]);
    assert_eq!((status.code, status.out.matches(complaint).count()), (Some(69), 2), "{}", status.out);
    let doctor = told(&masters, &["doctor"]);
    assert_eq!(doctor.code, Some(69), "{}", doctor.out);
    // The complaint is printed for each of three masters, and for the promise that depends on them.
    assert_eq!(doctor.out.matches(complaint).count(), 4, "{}", doctor.out);
}
