//! How the command is started: through a first process on Linux, else directly.

use std::ffi::OsStr;
use std::io;
use std::process::{Child, Command};

use rustix::process::Pid;

#[cfg(target_os = "linux")]
use crate::first::First;

/// A command that waits to be executed, or runs already.
pub(crate) enum Launched {
    #[cfg(target_os = "linux")]
    First(First),
    Runs(Child),
}

impl Launched {
    /// The number of its process.
    pub(crate) fn id(&self) -> Pid {
        match self {
            #[cfg(target_os = "linux")]
            Self::First(first) => first.id(),
            Self::Runs(child) => Pid::from_child(child),
        }
    }

    /// Lets it be executed. An error means that it cannot be.
    pub(crate) fn go(self) -> io::Result<Child> {
        match self {
            #[cfg(target_os = "linux")]
            Self::First(first) => first.go(),
            Self::Runs(child) => Ok(child),
        }
    }
}

/// Starts `command` with what `prepare` adds to it, through a first process if there can be one.
///
/// Without one, the command runs for an instant without having the foreground. If it reads from the
/// terminal at that moment, the system stops it; the supervisor sees that and continues it.
pub(crate) fn launch(
    command: &[&OsStr],
    prepare: impl Fn(&mut Command),
    #[cfg_attr(not(target_os = "linux"), expect(unused_variables))] has_first: bool,
) -> io::Result<Launched> {
    #[cfg(target_os = "linux")]
    if has_first {
        if let Ok(first) = First::start(command, &prepare) {
            return Ok(Launched::First(first));
        }
    }
    let mut parts = command.iter();
    let mut builder = Command::new(parts.next().copied().unwrap_or_default());
    builder.args(parts);
    prepare(&mut builder);
    builder.spawn().map(Launched::Runs)
}
