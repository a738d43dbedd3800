//! The calls of each script, each with states of its keys.

use quorlock_sim::CommandKind::{
    self, AcquireAll, Enter, ExtendAll, HealAll, KeepAll, KeepLeaving, Leave, RaiseAll, ReleaseAll, Take,
};

use crate::commands::Arguments;
use crate::found::Able;
use crate::found_keys::{
    COUNTER, Found, LOCK, MAIN, MAIN_QUEUE, MARK, MARKER, NEXT, NEXT_PLACE, OURS, OWN_PLACE, QUEUE, SEAT,
    WAIT,
};
use crate::kinds::{keys_of, sentinel_of};
use crate::scripts::SCRIPTS;

/// A call of a script, and what it finds.
#[derive(Clone)]
pub(crate) struct Call {
    pub(crate) name: String,
    pub(crate) words: Arguments,
    pub(crate) keys: Vec<Vec<u8>>,
    pub(crate) found: Found,
    pub(crate) able: Able,
}

/// The form of a script: for masters of their own, under the restart guard, or for masters with
/// replicas.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Form {
    Plain,
    Guarded,
    Replicated,
}

const FORMS: [Form; 3] = [Form::Plain, Form::Guarded, Form::Replicated];
const ABLE: [Able; 2] = [Able::Fully, Able::WithoutMemory];
/// The marker of a master that votes, if replicas are declared.
const REPLICATED_MARKER: &str = "SET KEY ID:-9,-4,5,1003";
/// Other ones of such a master: it does not vote yet, or has none of this fleet.
const MARKER_OF_REPLICAS: [&str; 3] = ["SET KEY ID:-9,+70,5,1003", "", "SET KEY ID:-9,-4,5,3"];
/// The flags that a claim or a waiter may have.
const FLAGS: [(CommandKind, &[&str]); 10] = [
    (AcquireAll, &["-", "f", "i", "m", "fg"]),
    (RaiseAll, &["-"]),
    (ExtendAll, &["-", "f"]),
    (HealAll, &["-", "f"]),
    (ReleaseAll, &["-", "t", "m"]),
    (KeepAll, &["-"]),
    (Take, &["-", "f", "m", "w", "fg"]),
    (Enter, &["-", "f", "s", "x", "fg"]),
    (Leave, &["-"]),
    (KeepLeaving, &["-"]),
];
const TARGETS: [(&[&str], &[&str]); 5] =
    [(&["c"], &[]), (&[], &["d"]), (&["c"], &["d"]), (&["c", "d"], &[]), (&[], &["c", "d"])];

impl Form {
    /// Whether the script looks at the marker of the restart guard, although it does not name it
    /// otherwise.
    fn adds_marker(self, kind: CommandKind) -> bool {
        self != Self::Plain && kind.guarded_script().is_some()
    }

    fn text(self, kind: CommandKind) -> Option<&'static str> {
        let script = match self {
            Self::Plain => kind.script(),
            Self::Guarded => kind.guarded_script(),
            Self::Replicated => kind.replicated_script(),
        };
        script.map(|(text, _)| text)
    }

    fn fleet(self) -> [Vec<u8>; 2] {
        ["5", if self == Self::Replicated { "1003" } else { "3" }].map(|number| number.into())
    }
}

/// All calls.
pub(crate) fn calls() -> Vec<Call> {
    let mut calls = Vec::new();
    for form in FORMS {
        for (kind, keys, values) in SCRIPTS {
            let Some(text) = form.text(kind) else { continue };
            let marker = if form.adds_marker(kind) { "m" } else { "" };
            let fleet = if values.contains('f') || form == Form::Plain { "" } else { "f" };
            let call = plain(form, text, &format!("{keys}{marker}"), &format!("{values}{fleet}"));
            let call = Call { name: format!("{kind} {form:?}"), ..call };
            of_one_lock(&call, form, "a", &mut calls);
            besides(&call, form, &[[("a", LOCK[0])], [("a", LOCK[1])]], &mut calls);
        }
        for (kind, flags) in FLAGS {
            let Some(text) = form.text(kind) else { continue };
            // The other forms have a common part before or behind the same text.
            let first = if form == Form::Plain { 0 } else { flags.len() - 1 };
            for flags in &flags[first..] {
                let name = format!("{kind} {form:?} {flags}");
                match kind {
                    Take => of_seats(form, text, flags, &name, &mut calls),
                    Enter | Leave | KeepLeaving => of_waiters(form, (text, kind), flags, &name, &mut calls),
                    _ => of_claims(form, (text, kind), flags, &name, &mut calls),
                }
            }
        }
    }
    calls
}

/// A call whose keys are all as they usually are.
fn called(form: Form, text: &str, keys: Vec<Vec<u8>>, values: &[Vec<u8>]) -> Call {
    let head = [b"EVAL".to_vec(), text.into(), keys.len().to_string().into_bytes()];
    let words = [&head, keys.as_slice(), values].concat();
    let mut found = Found::default();
    for key in &keys {
        let key = std::str::from_utf8(key).unwrap();
        if key.starts_with("count") {
            found = found.and(key, COUNTER[0]);
        } else if key == "marker" {
            found = found.and(key, if form == Form::Replicated { REPLICATED_MARKER } else { MARKER[0] });
        }
    }
    Call { name: String::new(), words, keys, found, able: Able::Fully }
}

fn plain(form: Form, text: &str, keys: &str, values: &str) -> Call {
    let key = |kind| match kind {
        'c' => b"counter".to_vec(),
        'm' => b"marker".to_vec(),
        _ => b"a".to_vec(),
    };
    let value = |kind| match kind {
        't' | 'o' | 'T' => vec![OURS.into()],
        'l' => vec![b"5000".to_vec()],
        'n' => vec![b"7".to_vec()],
        'd' => vec![sha1_smol::Sha1::from(OURS).digest().to_string()[..16].into()],
        'w' => vec![b"want a".to_vec()],
        'M' => vec![b"marker".to_vec()],
        _ => form.fleet().to_vec(),
    };
    called(form, text, keys.chars().map(key).collect(), &values.chars().flat_map(value).collect::<Vec<_>>())
}

/// Calls with this state of a key.
fn with(call: &Call, key: &str, state: &'static str) -> Call {
    Call { found: call.found.and(key, state), ..call.clone() }
}

fn each(calls: &mut Vec<Call>, call: &Call) {
    calls.extend(ABLE.map(|able| Call { able, ..call.clone() }));
}

fn of_one_lock(call: &Call, form: Form, lock: &str, calls: &mut Vec<Call>) {
    for (place, state) in LOCK.into_iter().enumerate() {
        let call = with(call, lock, state);
        if form == Form::Plain {
            each(calls, &call);
        }
        if place < MAIN {
            calls.extend((form != Form::Plain).then(|| call.clone()));
            calls.push(Call { able: Able::AsReplica, ..call });
        }
    }
}

/// Calls with all states of the marker, or else of the counters and marks, where the locks are so.
fn besides<const N: usize>(
    call: &Call,
    form: Form,
    locks: &[[(&str, &'static str); N]],
    calls: &mut Vec<Call>,
) {
    let has_marker = call.keys.iter().any(|key| key == b"marker");
    for lock in locks {
        let call = lock.iter().fold(call.clone(), |call, (key, state)| with(&call, key, state));
        for key in &call.keys {
            let key = std::str::from_utf8(key).unwrap();
            match key {
                "marker" if form == Form::Replicated => {
                    calls.extend(MARKER_OF_REPLICAS.map(|state| with(&call, key, state)));
                }
                "marker" => MARKER.iter().for_each(|state| each(calls, &with(&call, key, state))),
                _ if has_marker => {}
                _ if key.starts_with("want") => calls.extend(MARK.map(|state| with(&call, key, state))),
                _ if key.starts_with("count") && N > 1 => {
                    calls.extend(COUNTER.map(|state| with(&call, key, state)));
                }
                _ if key.starts_with("count") => {
                    COUNTER.iter().for_each(|state| each(calls, &with(&call, key, state)));
                }
                _ => {}
            }
        }
    }
}

fn of_claims(form: Form, (text, kind): (&str, CommandKind), flags: &str, name: &str, calls: &mut Vec<Call>) {
    // A lock without a number raises no counter.
    let grants = if flags == "f" && kind != AcquireAll { &["7", "0"][..] } else { &["7"] };
    for ((written, read), grant) in
        TARGETS.iter().flat_map(|targets| grants.iter().map(move |grant| (*targets, grant)))
    {
        let mut keys = keys_of(kind, (written, read), flags);
        let numbers = [written.len(), read.len()].map(|number| number.to_string());
        let mut values = [OURS, "5000", grant, flags, &numbers[0], &numbers[1]].map(Vec::from).to_vec();
        values.extend(read.iter().map(|_| sentinel_of("")));
        if flags.contains('m') {
            values.push(WAIT.into());
        }
        if flags.contains('g') || form.adds_marker(kind) {
            keys.push(b"marker".to_vec());
        }
        if flags.contains('g') || form != Form::Plain {
            values.extend(form.fleet());
        }
        let call = called(form, text, keys, &values);
        let call = Call { name: format!("{name} {written:?} {read:?} {grant}"), ..call };
        if let [target] | [_, target] = [written, read].concat()[..] {
            let is_one = written.len() + read.len() == 1;
            let other = if is_one { &[][..] } else { &["c"] };
            of_targets(&call, other.first().copied(), target, form, calls);
        }
    }
}

/// Calls with states of one target, or of two.
fn of_targets(call: &Call, other: Option<&str>, target: &str, form: Form, calls: &mut Vec<Call>) {
    let Some(other) = other else {
        of_one_lock(call, form, target, calls);
        besides(call, form, &[LOCK[0], LOCK[1], LOCK[5]].map(|state| [(target, state)]), calls);
        return;
    };
    let states = if form == Form::Plain { &LOCK[..MAIN] } else { &LOCK[..2] };
    for state in states {
        calls.extend(LOCK[..MAIN].iter().map(|another| with(&with(call, other, state), target, another)));
    }
    let both = [LOCK[0], LOCK[1], LOCK[5]].map(|state| [(other, state), (target, state)]);
    besides(call, form, if form == Form::Plain { &both[..] } else { &[] }, calls);
}

fn of_seats(form: Form, text: &str, flags: &str, name: &str, calls: &mut Vec<Call>) {
    for wanted in ["1", "2"] {
        let mut keys: Vec<Vec<u8>> = [b"c", b"d"].map(|seat| seat.to_vec()).to_vec();
        if flags.contains('f') {
            keys.extend([&b"count c"[..], b"count d"].map(<[u8]>::to_vec));
        }
        keys.push(b"next".to_vec());
        let mut values = [OURS, "5000", wanted, flags, "2"].map(Vec::from).to_vec();
        if flags.contains('m') {
            values.extend([WAIT, "60"].map(Vec::from));
        }
        if flags.contains('g') {
            keys.push(b"marker".to_vec());
        }
        if flags.contains('g') || form != Form::Plain {
            values.extend(form.fleet());
        }
        let call = called(form, text, keys, &values);
        let call = Call { name: format!("{name} {wanted}"), ..call };
        let seats = |one, other| with(&with(&call, "c", one), "d", other);
        let states = if form == Form::Plain { &SEAT[..] } else { &SEAT[..2] };
        for one in states {
            states.iter().for_each(|other| each(calls, &seats(one, other)));
        }
        if form == Form::Plain {
            let some = [[0, 0], [0, 1], [2, 1], [4, 1], [3, 5]].map(|both| both.map(|place| SEAT[place]));
            let marked = some
                .iter()
                .flat_map(|[one, other]| NEXT.iter().map(|state| with(&seats(one, other), "next", state)));
            calls.extend(marked);
        }
        besides(&call, form, &[[("c", SEAT[0]), ("d", SEAT[0])]], calls);
    }
}

fn of_waiters(form: Form, (text, kind): (&str, CommandKind), flags: &str, name: &str, calls: &mut Vec<Call>) {
    for number in if kind == Enter { &["0", "7"][..] } else { &["0"] } {
        let mut keys: Vec<Vec<u8>> = ["c", "place 1", "queue"].map(Vec::from).to_vec();
        let mut values: Vec<Vec<u8>> = [OURS, "5000", "1"].map(Vec::from).to_vec();
        if kind == Enter {
            values.extend(["1000", "60", number, flags].map(Vec::from));
        }
        if flags.contains('f') {
            keys.push(b"count c".to_vec());
        }
        if flags.contains('g') || form.adds_marker(kind) {
            keys.push(b"marker".to_vec());
        }
        if flags.contains('g') || form != Form::Plain {
            values.extend(form.fleet());
        }
        let call = called(form, text, keys, &values);
        let call = Call { name: format!("{name} {number}"), ..call };
        let is_main = form == Form::Plain && *number == "0";
        let queues = if form == Form::Plain { &QUEUE[..] } else { &QUEUE[..MAIN_QUEUE] };
        for (place, state) in queues.iter().enumerate() {
            let call = with(&call, "queue", state);
            for next in NEXT_PLACE {
                let call = with(&call, "place 2", next);
                calls.extend(LOCK[..3].iter().map(|state| with(&call, "c", state)));
            }
            if is_main && place < MAIN_QUEUE {
                let call = with(&call, "place 2", NEXT_PLACE[1]);
                each(calls, &call);
                calls.extend(LOCK[3..MAIN].iter().map(|state| with(&call, "c", state)));
                calls.extend(OWN_PLACE.map(|state| with(&call, "place 1", state)));
            }
        }
        if flags == "-" && *number == "0" {
            of_one_lock(&call, form, "c", calls);
        }
        besides(&call, form, &[[("c", LOCK[0])]], calls);
    }
}
