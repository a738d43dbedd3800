//! Settings for TLS, and their translation for rustls.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use quorlock_core::TlsOptions;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

use crate::Tls;
use crate::error::{Pem, TlsError};
use crate::provider::provider;

/// Collects settings; [`TlsBuilder::build`] checks them.
#[derive(Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct TlsBuilder(Settings);

/// A certificate of this client and its private key.
pub(crate) struct Identity {
    pub(crate) chain: Vec<CertificateDer<'static>>,
    pub(crate) key: PrivateKeyDer<'static>,
}

#[derive(Default)]
pub(crate) struct Settings {
    /// The files and the name for masters whose URLs do not set their own.
    pub(crate) files: TlsOptions,
    roots: Option<Vec<CertificateDer<'static>>>,
    identity: Option<Identity>,
    accept_any: bool,
    /// The provider of the program's own configuration, if it gave one.
    pub(crate) provider: Option<Arc<CryptoProvider>>,
    /// How long to wait for files that are pipes; `None` for the default.
    pub(crate) patience: Option<Duration>,
}

impl TlsBuilder {
    pub(crate) fn new() -> Self {
        Self(Settings::default())
    }

    /// Trusts the issuers whose certificates are in this PEM text, and none of the system's.
    ///
    /// # Errors
    /// [`TlsError::Missing`] if it contains no certificate.
    pub fn root_pem(mut self, pem: &[u8]) -> Result<Self, TlsError> {
        self.0.roots.get_or_insert_default().extend(certificates(pem, Pem::Roots, None)?);
        Ok(self)
    }

    /// Sets the certificate that this client shows to servers, and the private key that belongs to
    /// it.
    ///
    /// Both are PEM texts. `certificate` is followed by the certificates of its issuers if the
    /// servers do not have those.
    ///
    /// # Errors
    /// [`TlsError::Missing`] if there is no certificate or no key.
    pub fn client_pem(mut self, certificate: &[u8], key: &[u8]) -> Result<Self, TlsError> {
        self.0.identity = Some(identity(certificate, key, None)?);
        Ok(self)
    }

    /// Trusts the issuers whose certificates are in this PEM file, and none of the system's. It is
    /// read again when it has changed. A pipe is read once, and must be written and closed within
    /// 200 ms. A file is at most 1 MiB long.
    pub fn root_file(mut self, file: impl Into<PathBuf>) -> Self {
        self.0.files = self.0.files.with_root_file(file);
        self
    }

    /// Sets the PEM files with the certificate that this client shows to servers, and with the
    /// private key that belongs to it. They are read as [`root_file`](Self::root_file) is.
    pub fn client_files(mut self, certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        self.0.files = self.0.files.with_client_files(certificate, key);
        self
    }

    /// Requires this name in the servers' certificates, and sends it to the servers (SNI). Default:
    /// the host of each URL.
    pub fn server_name(mut self, name: impl Into<String>) -> Self {
        self.0.files = self.0.files.with_server_name(name);
        self
    }

    /// Settings that remove the protection of TLS.
    pub fn dangerous(self) -> Dangerous {
        Dangerous(self)
    }

    /// Checks the settings, and reads the files that they name.
    ///
    /// # Errors
    /// A file that cannot be used, a certificate and a key that do not belong together, a name that
    /// no certificate can contain, no issuers in the system, no provider, or one without TLS 1.2
    /// and 1.3.
    pub fn build(self) -> Result<Tls, TlsError> {
        if let Some(name) = self.0.files.server_name() {
            let unusable = |_| TlsError::UnusableName { name: name.to_owned() };
            ServerName::try_from(name).map_err(unusable)?;
        }
        let tls = Tls::of(self.0, None);
        tls.client_config(&TlsOptions::default())?;
        Ok(tls)
    }
}

/// See [`TlsBuilder::dangerous`].
#[derive(Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct Dangerous(TlsBuilder);

impl Dangerous {
    /// Accepts every certificate. An attacker on the network can then read and change everything
    /// that is sent, including the password, and grant a lock to two clients at once.
    pub fn accept_any_certificate(mut self) -> TlsBuilder {
        self.0.0.accept_any = true;
        self.0
    }
}

impl Settings {
    /// The settings of a master's URL, and the general settings for what the URL does not set.
    pub(crate) fn options(&self, url: &TlsOptions) -> TlsOptions {
        let mut options = url.clone();
        if let (None, Some(file)) = (url.root_file(), self.files.root_file()) {
            options = options.with_root_file(file);
        }
        if let (None, Some((certificate, key))) = (url.client_files(), self.files.client_files()) {
            options = options.with_client_files(certificate, key);
        }
        options
    }

    /// `roots` and `identity` take precedence over the settings.
    pub(crate) fn client_config(
        &self,
        roots: Option<Vec<CertificateDer<'static>>>,
        identity: Option<Identity>,
    ) -> Result<Arc<ClientConfig>, TlsError> {
        let provider = self.provider.clone().map_or_else(provider, Ok)?;
        let versions = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| TlsError::UnusableProvider { error })?;
        let trusting = if self.accept_any {
            versions.dangerous().with_custom_certificate_verifier(Arc::new(AcceptAny(provider)))
        } else {
            let roots = match roots.or_else(|| self.roots.clone()) {
                Some(named) => named,
                None => rustls_native_certs::load_native_certs().certs,
            };
            let mut store = RootCertStore::empty();
            store.add_parsable_certificates(roots);
            if store.is_empty() {
                return Err(TlsError::NoRoots);
            }
            versions.with_root_certificates(store)
        };
        let own = self.identity.as_ref();
        let identity = identity
            .or_else(|| own.map(|own| Identity { chain: own.chain.clone(), key: own.key.clone_key() }));
        let config = match identity {
            None => trusting.with_no_client_auth(),
            Some(Identity { chain, key }) => trusting
                .with_client_auth_cert(chain, key)
                .map_err(|error| TlsError::UnusablePair { error })?,
        };
        Ok(Arc::new(config))
    }
}

/// Leaves out certificates and keys.
impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Settings")
            .field("files", &self.files)
            .field("own_roots", &self.roots.is_some())
            .field("client_certificate", &self.identity.is_some())
            .field("accepts_any_certificate", &self.accept_any)
            .finish()
    }
}

/// The certificates of a PEM text.
pub(crate) fn certificates(
    pem: &[u8],
    what: Pem,
    file: Option<&Path>,
) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        _ => Err(TlsError::Missing { what, file: file.map(Path::to_owned) }),
    }
}

/// A certificate and its key, with the files that they came from.
pub(crate) fn identity(
    certificate: &[u8],
    key: &[u8],
    files: Option<(&Path, &Path)>,
) -> Result<Identity, TlsError> {
    let chain = certificates(certificate, Pem::Certificate, files.map(|(file, _)| file))?;
    let missing = |_| TlsError::Missing { what: Pem::Key, file: files.map(|(_, file)| file.to_owned()) };
    let key = PrivateKeyDer::from_pem_slice(key).map_err(missing)?;
    Ok(Identity { chain, key })
}

/// Accepts every certificate; signatures by its key are still checked.
#[derive(Debug)]
struct AcceptAny(Arc<CryptoProvider>);

impl ServerCertVerifier for AcceptAny {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
