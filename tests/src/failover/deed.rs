//! Faults of a primary after which another server replaces it.

use std::fmt;
use std::thread::sleep;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::groups::SentinelGroup;
use crate::proxy::Direction;
use crate::server::RedisServer;

/// How long a script keeps a server busy: longer than a failover and the quarantine of the new
/// primary.
const BUSY_SECONDS: u64 = 7;
/// The longest step in which a kernel counts time.
const A_TICK: Duration = Duration::from_millis(20);

/// A failover.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Befallen {
    /// The new primary.
    pub new: usize,
    /// When the fault of the old primary ends by itself.
    pub until: SystemTime,
}

/// What happens to a primary. Lasting faults are undone later.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Deed {
    /// It is killed, and started again without its data.
    Kill,
    /// It is stopped and continued.
    Stop,
    /// It runs a script for some seconds.
    Busy,
    /// A sentinel is asked to make another server the primary.
    Ask,
    /// Nothing gets through between it and the sentinels and replicas, while its clients reach it.
    CutOff,
    /// What it sends to sentinels and replicas does not arrive. It receives their messages.
    Mute,
    /// What sentinels and replicas send does not arrive. They receive its messages.
    Deaf,
}

impl Deed {
    /// All of them.
    pub const ALL: &[Self] =
        &[Self::CutOff, Self::Stop, Self::Ask, Self::Mute, Self::Kill, Self::Deaf, Self::Busy];

    /// Injects the fault, and returns as soon as two sentinels agree about a new primary.
    #[track_caller]
    pub fn befall(self, group: &SentinelGroup, primary: usize) -> Befallen {
        let mut until = SystemTime::now();
        match self {
            Self::Kill => group.server(primary).kill(),
            Self::Stop => group.server(primary).stop(),
            Self::Busy => until = keep_busy(group.server(primary), BUSY_SECONDS),
            Self::Ask => return Befallen { new: group.fail_over(), until },
            Self::CutOff => group.cut_off(primary, Direction::Both),
            Self::Mute => group.cut_off(primary, Direction::ToClient),
            Self::Deaf => group.cut_off(primary, Direction::ToServer),
        }
        Befallen { new: group.primary_after(primary), until }
    }

    /// Ends the fault. If `loses`, the network loses the bytes that it has held back.
    pub fn undo(self, group: &SentinelGroup, primary: usize, loses: bool) {
        match self {
            Self::Kill => group.server(primary).restart(),
            Self::Stop => group.server(primary).cont(),
            Self::Ask | Self::Busy => {}
            Self::CutOff | Self::Mute | Self::Deaf if loses => group.heal_anew(primary),
            Self::CutOff | Self::Mute | Self::Deaf => group.heal(primary),
        }
    }
}

impl fmt::Display for Deed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kill => "killed",
            Self::Stop => "stopped",
            Self::Busy => "busy",
            Self::Ask => "asked",
            Self::CutOff => "cut-off",
            Self::Mute => "mute",
            Self::Deaf => "deaf",
        })
    }
}

/// Keeps a server busy with a script that cannot be ended. Returns the time at which the script
/// ends.
pub fn keep_busy(server: &RedisServer, seconds: u64) -> SystemTime {
    server.command(&["CONFIG", "SET", "lua-time-limit", "60000"]);
    let since_epoch = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let second = since_epoch().as_secs() + 1;
    // The clock of the script is that of the kernel's last tick: for a few milliseconds it may
    // still be in the second before.
    while since_epoch() < Duration::from_secs(second) + A_TICK {
        sleep(Duration::from_millis(1));
    }
    // In all versions of servers, this is the only clock that advances during a script. It counts
    // whole seconds.
    let lag =
        "local function lag() return tonumber(redis.call('INFO', 'replication'):match('lag=(%d+)')) end";
    let script = format!("{lag} local e = lag() + {seconds} while lag() < e do end");
    let mut client = server.client().expect("the server answers");
    client.send(format!("EVAL \"{script}\" 0\r\n").as_bytes()).expect("the server takes bytes");
    UNIX_EPOCH + Duration::from_secs(second + seconds)
}
