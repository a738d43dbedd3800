//! The scenarios that have names. The first three are those of Martin Kleppmann, "How to do
//! distributed locking" (2016).

use std::fmt::Write as _;

use clap::ValueEnum;

/// A world with a fixed story, with or without its defence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scenario {
    /// A client pauses between its check and its write.
    #[value(name = "kleppmann-pause")]
    Pause,
    /// A master's clock jumps, and two clients hold the lock.
    #[value(name = "kleppmann-clock")]
    Clock,
    /// A client pauses while the answers are on their way.
    #[value(name = "kleppmann-delay")]
    Delay,
    /// A master comes back without its data, and votes again.
    RestartEmpty,
}

impl Scenario {
    /// The name on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Pause => "kleppmann-pause",
            Self::Clock => "kleppmann-clock",
            Self::Delay => "kleppmann-delay",
            Self::RestartEmpty => "restart-empty",
        }
    }

    /// What happens, as a sentence.
    pub(super) fn story(self) -> &'static str {
        match self {
            Self::Pause => "A client pauses between its check and its write.",
            Self::Clock => "A master's clock jumps, and two clients hold the lock.",
            Self::Delay => "A client pauses while the answers are on their way.",
            Self::RestartEmpty => "A master comes back without its data, and votes again.",
        }
    }

    /// The defence that prevents harm.
    pub(super) fn defence(self) -> &'static str {
        match self {
            Self::Pause | Self::Clock => "fencing tokens: the store refuses a smaller number",
            Self::Delay => "validity is counted from before the first request",
            Self::RestartEmpty => "the restart guard: a master that lost its data does not vote yet",
        }
    }

    /// What is missing without the defence.
    pub(super) fn undefended(self) -> &'static str {
        match self {
            Self::Pause | Self::Clock => "no fencing tokens",
            Self::Delay => "a client that counts votes without checking the clock",
            Self::RestartEmpty => "no restart guard",
        }
    }
}

/// The list for `--list`.
pub(super) fn list() -> String {
    let mut text = String::new();
    for scenario in Scenario::value_variants() {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{}", scenario.name());
        let _ = writeln!(text, "    {}", scenario.story());
        let _ = writeln!(text, "    defence: {}", scenario.defence());
        let _ = writeln!(text, "    without: {}", scenario.undefended());
    }
    text
}
