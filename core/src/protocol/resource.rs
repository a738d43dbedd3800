//! What is locked: a key.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use super::printed::Printed;
use super::queue_place::{PLACE, QUEUE};
use super::{ConfigError, Fleet};

/// What is locked: the key under which every master keeps the holder's token.
///
/// Its name is the key without the prefix of the configuration
/// ([`ConfigBuilder::prefix`](crate::ConfigBuilder::prefix)). Errors and guards show the name.
///
/// A name is any 1 to [`Resource::MAX_BYTES`] bytes, but the key must not begin like one of
/// Quorlock's own keys. The key is a plain Redis string, so that every client that follows the
/// Redis distributed-locks page, section "Correct implementation with a single instance", excludes
/// and is excluded by this one.
#[derive(Clone)]
pub struct Resource(
    /// The length of the prefix in [`HEADER`] bytes, then the key. Each lock keeps several
    /// resources, so a resource is no larger than a reference to a slice.
    Arc<[u8]>,
);

impl Resource {
    /// The longest name that is accepted, in bytes. Redis itself allows keys of 512 MiB; a lock's
    /// name needs far less, and it travels in every request.
    pub const MAX_BYTES: usize = 16 * 1024;

    /// The longest prefix that is accepted, in bytes.
    pub(crate) const MAX_PREFIX_BYTES: usize = 1024;

    /// The beginnings of Quorlock's own keys, for messages.
    pub(crate) const RESERVED: &str = "quorlock:fence, quorlock:restart-guard, quorlock:want, quorlock:seat, \
          quorlock:queue or quorlock:place";

    /// Creates a resource with this name, whose key has no prefix. For one with the prefix of a
    /// configuration see [`Config::resource`](crate::Config::resource).
    ///
    /// # Errors
    /// [`ConfigError::EmptyResource`], [`ConfigError::OversizedResource`] and
    /// [`ConfigError::ReservedResource`].
    pub fn new(name: impl AsRef<[u8]>) -> Result<Self, ConfigError> {
        Self::with_prefix("", name.as_ref())
    }

    /// A resource with this name, whose key begins with a prefix of at most
    /// [`Self::MAX_PREFIX_BYTES`].
    pub(crate) fn with_prefix(prefix: &str, name: &[u8]) -> Result<Self, ConfigError> {
        if name.is_empty() {
            return Err(ConfigError::EmptyResource);
        }
        if name.len() > Self::MAX_BYTES {
            return Err(ConfigError::OversizedResource { bytes: name.len() });
        }
        let resource = Self::of(prefix.as_bytes(), name);
        if RESERVED.iter().any(|reserved| resource.key().starts_with(reserved)) {
            return Err(ConfigError::ReservedResource);
        }
        Ok(resource)
    }

    fn of(prefix: &[u8], name: &[u8]) -> Self {
        let length = u16::try_from(prefix.len()).unwrap_or(u16::MAX).to_le_bytes();
        let parts = [&length, prefix, name];
        // A short key is built on the stack, so that only the final slice is allocated.
        let mut small = [0; 128];
        let mut end = 0;
        for part in parts {
            match small.get_mut(end..end + part.len()) {
                Some(place) => place.copy_from_slice(part),
                None => return Self(parts.concat().into()),
            }
            end += part.len();
        }
        Self(small.get(..end).unwrap_or_default().into())
    }

    /// Whether a resource with this prefix can have a key that begins like one of Quorlock's own
    /// keys.
    pub(crate) fn is_prefix_reserved(prefix: &str) -> bool {
        let prefix = prefix.as_bytes();
        let may_meet = |reserved: &&[u8]| prefix.starts_with(reserved) || reserved.starts_with(prefix);
        !prefix.is_empty() && RESERVED.iter().any(may_meet)
    }

    /// The restart guard's own key, as the resource of the rounds that ask about it.
    pub(crate) fn marker() -> Self {
        Self::of(b"", Fleet::MARKER.as_bytes())
    }

    /// Returns the key under which every master counts the fenced grants of this resource. It never
    /// expires, because without it the fencing tokens would restart.
    ///
    /// No two resources share a counter. The counter's key has the hash tag of the resource's key,
    /// so that a proxy which distributes keys by tag keeps the two together: `job` is counted in
    /// `quorlock:fence/{job}`, `{user:7}:mail` in `quorlock:fence:{user:7}:mail`. That is
    /// impossible only for a name that has a closing brace but no tag.
    pub fn counter_key(&self) -> Vec<u8> {
        self.key_of(COUNTER)
    }

    /// Returns the key of the mark that a waiting writer leaves on every master, and that keeps new
    /// readers out for a second. Its name has the resource's hash tag.
    pub fn want_key(&self) -> Vec<u8> {
        self.key_of(WANT)
    }

    /// Returns the resource's key, if `key` is that of a waiting writer's mark.
    pub(crate) fn of_want_key(key: &[u8]) -> Option<&[u8]> {
        let rest = key.strip_prefix(WANT)?;
        rest.strip_prefix(b":").or_else(|| rest.strip_prefix(b"/{")?.strip_suffix(b"}"))
    }

    /// Returns the key of the permit with this index of the semaphore with this name. The permit,
    /// here also called a seat, is a lock like any other. The key has the name's hash tag, so that
    /// all seats are kept together.
    pub fn seat_key(&self, index: u32) -> Vec<u8> {
        self.key_of(format!("{SEAT}:{index}").as_bytes())
    }

    /// One seat of the semaphore with this name, as a resource.
    pub(crate) fn seat(&self, index: u32) -> Self {
        Self::of(b"", &self.seat_key(index))
    }

    /// Returns the key of the mark that a long-waiting request for a permit leaves on a master. It
    /// keeps others from taking the next free seat there. The key begins like that of a seat.
    pub fn next_seat_key(&self) -> Vec<u8> {
        self.key_of(format!("{SEAT}:next").as_bytes())
    }

    /// All seats of the semaphore with this name, as one name to wait for.
    pub(crate) fn seats(&self) -> Self {
        Self::of(b"", &self.key_of(SEAT.as_bytes()))
    }

    /// The key of [`Resource::seats`], if this is the key of a seat.
    pub(crate) fn seats_of(key: &[u8]) -> Option<Vec<u8>> {
        let rest = key.strip_prefix(SEAT.as_bytes())?.strip_prefix(b":")?;
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        (digits > 0).then(|| [SEAT.as_bytes(), rest.get(digits..).unwrap_or_default()].concat())
    }

    /// Whether this is the key of a seat.
    pub(crate) fn is_seat(key: &[u8]) -> bool {
        key.starts_with(SEAT.as_bytes())
    }

    /// One of Quorlock's own keys for the resource, with the resource's hash tag.
    pub(super) fn key_of(&self, kind: &[u8]) -> Vec<u8> {
        let [open, close]: [&[u8]; 2] = if has_hash_tag(self.key()) { [b":", b""] } else { [b"/{", b"}"] };
        [kind, open, self.key(), close].concat()
    }

    /// Returns the name as given.
    pub fn name(&self) -> &[u8] {
        let prefix = self.0.first_chunk::<HEADER>().map_or(0, |length| u16::from_le_bytes(*length));
        self.key().get(prefix.into()..).unwrap_or_default()
    }

    /// Returns the key on the masters: the prefix, if there is one, and the name.
    pub fn key(&self) -> &[u8] {
        self.0.get(HEADER..).unwrap_or_default()
    }
}

/// The number of bytes that hold the length of a prefix.
const HEADER: usize = size_of::<u16>();

/// What no key of a lock may begin with.
const RESERVED: [&[u8]; 6] = [COUNTER, Fleet::MARKER.as_bytes(), WANT, SEAT.as_bytes(), QUEUE, PLACE];

/// The prefix of counters' keys.
const COUNTER: &[u8] = b"quorlock:fence";
/// The prefix of the keys of waiting writers' marks.
const WANT: &[u8] = b"quorlock:want";
/// The prefix of seats' keys.
const SEAT: &str = "quorlock:seat";

/// Whether only a part of the key decides where it is kept: the text between its first opening
/// brace and the next closing one, if not empty (Redis cluster specification, "Hash tags").
fn has_hash_tag(key: &[u8]) -> bool {
    let behind = key.iter().position(|byte| *byte == b'{').and_then(|open| key.get(open + 1..));
    behind.and_then(|rest| rest.iter().position(|byte| *byte == b'}')).is_some_and(|length| length > 0)
}

/// Two resources are the same if their keys are. The prefix is the same for all resources of a
/// configuration.
impl Borrow<[u8]> for Resource {
    fn borrow(&self) -> &[u8] {
        self.key()
    }
}

impl PartialEq for Resource {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Resource {}

impl PartialOrd for Resource {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Resource {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(other.key())
    }
}

impl Hash for Resource {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Printed(self.name()).fmt(f)
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
    use crate::protocol::QueuePlace;

    #[test]
    fn empty_and_oversized_names_are_refused() {
        assert_eq!(Resource::new(""), Err(ConfigError::EmptyResource));
        let long = vec![b'x'; Resource::MAX_BYTES + 1];
        assert_eq!(Resource::new(&long), Err(ConfigError::OversizedResource { bytes: long.len() }));
        assert!(Resource::new(&long[1..]).is_ok());
        assert_eq!(Resource::MAX_BYTES, 16_384);
    }

    #[test]
    fn names_of_keys_that_quorlock_uses_itself_are_refused() {
        let job = Resource::new("job").unwrap();
        let place = job.place_key(QueuePlace::from_bytes([7; QueuePlace::BYTES]));
        let queue = [job.queue_key(), place];
        let others = [job.counter_key(), job.want_key(), job.seat_key(3)];
        for name in others.into_iter().chain(queue) {
            assert_eq!(Resource::new(name), Err(ConfigError::ReservedResource));
        }
        for name in ["fence:a", "restart-guard", "restart-guard:2"] {
            let name = format!("quorlock:{name}");
            assert_eq!(Resource::new(&name), Err(ConfigError::ReservedResource), "{name}");
        }
        assert!(Resource::new("quorlock:job").is_ok());
    }

    #[test]
    fn messages_name_everything_that_is_reserved() {
        for reserved in RESERVED {
            assert!(Resource::RESERVED.contains(std::str::from_utf8(reserved).unwrap()));
        }
    }

    #[test]
    fn keys_beside_a_lock_have_the_same_hash_tag() {
        for (name, ours) in [
            ("doc", ["quorlock:want/{doc}", "quorlock:seat:10/{doc}"]),
            ("{a}:b", ["quorlock:want:{a}:b", "quorlock:seat:10:{a}:b"]),
        ] {
            let resource = Resource::new(name).unwrap();
            let keys = [resource.want_key(), resource.seat_key(10)];
            assert_eq!(keys.each_ref().map(Vec::as_slice), ours.map(str::as_bytes));
            assert!(keys.iter().all(|key| tag(key) == tag(name.as_bytes())), "{name}");
        }
    }

    #[test]
    fn the_key_of_a_place_names_the_resource_of_its_queue() {
        let place = QueuePlace::from_bytes([7; QueuePlace::BYTES]);
        for (name, key) in [("doc", "quorlock:place/{doc}:"), ("{a}:b", "quorlock:place:{a}:b:")] {
            let resource = Resource::new(name).unwrap();
            let own = resource.place_key(place);
            assert_eq!(own, [key.as_bytes(), &place.to_hex()].concat());
            assert_eq!(tag(&own), tag(name.as_bytes()));
            assert_eq!(Resource::of_place_key(&own), Some((name.as_bytes(), &place.to_hex()[..])));
            for other in [resource.queue_key(), resource.want_key()] {
                assert_eq!((tag(&other), Resource::of_place_key(&other)), (tag(name.as_bytes()), None));
            }
        }
        assert_eq!(Resource::of_place_key(b"quorlock:place:short"), None);
    }

    #[test]
    fn only_the_key_of_a_permit_leads_to_the_queue_of_its_semaphore() {
        for name in ["doc", "{a}:b"] {
            let resource = Resource::new(name).unwrap();
            for index in [0, 10] {
                let queue = Resource::seats_of(&resource.seat_key(index));
                assert_eq!(queue.as_deref(), Some(resource.seats().key()), "{name}");
            }
            let others = [name.into(), resource.next_seat_key(), resource.seats().key().into()];
            assert!(others.iter().all(|key| Resource::seats_of(key).is_none()), "{name}");
        }
    }

    #[test]
    fn a_resource_is_found_by_the_bytes_of_its_key() {
        let resource = Resource::with_prefix("app:", b"job").unwrap();
        let all = std::collections::HashSet::from([resource]);
        assert!(all.contains(&b"app:job"[..]) && !all.contains(&b"job"[..]));
    }

    #[test]
    fn a_prefix_is_part_of_the_key_but_not_of_the_name() {
        let resource = Resource::with_prefix("app:", b"job").unwrap();
        assert_eq!((resource.name(), resource.key()), (&b"job"[..], &b"app:job"[..]));
        assert_eq!((resource.to_string(), format!("{resource:?}")), ("job".into(), "Resource(job)".into()));
        assert_eq!(resource.counter_key(), b"quorlock:fence/{app:job}");
        assert_eq!(resource, Resource::new("app:job").unwrap());
        assert_ne!(resource, Resource::new("job").unwrap());
        assert_eq!(Resource::with_prefix("app:", b""), Err(ConfigError::EmptyResource));
        assert!(Resource::with_prefix("app:", b"quorlock:fence").is_ok());
    }

    #[test]
    fn a_prefix_that_could_form_a_reserved_name_is_reserved() {
        for prefix in ["q", "quorlock:", "quorlock:fence", "quorlock:fence/{a", "quorlock:restart-guard:"] {
            assert!(Resource::is_prefix_reserved(prefix), "{prefix}");
        }
        for prefix in ["", "app:", "quorlock:app:", "Q"] {
            assert!(!Resource::is_prefix_reserved(prefix), "{prefix}");
        }
    }

    #[test]
    fn counters_are_beside_their_locks_and_never_shared() {
        let counter = |name: &str| String::from_utf8(Resource::new(name).unwrap().counter_key()).unwrap();
        assert_eq!(counter("job"), "quorlock:fence/{job}");
        assert_eq!(counter("{user:7}:mail"), "quorlock:fence:{user:7}:mail");
        assert_eq!(counter("a{b}"), "quorlock:fence:a{b}");
        assert_eq!(counter("{}b"), "quorlock:fence/{{}b}", "an empty tag is none");
        assert_eq!(counter("{}{b}"), "quorlock:fence/{{}{b}}");
        let names =
            ["b", "{b}", "{{b}}", "a{b}", "c{b}", "/{b}", ":{b}", "{}b", "{b", "b}", "{}{b}", "}{b", "}{b}"];
        let counters: std::collections::BTreeSet<_> = names.iter().map(|name| counter(name)).collect();
        assert_eq!(counters.len(), names.len());
        for name in ["job", "{user:7}:mail", "a{b}", "a{b", "{a", "a{{b}c}"] {
            assert_eq!(tag(counter(name).as_bytes()), tag(name.as_bytes()), "{name}");
        }
    }

    /// The bytes that decide where a key is kept.
    fn tag(key: &[u8]) -> &[u8] {
        let Some(open) = key.iter().position(|byte| *byte == b'{') else { return key };
        match key[open + 1..].iter().position(|byte| *byte == b'}') {
            None | Some(0) => key,
            Some(length) => &key[open + 1..open + 1 + length],
        }
    }

    #[test]
    fn names_that_are_not_text_print_escaped() {
        assert_eq!(Resource::new("invoice:42").unwrap().to_string(), "invoice:42");
        assert_eq!(Resource::new("Prüfung 42").unwrap().to_string(), "Prüfung 42");
        assert_eq!(Resource::new([0xff, b'a', b'\n']).unwrap().to_string(), r"\xffa\n");
        assert_eq!(Resource::new("two\nlines").unwrap().to_string(), r"two\nlines");
    }
}
