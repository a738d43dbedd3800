//! Where the cryptography comes from.

use std::sync::Arc;

use rustls::crypto::CryptoProvider;

use crate::error::TlsError;

/// The provider that this process has installed as rustls' default, or else one that a feature of
/// this crate has brought. rustls would choose by its own features, and panic if other parts of the
/// program have brought a second provider.
pub(crate) fn provider() -> Result<Arc<CryptoProvider>, TlsError> {
    CryptoProvider::get_default().map(Arc::clone).or_else(built_in).ok_or(TlsError::NoProvider)
}

#[cfg(feature = "ring")]
fn built_in() -> Option<Arc<CryptoProvider>> {
    Some(Arc::new(rustls::crypto::ring::default_provider()))
}

#[cfg(all(feature = "aws-lc-rs", not(feature = "ring")))]
fn built_in() -> Option<Arc<CryptoProvider>> {
    Some(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
}

#[cfg(not(any(feature = "ring", feature = "aws-lc-rs")))]
fn built_in() -> Option<Arc<CryptoProvider>> {
    None
}
