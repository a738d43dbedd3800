//! The doctor's verdicts about a client, beside what the same client's commands then do.

use quorlock_tests::{RedisServer, ServerOptions, eventually};

use crate::running::{Ended, JOB, Running, SOON, exported, quorlock};

/// A server, and a client of it.
struct Scene {
    name: &'static str,
    server: RedisServer,
    replica: Option<RedisServer>,
    /// The master's URL, without and with the address of the server.
    url: fn(&RedisServer) -> String,
    options: &'static [&'static str],
}

const GUARD: &[&str] = &["--restart-guard", "2s"];

impl Scene {
    fn new(name: &'static str, server: RedisServer, url: fn(&RedisServer) -> String) -> Self {
        Self { name, server, replica: None, url, options: &[] }
    }

    fn guarded(self) -> Self {
        Self { options: GUARD, ..self }
    }

    fn with_replica(mut self) -> Self {
        let replica = ServerOptions::new().append_only().replica_of(&self.server).start();
        eventually(SOON, "the replica is attached", || self.server.replicas() == 1);
        self.replica = Some(replica);
        self
    }

    /// One command with this client's options, at one server.
    fn call(&self, server: &RedisServer, words: &[&str]) -> Ended {
        let mut command = quorlock(&[&words[..1], self.options, &words[1..]].concat());
        command.env("QUORLOCK_MASTERS", (self.url)(server));
        Running::of(&mut command).end()
    }

    /// Whether the doctor says that a promise holds; `None` if it does not know.
    fn holds(&self, told: &Ended, promise: &str) -> Option<bool> {
        let (_, report) = told.out.split_once(&format!("\"name\":\"{promise}\",\"holds\":")).unwrap();
        ["true", "false", "null"].into_iter().position(|word| report.starts_with(word)).map_or_else(
            || panic!("{}: {}", self.name, told.out),
            |place| [Some(true), Some(false), None][place],
        )
    }

    /// Takes a lock for a short time. Returns its fencing token, if it is fenced.
    fn acquire(&self, server: &RedisServer, job: &str, kind: &[&str]) -> Option<u64> {
        let taken = self.call(server, &[&["acquire", "-n", "--ttl", "2s"], kind, &[job]].concat());
        let number = exported(&taken.out, "QUORLOCK_FENCE").and_then(|number| number.parse().ok());
        (taken.code == Some(0)).then(|| number.unwrap_or(0))
    }

    /// Waits until the master grants locks again.
    fn await_votes(&self, job: &str, kind: &[&str]) -> Option<u64> {
        let mut taken = None;
        eventually(SOON, "the master votes", || {
            taken = self.acquire(&self.server, job, kind);
            taken.is_some()
        });
        taken
    }
}

/// Sees one scene's verdicts, and what its commands do.
fn compare(scene: &Scene) {
    let name = scene.name;
    if scene.options == GUARD {
        // A master that is new does not vote yet.
        scene.call(&scene.server, &["bootstrap"]);
    }
    let told = scene.call(&scene.server, &["doctor", "--json"]);
    let holds = |promise: &str| scene.holds(&told, promise);
    let all = told.out.matches("\"holds\":").count();
    assert_eq!(
        told.code == Some(0),
        told.out.matches("\"holds\":true").count() == all,
        "{name}: {}",
        told.out
    );

    let first = scene.acquire(&scene.server, "plain", &[]);
    assert_eq!(holds("availability"), Some(first.is_some()), "{name}, a lock: {}", told.out);
    if first.is_none() {
        return;
    }
    if let Some(replica) = &scene.replica {
        // It is promoted, and the old primary keeps running.
        replica.become_master();
        let granted = [&scene.server, replica].map(|server| scene.acquire(server, "both", &[]).is_some());
        let has_two = granted == [true, true];
        assert_eq!(holds("failover"), Some(!has_two), "{name}, two primaries: {}", told.out);
        return;
    }
    let before = scene.acquire(&scene.server, "numbered", &["--fenced"]);
    assert!(scene.acquire(&scene.server, JOB, &[]).is_some(), "{name}");
    scene.server.restart();
    let is_lost = scene.acquire(&scene.server, JOB, &[]).is_some();
    if let Some(verdict) = holds("restarts") {
        assert_eq!(verdict, !is_lost, "{name}, a restart: {}", told.out);
    }
    let rises = before.is_some_and(|before| scene.await_votes("numbered", &["--fenced"]) > Some(before));
    if let Some(verdict) = holds("fencing") {
        assert_eq!(verdict, rises, "{name}, fenced locks: {}", told.out);
    }
}

fn plain(server: &RedisServer) -> String {
    server.url()
}

fn with(server: &RedisServer, parameter: &str) -> String {
    format!("{}?{parameter}", server.url())
}

#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
fn the_doctor_says_what_the_commands_of_the_same_client_then_do() {
    let kept = || ServerOptions::new().append_only();
    let used = Scene::new("a guard of others", ServerOptions::new().start(), plain).guarded();
    used.call(&used.server, &["bootstrap"]);
    let used = Scene { options: &[], ..used };
    let node = kept().cluster_node().start();
    let slots: Vec<_> = (0..16_384).map(|slot: u32| slot.to_string()).collect();
    let words = ["CLUSTER", "ADDSLOTS"].into_iter().chain(slots.iter().map(String::as_str));
    assert!(node.command(&words.collect::<Vec<_>>()).is_ok());
    let denied = kept().acl_user("app on >secret ~* &* +@all -info");
    let all = [
        Scene::new("kept", kept().start(), plain),
        Scene::new("no persistence", ServerOptions::new().start(), plain),
        Scene::new("no persistence, a guard", ServerOptions::new().start(), plain).guarded(),
        used,
        Scene::new("failover=may-lose-locks", kept().start(), |server| {
            with(server, "failover=may-lose-locks")
        }),
        Scene::new("failover=may-lose-locks, a replica", kept().start(), |server| {
            with(server, "failover=may-lose-locks")
        })
        .with_replica(),
        Scene::new("failover=durable", kept().start(), |server| with(server, "failover=durable")),
        Scene::new("replicas=0", kept().start(), |server| with(server, "replicas=0")).guarded(),
        Scene::new("replicas=0, a replica", kept().start(), |server| with(server, "replicas=0"))
            .guarded()
            .with_replica(),
        Scene::new("replicas=1", kept().start(), |server| with(server, "replicas=1"))
            .guarded()
            .with_replica(),
        Scene::new("replicas=2, one of them", kept().start(), |server| with(server, "replicas=2"))
            .guarded()
            .with_replica(),
        Scene::new("a cluster without replicas", node, |server| {
            format!("redis+cluster://{}/?tag=q0&replicas=0", server.address())
        })
        .guarded(),
        Scene::new("INFO is denied", denied.start(), |server| {
            format!("redis://app:secret@{}", server.address())
        }),
        Scene::new("INFO is denied, a guard", denied.start(), |server| {
            format!("redis://app:secret@{}", server.address())
        })
        .guarded(),
    ];
    std::thread::scope(|scope| {
        for scene in &all {
            scope.spawn(|| compare(scene));
        }
    });
}
