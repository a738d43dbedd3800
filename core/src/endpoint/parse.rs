//! Parses a URL into an endpoint. It is hand-written: the forms are few, and every error has to say
//! what to do.

use std::net::Ipv6Addr;
use std::path::PathBuf;

use super::{Endpoint, EndpointError, Failover, Login, Secret, TlsOptions};

const DEFAULT_PORT: u16 = 6379;

/// The kind of a URL, according to its scheme.
#[derive(Clone, Copy)]
enum Kind {
    Unix,
    Tcp { tls: bool },
    Sentinel { tls: bool },
    Cluster { tls: bool },
}

impl Kind {
    fn of(scheme: &str) -> Option<Self> {
        Some(match scheme.to_ascii_lowercase().as_str() {
            "unix" | "redis+unix" | "valkey+unix" => Self::Unix,
            "redis" | "valkey" => Self::Tcp { tls: false },
            "rediss" | "valkeys" => Self::Tcp { tls: true },
            "redis+sentinel" | "valkey+sentinel" => Self::Sentinel { tls: false },
            "rediss+sentinel" | "valkeys+sentinel" => Self::Sentinel { tls: true },
            "redis+cluster" | "valkey+cluster" => Self::Cluster { tls: false },
            "rediss+cluster" | "valkeys+cluster" => Self::Cluster { tls: true },
            _ => return None,
        })
    }
}

pub(super) fn endpoint(url: &str) -> Result<Endpoint, EndpointError> {
    let (scheme, rest) = url.split_once("://").ok_or(EndpointError::UnknownScheme)?;
    let kind = Kind::of(scheme).ok_or(EndpointError::UnknownScheme)?;
    let (Kind::Tcp { tls } | Kind::Sentinel { tls } | Kind::Cluster { tls }) = kind else {
        return unix_socket(&parts(rest)?);
    };
    if tls && rest.ends_with("#insecure") {
        return Err(EndpointError::Unverified);
    }
    let parts = parts(rest)?;
    // The host ends at the first of `/?#`. An `@` after it means that one of them was in the
    // password, so that its parts would be mistaken for a host, a database or a parameter's name.
    if parts.path.contains('@') || parts.query.contains('@') {
        return Err(EndpointError::UnencodedCharacter);
    }
    let mut settings =
        Settings { credentials: Credentials::before_host(parts.credentials)?, ..Settings::default() };
    for (name, value) in parameters(parts.query) {
        settings.set(name, value, kind, tls)?;
    }
    let path = parts.path.strip_prefix('/').unwrap_or_default();
    let (endpoint, database) = match kind {
        Kind::Sentinel { .. } => {
            let (group, database) = path.split_once('/').unwrap_or((path, ""));
            (Endpoint::sentinel(&decode(group)?, &places(parts.host, 26379)?)?, database)
        }
        Kind::Cluster { .. } => {
            let tag = settings.tag.take().unwrap_or_default();
            (Endpoint::cluster(&tag, &places(parts.host, DEFAULT_PORT)?)?, path)
        }
        Kind::Tcp { .. } | Kind::Unix if parts.host.contains(',') => return Err(EndpointError::SeveralHosts),
        Kind::Tcp { .. } | Kind::Unix => {
            let (host, port) = split_port(parts.host, DEFAULT_PORT)?;
            (Endpoint::tcp(host, port)?, path)
        }
    };
    let database = match database {
        "" => 0,
        digits => number(digits).ok_or(EndpointError::BadDatabase)?,
    };
    settings.on(endpoint.with_database(database), tls)
}

/// `host[:port],host[:port]…`
fn places(hosts: &str, port: u16) -> Result<Vec<(&str, u16)>, EndpointError> {
    hosts.split(',').map(|host| split_port(host, port)).collect()
}

fn parts(rest: &str) -> Result<Parts<'_>, EndpointError> {
    if rest.contains('#') { Err(EndpointError::UnencodedCharacter) } else { Ok(Parts::of(rest)) }
}

/// The values of the parameters after the `?`.
#[derive(Default)]
struct Settings {
    credentials: Credentials,
    options: TlsOptions,
    replicas: Option<u8>,
    failover: Option<Failover>,
    tag: Option<String>,
    sentinel_user: Option<String>,
    sentinel_password: Option<String>,
}

impl Settings {
    fn set(&mut self, name: &str, value: &str, kind: Kind, tls: bool) -> Result<(), EndpointError> {
        let asks_sentinels = matches!(kind, Kind::Sentinel { .. });
        let options = &mut self.options;
        match name {
            "cacert" if tls => set_once(&mut options.root_file, "cacert", file(value)?),
            "cert" if tls => set_once(&mut options.certificate_file, "cert", file(value)?),
            "key" if tls => set_once(&mut options.key_file, "key", file(value)?),
            "sni" if tls => set_once(&mut options.server_name, "sni", decode(value)?),
            "verify" | "insecure" if tls => Err(EndpointError::Unverified),
            "cacert" | "cert" | "key" | "sni" => Err(EndpointError::NeedsTls),
            "password-file" => self.credentials.set_file(value),
            "replicas" => set_once(&mut self.replicas, "replicas", replicas(value)?),
            "failover" => set_once(&mut self.failover, "failover", failover(value)?),
            "tag" if matches!(kind, Kind::Cluster { .. }) => set_once(&mut self.tag, "tag", decode(value)?),
            "sentinel-user" if asks_sentinels => {
                set_once(&mut self.sentinel_user, "sentinel-user", decode(value)?)
            }
            "sentinel-pass" if asks_sentinels => {
                set_once(&mut self.sentinel_password, "sentinel-pass", decode(value)?)
            }
            // It may be the rest of a password with an unencoded `&`.
            _ if self.sentinel_password.is_some() => Err(EndpointError::UnencodedCharacter),
            _ => Err(unknown(name)),
        }
    }

    fn on(self, endpoint: Endpoint, tls: bool) -> Result<Endpoint, EndpointError> {
        let options = self.options;
        if options.certificate_file.is_some() != options.key_file.is_some() {
            return Err(EndpointError::HalfOfPair);
        }
        let mut endpoint = self.credentials.on(endpoint)?;
        endpoint.tls = tls.then_some(options);
        endpoint.failover = self.failover;
        if let Some(replicas) = self.replicas {
            endpoint = endpoint.with_replicas(replicas)?;
        }
        Ok(match (self.sentinel_password, self.sentinel_user) {
            (None, None) => endpoint,
            (None, Some(_)) => return Err(EndpointError::UserAlone),
            (Some(password), None) => endpoint.with_sentinel_login(Login::new(password)),
            (Some(password), Some(user)) => {
                endpoint.with_sentinel_login(Login::new(password).with_user(user))
            }
        })
    }
}

fn replicas(value: &str) -> Result<u8, EndpointError> {
    let number = number(value).and_then(|number| u8::try_from(number).ok());
    number.ok_or(EndpointError::BadReplicas)
}

fn failover(value: &str) -> Result<Failover, EndpointError> {
    match value {
        "may-lose-locks" => Ok(Failover::MayLoseLocks),
        "durable" => Ok(Failover::Durable),
        _ => Err(EndpointError::BadFailover),
    }
}

fn file(value: &str) -> Result<PathBuf, EndpointError> {
    let path = decode(value)?;
    if path.is_empty() { Err(EndpointError::MissingFile) } else { Ok(path.into()) }
}

/// `/path[?db=…&user=…&pass=…]`, or `password-file` in place of `pass`.
fn unix_socket(parts: &Parts<'_>) -> Result<Endpoint, EndpointError> {
    let credentials = Credentials::before_host(parts.credentials)?;
    if !parts.host.is_empty() {
        return Err(EndpointError::HostInUnixUrl);
    }
    let path = decode(parts.path)?;
    if matches!(path.as_str(), "" | "/") {
        return Err(EndpointError::MissingPath);
    }
    let mut settings = Settings { credentials, ..Settings::default() };
    let mut database = None;
    for (name, value) in parameters(parts.query) {
        let credentials = &mut settings.credentials;
        match name {
            "db" => set_once(&mut database, "db", number(value).ok_or(EndpointError::BadDatabase)?)?,
            "user" => set_once(&mut credentials.user, "user", decode(value)?)?,
            "pass" => set_once(&mut credentials.password, "pass", decode(value)?)?,
            "password-file" | "replicas" | "failover" => settings.set(name, value, Kind::Unix, false)?,
            // It may be the rest of a password with an unencoded `&`.
            _ if credentials.password.is_some() => return Err(EndpointError::UnencodedCharacter),
            _ => return Err(unknown(name)),
        }
    }
    settings.on(Endpoint::unix(path)?.with_database(database.unwrap_or(0)), false)
}

/// What follows `://`, split as in RFC 3986, section 3.2.
struct Parts<'a> {
    credentials: Option<&'a str>,
    host: &'a str,
    /// With its leading slash; empty if there is none.
    path: &'a str,
    query: &'a str,
}

impl<'a> Parts<'a> {
    fn of(rest: &'a str) -> Self {
        let (before_query, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = before_query.split_at(before_query.find('/').unwrap_or(before_query.len()));
        // The last `@` ends the credentials: a host cannot have one, but a password can.
        let (credentials, host) = authority
            .rsplit_once('@')
            .map_or((None, authority), |(credentials, host)| (Some(credentials), host));
        Self { credentials, host, path, query }
    }
}

#[derive(Default)]
struct Credentials {
    user: Option<String>,
    password: Option<String>,
    file: Option<String>,
}

impl Credentials {
    /// `user`, `user:password` or `:password`. An empty user is the default one, for which a
    /// password alone is enough.
    fn before_host(text: Option<&str>) -> Result<Self, EndpointError> {
        let Some(text) = text else { return Ok(Self::default()) };
        let (user, password) =
            text.split_once(':').map_or((text, None), |(user, password)| (user, Some(password)));
        let user = Some(decode(user)?).filter(|user| !user.is_empty());
        // A user may have the empty password; without a user it means no password.
        let password =
            password.map(decode).transpose()?.filter(|password| user.is_some() || !password.is_empty());
        Ok(Self { user, password, file: None })
    }

    fn set_file(&mut self, value: &str) -> Result<(), EndpointError> {
        let path = decode(value)?;
        if path.is_empty() {
            return Err(EndpointError::MissingPasswordFile);
        }
        set_once(&mut self.file, "password-file", path)
    }

    fn on(self, mut endpoint: Endpoint) -> Result<Endpoint, EndpointError> {
        endpoint.user = self.user;
        endpoint.secret = match (self.password, self.file) {
            (Some(_), Some(_)) => return Err(EndpointError::PasswordAndFile),
            (password, None) => password.map(Secret::Password),
            (None, file) => file.map(|path| Secret::File(path.into())),
        };
        Ok(endpoint)
    }
}

/// A host in its stored form: IPv6 normalized and without brackets, a name as it was written.
pub(super) fn host(text: &str) -> Result<String, EndpointError> {
    if text.is_empty() {
        return Err(EndpointError::EmptyHost);
    }
    let bracketed = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let plain = |character: char| character.is_alphanumeric() || "-._".contains(character);
    let address = bracketed.unwrap_or(text);
    if address.split_once('%').is_some_and(|(address, _)| address.parse::<Ipv6Addr>().is_ok()) {
        return Err(EndpointError::Zone);
    }
    match address.parse::<Ipv6Addr>() {
        Ok(address) => Ok(address.to_string()),
        Err(_) if text.chars().all(plain) => Ok(text.to_owned()),
        Err(_) => Err(EndpointError::BadHost),
    }
}

fn split_port(authority: &str, default: u16) -> Result<(&str, u16), EndpointError> {
    let bracket = authority.rfind(']');
    let after_host = bracket.unwrap_or(0);
    let Some(colon) = authority.get(after_host..).and_then(|tail| tail.rfind(':')) else {
        return Ok((authority, default));
    };
    let (host, port) = authority.split_at(after_host + colon);
    // Whether `::1:6379` ends with a port cannot be known.
    if bracket.is_none() && host.contains(':') {
        return Err(EndpointError::BadHost);
    }
    match number(port.trim_start_matches(':')) {
        Some(port) => Ok((host, port)),
        None => Err(EndpointError::BadPort),
    }
}

fn parameters(query: &str) -> impl Iterator<Item = (&str, &str)> {
    query.split('&').filter(|part| !part.is_empty()).map(|part| part.split_once('=').unwrap_or((part, "")))
}

fn set_once<T>(slot: &mut Option<T>, name: &'static str, value: T) -> Result<(), EndpointError> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(EndpointError::RepeatedParameter(name)),
    }
}

fn unknown(name: &str) -> EndpointError {
    const MAX_SHOWN_CHARACTERS: usize = 32;
    let shown = name.chars().take(MAX_SHOWN_CHARACTERS).flat_map(char::escape_debug).collect();
    EndpointError::UnknownParameter(shown)
}

/// Digits only: the standard library would also accept a leading `+`.
fn number(digits: &str) -> Option<u16> {
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

fn decode(text: &str) -> Result<String, EndpointError> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'%' => match (hex_digit(bytes.next()), hex_digit(bytes.next())) {
                (Some(high), Some(low)) => high * 16 + low,
                _ => return Err(EndpointError::BadEscape),
            },
            _ => byte,
        });
    }
    String::from_utf8(decoded).map_err(|_| EndpointError::BadEscape)
}

fn hex_digit(byte: Option<u8>) -> Option<u8> {
    let digit = char::from(byte?).to_digit(16)?;
    u8::try_from(digit).ok()
}
