//! `quorlock doctor`: what masters are and how they are set up, and which of Quorlock's promises
//! hold on them. Nothing is changed.

mod clock;
mod encryption;
mod facts;
mod permissions;
mod promises;
mod replacing;
mod report;

use std::sync::Arc;
use std::time::{Duration, Instant};

use quorlock_blocking::{Config, Tls};
use quorlock_core::{Cause, ClusterFault, Discovery, Endpoint, EvictionPolicy, Quorum};

use self::facts::Facts;
use crate::arguments::DoctorArguments;
use crate::asking;
use crate::ending::{NO_QUORUM, Refusal, UNKEPT, USAGE};
use crate::lock;
use crate::output::{Output, Verbosity, print};

/// How long all questions to one master may take.
const WITHIN: Duration = Duration::from_secs(8);

/// The reports of all masters, and the settings of the clients.
#[derive(Debug)]
struct Survey {
    masters: Vec<Endpoint>,
    quorum: Quorum,
    /// In the masters' order.
    answers: Vec<Result<Facts, Cause>>,
    /// Each clock compared with the others.
    standings: Vec<Option<clock::Standing>>,
    /// The restart guard of the clients, if the options set it.
    guard: Option<Duration>,
    /// Policies that the options accept.
    evictions: Vec<EvictionPolicy>,
}

/// Prints the report. Returns the exit code.
pub(crate) fn doctor(arguments: &DoctorArguments) -> u8 {
    let report = match &arguments.replacing {
        None => all_promises(arguments),
        Some(named) => replacing::report(arguments, named),
    };
    match report {
        Ok((text, code)) => print(&text, code),
        Err(refusal) => refusal.tell(None, &Output::new(Verbosity::Normal(0), arguments.json)),
    }
}

/// The report about all promises, and the exit code.
fn all_promises(arguments: &DoctorArguments) -> Result<(String, u8), Refusal> {
    let config = config(arguments)?;
    let survey = survey(&config, config.masters().to_vec(), arguments)?;
    let promises = promises::judge(&survey);
    let code = match survey.answered() {
        answered if answered >= survey.quorum.needed() => {
            if promises.iter().all(|promise| promise.holds == Some(true)) { 0 } else { UNKEPT }
        }
        _ if survey.is_misconfigured() => USAGE,
        _ => NO_QUORUM,
    };
    let told = if arguments.json { report::json } else { report::text };
    Ok((told(&survey, &promises), code))
}

/// The settings of the clients.
fn config(arguments: &DoctorArguments) -> Result<Config, Refusal> {
    let config = lock::config(arguments.terms(), "quorlock-doctor")?;
    Ok(config.or_security(|| Arc::new(Tls::system())))
}

/// Reads the files that connections to these masters need.
fn prepare(config: &Config, masters: &[Endpoint]) -> Result<(), Refusal> {
    let prepared = config.security().map_or(Ok(()), |security| security.prepare(masters));
    prepared.map_err(|error| Refusal::Configuration(error.to_string()))
}

/// Asks these masters.
fn survey(config: &Config, masters: Vec<Endpoint>, arguments: &DoctorArguments) -> Result<Survey, Refusal> {
    prepare(config, &masters)?;
    let resource =
        config.resource(arguments.resource()).map_err(|error| Refusal::Configuration(error.to_string()))?;
    let origin = Instant::now();
    let answers = asking::all(&masters, config.security(), WITHIN, move |master, security, ends| {
        facts::ask(master, security, &resource, origin, ends)
    });
    let readings: Vec<_> =
        answers.iter().map(|answer| answer.as_ref().ok().and_then(|facts| facts.reading.clock)).collect();
    Ok(Survey {
        quorum: config.quorum(),
        masters,
        standings: clock::compare(&readings),
        answers,
        guard: config.restart_guard(),
        evictions: config.allowed_evictions().to_vec(),
    })
}

impl Survey {
    /// How many masters answered.
    fn answered(&self) -> usize {
        self.answers.iter().flatten().count()
    }

    /// Whether no quorum can answer until a configuration is changed.
    fn is_misconfigured(&self) -> bool {
        let wrong =
            self.answers.iter().filter(|answer| matches!(answer, Err(cause) if cause.is_configuration()));
        self.quorum.masters() - wrong.count() < self.quorum.needed()
    }

    /// Why a master that answered has no vote for any client with this list.
    fn objection(&self, place: usize) -> Option<String> {
        let info = self.answers.get(place)?.as_ref().ok()?.info.as_ref()?;
        if info.role.as_deref().is_some_and(|role| role != "master") {
            return Some(Cause::Replica.to_string());
        }
        let has_tag = |master: &Endpoint| matches!(master.discovery(), Some(Discovery::Cluster { .. }));
        let master = self.masters.get(place)?;
        let fault = match (info.is_cluster, has_tag(master)) {
            (Some(true), false) => Some(ClusterFault::IsNode),
            (Some(false), true) => Some(ClusterFault::IsNoNode),
            _ => None,
        };
        if let Some(fault) = fault {
            return Some(Cause::Cluster(fault).to_string());
        }
        let run_id = info.run_id.as_ref()?;
        let earlier = self.masters.iter().zip(&self.answers).take(place);
        let mut same = earlier.filter(|(_, answer)| {
            let other = answer.as_ref().ok().and_then(|facts| facts.info.as_ref());
            other.is_some_and(|other| other.run_id.as_ref() == Some(run_id))
        });
        same.next().map(|(other, _)| {
            if has_tag(master) && has_tag(other) {
                format!("its tag is on the same server as {other}: see quorlock cluster-plan")
            } else {
                format!("is the same server as {other}")
            }
        })
    }
}
