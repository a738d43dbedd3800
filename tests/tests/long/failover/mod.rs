//! Masters that fail over, with real servers: no lock has two holders if votes count only after all
//! replicas have confirmed them. Without the confirmations, the same stories show two holders.

mod clusters;
mod scene;
mod sentinels;
mod stories;
