//! Certificates for servers that speak TLS, and the URLs that lead to them.

use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use tempfile::TempDir;

use crate::{clusters, secrets};

/// `1` makes real servers speak only TLS.
const TLS_VARIABLE: &str = "QUORLOCK_TEST_TLS";

/// PEM files: an issuer's certificate, and a certificate with its key, for a server (`localhost`,
/// `127.0.0.1`, `::1`) as well as for clients.
#[derive(Debug)]
pub struct Certificates {
    directory: PathBuf,
    /// The directory, if they belong to one test.
    _own: Option<TempDir>,
}

/// Whether the real servers of this process speak TLS.
pub fn is_chosen() -> bool {
    static CHOSEN: OnceLock<bool> = OnceLock::new();

    *CHOSEN.get_or_init(|| std::env::var_os(TLS_VARIABLE).is_some_and(|value| value == "1"))
}

/// The URL of a master at `[user:password@]host:port[/db]`: over TLS if servers speak that, and
/// with the tag of a cluster if they are nodes of one.
pub fn url_of(place: impl Display) -> String {
    if !clusters::is_chosen() {
        return url_by("", place);
    }
    let url = url_by("+cluster", place);
    let more = if url.contains('?') { '&' } else { '?' };
    // There is no failover, so grants may be numbered.
    format!("{url}{more}tag={}&failover=durable", clusters::TAG)
}

/// The same for a master that is found through the servers at `place`. `discovery` is `+sentinel`,
/// for example.
pub(crate) fn url_by(discovery: &str, place: impl Display) -> String {
    if is_chosen() {
        format!("rediss{discovery}://{place}?cacert={}", Certificates::shared().root().display())
    } else {
        format!("redis{discovery}://{place}")
    }
}

impl Certificates {
    /// The certificates of all tests on this machine: they are created once and kept in the
    /// directory for temporary files, so that no process leaves files behind.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Certificates> = OnceLock::new();

        SHARED.get_or_init(|| {
            let directory = std::env::temp_dir().join("quorlock-tests-certificates-2");
            if !directory.is_dir() {
                let made = tempfile::Builder::new().prefix("quorlock-").tempdir();
                let made = made.expect("a temporary directory");
                write(made.path(), NAMES, |_| {});
                // Another process may have been first.
                if fs::rename(made.path(), &directory).is_ok() {
                    let _ = made.keep();
                }
            }
            let shared = Self { directory, _own: None };
            secrets::note(fs::read(shared.key()).expect("the key is there"));
            shared
        })
    }

    /// The certificates of one test, with their own issuer, for a server with these names. `change`
    /// makes the certificate faulty.
    pub fn own(names: &[&str], change: impl Fn(&mut CertificateParams)) -> Self {
        let own = tempfile::Builder::new().prefix("quorlock-").tempdir().expect("a temporary directory");
        write(own.path(), names, change);
        Self { directory: own.path().to_owned(), _own: Some(own) }
    }

    /// Replaces the files with others of the same kind, one after the other.
    pub fn replace(&self) {
        write(&self.directory, NAMES, |_| {});
    }

    /// The issuer's certificate.
    pub fn root(&self) -> PathBuf {
        self.directory.join("ca.pem")
    }

    /// A certificate that the issuer has signed.
    pub fn certificate(&self) -> PathBuf {
        self.directory.join("localhost.pem")
    }

    /// Its private key.
    pub fn key(&self) -> PathBuf {
        self.directory.join("localhost.key")
    }
}

/// The names of a server on this machine, the last one for tests with their own hosts file.
pub const NAMES: &[&str] = &["localhost", "127.0.0.1", "::1", "moving.quorlock.test"];

fn write(directory: &Path, names: &[&str], change: impl Fn(&mut CertificateParams)) {
    let mut issuer = CertificateParams::default();
    issuer.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    // OpenSSL treats a certificate as its own issuer if both have the same name.
    issuer.distinguished_name.push(DnType::CommonName, "The issuer of Quorlock's tests");
    let key = || KeyPair::generate().expect("a key can be made");
    let issuer = CertifiedIssuer::self_signed(issuer, key()).expect("an issuer's certificate");
    let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names).expect("usable names");
    change(&mut params);
    let own = key();
    let certificate = params.signed_by(&own, &issuer).expect("a certificate");
    for (name, pem) in [
        ("ca.pem", issuer.pem()),
        ("localhost.pem", certificate.pem()),
        ("localhost.key", own.serialize_pem()),
    ] {
        if name.ends_with(".key") {
            secrets::note(&pem);
        }
        fs::write(directory.join(name), pem).expect("the directory is writable");
    }
}
