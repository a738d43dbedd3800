//! The files that a URL names, read again when they have changed.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use quorlock_core::TlsOptions;
use rustls::ClientConfig;

use crate::builder::{Settings, certificates, identity};
use crate::error::{Pem, TlsError};

/// What was read from some files, and their state at that time.
pub(crate) struct Files {
    config: Arc<ClientConfig>,
    stamps: Vec<Stamp>,
}

/// The state of a file without its contents. Kubernetes changes a link to another folder, which
/// changes length or time too.
#[derive(PartialEq, Eq)]
struct Stamp {
    modified: Option<SystemTime>,
    bytes: u64,
}

impl Files {
    pub(crate) fn read(options: &TlsOptions, settings: &Settings) -> Result<Self, TlsError> {
        // The stamps are taken before the files are read, so that a change in between is noticed.
        let stamps = stamps(options);
        let roots = options
            .root_file()
            .map(|file| certificates(&contents(file, Pem::Roots)?, Pem::Roots, Some(file)));
        let own = options.client_files().map(|(certificate, key)| {
            let chain = contents(certificate, Pem::Certificate)?;
            identity(&chain, &contents(key, Pem::Key)?, Some((certificate, key)))
        });
        let config = settings.client_config(roots.transpose()?, own.transpose()?)?;
        Ok(Self { config, stamps })
    }

    pub(crate) fn config(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.config)
    }

    /// Reads the files again if one has changed. The earlier contents stay in use while the new
    /// ones cannot be used, because files may be written one after the other.
    pub(crate) fn refresh(&mut self, options: &TlsOptions, settings: &Settings) {
        if stamps(options) != self.stamps {
            if let Ok(read) = Self::read(options, settings) {
                *self = read;
            }
        }
    }
}

fn stamps(options: &TlsOptions) -> Vec<Stamp> {
    let client = options.client_files().into_iter().flat_map(|(certificate, key)| [certificate, key]);
    let stamp = |file: &Path| match fs::metadata(file) {
        Ok(metadata) => Stamp { modified: metadata.modified().ok(), bytes: metadata.len() },
        Err(_) => Stamp { modified: None, bytes: 0 },
    };
    options.root_file().into_iter().chain(client).map(stamp).collect()
}

fn contents(file: &Path, what: Pem) -> Result<Vec<u8>, TlsError> {
    fs::read(file).map_err(|error| TlsError::Unreadable { what, file: PathBuf::from(file), error })
}
