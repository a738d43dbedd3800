//! Masters, a network and clocks as values: the world in which the machine is proved, and in which you can property-test your own code
//! without a server.

mod master;

pub use master::{Command, CommandKind, Flow, Held, Master, ProtocolError, Session};
