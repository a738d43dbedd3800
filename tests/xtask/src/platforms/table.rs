//! The platforms, and what is claimed of each.

use Claim::{Built, Checked, Expected, No, Tested};

/// What is claimed of a part of the workspace on a platform.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Claim {
    /// The tests run there.
    Tested,
    /// It is compiled and linked for it.
    Built,
    /// Its types are checked for it. Nobody has run it there.
    Checked,
    /// It should run there, but it is not checked: this is why.
    Expected(&'static str),
    /// It does not run there: this is why.
    No(&'static str),
}

impl Claim {
    /// Its word in the table for users.
    pub(super) fn word(self) -> &'static str {
        match self {
            Tested => "tested",
            Built => "built",
            Checked => "type-checked",
            Expected(_) => "expected",
            No(_) => "no",
        }
    }
}

/// How claims are checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum How {
    /// By `.ci/run`.
    Ci,
    /// With the libraries' oldest Rust, for the machine itself.
    OldestRust,
    /// The same, with the lowest versions of dependencies that the manifests accept.
    LowestVersions,
    /// For the target of this name, with the sources of the standard library.
    Target {
        /// What zig calls the target, if it can compile C for it.
        zig: Option<&'static str>,
    },
}

/// A platform.
pub(super) struct Platform {
    /// Its name in `cargo xtask platforms NAME`: the name of its target, if it is one.
    pub(super) name: &'static str,
    /// Its name in the table for users.
    pub(super) about: &'static str,
    pub(super) how: How,
    /// Of the libraries.
    pub(super) packages: &'static [&'static str],
    /// The libraries without TLS.
    pub(super) libraries: Claim,
    /// The transports with TLS, with the cryptography of ring.
    pub(super) tls: Claim,
    /// The command `quorlock`, which has TLS.
    pub(super) command: Claim,
}

impl Platform {
    /// A platform that is checked for the target of this name, in all parts.
    const fn target(name: &'static str, about: &'static str, zig: &'static str) -> Self {
        let how = How::Target { zig: Some(zig) };
        Self { name, about, how, packages: &LIBRARIES, libraries: Checked, tls: Checked, command: Checked }
    }
}

/// All libraries, except that for TLS.
const LIBRARIES: [&str; 7] = [
    "quorlock-core",
    "quorlock-host",
    "quorlock-tokio",
    "quorlock-smol",
    "quorlock-blocking",
    "quorlock-embedded",
    "quorlock-sim",
];

const NO_HEADERS: Claim = Expected("ring compiles C, and zig has no headers of this system");
const ON_UNIX: Claim = No("the command is for Unix");
const WITHOUT_SOCKETS: Claim = No("this system has no sockets");

pub(super) const PLATFORMS: [Platform; 15] = [
    Platform {
        name: "x86_64-unknown-linux-gnu",
        about: "Linux, x86_64",
        how: How::Ci,
        packages: &LIBRARIES,
        libraries: Tested,
        tls: Tested,
        command: Tested,
    },
    Platform {
        name: "oldest-rust",
        about: concat!("the same, Rust ", env!("CARGO_PKG_RUST_VERSION")),
        how: How::OldestRust,
        packages: &LIBRARIES,
        libraries: Built,
        tls: Built,
        command: Built,
    },
    Platform {
        name: "lowest-versions",
        about: concat!(
            "the same, Rust ",
            env!("CARGO_PKG_RUST_VERSION"),
            ", lowest versions of dependencies"
        ),
        how: How::LowestVersions,
        packages: &LIBRARIES,
        libraries: Checked,
        tls: Checked,
        command: Checked,
    },
    Platform::target("aarch64-unknown-linux-gnu", "Linux, aarch64", "aarch64-linux-gnu"),
    Platform::target("armv7-unknown-linux-gnueabihf", "Linux, armv7", "arm-linux-gnueabihf"),
    Platform::target("i686-unknown-linux-gnu", "Linux, i686", "x86-linux-gnu"),
    Platform::target("s390x-unknown-linux-gnu", "Linux, s390x (big-endian)", "s390x-linux-gnu"),
    Platform::target("x86_64-unknown-linux-musl", "Linux with musl, x86_64", "x86_64-linux-musl"),
    Platform::target("aarch64-apple-darwin", "macOS, aarch64", "aarch64-macos"),
    Platform::target("x86_64-unknown-freebsd", "FreeBSD, x86_64", "x86_64-freebsd"),
    Platform {
        command: No("rustix, by which the command waits for processes, has no waitid there"),
        ..Platform::target("x86_64-unknown-openbsd", "OpenBSD, x86_64", "x86_64-openbsd")
    },
    Platform {
        how: How::Target { zig: None },
        tls: NO_HEADERS,
        command: NO_HEADERS,
        ..Platform::target("x86_64-unknown-illumos", "illumos, x86_64", "")
    },
    Platform {
        how: How::Target { zig: None },
        tls: Expected("ring compiles C, and zig has no headers of Microsoft's compiler"),
        command: ON_UNIX,
        ..Platform::target("x86_64-pc-windows-msvc", "Windows, x86_64, MSVC", "")
    },
    Platform {
        command: ON_UNIX,
        ..Platform::target("x86_64-pc-windows-gnu", "Windows, x86_64, GNU", "x86_64-windows-gnu")
    },
    Platform {
        how: How::Target { zig: None },
        packages: &["quorlock-core"],
        tls: WITHOUT_SOCKETS,
        command: WITHOUT_SOCKETS,
        ..Platform::target("wasm32-unknown-unknown", "WebAssembly, `quorlock-core` alone", "")
    },
];
