//! The machine without sockets: scripted masters, a virtual clock, and every answer in the order
//! that a test wants.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, missing_docs, unreachable_pub)]

mod asking_kinds;
mod attempts;
mod clusters;
mod connections;
mod copies;
mod determinism;
mod extension;
mod fair;
mod fair_agreeing;
mod fencing;
mod garbage;
mod handing_over;
mod handshake;
mod healing;
mod idle;
mod inspecting;
mod instants;
mod keeping;
mod keeping_kinds;
mod late;
mod limits;
mod lines;
mod listening;
mod messages;
mod oversleeping;
mod own_changes;
mod permits;
mod permits_assigned;
mod permits_at_once;
mod permits_behind;
mod permits_handed_over;
mod permits_in_windows;
mod permits_slow;
mod prefix;
mod renewal;
mod replicas;
mod restart_guard;
mod restart_guard_holding;
mod retry;
mod schedules;
mod server_errors;
mod several;
mod sharing;
mod silence;
mod single_tries;
mod tables;
mod tokens;
mod upkeep;
mod validity;
mod votes;
mod wake_ups;
mod world;
mod writing_beside;
