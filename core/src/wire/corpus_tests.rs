//! Passes the fuzzer's corpus through the guard (the scanner with the decoder), without a fuzzer.

#[path = "../../../tests/fuzz/src/guard.rs"]
mod guard;
#[path = "../../../tests/fuzz/src/input.rs"]
#[allow(dead_code)]
mod input;
#[path = "../../../tests/fuzz/src/oracle.rs"]
mod oracle;
#[path = "../../../tests/fuzz/src/replay.rs"]
mod replay;

#[test]
fn the_guard_withstands_the_corpus_and_mutations_of_it() {
    replay::replay("wire", 1_000, guard::run);
}
