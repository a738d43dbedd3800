//! Where the programs of PostgreSQL are.

use std::path::PathBuf;
use std::{env, fs, iter};

/// Where Debian and Ubuntu have a folder for each version. Its programs are not on `PATH`.
const VERSIONS: &str = "/usr/lib/postgresql";

/// A folder with the programs `initdb` and `postgres`: that of the newest version, or else one on
/// `PATH`.
pub(crate) fn folder() -> Option<PathBuf> {
    let mut versions: Vec<_> = fs::read_dir(VERSIONS).into_iter().flatten().flatten().collect();
    versions.sort_by_key(|version| version.file_name().to_string_lossy().parse::<u32>().ok());
    let newest_first = versions.iter().rev().map(|version| version.path().join("bin"));
    let mut folders = newest_first.chain(on_path());
    folders.find(|folder| ["initdb", "postgres"].iter().all(|program| folder.join(program).is_file()))
}

/// The folders in which something appears when PostgreSQL is installed.
#[allow(dead_code, reason = "the build script alone asks for them")]
pub(crate) fn watched() -> impl Iterator<Item = PathBuf> {
    // Debian's packages also put programs into a folder on PATH.
    iter::once(VERSIONS.into()).chain(on_path()).filter(|folder| folder.is_dir())
}

fn on_path() -> Vec<PathBuf> {
    env::split_paths(&env::var_os("PATH").unwrap_or_default()).collect()
}
