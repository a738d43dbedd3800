//! The archive: one folder with the binary and what belongs to it.

use std::env::consts::ARCH;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::binary::Binary;
use super::pages::{self, LICENCES};
use super::{VERSION, empty, folder, tell_size};
use crate::Outcome;
use crate::process::{program, read, root, run};

/// What must be in it. The names of manual pages are those of subcommands.
const EXPECTED: [&str; 10] = [
    "quorlock",
    "README.md",
    "CHANGELOG.md",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "deploy/nightly-report.timer",
    "completions/bash/quorlock",
    "completions/fish/quorlock.fish",
    "completions/zsh/_quorlock",
    "man/man1/quorlock-run.1",
];

pub(super) fn make(binary: &Binary) -> Outcome {
    let quorlock = binary.file()?;
    let name = format!("quorlock-{VERSION}-{ARCH}-linux");
    let within = empty("archive")?;
    let content = within.join(&name);
    copy(&pages::write(quorlock)?, &content)?;
    fs::copy(quorlock, content.join("quorlock"))?;
    for licence in LICENCES {
        fs::copy(root().join(licence), content.join(licence))?;
    }
    let archive = folder().join(format!("{name}.tar.gz"));
    pack(&within, &archive)?;
    check(&archive, &name, quorlock)?;
    tell_size(&archive)
}

/// Packs the content of a folder. The archive of the same content at the same commit is the same,
/// byte by byte.
fn pack(content: &Path, archive: &Path) -> Outcome {
    let time = read(&mut program("git", &["log", "-1", "--format=%ct"]))?;
    let time = format!("--mtime=@{}", time.trim());
    let same = ["--sort=name", "--owner=0", "--group=0", "--numeric-owner", &time];
    let packer = ["--create", "--use-compress-program=gzip -9n", "--mode=u=rwX,go=rX"];
    run(program("tar", &packer).args(same).arg("--file").arg(archive).arg("-C").arg(content).arg("."))
}

/// Unpacks the archive as a user does, and runs what is in it.
fn check(archive: &Path, name: &str, quorlock: &Path) -> Outcome {
    let folder = empty("unpacked")?;
    run(program("tar", &["-xzf"]).arg(archive).arg("-C").arg(&folder))?;
    let content = folder.join(name);
    complete(&content, &EXPECTED)?;
    same_and_running(&content.join("quorlock"), quorlock)
}

/// Fails if one of the files is missing or empty.
pub(super) fn complete(folder: &Path, files: &[&str]) -> Outcome {
    let has = |file: &&&str| !fs::metadata(folder.join(file)).is_ok_and(|file| file.len() > 0);
    match files.iter().find(has) {
        None => Ok(()),
        Some(missing) => Err(format!("it lacks {missing}").into()),
    }
}

/// Fails if a packed binary is not the one that was built, or does not run.
pub(super) fn same_and_running(packed: &Path, built: &Path) -> Outcome {
    if fs::read(packed)? != fs::read(built)? {
        return Err("its binary is another one".into());
    }
    let said = read(Command::new(packed).arg("--version"))?;
    println!("it is complete, and its binary says: {}", said.trim());
    Ok(())
}

/// Copies a folder with everything below it.
pub(super) fn copy(from: &Path, to: &Path) -> Outcome {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry: PathBuf = entry?.path();
        let place = to.join(entry.file_name().unwrap_or_default());
        if entry.is_dir() {
            copy(&entry, &place)?;
        } else {
            fs::copy(&entry, &place)?;
        }
    }
    Ok(())
}
