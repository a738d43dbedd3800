//! The tools that check platforms: the libraries' oldest Rust with the sources of its standard
//! library, and a C compiler for other systems.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::debian;
use crate::Outcome;
use crate::pip::environment;
use crate::process::{program, root, run, target};

/// The libraries' `rust-version`.
const RUST: &str = env!("CARGO_PKG_RUST_VERSION");
/// The version of zig, as PyPI's package of it, that compiles C for the targets of the table.
const ZIG: &str = "0.17.1";

/// Where everything is that this command makes.
pub(super) fn folder() -> PathBuf {
    target().join("platforms")
}

/// A version of Rust that has the sources of its standard library.
pub(super) struct Rust {
    pub(super) cargo: PathBuf,
    pub(super) rustc: PathBuf,
}

impl Rust {
    /// The libraries' oldest Rust: the one on PATH, or of rustup, or else one of Debian that is
    /// unpacked into the target folder.
    pub(super) fn find() -> Result<Self, String> {
        let on_path = Self { cargo: "cargo".into(), rustc: "rustc".into() };
        let there = [Some(on_path), Self::of_rustup(), Some(debian::unpacked())];
        if let Some(rust) = there.into_iter().flatten().find(Self::is_right) {
            return Ok(rust);
        }
        let error = match Self::install().map(|()| Self::of_rustup()) {
            Ok(Some(rust)) if rust.is_right() => return Ok(rust),
            Ok(_) => "rustup installed something else".to_owned(),
            Err(error) => error.to_string(),
        };
        debian::unpack().map_err(|unpack| {
            format!(
                "Rust {RUST} with rust-src is missing (rustup toolchain install {RUST} --component \
                 rust-src), and could not be fetched: {error}; {unpack}"
            )
        })?;
        let rust = debian::unpacked();
        if rust.is_right() { Ok(rust) } else { Err(format!("Debian's Rust is not {RUST} any more")) }
    }

    fn of_rustup() -> Option<Self> {
        let which = |name| said(&mut program("rustup", &["which", "--toolchain", RUST, name]));
        Some(Self { cargo: which("cargo")?.into(), rustc: which("rustc")?.into() })
    }

    fn install() -> Outcome {
        if said(&mut program("rustup", &["--version"])).is_none() {
            return Err("there is no rustup".into());
        }
        println!("installing Rust {RUST} with rustup");
        let words = ["toolchain", "install", RUST, "--profile", "minimal", "--component", "rust-src"];
        run(&mut program("rustup", &words))
    }

    /// Whether it is the version that we want, with the sources of the standard library.
    fn is_right(&self) -> bool {
        let says = |word| said(Command::new(&self.rustc).arg(word));
        let sysroot = || said(Command::new(&self.rustc).args(["--print", "sysroot"]));
        says("--version").is_some_and(|version| version.starts_with(&format!("rustc {RUST}.")))
            && sysroot().is_some_and(|path| Path::new(&path).join("lib/rustlib/src/rust/library").exists())
    }

    /// Its cargo, with the options of unstable Rust.
    pub(super) fn cargo(&self) -> Command {
        let mut cargo = Command::new(&self.cargo);
        cargo.current_dir(root()).env("RUSTC", &self.rustc).env("RUSTC_BOOTSTRAP", "1");
        cargo.env("CARGO_TARGET_DIR", folder().join("build"));
        // What helps the next build and a debugger takes space for each platform.
        cargo.envs([("CARGO_INCREMENTAL", "0"), ("CARGO_PROFILE_DEV_DEBUG", "none")]);
        cargo
    }
}

/// What a command prints, if it is there and succeeds.
fn said(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}

/// Writes a script that can be run.
pub(super) fn script(path: &Path, line: &str) -> Outcome {
    fs::create_dir_all(path.parent().ok_or("a script is in a folder")?)?;
    fs::write(path, format!("#!/bin/sh\nexec {line} \"$@\"\n"))?;
    Ok(fs::set_permissions(path, fs::Permissions::from_mode(0o755))?)
}

/// What Rust calls to make import libraries of Windows, which the standard library has.
const DLLTOOL: &str = "x86_64-w64-mingw32-dlltool";

/// A C compiler for many systems.
pub(super) struct Zig {
    /// The command, as words.
    zig: String,
    /// The folders of programs, with its `dlltool`.
    path: OsString,
}

impl Zig {
    pub(super) fn find() -> Result<Self, String> {
        Self::install().map_err(|error| format!("zig could not be installed with pip ({error})"))
    }

    fn install() -> Outcome<Self> {
        let python = environment("ziglang", ZIG)?.join("bin/python");
        let zig = format!("{} -m ziglang", python.display());
        let programs = folder().join("bin");
        script(&programs.join(DLLTOOL), &format!("{zig} dlltool"))?;
        let others = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths(std::iter::once(programs).chain(std::env::split_paths(&others)))?;
        Ok(Self { zig, path })
    }

    /// Makes build scripts use it for this target.
    pub(super) fn compile(&self, cargo: &mut Command, target: &str, zig_target: &str) {
        let (zig, target) = (&self.zig, target.replace('-', "_"));
        cargo.env(format!("CC_{target}"), format!("{zig} cc -target {zig_target}"));
        cargo.env(format!("AR_{target}"), format!("{zig} ar"));
        // One of the defaults is the name of the target, and zig has other names.
        cargo.env("CRATE_CC_NO_DEFAULTS", "1");
        cargo.env("ZIG_GLOBAL_CACHE_DIR", folder().join("zig")).env("PATH", &self.path);
    }
}
