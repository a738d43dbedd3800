//! `quorlock force-release`: delete the keys of a lock or of permits on all masters, without
//! holding them.

use std::collections::BTreeSet;
use std::io::{self, BufRead, IsTerminal, Write};

use quorlock_blocking::Locker;
use quorlock_core::front::ForceReleasing;
use quorlock_core::{Deletion, ForceReleaseError};

use crate::arguments::{ForceReleaseArguments, Terms};
use crate::ending::{NO_QUORUM, Refusal, SPLIT, USAGE};
use crate::lock;
use crate::output::{JsonValue, Level, Output, without_control};
use crate::printer;
use crate::status::{inspect, inspect_permits};

/// Deletes the lock, if the user confirms it. Returns the exit code.
pub(crate) fn force_release(arguments: &ForceReleaseArguments, output: &Output) -> u8 {
    let name = arguments.resource.as_bytes();
    let terms = Terms::plain(&arguments.masters, &arguments.resource);
    let locker = lock::ask(terms, name, "quorlock-force-release").and_then(|locker| {
        if !arguments.is_confirmed {
            confirm(arguments, &locker, name, output)?;
        }
        Ok(locker)
    });
    let ended = locker.and_then(|locker| match arguments.permits {
        Some(permits) => permits_deleted(&locker, name, permits, arguments.index, output),
        None => Ok(deleted(locker.force_release(name), name, &String::from_utf8_lossy(name), output)),
    });
    ended.unwrap_or_else(|refusal| refusal.tell(Some(name), output))
}

/// Deletes one permit of a semaphore, or each one that has a key on any master.
fn permits_deleted(
    locker: &Locker,
    name: &[u8],
    permits: u32,
    index: Option<u32>,
    output: &Output,
) -> Result<u8, Refusal> {
    let wrong = |error: quorlock_core::ConfigError| Refusal::Configuration(error.to_string());
    let semaphore = locker.semaphore(name, permits).map_err(wrong)?;
    let indices: BTreeSet<_> = match index {
        Some(index) => [index].into(),
        None => {
            let seen = inspect_permits(locker, name, permits, None)?;
            if seen.answered() < seen.quorum().needed() {
                return Err(Refusal::NoQuorum(seen.to_string()));
            }
            let keys = seen.masters().filter_map(|(_, answer)| answer.ok()).flat_map(|answer| &answer.keys);
            keys.map(|(index, _)| *index).collect()
        }
    };
    let shown = String::from_utf8_lossy(name);
    if indices.is_empty() {
        let fields = [("resource", JsonValue::Text(&shown))];
        output.record(Level::Warning, "deleted", &format!("no permit of {shown} has a key"), &fields);
    }
    let codes = indices.into_iter().map(|index| {
        let what = format!("permit {index} of {shown}");
        deleted(semaphore.force_release(index), name, &what, output)
    });
    // The larger code is the worse result. Each permit is tried.
    Ok(codes.fold(0, u8::max))
}

/// Asks for a confirmation at the terminal.
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
    let seen = match arguments.permits {
        Some(permits) => inspect_permits(locker, name, permits, None)?.to_string(),
        None => inspect(locker, name, None)?.to_string(),
    };
    let name = without_control(&String::from_utf8_lossy(name));
    output.message(Level::Warning, &format!("{name}: {seen}"));
    output.message(
        Level::Warning,
        "its holder is not notified at once, and may continue as if the lock were held",
    );
    // The question follows the warnings.
    printer::finish();
    let asked = write!(&stderr, "Type the name of the lock to delete it: ").and_then(|()| (&stderr).flush());
    let mut typed = String::new();
    let read = asked.and_then(|()| stdin.lock().read_line(&mut typed));
    if read.is_ok() && typed.trim_end_matches(['\r', '\n']) == name {
        return Ok(());
    }
    Err(Refusal::Configuration("nothing is deleted: that is not the name of the lock".to_owned()))
}

/// Waits until the keys of `what` are deleted, and reports the result. Returns the exit code.
fn deleted(releasing: ForceReleasing, name: &[u8], what: &str, output: &Output) -> u8 {
    let outcome = match releasing.wait() {
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
                "the key is not a string, so it is not a lock and stays".to_owned()
            }
            Ok(_) => "other clients keep taking the lock".to_owned(),
            Err(cause) => {
                wrong += usize::from(cause.is_configuration());
                format!("{}; if it has the key, it keeps it until the TTL is over", cause.at(master))
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
    let told = format!("deleted {what} on {deleted} of {all} masters; {absent} had no such key");
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
        let warning = "its holder is not notified at once and may still write: only a store that compares fencing tokens \
                       keeps it out";
        output.record(Level::Warning, "holder_not_told", warning, &[("resource", JsonValue::Text(&name))]);
    }
    code
}
