//! Values and pure functions of the protocol: what is locked, who votes, how votes are counted, how
//! long a grant lasts.
//!
//! Rules of this room: nothing here keeps state over time, sends anything or knows a connection.
//! Every value is valid: code that has a [`Ttl`], a [`Resource`] or a [`Config`] need not check it
//! again.

mod acquire;
mod ballot;
mod bootstrap;
mod claim;
mod cluster_fault;
mod config;
mod credentials;
mod event;
mod eviction;
mod fencing;
mod fleet;
mod force_release;
mod group;
mod inspection;
mod io_fault;
mod masters;
mod missing;
mod outcome;
mod printed;
mod queue_place;
mod request;
mod resource;
mod said;
mod seats;
mod security;
mod sentinel;
mod sentinel_fault;
mod targets;
mod token;
mod ttl;
mod units;
mod vote;
mod votes;

pub use acquire::{Acquire, ExtensionId, LockId, Resumption};
pub use ballot::Ballot;
pub use bootstrap::BootstrapError;
pub use claim::{Claim, Wish};
pub use cluster_fault::ClusterFault;
pub(crate) use config::AddressMap;
pub use config::{Config, ConfigBuilder, ConfigError};
pub(crate) use credentials::Provider;
pub use credentials::{Credentials, Unavailable};
pub use event::Event;
pub use eviction::EvictionPolicy;
pub use fencing::FencingToken;
pub use fleet::Fleet;
pub(crate) use fleet::Terms;
pub use force_release::{Deletion, ForceReleaseError, ForceReleased};
pub use group::Group;
pub use inspection::{
    Holder, Holding, InspectError, Inspection, KeyState, LockState, MasterAnswer, PermitsAnswer,
    SemaphoreInspection, ServerFacts, Sharing, Standing,
};
pub(crate) use inspection::{Marker, Verdict};
pub use io_fault::IoFault;
pub(crate) use masters::MasterSet;
pub use masters::{Decision, MasterId, Quorum};
pub use missing::Missing;
pub use outcome::{AcquireError, ExtendError, LossCause, ReleaseOutcome, TooManyLocks};
pub(crate) use outcome::{DRIVER_ENDED, FORKED};
pub use queue_place::QueuePlace;
pub use request::{Action, Ahead, Answer, Fate, Request, Ticket};
pub use resource::Resource;
pub(crate) use said::{Said, SaidHolder, SaidKey, SaidSharing};
pub(crate) use seats::Seats;
pub use security::{Channel, ChannelFacts, ChannelState, Security, TlsFault};
pub use sentinel::Sentinel;
pub use sentinel_fault::SentinelFault;
pub use targets::{Mode, Target, Targets};
pub use token::{Entropy, EntropyFailed, Token};
pub use ttl::Ttl;
pub(crate) use vote::Panicked;
pub use vote::{Cause, Vote};
pub(crate) use votes::{Tally, Votes, are_quarantined};
