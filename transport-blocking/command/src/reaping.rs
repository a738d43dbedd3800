//! Children that have ended, and are listed by the system until their parent has seen that.

use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions, wait};

use crate::child::Ending;

/// What [`reap`] found.
pub(crate) struct Reaped {
    /// How the command ended, if it was among them.
    pub(crate) ending: Option<Ending>,
    /// Whether there is no child any more, so that nothing lives.
    pub(crate) is_alone: bool,
}

/// Reaps all children that have ended: the command, and those whose own parents have ended.
pub(crate) fn reap(command: Pid) -> Reaped {
    let mut ending = None;
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((id, status))) if id == command => {
                ending = match (status.exit_status(), status.terminating_signal()) {
                    (Some(code), _) => Some(Ending::Exited(code)),
                    (None, signal) => signal.map(Ending::Signalled),
                };
            }
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => return Reaped { ending, is_alone: false },
            Err(_) => return Reaped { ending, is_alone: true },
        }
    }
}

/// The same before there is a command: process 1 gets others' orphans.
pub(crate) fn reap_orphans() {
    while matches!(wait(WaitOptions::NOHANG), Ok(Some(_)) | Err(Errno::INTR)) {}
}
