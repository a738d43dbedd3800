//! Why a node of a cluster has no vote.

use std::fmt;

/// What keeps the owner of a tag's slot from voting, or from being found.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ClusterFault {
    /// The URL is for a single server, but a node of a cluster answers.
    IsNode,
    /// The URL names a tag, but the server that answers is not a node of a cluster.
    IsNoNode,
    /// Another node owns the slot now (`MOVED`). It is asked next.
    Moved,
    /// The nodes name each other as the owner, but none of them is.
    NoOwner,
    /// The slot is being moved to another node (`ASK`, `TRYAGAIN`).
    SlotIsMoving,
    /// The cluster does not serve the slot (`CLUSTERDOWN`), for example until a failover is over.
    Down,
}

impl ClusterFault {
    /// Returns whether only a configuration change can solve it, here or on the nodes.
    pub fn is_configuration(self) -> bool {
        match self {
            Self::IsNode | Self::IsNoNode => true,
            Self::Moved | Self::NoOwner | Self::SlotIsMoving | Self::Down => false,
        }
    }
}

impl fmt::Display for ClusterFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::IsNode => "is a node of a cluster: write redis+cluster://host:port/?tag=q0",
            Self::IsNoNode => "is not a node of a cluster: write redis://host:port without a tag",
            Self::Moved => "another node owns the slot of its tag now (MOVED)",
            Self::NoOwner => "its nodes do not agree on who owns the slot of its tag (MOVED)",
            Self::SlotIsMoving => "the slot of its tag is being moved to another node (ASK)",
            Self::Down => "its cluster does not serve the slot of its tag (CLUSTERDOWN)",
        })
    }
}
