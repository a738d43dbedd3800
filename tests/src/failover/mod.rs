//! Masters that fail over: what clients rely on there, what they say that they held, and a run of
//! one failover after the other.

mod account;
mod cluster_run;
mod contest;
mod deed;
mod outcome;
mod run;
mod trust;

pub use account::{Account, Holding};
pub use cluster_run::{ClusterRun, ShardDeed};
pub use contest::Clientele;
pub use deed::{Befallen, Deed, keep_busy};
pub use outcome::{Outcome, Timing};
pub use run::{Found, Run};
pub use trust::Trust;
