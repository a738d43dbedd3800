//! The model master, see `src/master.rs`.

#![no_main]

#[path = "../src/input.rs"]
#[allow(dead_code)]
mod input;
#[path = "../src/master.rs"]
mod master;
#[path = "../src/memory.rs"]
mod memory;

libfuzzer_sys::fuzz_target!(|input: &[u8]| memory::bounded(input, master::run));
