//! One master: a real server's process, or an embedded master, behind one handle.

mod calls;

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use crate::client::{RawClient, Value};
use crate::clusters;
use crate::embedded::Embedded;
use crate::options::{HARNESS_PASSWORD, HARNESS_USER, ServerOptions, percent_encoded};
use crate::ports::PortLease;
use crate::process::Process;
use crate::tls::url_of;

const START_TRIES: usize = 5;
const PATIENCE: Duration = Duration::from_secs(5);

/// One master. Dropping it ends it.
///
/// Methods that inspect it (`get`, `command`, …) open a connection for each call, under a separate
/// account that [`RedisServer::connected_clients`] does not count, and panic if there is no answer
/// within 5 s. An embedded master is inspected directly.
#[derive(Debug)]
pub struct RedisServer {
    options: ServerOptions,
    lease: PortLease,
    backend: Backend,
}

#[derive(Debug)]
enum Backend {
    Process(Process),
    Embedded(Embedded),
}

pub use calls::Calls;

use Backend::{Embedded as Inside, Process as Outside};

impl RedisServer {
    /// Starts a real server with the default options and waits until it answers.
    ///
    /// # Panics
    /// With the server's log when it does not start, with instructions when none is installed.
    #[track_caller]
    pub fn start() -> Self {
        ServerOptions::new().start()
    }

    /// A real server.
    #[track_caller]
    pub(crate) fn process(options: &ServerOptions) -> Self {
        let options = &clusters::configured(options);
        let server = Self::tried(options, |lease| {
            let process = Process::new();
            process.launch(options, lease)?;
            Ok(Outside(process))
        });
        if options.is_only_node {
            clusters::serve(&server);
        }
        server
    }

    /// An embedded master.
    #[track_caller]
    pub(crate) fn embedded(options: &ServerOptions) -> Self {
        Self::tried(options, |lease| {
            Embedded::start(options, lease).map(Inside).map_err(|error| error.to_string())
        })
    }

    /// Tries several ports: a port that was free may be taken when the server binds it, by a
    /// process that does not use leases.
    #[track_caller]
    fn tried(options: &ServerOptions, start: impl Fn(&PortLease) -> Result<Backend, String>) -> Self {
        let mut failure = String::new();
        for _ in 0..START_TRIES {
            let lease = if options.is_node { PortLease::take_with_bus() } else { PortLease::take() };
            match start(&lease) {
                Ok(backend) => return Self { options: options.clone(), lease, backend },
                Err(error) => failure = error,
            }
        }
        panic!("no server started in {START_TRIES} tries: {failure}");
    }

    /// The port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.lease.number()
    }

    /// The address for connections.
    pub fn address(&self) -> SocketAddr {
        self.lease.address()
    }

    /// `redis://127.0.0.1:port`, with the password if there is one; `rediss://` where servers speak
    /// TLS.
    pub fn url(&self) -> String {
        url_of(self.place())
    }

    /// The same with a database.
    pub fn url_of_database(&self, database: u16) -> String {
        url_of(format_args!("{}/{database}", self.place()))
    }

    fn place(&self) -> String {
        let login =
            self.options.password.as_deref().map(|password| format!(":{}@", percent_encoded(password)));
        format!("{}{}", login.unwrap_or_default(), self.address())
    }

    /// `unix:///…`. Such a URL has no place for the password.
    ///
    /// # Panics
    /// When the server was started without [`ServerOptions::unix_socket`].
    #[track_caller]
    pub fn unix_url(&self) -> String {
        assert!(self.options.unix_socket, "this server was started without a unix socket");
        format!("unix://{}", self.outside().socket().display())
    }

    /// The process id, while there is a process.
    pub fn pid(&self) -> Option<u32> {
        match &self.backend {
            Outside(process) => process.pid(),
            Inside(_) => None,
        }
    }

    /// Whether it exists, stopped or not.
    pub fn is_running(&self) -> bool {
        match &self.backend {
            Outside(process) => process.is_running(),
            Inside(master) => master.is_running(),
        }
    }

    /// Sends SIGSTOP, and waits until it is stopped. The system still accepts connections and bytes
    /// for it.
    #[track_caller]
    pub fn stop(&self) {
        match &self.backend {
            Outside(process) => process.stop(),
            Inside(master) => master.pause(),
        }
    }

    /// SIGCONT: the server executes what has arrived in the meantime.
    #[track_caller]
    pub fn cont(&self) {
        match &self.backend {
            Outside(process) => process.cont(),
            Inside(master) => master.resume(),
        }
    }

    /// SIGKILL, and waits for the end. Nothing happens when the server is not running.
    pub fn kill(&self) {
        match &self.backend {
            Outside(process) => process.kill(),
            Inside(master) => master.stop(),
        }
    }

    /// SIGTERM, and waits for an orderly end.
    #[track_caller]
    pub fn shutdown(&self) {
        match &self.backend {
            Outside(process) => process.shutdown(),
            Inside(master) => master.stop(),
        }
    }

    /// Starts the server again on the same port, killing it before if it runs, and waits until it
    /// answers. Without [`ServerOptions::append_only`] it has forgotten everything.
    #[track_caller]
    pub fn restart(&self) {
        self.kill();
        let outcome = match &self.backend {
            Outside(process) => process.launch(&self.options, &self.lease),
            Inside(master) => master.restart().map_err(|error| error.to_string()),
        };
        if let Err(error) = outcome {
            panic!("the server did not come back: {error}");
        }
        if self.options.is_only_node {
            clusters::serve(self);
        }
    }

    /// A connection under the harness's own account, for more than one command.
    ///
    /// # Errors
    /// When the server does not answer.
    pub fn client(&self) -> io::Result<RawClient> {
        self.client_within(PATIENCE)
    }

    /// A client that waits for `limit` at most.
    pub(crate) fn client_within(&self, limit: Duration) -> io::Result<RawClient> {
        let mut client = match &self.backend {
            Outside(process) => process.client(&self.options, &self.lease)?,
            Inside(_) => RawClient::try_connect(self.address())?,
        };
        client.set_timeout(limit)?;
        if self.options.is_only_node {
            client.tag_keys();
        }
        match client.try_command(&["AUTH", HARNESS_USER, HARNESS_PASSWORD])? {
            reply if reply.is_ok() => Ok(client),
            reply => Err(io::Error::other(format!("the harness may not log in: {reply:?}"))),
        }
    }

    /// Executes a command; the reply may be an error of the server.
    #[track_caller]
    pub fn command(&self, args: &[&str]) -> Value {
        let reply = match &self.backend {
            Outside(_) => self.client().and_then(|mut client| client.try_command(args)),
            Inside(master) => master.execute(args),
        };
        reply.unwrap_or_else(|error| panic!("no reply to {args:?} from {}: {error}", self.address()))
    }

    /// The string at this key, if any.
    #[track_caller]
    pub fn get(&self, key: &str) -> Option<String> {
        match self.command(&["GET", key]) {
            Value::Nil => None,
            Value::Bulk(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
            reply => panic!("GET {key}: {reply:?}"),
        }
    }

    /// How many clients share this key, according to its value; 0 if it is not shared.
    #[track_caller]
    pub fn sharers(&self, key: &str) -> usize {
        let value = self.get(key).unwrap_or_default();
        let named = value.get(64..).and_then(|rest| rest.split_once(':'));
        let entries = named.and_then(|(length, rest)| rest.as_bytes().get(length.parse().ok()?..));
        let entries = entries.unwrap_or_default().chunks(57);
        // The end of a free entry is zero.
        entries.filter(|entry| !entry.starts_with(&[b'0'; 16])).count()
    }

    /// The remaining life of this key in milliseconds; -1 if it does not expire, -2 if it does not
    /// exist.
    #[track_caller]
    pub fn pttl(&self, key: &str) -> i64 {
        self.int(&["PTTL", key])
    }

    /// Whether this key exists.
    #[track_caller]
    pub fn exists(&self, key: &str) -> bool {
        self.int(&["EXISTS", key]) == 1
    }

    /// Executes `SET key value NX`, without an expiry. Returns whether the key was free.
    #[track_caller]
    pub fn set_nx(&self, key: &str, value: &str) -> bool {
        match self.command(&["SET", key, value, "NX"]) {
            Value::Nil => false,
            reply if reply.is_ok() => true,
            reply => panic!("SET {key} {value} NX: {reply:?}"),
        }
    }

    /// Deletes this key. Returns whether it existed.
    #[track_caller]
    pub fn del(&self, key: &str) -> bool {
        self.int(&["DEL", key]) == 1
    }

    /// The names that its clients gave themselves, empty for those that gave none; without the
    /// harness's own connections and without replication links.
    #[track_caller]
    pub fn client_names(&self) -> Vec<String> {
        if let Inside(master) = &self.backend {
            return master.client_names();
        }
        let list = self.command(&["CLIENT", "LIST"]);
        let list = list.text().expect("CLIENT LIST answers text");
        let own = format!("user={HARNESS_USER}");
        let is_replication =
            |field: &str| field.strip_prefix("flags=").is_some_and(|flags| flags.contains(['S', 'M']));
        list.lines()
            .filter(|line| !line.split(' ').any(|field| field == own || is_replication(field)))
            .map(|line| line.split(' ').find_map(|field| field.strip_prefix("name=")).unwrap_or_default())
            .map(str::to_owned)
            .collect()
    }

    /// How many clients are connected, counted as [`RedisServer::client_names`] does.
    #[track_caller]
    pub fn connected_clients(&self) -> usize {
        self.client_names().len()
    }

    /// Makes it a replica of another server; an embedded master only reports and refuses like a
    /// replica.
    #[track_caller]
    pub fn become_replica_of(&self, primary: &Self) {
        match &self.backend {
            Outside(_) => self.expect_ok(&["REPLICAOF", "127.0.0.1", &primary.port().to_string()]),
            Inside(master) => {
                master.set_replica(true);
                if let Inside(primary) = &primary.backend {
                    primary.set_replicas(1);
                }
            }
        }
    }

    /// How many replicas are attached to it.
    #[track_caller]
    pub fn replicas(&self) -> usize {
        let info = self.command(&["INFO", "replication"]);
        let info = info.text().expect("INFO answers text");
        let replicas = info.lines().find_map(|line| line.strip_prefix("connected_slaves:"));
        replicas.and_then(|replicas| replicas.trim_end().parse().ok()).expect("INFO counts replicas")
    }

    /// Makes a replica a master.
    #[track_caller]
    pub fn become_master(&self) {
        match &self.backend {
            Outside(_) => self.expect_ok(&["REPLICAOF", "NO", "ONE"]),
            Inside(master) => master.set_replica(false),
        }
    }

    /// Makes it refuse writes because it has too few replicas.
    #[track_caller]
    pub fn need_replicas(&self) {
        match &self.backend {
            Outside(_) => self.expect_ok(&["CONFIG", "SET", "min-replicas-to-write", "1"]),
            Inside(master) => master.fail("NOREPLICAS Not enough good replicas to write."),
        }
    }

    /// Keeps it busy with a script that never ends, so that it answers BUSY after a while.
    #[track_caller]
    pub fn be_busy(&self) {
        match &self.backend {
            Outside(_) => {
                // The name that servers before 7.0 also know.
                self.expect_ok(&["CONFIG", "SET", "lua-time-limit", "1"]);
                let mut busy = self.client().expect("the server answers");
                // The script continues without the client that sent it.
                busy.send(b"EVAL \"while true do end\" 0\r\n").expect("the server takes bytes");
            }
            Inside(master) => master.fail(
                "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
            ),
        }
    }

    /// What the server has logged since it was first started; an embedded master logs nothing.
    pub fn log(&self) -> String {
        match &self.backend {
            Outside(process) => process.log(),
            Inside(_) => String::new(),
        }
    }

    #[track_caller]
    fn outside(&self) -> &Process {
        match &self.backend {
            Outside(process) => process,
            Inside(_) => panic!("this needs a real server"),
        }
    }

    #[track_caller]
    fn int(&self, args: &[&str]) -> i64 {
        let reply = self.command(args);
        reply.int().unwrap_or_else(|| panic!("{args:?}: {reply:?}"))
    }

    #[track_caller]
    fn expect_ok(&self, args: &[&str]) {
        let reply = self.command(args);
        assert!(reply.is_ok(), "{args:?}: {reply:?}");
    }
}
