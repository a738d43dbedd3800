//! Quorlock beside clients of other languages on the same three masters: a holder of a resource
//! excludes the others, in both directions, and no client deletes what another holds.
//!
//! `cargo xtask foreign`, with a redis-server, node with npm, and python3. The clients are
//! installed into a temporary directory. With `--features peers` other crates are
//! looked at, too.
#![allow(clippy::print_stdout)]

use std::io;
use std::process::{Command, ExitCode};
use std::thread;
use std::time::{Duration, Instant};

use quorlock_blocking::{AcquireError, Config, Guard, Locker, ReleaseError, Target};
use quorlock_tests::results::Results;
use quorlock_tests::{Fleet, Servers, masters};

use crate::client::{Client, Foreign};

mod client;
#[cfg(feature = "peers")]
mod crates;
mod install;

const TTL: Duration = Duration::from_secs(20);

fn main() -> ExitCode {
    match run() {
        Ok(0) => ExitCode::SUCCESS,
        Ok(failures) => {
            println!("{failures} failed");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// How many checks failed.
fn run() -> Result<usize, String> {
    if Servers::chosen() == Servers::Embedded {
        return Err("there is no redis-server on PATH; install it (apt-get install redis-server)".into());
    }
    let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
    let (node, python) = (directory.path().join("node"), directory.path().join("python"));
    std::fs::create_dir(&node).map_err(|error| error.to_string())?;
    install::node(&node)?;
    install::python(&python)?;

    let fleet = masters(3);
    let config = Config::new(fleet.urls()).map_err(|error| error.to_string())?;
    let locker = quorlock_blocking::open(config).map_err(|error| error.to_string())?;
    let addresses: Vec<_> = fleet.iter().map(|server| server.address().to_string()).collect();
    let program = |interpreter: &std::path::Path, script: &std::path::Path, name: &str| {
        let mut command = Command::new(interpreter);
        command.arg(script).arg(name).args(&addresses);
        command
    };
    let (javascript, interpreter) = (node.join("redlock.js"), python.join("bin/python"));
    let script = python.join("redlock_clients.py");
    let mut all = Vec::new();
    for (mut command, resource) in [
        (program("node".as_ref(), &javascript, "redlock"), "invoice:1"),
        (program("node".as_ref(), &javascript, "redlock5"), "invoice:2"),
        (program(&interpreter, &script, "redlock-py"), "invoice:3"),
        // pottery puts a prefix before the names of locks.
        (program(&interpreter, &script, "pottery"), "redlock:invoice:4"),
    ] {
        let client = Box::new(Client::start(&mut command)?);
        all.push(look(client, resource, &fleet, &locker)?);
    }
    #[cfg(feature = "peers")]
    for client in crates::all(&fleet.urls())? {
        all.push(look(client, "invoice:5", &fleet, &locker)?);
    }
    keep(&all).map_err(|error| error.to_string())?;
    Ok(all.iter().map(|seen| seen.failures).sum())
}

/// The checks beside one client.
struct Seen {
    client: String,
    checks: usize,
    failures: usize,
}

fn keep(all: &[Seen]) -> io::Result<()> {
    let mut results = Results::new();
    results.servers();
    results.figure("checks that failed", all.iter().map(|seen| seen.failures).sum::<usize>(), "none");
    results.figure("checks", all.iter().map(|seen| seen.checks).sum::<usize>(), "");
    results.row("clients", ["client", "checks", "failed"]);
    for Seen { client, checks, failures } in all {
        results.row("clients", [client.as_str(), &checks.to_string(), &failures.to_string()]);
    }
    results.write()
}

fn look(client: Box<dyn Foreign>, resource: &str, fleet: &Fleet, locker: &Locker) -> Result<Seen, String> {
    println!("{}", client.name());
    let name = client.name().to_owned();
    let mut checks = Checks { client, fleet, locker, resource, made: 0, failures: 0 };
    checks.ours_excludes_theirs()?;
    checks.theirs_excludes_ours()?;
    checks.a_waiter_gets_the_lock_soon()?;
    checks.no_client_deletes_the_lock_of_another()?;
    checks.each_kind_and_theirs_exclude_each_other()?;
    Ok(Seen { client: name, checks: checks.made, failures: checks.failures })
}

struct Checks<'a> {
    client: Box<dyn Foreign>,
    fleet: &'a Fleet,
    locker: &'a Locker,
    resource: &'a str,
    made: usize,
    failures: usize,
}

impl Checks<'_> {
    fn check(&mut self, what: &str, is_so: bool) {
        println!("  {}  {what}", if is_so { "ok    " } else { "FAILED" });
        self.made += 1;
        self.failures += usize::from(!is_so);
    }

    fn ours(&self, fenced: bool) -> Result<Guard, String> {
        let wanted = self.locker.lock(self.resource).ttl(TTL).timeout(Duration::from_secs(5));
        let wanted = if fenced { wanted.fenced() } else { wanted };
        wanted.wait().map_err(|error| error.to_string())
    }

    fn theirs(&mut self) -> Result<Result<String, String>, String> {
        self.client.lock(self.resource, TTL)
    }

    fn keys_are(&self, value: &str) -> bool {
        self.comes_and_stays(|| self.fleet.get(self.resource).iter().all(|key| key.as_deref() == Some(value)))
    }

    fn nothing_is_left(&self) -> bool {
        self.comes_and_stays(|| self.fleet.holding(self.resource) == 0)
    }

    /// Whether a condition comes true soon and stays true. Clients do not wait for the last master,
    /// which may act a moment later.
    fn comes_and_stays(&self, is_so: impl Fn() -> bool) -> bool {
        let start = Instant::now();
        while !is_so() && start.elapsed() < Duration::from_secs(1) {
            thread::sleep(Duration::from_millis(5));
        }
        thread::sleep(Duration::from_millis(50));
        is_so()
    }

    fn ours_excludes_theirs(&mut self) -> Result<(), String> {
        for (kind, fenced) in [("a lock", false), ("a fenced lock", true)] {
            let guard = self.ours(fenced)?;
            let refused = self.theirs()?;
            self.check(&format!("while we hold {kind}, they do not get it"), refused.is_err());
            let token = guard.token().expose();
            let is_untouched = guard.is_valid() && self.keys_are(&token);
            self.check("and their attempt leaves our keys as they are", is_untouched);
            let released = guard.release().wait();
            let theirs = self.theirs()?;
            self.check("after our release they get it", released.is_ok() && theirs.is_ok());
            let released = self.client.unlock()?;
            self.check("and release it", released && self.nothing_is_left());
        }
        Ok(())
    }

    fn theirs_excludes_ours(&mut self) -> Result<(), String> {
        let value = self.theirs()?.map_err(|why| format!("they are refused a free lock: {why}"))?;
        let shown = if value.contains(char::REPLACEMENT_CHARACTER) { "random bytes" } else { &value };
        let what = format!("while they hold it, its key is {} = {shown}", self.resource);
        self.check(&what, self.keys_are(&value));
        let refused = self.locker.try_lock(self.resource).wait();
        self.check(
            "our try_lock says HeldByAnother",
            matches!(&refused, Err(AcquireError::HeldByAnother(_))),
        );
        if let Err(error) = refused {
            println!("          {error}");
        }
        self.check("and leaves their keys as they are", self.keys_are(&value));
        let released = self.client.unlock()?;
        let ours = self.ours(false)?;
        self.check("after their release we get it", released);
        ours.release().wait().map(drop).map_err(|error| error.to_string())
    }

    /// Waiters of the other clients poll; ours are notified by the masters.
    fn a_waiter_gets_the_lock_soon(&mut self) -> Result<(), String> {
        self.theirs()?.map_err(|why| format!("they are refused a free lock: {why}"))?;
        let (locker, resource) = (self.locker.clone(), self.resource.to_owned());
        let waiting = thread::spawn(move || {
            let guard = locker.lock(resource).timeout(Duration::from_secs(10)).wait();
            (guard.map(drop), Instant::now())
        });
        thread::sleep(Duration::from_millis(300));
        self.client.unlock()?;
        let unlocked = Instant::now();
        let (granted, at) = waiting.join().map_err(|_| "the waiting thread has panicked")?;
        let took = at.saturating_duration_since(unlocked);
        let is_soon = granted.is_ok() && took < Duration::from_millis(100);
        self.check("our waiter has it within 100 ms of their release", is_soon);
        Ok(())
    }

    fn no_client_deletes_the_lock_of_another(&mut self) -> Result<(), String> {
        self.theirs()?.map_err(|why| format!("they are refused a free lock: {why}"))?;
        self.delete();
        let ours = self.ours(false)?;
        let said = if self.client.unlock()? { "released" } else { "not released" };
        let token = ours.token().expose();
        let what = format!("their release of a lock that is ours by now deletes nothing (they say: {said})");
        self.check(&what, self.keys_are(&token));
        self.delete();
        let theirs = self.theirs()?.map_err(|why| format!("they are refused a free lock: {why}"))?;
        let released = ours.release().wait();
        let is_told = matches!(released, Err(ReleaseError::NotOurs(_)));
        self.check("our release of a lock that is theirs by now says NotOurs", is_told);
        self.check("and deletes nothing", self.keys_are(&theirs));
        self.client.unlock()?;
        self.check("and nothing is left", self.nothing_is_left());
        Ok(())
    }

    /// Checks readers, a writer that was downgraded, and a lock of several resources.
    fn each_kind_and_theirs_exclude_each_other(&mut self) -> Result<(), String> {
        let (one, other) = (self.resource, "beside");
        let kinds: [(&str, Vec<Target>); 3] = [
            ("a reader's lock", vec![Target::read(one)]),
            ("a set of resources", vec![Target::write(one), Target::write(other)]),
            ("a mixed set of resources", vec![Target::read(one), Target::write(other)]),
        ];
        for (kind, targets) in kinds {
            let wanted = || self.locker.lock_all(targets.iter().cloned()).ttl(TTL);
            let guard = wanted().wait().map_err(|error| error.to_string())?;
            let refused = self.theirs_beside(kind)?;
            let is_untouched = guard.is_valid() && guard.extend(TTL).wait().is_ok();
            self.check("and their attempt leaves it as it is", refused && is_untouched);
            let released = guard.release().wait().is_ok() && self.nothing_is_left();
            let value = self.theirs()?.map_err(|why| format!("they are refused a free lock: {why}"))?;
            self.check("after our release they get it", released && self.keys_are(&value));
            let wanted = self.locker.lock_all(targets.iter().cloned()).attempts(1).wait();
            let is_told = matches!(&wanted, Err(AcquireError::HeldByAnother(_)));
            self.check(
                &format!("while they hold it, we do not get {kind}"),
                is_told && self.keys_are(&value),
            );
            self.client.unlock()?;
        }
        let writer = self.ours(false)?;
        let reader = writer.downgrade().map_err(|_| "a writer with no other handle becomes a reader")?;
        self.theirs_beside("a lock that became a reader's")?;
        reader.release().wait().map_err(|error| error.to_string())?;
        self.check("and nothing is left", self.nothing_is_left());
        Ok(())
    }

    /// Whether the other client is refused while we hold a lock of this kind. It must not get
    /// WRONGTYPE, because the key is a string.
    fn theirs_beside(&mut self, kind: &str) -> Result<bool, String> {
        let refused = self.theirs()?;
        self.check(&format!("while we hold {kind}, they do not get it"), refused.is_err());
        let is_wrong = refused.as_ref().is_err_and(|why| why.contains("WRONGTYPE"));
        let kinds = self.fleet.iter().map(|server| server.command(&["TYPE", self.resource]));
        let kinds: Vec<_> = kinds.map(|kind| kind.text().map(str::to_owned)).collect();
        let strings = kinds.iter().filter(|kind| kind.as_deref() == Some("string")).count();
        let others = kinds.iter().filter(|kind| kind.as_deref() == Some("none")).count();
        // A quorum is enough: they may still have been releasing their last lock on one master.
        let is_lock = !is_wrong && strings + others == kinds.len() && strings > others;
        self.check("and no WRONGTYPE is in it", is_lock);
        Ok(refused.is_err())
    }

    /// Deletes the key, as if the TTL had run out.
    fn delete(&self) {
        for server in self.fleet.iter() {
            server.del(self.resource);
        }
    }
}
