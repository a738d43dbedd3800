//! Sets a flag for the tests if there is no PostgreSQL here: tests that need it are then ignored,
//! and do not count as passed.

// A build script gives cargo instructions by printing them.
#![allow(clippy::print_stdout)]

#[path = "src/binaries.rs"]
mod binaries;

fn main() {
    println!("cargo::rustc-check-cfg=cfg(no_postgres)");
    println!("cargo::rerun-if-env-changed=PATH");
    if let Some(folder) = binaries::folder() {
        println!("cargo::rerun-if-changed={}", folder.join("postgres").display());
        return;
    }
    println!("cargo::rustc-cfg=no_postgres");
    // A server that is installed later must be found, so this script then runs again.
    for folder in binaries::watched() {
        println!("cargo::rerun-if-changed={}", folder.display());
    }
}
