//! The package of Debian, which cargo-deb makes as the command's manifest says.

use std::fs;
use std::path::{Path, PathBuf};

use super::archive::{complete, same_and_running};
use super::binary::{Binary, PROFILE, triple};
use super::{VERSION, empty, folder, pages, tell_size};
use crate::Outcome;
use crate::check::NotRun;
use crate::process::{cargo, program, read, run};

/// The version of cargo-deb with which the package was last made.
const CARGO_DEB: &str = "3.8.0";

/// What must be in it.
const EXPECTED: [&str; 10] = [
    "usr/bin/quorlock",
    "usr/share/bash-completion/completions/quorlock",
    "usr/share/doc/quorlock/CHANGELOG.md",
    "usr/share/doc/quorlock/LICENSE-APACHE",
    "usr/share/doc/quorlock/README.md",
    "usr/share/doc/quorlock/copyright",
    "usr/share/doc/quorlock/examples/nightly-report.timer",
    "usr/share/fish/vendor_completions.d/quorlock.fish",
    "usr/share/man/man1/quorlock-run.1.gz",
    "usr/share/zsh/vendor-completions/_quorlock",
];

pub(super) fn make(binary: &Binary) -> Outcome {
    let Ok(found) = read(&mut program("cargo-deb", &["--version"])) else {
        let install = format!("cargo install cargo-deb --locked --version {CARGO_DEB}");
        return Err(NotRun(format!("cargo-deb is not on PATH ({install})")).into());
    };
    print!("{found}");
    let quorlock = binary.file()?;
    // Debian's pages are compressed. cargo-deb does not do that with what was built.
    let pages = pages::write(quorlock)?.join("man/man1");
    for page in fs::read_dir(pages)? {
        run(program("gzip", &["-9n"]).arg(page?.path()))?;
    }
    let package = folder().join("quorlock.deb");
    let options = ["deb", "--package", "quorlock", "--no-build", "--no-strip", "--locked"];
    run(cargo(&options).args(["--profile", PROFILE, "--target", &triple(), "--output"]).arg(&package))?;
    let package = named(&package)?;
    check(&package, quorlock)?;
    tell_size(&package)
}

/// Gives the package the name that Debian gives it, which has its version and its architecture.
fn named(package: &Path) -> Outcome<PathBuf> {
    let show = ["--showformat=${Package}_${Version}_${Architecture}.deb", "--show"];
    let name = read(program("dpkg-deb", &show).arg(package))?;
    let place = folder().join(name);
    fs::rename(package, &place)?;
    Ok(place)
}

/// Unpacks it as an installation does, and runs what is in it.
fn check(package: &Path, quorlock: &Path) -> Outcome {
    let version = read(program("dpkg-deb", &["--field"]).arg(package).arg("Version"))?;
    if !version.starts_with(VERSION) {
        return Err(format!("it has the version {version}").into());
    }
    let listed = read(program("dpkg-deb", &["--contents"]).arg(package))?;
    print!("{listed}");
    if let Some(line) = listed.lines().find(|line| !line.contains(" 0/0 ")) {
        return Err(format!("not of root: {line}").into());
    }
    let folder = empty("installed")?;
    run(program("dpkg-deb", &["--extract"]).arg(package).arg(&folder))?;
    complete(&folder, &EXPECTED)?;
    same_and_running(&folder.join("usr/bin/quorlock"), quorlock)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::root;

    #[test]
    fn the_workflows_install_the_same_tool() {
        for name in ["ci.yml", "release.yml"] {
            let workflow = fs::read_to_string(root().join(".github/workflows").join(name)).unwrap();
            let install = format!("cargo install --locked cargo-deb --version {CARGO_DEB}\n");
            assert!(workflow.contains(&install), "{name}");
        }
    }
}
