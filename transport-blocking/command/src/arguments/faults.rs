//! Parses `--fault`, whose value says in one word what goes wrong, where and when.

use std::time::Duration;

use quorlock_sim::{Fault, Keep, When};

use crate::duration;

/// The kinds, each with what it is about: `c` a client, `m` a master, `p` a client and a master;
/// and whether it lasts.
const KINDS: [(&str, char, bool); 15] = [
    ("pause", 'c', true),
    ("kill", 'c', false),
    ("hang", 'm', true),
    ("restart", 'm', true),
    ("restart-empty", 'm', true),
    ("restart-half", 'm', true),
    ("save", 'm', false),
    ("restore", 'm', true),
    ("flush", 'm', false),
    ("clock", 'm', true),
    ("fast", 'm', false),
    ("partition", 'p', true),
    ("mute", 'p', true),
    ("half-open", 'p', false),
    ("cut", 'p', false),
];

/// By how much the clock of a `fast` master gains: ten times the difference that validity allows
/// for between any two clocks.
const FAST_PPM: i32 = 100_000;

/// Reads `KIND:WHO@WHEN+SPAN`. The error is the rest of a sentence that begins with the name of the
/// option.
///
/// The caller checks the numbers of clients and masters, because it knows how many there are.
pub(super) fn parse(text: &str) -> Result<(When, Fault), String> {
    let form = "is written KIND:WHO@WHEN or KIND:WHO@WHEN+SPAN, such as hang:1@300ms+2s";
    let (kind, rest) = text.split_once(':').ok_or(form)?;
    let (who, times) = rest.split_once('@').ok_or(form)?;
    let (when, span) = match times.split_once('+') {
        Some((when, span)) => (when, Some(span)),
        None => (times, None),
    };
    let Some((_, whose, lasts)) = KINDS.iter().find(|(name, ..)| *name == kind) else {
        let names: Vec<_> = KINDS.iter().map(|(name, ..)| *name).collect();
        return Err(format!("has one of the kinds {}", names.join(", ")));
    };
    let number = |text: &str| text.parse::<usize>().ok();
    let (client, master) = match whose {
        'c' => (number(who), Some(0)),
        'm' => (Some(0), number(who)),
        _ => who.split_once('-').map_or((None, None), |(client, master)| (number(client), number(master))),
    };
    let (Some(client), Some(master)) = (client, master) else {
        let (whose, numbers) = match whose {
            'c' => ("a client: write its number, from 0", "0"),
            'm' => ("a master: write its number, from 0", "0"),
            _ => ("a client and a master: write both numbers", "0-1"),
        };
        let span = if *lasts { "+2s" } else { "" };
        return Err(format!("{kind} is about {whose}, as in {kind}:{numbers}@300ms{span}"));
    };
    let at = |text: &str| duration::parse(text).map_err(|reason| format!("has a time that {reason}"));
    let when = at(when)?;
    let span = match (span, lasts) {
        (Some(span), true) => at(span)?,
        (None, false) => Duration::ZERO,
        (None, true) => {
            return Err(format!("{kind} needs a span after its time, as in {kind}:{who}@300ms+2s"));
        }
        (Some(_), false) => return Err(format!("{kind} takes no span: write {kind}:{who}@300ms")),
    };
    let crash = |keep| Fault::Crash { master, span, keep };
    let fault = match kind {
        "pause" => Fault::Pause { client, span },
        "kill" => Fault::Kill { client },
        "hang" => Fault::Hang { master, span },
        "restart" => crash(Keep::Everything),
        "restart-empty" => crash(Keep::Nothing),
        "restart-half" => crash(Keep::Half),
        "save" => Fault::Save { master },
        "restore" => Fault::Restore { master, span },
        "flush" => Fault::Flush { master },
        "clock" => {
            let by_millis = i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
            Fault::MasterJump { master, by_millis }
        }
        "fast" => Fault::MasterDrift { master, gain_ppm: FAST_PPM },
        "partition" => Fault::Partition { client, master, span },
        "mute" => Fault::Mute { client, master, span },
        "half-open" => Fault::HalfOpen { client, master },
        _ => Fault::Cut { client, master },
    };
    Ok((When::At(when), fault))
}

/// The largest numbers of a client and of a master that a fault names.
pub(super) fn named(fault: Fault) -> (usize, usize) {
    match fault {
        Fault::Pause { client, .. } | Fault::Kill { client } => (client, 0),
        Fault::Partition { client, master, .. }
        | Fault::Mute { client, master, .. }
        | Fault::HalfOpen { client, master }
        | Fault::Cut { client, master } => (client, master),
        Fault::Hang { master, .. }
        | Fault::Crash { master, .. }
        | Fault::Save { master }
        | Fault::Restore { master, .. }
        | Fault::Flush { master }
        | Fault::MasterJump { master, .. }
        | Fault::MasterDrift { master, .. } => (0, master),
        _ => (0, 0),
    }
}

/// A fault as the option writes it. If the option cannot express it, the library's `Debug` form.
pub(crate) fn shown(when: When, fault: Fault) -> String {
    let When::At(at) = when else { return format!("{fault:?} {when:?}") };
    let lasting = |kind: &str, who: String, span: Duration| format!("--fault {kind}:{who}@{at:?}+{span:?}");
    let short = |kind: &str, who: String| format!("--fault {kind}:{who}@{at:?}");
    match fault {
        Fault::Pause { client, span } => lasting("pause", client.to_string(), span),
        Fault::Kill { client } => short("kill", client.to_string()),
        Fault::Hang { master, span } => lasting("hang", master.to_string(), span),
        Fault::Crash { master, span, keep: Keep::Everything } => lasting("restart", master.to_string(), span),
        Fault::Crash { master, span, keep: Keep::Nothing } => {
            lasting("restart-empty", master.to_string(), span)
        }
        Fault::Crash { master, span, keep: Keep::Half } => lasting("restart-half", master.to_string(), span),
        Fault::Save { master } => short("save", master.to_string()),
        Fault::Restore { master, span } => lasting("restore", master.to_string(), span),
        Fault::Flush { master } => short("flush", master.to_string()),
        Fault::MasterJump { master, by_millis: by @ 0.. } => {
            lasting("clock", master.to_string(), Duration::from_millis(by.unsigned_abs()))
        }
        Fault::MasterDrift { master, gain_ppm: FAST_PPM } => short("fast", master.to_string()),
        Fault::Partition { client, master, span } => lasting("partition", format!("{client}-{master}"), span),
        Fault::Mute { client, master, span } => lasting("mute", format!("{client}-{master}"), span),
        Fault::HalfOpen { client, master } => short("half-open", format!("{client}-{master}")),
        Fault::Cut { client, master } => short("cut", format!("{client}-{master}")),
        other => format!("{other:?} at {at:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_read_and_shown_alike() {
        for (kind, whose, lasts) in KINDS {
            let who = if whose == 'p' { "1-2" } else { "1" };
            let span = if lasts { "+2s" } else { "" };
            let text = format!("{kind}:{who}@300ms{span}");
            let (when, fault) = parse(&text).unwrap();
            assert_eq!(shown(when, fault), format!("--fault {text}"));
            assert!(named(fault) != (0, 0), "{text}");
        }
    }

    #[test]
    fn invalid_faults_are_refused_with_the_reason() {
        for (text, says) in [
            ("hang", "KIND:WHO@WHEN"),
            ("hang:1", "KIND:WHO@WHEN"),
            ("bang:1@1s", "half-open"),
            ("hang:x@1s+1s", "number"),
            ("cut:1@1s", "cut:0-1@"),
            ("hang:1@1+1s", "unit"),
            ("hang:1@1s", "span"),
            ("flush:1@1s+1s", "no span"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
