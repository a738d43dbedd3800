//! How often a server has executed each kind of command.

use quorlock_embedded::CommandKind;

use super::{Inside, RedisServer};

/// What [`RedisServer::calls`] counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Calls {
    /// `SET`
    Set,
    /// `HELLO`
    Hello,
    /// Scripts of any kind, and the server's own commands that do the same as one of them.
    Script,
    /// Extensions of an existing lock.
    Extension,
}

impl RedisServer {
    /// How often the server has executed such commands. On a real server the harness's own commands
    /// count too.
    #[track_caller]
    pub fn calls(&self, what: Calls) -> u64 {
        let (commands, kinds): (&[&str], &[CommandKind]) = match what {
            Calls::Set => (&["set"], &[CommandKind::Set]),
            Calls::Hello => (&["hello"], &[CommandKind::Hello]),
            Calls::Script => (
                &["evalsha", "eval", "delifeq", "delex"],
                &[CommandKind::Extend, CommandKind::Release, CommandKind::Undo],
            ),
            Calls::Extension => (&["pexpire"], &[CommandKind::Extend]),
        };
        if let Inside(master) = &self.backend {
            return kinds.iter().map(|kind| master.executed(*kind)).sum();
        }
        let info = self.command(&["INFO", "commandstats"]);
        let info = info.text().expect("INFO answers text");
        let calls = |command: &&str| -> u64 {
            let start = format!("cmdstat_{command}:calls=");
            let line = info.lines().find_map(|line| line.strip_prefix(&start)?.split(',').next());
            line.map_or(0, |calls| calls.parse().expect("INFO counts in numbers"))
        };
        commands.iter().map(calls).sum()
    }
}
