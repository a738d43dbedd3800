//! Builds the copy with all changes in it, and drops those that do not compile.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::ops::Range;
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use crate::Outcome;
use crate::change::{Change, Form};
use crate::copy::{Copy, PARTS, SWITCH};
use crate::rewriting::{Fixed, Level, Mark, Rewriting};

/// Where a change has ended up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// It can be switched on.
    On(Level),
    /// It cannot be switched on at run time.
    Fixed,
    /// It does not compile.
    Broken,
}

impl State {
    const ALL: [(Self, char); 4] = [
        (Self::On(Level::Smallest), 's'),
        (Self::On(Level::Body), 'b'),
        (Self::Fixed, 'f'),
        (Self::Broken, 'x'),
    ];

    fn letter(self) -> char {
        Self::ALL.iter().find(|(state, _)| *state == self).map_or('?', |(_, letter)| *letter)
    }

    fn of_letter(letter: char) -> Option<Self> {
        Self::ALL.iter().find(|(_, of)| *of == letter).map(|(state, _)| *state)
    }
}

/// The file with the states of the last build, which takes a minute to find.
const STATES: &str = "states.txt";

/// The core is checked this often at most. Each time, the compiler finds errors that earlier ones
/// have kept from it.
const MOST_ROUNDS: usize = 40;

/// The files that send or compare the text or the SHA-1 of a script: what the switch says.
const SENDERS: [&str; 6] = [
    "core/src/connection/commands.rs",
    "core/src/connection/handshake.rs",
    "core/src/connection/wording.rs",
    "core/sim/src/master/call.rs",
    "core/sim/src/master/command.rs",
    "core/sim/src/master/scripts/mod.rs",
];
const READS: [&str; 2] = ["script.text", "script.sha1_hex"];

pub(crate) fn is_rewritten(name: &str) -> bool {
    name.starts_with("core/src/") || SENDERS.contains(&name) || name == "core/Cargo.toml"
}

/// The number of a change in the build. Zero is no change.
pub(crate) const fn number(index: usize) -> usize {
    index + 1
}

pub(crate) struct Build<'a> {
    root: &'a Path,
    copy: &'a Copy,
    changes: &'a [Change],
    /// Of the changes and of the sources.
    pub(crate) print: u64,
    pub(crate) states: Vec<State>,
    /// Functions that constants use.
    kept: BTreeSet<String>,
}

impl<'a> Build<'a> {
    /// With the states of an earlier build of the same sources, if there was one.
    pub(crate) fn of(root: &'a Path, copy: &'a Copy, changes: &'a [Change]) -> Outcome<Self> {
        let mut print = DefaultHasher::new();
        changes.iter().for_each(|change| change.print(copy.sources).hash(&mut print));
        let states = vec![State::On(Level::Smallest); changes.len()];
        let mut build = Self { root, copy, changes, print: print.finish(), states, kept: BTreeSet::new() };
        if let Ok(text) = fs::read_to_string(copy.place.join(STATES)) {
            build.resume(&text);
        }
        Ok(build)
    }

    pub(crate) const fn sources(&self) -> u64 {
        self.copy.sources
    }

    /// Writes all changes into the copy, until the core compiles.
    pub(crate) fn settle(&mut self) -> Outcome {
        for round in 0..MOST_ROUNDS {
            let marks = self.write()?;
            let errors = self.check()?;
            if errors.is_empty() {
                return Ok(fs::write(self.copy.place.join(STATES), self.to_text())?);
            }
            let left = self.states.iter().filter(|state| matches!(state, State::On(_))).count();
            eprintln!("round {round}: {} errors with {left} changes", errors.len());
            let mut outcomes = BTreeMap::new();
            for error in &errors {
                self.blame(error, &marks, &mut outcomes);
            }
            if !self.keep_const(&errors) && outcomes.is_empty() {
                let rendered = errors.iter().filter_map(|error| error["rendered"].as_str());
                return Err(format!("no change explains: {}", rendered.collect::<String>()).into());
            }
            for (change, is_fixed) in outcomes {
                if let Some(state) = self.states.get_mut(change) {
                    *state = match *state {
                        _ if is_fixed => State::Fixed,
                        State::On(Level::Smallest) => State::On(Level::Body),
                        _ => State::Broken,
                    };
                }
            }
        }
        Err("there are errors after every round".into())
    }

    fn to_text(&self) -> String {
        let states: String = self.states.iter().map(|state| state.letter()).collect();
        let kept: Vec<_> = self.kept.iter().map(String::as_str).collect();
        format!("{:016x}\n{states}\n{}\n", self.print, kept.join(" "))
    }

    fn resume(&mut self, text: &str) {
        let Some([print, states, kept]) = text.lines().collect::<Vec<_>>().first_chunk::<3>().copied() else {
            return;
        };
        let states: Option<Vec<_>> = states.chars().map(State::of_letter).collect();
        if let Some(states) = states.filter(|_| print == format!("{:016x}", self.print)) {
            self.states = states;
            self.kept = kept.split_whitespace().map(str::to_owned).collect();
        }
    }

    /// Writes the sources of the core, and returns where the changes are in each file.
    fn write(&mut self) -> Outcome<BTreeMap<String, Vec<Mark>>> {
        let mut marks = BTreeMap::new();
        let mut parts = String::from("&[\n");
        let mut files = Vec::new();
        list(&self.root.join("core/src"), &mut files)?;
        files.extend(
            SENDERS
                .map(|name| self.root.join(name))
                .into_iter()
                .filter(|path| !files.contains(path))
                .collect::<Vec<_>>(),
        );
        for path in files {
            let name = path.strip_prefix(self.root)?.to_string_lossy().into_owned();
            let original = fs::read_to_string(&path)?;
            let mut rewriting = Rewriting::of(&original)?;
            for (index, change) in self.changes.iter().enumerate().filter(|(_, change)| change.file == name) {
                let Some(State::On(level)) = self.states.get(index).copied() else { continue };
                if let Form::Script(from, to) = &change.form {
                    parts += &format!("({}, {from:?}, {to:?}),\n", number(index));
                    continue;
                }
                match (rewriting.add(number(index), change, level, &self.kept), self.states.get_mut(index)) {
                    (Err(Fixed::Constant), Some(state)) => *state = State::Fixed,
                    (Err(Fixed::NoPlace), Some(state)) => *state = State::Broken,
                    _ => {}
                }
            }
            if SENDERS.contains(&name.as_str()) {
                rewriting.call(&READS);
            }
            let (mut text, there) = rewriting.write();
            if name == "core/src/lib.rs" {
                text += "\n#[doc(hidden)]\npub mod switch;\n";
            }
            self.copy.write(&name, text.as_bytes())?;
            marks.insert(name, there);
        }
        self.copy.write(SWITCH, include_bytes!("switch.rs"))?;
        self.copy.write(PARTS, (parts + "]\n").as_bytes())?;
        let manifest = fs::read_to_string(self.root.join("core/Cargo.toml"))?;
        let manifest =
            manifest.replacen("[dependencies]\n", "[dependencies]\nsha1_smol.workspace = true\n", 1);
        self.copy.write("core/Cargo.toml", manifest.as_bytes())?;
        Ok(marks)
    }

    fn check(&self) -> Outcome<Vec<Value>> {
        let mut cargo = self.copy.cargo(&["check", "--all-features", "-p", "quorlock-core"]);
        let said = cargo.stderr(Stdio::piped()).output()?;
        let lines = String::from_utf8_lossy(&said.stdout).into_owned();
        let messages = lines.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let errors: Vec<_> = messages
            .filter(|message| message["reason"] == "compiler-message")
            .filter_map(|message| message.get("message").cloned())
            .filter(|message| message["level"] == "error" && message.pointer("/spans/0").is_some())
            .collect();
        if errors.is_empty() && !said.status.success() {
            return Err(String::from_utf8_lossy(&said.stderr).into());
        }
        Ok(errors)
    }

    /// Adds the changes that an error points at, with whether they cannot be switched at all.
    fn blame(
        &self,
        error: &Value,
        marks: &BTreeMap<String, Vec<Mark>>,
        outcomes: &mut BTreeMap<usize, bool>,
    ) {
        let called = not_const(error);
        if called.is_some_and(|name| name != "on") {
            return;
        }
        let mut spans: Vec<_> = error["spans"].as_array().into_iter().flatten().collect();
        spans.sort_by_key(|span| span["is_primary"] != true);
        let children = error["children"].as_array().into_iter().flatten();
        spans.extend(children.flat_map(|child| child["spans"].as_array().into_iter().flatten()));
        for span in spans {
            let Some((file, start, end)) = in_core(span) else { continue };
            let Some(marks) = marks.get(file) else { continue };
            let smallest = |part: fn(&Mark) -> &Range<usize>| {
                let is_around = |mark: &&Mark| part(mark).start <= start && end <= part(mark).end;
                let length = marks.iter().filter(is_around).map(|mark| part(mark).len()).min()?;
                Some(
                    marks
                        .iter()
                        .filter(is_around)
                        .filter(|mark| part(mark).len() == length)
                        .collect::<Vec<_>>(),
                )
            };
            if let Some(those) = smallest(|mark| &mark.changed).or_else(|| smallest(|mark| &mark.whole)) {
                outcomes.extend(those.iter().map(|mark| (mark.change - 1, called.is_some())));
                return;
            }
        }
    }

    /// Makes the functions `const` again that constants call. Returns whether there are any more.
    fn keep_const(&mut self, errors: &[Value]) -> bool {
        let before = self.kept.len();
        self.kept.extend(errors.iter().filter_map(not_const).map(str::to_owned));
        self.kept.len() > before
    }
}

/// The name of the function that is called, and is not `const` any more.
fn not_const(error: &Value) -> Option<&str> {
    let message = error["message"].as_str()?;
    let name = message.strip_prefix("cannot call non-const ")?.split('`').nth(1)?;
    // Without its generic arguments.
    let name = if name.ends_with('>') { name.rsplit_once("::<")?.0 } else { name };
    name.rsplit("::").next()
}

/// The place of a span in the sources of the core: where a macro is called, if it is within one of
/// the standard library.
fn in_core(span: &Value) -> Option<(&str, usize, usize)> {
    let file = span["file_name"].as_str()?;
    if !file.starts_with("core/src/") {
        return in_core(span["expansion"].get("span")?);
    }
    let place = |name| usize::try_from(span[name].as_u64()?).ok();
    Some((file, place("byte_start")?, place("byte_end")?))
}

fn list(folder: &Path, files: &mut Vec<std::path::PathBuf>) -> Outcome {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            list(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    Ok(())
}
