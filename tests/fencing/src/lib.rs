//! A PostgreSQL server for the examples and tests of the page about fencing
//! (`core/docs/fencing.md`).

mod binaries;
mod page;
mod server;

pub use page::statements;
pub use server::Postgres;
