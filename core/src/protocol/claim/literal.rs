//! A claim whose script is given keys and values as they are: of a question, or of a token of which
//! nobody says what it locked.

use bytes::BytesMut;

use crate::protocol::Resource;
use crate::wire::put_argument;

/// RESP arguments in the order of the scripts.
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct LiteralClaim {
    resources: Box<[Resource]>,
    /// All keys, then all values.
    arguments: Box<[u8]>,
    values: u64,
}

impl LiteralClaim {
    pub(super) fn new(resources: &[Resource], values: &[&[u8]]) -> Self {
        let mut arguments = BytesMut::new();
        let keys = resources.iter().map(Resource::key);
        keys.chain(values.iter().copied()).for_each(|argument| put_argument(&mut arguments, argument));
        Self { resources: resources.into(), arguments: Box::from(&*arguments), values: values.len() as u64 }
    }

    pub(super) fn resources(&self) -> &[Resource] {
        &self.resources
    }

    pub(crate) fn keys(&self) -> u64 {
        self.resources.len() as u64
    }

    pub(crate) fn values(&self) -> u64 {
        self.values
    }

    /// Appends all keys, then all values.
    pub(crate) fn put(&self, out: &mut BytesMut) {
        out.extend_from_slice(&self.arguments);
    }
}
