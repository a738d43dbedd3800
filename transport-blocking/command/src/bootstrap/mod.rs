//! `quorlock bootstrap`: tell new masters that nothing can be locked yet.

mod traces;

use std::sync::Arc;

use quorlock_blocking::{BootstrapError, Locker, Tls};

use quorlock_core::{Cause, Endpoint, Vote};

use self::traces::Traces;
use crate::arguments::BootstrapArguments;
use crate::asking;
use crate::cautions;
use crate::duration::spoken;
use crate::ending::Refusal;
use crate::lock::{self, open};
use crate::output::{JsonValue, Level, Output};

/// What each master shows of earlier use.
type Looks = Vec<(Endpoint, Result<Traces, Cause>)>;

/// Carries out the subcommand. Returns the exit code.
pub(crate) fn bootstrap(arguments: &BootstrapArguments, output: &Output) -> u8 {
    let done = look(arguments).and_then(|looks| Ok((try_bootstrap(arguments)?, looks)));
    match done {
        Ok((locker, looks)) => {
            cautions::tell(&locker, output);
            if !do_all_vote(&looks) {
                warn_of_unlooked(&looks, output);
                let text = format!(
                    "all masters vote now. That rests on you: no client has held a lock on them within the last {}",
                    spoken(arguments.restart_guard)
                );
                output.record(Level::Warning, "rests_on", &text, &[]);
            }
            output.record(Level::Info, "bootstrapped", "all masters vote", &[]);
            0
        }
        Err(refusal) => refusal.tell(None, output),
    }
}

/// Looks for keys that show that the masters have been used. They are refused then, unless some
/// vote already: what that means depends on the others.
fn look(arguments: &BootstrapArguments) -> Result<Looks, Refusal> {
    let config = lock::config(arguments.terms(), "quorlock-bootstrap")?;
    let config = config.or_security(|| Arc::new(Tls::system()));
    if let Some(security) = config.security() {
        let prepared = security.prepare(config.masters());
        prepared.map_err(|error| Refusal::Configuration(error.to_string()))?;
    }
    let masters = config.masters();
    let answers = asking::all(masters, config.security(), traces::WITHIN, traces::look);
    let looks: Looks = masters.iter().cloned().zip(answers).collect();
    if looks.iter().any(|(_, look)| *look == Ok(Traces::Votes)) {
        return Ok(looks);
    }
    let used = looks.iter().filter_map(|(master, look)| match look {
        Ok(Traces::Key(key)) => {
            Some(format!("{master} has {} ({})", traces::kind(key), String::from_utf8_lossy(key)))
        }
        _ => None,
    });
    let used: Vec<_> = used.collect();
    if used.is_empty() {
        return Ok(looks);
    }
    Err(Refusal::InUse(format!(
        "masters have been used, so locks may be held on them: {}. Nothing is changed. Start the clients instead: \
         the masters vote by themselves {} after the first request",
        used.join("; "),
        spoken(arguments.restart_guard)
    )))
}

fn do_all_vote(looks: &Looks) -> bool {
    looks.iter().all(|(_, look)| *look == Ok(Traces::Votes))
}

/// Warns of masters that were not looked through.
fn warn_of_unlooked(looks: &Looks, output: &Output) {
    for (master, look) in looks {
        let why = match look {
            Ok(Traces::Votes | Traces::Key(_) | Traces::Nothing) => continue,
            Ok(Traces::Denied(error)) => format!("SCAN: {error}"),
            Ok(Traces::TooMany) => "it has too many keys".to_owned(),
            Err(cause) => cause.to_string(),
        };
        let master = master.to_string();
        let text = format!("{master} was not fully searched for signs of earlier use ({why})");
        output.record(Level::Warning, "not_searched", &text, &[("master", JsonValue::Text(&master))]);
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
