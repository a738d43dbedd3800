//! What masters have warned this client of, and what it must not ignore: without it, a lock may
//! have two holders, or is not what the caller asked for.

use quorlock_blocking::{Locker, MasterState};
use quorlock_core::Warning;

use crate::output::{JsonValue, Level, Output};

/// The warnings that concern exclusion or order, each with the name of its event and what to do.
const CAUTIONS: [(Warning, &str, &str); 4] = [
    (
        Warning::UndeclaredReplicas,
        "undeclared_replicas",
        "has replicas that its URL does not declare, so the restart guard does not cover their promotion: add replicas=",
    ),
    (
        Warning::NoRestartGuard,
        "no_restart_guard",
        "is used with the restart guard by other clients, and this call does not use it, which voids it for all: \
         give the --restart-guard of the others (quorlock doctor shows it)",
    ),
    (
        Warning::OtherServer,
        "other_server",
        "has several servers behind its name, which do not know each other's locks: give each server its own name",
    ),
    (
        Warning::QueueDenied,
        "queue_denied",
        "keeps no queue for this client, because this user lacks what --fair needs: the lock was not waited for \
         in order there (quorlock doctor names what is missing)",
    ),
];

/// Tells what the masters of this client have warned of so far.
pub(crate) fn tell(locker: &Locker, output: &Output) {
    for (master, state) in locker.masters() {
        let MasterState::Ready { warnings } = state else { continue };
        let master = master.to_string();
        for (_, event, text) in CAUTIONS.iter().filter(|(warning, ..)| warnings.contains(warning)) {
            let fields = [("master", JsonValue::Text(&master))];
            output.record(Level::Warning, event, &format!("{master} {text}"), &fields);
        }
    }
}
