//! The wire guard, see `src/guard.rs`.

#![no_main]

#[path = "../src/guard.rs"]
mod guard;
#[path = "../src/input.rs"]
#[allow(dead_code)]
mod input;
#[path = "../src/memory.rs"]
mod memory;
#[path = "../src/oracle.rs"]
mod oracle;
// The guard is not part of the core's interface, so its sources are compiled here again.
#[path = "../../../core/src/wire/mod.rs"]
#[allow(dead_code, unused_imports)]
mod wire;

libfuzzer_sys::fuzz_target!(|input: &[u8]| memory::bounded(input, guard::run));
