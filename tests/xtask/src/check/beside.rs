//! Steps that need processors. They run beside the tests, which mostly wait.

use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};

use crate::Outcome;
use crate::process::{program, target};

/// A process of the lowest priority that runs these steps, so that they take no time from the
/// tests.
pub(super) struct Beside {
    child: Child,
    printed: PathBuf,
}

impl Beside {
    pub(super) fn start(steps: &[&str]) -> Outcome<Self> {
        let printed = target().join("beside.log");
        let file = File::create(&printed)?;
        let child = Command::new("nice")
            .args(["-n", "19"])
            .arg(std::env::current_exe()?)
            .arg("check")
            .args(steps)
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            // In its own group, so that it can be ended together with everything that it has
            // started.
            .process_group(0)
            .spawn()?;
        Ok(Self { child, printed })
    }

    /// Returns an error if the process has already failed.
    pub(super) fn look(&mut self) -> Outcome {
        match self.child.try_wait()? {
            Some(status) if !status.success() => self.ended(status),
            _ => Ok(()),
        }
    }

    /// Waits for the end of the process, and prints its output.
    pub(super) fn finish(mut self) -> Outcome {
        let status = self.child.wait()?;
        self.ended(status)
    }

    fn ended(&self, status: ExitStatus) -> Outcome {
        print!("{}", fs::read_to_string(&self.printed)?);
        if status.success() {
            Ok(())
        } else {
            Err(format!("a step beside the tests failed: {status}").into())
        }
    }
}

impl Drop for Beside {
    /// Ends the process, because another step has failed.
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let group = format!("-{}", self.child.id());
            // If it cannot be ended, it ends by itself within minutes.
            let _ = program("kill", &["--", &group]).status();
            let _ = self.child.wait();
        }
    }
}
