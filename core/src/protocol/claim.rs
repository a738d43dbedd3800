//! What a request is about: a resource and a token, as bytes.

use std::fmt;
use std::sync::Arc;

use bytes::BytesMut;

use super::{Fleet, Resource, Token};
use crate::wire::{MAX_OVERHEAD_BYTES, put_argument};

/// A resource and one attempt's token, encoded once and shared by every request of that attempt to every master.
///
/// The bytes are RESP arguments as the commands carry them: the key, the counter's key if the lock is fenced, then the token.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Claim {
    bytes: Arc<[u8]>,
    /// Where the key ends, and where all keys do: a resource's name has at most 16 KiB.
    key: u16,
    keys: u16,
}

impl Claim {
    /// Puts both into bytes, and the counter's key if grants are numbered.
    pub fn new(resource: &Resource, token: Token, fenced: bool) -> Self {
        let counter = if fenced { resource.counter_key() } else { Vec::new() };
        let arguments = [resource.key(), &counter, &token.to_hex()];
        let most: usize = arguments.iter().map(|argument| MAX_OVERHEAD_BYTES + argument.len()).sum();
        // What is kept has no byte more than it needs, so it is put together somewhere else: mostly on the stack.
        let (mut small, mut large) = ([0; 192], Vec::new());
        let whole = if most <= small.len() {
            small.as_mut_slice()
        } else {
            large.resize(most, 0);
            large.as_mut_slice()
        };
        let [key, counter, token] = arguments;
        let mut rest = &mut *whole;
        put_argument(&mut rest, key);
        let behind_key = rest.len();
        if fenced {
            put_argument(&mut rest, counter);
        }
        let behind_keys = rest.len();
        put_argument(&mut rest, token);
        let behind_all = rest.len();
        let [key, keys, end] = [behind_key, behind_keys, behind_all].map(|behind| whole.len() - behind);
        Self::of(whole.get(..end).unwrap_or_default(), key, keys)
    }

    fn of(bytes: &[u8], key: usize, keys: usize) -> Self {
        let [key, keys] = [key, keys].map(|end| u16::try_from(end).unwrap_or(u16::MAX));
        Self { bytes: Arc::from(bytes), key, keys }
    }

    /// Of a request that is about no key.
    pub(crate) fn none() -> Self {
        Self { bytes: Arc::default(), key: 0, keys: 0 }
    }

    /// Of a request about a key whose holder may be anybody, with one argument instead of a token.
    pub(crate) fn asking(resource: &Resource, argument: &[u8]) -> Self {
        let mut bytes = BytesMut::with_capacity(64 + resource.key().len() + argument.len());
        put_argument(&mut bytes, resource.key());
        let key = bytes.len();
        put_argument(&mut bytes, argument);
        Self::of(&bytes, key, key)
    }

    /// Of the restart guard's marker, which has no token.
    pub(crate) fn marker() -> Self {
        let mut bytes = BytesMut::with_capacity(32);
        put_argument(&mut bytes, Fleet::MARKER.as_bytes());
        Self::of(&bytes, bytes.len(), bytes.len())
    }

    /// What is locked: the key without the length before it and the line's end behind it.
    pub(crate) fn resource(&self) -> &[u8] {
        let key = self.bytes.get(..self.key.into()).unwrap_or_default();
        let length = key.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        key.get(length..key.len().saturating_sub(2)).unwrap_or_default()
    }

    /// Whether both are about the same key and token.
    pub(crate) fn is_of(&self, other: &Self) -> bool {
        let [ours, theirs] = [self, other]
            .map(|claim| (claim.bytes.get(..claim.key.into()), claim.bytes.get(claim.keys.into()..)));
        ours == theirs
    }

    pub(crate) fn is_fenced(&self) -> bool {
        self.keys > self.key
    }

    /// Appends the keys, with `marker` as the last one, and the token.
    pub(crate) fn put(&self, with_counter: bool, marker: Option<&str>, out: &mut BytesMut) {
        if with_counter {
            out.extend_from_slice(self.bytes.get(..self.keys.into()).unwrap_or_default());
        } else {
            self.put_key(out);
        }
        if let Some(marker) = marker {
            put_argument(out, marker.as_bytes());
        }
        self.put_token(out);
    }

    pub(crate) fn put_key(&self, out: &mut BytesMut) {
        out.extend_from_slice(self.bytes.get(..self.key.into()).unwrap_or_default());
    }

    pub(crate) fn put_token(&self, out: &mut BytesMut) {
        out.extend_from_slice(self.bytes.get(self.keys.into()..).unwrap_or_default());
    }
}

impl fmt::Debug for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Claim(hidden)")
    }
}
