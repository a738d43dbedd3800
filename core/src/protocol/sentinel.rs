//! The value of a resource's key while it is shared.

/// The beginning of the value of a resource's key while a group shares it. The entries of the
/// sharers follow (`wire/script/many.rs`). (It has nothing to do with Redis Sentinel.)
///
/// It begins with 64 bytes that are the same for all groups. The length of the group's name, `:`
/// and the name follow, so that no sentinel is the beginning of another one; readers are the group
/// without a name. A master identifies a holder by the SHA-1 of the first 64 bytes, so that all
/// sentinels have the same known digest, whatever their group.
#[derive(Clone, Copy, Debug)]
pub struct Sentinel;

impl Sentinel {
    /// The common beginning of all sentinels. No other value has it.
    pub const COMMON: &str = "quorlock:shared:................................................";

    /// The SHA-1 by which a master identifies any sentinel, in lower-case hexadecimal.
    #[cfg(any(test, feature = "internals"))]
    pub const SHA1_HEX: &str = "0ee54c81939df725e5bdbc0135f8bdddad754920";

    /// The first eight bytes of that SHA-1. A master's answer has them as the holder of a shared
    /// resource.
    pub const HOLDER: u64 = 0x0ee5_4c81_939d_f725;

    /// What a master's answer has as the holder if the resource is free but a writer waits for it,
    /// or if the free permits are reserved for a longer-waiting request.
    pub const WANTED: u64 = 0x7761_6e74_6564_0000;

    /// Returns the sentinel of the group with this name.
    pub fn of(group: &[u8]) -> Vec<u8> {
        [Self::COMMON.as_bytes(), format!("{}:", group.len()).as_bytes(), group].concat()
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
        for (group, rest) in [(&b""[..], &b"0:"[..]), (b"job:42", b"6:job:42")] {
            let sentinel = Sentinel::of(group);
            assert_eq!(sentinel.split_at(64), (Sentinel::COMMON.as_bytes(), rest));
        }
    }
}
