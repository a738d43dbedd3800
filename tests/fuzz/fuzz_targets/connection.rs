//! A machine and its connections, see `src/connection.rs`.

#![no_main]

#[path = "../src/connection.rs"]
mod connection;
#[path = "../src/events.rs"]
mod events;
#[path = "../src/input.rs"]
mod input;
#[path = "../src/memory.rs"]
mod memory;
#[path = "../src/node.rs"]
mod node;

libfuzzer_sys::fuzz_target!(|input: &[u8]| memory::bounded(input, connection::run));
