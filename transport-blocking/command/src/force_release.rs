//! `quorlock force-release`: delete a lock's key on all masters, whoever holds it.

use std::io::{self, BufRead, IsTerminal, Write};

use quorlock_blocking::Locker;
use quorlock_core::{Deletion, ForceReleaseError};

use crate::arguments::{ForceReleaseArguments, Terms};
use crate::ending::{NO_QUORUM, Refusal, SPLIT, USAGE};
use crate::lock;
use crate::output::{JsonValue, Level, Output, without_control};
use crate::status::inspect;

/// Deletes it, if that is meant. The exit code.
pub(crate) fn force_release(arguments: &ForceReleaseArguments, output: &Output) -> u8 {
    let name = arguments.resource.as_bytes();
    let terms = Terms::plain(&arguments.masters, &arguments.resource);
    let locker = lock::ask(terms, name, "quorlock-force-release").and_then(|locker| {
        if !arguments.is_confirmed {
            confirm(arguments, &locker, name, output)?;
        }
        Ok(locker)
    });
    match locker {
        Ok(locker) => deleted(&locker, name, output),
        Err(refusal) => refusal.tell(Some(name), output),
    }
}

/// Asks at the terminal.
fn confirm(
    arguments: &ForceReleaseArguments,
    locker: &Locker,
    name: &[u8],
    output: &Output,
) -> Result<(), Refusal> {
    let (stdin, stderr) = (io::stdin(), io::stderr());
    if !stdin.is_terminal() || !stderr.is_terminal() || arguments.speech.is_json() {
        return Err(Refusal::Configuration(
            "nothing is deleted: add --yes-delete-it-whoever-holds-it, or call this at a terminal, which asks first"
                .to_owned(),
        ));
    }
    let seen = inspect(locker, name, None)?;
    let name = without_control(&String::from_utf8_lossy(name));
    output.message(Level::Warning, &format!("{name} is {seen}"));
    output.message(Level::Warning, "whoever holds it is not told at once, and may go on as if it were held");
    let asked = write!(&stderr, "Type the name of the lock to delete it: ").and_then(|()| (&stderr).flush());
    let mut typed = String::new();
    let read = asked.and_then(|()| stdin.lock().read_line(&mut typed));
    if read.is_ok() && typed.trim_end_matches(['\r', '\n']) == name {
        return Ok(());
    }
    Err(Refusal::Configuration("nothing is deleted: that is not the name of the lock".to_owned()))
}

fn deleted(locker: &Locker, name: &[u8], output: &Output) -> u8 {
    let outcome = match locker.force_release(name).wait() {
        Ok(outcome) => outcome,
        Err(ForceReleaseError::TooFew(outcome)) => *outcome,
        Err(error) => return Refusal::NoQuorum(error.to_string()).tell(Some(name), output),
    };
    let name = String::from_utf8_lossy(name);
    let (deleted, absent) = (outcome.deleted(), outcome.absent());
    let (all, needed) = (outcome.quorum().masters(), outcome.quorum().needed());
    let (mut has_other_type, mut wrong) = (false, 0);
    for (master, deletion) in outcome.masters() {
        let left = match deletion {
            Ok(Deletion::Deleted | Deletion::Absent) => continue,
            Ok(Deletion::OtherType) => {
                has_other_type = true;
                "the key is no string, so it is no lock and stays".to_owned()
            }
            Ok(_) => "others take the lock again and again".to_owned(),
            Err(cause) => {
                wrong += usize::from(cause.is_configuration());
                format!("{cause}; if it has the key, it keeps it until the TTL is over")
            }
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
    let (code, level, more) = if has_other_type {
        (SPLIT, Level::Error, "")
    } else if deleted + absent >= needed {
        (0, Level::Warning, "")
    } else if all - wrong < needed {
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
