//! What can be wrong with the URL of a master, and what to do about it.

use std::{error::Error, fmt};

#[cfg(doc)]
use super::Endpoint;

/// Why a text is not a master's URL. The error repeats no part of the URL but the name of a
/// parameter, where no password can be.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EndpointError {
    /// The text starts with none of the schemes that are understood.
    UnknownScheme,
    /// A `rediss://` or `valkeys://` URL asks for a connection to an unverified server.
    Unverified,
    /// A URL without TLS has a parameter for TLS.
    NeedsTls,
    /// A client's certificate is given without its key, or the key without the certificate.
    HalfOfPair,
    /// A parameter that names a file is empty.
    MissingFile,
    /// There is no host.
    EmptyHost,
    /// The host is neither a name nor an IP address, or is an IPv6 address without its brackets.
    BadHost,
    /// The host is an IPv6 address with a zone, such as `fe80::1%eth0`.
    Zone,
    /// The port is not a number from 1 to 65535.
    BadPort,
    /// The database is not a number from 0 to 65535.
    BadDatabase,
    /// A `%` is not followed by two hexadecimal digits, or the decoded text is not UTF-8.
    BadEscape,
    /// A Unix URL has no path.
    MissingPath,
    /// A Unix URL has a host, usually because it has two slashes instead of three.
    HostInUnixUrl,
    /// The URL has a `#`, or a character that can only come from a user or password that was not
    /// percent-encoded.
    UnencodedCharacter,
    /// This kind of URL does not have the parameter of this name.
    UnknownParameter(String),
    /// A parameter is given twice, or a user or password is given both before the `@` and as a
    /// parameter.
    RepeatedParameter(&'static str),
    /// Both a password and a password file are given: which one counts would be a guess.
    PasswordAndFile,
    /// `password-file` is given without a path.
    MissingPasswordFile,
    /// The number of replicas is not from 0 to [`Endpoint::MAX_REPLICAS`].
    BadReplicas,
    /// A URL for one server names several hosts.
    SeveralHosts,
    /// The group of the sentinels is not named.
    MissingGroup,
    /// The tag of a cluster is missing, or is not of 1 to 64 letters, digits, `-`, `_` and `.`.
    BadTag,
    /// A URL names more sentinels or nodes than the maximum.
    TooManyPlaces,
    /// A user for the sentinels is given without a password.
    UserAlone,
    /// A user is given without a password or a password file, and the configuration has no other
    /// source of logins ([`ConfigBuilder::credentials`](crate::ConfigBuilder::credentials)).
    NoPassword,
    /// The value of `failover=` is unknown.
    BadFailover,
}

impl EndpointError {
    /// Returns a word for this kind of error, for the labels of metrics. It is the same in every
    /// version.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::UnknownScheme => "unknown_scheme",
            Self::Unverified => "unverified",
            Self::NeedsTls => "needs_tls",
            Self::HalfOfPair => "half_of_pair",
            Self::MissingFile => "missing_file",
            Self::EmptyHost => "empty_host",
            Self::BadHost => "bad_host",
            Self::Zone => "zone",
            Self::BadPort => "bad_port",
            Self::BadDatabase => "bad_database",
            Self::BadEscape => "bad_escape",
            Self::MissingPath => "missing_path",
            Self::HostInUnixUrl => "host_in_unix_url",
            Self::UnencodedCharacter => "unencoded_character",
            Self::UnknownParameter(_) => "unknown_parameter",
            Self::RepeatedParameter(_) => "repeated_parameter",
            Self::PasswordAndFile => "password_and_file",
            Self::MissingPasswordFile => "missing_password_file",
            Self::BadReplicas => "bad_replicas",
            Self::SeveralHosts => "several_hosts",
            Self::MissingGroup => "missing_group",
            Self::BadTag => "bad_tag",
            Self::TooManyPlaces => "too_many_places",
            Self::UserAlone => "user_alone",
            Self::NoPassword => "no_password",
            Self::BadFailover => "bad_failover",
        }
    }
}

impl fmt::Display for EndpointError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UnknownScheme => {
                "the URL of a master starts with redis://, valkey:// or unix://, or over TLS with rediss:// or valkeys://; \
                 for a group behind Sentinels write redis+sentinel://, for a cluster redis+cluster://"
            }
            Self::Unverified => {
                "the server's certificate is always verified: give a private issuer's certificate with cacert=; \
                 if that certificate is for another name than the host, give the name with sni="
            }
            Self::NeedsTls => "cacert, cert, key and sni are for TLS: write rediss:// or valkeys://, or rediss+sentinel:// or rediss+cluster://",
            Self::HalfOfPair => "a client's certificate needs its private key: give both cert= and key=",
            Self::MissingFile => "the name of a file is missing after cacert=, cert= or key=",
            Self::EmptyHost => "the host is missing: write redis://host:port",
            Self::BadHost => "the host is not a name or an IP address; write an IPv6 address in brackets, as in redis://[::1]:6379",
            Self::Zone => {
                "an IPv6 address with a zone, as in fe80::1%eth0, is valid on one machine only and cannot be used: \
                 write a name, or an address without a zone"
            }
            Self::BadPort => "the port is not a number from 1 to 65535",
            Self::BadDatabase => "the database is not a number from 0 to 65535, as in redis://host/2",
            Self::BadEscape => "a % is not followed by two hexadecimal digits of a UTF-8 text; write % itself as %25",
            Self::MissingPath => "the path of the socket is missing: write unix:///run/redis.sock",
            Self::HostInUnixUrl => "a Unix socket has no host: write three slashes, as in unix:///run/redis.sock",
            Self::UnencodedCharacter => {
                "a user, password or path has a character that must be percent-encoded: \
                 @ as %40, / as %2F, ? as %3F, # as %23, & as %26"
            }
            Self::UnknownParameter(name) => {
                return write!(
                    f,
                    "the parameter `{name}` is not known here: all URLs take password-file, replicas and failover, unix:// also db, \
                     user and pass, those over TLS also cacert, cert, key and sni, redis+sentinel:// also sentinel-user and \
                     sentinel-pass, and redis+cluster:// also tag"
                );
            }
            Self::PasswordAndFile => {
                "the URL has both a password and password-file: drop the password to have the file read at each login, \
                 or drop password-file"
            }
            Self::MissingPasswordFile => "the path is missing: write password-file=/run/secrets/redis",
            Self::BadReplicas => {
                "replicas= is the number of all replicas of the master, 0 to 16"
            }
            Self::SeveralHosts => {
                "one server has one host: give each master a URL of its own, or write redis+sentinel:// or redis+cluster://"
            }
            Self::MissingGroup => {
                "the group of the sentinels is missing: write redis+sentinel://host:26379/mymaster, the name in \
                 their `sentinel monitor`"
            }
            Self::BadTag => {
                "a cluster needs a tag of 1 to 64 letters, digits, -, _ and .: write redis+cluster://host:7000/?tag=q0; \
                 all keys of this master then lie in one slot"
            }
            Self::TooManyPlaces => "a URL names at most 32 sentinels or nodes: name fewer",
            Self::UserAlone => "sentinel-user= needs sentinel-pass=: give both",
            Self::NoPassword => {
                "the user has no password: write user:password@host, user:@host for a user that needs none, \
                 or user@host?password-file=/run/secrets/redis; a password without a user is :password@host"
            }
            Self::BadFailover => "failover= must be may-lose-locks or durable",
            Self::RepeatedParameter(name) => return write!(f, "`{name}` is given more than once; give it once"),
        })
    }
}

impl Error for EndpointError {}
