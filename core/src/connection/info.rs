//! What the handshake reads in the replies to `INFO`.

use std::time::Duration;

use crate::protocol::{Cause, Config, EvictionPolicy};

/// Without a memory limit no key is ever evicted.
pub(super) fn look_for_eviction(info: &[u8], config: &Config) -> Result<(), Cause> {
    let limit = field(info, b"maxmemory").unwrap_or(b"0");
    let name = field(info, b"maxmemory_policy").and_then(|name| std::str::from_utf8(name).ok());
    let policy = name.and_then(EvictionPolicy::named).unwrap_or(EvictionPolicy::Unknown);
    if limit == b"0" || config.allows_eviction(policy) { Ok(()) } else { Err(Cause::Evicts(policy)) }
}

pub(super) fn uptime(info: &[u8]) -> Option<Duration> {
    let seconds = std::str::from_utf8(field(info, b"uptime_in_seconds")?).ok()?;
    seconds.parse().ok().map(Duration::from_secs)
}

/// The value of `name:value` in an INFO reply.
pub(super) fn field<'a>(info: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    info.split(|&byte| byte == b'\n')
        .filter_map(|line| line.strip_prefix(name)?.strip_prefix(b":"))
        .map(|value| value.strip_suffix(b"\r").unwrap_or(value))
        .next()
}
