//! A claim whose script gets keys and values unchanged: for an inspection, or for a token whose
//! targets are unknown.

use crate::protocol::Resource;
use crate::wire::put_argument;

/// RESP arguments in the order of the scripts.
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct LiteralClaim {
    resources: Box<[Resource]>,
    /// All keys, then the value, then names of keys that the script reads only if they exist. So
    /// the user needs no permission for keys that do not exist.
    arguments: Box<[u8]>,
    names: usize,
}

impl LiteralClaim {
    pub(super) fn new(resources: &[Resource], value: &[u8], names: &[&[u8]]) -> Self {
        let mut arguments = Vec::new();
        let keys = resources.iter().map(Resource::key);
        let all = keys.chain([value]).chain(names.iter().copied());
        all.for_each(|argument| put_argument(&mut arguments, argument));
        Self { resources: resources.into(), arguments: Box::from(&*arguments), names: names.len() }
    }

    pub(super) fn resources(&self) -> &[Resource] {
        &self.resources
    }

    pub(crate) fn keys(&self) -> u64 {
        self.resources.len() as u64
    }

    pub(crate) fn values(&self) -> u64 {
        1 + self.names as u64
    }

    /// How many of the values are names of keys.
    pub(super) fn names(&self) -> usize {
        self.names
    }

    /// Appends all keys, then all values.
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.arguments);
    }
}
