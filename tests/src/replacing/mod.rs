//! Dead masters that are replaced by others in the lists of clients, which are restarted one after
//! the other.
//!
//! * [`Story`] is a short scene for each order of steps, the right one and wrong ones. It scripts
//!   which master refuses which client, so that a wrong order always has two holders.
//! * [`Run`] replaces masters in the right order under load, while clients with old and new lists
//!   run at once.

// Places come from the lists that they are used in.
#![allow(clippy::indexing_slicing)]

mod failures;
mod run;
mod story;

pub use run::{Outcome, Run};
pub use story::{Story, Told};
