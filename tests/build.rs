//! Sets a flag for the tests if there is no real server here: tests that need one are then ignored,
//! and do not count as passed.

// A build script gives cargo instructions by printing them.
#![allow(clippy::print_stdout)]

use std::env;

fn main() {
    println!("cargo::rustc-check-cfg=cfg(no_real_server)");
    println!("cargo::rerun-if-env-changed=PATH");
    let path = env::var_os("PATH").unwrap_or_default();
    let directories: Vec<_> = env::split_paths(&path).collect();
    if let Some(server) = directories.iter().map(|each| each.join("redis-server")).find(|file| file.is_file())
    {
        println!("cargo::rerun-if-changed={}", server.display());
        return;
    }
    // The variable matters only if there is no redis-server on PATH.
    println!("cargo::rerun-if-env-changed=QUORLOCK_TEST_SERVER");
    if !env::var_os("QUORLOCK_TEST_SERVER").is_some_and(|named| !named.is_empty() && named != "embedded") {
        println!("cargo::rustc-cfg=no_real_server");
        // A server that is installed later must be found, so this script then runs again.
        for directory in directories.iter().filter(|each| each.is_dir()) {
            println!("cargo::rerun-if-changed={}", directory.display());
        }
    }
}
