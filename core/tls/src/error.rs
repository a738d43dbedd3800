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
    /// The client's certificate and its private key do not belong together, or one of them cannot
    /// be used.
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
    /// There is no `CryptoProvider` of rustls: this process has installed none, and no feature has
    /// brought one.
    NoProvider,
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
            Self::NoProvider => TlsFault::Other,
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
            Self::UnusablePair { error: rustls::Error::InconsistentKeys(_) } => f.write_str(
                "the client's certificate and its private key do not belong together: give the two of one pair",
            ),
            // Before it compares the keys, rustls reads the certificate.
            Self::UnusablePair { error: error @ rustls::Error::InvalidCertificate(_) } => write!(
                f,
                "the client's certificate cannot be used: {error}; it must be an X.509 certificate of version 3"
            ),
            Self::UnusablePair { error } => write!(f, "the client's private key cannot be used: {error}"),
            Self::NoRoots => f.write_str(
                "this system has no trusted root certificates: install them (the package ca-certificates), or name one with cacert=",
            ),
            Self::UnusableName { name } => {
                write!(f, "no certificate can contain the name {name}: give the certificate's name with sni=")
            }
            Self::NoProvider => f.write_str(
                "there is no cryptography for TLS: enable the feature `tls-ring` or `tls-aws-lc-rs` of the transport, or install a provider of rustls before (CryptoProvider::install_default)",
            ),
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
            Self::Missing { .. } | Self::NoRoots | Self::NoProvider | Self::UnusableName { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Tls;

    /// A certificate of version 1 and its key, for this test alone.
    const OLD: &str = "\
-----BEGIN CERTIFICATE-----
MIIBGDCBvwIUL9DdXESmFbnrdTcOW1UxokLDzj8wCgYIKoZIzj0EAwIwDjEMMAoG
A1UEAwwDb2xkMCAXDTI2MTEyODAxMzk1OFoYDzIxMjYxMTA0MDEzOTU4WjAOMQww
CgYDVQQDDANvbGQwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAARkst1z4rSzEBcc
NsntVLS/gpcwqDEjYSc1Lyifc8bziTpD2gPjG6JEF1BbyNcKEHoRdEqL+GL5qdYe
pJBH4mHTMAoGCCqGSM49BAMCA0gAMEUCIDeBXMKrentbaDmqb1BXU7ZplK9u7Mbu
nwe3TKD+T9jtAiEAunepKVLopxOA3fSPcKMO5aPp9asl67nWOCRGmAmZh+A=
-----END CERTIFICATE-----
";
    const OLD_KEY: &str = "\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgzKWI7zvw4XqiC3xx
4lClYS2NxpfV/meBNWjoRm0sOn+hRANCAARkst1z4rSzEBccNsntVLS/gpcwqDEj
YSc1Lyifc8bziTpD2gPjG6JEF1BbyNcKEHoRdEqL+GL5qdYepJBH4mHT
-----END PRIVATE KEY-----
";

    fn said(certificate: &str, key: &str) -> String {
        let built =
            Tls::builder().client_pem(certificate.as_bytes(), key.as_bytes()).and_then(|tls| tls.build());
        built.err().unwrap().to_string()
    }

    #[test]
    fn a_client_certificate_of_version_1_is_named_as_the_reason() {
        let said = said(OLD, OLD_KEY);
        assert!(said.starts_with("the client's certificate cannot be used: "), "{said}");
        assert!(said.ends_with("; it must be an X.509 certificate of version 3"), "{said}");
    }

    #[test]
    fn a_key_that_is_none_is_named_as_the_reason() {
        let begin = OLD_KEY.replacen('M', "X", 1);
        let said = said(OLD, &begin);
        assert!(said.starts_with("the client's private key cannot be used: "), "{said}");
    }
}
