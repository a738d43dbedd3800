//! What becomes of a primary, so that another server takes its place.

use std::fmt;

use crate::groups::SentinelGroup;
use crate::proxy::Direction;

/// What becomes of a primary. What lasts is undone later.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Deed {
    /// It is killed, and started again without its data.
    Kill,
    /// It stands still, and goes on.
    Stop,
    /// A sentinel is asked to make another server the primary.
    Ask,
    /// Sentinels and replicas neither hear it nor are heard, while its clients are.
    CutOff,
    /// What it says to sentinels and replicas does not arrive. It hears them.
    Mute,
    /// What sentinels and replicas say does not arrive. They hear it.
    Deaf,
}

impl Deed {
    /// All that there are.
    pub const ALL: &[Self] = &[Self::CutOff, Self::Stop, Self::Ask, Self::Mute, Self::Kill, Self::Deaf];

    /// Does it, and returns the new primary as soon as two sentinels agree about it.
    #[track_caller]
    pub fn befall(self, group: &SentinelGroup, primary: usize) -> usize {
        match self {
            Self::Kill => group.server(primary).kill(),
            Self::Stop => group.server(primary).stop(),
            Self::Ask => return group.fail_over(),
            Self::CutOff => group.cut_off(primary, Direction::Both),
            Self::Mute => group.cut_off(primary, Direction::ToClient),
            Self::Deaf => group.cut_off(primary, Direction::ToServer),
        }
        group.primary_after(primary)
    }

    /// Undoes it. A network may lose what it has held back.
    pub fn undo(self, group: &SentinelGroup, primary: usize, loses: bool) {
        match self {
            Self::Kill => group.server(primary).restart(),
            Self::Stop => group.server(primary).cont(),
            Self::Ask => {}
            Self::CutOff | Self::Mute | Self::Deaf if loses => group.heal_anew(primary),
            Self::CutOff | Self::Mute | Self::Deaf => group.heal(primary),
        }
    }
}

impl fmt::Display for Deed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kill => "killed",
            Self::Stop => "stopped",
            Self::Ask => "asked",
            Self::CutOff => "cut-off",
            Self::Mute => "mute",
            Self::Deaf => "deaf",
        })
    }
}
