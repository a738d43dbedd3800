//! The path of the command: it belongs to another package, so cargo does not provide it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::SystemTime;

const VARIABLE: &str = "QUORLOCK_BIN";

/// The binary that the environment names, or else the one beside this test, where `cargo test
/// --workspace` puts it. If that is missing or older than its sources, it is built there now.
pub(crate) fn quorlock() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(find)
}

fn find() -> PathBuf {
    if let Some(named) = std::env::var_os(VARIABLE) {
        let named = PathBuf::from(named);
        return named
            .canonicalize()
            .unwrap_or_else(|error| panic!("{VARIABLE} names {}: {error}", named.display()));
    }
    let test = std::env::current_exe().expect("the system knows what runs");
    // <target directory>/<profile>/deps/<test>
    let profile = test.parent().and_then(Path::parent).expect("cargo puts tests into a directory");
    let binary = profile.join(format!("quorlock{}", std::env::consts::EXE_SUFFIX));
    if !is_fresh(&binary) {
        build(profile);
        assert!(binary.is_file(), "cargo built no {}; name one in {VARIABLE}", binary.display());
    }
    binary
}

/// Whether the binary is there, and no older than any of the sources that cargo lists beside it.
fn is_fresh(binary: &Path) -> bool {
    let modified = |file: &Path| fs::metadata(file).and_then(|file| file.modified()).ok();
    let Some(built) = modified(binary) else { return false };
    let Ok(list) = fs::read_to_string(binary.with_extension("d")) else { return false };
    // In the format of make: `<binary>: <source> <source> …`, with a backslash before a space in a
    // name.
    let sources = list.split_once(": ").map_or("", |(_, sources)| sources).replace("\\ ", "\0");
    sources
        .split_whitespace()
        .map(|source| PathBuf::from(source.replace('\0', " ")))
        .all(|source| modified(&source).unwrap_or(SystemTime::UNIX_EPOCH) <= built)
}

/// Builds the binary. Tests that run at the same time, each in its own process, wait here for each
/// other, because cargo locks the directory.
fn build(profile: &Path) {
    let target = profile.parent().expect("a profile's directory is in the target directory");
    let name = match profile.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(name) => name,
    };
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.toml");
    let output = Command::new(cargo)
        .args(["build", "--quiet", "--package", "quorlock", "--bin", "quorlock"])
        .args(["--profile", name])
        .arg("--target-dir")
        .arg(target)
        .arg("--manifest-path")
        .arg(manifest)
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|error| panic!("cargo cannot build the command ({error}); name one in {VARIABLE}"));
    assert!(
        output.status.success(),
        "cargo cannot build the command; name one in {VARIABLE}:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
