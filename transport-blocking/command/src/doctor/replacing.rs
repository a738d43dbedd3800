//! `quorlock doctor --replacing OLD=NEW`: what masters can tell about the replacement of a dead
//! master by another one while clients run. It asks only, and writes nothing to the new master: the
//! first client that asks it begins its quarantine.

use std::io::ErrorKind;
use std::time::{Duration, SystemTime};

use quorlock_core::{Cause, Discovery, Endpoint, EndpointError, Fleet};
use serde::Serialize;

use super::{Survey, config, prepare, promises, survey};
use crate::arguments::{DoctorArguments, Replacing};
use crate::asking::{self, Mark, Marker};
use crate::duration::spoken;
use crate::ending::{Refusal, UNKEPT};
use crate::json;
use crate::output::without_control;

/// How long it may take to find out whether the old master is off.
const WITHIN: Duration = Duration::from_secs(3);

/// The report, and the exit code.
pub(super) fn report(arguments: &DoctorArguments, named: &Replacing) -> Result<(String, u8), Refusal> {
    let config = config(arguments)?;
    let Places { old, masters } = Places::of(config.masters(), named)?;
    let old = [old];
    prepare(&config, &old)?;
    let place = masters.len() - 1;
    let survey = survey(&config, masters, arguments)?;
    let answers = asking::all(&old, config.security(), WITHIN, |master, security, ends| {
        asking::find(master, security, "quorlock-doctor", ends).map(|_| ())
    });
    let [old] = &old;
    let answer = answers.into_iter().next().unwrap_or(Err(Cause::NoAnswer { waited: WITHIN }));
    let new = survey.masters.get(place).map(ToString::to_string).unwrap_or_default();
    let verdict = judge(&survey, old, answer, place, &new);
    let code = if verdict.safe == Some(true) { 0 } else { UNKEPT };
    Ok((if arguments.json { json::line(&verdict) } else { verdict.text() }, code))
}

/// The old master, and the clients' masters without it.
struct Places {
    old: Endpoint,
    /// The new one is the last. So if it is the same server as another one, it is the one that has
    /// no vote.
    masters: Vec<Endpoint>,
}

impl Places {
    fn of(list: &[Endpoint], named: &Replacing) -> Result<Self, Refusal> {
        let wrong = |what: &str, error: EndpointError| {
            Refusal::Configuration(format!("{what} of --replacing: {error}"))
        };
        let parse = |given: &str| {
            if given.contains("://") { given.parse() } else { format!("redis://{given}").parse() }
        };
        let given_old: Endpoint = parse(&named.old.0).map_err(|error| wrong("OLD", error))?;
        let given_new: Endpoint = parse(&named.new.0).map_err(|error| wrong("NEW", error))?;
        if given_old.same_server(&given_new) {
            return Err(Refusal::Configuration(
                "OLD and NEW of --replacing are the same address. A server that comes back there without its \
                 data is covered by the restart guard: no client needs another list."
                    .into(),
            ));
        }
        let find = |given: &Endpoint| list.iter().enumerate().find(|(_, master)| master.same_server(given));
        let (place, known) = match (find(&given_old), find(&given_new)) {
            (Some(found), None) | (None, Some(found)) => found,
            (Some(_), Some(_)) => {
                return Err(Refusal::Configuration(
                    "The masters contain both OLD and NEW of --replacing, but the successor takes the place of \
                     the old master: their number must not change."
                        .into(),
                ));
            }
            (None, None) => {
                return Err(Refusal::Configuration(
                    "Neither OLD nor NEW of --replacing is one of the masters: name those of the clients, with \
                     -m or in QUORLOCK_MASTERS."
                        .into(),
                ));
            }
        };
        let settled = |text: &str, given: Endpoint, what: &str| {
            if known.same_server(&given) {
                Ok(known.clone())
            } else if text.contains("://") {
                Ok(given)
            } else {
                with_settings_of(known, given).map_err(|error| wrong(what, error))
            }
        };
        let old = settled(&named.old.0, given_old, "OLD")?;
        let new = settled(&named.new.0, given_new, "NEW")?;
        if [&old, &new].iter().any(|master| matches!(master.discovery(), Some(Discovery::Cluster { .. }))) {
            return Err(Refusal::Configuration(
                "A tag of a cluster cannot be replaced with --replacing: its slot has another owner when its \
                 node dies."
                    .into(),
            ));
        }
        let mut masters = list.to_vec();
        masters.remove(place);
        masters.push(new);
        Ok(Self { old, masters })
    }
}

/// A master of which only host and port are known, with everything else as for another one.
fn with_settings_of(known: &Endpoint, place: Endpoint) -> Result<Endpoint, EndpointError> {
    let mut master = place.with_database(u16::try_from(known.database()).unwrap_or_default());
    if let Some(user) = known.user() {
        master = master.with_user(user);
    }
    master = match (known.password_file(), known.password()) {
        (Some(file), _) => master.with_password_file(file),
        (None, Some(password)) => master.with_password(password),
        (None, None) => master,
    };
    if let Some(options) = known.tls() {
        master = master.with_tls(options.clone());
    }
    master.with_replicas(known.replicas())
}

/// What is printed with `--json`; `quorlock doctor --help` documents the fields.
#[derive(Debug, Serialize)]
struct Verdict {
    text: String,
    /// `None` if that is not known.
    safe: Option<bool>,
    /// What speaks against naming the new master now, each with what to do.
    against: Vec<String>,
    /// What may speak against it, each with what to do.
    not_known: Vec<String>,
    /// What masters cannot tell.
    rests_on: Vec<String>,
    longest_ttl_ms: Option<u128>,
    /// For how long the new master will not vote.
    wait_ms: Option<u128>,
    old: Old,
    new: New,
}

#[derive(Debug, Serialize)]
struct Old {
    address: String,
    /// Whether it refuses connections from here; `None` if that is not known.
    off: Option<bool>,
    said: String,
}

#[derive(Debug, Serialize)]
struct New {
    address: String,
    answered: bool,
    said: String,
    /// When its quarantine began, by its own clock.
    quarantine_began: Option<String>,
}

fn judge(survey: &Survey, old: &Endpoint, answer: Result<(), Cause>, place: usize, new: &str) -> Verdict {
    let longest = survey.guard_in_use();
    let wait = longest.map_or_else(|| "the longest TTL".to_owned(), spoken);
    let old_name = old.to_string();
    let (off, said) = match answer {
        Err(cause @ Cause::Connect(fault))
            if matches!(fault.kind(), ErrorKind::ConnectionRefused | ErrorKind::NotFound) =>
        {
            (Some(true), format!("refuses connections from here ({})", cause.at(old)))
        }
        // Nothing is heard of it, so it may still run and be reached by others.
        Err(
            cause @ (Cause::Connect(_)
            | Cause::NoConnection { .. }
            | Cause::NoAnswer { .. }
            | Cause::UnknownHost
            | Cause::Sentinel(_)),
        ) => (None, format!("is not known to be off ({})", cause.at(old))),
        Err(cause) => (Some(false), format!("is still on ({})", cause.at(old))),
        Ok(()) => (Some(false), "is still on".to_owned()),
    };
    let (mut against, mut not_known) = (Vec::new(), Vec::new());
    match off {
        Some(true) => {}
        Some(false) => against.push(format!("{old_name} is still on: stop it for good, then wait {wait}")),
        None => not_known.push(format!(
            "{old_name} may only be hung or cut off from here: make sure that it is off for good, then wait {wait}"
        )),
    }
    if longest.is_none() {
        against.push(
            "no restart guard is known: give the --restart-guard of all clients. Without one, stop all clients \
             before you change the masters"
                .to_owned(),
        );
    }
    let guard = promises::usable_guard(survey);
    match guard.holds {
        Some(true) => {}
        Some(false) => against.extend(guard.text),
        None => not_known.extend(guard.text),
    }
    let others = survey.masters.iter().zip(&survey.answers).filter_map(|(master, answer)| {
        let masters = answer.as_ref().ok()?.marker.mark()?.fleet.masters;
        let is_other = masters as usize != survey.quorum.masters();
        is_other
            .then(|| format!("{master} has clients with {masters} masters: give all clients the same number"))
    });
    against.extend(others);
    let (new_said, mark) = about_new(survey, place, longest, &mut against);
    match mark {
        None => {}
        Some(mark) if mark.opens == mark.born => against.push(bootstrapped(new, &old_name)),
        Some(mark) => not_known.push(asked_already(new, &old_name, mark)),
    }
    let (safe, text) = match (against.is_empty(), not_known.is_empty()) {
        (true, true) => (
            Some(true),
            format!("{new} may be named now in place of {old_name}, if what this rests on is true"),
        ),
        (true, false) => {
            (None, format!("it is not known whether {new} may be named now in place of {old_name}"))
        }
        (false, _) => (Some(false), format!("{new} may not be named now in place of {old_name}")),
    };
    let left = |mark: &Mark| mark.opens.saturating_sub(mark.now);
    Verdict {
        text,
        safe,
        against,
        not_known,
        rests_on: rests_on(old, &old_name, new, &wait),
        longest_ttl_ms: longest.map(|longest| longest.as_millis()),
        wait_ms: mark.map_or(longest, |mark| Some(left(mark))).map(|wait| wait.as_millis()),
        old: Old { address: old_name, off, said },
        new: New {
            address: new.to_owned(),
            answered: survey.answers.get(place).is_some_and(Result::is_ok),
            said: new_said,
            quarantine_began: mark.map(|mark| date(mark.born)),
        },
    }
}

/// What the new master says, and its marker if clients have asked it already.
fn about_new<'a>(
    survey: &'a Survey,
    place: usize,
    longest: Option<Duration>,
    against: &mut Vec<String>,
) -> (String, Option<&'a Mark>) {
    let facts = match (survey.masters.get(place), survey.answers.get(place)) {
        (_, Some(Ok(facts))) => facts,
        (Some(master), Some(Err(cause))) => {
            let cause = cause.at(master).to_string();
            against.push(format!("the new master has no vote ({cause})"));
            return (cause, None);
        }
        _ => return (String::new(), None),
    };
    if let Some(objection) = survey.objection(place) {
        // Its marker may be that of a server that is in use.
        against.push(format!("the new master has no vote ({objection})"));
        return (objection, None);
    }
    let lasts = longest.map(|longest| format!(", and lasts {}", spoken(longest))).unwrap_or_default();
    let begins = format!("its quarantine begins when the first client asks it{lasts}");
    match &facts.marker {
        Marker::Absent => (format!("has no marker: {begins}"), None),
        Marker::Unknown => {
            against.push(format!("the new master does not say whether it has a marker ({})", Fleet::MARKER));
            ("does not report its marker".to_owned(), None)
        }
        // The next client that asks it begins another quarantine.
        Marker::Present(mark) if !mark.is_own => {
            (format!("has a marker from before its restart: {begins}"), None)
        }
        Marker::Present(mark) => {
            let age = spoken(mark.now.saturating_sub(mark.born));
            let said = match mark.opens.saturating_sub(mark.now) {
                _ if mark.opens == mark.born => format!("votes since a bootstrap, {age} ago"),
                Duration::ZERO => format!("votes: its quarantine began {age} ago"),
                left => format!("its quarantine began {age} ago, and ends in {}", spoken(left)),
            };
            (said, Some(mark))
        }
    }
}

/// What may speak against a new master that a client has asked: nobody can tell whether the old one
/// still voted then.
fn asked_already(new: &str, old: &str, mark: &Mark) -> String {
    format!(
        "a client has asked {new} already: that is safe only if {old} has been off since before {}. If you do not \
         know that, {}",
        date(mark.born),
        begin_anew(new, old)
    )
}

fn bootstrapped(new: &str, old: &str) -> String {
    format!("{new} votes since a bootstrap, which is no part of a replacement: {}", begin_anew(new, old))
}

fn begin_anew(new: &str, old: &str) -> String {
    format!("delete {} on {new} while {old} is off: its quarantine then begins anew", Fleet::MARKER)
}

/// What no master can tell.
fn rests_on(old: &Endpoint, old_name: &str, new: &str, wait: &str) -> Vec<String> {
    let mut rests =
        vec![format!("{old_name} has been off for {wait}, and nothing starts it again at its address")];
    if old.replicas().is_some_and(|many| many > 0) || old.discovery().is_some() {
        rests.push(format!("the same holds for all replicas of {old_name}: its whole group is off for good"));
    }
    rests.push(format!("all clients get {new}, and none gets another successor of {old_name}"));
    rests
}

/// A time since 1970 in UTC, in the format of RFC 3339.
fn date(at: Duration) -> String {
    humantime::format_rfc3339_seconds(SystemTime::UNIX_EPOCH + at).to_string()
}

impl Verdict {
    /// Lines for people.
    fn text(&self) -> String {
        let mut lines = vec![self.text.clone(), String::new()];
        lines.push(format!("{}  {}", self.old.address, self.old.said));
        lines.push(format!("{}  {}", self.new.address, self.new.said));
        for (name, list) in
            [("against:", &self.against), ("not known:", &self.not_known), ("rests on:", &self.rests_on)]
        {
            if !list.is_empty() {
                lines.push(String::new());
                lines.push(name.to_owned());
                lines.extend(list.iter().map(|line| format!("  - {line}")));
            }
        }
        lines.iter().map(|line| without_control(line) + "\n").collect()
    }
}
