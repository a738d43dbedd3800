//! A copy of the workspace, into which the changes are written.

use std::fs;
use std::hash::{Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Outcome;

/// The folders from which the judges are built.
const SOURCES: [&str; 5] =
    ["core/", "tests/src/", "tests/shared/", "tests/tests/claims", "tests/tests/differential"];

pub(crate) struct Copy {
    /// The copied tree is in it, and what is built from that.
    pub(crate) place: PathBuf,
    /// A hash of all that the judges are built from.
    pub(crate) sources: u64,
}

impl Copy {
    /// Copies the working tree, without the files for which `is_written` says that they are written
    /// later. A file that has not changed is left as it is, so that cargo does not build it again.
    pub(crate) fn set_up(root: &Path, place: PathBuf, is_written: impl Fn(&str) -> bool) -> Outcome<Self> {
        let mut git = Command::new("git");
        git.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]).current_dir(root);
        let listed = String::from_utf8(git.output()?.stdout)?;
        let mut names: Vec<_> = listed.split('\0').filter(|name| root.join(name).is_file()).collect();
        names.sort_unstable();
        names.dedup();
        let mut sources = std::hash::DefaultHasher::new();
        let mut copy = Self { place, sources: 0 };
        for name in &names {
            let content = fs::read(root.join(name))?;
            if SOURCES.iter().any(|folder| name.starts_with(folder)) || name.ends_with("Cargo.lock") {
                (name, &content).hash(&mut sources);
            }
            if !is_written(name) {
                copy.write(name, &content)?;
            }
        }
        copy.remove_others(&copy.tree(), &names)?;
        copy.sources = sources.finish();
        Ok(copy)
    }

    pub(crate) fn tree(&self) -> PathBuf {
        self.place.join("tree")
    }

    pub(crate) fn write(&self, name: &str, content: &[u8]) -> Outcome {
        let path = self.tree().join(name);
        if fs::read(&path).ok().as_deref() != Some(content) {
            fs::create_dir_all(path.parent().ok_or("a file is in a folder")?)?;
            fs::write(path, content)?;
        }
        Ok(())
    }

    /// Cargo, with everything built beside the tree. What is written has warnings that say nothing.
    pub(crate) fn cargo(&self, arguments: &[&str]) -> Command {
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.args(arguments).arg("--message-format=json").current_dir(self.tree());
        cargo
            .env("CARGO_TARGET_DIR", self.place.join("build"))
            .env("RUSTFLAGS", "--cap-lints=allow -Awarnings");
        cargo
    }

    /// Removes sources that the workspace does not have any more.
    fn remove_others(&self, folder: &Path, names: &[&str]) -> Outcome {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                self.remove_others(&path, names)?;
            } else {
                let name = path.strip_prefix(self.tree())?.to_string_lossy().into_owned();
                if names.binary_search(&name.as_str()).is_err() && !OWN.contains(&name.as_str()) {
                    fs::remove_file(&path)?;
                }
            }
        }
        Ok(())
    }
}

/// The module with the switch, which only the copy has.
pub(crate) const SWITCH: &str = "core/src/switch.rs";
/// What the switch includes: the changed parts of scripts.
pub(crate) const PARTS: &str = "core/src/switch_scripts.in";
/// The files that only the copy has. If one were removed and written again, all would be built
/// again.
const OWN: [&str; 2] = [SWITCH, PARTS];
