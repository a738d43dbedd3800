//! Passes the fuzzer's corpus through the machine and the model master, without a fuzzer. The tests
//! with the guard's corpus are in `core/src/wire/corpus_tests.rs`.

// Helpers of tests may panic, like the tests themselves.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

#[path = "../../../tests/fuzz/src/connection.rs"]
mod connection;
#[path = "../../../tests/fuzz/src/events.rs"]
mod events;
#[path = "../../../tests/fuzz/src/input.rs"]
mod input;
#[path = "../../../tests/fuzz/src/master.rs"]
mod master;
#[path = "../../../tests/fuzz/src/node.rs"]
mod node;
#[path = "../../../tests/fuzz/src/replay.rs"]
mod replay;

#[test]
fn a_machine_withstands_the_corpus_and_mutations_of_it() {
    replay::replay("connection", 500, connection::run);
}

#[test]
fn a_model_master_withstands_the_corpus_and_mutations_of_it() {
    replay::replay("master", 500, master::run);
}
