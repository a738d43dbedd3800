//! `quorlock bootstrap`: tell new masters that nothing can be locked yet.

use quorlock_blocking::{BootstrapError, Locker, MasterState};

use quorlock_core::{Vote, Warning};

use crate::arguments::BootstrapArguments;
use crate::ending::Refusal;
use crate::lock::open;
use crate::output::{JsonValue, Level, Output};

/// Carries out the subcommand. Returns the exit code.
pub(crate) fn bootstrap(arguments: &BootstrapArguments, output: &Output) -> u8 {
    match try_bootstrap(arguments) {
        Ok(locker) => {
            warn(&locker, output);
            output.record(Level::Info, "bootstrapped", "all masters vote", &[]);
            0
        }
        Err(refusal) => refusal.tell(None, output),
    }
}

fn try_bootstrap(arguments: &BootstrapArguments) -> Result<Locker, Refusal> {
    let locker = open(arguments.terms(), "quorlock-bootstrap")?;
    locker.bootstrap().wait().map_err(|error| {
        let sentence = error.to_string();
        match error {
            BootstrapError::InUse(_) => Refusal::InUse(sentence),
            // Every master is needed, so one wrong master is enough to fail.
            BootstrapError::Unreached(ballot)
                if ballot
                    .votes()
                    .any(|(_, vote)| matches!(vote, Vote::Failed(cause) if cause.is_configuration())) =>
            {
                Refusal::Configuration(sentence)
            }
            BootstrapError::NoRestartGuard | BootstrapError::TooManyLocks { .. } | BootstrapError::Forked => {
                Refusal::Configuration(sentence)
            }
            _ => Refusal::NoQuorum(sentence),
        }
    })?;
    Ok(locker)
}

/// Warns of masters with replicas, which the restart guard does not cover.
fn warn(locker: &Locker, output: &Output) {
    for (master, state) in locker.masters() {
        let MasterState::Ready { warnings } = state else { continue };
        if warnings.contains(&Warning::UndeclaredReplicas) {
            let master = master.to_string();
            let text = format!(
                "{master} has replicas that its URL does not declare, so the restart guard does not cover their promotion: add replicas="
            );
            output.record(
                Level::Warning,
                "undeclared_replicas",
                &text,
                &[("master", JsonValue::Text(&master))],
            );
        }
    }
}
