//! A master's address and login, as its URL gives them.
//!
//! Rules of this room: it parses text and resolves nothing. It holds passwords, so no `Display` or
//! `Debug` shows credentials, and no error repeats a part of a URL that could contain them.

mod discovery;
mod error;
mod login;
mod parse;
mod tls;

use std::path::{Path, PathBuf};
use std::{fmt, net::IpAddr, str::FromStr};

pub use discovery::{Discovery, Failover};
pub use error::EndpointError;
pub use login::Login;
pub use tls::TlsOptions;

/// One master: its address, its database, and the credentials to use there.
///
/// ```
/// # use quorlock_core::Endpoint;
/// let endpoint: Endpoint = "redis://worker:hunter2@[2001:db8::1]:7000/2".parse()?;
/// assert_eq!(endpoint.to_string(), "[2001:db8::1]:7000/2");
/// # Ok::<(), quorlock_core::EndpointError>(())
/// ```
///
/// It is parsed from these URLs:
///
/// - `redis://[user:password@]host[:port][/db]`, and the same with `valkey://`. The default port is
///   6379; an IPv6 address is written in brackets.
/// - `rediss://…` and `valkeys://…`: the same over TLS, with the parameters of `redis-cli`:
///   `cacert=` is a PEM file of the issuers to trust (by default the system's), `cert=` and `key=`
///   are the client's certificate and private key, and `sni=` is the name that the server's
///   certificate must have. Transports need their feature `tls` for it.
/// - `unix:///path[?db=2&user=name&pass=word]`, and the same with `redis+unix://` and
///   `valkey+unix://`. The credentials may also be written as `unix://user:password@/path`.
///
/// - `redis+sentinel://[user:password@]host[:port][,host[:port]…]/group[/db]`, and over TLS
///   `rediss+sentinel://…`: the primary of a group that Sentinels watch ([`Endpoint::sentinel`]).
///   Their default port is 26379; `sentinel-user=` and `sentinel-pass=` are the login for them.
/// - `redis+cluster://[user:password@]host[:port][,host[:port]…][/db]?tag=q0`, and over TLS
///   `rediss+cluster://…`: the owner of a tag's slot in a Redis Cluster ([`Endpoint::cluster`]).
///
/// All these URLs accept `password-file=/path` in place of a password: the file is read at each
/// login ([`Endpoint::with_password_file`]). All accept `replicas=2` for a master with replicas
/// that may be promoted ([`Endpoint::with_replicas`]). For such a master without that guarantee,
/// all accept `failover=may-lose-locks` or `failover=durable` ([`Failover`]).
///
/// A password without a user is written `redis://:password@host`. User, password and path are
/// percent-decoded.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Endpoint {
    address: Address,
    user: Option<String>,
    secret: Option<Secret>,
    database: u16,
    tls: Option<TlsOptions>,
    replicas: Option<u8>,
    route: Option<Box<discovery::Route>>,
    failover: Option<Failover>,
}

/// The password, or the file that has it.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Secret {
    Password(String),
    File(PathBuf),
}

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// A TCP port of a host.
    Tcp {
        /// A name or an IP address; an IPv6 address without brackets.
        host: String,
        /// The port, never 0.
        port: u16,
    },
    /// A Unix domain socket.
    Unix(PathBuf),
}

impl Endpoint {
    /// The maximum number of replicas that a URL may declare. Every vote waits for all of them, so
    /// a larger number is probably a mistake.
    pub const MAX_REPLICAS: u8 = 16;

    /// Creates an endpoint for the server at a TCP port. `host` is a name or an IP address;
    /// brackets around an IPv6 address are optional.
    ///
    /// # Errors
    ///
    /// [`EndpointError::EmptyHost`], [`EndpointError::BadHost`], [`EndpointError::Zone`], or
    /// [`EndpointError::BadPort`] for port 0.
    pub fn tcp(host: &str, port: u16) -> Result<Self, EndpointError> {
        Address::tcp(host, port).map(Self::at)
    }

    /// Creates an endpoint for the server at a Unix domain socket.
    ///
    /// # Errors
    ///
    /// [`EndpointError::MissingPath`] if the path is empty.
    pub fn unix(path: impl Into<PathBuf>) -> Result<Self, EndpointError> {
        let path = path.into();
        if path.as_os_str().is_empty() {
            return Err(EndpointError::MissingPath);
        }
        Ok(Self::at(Address::Unix(path)))
    }

    /// Returns this endpoint with a user to log in as, for servers with access control lists.
    #[must_use]
    pub fn with_user(self, user: impl Into<String>) -> Self {
        Self { user: Some(user.into()), ..self }
    }

    /// Returns this endpoint with a password, which replaces a password file.
    #[must_use]
    pub fn with_password(self, password: impl Into<String>) -> Self {
        Self { secret: Some(Secret::Password(password.into())), ..self }
    }

    /// Returns this endpoint with a file that holds the password. It replaces a password.
    ///
    /// The file is read whenever a connection to the master is opened, so that a rotated password
    /// is used without a restart. A final line end does not belong to the password. The driver,
    /// which serves all masters, waits for the read: keep the file on a local file system, as
    /// Kubernetes does with secrets. It must be a regular file of at most 16 KiB of UTF-8 text.
    /// Otherwise the master has no vote ([`Cause::NoLogin`](crate::Cause::NoLogin)), and the next
    /// attempt follows as after any failure.
    #[must_use]
    pub fn with_password_file(self, path: impl Into<PathBuf>) -> Self {
        Self { secret: Some(Secret::File(path.into())), ..self }
    }

    /// Returns this endpoint with a database to select; the default is 0.
    #[must_use]
    pub fn with_database(self, database: u16) -> Self {
        Self { database, ..self }
    }

    /// Returns this endpoint with TLS.
    #[must_use]
    pub fn with_tls(self, options: TlsOptions) -> Self {
        Self { tls: Some(options), ..self }
    }

    /// Returns this endpoint for a primary with this number of replicas: each of its votes counts
    /// only once all of them have confirmed it (`WAIT`), so that a promoted replica knows every
    /// lock. See [`guide::failover`](crate::guide::failover) for the guarantees and the price.
    ///
    /// `replicas` is the number of *all* other servers that may ever be promoted, and each must be
    /// a direct replica. With fewer, two clients may hold one lock after a failover. All clients
    /// must give the same number, and use the restart guard
    /// ([`ConfigBuilder::restart_guard`](crate::ConfigBuilder::restart_guard)). 0 says that no
    /// server may be promoted: the master has no vote while a replica is attached. `None` says
    /// nothing, as without this call: then replicas are not counted.
    ///
    /// The price: while one replica is away, the master has no vote
    /// ([`Cause::Alone`](crate::Cause::Alone)). Then no lock is granted or extended there. If the
    /// group is the only master, a replica that is away for longer than the remaining validity ends
    /// its locks. Such a group is less available than one server without replicas.
    ///
    /// # Errors
    ///
    /// [`EndpointError::BadReplicas`] for more than [`Self::MAX_REPLICAS`].
    pub fn with_replicas(self, replicas: impl Into<Option<u8>>) -> Result<Self, EndpointError> {
        match replicas.into() {
            Some(replicas) if replicas > Self::MAX_REPLICAS => Err(EndpointError::BadReplicas),
            replicas => Ok(Self { replicas, ..self }),
        }
    }

    /// Returns the address where the server listens. For a discovered master it is the first
    /// address to ask.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Returns the user to log in as, if one is set.
    pub fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// Returns the password to log in with, if there is one. Keep it out of logs.
    pub fn password(&self) -> Option<&str> {
        match &self.secret {
            Some(Secret::Password(password)) => Some(password),
            Some(Secret::File(_)) | None => None,
        }
    }

    /// Returns the file that holds the password, if there is one.
    pub fn password_file(&self) -> Option<&Path> {
        match &self.secret {
            Some(Secret::File(path)) => Some(path),
            Some(Secret::Password(_)) | None => None,
        }
    }

    /// Whether it names a user, but nothing to log in with.
    pub(crate) fn lacks_password(&self) -> bool {
        self.user.is_some() && self.secret.is_none()
    }

    /// The login with the password that was read from the file, or else with that of the URL.
    pub(crate) fn login(&self, read: Option<String>) -> Option<Login> {
        let login = Login::new(read.or_else(|| self.password().map(str::to_owned))?);
        Some(match &self.user {
            Some(user) => login.with_user(user),
            None => login,
        })
    }

    /// Returns the database to select.
    pub fn database(&self) -> u32 {
        self.database.into()
    }

    /// Returns how many replicas the master has and how many confirm each of its votes, if that was
    /// declared.
    pub fn replicas(&self) -> Option<u8> {
        self.replicas
    }

    /// Returns the TLS options, if the connection uses TLS.
    pub fn tls(&self) -> Option<&TlsOptions> {
        self.tls.as_ref()
    }

    /// Returns whether both name the same server, judging by their text. Two databases of one
    /// server, or two users, are one master. Names are not resolved: only once both are connected
    /// does Quorlock notice that `localhost` and `127.0.0.1` are one server.
    pub fn same_server(&self, other: &Self) -> bool {
        let one_place = || self.places().any(|one| other.places().any(|other| one.same_as(other)));
        match (self.discovery(), other.discovery()) {
            (None, None) => one_place(),
            (
                Some(Discovery::Sentinel { group: one, .. }),
                Some(Discovery::Sentinel { group: other, .. }),
            ) => one == other && one_place(),
            (Some(Discovery::Cluster { tag: one }), Some(Discovery::Cluster { tag: other })) => {
                one == other && one_place()
            }
            _ => false,
        }
    }

    fn at(address: Address) -> Self {
        Self {
            address,
            user: None,
            secret: None,
            database: 0,
            tls: None,
            replicas: None,
            route: None,
            failover: None,
        }
    }
}

impl FromStr for Endpoint {
    type Err = EndpointError;

    fn from_str(url: &str) -> Result<Self, EndpointError> {
        parse::endpoint(url)
    }
}

impl TryFrom<&str> for Endpoint {
    type Error = EndpointError;

    fn try_from(url: &str) -> Result<Self, EndpointError> {
        parse::endpoint(url)
    }
}

/// Displays the address, and the database unless it is 0.
impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.discovery() {
            None => self.address.fmt(f)?,
            Some(Discovery::Sentinel { group: name, .. } | Discovery::Cluster { tag: name }) => {
                write!(f, "{name}@")?;
                for (place, address) in self.places().enumerate() {
                    if place > 0 {
                        f.write_str(",")?;
                    }
                    address.fmt(f)?;
                }
            }
        }
        match self.database {
            0 => Ok(()),
            database => write!(f, "/{database}"),
        }
    }
}

/// Hides the user, too: in `redis://secret@host` the user is a password that lacks its colon. The
/// path of a password file is shown.
impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let user = if self.user.is_some() { "set" } else { "none" };
        write!(f, "Endpoint({self}, user: {user}, password: ")?;
        match &self.secret {
            None => f.write_str("none)"),
            Some(Secret::Password(_)) => f.write_str("set)"),
            Some(Secret::File(path)) => write!(f, "in {})", path.display()),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp { host, port } => write!(f, "{host}:{port}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl Address {
    pub(crate) fn tcp(host: &str, port: u16) -> Result<Self, EndpointError> {
        let host = parse::host(host)?;
        if port == 0 { Err(EndpointError::BadPort) } else { Ok(Self::Tcp { host, port }) }
    }

    fn same_as(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Unix(one), Self::Unix(two)) => one == two,
            (Self::Tcp { host: one, port }, Self::Tcp { host: two, port: other_port }) => {
                port == other_port && same_host(one, two)
            }
            _ => false,
        }
    }
}

/// Whether both are the same host. Ignores the case of names and the final dot of a full name. An
/// IPv4 address in its IPv6 form equals the plain one.
fn same_host(one: &str, two: &str) -> bool {
    match (one.parse::<IpAddr>(), two.parse::<IpAddr>()) {
        (Ok(one), Ok(two)) => one.to_canonical() == two.to_canonical(),
        _ => {
            let plain = |name: &str| name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
            plain(one) == plain(two)
        }
    }
}

#[cfg(test)]
mod tests;
