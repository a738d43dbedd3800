//! `cargo xtask dist`: what users install.

mod archive;
mod binary;
mod crates;
mod debian;
mod empty_root;
mod image;
mod names;
mod pages;

use std::fs;
use std::path::{Path, PathBuf};

use crate::Outcome;
use crate::check::NotRun;
use crate::process::target;
use binary::Binary;

const HELP: &str = "\
Makes what users install, below the target folder, and checks it.

cargo xtask dist            makes all parts
cargo xtask dist PART ...   makes some
cargo xtask dist --list     lists them

All parts but the crates have the same binary: static, with musl, stripped. It needs rustup, which
adds musl's standard library, and musl-gcc. A part whose tool is missing is reported as not run; if it
was named, it is an error.

Examples:
  cargo xtask dist
  cargo xtask dist archive deb
  tar -xzf target/dist/quorlock-*.tar.gz";

/// The version of the command, which is that of the workspace.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Something that users install.
struct Part {
    name: &'static str,
    about: &'static str,
    make: fn(&Binary) -> Outcome,
}

const PARTS: [Part; 5] = [
    Part {
        name: "binary",
        about: "the static binary, which runs in an empty root and finds names there",
        make: empty_root::check,
    },
    Part {
        name: "archive",
        about: "a tar.gz of it with completions, manual pages and licences",
        make: archive::make,
    },
    Part { name: "deb", about: "a package of Debian with the same, made by cargo-deb", make: debian::make },
    Part { name: "image", about: "the root of the image that the Dockerfile describes", make: image::make },
    Part {
        name: "crates",
        about: "the archive of each crate, which is built alone with the others' archives",
        make: crates::make,
    },
];

pub(crate) fn run(words: &[&str]) -> Outcome {
    match words {
        ["-h" | "--help"] => println!("{HELP}"),
        ["--list"] => PARTS.iter().for_each(|part| println!("{:<8} {}", part.name, part.about)),
        [empty_root::INSIDE, root] => return empty_root::inside(Path::new(root)),
        _ => return make(words),
    }
    Ok(())
}

fn make(names: &[&str]) -> Outcome {
    if let Some(unknown) = names.iter().find(|name| !PARTS.iter().any(|part| part.name == **name)) {
        return Err(format!("there is no part {unknown:?}; cargo xtask dist --list lists them").into());
    }
    fs::create_dir_all(folder())?;
    let binary = Binary::new();
    let mut not_run = Vec::new();
    for part in PARTS.iter().filter(|part| names.is_empty() || names.contains(&part.name)) {
        println!("\n== {}: {}", part.name, part.about);
        match (part.make)(&binary) {
            Ok(()) => {}
            Err(error) if names.is_empty() && error.is::<NotRun>() => {
                println!("{error}");
                not_run.push(format!("{}: {error}", part.name));
            }
            Err(error) => return Err(format!("{}: {error}", part.name).into()),
        }
    }
    not_run.iter().for_each(|part| println!("{part}"));
    Ok(())
}

/// Where the files for users are.
fn folder() -> PathBuf {
    target().join("dist")
}

/// An empty folder for a check or for what goes into an archive.
fn empty(name: &str) -> Outcome<PathBuf> {
    let folder = folder().join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// Prints how large a file is.
fn tell_size(file: &Path) -> Outcome {
    let name = file.strip_prefix(target()).unwrap_or(file);
    println!("{}: {}", name.display(), megabytes(fs::metadata(file)?.len()));
    Ok(())
}

fn megabytes(bytes: u64) -> String {
    let tenths = (bytes + 50_000) / 100_000;
    format!("{}.{} MB", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_rounded_to_a_tenth_of_a_megabyte() {
        let sizes = [49_999, 50_000, 4_264_904, 7_950_000].map(megabytes);
        assert_eq!(sizes, ["0.0 MB", "0.1 MB", "4.3 MB", "8.0 MB"]);
    }

    #[test]
    fn the_help_names_only_parts_that_exist() {
        let examples = HELP.lines().filter_map(|line| line.strip_prefix("  cargo xtask dist "));
        for name in examples.flat_map(str::split_whitespace) {
            assert!(PARTS.iter().any(|part| part.name == name), "{name}");
        }
    }
}
