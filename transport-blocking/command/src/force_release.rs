//! `quorlock force-release`: delete a lock's key on all masters, whoever holds it.

use std::io::{self, BufRead, IsTerminal, Write};

use quorlock_blocking::Config;
use quorlock_core::{Cause, Resource};

use crate::arguments::{ForceReleaseArguments, Terms};
use crate::ending::{NO_QUORUM, Refusal, SPLIT, USAGE};
use crate::inspect::{Deletion, Verdict, delete, survey};
use crate::lock;
use crate::output::{JsonValue, Level, Output, without_control};
use crate::status::sentence;

/// Deletes it, if that is meant. The exit code.
pub(crate) fn force_release(arguments: &ForceReleaseArguments, output: &Output) -> u8 {
    let name = arguments.resource.as_bytes();
    let outcome = lock::checked(Terms::plain(&arguments.masters, &arguments.resource), name).and_then(
        |(config, resource)| {
            if !arguments.is_confirmed {
                confirm(arguments, &config, &resource, output)?;
            }
            Ok((config, resource))
        },
    );
    match outcome {
        Ok((config, resource)) => deleted(&config, &resource, output),
        Err(refusal) => refusal.tell(Some(name), output),
    }
}

/// Asks at the terminal.
fn confirm(
    arguments: &ForceReleaseArguments,
    config: &Config,
    resource: &Resource,
    output: &Output,
) -> Result<(), Refusal> {
    let (stdin, stderr) = (io::stdin(), io::stderr());
    if !stdin.is_terminal() || !stderr.is_terminal() || arguments.speech.is_json() {
        return Err(Refusal::Configuration(
            "nothing is deleted: add --yes-delete-it-whoever-holds-it, or call this at a terminal, which asks first"
                .to_owned(),
        ));
    }
    let name = without_control(&String::from_utf8_lossy(resource.name()));
    let survey = survey(config.masters(), resource.key(), None);
    let stands = sentence(&Verdict::of(&survey.answers, config.quorum()), None);
    output.message(Level::Warning, &format!("{name} is {stands}"));
    output.message(Level::Warning, "whoever holds it is not told at once, and may go on as if it were held");
    let asked = write!(&stderr, "Type the name of the lock to delete it: ").and_then(|()| (&stderr).flush());
    let mut typed = String::new();
    let read = asked.and_then(|()| stdin.lock().read_line(&mut typed));
    if read.is_ok() && typed.trim_end_matches(['\r', '\n']) == name {
        return Ok(());
    }
    Err(Refusal::Configuration("nothing is deleted: that is not the name of the lock".to_owned()))
}

fn deleted(config: &Config, resource: &Resource, output: &Output) -> u8 {
    let name = String::from_utf8_lossy(resource.name());
    let outcomes = delete(config.masters(), resource.key());
    let count = |wanted: Deletion| outcomes.iter().filter(|outcome| **outcome == Ok(wanted)).count();
    let (deleted, absent) = (count(Deletion::Deleted), count(Deletion::Absent));
    let (all, needed) = (config.quorum().masters(), config.quorum().needed());
    for (master, outcome) in config.masters().iter().zip(&outcomes) {
        let left = match outcome {
            Ok(Deletion::Deleted | Deletion::Absent) => continue,
            Ok(Deletion::OtherType) => "the key is no string, so it is no lock and stays".to_owned(),
            Ok(Deletion::Contended) => "others take the lock again and again".to_owned(),
            Err(cause) => format!("{cause}; if it has the key, it keeps it until the TTL is over"),
        };
        let master = master.to_string();
        let fields = [("resource", JsonValue::Text(&name)), ("master", JsonValue::Text(&master))];
        output.record(Level::Warning, "not_deleted", &format!("{master}: {left}"), &fields);
    }
    let fields = [
        ("resource", JsonValue::Text(&name)),
        ("deleted", JsonValue::Number(deleted.try_into().unwrap_or(u64::MAX))),
        ("absent", JsonValue::Number(absent.try_into().unwrap_or(u64::MAX))),
    ];
    let told = format!("deleted {name} on {deleted} of {all} masters; {absent} had no such key");
    let is_wrong = |outcome: &&Result<Deletion, Cause>| outcome.is_err_and(|cause| cause.is_configuration());
    let (code, level, more) = if count(Deletion::OtherType) > 0 {
        (SPLIT, Level::Error, "")
    } else if deleted + absent >= needed {
        (0, Level::Warning, "")
    } else if all - outcomes.iter().filter(is_wrong).count() < needed {
        (USAGE, Level::Error, ": too few to free it")
    } else {
        (NO_QUORUM, Level::Error, ": too few to free it")
    };
    output.record(level, "deleted", &format!("{told}{more}"), &fields);
    if deleted > 0 {
        let warning = "its holder is not told at once and may write still: only a store that compares fencing tokens \
                       keeps it out";
        output.record(Level::Warning, "holder_not_told", warning, &[("resource", JsonValue::Text(&name))]);
    }
    code
}
