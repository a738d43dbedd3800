//! The model master answers as a real server does: the same random commands go to both, and every
//! reply is compared.

// Helpers of tests may panic, like the tests themselves.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, unreachable_pub)]

#[path = "differential/commands.rs"]
mod commands;
#[path = "differential/compare.rs"]
mod compare;
#[path = "differential/found.rs"]
mod found;
#[path = "differential/found_calls.rs"]
mod found_calls;
#[path = "differential/found_keys.rs"]
mod found_keys;
#[path = "differential/frames.rs"]
mod frames;
#[path = "differential/kinds.rs"]
mod kinds;
#[path = "differential/model.rs"]
mod model;
#[path = "differential/queue.rs"]
mod queue;
#[path = "differential/real.rs"]
mod real;
#[path = "differential/run.rs"]
mod run;
#[path = "differential/scripts.rs"]
mod scripts;
#[path = "differential/tracking.rs"]
mod tracking;
#[path = "differential/versions.rs"]
mod versions;

const COMMANDS_VARIABLE: &str = "QUORLOCK_DIFFERENTIAL_COMMANDS";
/// The number of commands in a run: enough for each script to succeed some tens of times.
const COMMANDS: u64 = 30_000;
const SEED_VARIABLE: &str = "QUORLOCK_DIFFERENTIAL_SEED";

fn setting(variable: &str, otherwise: u64) -> u64 {
    let Ok(text) = std::env::var(variable) else { return otherwise };
    text.parse().unwrap_or_else(|_| panic!("{variable} is no number: {text}"))
}

#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
fn the_model_master_answers_as_a_real_server_does() {
    let (seed, commands) = (setting(SEED_VARIABLE, 1), setting(COMMANDS_VARIABLE, COMMANDS));
    let report = run::compare(seed, commands);
    println!("{report}");
}

#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
fn the_model_master_notifies_readers_of_a_key_as_a_real_server_does() {
    let (seed, commands) = (setting(SEED_VARIABLE, 1), setting(COMMANDS_VARIABLE, COMMANDS) / 10);
    let report = tracking::compare(seed, commands);
    println!("{report}");
}

#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
fn every_script_does_what_the_model_does_with_whatever_it_finds() {
    println!("{} calls compared", found::compare());
}
