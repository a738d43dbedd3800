//! Sets a flag for the tests if there is no PostgreSQL here: tests that need it are then ignored,
//! and do not count as passed.

// A build script gives cargo instructions by printing them.
#![allow(clippy::print_stdout)]

#[path = "src/binaries.rs"]
mod binaries;

fn main() {
    println!("cargo::rustc-check-cfg=cfg(no_postgres)");
    println!("cargo::rerun-if-env-changed=PATH");
    // A server that is installed or removed later must be noticed, so this script then runs again.
    for folder in binaries::folders() {
        println!("cargo::rerun-if-changed={}", folder.display());
    }
    if binaries::folder().is_none() {
        println!("cargo::rustc-cfg=no_postgres");
    }
}
