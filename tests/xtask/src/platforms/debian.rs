//! The libraries' oldest Rust, from the release of Debian that has it. It is unpacked into the
//! target folder: nothing is installed.

use std::fs;
use std::path::{Path, PathBuf};

use super::tools::{Rust, folder, script};
use crate::Outcome;
use crate::process::{program, run};

/// The release of Debian that has the libraries' oldest Rust.
const RELEASE: &str = "trixie";
const PACKAGES: [&str; 3] = ["rustc", "cargo", "rust-src"];
/// What those packages need and every machine that builds Rust has, so that it is not fetched: the
/// linker, and the library that it links.
const OF_THE_MACHINE: [(&str, &str); 3] = [("gcc", ""), ("binutils", ""), ("libc6-dev", "libc-dev")];

/// Where the libraries of the packages are, with what loads them.
const LIBRARIES: &str = "usr/lib/x86_64-linux-gnu";
const LOADER: &str = "ld-linux-x86-64.so.2";

fn place() -> PathBuf {
    folder().join("rust")
}

/// The Rust that was unpacked, if it was.
pub(super) fn unpacked() -> Rust {
    Rust { cargo: place().join("bin/cargo"), rustc: place().join("bin/rustc") }
}

/// Fetches the packages with apt, which verifies them, and unpacks them.
pub(super) fn unpack() -> Outcome {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Err("Debian's Rust is for Linux on x86_64".into());
    }
    let release = fs::read_to_string("/etc/os-release")?;
    let codename = codename(&release).ok_or("this is no Debian")?;
    println!("fetching the packages {} of Debian {RELEASE}", PACKAGES.join(", "));
    let apt = Apt { folder: folder().join("apt") };
    apt.set_up(codename)?;
    apt.get(&["update"])?;
    apt.get(&[&["install", "--yes", "--download-only", "--no-install-recommends"], &PACKAGES[..]].concat())?;
    let place = place();
    for file in fs::read_dir(apt.archives())? {
        let file = file?.path();
        if file.extension().is_some_and(|extension| extension == "deb") {
            run(program("dpkg-deb", &["--extract"]).arg(file).arg(&place))?;
        }
    }
    fs::remove_dir_all(&apt.folder)?;
    // The programs are there last: without them, an incomplete Rust is not used.
    ["cargo", "rustc"].iter().try_for_each(|name| start(&place, name))
}

/// Writes a script that starts a program with the libraries of its own release of Debian.
fn start(place: &Path, name: &str) -> Outcome {
    let (libraries, program) = (place.join(LIBRARIES), place.join("usr/bin").join(name));
    let (loader, libraries, program) = (libraries.join(LOADER), libraries.display(), program.display());
    let line = format!("'{}' --argv0 '{program}' --library-path '{libraries}' '{program}'", loader.display());
    script(&place.join("bin").join(name), &line)
}

/// The name of the machine's release of Debian.
fn codename(release: &str) -> Option<&str> {
    let field = |name: &str| release.lines().find_map(|line| line.strip_prefix(name));
    field("ID=").filter(|id| *id == "debian").and_then(|_| field("VERSION_CODENAME="))
}

/// An apt with a folder of its own, which knows nothing of the machine's packages.
struct Apt {
    folder: PathBuf,
}

impl Apt {
    fn archives(&self) -> PathBuf {
        self.folder.join("cache/archives")
    }

    /// Takes the machine's sources, of the other release.
    fn set_up(&self, codename: &str) -> Outcome {
        for folder in ["sources", "state/lists/partial", "cache/archives/partial"] {
            fs::create_dir_all(self.folder.join(folder))?;
        }
        let mut sources = vec![PathBuf::from("/etc/apt/sources.list")];
        for file in fs::read_dir("/etc/apt/sources.list.d")? {
            sources.push(file?.path());
        }
        for file in sources {
            // Others than Debian's own need not have that release.
            let text = fs::read_to_string(&file).unwrap_or_default();
            if let Some(name) = file.file_name().filter(|_| text.contains(codename)) {
                fs::write(self.folder.join("sources").join(name), text.replace(codename, RELEASE))?;
            }
        }
        let installed: String =
            OF_THE_MACHINE.iter().map(|(name, provides)| status(name, provides)).collect();
        fs::write(self.folder.join("status"), installed)?;
        Ok(())
    }

    fn get(&self, words: &[&str]) -> Outcome {
        let mut apt = program("apt-get", &["--quiet=2"]);
        for (option, path) in [
            ("Dir::Etc::SourceParts", "sources"),
            ("Dir::State", "state"),
            ("Dir::State::status", "status"),
            ("Dir::Cache", "cache"),
        ] {
            apt.arg("-o").arg(format!("{option}={}", self.folder.join(path).display()));
        }
        // If root runs it, apt would fetch as a user that may not write to this folder.
        apt.args(["-o", "APT::Sandbox::User=root", "-o", "Debug::NoLocking=true"]);
        apt.args(["-o", "Dir::Etc::SourceList=/dev/null"]);
        run(apt.args(words))
    }
}

/// How dpkg describes an installed package.
fn status(name: &str, provides: &str) -> String {
    let provides = if provides.is_empty() { String::new() } else { format!("Provides: {provides}\n") };
    format!(
        "Package: {name}\nStatus: install ok installed\nVersion: 99\nArchitecture: amd64\n\
         Maintainer: none\nDescription: of the machine\n{provides}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_debian_has_a_release_of_debian() {
        let debian = "PRETTY_NAME=\"Debian\"\nVERSION_CODENAME=bookworm\nID=debian\n";
        assert_eq!(codename(debian), Some("bookworm"));
        assert_eq!(codename(&debian.replace("ID=debian", "ID=ubuntu\nID_LIKE=debian")), None);
        assert_eq!(codename("ID=debian\n"), None);
    }
}
