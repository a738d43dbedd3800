//! Turns commands into bytes, and bytes into replies.
//!
//! Rules of this room:
//!
//! - It knows RESP 2 and RESP 3, the text of the Lua scripts, and what a server's error codes mean.
//!   It knows nothing about connections, locks, votes or time.
//! - Every byte from a server is hostile until [`Scanner`] has walked over it. [`decode`] is only
//!   called with a frame that the scanner delimited: the decoder behind it recurses without a
//!   limit.
//! - Keys, tokens and passwords pass through here, and servers echo them in their errors. So
//!   nothing in this room shows payload bytes: faults and server errors are plain values, and
//!   `Debug` prints kinds and lengths.
//! - Whatever arrives, the work is linear in its bytes and the memory is bounded by
//!   `MAX_REPLY_BYTES` and `MAX_ELEMENTS`.

mod command;
mod fault;
mod reply;
mod scan;
mod script;
mod server_error;
mod tagged;

pub(crate) use command::{Decimal, MAX_OVERHEAD_BYTES, encode, put_argument};
pub use fault::WireFault;
pub(crate) use reply::{Dialect, Reply, common_reply, decode};
pub(crate) use scan::Scanner;
pub use script::{
    ACQUIRE_ALL, ACQUIRE_FENCED, ACQUIRE_FENCED_GUARDED, ACQUIRE_GUARDED, ACQUIRE_READING, ATTEND, ENTER,
    EXTEND, EXTEND_ALL, EXTEND_FENCED, FORCE_RELEASE, HEAL_ALL, HEAL_FENCED, INSPECT, KEEP, KEEP_ALL,
    KEEP_LEAVING, LEAVE, OPEN, RAISE, RAISE_ALL, RELEASE, RELEASE_ALL, RELEASE_ANY, RELEASE_SCRIPT, Script,
    TAKE, UNDO,
};
pub(crate) use script::{
    ACQUIRE_REPLICATED, ATTEND_REPLICATED, EXTEND_GUARDED, EXTEND_REPLICATED, ScriptSet, guarded, replicated,
};
#[cfg(feature = "internals")]
pub use script::{ALL, GUARDED, REPLICATED};
pub use server_error::{Code, ServerError};
pub(crate) use tagged::put_tagged;

#[cfg(test)]
mod corpus_tests;
#[cfg(test)]
mod hostile_tests;
