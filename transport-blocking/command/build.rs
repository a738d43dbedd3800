//! Refuses systems that are not Unix with one line, before the compiler finds every system call
//! that they do not have.
#![allow(clippy::print_stdout)]

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var_os("CARGO_CFG_UNIX").is_none() {
        println!(
            "cargo::error=the command `quorlock` is for Unix: it needs signals and process groups; the \
             libraries, such as quorlock-tokio, are for Windows, too"
        );
    }
}
