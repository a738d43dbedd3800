//! One change of a source file.

use std::collections::BTreeMap;
use std::hash::{Hash as _, Hasher as _};
use std::ops::Range;

/// A text in place of a part of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    /// Unique, and the same as long as its line and its function are.
    pub(crate) name: String,
    /// From the root of the workspace.
    pub(crate) file: String,
    pub(crate) range: Range<usize>,
    pub(crate) with: String,
    pub(crate) form: Form,
    /// Whether cargo-mutants lists it.
    pub(crate) is_listed: bool,
}

/// How a change is switched on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// An expression, a statement or a body, beside its original.
    Code,
    /// An arm of a `match` that is never taken.
    NoArm,
    /// A part of a script's text, which is replaced when the script is sent: what the constant has,
    /// and what it becomes.
    Script(String, String),
}

impl Change {
    /// A number that tells whether a result is of this change of these sources.
    pub(crate) fn print(&self, sources: u64) -> u64 {
        let mut print = std::hash::DefaultHasher::new();
        (sources, &self.name, &self.range, &self.with).hash(&mut print);
        print.finish()
    }

    /// Whether it is the same one, whatever its name.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        (&self.file, &self.range, &self.with) == (&other.file, &other.range, &other.with)
    }

    /// Whether it is written by hand: the names of all others begin with their files.
    pub(crate) fn is_written(&self) -> bool {
        !self.name.starts_with(&self.file)
    }

    /// Numbers changes of the same name.
    pub(crate) fn tell_apart(changes: &mut [Self]) {
        let mut seen = BTreeMap::<String, usize>::new();
        for change in changes {
            let times = seen.entry(change.name.clone()).or_default();
            *times += 1;
            if *times > 1 {
                change.name += &format!(" ({times})");
            }
        }
    }
}
