//! What the key of a resource holds while it is shared.

/// The value of a resource's key while a group shares it, in place of a token.
///
/// It begins with 64 bytes that are the same for all groups, and the group's name follows; readers
/// are the group without a name. A master tells a holder by the SHA-1 of the first 64 bytes, so
/// that every sentinel has one known digest, whatever groups there are.
#[derive(Clone, Copy, Debug)]
pub struct Sentinel;

impl Sentinel {
    /// What every sentinel begins with, and nothing else does.
    pub const COMMON: &str = "quorlock:shared:................................................";

    /// The SHA-1 by which a master tells any sentinel, in lower-case hexadecimal.
    #[cfg(any(test, feature = "internals"))]
    pub const SHA1_HEX: &str = "0ee54c81939df725e5bdbc0135f8bdddad754920";

    /// The first eight bytes of that: who holds a resource that is shared, in a master's answer.
    pub const HOLDER: u64 = 0x0ee5_4c81_939d_f725;

    /// Stands for a holder where the resource is free and a writer waits for it, or where
    /// the permits that are free are kept for one that has waited for longer.
    pub const WANTED: u64 = 0x7761_6e74_6564_0000;

    /// Returns the sentinel of the group with this name.
    pub fn of(group: &[u8]) -> Vec<u8> {
        [Self::COMMON.as_bytes(), group].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sentinel_has_the_same_known_digest() {
        assert_eq!(Sentinel::COMMON.len(), 64);
        let digest = sha1_smol::Sha1::from(Sentinel::COMMON).digest();
        assert_eq!(digest.to_string(), Sentinel::SHA1_HEX);
        assert_eq!(digest.bytes()[..8], Sentinel::HOLDER.to_be_bytes());
        for group in [&b""[..], b"job:42"] {
            let sentinel = Sentinel::of(group);
            assert_eq!(sentinel.split_at(64), (Sentinel::COMMON.as_bytes(), group));
        }
    }
}
