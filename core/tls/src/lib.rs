//! TLS for the transports of Quorlock: the encrypted channels of `rediss://` masters, on rustls.
//!
//! You need this crate only for what a URL cannot say: certificates in memory, or a
//! [`rustls::ClientConfig`] of your own. A program need not depend on it: with their feature `tls`,
//! the transports re-export it, and [`Tls`] at their roots.
//!
//! - TLS 1.2 and 1.3, with sessions resumed. Early data is never sent: it can be replayed, and a
//!   password or a lock must not be.
//! - The cryptography is that of the provider which this process has installed as rustls' default,
//!   or else of the feature `ring` or `aws-lc-rs` (ring, if both are on). This crate installs none,
//!   and without these features it brings none into your program.
//! - The server's certificate is always verified, by the system's issuers or by your own, unless
//!   code says otherwise ([`TlsBuilder::dangerous`]).
//! - The files that a URL names are read again when they have changed, at the next connection. If
//!   they cannot be used at that moment, because one of a pair is written before the other, the
//!   last usable ones stay in use, and the master has a warning. A file may be 1 MiB long. A pipe
//!   is read once, and must be written and closed within the `request_timeout`.
//! - There is no socket here and no thread: bytes in, bytes out, like the rest of Quorlock.

// Says in the documentation which feature or system an item needs.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod builder;
mod channel;
mod error;
mod fault;
mod files;
mod provider;

use std::collections::HashMap;
use std::error::Error;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

pub use builder::{Dangerous, TlsBuilder};
pub use error::TlsError;
use quorlock_core::{Address, Cause, Channel, Config, Endpoint, Security, TlsFault, TlsOptions};
pub use rustls;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;

use crate::builder::Settings;
use crate::channel::TlsChannel;
use crate::files::Files;

/// How connections to masters are encrypted. Clones share their sessions and what they have read of
/// files.
///
/// It applies to the masters whose URLs begin with `rediss://` or `valkeys://`. Parameters of such
/// a URL (`cacert=`, `cert=`, `key=`, `sni=`) take precedence.
///
/// ```
/// # fn certificates() -> &'static [u8] { b"" }
/// # fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use quorlock_core::Config;
/// use quorlock_tls::Tls;
///
/// let tls = Tls::builder().root_pem(certificates())?.build()?;
/// let config = Config::builder(["rediss://a", "rediss://b", "rediss://c"]).tls(tls).build()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Tls(Arc<Shared>);

struct Shared {
    settings: Settings,
    /// Built from the settings alone, for masters whose URLs name no files.
    plain: Mutex<Option<Arc<ClientConfig>>>,
    /// What was read of files, by the options that name the files.
    files: Mutex<HashMap<TlsOptions, Files>>,
}

impl Tls {
    /// Starts with the system's issuers and no client certificate.
    pub fn builder() -> TlsBuilder {
        TlsBuilder::new()
    }

    /// TLS with the settings of the masters' URLs and of the system.
    pub fn system() -> Self {
        Self::of(Settings::default(), None)
    }

    fn of(settings: Settings, ready: Option<Arc<ClientConfig>>) -> Self {
        Self(Arc::new(Shared { settings, plain: Mutex::new(ready), files: Mutex::default() }))
    }

    /// Returns the same configuration until a file changes, because sessions are resumed only
    /// within one configuration; and whether the files have changed and could not be used.
    fn client_config(&self, url: &TlsOptions) -> Result<(Arc<ClientConfig>, bool), TlsError> {
        let shared = &*self.0;
        let options = shared.settings.options(url);
        if options.root_file().is_none() && options.client_files().is_none() {
            let mut plain = shared.plain.lock().unwrap_or_else(PoisonError::into_inner);
            return match &*plain {
                Some(ready) => Ok((Arc::clone(ready), false)),
                None => {
                    let made = shared.settings.client_config(None, None)?;
                    Ok((Arc::clone(plain.insert(made)), false))
                }
            };
        }
        let mut files = shared.files.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = files.get_mut(&options) {
            known.refresh(&options, &shared.settings);
            return Ok(known.config());
        }
        let read = Files::read(&options, &shared.settings)?;
        let config = read.config();
        files.insert(options, read);
        Ok(config)
    }
}

/// Adds TLS with the settings of the masters' URLs and of the system, if a URL asks for TLS and the
/// configuration has no TLS settings.
#[must_use]
pub fn secured(config: Config) -> Config {
    let mut settings = Settings::default();
    settings.patience = Some(config.request_timeout());
    config.or_security(|| Arc::new(Tls::of(settings, None)))
}

/// Uses your own configuration, with its provider, issuers and certificates. Of it, masters whose
/// URLs name files use the provider alone.
impl From<Arc<ClientConfig>> for Tls {
    fn from(config: Arc<ClientConfig>) -> Self {
        let mut settings = Settings::default();
        settings.provider = Some(Arc::clone(config.crypto_provider()));
        Self::of(settings, Some(config))
    }
}

impl Security for Tls {
    /// Reads the files or the system's issuers, which may take a tenth of a second.
    fn prepare(&self, masters: &[Endpoint]) -> Result<(), Box<dyn Error + Send + Sync>> {
        for endpoint in masters {
            if let Some(options) = endpoint.tls() {
                self.client_config(options)?;
                server_name(endpoint.address(), options, &self.0.settings)?;
            }
        }
        Ok(())
    }

    fn channel(&self, master: &Endpoint, address: &Address) -> Result<Box<dyn Channel>, Cause> {
        let options = master.tls().ok_or(Cause::Tls(TlsFault::Other))?;
        let (config, has_outdated_files) =
            self.client_config(options).map_err(|error| Cause::Tls(error.fault()))?;
        let name = server_name(address, options, &self.0.settings);
        let name = name.map_err(|error| Cause::Tls(error.fault()))?;
        Ok(Box::new(TlsChannel::new(config, name, has_outdated_files)?))
    }
}

fn server_name(
    address: &Address,
    options: &TlsOptions,
    settings: &Settings,
) -> Result<ServerName<'static>, TlsError> {
    let host = match address {
        Address::Tcp { host, .. } => Some(host.as_str()),
        Address::Unix(_) => None,
    };
    let name = options.server_name().or(settings.files.server_name()).or(host).unwrap_or_default();
    ServerName::try_from(name.to_owned()).map_err(|_| TlsError::UnusableName { name: name.to_owned() })
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").finish_non_exhaustive()
    }
}
