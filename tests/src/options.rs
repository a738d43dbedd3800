//! How a server is configured: everything that a test may wish for, written into its configuration file.

use std::path::Path;

use crate::server::RedisServer;

/// The account with which the harness looks at a server, whatever the test has done to the others.
pub(crate) const HARNESS_USER: &str = "harness";
pub(crate) const HARNESS_PASSWORD: &str = "harness-password";

/// What a server is started with. By default it persists nothing, needs no password and listens on 127.0.0.1
/// only.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct ServerOptions {
    pub(crate) args: Vec<String>,
    pub(crate) password: Option<String>,
    pub(crate) unix_socket: bool,
    lines: Vec<String>,
}

impl ServerOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a command-line argument, which wins over the configuration file.
    pub fn arg(mut self, arg: &str) -> Self {
        self.args.push(arg.to_owned());
        self
    }

    /// Appends a line to the configuration file; the last line of a directive wins.
    pub fn config(mut self, line: &str) -> Self {
        self.lines.push(line.to_owned());
        self
    }

    /// Asks the default user for this password; [`RedisServer::url`] carries it.
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

    /// Writes every change to a file, from which a restarted server reads its data.
    pub fn append_only(self) -> Self {
        self.config("appendonly yes")
    }

    /// Bounds the memory (`1`, `5mb`); without an eviction policy of its own the server answers OOM to writes
    /// beyond it.
    pub fn max_memory(self, amount: &str) -> Self {
        self.config(&format!("maxmemory {amount}"))
    }

    /// Makes it a replica of `primary`.
    pub fn replica_of(self, primary: &RedisServer) -> Self {
        self.config(&format!("replicaof 127.0.0.1 {}", primary.port()))
            .config(&format!("masteruser {HARNESS_USER}"))
            .config(&format!("masterauth {HARNESS_PASSWORD}"))
    }

    /// Starts the server and waits until it answers.
    ///
    /// # Panics
    /// With the server's log when it does not start.
    #[track_caller]
    pub fn start(&self) -> RedisServer {
        RedisServer::with(self)
    }

    pub(crate) fn file(&self, port: u16, socket: &Path) -> String {
        let mut file = format!(
            "port {port}\n\
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
        if self.unix_socket {
            file += &format!("unixsocket {}\n", quoted(&socket.display().to_string()));
        }
        for line in &self.lines {
            file += line;
            file.push('\n');
        }
        file
    }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
