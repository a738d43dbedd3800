//! `quorlock bootstrap`: tell new masters that nothing can be locked yet.

use quorlock_blocking::{BootstrapError, Vote};

use crate::arguments::BootstrapArguments;
use crate::ending::Refusal;
use crate::lock::open;
use crate::output::{Level, Output};

/// Tells them. The exit code.
pub(crate) fn bootstrap(arguments: &BootstrapArguments, output: &Output) -> u8 {
    match try_bootstrap(arguments) {
        Ok(()) => {
            output.record(Level::Info, "bootstrapped", "all masters vote", &[]);
            0
        }
        Err(refusal) => refusal.tell(None, output),
    }
}

fn try_bootstrap(arguments: &BootstrapArguments) -> Result<(), Refusal> {
    let locker = open(&arguments.common, "quorlock-bootstrap")?;
    locker.bootstrap().wait().map_err(|error| {
        let sentence = error.to_string();
        match error {
            BootstrapError::InUse(_) => Refusal::InUse(sentence),
            // Every master is needed, so one that is not right is enough.
            BootstrapError::Unreached(ballot)
                if ballot
                    .votes()
                    .any(|(_, vote)| matches!(vote, Vote::Failed(cause) if cause.is_configuration())) =>
            {
                Refusal::Configuration(sentence)
            }
            BootstrapError::NoRestartGuard | BootstrapError::Request(_) => Refusal::Configuration(sentence),
            _ => Refusal::NoQuorum(sentence),
        }
    })
}
