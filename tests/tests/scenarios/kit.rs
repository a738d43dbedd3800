//! Helpers of scenarios.

use std::time::Duration;

pub(crate) use quorlock_core::front::{Guard, Locker, ReleaseError, Released};
pub(crate) use quorlock_core::{
    AcquireError, Cause, Config, ConfigBuilder, ExtendError, LossCause, MasterState, ServerError, Vote,
};
pub(crate) use quorlock_tests::{
    Calls, Cut, Direction, FakeMaster, FaultProxy, Fleet, RedisServer, ServerOptions, Transport, behaviour,
    eventually, eventually_equals, master, masters, url_of,
};

/// Far longer than anything takes if it works, even on a busy machine.
pub(crate) const SOON: Duration = Duration::from_secs(20);
/// A TTL with which no key expires during a scenario.
pub(crate) const TTL: Duration = Duration::from_secs(60);
/// The TTL of scenarios that wait for several TTLs.
pub(crate) const SECOND: Duration = Duration::from_secs(1);
/// A request timeout that a scenario would notice if a caller waited for it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// With these settings nothing times out because the machine is busy, but a caller that waits for a
/// silent master is slow.
pub(crate) fn patient<U: AsRef<str>>(urls: impl IntoIterator<Item = U>) -> ConfigBuilder {
    Config::builder(urls).ttl(TTL).request_timeout(PATIENCE).connect_timeout(PATIENCE).timeout(SOON)
}

/// Settings for scenarios in which silent masters must be detected.
pub(crate) fn hasty<U: AsRef<str>>(urls: impl IntoIterator<Item = U>) -> ConfigBuilder {
    patient(urls).request_timeout(millis(200)).connect_timeout(millis(500))
}

/// A patient locker over these masters.
pub(crate) fn open(transport: &Transport, masters: &[RedisServer]) -> Locker {
    transport.open(patient(masters.iter().map(RedisServer::url)).build().unwrap())
}

/// A locker that abandons silent masters soon.
pub(crate) fn open_hasty(transport: &Transport, masters: &[RedisServer]) -> Locker {
    transport.open(hasty(masters.iter().map(RedisServer::url)).build().unwrap())
}

/// A proxy in front of each server.
pub(crate) fn proxies(masters: &[RedisServer]) -> Vec<FaultProxy> {
    masters.iter().map(|master| FaultProxy::start(master.address())).collect()
}

pub(crate) fn urls(proxies: &[FaultProxy]) -> Vec<String> {
    proxies.iter().map(FaultProxy::url).collect()
}

/// How many masters can vote.
pub(crate) fn ready(locker: &Locker) -> usize {
    locker.masters().iter().filter(|(_, state)| matches!(state, MasterState::Ready { .. })).count()
}

#[track_caller]
pub(crate) fn all_ready(locker: &Locker) {
    let all = locker.masters().len();
    eventually_equals(SOON, "all masters are connected", all, || ready(locker));
}

/// Releases follow a lost round, so a key may be gone only a moment later.
#[track_caller]
pub(crate) fn no_key(masters: &[RedisServer], key: &str) {
    eventually_equals(SOON, "no master holds the key", vec![false; masters.len()], || {
        masters.iter().map(|master| master.exists(key)).collect()
    });
}

#[track_caller]
pub(crate) fn held_on(masters: &[RedisServer], guard: &Guard, expected: usize) {
    eventually_equals(SOON, "masters that hold the token", expected, || holding(masters, guard));
}

#[track_caller]
pub(crate) fn held_by_quorum(masters: &[RedisServer], guard: &Guard) {
    let holding = holding(masters, guard);
    assert!(holding > masters.len() / 2, "{holding} masters hold the token");
}

/// How many masters have the guard's token.
fn holding(masters: &[RedisServer], guard: &Guard) -> usize {
    let key = guard.resource().to_string();
    let token = guard.token().expose();
    masters.iter().filter(|master| master.get(&key).as_deref() == Some(token.as_str())).count()
}

/// Sets the key on all masters, as a foreign holder that never releases.
pub(crate) fn occupy(masters: &[RedisServer], key: &str) {
    for master in masters {
        assert!(master.command(&["SET", key, "foreign", "NX", "PX", "600000"]).is_ok());
    }
}
