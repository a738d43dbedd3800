//! The Redlock algorithm as one pure state machine.

mod connection;
mod endpoint;
pub mod front;
mod jitter;
mod lock;
mod machine;
mod protocol;
mod time;
mod wire;

pub use connection::Warning;
pub use endpoint::{Address, Endpoint, EndpointError};
pub use machine::{
    Acquire, Entropy, EntropyFailed, Event, ExtensionId, LockId, Machine, MasterState, Output, Wake,
    WakeReason,
};
pub use protocol::{
    AcquireError, Ballot, Cause, Config, ConfigBuilder, ConfigError, Decision, ExtendError, LossCause,
    MasterId, Quorum, ReleaseOutcome, RequestError, Resource, Token, Ttl, Vote,
};
pub use time::Instant;
pub use wire::{Code, ServerError, WireFault};
