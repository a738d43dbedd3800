//! The command `quorlock` as a user runs it: the real binary, real masters, no terminal.

// Helpers of tests may panic, like the tests themselves.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

#[path = "command/at_least.rs"]
mod at_least;
#[path = "command/binary.rs"]
mod binary;
#[path = "command/clusters.rs"]
mod clusters;
#[path = "command/conflicts.rs"]
mod conflicts;
#[path = "command/demo.rs"]
mod demo;
#[path = "command/deployed.rs"]
mod deployed;
#[cfg(target_os = "linux")]
#[path = "command/descendants.rs"]
mod descendants;
#[path = "command/dialects.rs"]
mod dialects;
#[path = "command/doctor.rs"]
mod doctor;
#[path = "command/doctor_page.rs"]
mod doctor_page;
#[path = "command/doctor_tls.rs"]
mod doctor_tls;
#[path = "command/documented.rs"]
mod documented;
#[path = "command/examples.rs"]
mod examples;
#[path = "command/faults.rs"]
mod faults;
#[path = "command/fencing.rs"]
mod fencing;
#[path = "command/first_masters.rs"]
mod first_masters;
#[path = "command/force_release.rs"]
mod force_release;
#[path = "command/gallery.rs"]
mod gallery;
#[path = "command/handing_over.rs"]
mod handing_over;
#[path = "command/holding.rs"]
mod holding;
#[path = "command/kinds.rs"]
mod kinds;
#[path = "command/kinds_handed_over.rs"]
mod kinds_handed_over;
#[path = "command/links.rs"]
mod links;
#[path = "command/loss.rs"]
mod loss;
#[path = "command/master.rs"]
mod master;
#[path = "command/one_try.rs"]
mod one_try;
#[path = "command/output.rs"]
mod output;
#[path = "command/password_file.rs"]
mod password_file;
#[path = "command/prefix.rs"]
mod prefix;
#[path = "command/programs.rs"]
mod programs;
#[path = "command/promptness.rs"]
mod promptness;
#[path = "command/replacing.rs"]
mod replacing;
#[path = "command/restart_guard.rs"]
mod restart_guard;
#[path = "command/running.rs"]
mod running;
#[path = "command/signals.rs"]
mod signals;
#[path = "command/simulating.rs"]
mod simulating;
#[path = "command/status.rs"]
mod status;
#[path = "command/status_kinds.rs"]
mod status_kinds;
#[cfg(target_os = "linux")]
#[path = "command/supervision.rs"]
mod supervision;
#[cfg(target_os = "linux")]
#[path = "command/unread.rs"]
mod unread;
#[path = "command/usage.rs"]
mod usage;
#[path = "command/verdicts.rs"]
mod verdicts;
