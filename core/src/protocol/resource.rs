//! What is locked: a key.

use std::fmt;

use bytes::Bytes;

use super::ConfigError;

/// What is locked: the key under which every master keeps the holder's token.
///
/// Any bytes will do, from 1 to [`Resource::MAX_BYTES`]. The key is a plain Redis string, so that every client
/// that follows the Redis distributed-locks page, section "Correct implementation with a single instance",
/// excludes and is excluded by this one.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Resource(Bytes);

impl Resource {
    /// The longest key that is accepted, in bytes. Redis itself allows 512 MiB; a lock's name needs far less, and the
    /// name travels in every request.
    pub const MAX_BYTES: usize = 16 * 1024;

    /// A resource with this name.
    ///
    /// # Errors
    /// [`ConfigError::EmptyResource`] and [`ConfigError::OversizedResource`].
    pub fn new(name: impl AsRef<[u8]>) -> Result<Self, ConfigError> {
        let name = name.as_ref();
        if name.is_empty() {
            return Err(ConfigError::EmptyResource);
        }
        if name.len() > Self::MAX_BYTES {
            return Err(ConfigError::OversizedResource { bytes: name.len() });
        }
        Ok(Self(Bytes::copy_from_slice(name)))
    }

    /// The key's bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match std::str::from_utf8(&self.0) {
            Ok(text) if !text.contains(char::is_control) => f.write_str(text),
            _ => write!(f, "{}", self.0.escape_ascii()),
        }
    }
}

impl fmt::Debug for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Resource({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_and_oversized_names_are_refused() {
        assert_eq!(Resource::new(""), Err(ConfigError::EmptyResource));
        let long = vec![b'x'; Resource::MAX_BYTES + 1];
        assert_eq!(Resource::new(&long), Err(ConfigError::OversizedResource { bytes: long.len() }));
        assert!(Resource::new(&long[1..]).is_ok());
        assert_eq!(Resource::MAX_BYTES, 16_384);
    }

    #[test]
    fn names_that_are_not_text_print_escaped() {
        assert_eq!(Resource::new("invoice:42").unwrap().to_string(), "invoice:42");
        assert_eq!(Resource::new("Prüfung 42").unwrap().to_string(), "Prüfung 42");
        assert_eq!(Resource::new([0xff, b'a', b'\n']).unwrap().to_string(), r"\xffa\n");
        assert_eq!(Resource::new("two\nlines").unwrap().to_string(), r"two\nlines");
    }
}
