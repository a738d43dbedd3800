//! Masters that fail over: what clients rely on, the locks that they report, and a run of many
//! failovers.

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
