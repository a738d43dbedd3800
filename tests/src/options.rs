//! The configuration of a server, written into its configuration file.

use std::path::{Path, PathBuf};

use crate::server::RedisServer;
use crate::spawn::Servers;
use crate::tls::{self, Certificates};

/// The account with which the harness inspects a server, independent of the test's changes to other
/// accounts.
pub(crate) const HARNESS_USER: &str = "harness";
pub(crate) const HARNESS_PASSWORD: &str = "harness-password";

/// The options of a server. By default it persists nothing, needs no password and listens on
/// 127.0.0.1 only.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct ServerOptions {
    pub(crate) program: Option<PathBuf>,
    pub(crate) args: Vec<String>,
    pub(crate) password: Option<String>,
    pub(crate) unix_socket: bool,
    pub(crate) append_only: bool,
    pub(crate) max_memory: Option<String>,
    pub(crate) ipv6: bool,
    pub(crate) without_hello: bool,
    pub(crate) is_node: bool,
    pub(crate) is_only_node: bool,
    tls: Option<String>,
    primary: Option<u16>,
    lines: Vec<String>,
}

impl ServerOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Starts this server instead of the one that all tests run on.
    pub fn program(mut self, server: impl Into<PathBuf>) -> Self {
        self.program = Some(server.into());
        self
    }

    /// Appends a command-line argument, which overrides the configuration file.
    pub fn arg(mut self, arg: &str) -> Self {
        self.args.push(arg.to_owned());
        self
    }

    /// Appends a line to the configuration file; the last line of a directive wins.
    pub fn config(mut self, line: &str) -> Self {
        self.lines.push(line.to_owned());
        self
    }

    /// Requires this password of the default user. [`RedisServer::url`] contains it.
    pub fn password(mut self, password: &str) -> Self {
        self.password = Some(password.to_owned());
        self
    }

    /// Adds an ACL user, in the words of `ACL SETUSER`: `app on >secret ~lock:* +set`.
    pub fn acl_user(self, rules: &str) -> Self {
        self.config(&format!("user {rules}"))
    }

    /// Listens on a Unix socket too, see [`RedisServer::unix_url`].
    pub fn unix_socket(mut self) -> Self {
        self.unix_socket = true;
        self
    }

    /// Writes every change to a file before it is answered; a restarted server reads its data from
    /// that file.
    pub fn append_only(mut self) -> Self {
        self.append_only = true;
        self
    }

    /// Limits the memory (`1`, `5mb`). Unless an eviction policy is configured, the server answers
    /// OOM to writes beyond the limit.
    pub fn max_memory(mut self, amount: &str) -> Self {
        self.max_memory = Some(amount.to_owned());
        self
    }

    /// Listens on `[::1]` too; an embedded master listens only there.
    pub fn ipv6(mut self) -> Self {
        self.ipv6 = true;
        self
    }

    /// Removes HELLO, as in servers before Redis 6.
    pub fn without_hello(mut self) -> Self {
        self.without_hello = true;
        self
    }

    /// Makes it a node of a cluster, which does not know of any other one yet.
    pub fn cluster_node(mut self) -> Self {
        self.is_node = true;
        self
    }

    /// Makes it a node of a cluster that has no others, and owns the slot of one tag.
    pub(crate) fn only_node(mut self) -> Self {
        self.is_only_node = true;
        self.cluster_node()
    }

    /// Speaks TLS, and nothing else, with these certificates. `demands` is the value of
    /// `tls-auth-clients`.
    pub fn tls(mut self, certificates: &Certificates, demands: &str) -> Self {
        self.tls = Some(tls_lines(certificates, demands));
        self
    }

    /// Makes it a replica of `primary`; an embedded master only reports that it is one.
    pub fn replica_of(mut self, primary: &RedisServer) -> Self {
        self.primary = Some(primary.port());
        self
    }

    /// Starts a real server and waits until it answers.
    ///
    /// # Panics
    /// With the server's log when it does not start, with instructions when none is installed.
    #[track_caller]
    pub fn start(&self) -> RedisServer {
        RedisServer::process(self)
    }

    /// Starts an embedded master.
    ///
    /// # Panics
    /// When an option needs a real server.
    #[track_caller]
    pub fn start_embedded(&self) -> RedisServer {
        assert!(!self.needs_process(), "these options need a real server: {self:?}");
        RedisServer::embedded(self)
    }

    /// Starts the kind of server that tests use unless they ask for real ones: see
    /// [`Servers`](crate::Servers).
    ///
    /// # Panics
    /// As [`ServerOptions::start`] does.
    #[track_caller]
    pub fn start_any(&self) -> RedisServer {
        if self.needs_process() || Servers::chosen() == Servers::Real {
            self.start()
        } else {
            self.start_embedded()
        }
    }

    /// Whether these options need a real server.
    fn needs_process(&self) -> bool {
        let is_told = !self.lines.is_empty() || !self.args.is_empty();
        is_told || self.unix_socket || self.is_node || self.tls.is_some() || self.program.is_some()
    }

    /// Whether its port speaks TLS.
    pub(crate) fn is_tls(&self) -> bool {
        self.tls.is_some() || tls::is_chosen()
    }

    fn tls_lines(&self) -> Option<String> {
        self.tls.clone().or_else(|| tls::is_chosen().then(|| tls_lines(Certificates::shared(), "no")))
    }

    pub(crate) fn is_replica(&self) -> bool {
        self.primary.is_some()
    }

    pub(crate) fn file(&self, port: u16, socket: &Path) -> String {
        let listens = match self.tls_lines() {
            Some(lines) => format!("port 0\ntls-port {port}\n{lines}"),
            None => format!("port {port}\n"),
        };
        let mut file = format!(
            "{listens}\
             bind 127.0.0.1\n\
             save \"\"\n\
             appendonly no\n\
             # A replica is attached at once instead of after 5 s.\n\
             repl-diskless-sync-delay 0\n\
             user {HARNESS_USER} on >{HARNESS_PASSWORD} ~* &* +@all\n"
        );
        if let Some(password) = &self.password {
            file += &format!("requirepass {}\n", quoted(password));
        }
        // If the port speaks TLS, the harness connects through the socket.
        if self.unix_socket || self.is_tls() {
            file += &format!("unixsocket {}\n", quoted(&socket.display().to_string()));
        }
        if self.append_only {
            file += "appendonly yes\nappendfsync always\n";
        }
        if let Some(amount) = &self.max_memory {
            file += &format!("maxmemory {amount}\n");
        }
        if self.ipv6 {
            file += "bind 127.0.0.1 ::1\n";
        }
        if self.is_node {
            file += "cluster-enabled yes\n";
            file += if self.is_tls() { "tls-cluster yes\n" } else { "" };
        }
        if self.without_hello {
            file += "rename-command HELLO \"\"\n";
        }
        if let Some(port) = self.primary {
            file += &format!(
                "replicaof 127.0.0.1 {port}\nmasteruser {HARNESS_USER}\nmasterauth {HARNESS_PASSWORD}\n"
            );
        }
        for line in &self.lines {
            file += line;
            file.push('\n');
        }
        file
    }
}

fn tls_lines(certificates: &Certificates, demands: &str) -> String {
    let files = [certificates.root(), certificates.certificate(), certificates.key()];
    let [root, certificate, key] = files.map(|file| quoted(&file.display().to_string()));
    format!(
        "tls-ca-cert-file {root}\ntls-cert-file {certificate}\ntls-key-file {key}\n\
         tls-auth-clients {demands}\ntls-replication yes\n"
    )
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

pub(crate) fn percent_encoded(text: &str) -> String {
    let unreserved = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes()
        .map(|byte| if unreserved(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}
