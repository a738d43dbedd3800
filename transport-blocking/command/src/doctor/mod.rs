//! `quorlock doctor`: what masters are and how they are set up, and which of Quorlock's promises
//! hold on them. Nothing is changed.

mod clock;
mod encryption;
mod facts;
mod permissions;
mod promises;
mod report;

use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use quorlock_blocking::Tls;
use quorlock_core::{Cause, ClusterFault, Discovery, Endpoint, EvictionPolicy, Quorum, Resource, Security};

use self::facts::Facts;
use crate::arguments::DoctorArguments;
use crate::ending::{NO_QUORUM, Refusal, UNKEPT, USAGE};
use crate::lock;
use crate::output::{Output, Verbosity, print};

/// How long all questions to one master may take.
const WITHIN: Duration = Duration::from_secs(8);
/// Time for the threads to report their results after the deadline.
const SLACK: Duration = Duration::from_millis(100);

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
    match survey(arguments) {
        Ok(survey) => {
            let promises = promises::judge(&survey);
            let code = match survey.answered() {
                answered if answered >= survey.quorum.needed() => {
                    if promises.iter().all(|promise| promise.holds == Some(true)) { 0 } else { UNKEPT }
                }
                _ if survey.is_misconfigured() => USAGE,
                _ => NO_QUORUM,
            };
            let told = if arguments.json { report::json } else { report::text };
            print(&told(&survey, &promises), code)
        }
        Err(refusal) => refusal.tell(None, &Output::new(Verbosity::Normal(0), arguments.json)),
    }
}

fn survey(arguments: &DoctorArguments) -> Result<Survey, Refusal> {
    let config = lock::config(arguments.terms(), "quorlock-doctor")?;
    let config = config.or_security(|| Arc::new(Tls::system()));
    if let Some(security) = config.security() {
        let prepared = security.prepare(config.masters());
        prepared.map_err(|error| Refusal::Configuration(error.to_string()))?;
    }
    let resource =
        config.resource(arguments.resource()).map_err(|error| Refusal::Configuration(error.to_string()))?;
    let masters = config.masters().to_vec();
    let answers = each(&masters, config.security(), &resource);
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

/// Asks all masters at once, each on its own thread, and returns their answers in the masters'
/// order. A thread that the system blocks for too long, such as in name resolution, is not waited
/// for.
fn each(
    masters: &[Endpoint],
    security: Option<&Arc<dyn Security>>,
    resource: &Resource,
) -> Vec<Result<Facts, Cause>> {
    let origin = Instant::now();
    let ends = origin + WITHIN;
    let resource = Arc::new(resource.clone());
    let (tell, told) = mpsc::channel();
    for (place, master) in masters.iter().enumerate() {
        let (resource, tell, master) = (Arc::clone(&resource), tell.clone(), master.clone());
        let security = security.cloned();
        let asking = thread::Builder::new().name("quorlock-ask".into());
        // If the system has no thread left, this master has no answer.
        let _ = asking.spawn(move || {
            // An answer that comes too late is dropped.
            let _ = tell.send((place, facts::ask(&master, security.as_deref(), &resource, origin, ends)));
        });
    }
    drop(tell);
    let mut answers: Vec<_> = masters.iter().map(|_| Err(Cause::NoAnswer { waited: WITHIN })).collect();
    while let Ok((place, answer)) =
        told.recv_timeout((ends + SLACK).saturating_duration_since(Instant::now()))
    {
        if let Some(place) = answers.get_mut(place) {
            *place = answer;
        }
    }
    answers
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

    /// Why a master that answered has no vote.
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
