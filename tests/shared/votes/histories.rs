//! What protects the masters, and what has happened to the server of the seat.

/// What protects the masters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Setting {
    Plain,
    Guard,
    /// The guard, and a declared replica of the servers of the first seat and of the last one.
    Replicas,
}

impl Setting {
    pub const ALL: [Self; 3] = [Self::Plain, Self::Guard, Self::Replicas];
}

/// What has happened to the server of the seat.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum History {
    Untouched,
    RestartedWithItsData,
    RestartedEmpty,
    RestartedFromAnOlderSnapshot,
    Flushed,
    /// Flushed, and our keys put back by hand.
    KeysPutBackByHand,
    /// Rebuilt as a copy of the server of the first seat, and its replica with it.
    RebuiltFromAnother,
    /// The same, and its replica has not followed yet.
    RebuiltAlone,
    /// It is a replica of the server of the first seat.
    BecameAReplica,
    /// Its replica was promoted, with the last write, and the former primary is gone.
    PromotedWithTheLastWrite,
    /// The same without the votes of the last moment before the promotion.
    PromotedWithoutTheLastWrite,
    /// Its replica was promoted, and the rival still uses the former primary.
    FormerPrimaryGoesOn,
    /// The same, and the quarantine of the promoted one has ended.
    FormerPrimaryOutlivesTheQuarantine,
    /// It was a replica for a moment, and is a primary again.
    DemotedAndBack,
    OtherFleetsMarker,
    LaterVersionsMarker,
    /// Flushed, and its quarantine has just ended.
    QuarantineOver,
    /// The first seat and the last one lead to one server.
    TwoAddresses,
    /// The same, and the server denies `INFO`.
    TwoAddressesWithoutInfo,
    /// In a cluster, the slot of the seat belongs to another node.
    SlotMovedAway,
}

impl History {
    pub const ALL: [Self; 20] = [
        Self::Untouched,
        Self::RestartedWithItsData,
        Self::RestartedEmpty,
        Self::RestartedFromAnOlderSnapshot,
        Self::Flushed,
        Self::KeysPutBackByHand,
        Self::RebuiltFromAnother,
        Self::RebuiltAlone,
        Self::BecameAReplica,
        Self::PromotedWithTheLastWrite,
        Self::PromotedWithoutTheLastWrite,
        Self::FormerPrimaryGoesOn,
        Self::FormerPrimaryOutlivesTheQuarantine,
        Self::DemotedAndBack,
        Self::OtherFleetsMarker,
        Self::LaterVersionsMarker,
        Self::QuarantineOver,
        Self::TwoAddresses,
        Self::TwoAddressesWithoutInfo,
        Self::SlotMovedAway,
    ];

    /// Whether one server is behind two seats.
    pub fn shares_a_server(self) -> bool {
        matches!(self, Self::TwoAddresses | Self::TwoAddressesWithoutInfo)
    }

    /// Whether the seat's server has a replica at the beginning.
    pub fn has_replica(self, setting: Setting) -> bool {
        setting == Setting::Replicas
            || matches!(
                self,
                Self::PromotedWithTheLastWrite
                    | Self::PromotedWithoutTheLastWrite
                    | Self::FormerPrimaryGoesOn
                    | Self::FormerPrimaryOutlivesTheQuarantine
                    | Self::DemotedAndBack
            )
    }

    /// Whether the former server of the seat still serves clients that do not know the present one.
    pub(super) fn is_split(self) -> bool {
        matches!(self, Self::FormerPrimaryGoesOn | Self::FormerPrimaryOutlivesTheQuarantine)
    }

    /// Whether the quarantine has ended before our client asks.
    pub(super) fn outlives_the_quarantine(self) -> bool {
        matches!(self, Self::QuarantineOver | Self::FormerPrimaryOutlivesTheQuarantine)
    }

    /// Why there is no such life.
    pub(super) fn is_void_in(self, setting: Setting) -> Option<&'static str> {
        match (self, setting) {
            (Self::OtherFleetsMarker | Self::LaterVersionsMarker, Setting::Plain) => {
                Some("there is no marker")
            }
            (history, Setting::Plain) if history.outlives_the_quarantine() => Some("there is no quarantine"),
            (Self::RebuiltAlone, Setting::Plain | Setting::Guard) => Some("no replica is declared"),
            (Self::TwoAddressesWithoutInfo, Setting::Guard | Setting::Replicas) => {
                Some("the guard refuses a server that denies INFO")
            }
            (Self::TwoAddresses, Setting::Replicas) => {
                Some("a server is refused before its replicas are counted")
            }
            _ => None,
        }
    }
}
