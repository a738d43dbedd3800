//! What can go wrong, each as a value.

use std::time::Duration;

use crate::master::Keep;

/// A fault, from when on it is injected. Masters and clients go by their numbers, from 0; numbers beyond the last are counted around.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Fault {
    /// The master's process stops for a while; the system goes on accepting connections and bytes for it, and it executes them then.
    Hang {
        /// Whose.
        master: usize,
        /// For how long.
        span: Duration,
    },
    /// The master dies, its connections end, and it comes back after a while with a new run id and no scripts.
    Crash {
        /// Whose.
        master: usize,
        /// How long it is away.
        span: Duration,
        /// What of its data has survived. Anything but [`Keep::Everything`] lies outside Redlock's assumptions.
        keep: Keep,
    },
    /// The master's keys are gone (FLUSHALL). Outside Redlock's assumptions, unless the restart guard is on.
    Flush {
        /// Whose.
        master: usize,
    },
    /// The master is made a replica of another one, with a copy of its keys, and is promoted after a while; its connections stay. Outside
    /// Redlock's assumptions, unless the restart guard is on.
    Resync {
        /// Whose.
        master: usize,
        /// Which other: so many places behind the next one, counted around.
        further: usize,
        /// For how long it is a replica.
        span: Duration,
    },
    /// The master answers with errors for a while.
    Refuse {
        /// Whose.
        master: usize,
        /// Which errors.
        reason: Refusal,
        /// For how long.
        span: Duration,
    },
    /// What the master says unasked has this fate for a while: that keys have changed which a client has read (`CLIENT TRACKING`). Replies
    /// get through.
    Pushes {
        /// Whose.
        master: usize,
        /// What becomes of it.
        fate: PushFate,
        /// For how long.
        span: Duration,
    },
    /// The master's scripts are gone (SCRIPT FLUSH).
    ForgetScripts {
        /// Whose.
        master: usize,
    },
    /// A connection ends at once; what was on its way is lost in both directions.
    Cut {
        /// Between this client
        client: usize,
        /// and this master.
        master: usize,
    },
    /// The master ends a connection, having executed what reached it and sent what it had to say (a `timeout`, CLIENT KILL).
    HangUp {
        /// Between this client
        client: usize,
        /// and this master.
        master: usize,
    },
    /// A connection is forgotten by something in between: whatever is sent on it from now on vanishes, and nobody is told.
    HalfOpen {
        /// Between this client
        client: usize,
        /// and this master.
        master: usize,
    },
    /// Nothing gets through for a while, neither bytes nor new connections; what was sent meanwhile arrives after it.
    Partition {
        /// Between this client
        client: usize,
        /// and this master.
        master: usize,
        /// For how long.
        span: Duration,
    },
    /// Nothing that the master says gets through for a while, though it hears everything; what it said meanwhile arrives after it.
    Mute {
        /// Between this client
        client: usize,
        /// and this master.
        master: usize,
        /// For how long.
        span: Duration,
    },
    /// The client's sockets to this master take a few bytes more and then none for a while.
    Clog {
        /// Between this client
        client: usize,
        /// and this master.
        master: usize,
        /// For how long.
        span: Duration,
    },
    /// The client's system opens no connection to this master for a while (no route, no local port): an opening fails in the turn of the
    /// driver that asked for it. Open connections stay.
    Unreachable {
        /// Between this client
        client: usize,
        /// and this master.
        master: usize,
        /// For how long.
        span: Duration,
    },
    /// Everything takes longer for a while.
    Slow {
        /// Between this client
        client: usize,
        /// and this master.
        master: usize,
        /// How much longer, each way.
        delay: Duration,
        /// For how long.
        span: Duration,
    },
    /// The client's process stands still for a while (a collection, SIGSTOP, a suspended machine); its clock goes on.
    Pause {
        /// Whose.
        client: usize,
        /// For how long.
        span: Duration,
    },
    /// The client's process dies without a word. Its tasks never go on.
    Kill {
        /// Whose.
        client: usize,
    },
    /// A client's clock gains so much from now on, in parts in a million.
    ClientDrift {
        /// Whose.
        client: usize,
        /// How much; negative for a slow clock.
        gain_ppm: i32,
    },
    /// A master's clock gains so much from now on, in parts in a million.
    MasterDrift {
        /// Whose.
        master: usize,
        /// How much; negative for a slow clock.
        gain_ppm: i32,
    },
    /// A client's clock goes forward all at once, as after a sleep of the machine that its process did not notice. It never goes back: clients
    /// read a clock that cannot be set.
    ClientJump {
        /// Whose.
        client: usize,
        /// By how much.
        by: Duration,
    },
    /// Somebody sets a master's clock. Outside Redlock's assumptions.
    MasterJump {
        /// Whose.
        master: usize,
        /// By how much, in milliseconds; negative for back.
        by_millis: i64,
    },
}

/// When a fault comes about.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum When {
    /// At this true time since the world's beginning.
    At(Duration),
    /// When so many things have happened in the world. Much happens while requests are on their way and little in between, so that random
    /// numbers hit the moments that matter.
    AfterEvents(u64),
    /// So long after the grant of that number, counted from 0 over all masters, has been executed; with no delay before its answer leaves.
    /// The fault's client and master are counted from those of the grant.
    AtGrant {
        /// Which grant.
        number: u64,
        /// How long after it, in true time.
        delay: Duration,
    },
}

impl When {
    /// When it comes about at the latest in a world in which something happens for so long.
    pub(super) fn at_latest(self, busy_for: Duration) -> Duration {
        match self {
            Self::At(at) => at,
            Self::AfterEvents(_) | Self::AtGrant { .. } => busy_for,
        }
    }
}

impl From<Duration> for When {
    fn from(at: Duration) -> Self {
        Self::At(at)
    }
}

/// Errors that a master gives for a while.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Refusal {
    /// `-OOM` for whatever needs memory: `maxmemory` is reached.
    OutOfMemory,
    /// `-READONLY` for writes: the master has been made a replica.
    ReadOnly,
    /// `-LOADING` for nearly everything.
    Loading,
    /// `-NOAUTH` for everything: a password has been set that the clients do not have.
    NoAuth,
}

/// What becomes of what a master says unasked.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PushFate {
    /// Nobody hears it.
    Lost,
    /// It is held back and sent when the fault ends, behind replies that were given meanwhile.
    Late,
    /// It is sent twice.
    Repeated,
}

/// How much a single clock may gain or lose so that the rates of any two differ by no more than a hundredth.
pub const ASSUMED_DRIFT_PPM: i32 = 4_975;

impl Fault {
    /// Whether Redlock must stand it: whether it lies inside the assumptions under which no two guards are valid at once.
    pub fn is_assumed(&self) -> bool {
        match self {
            Self::Crash { keep, .. } => *keep == Keep::Everything,
            Self::ClientDrift { gain_ppm, .. } | Self::MasterDrift { gain_ppm, .. } => {
                (-ASSUMED_DRIFT_PPM..=ASSUMED_DRIFT_PPM).contains(gain_ppm)
            }
            Self::MasterJump { .. } | Self::Flush { .. } | Self::Resync { .. } => false,
            _ => true,
        }
    }

    /// Whether it must be stood if all clients have the restart guard on, which is there for masters that lose their data.
    pub fn is_assumed_with_guard(&self) -> bool {
        self.is_assumed() || matches!(self, Self::Crash { .. } | Self::Flush { .. } | Self::Resync { .. })
    }

    /// With its numbers counted from these.
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
            | Self::Flush { master }
            | Self::Resync { master, .. }
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

    /// How long it lasts by itself; nothing for those that happen at once or for good.
    pub fn span(&self) -> Duration {
        match self {
            Self::Hang { span, .. }
            | Self::Crash { span, .. }
            | Self::Resync { span, .. }
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
