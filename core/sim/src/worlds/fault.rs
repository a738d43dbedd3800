//! What can go wrong, each as a value.

use std::time::Duration;

use crate::master::Keep;

/// A fault.
///
/// Masters and clients are named by their numbers, from 0. Numbers beyond the last one wrap around.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Fault {
    /// The master's process hangs for a while. Its system still accepts connections and bytes,
    /// which the master executes afterwards.
    Hang {
        /// The master.
        master: usize,
        /// For how long.
        span: Duration,
    },
    /// The master dies and its connections end. It restarts after a while, with a new run id and no
    /// scripts.
    Crash {
        /// The master.
        master: usize,
        /// How long it is down.
        span: Duration,
        /// The keys that survive. Anything but [`Keep::Everything`] is outside Redlock's
        /// assumptions.
        keep: Keep,
    },
    /// The master leaves for good, or until [`Fault::Return`]; if it has replicas, its whole group
    /// does.
    Leave {
        /// The master.
        master: usize,
    },
    /// A master that has left comes back; if it has replicas, its whole group does. Anything but
    /// [`Keep::Everything`] is outside Redlock's assumptions, unless the restart guard is on.
    ///
    /// If clients have another master instead of it by then, it is outside all assumptions.
    Return {
        /// The master.
        master: usize,
        /// The keys that it still has.
        keep: Keep,
    },
    /// The master loses all keys (FLUSHALL). Outside Redlock's assumptions, unless the restart
    /// guard is on.
    Flush {
        /// The master.
        master: usize,
    },
    /// The master saves a snapshot of its keys, for [`Fault::Restore`].
    Save {
        /// The master.
        master: usize,
    },
    /// The master dies as in [`Fault::Crash`], and restarts with the keys of its last snapshot, the
    /// restart guard's marker among them; without a snapshot it restarts empty. Keys that have
    /// expired since are gone. Outside Redlock's assumptions, unless the restart guard is on.
    Restore {
        /// The master.
        master: usize,
        /// How long it is down.
        span: Duration,
    },
    /// The master becomes a replica of another master, with a copy of that master's keys, and is
    /// promoted after a while. Its connections stay open. Outside Redlock's assumptions, unless the
    /// restart guard is on.
    ///
    /// If masters have replicas, the primary of the server's group becomes a replica of another
    /// group's primary, and its own replicas get that data from it after its promotion. Nothing
    /// happens in a cluster, or if one of the two primaries hangs or is down.
    Resync {
        /// The master.
        master: usize,
        /// The other master: this many places after the next one, wrapping around.
        further: usize,
        /// For how long it is a replica.
        span: Duration,
    },
    /// A replica of a group becomes its primary, while its former primary continues. Clients learn
    /// it at different times; open connections stay open. Outside the assumptions, unless the
    /// restart guard is on and clients declare all replicas. Nothing happens if the server is not a
    /// replica, hangs or is down.
    Promote {
        /// The server.
        master: usize,
        /// The longest time that a client takes to learn it.
        learned_within: Duration,
    },
    /// A server of a group becomes a replica of the one that was promoted last, which replaces its
    /// keys. Nothing happens to that one itself, or to a server that hangs or is down.
    Follow {
        /// The server.
        master: usize,
        /// Whether it closes the connections of its clients, as Sentinel makes it do. `REPLICAOF`
        /// leaves them open.
        closes: bool,
    },
    /// Nothing between a server and the others of its group gets through for a while. What is sent
    /// meanwhile arrives afterwards. Clients reach it.
    Isolate {
        /// The server.
        master: usize,
        /// For how long.
        span: Duration,
    },
    /// Messages between a server and the others of its group take longer for a while.
    SlowReplication {
        /// The server.
        master: usize,
        /// The additional delay in each direction.
        delay: Duration,
        /// For how long.
        span: Duration,
    },
    /// In a cluster, the slot of a master moves to another group of servers at once, with all keys
    /// (Redis 8.4, Valkey 9). Outside the assumptions, unless the restart guard is on and clients
    /// declare all replicas. Nothing happens if masters have one group each, while the slot is
    /// being moved already, or if one of the two primaries hangs or is down.
    MoveSlot {
        /// Any server of the master.
        master: usize,
        /// The group: this many places after the next one, wrapping around.
        further: usize,
    },
    /// In a cluster, the slot of a master begins to move to another group of servers, key by key
    /// (`CLUSTER SETSLOT`, `MIGRATE`). The move ends with the last key, or with a failover of the
    /// source group. The conditions are those of [`Fault::MoveSlot`].
    Reshard {
        /// Any server of the master.
        master: usize,
        /// The group: this many places after the next one, wrapping around.
        further: usize,
        /// The longest time between two keys.
        pace: Duration,
        /// Whether the move is abandoned halfway, which is outside all assumptions: the keys that
        /// have moved are lost.
        is_given_up: bool,
    },
    /// The master answers with errors for a while.
    Refuse {
        /// The master.
        master: usize,
        /// The errors.
        reason: Refusal,
        /// For how long.
        span: Duration,
    },
    /// The master's pushes are lost, late or repeated for a while: the notifications of changed
    /// keys (`CLIENT TRACKING`). Replies are not affected.
    Pushes {
        /// The master.
        master: usize,
        /// What happens to the pushes.
        fate: PushFate,
        /// For how long.
        span: Duration,
    },
    /// The master loses its script cache (SCRIPT FLUSH).
    ForgetScripts {
        /// The master.
        master: usize,
    },
    /// A connection ends at once. What was on its way is lost in both directions.
    Cut {
        /// The client.
        client: usize,
        /// The master.
        master: usize,
    },
    /// The master closes a connection, after it has executed what has arrived and sent its replies
    /// (a `timeout`, CLIENT KILL).
    HangUp {
        /// The client.
        client: usize,
        /// The master.
        master: usize,
    },
    /// A middlebox forgets a connection: everything that is sent on it from now on vanishes without
    /// a trace.
    HalfOpen {
        /// The client.
        client: usize,
        /// The master.
        master: usize,
    },
    /// Neither bytes nor new connections get through for a while. What is sent meanwhile arrives
    /// afterwards.
    Partition {
        /// The client.
        client: usize,
        /// The master.
        master: usize,
        /// For how long.
        span: Duration,
    },
    /// Nothing that the master sends gets through for a while, although it receives everything.
    /// What it sends meanwhile arrives afterwards.
    Mute {
        /// The client.
        client: usize,
        /// The master.
        master: usize,
        /// For how long.
        span: Duration,
    },
    /// The client's sockets to this master accept a few more bytes, and then none for a while.
    Clog {
        /// The client.
        client: usize,
        /// The master.
        master: usize,
        /// For how long.
        span: Duration,
    },
    /// The client's system cannot open connections to this master for a while (no route, no local
    /// port). An attempt fails at once, in the driver's own turn. Open connections stay.
    Unreachable {
        /// The client.
        client: usize,
        /// The master.
        master: usize,
        /// For how long.
        span: Duration,
    },
    /// Messages take longer for a while.
    Slow {
        /// The client.
        client: usize,
        /// The master.
        master: usize,
        /// The additional delay in each direction.
        delay: Duration,
        /// For how long.
        span: Duration,
    },
    /// The client's process pauses for a while (garbage collection, SIGSTOP, a suspended machine).
    /// Its clock continues.
    Pause {
        /// The client.
        client: usize,
        /// For how long.
        span: Duration,
    },
    /// The client's process is killed. Its tasks never continue.
    Kill {
        /// The client.
        client: usize,
    },
    /// A client's clock runs faster or slower from now on.
    ClientDrift {
        /// The client.
        client: usize,
        /// Its gain in parts per million; negative for a slow clock.
        gain_ppm: i32,
    },
    /// A master's clock runs faster or slower from now on.
    MasterDrift {
        /// The master.
        master: usize,
        /// Its gain in parts per million; negative for a slow clock.
        gain_ppm: i32,
    },
    /// A client's clock jumps forward, as after the machine was suspended. It never jumps back:
    /// clients read a clock that cannot be set.
    ClientJump {
        /// The client.
        client: usize,
        /// By how much.
        by: Duration,
    },
    /// An operator sets a master's clock. Outside Redlock's assumptions.
    MasterJump {
        /// The master.
        master: usize,
        /// By how much, in milliseconds; negative for back.
        by_millis: i64,
    },
}

/// The errors with which a master refuses commands for a while.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Refusal {
    /// `-OOM` for commands that need memory: `maxmemory` is reached.
    OutOfMemory,
    /// `-READONLY` for writes: the master has become a replica.
    ReadOnly,
    /// `-LOADING` for nearly all commands.
    Loading,
    /// `-NOAUTH` for all commands: a password was set that the clients do not have.
    NoAuth,
}

/// What happens to the pushes of a master.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PushFate {
    /// They are lost.
    Lost,
    /// They are held back until the fault ends, and arrive behind replies that were sent meanwhile.
    Late,
    /// They are sent twice.
    Repeated,
}

impl Fault {
    /// Returns the fault with these added to its numbers.
    pub(super) fn counted_from(mut self, from_client: usize, from_master: usize) -> Self {
        let (client, master) = self.numbers_mut();
        if let Some(client) = client {
            *client += from_client;
        }
        if let Some(master) = master {
            *master += from_master;
        }
        self
    }

    /// The client and the master that it is about.
    pub(super) fn numbers_mut(&mut self) -> (Option<&mut usize>, Option<&mut usize>) {
        match self {
            Self::Hang { master, .. }
            | Self::Crash { master, .. }
            | Self::Leave { master }
            | Self::Return { master, .. }
            | Self::Flush { master }
            | Self::Save { master }
            | Self::Restore { master, .. }
            | Self::Resync { master, .. }
            | Self::Promote { master, .. }
            | Self::Follow { master, .. }
            | Self::Isolate { master, .. }
            | Self::SlowReplication { master, .. }
            | Self::MoveSlot { master, .. }
            | Self::Reshard { master, .. }
            | Self::Refuse { master, .. }
            | Self::Pushes { master, .. }
            | Self::ForgetScripts { master }
            | Self::MasterDrift { master, .. }
            | Self::MasterJump { master, .. } => (None, Some(master)),
            Self::Cut { client, master }
            | Self::HangUp { client, master }
            | Self::HalfOpen { client, master }
            | Self::Partition { client, master, .. }
            | Self::Mute { client, master, .. }
            | Self::Clog { client, master, .. }
            | Self::Unreachable { client, master, .. }
            | Self::Slow { client, master, .. } => (Some(client), Some(master)),
            Self::Pause { client, .. }
            | Self::Kill { client }
            | Self::ClientJump { client, .. }
            | Self::ClientDrift { client, .. } => (Some(client), None),
        }
    }

    /// Returns how long the fault lasts; zero for faults that happen at once or never end.
    pub fn span(&self) -> Duration {
        match self {
            Self::Hang { span, .. }
            | Self::Crash { span, .. }
            | Self::Restore { span, .. }
            | Self::Resync { span, .. }
            | Self::Isolate { span, .. }
            | Self::SlowReplication { span, .. }
            | Self::Refuse { span, .. }
            | Self::Pushes { span, .. }
            | Self::Partition { span, .. }
            | Self::Mute { span, .. }
            | Self::Clog { span, .. }
            | Self::Unreachable { span, .. }
            | Self::Slow { span, .. }
            | Self::Pause { span, .. } => *span,
            _ => Duration::ZERO,
        }
    }
}
