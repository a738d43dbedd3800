//! What a request is about: targets and a token, as bytes.

use std::fmt;
use std::sync::Arc;

pub(crate) use self::all::AllClaim;
pub use self::all::Wish;
pub(crate) use self::literal::LiteralClaim;
pub(crate) use self::queued::QueuedClaim;
use super::{Fleet, QueuePlace, Resource, Targets, Token};
use crate::wire::{MAX_OVERHEAD_BYTES, put_argument};

mod all;
mod literal;
mod queued;

/// What one attempt wants and its token, encoded once and shared by every request of that attempt
/// to every master.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Claim(Form);

#[derive(Clone, PartialEq, Eq, Hash)]
enum Form {
    /// One resource, exclusively. The bytes are RESP arguments as in the commands: the key, the
    /// counter's key if the lock is fenced, then the token.
    One {
        bytes: Arc<[u8]>,
        /// The end of the key, and the end of all keys. They fit into 16 bits, because a resource's
        /// name is at most 16 KiB long.
        key: u16,
        keys: u16,
    },
    /// Several resources, or shared ones.
    All(Arc<AllClaim>),
    /// Keys whose content is unknown.
    Literal(Arc<LiteralClaim>),
    /// One resource, exclusively, with a place in its queue.
    Queued(Arc<QueuedClaim>),
}

impl Claim {
    /// Encodes targets and token, and the counters' keys if grants are numbered. With a wish, the
    /// attempt leaves marks on the resources that it waits to write.
    pub fn new(targets: &Targets, token: Token, fenced: bool, wish: Option<Wish>) -> Self {
        match targets.as_one() {
            Some(resource) if wish.is_none() => Self::one(resource, token, fenced),
            _ => Self(Form::All(Arc::new(AllClaim::new(targets, token, fenced, wish)))),
        }
    }

    /// A claim of one resource with fair waiting.
    pub(crate) fn queued(resource: &Resource, token: Token, fenced: bool, place: QueuePlace) -> Self {
        Self(Form::Queued(Arc::new(QueuedClaim::new(resource, token, fenced, place))))
    }

    /// The claim of the same lock without its place in the queue.
    pub(crate) fn without_place(&self) -> Self {
        self.as_queued().map_or(self, QueuedClaim::lock).clone()
    }

    /// A claim of `take` seats from a window of a semaphore's seats.
    pub(crate) fn of_seats(
        name: &Resource,
        seats: &[Resource],
        take: u16,
        token: Token,
        fenced: bool,
        wish: Option<Wish>,
    ) -> Self {
        Self(Form::All(Arc::new(AllClaim::of_seats(name, seats, take, token, fenced, wish))))
    }

    fn one(resource: &Resource, token: Token, fenced: bool) -> Self {
        let counter = if fenced { resource.counter_key() } else { Vec::new() };
        let arguments = [resource.key(), &counter, &token.to_hex()];
        let most: usize = arguments.iter().map(|argument| MAX_OVERHEAD_BYTES + argument.len()).sum();
        // The stored bytes have no spare capacity, so they are built elsewhere first: usually on
        // the stack.
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
        Self(Form::One { bytes: Arc::from(bytes), key, keys })
    }

    /// For a request without keys.
    pub(crate) fn none() -> Self {
        Self::of(&[], 0, 0)
    }

    /// For a request about these resources, whatever clients hold them: the script gets their keys,
    /// this value and the names of more keys.
    pub(crate) fn asking(resources: &[Resource], value: &[u8], names: &[&[u8]]) -> Self {
        Self(Form::Literal(Arc::new(LiteralClaim::new(resources, value, names))))
    }

    /// For a release by a token that may hold the resource alone or share it in any group.
    pub(crate) fn of_any_kind(resource: &Resource, token: Token) -> Self {
        Self::asking(std::slice::from_ref(resource), &token.to_hex(), &[])
    }

    /// For the restart guard's marker, which has no token.
    pub(crate) fn marker() -> Self {
        let mut bytes = Vec::with_capacity(32);
        put_argument(&mut bytes, Fleet::MARKER.as_bytes());
        Self::of(&bytes, bytes.len(), bytes.len())
    }

    /// Whether an acquisition takes only some of the targets.
    pub(crate) fn takes_some(&self) -> bool {
        self.as_all().is_some_and(AllClaim::takes_some)
    }

    /// The data for the claim's scripts, unless it claims one resource exclusively.
    pub(crate) fn as_all(&self) -> Option<&AllClaim> {
        match &self.0 {
            Form::All(all) => Some(all),
            Form::One { .. } | Form::Literal(_) | Form::Queued(_) => None,
        }
    }

    /// The keys and values of the claim's script, if the keys' content is unknown.
    pub(crate) fn as_literal(&self) -> Option<&LiteralClaim> {
        match &self.0 {
            Form::Literal(literal) => Some(literal),
            Form::One { .. } | Form::All(_) | Form::Queued(_) => None,
        }
    }

    /// The keys and values of the queue's scripts, if the claim has a place in a queue.
    pub(crate) fn as_queued(&self) -> Option<&QueuedClaim> {
        match &self.0 {
            Form::Queued(queued) => Some(queued),
            Form::One { .. } | Form::All(_) | Form::Literal(_) => None,
        }
    }

    /// For one exclusively locked resource: the bytes, the end of its key, and the end of all keys.
    fn one_resource(&self) -> Option<(&[u8], usize, usize)> {
        match &self.0 {
            Form::One { bytes, key, keys } => Some((bytes, usize::from(*key), usize::from(*keys))),
            Form::Queued(queued) => queued.lock().one_resource(),
            Form::All(_) | Form::Literal(_) => None,
        }
    }

    /// How many values at the end of the claim's script are names of keys.
    pub(crate) fn names(&self) -> usize {
        self.as_literal().map_or(0, LiteralClaim::names)
    }

    /// Whether it claims one resource exclusively.
    pub(crate) fn is_one(&self) -> bool {
        matches!(self.0, Form::One { .. })
    }

    /// The keys of what is locked.
    pub(crate) fn resources(&self) -> impl Iterator<Item = &[u8]> {
        let (one, more) = match &self.0 {
            Form::One { bytes, key, .. } => (bytes.get(..usize::from(*key)), None),
            Form::All(all) => (None, Some(all.resources())),
            Form::Literal(literal) => (None, Some(literal.resources())),
            Form::Queued(_) => (self.one_resource().and_then(|(bytes, key, _)| bytes.get(..key)), None),
        };
        one.map(argument).into_iter().chain(more.into_iter().flatten().map(Resource::key))
    }

    /// Whether a part of the claim is shared.
    pub(crate) fn reads(&self) -> bool {
        self.as_all().is_some_and(AllClaim::reads)
    }

    /// Whether other locks of this process may ask for its keys at the same time.
    pub(crate) fn has_neighbours(&self) -> bool {
        self.one_resource().is_none() || self.resources().any(Resource::is_seat)
    }

    /// Whether both have the same token, or the same place in a queue. The keys may differ: those
    /// of a lock and of the same lock after a downgrade, or other permits of a semaphore.
    pub(crate) fn is_of_same(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Form::Queued(ours), Form::Queued(theirs)) if ours.place() == theirs.place() => true,
            _ => self.token().is_some_and(|token| other.token() == Some(token)),
        }
    }

    /// The token's stored bytes, equal for one token in every form that acquires; `None` if no
    /// token is known.
    pub(crate) fn token(&self) -> Option<&[u8]> {
        match &self.0 {
            Form::One { bytes, keys, .. } => bytes.get(usize::from(*keys)..),
            Form::All(all) => Some(all.token()),
            Form::Literal(_) => None,
            Form::Queued(queued) => queued.lock().token(),
        }
    }

    pub(crate) fn is_fenced(&self) -> bool {
        match &self.0 {
            Form::One { key, keys, .. } => keys > key,
            Form::All(all) => all.is_fenced(),
            Form::Literal(_) => false,
            Form::Queued(queued) => queued.lock().is_fenced(),
        }
    }

    /// For one resource: appends its key, the counter's if requested, `marker` as the last key, and
    /// the token.
    pub(crate) fn put(&self, with_counter: bool, marker: Option<&str>, out: &mut Vec<u8>) {
        if let Some((bytes, _, keys)) = self.one_resource() {
            if with_counter {
                out.extend_from_slice(bytes.get(..keys).unwrap_or_default());
            } else {
                self.put_key(out);
            }
            if let Some(marker) = marker {
                put_argument(out, marker.as_bytes());
            }
            self.put_token(out);
        }
    }

    pub(crate) fn put_key(&self, out: &mut Vec<u8>) {
        if let Some((bytes, key, _)) = self.one_resource() {
            out.extend_from_slice(bytes.get(..key).unwrap_or_default());
        }
    }

    pub(crate) fn put_token(&self, out: &mut Vec<u8>) {
        if let Some((bytes, _, keys)) = self.one_resource() {
            out.extend_from_slice(bytes.get(keys..).unwrap_or_default());
        }
    }
}

/// The content of a RESP argument, without its length and its line end.
fn argument(bytes: &[u8]) -> &[u8] {
    let length = bytes.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    bytes.get(length..bytes.len().saturating_sub(2)).unwrap_or_default()
}

impl fmt::Debug for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Claim(hidden)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_any_length_are_encoded_in_the_same_way() {
        let token = Token::from_bytes([0xab; Token::BYTES]);
        for length in [1, 77, 78, 200, Resource::MAX_BYTES] {
            let resource = Resource::new("x".repeat(length)).unwrap();
            let expected = |counter: bool| {
                let mut bytes = Vec::new();
                put_argument(&mut bytes, resource.key());
                if counter {
                    put_argument(&mut bytes, &resource.counter_key());
                }
                put_argument(&mut bytes, b"marker");
                put_argument(&mut bytes, &token.to_hex());
                bytes
            };
            for (fenced, with_counter) in [(false, false), (true, false), (true, true)] {
                let claim = Claim::new(&resource.clone().into(), token, fenced, None);
                let mut bytes = Vec::new();
                claim.put(with_counter, Some("marker"), &mut bytes);
                assert!(bytes == expected(with_counter), "{length} bytes, fenced: {fenced}");
            }
        }
    }
}
