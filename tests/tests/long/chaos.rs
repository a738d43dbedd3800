//! A minute of chaos on real servers; `cargo xtask chaos` runs longer.

use std::time::Duration;

use quorlock_tests::chaos::{Figures, Program, Run, checker, history};

#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
fn no_promise_is_broken_in_a_minute_of_chaos() {
    let seed = std::env::var("QUORLOCK_CHAOS_SEED").map_or(1, |seed| seed.parse().unwrap());
    let directory = tempfile::tempdir().unwrap();
    let run = Run {
        span: Duration::from_secs(50),
        seed,
        masters: 5,
        clients: 8,
        guard: true,
        history: directory.path().join("history"),
        program: Program { path: env!("CARGO_BIN_EXE_chaos_client").into(), arguments: Vec::new() },
    };

    let outcome = run.go();

    let events = history::read(&run.history).unwrap();
    let violations = checker::check(&events);
    eprintln!("seed {seed}, {}", Figures::of(&events));
    if outcome.is_err() || !violations.is_empty() {
        // The directory is kept, so that `chaos --check` can read the history.
        eprintln!("the history is kept in {}", directory.keep().display());
    }
    outcome.unwrap();
    assert_eq!(violations, []);
    let grants = Figures::of(&events).grants;
    assert!(grants > 0, "nothing was granted");
}
