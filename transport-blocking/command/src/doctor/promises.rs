//! Which of Quorlock's promises hold on these masters for a client with these options, and what to
//! change where one does not.

use std::time::Duration;

use quorlock_core::{Cause, Endpoint, EvictionPolicy, Failover, Fleet, ServerError, Ttl};

use super::Survey;
use super::facts::{Facts, NOT_TOLD, Silence};
use super::permissions::Use;
use crate::asking::Mark;
use crate::duration::spoken;

/// The largest allowed difference between the rates of two clocks, which is subtracted from each
/// validity.
const DRIFT: f64 = 0.01;

/// A promise, and whether it holds.
#[derive(Debug)]
pub(super) struct Promise {
    pub(super) name: &'static str,
    /// `None` if masters do not report what it depends on.
    pub(super) holds: Option<bool>,
    /// Its text if it holds, and otherwise each reason why it does not.
    pub(super) text: Vec<String>,
    /// What to change.
    pub(super) cures: Vec<String>,
}

/// The reasons against a promise.
#[derive(Default)]
struct Findings {
    broken: Vec<String>,
    unknown: Vec<String>,
    cures: Vec<String>,
}

impl Findings {
    /// The reasons against a promise about what masters do or report: nothing is known of one that
    /// did not answer.
    fn about(survey: &Survey) -> Self {
        let all = survey.masters.iter().zip(&survey.answers);
        let silent = all.filter(|(_, answer)| answer.is_err());
        let silent: Vec<_> = silent.map(|(master, _)| (master.to_string(), String::new())).collect();
        let mut findings = Self::default();
        findings.unknown("did not answer", &silent, "see availability");
        findings
    }

    /// Adds a fault of these masters, each with its details, and its cure. Without masters there is
    /// no fault.
    fn broken(&mut self, what: &str, masters: &[(String, String)], cure: &str) {
        Self::add(&mut self.broken, &mut self.cures, what, masters, cure);
    }

    /// Adds what these masters do not report, and what to change so that they do.
    fn unknown(&mut self, what: &str, masters: &[(String, String)], cure: &str) {
        Self::add(&mut self.unknown, &mut self.cures, what, masters, cure);
    }

    fn add(
        list: &mut Vec<String>,
        cures: &mut Vec<String>,
        what: &str,
        masters: &[(String, String)],
        cure: &str,
    ) {
        if masters.is_empty() {
            return;
        }
        let with_details = |(master, details): &(String, String)| {
            if details.is_empty() { master.clone() } else { format!("{master} ({details})") }
        };
        let masters: Vec<_> = masters.iter().map(with_details).collect();
        list.push(format!("{what}: {}", masters.join(", ")));
        if !cures.iter().any(|known| known == cure) {
            cures.push(cure.to_owned());
        }
    }

    fn judge(self, name: &'static str, text: &str) -> Promise {
        let Self { broken, unknown, cures } = self;
        let holds = match (broken.is_empty(), unknown.is_empty()) {
            (true, true) => Some(true),
            (true, false) => None,
            (false, _) => Some(false),
        };
        let text = if holds == Some(true) { vec![text.to_owned()] } else { [broken, unknown].concat() };
        Promise { name, holds, text, cures }
    }
}

const NO_EVICTION: &str = "set maxmemory-policy to noeviction, or no maxmemory";
const KEEP: &str = "set appendonly yes and appendfsync always there";
const KEEP_OR_GUARD: &str =
    "set appendonly yes and appendfsync always there, or give all clients --restart-guard";
const NEW: &str = "a quarantine ends by itself; if these masters are new and have never granted a lock, `quorlock bootstrap` ends it";
const DECLARE: &str = "declare replicas= in the URL of all clients, with the restart guard";
const DETACH: &str =
    "detach the replicas, or declare replicas= in the URL of all clients, with the restart guard";
const NAMELESS: &str = "reports no replication id, so the restart guard cannot work";
const NAME: &str = "use servers whose INFO reports master_replid, if they lose data when they restart";
const GUARD_ALL: &str = "give every client the same --restart-guard";
const GRANT: &str = "grant these commands: the page about masters has a rule for each kind of lock";
const LET_ASK: &str =
    "allow +info, and run this as a user that may query permissions (+eval, or +acl|dryrun)";
const GRANT_TRACKING: &str = "grant +client|tracking";
const KNOW_TRACKING: &str = "use a server that knows CLIENT TRACKING (Redis 6)";
const UPDATE: &str = "update the server, to Redis 6.2.8, 7.0.5 or later";
const TELL_SETTINGS: &str = "allow +info and +config|get, or look at appendonly and appendfsync yourself";

const START: &str =
    "start it again. Without the restart guard, never change the list of masters while clients run";
const START_OR_REPLACE: &str =
    "start it again, or replace it if it is off for good: `quorlock doctor --replacing OLD=NEW` says when";
const AGREE: &str = "give all clients the same masters, replicas= and --restart-guard";
const LET_VOTE: &str = "change what the reason names, so that it votes";

/// A master without a vote.
struct Absence {
    master: String,
    why: String,
    cure: &'static str,
}

/// All promises, in the order in which they are printed.
pub(super) fn judge(survey: &Survey) -> Vec<Promise> {
    vec![
        availability(survey),
        exclusion(survey),
        restarts(survey),
        failover(survey),
        restart_guard(survey),
        fencing(survey),
        wake_ups(survey),
        kind(survey, "several resources", Use::Several, "locks of several resources are granted all or none"),
        kind(survey, "readers", Use::Readers, "readers share a lock and keep writers out"),
        kind(survey, "permits", Use::Permits, "a semaphore never admits more than its permits"),
        kind(survey, "fair waiting", Use::FairWaiting, "fair waiters are served in order of arrival"),
    ]
}

impl Survey {
    /// The masters that could vote and for which `found` returns a detail.
    fn those(&self, found: impl Fn(usize, &Facts) -> Option<String>) -> Vec<(String, String)> {
        let all = self.masters.iter().zip(&self.answers).enumerate();
        all.filter_map(|(place, (master, answer))| {
            let facts = answer.as_ref().ok().filter(|_| self.objection(place).is_none())?;
            Some((master.to_string(), found(place, facts)?))
        })
        .collect()
    }

    /// The policy with which a master may remove locks, unless the options accept that.
    fn evicts(&self, facts: &Facts) -> Option<EvictionPolicy> {
        facts.evicts().filter(|policy| !self.evictions.contains(policy))
    }

    /// What the clients of a master must agree on, if the options set the restart guard.
    fn fleet(&self, place: usize) -> Option<Fleet> {
        let longest_ttl = Ttl::new(self.guard?).ok()?;
        let replicas = self.masters.get(place)?.replicas().map(u16::from);
        Some(Fleet { longest_ttl, masters: u32::try_from(self.quorum.masters()).ok()?, replicas })
    }

    /// Why a master that answered has no vote.
    pub(super) fn no_vote(&self, place: usize, facts: &Facts) -> Option<String> {
        let refusal = || Some(self.refusal(place, facts)?.at(self.masters.get(place)?).to_string());
        self.objection(place).or_else(refusal)
    }

    /// Why a master has no vote, and what to do about it.
    fn absence(&self, place: usize) -> Option<Absence> {
        let (master, answer) = (self.masters.get(place)?, self.answers.get(place)?);
        let (why, cure) = match answer {
            Err(cause) => {
                let gone = if self.guard.is_some() { START_OR_REPLACE } else { START };
                let cure = if cause.is_configuration() { LET_VOTE } else { gone };
                (cause.at(master).to_string(), cure)
            }
            Ok(facts) => {
                let cure = match self.refusal(place, facts).filter(|_| self.objection(place).is_none()) {
                    Some(Cause::OtherFleet { .. }) => AGREE,
                    Some(Cause::Quarantined { .. }) => NEW,
                    _ => LET_VOTE,
                };
                (self.no_vote(place, facts)?, cure)
            }
        };
        Some(Absence { master: master.to_string(), why, cure })
    }

    /// Why a master that could vote would not, under the restart guard of the options.
    fn refusal(&self, place: usize, facts: &Facts) -> Option<Cause> {
        let ours = self.fleet(place)?;
        if let Some(theirs) = facts.marker.mark().map(|mark| mark.fleet).filter(|theirs| *theirs != ours) {
            return Some(Cause::OtherFleet { ours, theirs });
        }
        if let Some(policy) = self.evicts(facts) {
            return Some(Cause::Evicts(policy));
        }
        let info = facts.info.as_ref()?;
        let [following, connected] =
            [info.following, info.replicas?].map(|many| u32::try_from(many).unwrap_or(u32::MAX));
        match ours.replicas.map(u32::from) {
            Some(declared) if [following, connected] != [declared; 2] => {
                Some(Cause::Alone { following, connected, declared })
            }
            _ => {
                let remaining = facts.quarantine(ours.longest_ttl.as_duration())?;
                Some(Cause::Quarantined { remaining })
            }
        }
    }

    /// The masters with replicas that could be promoted and that their URLs do not declare.
    fn followed(&self) -> Vec<(String, String)> {
        self.those(|place, facts| {
            let (master, replicas) = (self.masters.get(place)?, facts.info.as_ref()?.replicas?);
            let is_covered = master.replicas().is_some() || master.failover().is_some();
            (replicas > 0 && !is_covered)
                .then(|| if replicas == 1 { "1 replica".to_owned() } else { format!("{replicas} replicas") })
        })
    }

    /// The masters whose URLs accept that a failover loses locks, whether they answer or not.
    fn lossy(&self) -> Vec<(String, String)> {
        let lossy = |master: &&Endpoint| master.failover() == Some(Failover::MayLoseLocks);
        self.masters.iter().filter(lossy).map(|master| (master.to_string(), String::new())).collect()
    }

    /// The longest TTL of the restart guard that clients use: from the options, or from the markers
    /// of a quorum.
    pub(super) fn guard_in_use(&self) -> Option<Duration> {
        let marked: Vec<_> = self
            .answers
            .iter()
            .flatten()
            .filter_map(|facts| facts.marker.mark().map(Mark::longest))
            .collect();
        let by_marker = marked.iter().max().filter(|_| marked.len() >= self.quorum.needed());
        self.guard.or(by_marker.copied())
    }
}

fn availability(survey: &Survey) -> Promise {
    let mut findings = Findings::default();
    let (masters, needed) = (survey.quorum.masters(), survey.quorum.needed());
    let absent: Vec<_> = (0..masters).filter_map(|place| survey.absence(place)).collect();
    let voting = masters - absent.len();
    let so = match voting.checked_sub(needed) {
        None => "so no lock is granted",
        Some(0) => "so locks are granted, and none more may fail",
        Some(_) => "so locks are granted, and more may fail",
    };
    let mut what = format!("{voting} of {masters} masters vote, {needed} are needed, {so}; no vote");
    for cure in [START, START_OR_REPLACE, AGREE, NEW, LET_VOTE] {
        let those = absent.iter().filter(|absence| absence.cure == cure);
        let those: Vec<_> = those.map(|Absence { master, why, .. }| (master.clone(), why.clone())).collect();
        findings.broken(&what, &those, cure);
        if !those.is_empty() {
            what = "no vote".to_owned();
        }
    }
    lacking(survey, &mut findings, Use::Locks);
    if survey.guard.is_some() {
        lacking(survey, &mut findings, Use::RestartGuard);
        findings.broken(NAMELESS, &nameless(survey), NAME);
    }
    let text = match masters - needed {
        0 => format!("{masters} of {masters} masters vote; none may fail"),
        spare => format!("{masters} of {masters} masters vote; {spare} may fail"),
    };
    findings.judge("availability", &text)
}

fn exclusion(survey: &Survey) -> Promise {
    let mut findings = Findings::about(survey);
    let evicting = survey.those(|_, facts| survey.evicts(facts).map(|policy| policy.to_string()));
    findings.broken("may remove locks when its memory is full", &evicting, NO_EVICTION);
    let others = survey.those(|_, facts| {
        let masters = facts.marker.mark()?.fleet.masters;
        (masters as usize != survey.quorum.masters()).then(|| format!("{masters} masters"))
    });
    let cure = "give all clients the same masters";
    findings.broken("has clients that use another number of masters", &others, cure);
    let drifting = survey.those(|place, _| {
        let standing = survey.standings.get(place).copied().flatten()?;
        let beyond = standing.rate.abs() - standing.rate_error > DRIFT;
        beyond.then(|| format!("{:+.1} %", standing.rate * 100.0))
    });
    let cure = "let its time service slew the clock, never step it while locks are held";
    findings.broken("has a clock that runs at the wrong rate or has just been set", &drifting, cure);
    unheard(survey, &mut findings);
    findings.judge("exclusion", "no two clients hold one lock while the masters keep their data")
}

fn restarts(survey: &Survey) -> Promise {
    let mut findings = Findings::about(survey);
    match survey.guard {
        Some(longest) => {
            against_guard(survey, &mut findings);
            let text = format!(
                "a master that lost its data does not vote for {}: the restart guard is in use",
                spoken(longest)
            );
            findings.judge("restarts", &text)
        }
        None => {
            losing_data(survey, &mut findings, "forgets locks when it restarts");
            findings.judge("restarts", "a master that restarts still has every lock that it granted")
        }
    }
}

fn failover(survey: &Survey) -> Promise {
    let mut findings = Findings::about(survey);
    let what = "two clients may hold one lock after a failover, as its URL says";
    findings.broken(what, &survey.lossy(), DECLARE);
    let what = "two clients may hold one lock if a replica is promoted while its old primary keeps running";
    findings.broken(what, &survey.followed(), DETACH);
    let declared = |place: usize| survey.masters.get(place)?.replicas().map(u64::from);
    let incomplete = survey.those(|place, facts| {
        let (replicas, declared) = (facts.info.as_ref()?.replicas?, declared(place)?);
        (replicas != declared).then(|| format!("{replicas} of {declared}"))
    });
    let cure = "attach or detach replicas, or give all clients the actual number";
    findings.broken("has no vote without exactly the replicas that its URL declares", &incomplete, cure);
    unheard(survey, &mut findings);
    findings
        .judge("failover", "no master has a replica that could be promoted and does not confirm its votes")
}

/// Whether the restart guard works on these masters, whether this client uses it or not.
pub(super) fn usable_guard(survey: &Survey) -> Promise {
    let mut findings = Findings::default();
    against_guard(survey, &mut findings);
    findings.judge("restart guard", "")
}

fn restart_guard(survey: &Survey) -> Promise {
    let mut findings = Findings::about(survey);
    against_guard(survey, &mut findings);
    let text = match survey.guard {
        Some(longest) => {
            findings.cures.extend(backlogs(survey));
            format!("in use, for {}; one client without it voids it for all: {GUARD_ALL}", spoken(longest))
        }
        None => {
            used_by_others(survey, &mut findings);
            "not in use; these masters allow it".to_owned()
        }
    };
    findings.judge("restart guard", &text)
}

/// Masters on which other clients use the guard, although this one does not.
fn used_by_others(survey: &Survey, findings: &mut Findings) {
    let marked =
        survey.those(|_, facts| facts.marker.mark().map(|mark| spoken(mark.fleet.longest_ttl.as_duration())));
    let what = "other clients use it, and this client without it voids it for all";
    findings.broken(what, &marked, &format!("{GUARD_ALL}, or delete the markers if none uses it any more"));
}

fn fencing(survey: &Survey) -> Promise {
    let mut findings = Findings::about(survey);
    lacking_locks(survey, &mut findings);
    lacking(survey, &mut findings, Use::Fencing);
    // Counters have no TTL, so only the `allkeys` policies remove them.
    let evicting = survey.those(|_, facts| {
        let policy = facts.evicts()?.to_string();
        policy.starts_with("allkeys").then_some(policy)
    });
    findings.broken("may remove counters when its memory is full", &evicting, NO_EVICTION);
    let what = "fenced locks are refused, because its URL says failover=may-lose-locks";
    findings.broken(what, &survey.lossy(), DECLARE);
    let what = "a replica that is promoted may repeat a fencing token";
    findings.broken(what, &survey.followed(), DETACH);
    match survey.guard {
        Some(_) => against_guard(survey, &mut findings),
        None => losing_data(survey, &mut findings, "may lose its counters when it restarts"),
    }
    findings.judge("fencing", "each grant has a larger fencing token than all before")
}

fn wake_ups(survey: &Survey) -> Promise {
    let mut findings = Findings::about(survey);
    let what = "does not notify waiters, which retry after retry_delay";
    let cure_of = |silence| match silence {
        Silence::Refused(ServerError::NoPerm) => GRANT_TRACKING,
        Silence::Refused(_) => KNOW_TRACKING,
        Silence::OfVersion => UPDATE,
    };
    for cure in [GRANT_TRACKING, KNOW_TRACKING, UPDATE] {
        let silent = survey.those(|_, facts| {
            let silence = facts.tracking.err()?;
            (cure_of(silence) == cure).then(|| silence.to_string())
        });
        findings.broken(what, &silent, cure);
    }
    findings.judge("wake-ups", "waiters are notified when a lock ends")
}

fn kind(survey: &Survey, name: &'static str, of: Use, text: &str) -> Promise {
    let mut findings = Findings::about(survey);
    lacking_locks(survey, &mut findings);
    lacking(survey, &mut findings, of);
    findings.judge(name, text)
}

/// Commands that this user may not send, and commands that the server does not know.
fn lacking(survey: &Survey, findings: &mut Findings, of: Use) {
    let denied = survey.those(|_, facts| facts.permissions.lacking_for(of, true));
    findings.broken("this user may not", &denied, GRANT);
    let unknown = survey.those(|_, facts| facts.permissions.lacking_for(of, false));
    findings.broken("does not know", &unknown, "use a server that knows these commands");
    let unasked = survey.those(|_, facts| facts.permissions.way.is_none().then(String::new));
    findings.unknown("permissions not known", &unasked, LET_ASK);
}

/// What prevents even plain locks; the first promise has the details.
fn lacking_locks(survey: &Survey, findings: &mut Findings) {
    let denied = survey.those(|_, facts| {
        let lacks = |is_known| facts.permissions.lacking_for(Use::Locks, is_known).is_some();
        (lacks(true) || lacks(false)).then(String::new)
    });
    findings.broken("not even plain locks can be taken", &denied, "see availability");
}

/// What prevents the restart guard from working.
fn against_guard(survey: &Survey, findings: &mut Findings) {
    lacking(survey, findings, Use::RestartGuard);
    findings.broken(NAMELESS, &nameless(survey), NAME);
    let evicting = survey.those(|_, facts| survey.evicts(facts).map(|policy| policy.to_string()));
    findings.broken("may remove the guard's marker when its memory is full", &evicting, NO_EVICTION);
    let others = survey.those(|_, facts| {
        let (ours, longest) = (survey.guard?, facts.marker.mark()?.longest());
        (longest != ours).then(|| spoken(longest))
    });
    findings.broken("its clients use another guard", &others, "give all clients the same --restart-guard");
    unheard(survey, findings);
}

/// What to change on masters that change their replication id once more after their last replica
/// has left them. That breaks no promise, but each change costs the master its vote for a while.
fn backlogs(survey: &Survey) -> Option<String> {
    let freed =
        survey.those(|_, facts| facts.backlog_ttl.filter(|seconds| *seconds > 0).map(|_| String::new()));
    let freed: Vec<_> = freed.into_iter().map(|(master, _)| master).collect();
    (!freed.is_empty()).then(|| {
        format!(
            "before backups with redis-cli --rdb, after which a master does not vote for a while, set repl-backlog-ttl 0 \
             on {}, and make backups of one master after the other",
            freed.join(", ")
        )
    })
}

/// Masters that report no replication id, which the restart guard needs.
fn nameless(survey: &Survey) -> Vec<(String, String)> {
    survey.those(|_, facts| facts.info.as_ref()?.replication_id.is_none().then(String::new))
}

/// Masters that lose acknowledged writes when they restart.
fn losing_data(survey: &Survey, findings: &mut Findings, what: &str) {
    let with_details = |keeps: Option<bool>| {
        let details = |facts: &Facts| Some(facts.persistence()).filter(|told| told != NOT_TOLD);
        survey.those(|place, facts| {
            let is_durable = survey.masters.get(place)?.failover() == Some(Failover::Durable);
            (facts.keeps_data() == keeps && !is_durable).then(|| details(facts).unwrap_or_default())
        })
    };
    let cure = if nameless(survey).is_empty() { KEEP_OR_GUARD } else { KEEP };
    findings.broken(what, &with_details(Some(false)), cure);
    findings.unknown(NOT_TOLD, &with_details(None), TELL_SETTINGS);
}

/// Adds the masters that do not report INFO.
fn unheard(survey: &Survey, findings: &mut Findings) {
    let silent = survey.those(|_, facts| facts.info.is_none().then(String::new));
    findings.unknown("INFO is not reported", &silent, "allow +info, and name the server instead of a proxy");
}
