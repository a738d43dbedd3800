//! Which faults are within Redlock's assumptions, and what extends these.

use super::fault::Fault;
use crate::master::Keep;

/// The largest gain or loss of a single clock, in parts per million, with which the rates of any
/// two clocks differ by no more than 1 %.
pub const ASSUMED_DRIFT_PPM: i32 = 4_975;

impl Fault {
    /// Returns whether the fault is within Redlock's assumptions, so that no two guards may be
    /// valid at once.
    pub fn is_assumed(&self) -> bool {
        match self {
            Self::Crash { keep, .. } | Self::Return { keep, .. } => *keep == Keep::Everything,
            Self::ClientDrift { gain_ppm, .. } | Self::MasterDrift { gain_ppm, .. } => {
                (-ASSUMED_DRIFT_PPM..=ASSUMED_DRIFT_PPM).contains(gain_ppm)
            }
            Self::MasterJump { .. }
            | Self::Flush { .. }
            | Self::Restore { .. }
            | Self::Resync { .. }
            | Self::Promote { .. }
            | Self::Follow { .. }
            | Self::MoveSlot { .. }
            | Self::Reshard { .. } => false,
            _ => true,
        }
    }

    /// Returns whether the fault is within the assumptions if all clients have the restart guard
    /// on, which protects against masters that lose their data.
    pub fn is_assumed_with_guard(&self) -> bool {
        let is_covered = matches!(
            self,
            Self::Crash { .. }
                | Self::Return { .. }
                | Self::Flush { .. }
                | Self::Restore { .. }
                | Self::Resync { .. }
        );
        is_covered || self.is_assumed()
    }

    /// Returns whether the fault is within the assumptions if, in addition, all clients declare all
    /// replicas of each master (`replicas=`), which protects against failovers, and against slots
    /// that move.
    pub fn is_assumed_with_replicas(&self) -> bool {
        let is_covered = match self {
            Self::Promote { .. } | Self::Follow { .. } | Self::MoveSlot { .. } => true,
            Self::Reshard { is_given_up, .. } => !is_given_up,
            _ => false,
        };
        is_covered || self.is_assumed_with_guard()
    }
}
