//! States of the keys that a script finds.

use crate::commands::Arguments;
use crate::kinds::sentinel_of;
use crate::scripts::Site;

/// The token of the calls, and that of another client.
pub(crate) const OURS: &str = "4f3c2a1b4f3c2a1b4f3c2a1b4f3c2a1b4f3c2a1b";
const OTHER: &str = "99aa88bb99aa88bb99aa88bb99aa88bb99aa88bb";
/// The name of our wait, and the text for an unused entry of a shared key.
pub(crate) const WAIT: &str = "11111111111111111111111111111111";
const FREE: &str = "0000000000000000:----------------------------------------";
/// A group whose name is longer than an entry, and greater than any end of one.
const LONG: &str = "zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz";

/// A lock's key. `SHARED:` has entries: a name, and when they end from now.
pub(crate) const LOCK: [&str; 29] = [
    "",
    "SET KEY OURS PX 2000",
    "SET KEY OTHER PX 2000",
    "RPUSH KEY x",
    "SET KEY SHARED:other+1000 PX 1001",
    "SET KEY SHARED:ours+1000,other+500 PX 1001",
    "SET KEY SHARED:ours-5,other+1000 PX 1001",
    "SET KEY OURS PX 90000",
    // A few are enough where several keys are combined.
    "SET KEY OURS PX 5000",
    "SET KEY OURS",
    "SET KEY OTHER",
    "SET KEY KEPT PX 90000",
    "SET KEY KEPT PX 2000",
    "SET KEY SHARED: PX 2000",
    "SET KEY SHARED:ours+1000 PX 1001",
    "SET KEY SHARED:ours+1000",
    "SET KEY SHARED:ours+90000 PX 90001",
    "SET KEY SHARED:other+1000,ours+500 PX 1001",
    "SET KEY SHARED:other+500,ours+500 PX 501",
    "SET KEY SHARED:other-5,free,other-7,other+800 PX 1001",
    "SET KEY SHARED:kept+90000,other+10 PX 90001",
    "SET KEY SHARED:kept+1000,ours+1000 PX 1001",
    "SET KEY LONG:ours+1000,other+500 PX 1001",
    "SET KEY SHARED:ours+500,other+90000 PX 90001",
    "SET KEY SHARED:other-5,other+90000 PX 90001",
    "SET KEY SHARED:other+0,ours+1 PX 2",
    "SET KEY OURS PX 1",
    "SET KEY SHARED:ours+2 PX 1",
    // Our entry ends in that millisecond.
    "SET KEY SHARED:other+2,ours+1 PX 1",
];
/// How many of them are combined with each other.
pub(crate) const MAIN: usize = 8;

/// A counter. Grants are raised to 7.
pub(crate) const COUNTER: [&str; 13] = [
    "SET KEY 6",
    "",
    "SET KEY 7",
    "SET KEY 8 PX 9000",
    "SET KEY 9007199254740990",
    "SET KEY 9007199254740991",
    "SET KEY 9007199254740992",
    "RPUSH KEY x",
    "SET KEY abc",
    "SET KEY nan",
    "SET KEY inf",
    "SET KEY -3",
    "SET KEY 6.5",
];

/// A mark of a waiter.
pub(crate) const MARK: [&str; 6] = [
    "",
    "SET KEY WAIT PX 700",
    "SET KEY another PX 700",
    "SET KEY another",
    "RPUSH KEY x",
    "SET KEY WAIT PX 1",
];

/// The mark for the next seat. It says since when a waiter waits, in milliseconds from now, the
/// number of seats that it wants, and which waiter it is.
pub(crate) const NEXT: [&str; 11] = [
    "",
    "SET KEY MARKED:-90,1,another PX 700",
    "SET KEY MARKED:-90,1,WAIT PX 700",
    "SET KEY MARKED:-90,1,WAIT PX 400",
    "SET KEY MARKED:-90,2,a1 PX 700",
    "SET KEY MARKED:-90,1,a1",
    "SET KEY MARKED:-90,1,a1 PX 700",
    "SET KEY MARKED:-10,1,a1 PX 700",
    "SET KEY MARKED:-10,2,a1 PX 300",
    "SET KEY MARKED:-90,1,a1 PX 1",
    "RPUSH KEY x",
];

/// A seat, beside the states of a lock that a claim distinguishes.
pub(crate) const SEAT: [&str; 6] = [
    "",
    "SET KEY OTHER PX 2000",
    "SET KEY OTHER PX 900",
    "SET KEY OTHER",
    "SET KEY OURS PX 1500",
    "RPUSH KEY x",
];

/// A queue: its members by their numbers, and the largest one. Our place is `1`.
pub(crate) const QUEUE: [&str; 14] = [
    "",
    "ZADD KEY 1 1 1 ~",
    "ZADD KEY 1 2 1 ~",
    "ZADD KEY 1 2 2 1 2 ~",
    "ZADD KEY 1 1 2 2 2 ~",
    // These are not combined with each state of the lock.
    "ZADD KEY 9 ~",
    "ZADD KEY 1 10 2 2 3 1 3 ~",
    "ZADD KEY 7 1 7 2 7 ~",
    "ZADD KEY 1 1",
    "ZADD KEY 1 2",
    "ZADD KEY 9007199254740990 2 9007199254740990 ~",
    "ZADD KEY 9007199254740991 2 9007199254740991 ~",
    "SET KEY x",
    "RPUSH KEY x",
];
/// How many of them are combined with each state of the lock.
pub(crate) const MAIN_QUEUE: usize = 5;
/// The keys of another place: how long its turn is.
pub(crate) const NEXT_PLACE: [&str; 8] = [
    "",
    "SET KEY 50 PX 700",
    "SET KEY 50 PX 1",
    "SET KEY 50 PX 30",
    "SET KEY 50",
    "SET KEY abc PX 700",
    "SET KEY 1.5 PX 700",
    "RPUSH KEY x",
];
/// The key of our own place.
pub(crate) const OWN_PLACE: [&str; 3] = ["", "SET KEY 50 PX 700", "RPUSH KEY x"];

/// The marker of the restart guard: its id, when it was written and from when the master votes,
/// from now, and the numbers of the fleet.
pub(crate) const MARKER: [&str; 15] = [
    "SET KEY ID:-9,-4,5,3",
    "",
    "SET KEY ID:-9,+0,5,3",
    "SET KEY ID:-9,+1,5,3",
    "SET KEY ID:-9,+70,5,3",
    "SET KEY ID:+0,+0,5,3",
    "SET KEY ID:+1,+0,5,3",
    "SET KEY ID:-9,-4,6,3",
    "SET KEY ID:-9,-4,5,4",
    "SET KEY ID:-9,-4,5,3,more",
    "SET KEY ANOTHER:-9,-4,5,3",
    "SET KEY ANOTHER:+9,-4,5,3",
    "SET KEY ANOTHER:-9,-4,5,4",
    "SET KEY abc",
    "RPUSH KEY x",
];

/// The keys and their states.
#[derive(Clone, Default, Debug)]
pub(crate) struct Found(Vec<(String, &'static str)>);

impl Found {
    /// This state too, of a key whose states are a part of all.
    pub(crate) fn and(&self, key: &str, state: &'static str) -> Self {
        let mut found = self.clone();
        found.0.retain(|(known, _)| known != key);
        found.0.push((key.to_owned(), state));
        found
    }

    /// Whether a key is in its last millisecond when the script is called.
    pub(crate) fn is_ending(&self) -> bool {
        self.0.iter().any(|(_, state)| state.ends_with(" PX 1"))
    }
}

/// The commands that make the keys.
pub(crate) fn made(found: &Found, site: &Site) -> Vec<Arguments> {
    let commands = found.0.iter().filter(|(_, state)| !state.is_empty());
    commands.map(|(key, state)| state.split(' ').map(|word| meant(word, key, site)).collect()).collect()
}

fn meant(word: &str, key: &str, site: &Site) -> Vec<u8> {
    let kept = || sha1_smol::Sha1::from(OURS).digest().to_string();
    let instant = |from_now: &str| site.now.checked_add_signed(from_now.parse().unwrap()).unwrap();
    let entries = |group: &str, entries: &str| {
        let mut value = sentinel_of(group);
        for entry in entries.split(',').filter(|entry| !entry.is_empty()) {
            let (name, end) = entry.split_at(entry.find(['+', '-']).unwrap_or(entry.len()));
            let token = match name {
                "free" => {
                    value.extend_from_slice(FREE.as_bytes());
                    continue;
                }
                "ours" => OURS.to_owned(),
                "kept" => kept(),
                _ => OTHER.to_owned(),
            };
            value.extend(format!("{:016}:{token}", instant(end)).bytes());
        }
        value
    };
    match word.split_once(':') {
        Some(("SHARED", all)) => return entries("", all),
        Some(("LONG", all)) => return entries(LONG, all),
        Some(("MARKED", all)) => {
            let [since, seats, name] = all.split(',').collect::<Vec<_>>()[..] else { panic!("{word}") };
            let name = if name == "WAIT" { WAIT } else { name };
            return format!("{} {seats} {name}", instant(since)).into_bytes();
        }
        Some((id @ ("ID" | "ANOTHER"), all)) => {
            let id = if id == "ID" { &site.replication_id } else { "0123456789abcdef" };
            let [born, opens, fleet] = all.splitn(3, ',').collect::<Vec<_>>()[..] else { panic!("{word}") };
            let fleet = fleet.replace(',', " ");
            return format!("{id} {} {} {fleet}", instant(born), instant(opens)).into_bytes();
        }
        _ => {}
    }
    match word {
        "KEY" => key.into(),
        "OURS" => OURS.into(),
        "OTHER" => OTHER.into(),
        "WAIT" => WAIT.into(),
        "KEPT" => kept().into_bytes(),
        word => word.into(),
    }
}
