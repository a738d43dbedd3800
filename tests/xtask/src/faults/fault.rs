//! The faults that are known.

use std::fs;

use crate::Outcome;
use crate::digests::SCRIPTS;
use crate::process::root;

/// What looks for a fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// Tests: the faults of `tests/mutants`.
    Tests,
    /// loom's models: the faults of `tests/loom`. The name of such a fault begins with the part of
    /// the code that it is in.
    Models,
}

/// One patch, with the line above it.
pub(super) struct Fault {
    pub(super) name: String,
    pub(super) what: String,
    pub(super) patch: String,
    pub(super) kind: Kind,
}

impl Fault {
    /// No change at all.
    pub(super) fn none(name: &str) -> Self {
        Self { name: name.to_owned(), what: String::new(), patch: String::new(), kind: Kind::Tests }
    }

    /// All faults, by their names.
    pub(super) fn all() -> Outcome<Vec<Self>> {
        let mut faults = Vec::new();
        for kind in [Kind::Tests, Kind::Models] {
            for entry in fs::read_dir(root().join(kind.folder()))? {
                let path = entry?.path();
                let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                let patch = fs::read_to_string(&path)?;
                let what = patch.lines().next().unwrap_or_default().to_owned();
                faults.push(Self { name, what, patch, kind });
            }
        }
        faults.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(faults)
    }

    /// The patch, from the root of the workspace.
    pub(super) fn path(&self) -> String {
        format!("{}/{}.patch", self.kind.folder(), self.name)
    }

    /// The files that it changes.
    pub(super) fn files(&self) -> impl Iterator<Item = &str> {
        self.patch.lines().filter_map(|line| line.strip_prefix("+++ b/"))
    }

    /// Whether it changes the text of a script, as all patches of their sources do.
    pub(super) fn changes_scripts(&self) -> bool {
        self.files().any(|file| file.starts_with(SCRIPTS))
    }
}

impl Kind {
    fn folder(self) -> &'static str {
        match self {
            Self::Tests => "tests/mutants",
            Self::Models => "tests/loom",
        }
    }
}
