//! Masters with replicas that may be promoted: the restart guard alone, and with `replicas=`.

use std::thread::sleep;
use std::time::Duration;

use crate::kit::*;

/// The longest TTL of all clients, and so the quarantine.
const LONGEST: Duration = Duration::from_secs(2);

/// A primary and its replica, which is attached.
struct Group {
    primary: RedisServer,
    replica: RedisServer,
}

impl Group {
    #[track_caller]
    fn start() -> Self {
        let primary = ServerOptions::new().start();
        let replica = ServerOptions::new().replica_of(&primary).start();
        let group = Self { primary, replica };
        group.is_complete(&group.primary);
        group
    }

    #[track_caller]
    fn is_complete(&self, primary: &RedisServer) {
        // A replica is listed before it has loaded the data that it was sent.
        let mut client = primary.client().unwrap();
        eventually(SOON, "the replica follows", || {
            client.command(&["SET", "probe", "x"]);
            primary.replicas() == 1 && client.command(&["WAIT", "1", "50"]).int() == Some(1)
        });
    }
}

/// The URL of a server with one more parameter, which may be empty.
fn url(server: &RedisServer, parameter: &str) -> String {
    let url = server.url();
    match (parameter, url.contains('?')) {
        ("", _) => url,
        (_, true) => format!("{url}&{parameter}"),
        (_, false) => format!("{url}?{parameter}"),
    }
}

/// A locker under the restart guard, at one server of a group. A request that is not answered soon
/// counts as lost.
fn guarded(transport: &Transport, server: &RedisServer, replicas: &str) -> Locker {
    let config = Config::builder([url(server, replicas)]).restart_guard(LONGEST);
    let config = config.ttl(LONGEST).request_timeout(millis(400)).connect_timeout(PATIENCE).timeout(SOON);
    transport.open(config.build().unwrap())
}

/// Bootstraps the masters. On a busy machine a replica may need several tries to confirm something
/// in time. If a try has opened only some masters, the others vote when their quarantine is over,
/// which must end within `SOON`.
#[track_caller]
fn vote(locker: &Locker) {
    eventually_equals(SOON, "the bootstrap", Ok(()), || locker.bootstrap().wait());
}

/// The errors if the only replica confirms nothing: before the primary notices its absence, and
/// afterwards.
fn is_alone(error: &AcquireError) -> bool {
    let said = ["confirmed it in time", "follow it"].map(|what| format!("replicas that {what}: 0 of 1"));
    said.iter().any(|said| error.to_string().contains(said))
}

/// A client of the primary continues, while another one follows the failover to the replica.
/// Returns whether both hold one lock at once.
#[track_caller]
fn both_hold(transport: &Transport, group: &Group, replicas: &str) -> bool {
    let old = guarded(transport, &group.primary, replicas);
    vote(&old);
    let held = old.lock("job").renew().wait().unwrap();

    group.replica.become_master();

    // The replica does not know of renewals at the primary from now on.
    let new = guarded(transport, &group.replica, replicas);
    match new.lock("job").timeout(4 * LONGEST).wait() {
        Ok(other) => held.is_valid() && other.is_valid(),
        Err(error) => {
            assert!(error.to_string().contains("replicas that follow it: 0 of 1"), "{error}");
            assert!(!held.is_valid(), "it is held by a primary without a replica");
            false
        }
    }
}

pub(crate) fn a_split_brain_has_two_holders_under_the_guard_alone_and_none_with_replicas(
    transport: &Transport,
) {
    assert!(both_hold(transport, &Group::start(), ""), "this split brain shows nothing");

    let group = Group::start();
    assert!(!both_hold(transport, &group, "replicas=1"));

    // The group is complete again, under its new primary. It grants nothing until its quarantine is
    // over.
    group.primary.become_replica_of(&group.replica);
    group.is_complete(&group.replica);
    let locker = guarded(transport, &group.replica, "replicas=1");
    let error = locker.try_lock("job").wait().unwrap_err();
    assert!(error.to_string().contains("quarantined for "), "{error}");
    let guard = locker.lock("job").wait().unwrap();
    held_on(&[group.primary, group.replica], &guard, 2);
}

pub(crate) fn a_holder_at_the_old_primary_is_lost_before_the_new_one_grants(transport: &Transport) {
    let group = Group::start();
    let old = guarded(transport, &group.primary, "replicas=1");
    vote(&old);
    let held = old.lock("job").renew().wait().unwrap();
    let watch = held.watch();

    group.replica.become_master();
    // The primary continues, and becomes a replica only after a client could reach the new primary.
    let new = guarded(transport, &group.replica, "replicas=1");
    group.primary.become_replica_of(&group.replica);
    let guard = new.lock("job").wait().unwrap();

    assert!(!held.is_valid() && guard.is_valid());
    assert_eq!(watch.lost().wait(), LossCause::Expired);
}

/// Before its promotion, the replica has sent acknowledgements that are still in the primary's
/// buffers. The primary reads them when it continues, so the replica seems to follow it.
pub(crate) fn a_primary_that_was_stopped_during_the_failover_has_no_vote(transport: &Transport) {
    let group = Group::start();
    let locker = guarded(transport, &group.primary, "replicas=1");
    vote(&locker);
    locker.lock("job").wait().unwrap().release().wait().unwrap();

    group.primary.stop();
    // Long enough for an acknowledgement: a replica sends one each second.
    sleep(millis(1300));
    group.replica.become_master();
    let asked = std::thread::scope(|scope| {
        let asks = scope.spawn(|| locker.try_lock("job").wait());
        sleep(millis(20));
        group.primary.cont();
        asks.join().unwrap()
    });

    // The error depends on which of its sockets the primary reads first.
    let error = asked.unwrap_err();
    assert!(is_alone(&error), "{error}");
    no_key(std::slice::from_ref(&group.primary), "job");
}

pub(crate) fn while_a_replica_hangs_nothing_is_granted_or_extended(transport: &Transport) {
    let group = Group::start();
    let locker = guarded(transport, &group.primary, "replicas=1");
    vote(&locker);
    let held = locker.lock("held").renew().wait().unwrap();

    group.replica.stop();

    let error = locker.try_lock("job").wait().unwrap_err();
    assert!(is_alone(&error), "{error}");
    assert_eq!(held.lost().wait(), LossCause::Expired);
    assert!(!held.is_valid());
    eventually(SOON, "the primary misses its replica", || {
        let error = locker.try_lock("job").wait().unwrap_err();
        error.to_string().contains("replicas that follow it: 0 of 1")
    });
    no_key(std::slice::from_ref(&group.primary), "job");

    group.replica.cont();
    let guard = locker.lock("job").wait().unwrap();
    held_on(&[group.primary, group.replica], &guard, 2);
}

pub(crate) fn clients_that_disagree_about_replicas_get_an_error(transport: &Transport) {
    let group = Group::start();
    let declared = guarded(transport, &group.primary, "replicas=1");
    vote(&declared);
    let guard = declared.lock("job").wait().unwrap();

    let error = guarded(transport, &group.primary, "").lock("other").wait().unwrap_err();
    assert!(matches!(error, AcquireError::Misconfigured(_)), "{error}");
    let told = "its restart guard is for 1 master, replicas=1 and a longest TTL of 2 s, \
                this client's for 1 master and a longest TTL of 2 s: use the same settings in all clients";
    assert!(error.to_string().contains(told), "{error}");

    let error = guarded(transport, &group.primary, "replicas=2").try_lock("other").wait().unwrap_err();
    assert!(error.to_string().contains("replicas that follow it: 1 of 2"), "{error}");
    assert!(guard.is_valid());
}

/// Waits until all servers have the keys of a lock that heals, also a server that missed the
/// request on a busy machine.
#[track_caller]
fn held_everywhere(servers: [&RedisServer; 4], guard: &Guard, keys: &[&'static str]) {
    let missing = || {
        let of = |server: &RedisServer| keys.iter().copied().filter(|key| !server.exists(key)).collect();
        servers.map(|server| -> Vec<_> { of(server) })
    };
    eventually_equals(SOON, "keys that primary, replica and masters miss", Default::default(), missing);
    assert!(guard.is_valid());
}

pub(crate) fn every_kind_of_lock_is_granted_extended_and_healed_on_a_group(transport: &Transport) {
    let (group, plain) = (Group::start(), masters(2));
    let urls = [url(&group.primary, "replicas=1"), plain[0].url(), plain[1].url()];
    let config = patient(urls).ttl(PATIENCE).request_timeout(millis(400)).restart_guard(PATIENCE);
    let locker = transport.open(config.build().unwrap());
    vote(&locker);
    let servers = [&group.primary, &group.replica, &plain[0], &plain[1]];
    let everywhere = |guard: &Guard, keys: &[&'static str]| held_everywhere(servers, guard, keys);

    // A key that is gone at the primary is put back after a renewal.
    for fenced in [false, true] {
        let request = locker.lock("job").ttl(3 * SECOND).renew().heal();
        let guard = if fenced { request.fenced() } else { request }.wait().unwrap();
        everywhere(&guard, &["job"]);
        assert!(group.primary.del("job"));
        everywhere(&guard, &["job"]);
        guard.extend(PATIENCE).wait().unwrap();
        assert_eq!(guard.release().wait(), Ok(Released::Freed));
    }

    let both = locker.lock_all(["x", "y"]).fenced().ttl(3 * SECOND).renew().heal().wait().unwrap();
    everywhere(&both, &["x", "y"]);
    assert!(group.primary.del("y"));
    everywhere(&both, &["x", "y"]);
    both.extend(PATIENCE).wait().unwrap();
    assert_eq!(both.release().wait(), Ok(Released::Freed));

    let writer = locker.write("doc").fenced().wait().unwrap();
    let reader = writer.downgrade().unwrap();
    let other = locker.read("doc").fenced().ttl(3 * SECOND).renew().heal().wait().unwrap();
    everywhere(&other, &["doc"]);
    assert!(reader.extend(PATIENCE).wait().is_ok() && other.extend(PATIENCE).wait().is_ok());
    drop((reader, other));

    let semaphore = locker.semaphore("gpu", 2).unwrap();
    let permits = [(); 2].map(|()| semaphore.acquire().fenced().wait().unwrap());
    assert!(permits.iter().all(|permit| permit.extend(PATIENCE).wait().is_ok()));
    assert!(semaphore.acquire().attempts(1).wait().is_err());
}
