//! Groups of holders that share a resource.

use std::fmt;
use std::sync::Arc;

use super::ConfigError;
use super::printed::Printed;

/// Holders that share a resource: holders of one group are let in together, and exclude all others.
///
/// Readers are the group without a name.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Group(Option<Arc<[u8]>>);

impl Group {
    /// The longest name that is accepted, in bytes.
    pub const MAX_BYTES: usize = 1024;

    /// Readers: the group without a name.
    pub const READERS: Self = Self(None);

    /// Creates the group with this name.
    ///
    /// # Errors
    /// [`ConfigError::UnusableGroup`] for a name that is empty or longer than
    /// [`Group::MAX_BYTES`].
    pub fn new(name: impl AsRef<[u8]>) -> Result<Self, ConfigError> {
        let name = name.as_ref();
        if name.is_empty() || name.len() > Self::MAX_BYTES {
            return Err(ConfigError::UnusableGroup { bytes: name.len() });
        }
        Ok(Self(Some(name.into())))
    }

    /// Returns the name; empty for readers.
    pub fn name(&self) -> &[u8] {
        self.0.as_deref().unwrap_or_default()
    }
}

/// Displays `readers`, or the name with non-text bytes escaped.
impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            None => f.write_str("readers"),
            Some(name) => Printed(name).fmt(f),
        }
    }
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            None => f.write_str("readers"),
            Some(name) => write!(f, "{}", name.escape_ascii()),
        }
    }
}
