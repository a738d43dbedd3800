//! The binary of the command: static, with musl, so that it runs on every Linux, and in an empty
//! container.

use std::cell::OnceCell;
use std::env::consts::{ARCH, OS};
use std::fs;
use std::path::{Path, PathBuf};

use super::{megabytes, tell_size};
use crate::Outcome;
use crate::check::NotRun;
use crate::process::{cargo, program, read, run, target};

/// The profile of `Cargo.toml` with which it is built.
pub(super) const PROFILE: &str = "packed";
/// It must be smaller than this. Larger means that something has come in that the command does not
/// need: without the profile it has more than forty megabytes.
const LIMIT: u64 = 8_000_000;

/// The binary, which is built when it is first needed.
pub(super) struct Binary {
    built: OnceCell<PathBuf>,
}

impl Binary {
    pub(super) fn new() -> Self {
        Self { built: OnceCell::new() }
    }

    /// The file, which is small enough.
    pub(super) fn file(&self) -> Outcome<&Path> {
        if let Some(file) = self.built.get() {
            return Ok(file);
        }
        let file = build()?;
        tell_size(&file)?;
        let size = fs::metadata(&file)?.len();
        if size >= LIMIT {
            return Err(format!("it must be smaller than {}", megabytes(LIMIT)).into());
        }
        Ok(self.built.get_or_init(|| file))
    }
}

/// What Rust calls this machine with musl.
pub(super) fn triple() -> String {
    format!("{ARCH}-unknown-linux-musl")
}

/// Where cargo puts the binary.
pub(super) fn folder() -> PathBuf {
    target().join(triple()).join(PROFILE)
}

fn build() -> Outcome<PathBuf> {
    if OS != "linux" {
        return Err(NotRun("the static binary is for Linux, and is built there".into()).into());
    }
    // It compiles the cryptography of TLS, which is C and assembly.
    read(&mut program("musl-gcc", &["--version"]))
        .map_err(|_| NotRun("musl-gcc is not on PATH (apt-get install musl-tools)".into()))?;
    let triple = triple();
    if !has_library(&triple)? {
        run(&mut program("rustup", &["target", "add", &triple])).map_err(|error| {
            NotRun(format!("musl's standard library is missing, and rustup could not add it: {error}"))
        })?;
    }
    run(cargo(&["build", "--locked", "--profile", PROFILE, "--package", "quorlock", "--target", &triple])
        // Nothing of a build for users must depend on what a developer's shell sets.
        .env_remove("RUSTFLAGS")
        .env("CARGO_INCREMENTAL", "0"))?;
    Ok(folder().join("quorlock"))
}

/// Whether the compiler has the standard library for this target.
fn has_library(triple: &str) -> Outcome<bool> {
    let folder = read(&mut program("rustc", &["--print", "target-libdir", "--target", triple]))?;
    Ok(fs::read_dir(folder.trim()).is_ok_and(|mut files| files.next().is_some()))
}
