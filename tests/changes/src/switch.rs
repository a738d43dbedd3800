//! Which change is on. Only the copy of the core has this module.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{LazyLock, OnceLock};

/// No change has the number zero.
static ON: LazyLock<usize> = LazyLock::new(|| {
    let number = std::env::var("QUORLOCK_CHANGE").ok();
    number.map_or(0, |number| number.parse().expect("QUORLOCK_CHANGE is a number"))
});

/// Where the numbers of the changes that are reached are written, each once.
static REACHED: LazyLock<Option<String>> = LazyLock::new(|| std::env::var("QUORLOCK_REACHED").ok());
static SEEN: [AtomicBool; 1 << 16] = [const { AtomicBool::new(false) }; 1 << 16];
/// The scripts whose parts have been written, by their numbers.
static SCRIPTS: AtomicU64 = AtomicU64::new(0);

/// Whether this change is on.
#[inline]
pub fn on(number: usize) -> bool {
    if REACHED.is_some() {
        note(number);
    }
    *ON == number
}

#[cold]
fn note(number: usize) {
    let Some(path) = &*REACHED else { return };
    if !SEEN[number].load(Ordering::Relaxed) && !SEEN[number].swap(true, Ordering::Relaxed) {
        let file = OpenOptions::new().create(true).append(true).open(path);
        file.and_then(|mut file| writeln!(file, "{number}")).expect("the file can be written");
    }
}

/// The parts of the scripts' texts that are changed, with the numbers of the changes.
static PARTS: &[(usize, &str, &str)] = include!("switch_scripts.in");

impl crate::wire::Script {
    /// The text, with the change that is on.
    pub fn text(&self) -> &'static str {
        let own = 1 << self.number;
        if REACHED.is_some() && SCRIPTS.fetch_or(own, Ordering::Relaxed) & own == 0 {
            PARTS.iter().filter(|(_, from, _)| self.text.contains(from)).for_each(|(number, ..)| note(*number));
        }
        self.changed().map_or(self.text, |(text, _)| text)
    }

    /// The SHA-1 of the text, with the change that is on.
    pub fn sha1_hex(&self) -> &'static str {
        self.changed().map_or(self.sha1_hex, |(_, sha1)| sha1)
    }

    /// The changed text and its SHA-1, if the change that is on is one of this script. Servers are
    /// asked thousands of times for each script, so it is made once.
    fn changed(&self) -> Option<(&'static str, &'static str)> {
        static KNOWN: [OnceLock<Option<(&str, &str)>>; 64] = [const { OnceLock::new() }; 64];
        *KNOWN[self.number as usize].get_or_init(|| {
            let (_, from, to) = PARTS.iter().find(|(number, ..)| number == &*ON)?;
            let changed = self.text.contains(from).then(|| self.text.replace(from, to))?;
            let sha1 = sha1_smol::Sha1::from(&changed).digest().to_string();
            Some((changed.leak() as &str, sha1.leak() as &str))
        })
    }
}
