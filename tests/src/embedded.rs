//! An embedded master in the harness.

use std::io;
use std::net::Ipv6Addr;

use quorlock_embedded::{CommandKind, Keep, Master, now};
use quorlock_sim::Command;

use crate::client::Value;
use crate::options::{HARNESS_PASSWORD, HARNESS_USER, ServerOptions};
use crate::ports::PortLease;

#[derive(Debug)]
pub(crate) struct Embedded {
    master: Master,
    keep: Keep,
}

impl Embedded {
    pub(crate) fn start(options: &ServerOptions, lease: &PortLease) -> io::Result<Self> {
        let mut address = lease.address();
        if options.ipv6 {
            address.set_ip(Ipv6Addr::LOCALHOST.into());
        }
        let keep = if options.append_only { Keep::Everything } else { Keep::Nothing };
        let embedded = Self { master: Master::bind(address)?, keep };
        embedded.master.model(|model| model.add_user(HARNESS_USER, HARNESS_PASSWORD));
        if let Some(amount) = &options.max_memory {
            embedded.execute(&["CONFIG", "SET", "maxmemory", amount])?;
        }
        embedded.master.model(|model| {
            model.set_password(options.password.as_deref());
            model.set_replica(options.is_replica());
            model.set_knows_hello(!options.without_hello);
        });
        Ok(embedded)
    }

    pub(crate) fn is_running(&self) -> bool {
        self.master.is_running()
    }

    #[track_caller]
    pub(crate) fn pause(&self) {
        assert!(self.is_running(), "the server has been started and not killed");
        self.master.pause();
    }

    #[track_caller]
    pub(crate) fn resume(&self) {
        assert!(self.is_running(), "the server has been started and not killed");
        self.master.resume();
    }

    pub(crate) fn stop(&self) {
        self.master.stop();
    }

    pub(crate) fn restart(&self) -> io::Result<()> {
        self.master.restart(self.keep)
    }

    /// Executes a command on its own session, without a connection.
    pub(crate) fn execute(&self, args: &[&str]) -> io::Result<Value> {
        if !self.is_running() {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        let mut replies = Vec::new();
        self.master.model(|model| {
            let mut session = model.accept();
            let login = ["AUTH", HARNESS_USER, HARNESS_PASSWORD];
            for command in [Command::new(login), Command::new(args.iter().copied())] {
                replies.clear();
                // There is no connection to close.
                let _ = model.execute(&mut session, &command, now(), &mut replies);
            }
        });
        Value::read(&mut replies.as_slice())
    }

    pub(crate) fn client_names(&self) -> Vec<String> {
        self.master.clients()
    }

    pub(crate) fn executed(&self, kind: CommandKind) -> u64 {
        self.master.executed(kind)
    }

    pub(crate) fn set_replica(&self, is_replica: bool) {
        self.master.model(|model| model.set_replica(is_replica));
    }

    pub(crate) fn set_replicas(&self, replicas: u16) {
        self.master.model(|model| model.set_replicas(replicas));
    }

    /// Makes all requests for locks fail with this error.
    pub(crate) fn fail(&self, error: &str) {
        self.master.model(|model| ["GET", "SET", "UNDO"].map(|name| model.fail(name, Some(error))));
    }
}
