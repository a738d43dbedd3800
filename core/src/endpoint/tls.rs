//! How a master is reached over TLS.

use std::path::{Path, PathBuf};

/// A URL's TLS options. For those that the URL does not set, the configuration's or the system's
/// settings apply.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct TlsOptions {
    pub(super) root_file: Option<PathBuf>,
    pub(super) certificate_file: Option<PathBuf>,
    pub(super) key_file: Option<PathBuf>,
    pub(super) server_name: Option<String>,
}

impl TlsOptions {
    /// Returns these options with a PEM file of the issuers to trust, in place of the system's.
    #[must_use]
    pub fn with_root_file(self, file: impl Into<PathBuf>) -> Self {
        Self { root_file: Some(file.into()), ..self }
    }

    /// Returns these options with the files of this client's certificate and of its private key,
    /// both PEM.
    #[must_use]
    pub fn with_client_files(self, certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        Self { certificate_file: Some(certificate.into()), key_file: Some(key.into()), ..self }
    }

    /// Returns these options with the name that the server's certificate must have, and that is
    /// sent to the server (SNI). The default is the host of the URL.
    #[must_use]
    pub fn with_server_name(self, name: impl Into<String>) -> Self {
        Self { server_name: Some(name.into()), ..self }
    }

    /// Returns the file of the issuers to trust.
    pub fn root_file(&self) -> Option<&Path> {
        self.root_file.as_deref()
    }

    /// Returns the files of the client's certificate and of its private key.
    pub fn client_files(&self) -> Option<(&Path, &Path)> {
        self.certificate_file.as_deref().zip(self.key_file.as_deref())
    }

    /// Returns the name that the server's certificate must have, if it is not the host of the URL.
    pub fn server_name(&self) -> Option<&str> {
        self.server_name.as_deref()
    }
}
