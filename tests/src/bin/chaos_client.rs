//! A client of `quorlock_tests::chaos`, for tests that start it as a separate process.

fn main() {
    quorlock_tests::chaos::client::main_of_process()
}
