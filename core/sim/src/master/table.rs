//! The commands: name, arity and flags as in Redis 7.0, and the function that runs each.

use super::call::Call;
use super::reply::Failure;
use super::{configuration, connection, expiry, info, keys, replicas, scores, scripts, strings};

/// Changes keys: a replica refuses it.
pub(super) const WRITE: u8 = 1;
/// Needs memory: refused if there is none.
pub(super) const DENY_OOM: u8 = 2;
/// Runs while the server is still reading its data.
pub(super) const LOADING: u8 = 4;
/// Runs before a password was given.
pub(super) const NO_AUTH: u8 = 8;

/// Reads keys and changes none: all its arguments are keys, and a client that tracks keys is
/// notified when they change.
pub(super) const READ: u8 = 16;

/// The same, with only the first argument as a key.
pub(super) const READ_FIRST: u8 = 32;

pub(super) type Run = fn(&mut Call<'_>) -> Result<(), Failure>;

/// A command or a subcommand.
pub(super) struct Spec {
    /// In lower case; a subcommand has its command and a bar in front.
    pub(super) name: &'static str,
    /// The number of arguments including the name, or minus the smallest number.
    arity: isize,
    flags: u8,
    pub(super) run: Run,
    pub(super) subcommands: &'static [Spec],
}

impl Spec {
    pub(super) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    pub(super) fn takes(&self, arguments: usize) -> bool {
        let least = self.arity.unsigned_abs();
        if self.arity < 0 { arguments >= least } else { arguments == least }
    }

    pub(super) fn wrong_arity(&self) -> Failure {
        Failure::raw(format!("ERR wrong number of arguments for '{}' command", self.name).into_bytes())
    }
}

pub(super) fn find(specs: &'static [Spec], name: &[u8]) -> Option<&'static Spec> {
    specs.iter().find(|spec| spec.name.as_bytes().eq_ignore_ascii_case(name))
}

pub(super) fn find_subcommand(command: &'static Spec, name: &[u8]) -> Option<&'static Spec> {
    command.subcommands.iter().find(|spec| {
        let own = spec.name.as_bytes().get(command.name.len() + 1..).unwrap_or_default();
        own.eq_ignore_ascii_case(name)
    })
}

/// The first words of a request that a browser was tricked into sending. The server closes the
/// connection without an answer.
pub(super) fn is_http(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"POST") || name.eq_ignore_ascii_case(b"HOST:")
}

const fn command(name: &'static str, arity: isize, flags: u8, run: Run) -> Spec {
    Spec { name, arity, flags, run, subcommands: &[] }
}

/// A command that does nothing without a subcommand.
const fn container(name: &'static str, subcommands: &'static [Spec]) -> Spec {
    Spec { name, arity: -2, flags: 0, run: refuse, subcommands }
}

/// Never reached: the arity of a container requires a subcommand.
fn refuse(_: &mut Call<'_>) -> Result<(), Failure> {
    Err(super::reply::SYNTAX)
}

pub(super) const COMMANDS: &[Spec] = &[
    command("set", -3, WRITE | DENY_OOM, strings::set),
    command("get", 2, READ, strings::get),
    command("mget", -2, READ, strings::mget),
    command("incr", 2, WRITE | DENY_OOM, strings::incr),
    command("del", -2, WRITE, keys::del),
    command("unlink", -2, WRITE, keys::del),
    command("exists", -2, READ, keys::exists),
    command("type", 2, READ, keys::type_of),
    command("rpush", -3, WRITE | DENY_OOM, keys::push),
    command("lpush", -3, WRITE | DENY_OOM, keys::push),
    command("zadd", -4, WRITE | DENY_OOM, scores::zadd),
    command("zrem", -3, WRITE, scores::zrem),
    command("zscore", 3, READ_FIRST, scores::zscore),
    command("zremrangebyscore", 4, WRITE, scores::zremrangebyscore),
    command("zrank", 3, READ_FIRST, scores::zrank),
    command("zrange", -4, READ_FIRST, scores::zrange),
    command("zrevrange", -4, READ_FIRST, scores::zrevrange),
    command("dbsize", 1, 0, keys::dbsize),
    command("scan", -2, 0, keys::scan),
    command("flushdb", -1, WRITE, keys::flushdb),
    command("flushall", -1, WRITE, keys::flushall),
    command("pttl", 2, READ, expiry::pttl),
    command("ttl", 2, READ, expiry::ttl),
    command("pexpiretime", 2, READ, expiry::pexpiretime),
    command("pexpire", -3, WRITE, expiry::pexpire),
    command("expire", -3, WRITE, expiry::expire),
    command("persist", 2, WRITE, expiry::persist),
    command("eval", -3, 0, scripts::eval),
    command("evalsha", -3, 0, scripts::evalsha),
    container("script", SCRIPT),
    command("hello", -1, LOADING | NO_AUTH, connection::hello),
    command("auth", -2, LOADING | NO_AUTH, connection::auth),
    command("select", 2, LOADING, connection::select),
    command("ping", -1, 0, connection::ping),
    command("echo", 2, LOADING, connection::echo),
    container("client", CLIENT),
    command("info", -1, LOADING, info::info),
    command("time", 1, LOADING, info::time),
    command("command", -1, LOADING, info::command),
    container("config", CONFIG),
    command("wait", 3, 0, replicas::wait),
];

const SCRIPT: &[Spec] = &[
    command("script|load", 3, 0, scripts::load),
    command("script|exists", -3, 0, scripts::exists),
    command("script|flush", -2, 0, scripts::flush),
];

const CLIENT: &[Spec] = &[
    command("client|setname", 3, LOADING, connection::client_setname),
    command("client|getname", 2, LOADING, connection::client_getname),
    command("client|id", 2, LOADING, connection::client_id),
    command("client|info", 2, LOADING, connection::client_info),
    command("client|tracking", -3, LOADING, connection::client_tracking),
    command("client|no-evict", 3, LOADING, connection::client_no_evict),
];

const CONFIG: &[Spec] = &[
    command("config|get", -3, LOADING, configuration::get),
    command("config|set", -4, LOADING, configuration::set),
];
