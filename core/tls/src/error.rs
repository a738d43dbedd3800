//! Why TLS cannot be set up with the given settings.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::PathBuf;

use quorlock_core::TlsFault;

/// Why certificates, keys or settings for TLS cannot be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be read.
    Unreadable {
        /// What it should contain.
        what: Pem,
        /// Its path.
        file: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A text does not contain what it should contain.
    Missing {
        /// What it should contain.
        what: Pem,
        /// The file, if it came from one.
        file: Option<PathBuf>,
    },
    /// A certificate and a private key do not belong together, or one of them cannot be used.
    UnusablePair {
        /// The error of rustls.
        error: rustls::Error,
    },
    /// The system has no trusted root certificates.
    NoRoots,
    /// No certificate can contain this name.
    UnusableName {
        /// The name.
        name: String,
    },
    /// The `CryptoProvider` of rustls that this process has installed cannot be used. For example,
    /// it has no cipher suite for TLS 1.2 or 1.3.
    UnusableProvider {
        /// The error of rustls.
        error: rustls::Error,
    },
}

/// What a PEM text must contain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Pem {
    /// Certificates of the issuers to trust.
    Roots,
    /// The client's certificate.
    Certificate,
    /// The client's private key.
    Key,
}

impl TlsError {
    /// The fault that the error of a lock reports: it contains no names.
    pub(crate) fn fault(&self) -> TlsFault {
        match self {
            Self::Unreadable { what: Pem::Roots, .. } | Self::Missing { what: Pem::Roots, .. } => {
                TlsFault::RootFile
            }
            Self::Unreadable { .. } | Self::Missing { .. } | Self::UnusablePair { .. } => {
                TlsFault::ClientFiles
            }
            Self::NoRoots => TlsFault::NoRoots,
            Self::UnusableName { .. } => TlsFault::UnusableName,
            Self::UnusableProvider { .. } => TlsFault::NoCommonVersion,
        }
    }
}

impl fmt::Display for Pem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Roots => "certificate of an issuer (-----BEGIN CERTIFICATE-----)",
            Self::Certificate => "certificate of this client (-----BEGIN CERTIFICATE-----)",
            Self::Key => "private key (-----BEGIN PRIVATE KEY-----)",
        })
    }
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable { what, file, error } => {
                write!(f, "{} cannot be read for a {what}: {error}", file.display())
            }
            Self::Missing { what, file: Some(file) } => write!(f, "{} has no {what}", file.display()),
            Self::Missing { what, file: None } => write!(f, "the PEM text has no {what}"),
            Self::UnusablePair { error } => write!(
                f,
                "the client's certificate and its private key cannot be used together: {error}; give the two of one pair"
            ),
            Self::NoRoots => f.write_str(
                "this system has no trusted root certificates: install them (the package ca-certificates), or name one with cacert=",
            ),
            Self::UnusableName { name } => {
                write!(f, "no certificate can contain the name {name}: give the certificate's name with sni=")
            }
            Self::UnusableProvider { error } => {
                write!(f, "the CryptoProvider of rustls that this process has installed cannot be used: {error}")
            }
        }
    }
}

impl Error for TlsError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Unreadable { error, .. } => Some(error),
            Self::UnusablePair { error } | Self::UnusableProvider { error } => Some(error),
            Self::Missing { .. } | Self::NoRoots | Self::UnusableName { .. } => None,
        }
    }
}
