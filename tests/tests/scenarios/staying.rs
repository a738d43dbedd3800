//! Connections that are quiet for a long time, and the server behind an address.

use std::fs;
use std::net::SocketAddr;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use quorlock_core::Warning;

use crate::kit::*;

pub(crate) fn quiet_connections_are_pinged_and_dead_ones_found(transport: &Transport) {
    let masters = masters(3);
    let proxies = proxies(&masters);
    let locker = transport.open(hasty(urls(&proxies)).keep_alive(millis(100)).build().unwrap());
    all_ready(&locker);
    sleep(SECOND);
    let accepted = || proxies.iter().map(FaultProxy::accepted).collect::<Vec<_>>();
    assert_eq!(accepted(), [1; 3], "an answer keeps a connection");

    proxies[0].half_open();

    eventually_equals(SOON, "the dead connection is replaced without a request", vec![2, 1, 1], accepted);
    all_ready(&locker);
    let guard = locker.lock("job").wait().unwrap();
    held_on(&masters, &guard, 3);
    assert_eq!(guard.release().wait(), Ok(Released::Freed));
}

/// `/proc/net/tcp` shows the active timer of each socket: 02 is keep-alive, in hundredths of
/// seconds.
pub(crate) fn the_system_probes_connections_that_are_quiet(transport: &Transport) {
    let Ok(_) = fs::read_to_string("/proc/net/tcp") else {
        eprintln!("left out: there is no /proc/net/tcp here");
        return;
    };
    let masters = masters(3);
    let locker = open(transport, &masters);
    all_ready(&locker);
    for master in &*masters {
        eventually(SOON, "a timer for keep-alive", || {
            let timers = timers_towards(master.address());
            assert!(!timers.is_empty(), "there is a connection");
            // The options of a connector's sockets are not changed.
            let is_probed = |(kind, hundredths): &(u8, u64)| *kind == 2 && *hundredths <= 6_000;
            timers.iter().all(|timer| is_probed(timer) == Transport::opens_sockets())
        });
    }
}

/// The timers of this machine's connections to an address, by kind, and when they run out.
fn timers_towards(address: SocketAddr) -> Vec<(u8, u64)> {
    let remote = format!("0100007F:{:04X}", address.port());
    let table = fs::read_to_string("/proc/net/tcp").unwrap();
    let rows = table.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>());
    // Only established connections: the harness's own ones are closed, but still listed.
    let rows = rows.filter(|row| row[2] == remote && row[3] == "01");
    let timers = rows.map(|row| {
        let (kind, when) = row[5].split_once(':').unwrap();
        (u8::from_str_radix(kind, 16).unwrap(), u64::from_str_radix(when, 16).unwrap())
    });
    timers.collect()
}

/// The uptime that a server reports, in seconds.
fn uptime(master: &RedisServer) -> u64 {
    let info = master.command(&["INFO", "server"]);
    let line = info.text().unwrap().lines().find_map(|line| line.strip_prefix("uptime_in_seconds:"));
    line.unwrap().trim().parse().unwrap()
}

pub(crate) fn another_server_behind_an_address_is_distinguished_from_a_restart(transport: &Transport) {
    const SHORT: Duration = Duration::from_secs(5);
    let (one, other) = (master(), master());
    let proxy = FaultProxy::start(one.address());
    let locker = transport.open(hasty([proxy.url()]).ttl(SHORT).build().unwrap());
    let state = || locker.masters().remove(0).1;
    let is_ready = |warnings: &[Warning]| state() == MasterState::Ready { warnings: warnings.to_vec() };
    let cut = || {
        locker.lock("job").wait().unwrap().release().wait().unwrap();
        proxy.cut(Cut::Fin);
    };

    // The same server comes back twice: after a restart, and after a cut connection.
    one.restart();
    eventually(SOON, "the restarted server votes", || is_ready(&[]));
    cut();
    eventually(SOON, "the same server votes", || is_ready(&[]));

    // The other server has been up for some time when the first one answers.
    eventually(SOON, "some uptime", || uptime(&other) >= 5);
    locker.lock("job").wait().unwrap().release().wait().unwrap();
    proxy.set_upstream(other.address());
    proxy.cut(Cut::Fin);
    eventually(SOON, "the other server is told of", || is_ready(&[Warning::OtherServer]));
    let error = locker.try_lock("job").wait().unwrap_err();
    assert!(matches!(error, AcquireError::Quarantined(_)), "{error}");
    assert!(error.to_string().contains("quarantined for "), "{error}");
    assert!(!other.exists("job"));
    eventually(SOON, "it votes when every lock has ended", || locker.try_lock("job").wait().is_ok());
}

/// Set in the process that sees its own file as `/etc/hosts`.
const HOSTS: &str = "QUORLOCK_TEST_HOSTS";

/// The name of a server whose address changes.
const MOVING: &str = "moving.quorlock.test";

/// This test needs its own file as `/etc/hosts`, so it runs again in a process with its own mounts.
pub(crate) fn a_name_that_leads_to_another_address_is_followed(transport: &Transport) {
    if let Some(hosts) = std::env::var_os(HOSTS) {
        let lead_to = |address: &str| fs::write(&hosts, format!("{address} {MOVING}\n")).unwrap();
        return follow_a_name(transport, lead_to);
    }
    let hosts = tempfile::NamedTempFile::new().unwrap();
    let own = |command: &str| {
        let mut unshare = Command::new("unshare");
        unshare.args(["--map-root-user", "--mount", "sh", "-c"]);
        unshare.arg(format!("mount --bind \"${HOSTS}\" /etc/hosts && {command}")).env(HOSTS, hosts.path());
        unshare
    };
    if !own("true").output().is_ok_and(|output| output.status.success()) {
        eprintln!("LEFT OUT: this system does not let a process have its own mounts (unshare)");
        return;
    }
    let name = "left_to_real_servers::a_name_that_leads_to_another_address_is_followed";
    let test = std::env::current_exe().unwrap();
    let output = own(&format!("exec \"$0\" --exact {}::{name} --nocapture", transport.name()))
        .arg(test)
        .output()
        .unwrap();
    let [out, err] = [&output.stdout, &output.stderr].map(|said| String::from_utf8_lossy(said));
    assert!(output.status.success() && out.contains("1 passed"), "{out}{err}");
    eprintln!("{}", err.lines().find(|line| line.contains("votes again after")).unwrap());
}

fn follow_a_name(transport: &Transport, lead_to: impl Fn(&str)) {
    const ADDRESSES: [&str; 2] = ["127.0.0.2", "127.0.0.3"];
    let server = ServerOptions::new().config("bind 127.0.0.1 127.0.0.2").start();
    let others = masters(2);
    lead_to(ADDRESSES[0]);
    let mut urls = others.urls();
    urls.push(url_of(format_args!("{MOVING}:{}", server.port())));
    let locker = transport.open(hasty(urls).build().unwrap());
    all_ready(&locker);
    let guard = locker.lock("job").wait().unwrap();
    held_on(std::slice::from_ref(&server), &guard, 1);

    // The old address is gone for so much time that the pauses have grown to the longest.
    assert!(server.command(&["CONFIG", "SET", "bind", "127.0.0.1 127.0.0.3"]).is_ok());
    server.command(&["CLIENT", "KILL", "TYPE", "normal"]);
    eventually(SOON, "the master is down", || ready(&locker) == 2);
    sleep(3 * SECOND);
    assert_eq!(ready(&locker), 2);
    lead_to(ADDRESSES[1]);
    let since = std::time::Instant::now();
    all_ready(&locker);
    eprintln!("votes again after {:?}", since.elapsed());
    held_on(std::slice::from_ref(&server), &guard, 1);
    assert_eq!(guard.release().wait(), Ok(Released::Freed));
    no_key(std::slice::from_ref(&server), "job");
}
