//! The scenarios of several resources and of those that are shared.

use super::scenario::{Aim, Flaw, Scenario};

const WRITES: &[Aim] = &[Aim::Write(0)];
const READS: &[Aim] = &[Aim::Read(0)];
/// The claims of a permit of a semaphore with one seat, and with two.
const ONE_SEAT: &[Aim] = &[Aim::Write(0)];
const TWO_SEATS: &[Aim] = &[Aim::Write(0), Aim::Write(1)];
/// The claims of two batches that have one resource in common.
const FIRST_TWO: &[Aim] = &[Aim::Write(0), Aim::Write(1)];
const LAST_TWO: &[Aim] = &[Aim::Write(1), Aim::Write(2)];

impl Scenario {
    /// A reader and a writer.
    pub const READ_WRITE: Self = Self {
        name: "read-write",
        about: "a reader and a writer, one attempt each, unbounded delay, no loss",
        claims: [READS, WRITES, &[]],
        ..Self::DELAY
    };

    /// The same over a connection that ends.
    pub const READ_WRITE_LOSS: Self = Self {
        name: "read-write-loss",
        about: "the same with a shorter TTL, and one connection that ends or is given up at any time",
        ttl: 3,
        losses: Some(1),
        ..Self::READ_WRITE
    };

    /// A reader that extends.
    pub const READ_EXTEND: Self = Self {
        name: "read-extend",
        about: "a reader that extends with a shorter or a longer TTL and releases, and a writer; unbounded delay",
        extensions: [1, 0],
        extension_ttls: &[3, 5],
        ..Self::READ_WRITE
    };

    /// The same over a connection that ends.
    pub const READ_EXTEND_LOSS: Self = Self {
        name: "read-extend-loss",
        about: "a reader that extends, a writer, and one connection that ends or is given up at any time",
        ttl: 3,
        extension_ttls: &[3],
        losses: Some(1),
        ..Self::READ_EXTEND
    };

    /// Readers beside the one that is searched.
    pub const READ_CROWD: Self = Self {
        name: "read-crowd",
        about: "a reader and a writer among any number of other readers with lives of any length",
        ttl: 3,
        crowd: true,
        ..Self::READ_WRITE
    };

    /// The same with an extension.
    pub const READ_CROWD_EXTEND: Self = Self {
        name: "read-crowd-extend",
        about: "the same, and the reader extends",
        extensions: [1, 0],
        extension_ttls: &[3],
        ..Self::READ_CROWD
    };

    /// Three clients.
    pub const READ_READ_WRITE: Self = Self {
        name: "read-read-write",
        about: "two readers and a writer, one attempt each, unbounded delay, no loss",
        ttl: 3,
        claims: [READS, READS, WRITES],
        ..Self::DELAY
    };

    /// A writer that becomes a reader, beside a reader.
    pub const DOWNGRADE: Self = Self {
        name: "downgrade",
        about: "a writer that downgrades its lock, and a reader; unbounded delay, no loss",
        ttl: 3,
        claims: [WRITES, READS, &[]],
        downgraded: [READS, &[], &[]],
        ..Self::DELAY
    };

    /// The same over a connection that ends.
    pub const DOWNGRADE_LOSS: Self = Self {
        name: "downgrade-loss",
        about: "the same, and one connection that ends or is given up at any time",
        losses: Some(1),
        ..Self::DOWNGRADE
    };

    /// A writer that becomes a reader, beside readers and a writer.
    pub const DOWNGRADE_CROWD: Self = Self {
        name: "downgrade-crowd",
        about: "a writer that downgrades its lock, and another writer, among any number of readers with lives of any length",
        claims: [WRITES, WRITES, &[]],
        crowd: true,
        ..Self::DOWNGRADE
    };

    /// Three clients, of which one downgrades.
    pub const DOWNGRADE_READ_WRITE: Self = Self {
        name: "downgrade-read-write",
        about: "a writer that downgrades its lock, a reader, and another writer; unbounded delay, no loss",
        claims: [WRITES, READS, WRITES],
        ..Self::DOWNGRADE
    };

    /// Two batches.
    pub const BATCH: Self = Self {
        name: "batch",
        about: "two batches of two resources with one in common, one attempt each, unbounded delay, no loss",
        claims: [FIRST_TWO, LAST_TWO, &[]],
        ..Self::DELAY
    };

    /// A batch that extends over a connection that ends.
    pub const BATCH_EXTEND_LOSS: Self = Self {
        name: "batch-extend-loss",
        about: "the same, one of them extends, and one connection ends or is given up at any time",
        ttl: 3,
        extensions: [1, 0],
        extension_ttls: &[3],
        losses: Some(1),
        ..Self::BATCH
    };

    /// A batch that loses a key on a master that it does not need.
    pub const BATCH_LOST: Self = Self {
        name: "batch-lost",
        about: "two batches, one extends; a master loses one key of a batch that all three masters have",
        ttl: 3,
        extensions: [1, 0],
        extension_ttls: &[4],
        releases: false,
        evictions: 1,
        ..Self::BATCH
    };

    /// One reader among any number of writers and other readers.
    pub const ALONE_READ: Self = Self {
        name: "alone-read",
        about: "a reader among any number of writers and readers: an extension, and a connection that ends or is given up",
        claims: [READS, WRITES, &[]],
        crowd: true,
        extension_ttls: &[3],
        ttl: 3,
        ..Self::ALONE_EXTEND
    };

    /// One batch among any number of other claims.
    pub const ALONE_BATCH: Self = Self {
        name: "alone-batch",
        about: "a batch among any number of other claims: an extension, and a connection that ends or is given up",
        claims: [FIRST_TWO, LAST_TWO, &[]],
        extension_ttls: &[3],
        ttl: 3,
        ..Self::ALONE_EXTEND
    };

    /// One batch among any number of other claims that heals.
    pub const ALONE_BATCH_HEAL: Self = Self {
        name: "alone-batch-heal",
        about: "a batch among any number of other claims: two extensions with healing, a master loses its keys and is in quarantine",
        claims: [FIRST_TWO, LAST_TWO, &[]],
        ..Self::ALONE_HEAL
    };

    /// One reader among any number of writers that heals.
    pub const ALONE_READ_HEAL: Self = Self {
        name: "alone-read-heal",
        about: "a reader among any number of writers: two extensions with healing, a master loses its keys and is in quarantine",
        claims: [READS, WRITES, &[]],
        ..Self::ALONE_HEAL
    };

    /// A semaphore with one permit.
    pub const PERMIT: Self = Self {
        name: "permit",
        about: "two clients that seek the one permit of a semaphore, unbounded delay, no loss",
        claims: [ONE_SEAT, ONE_SEAT, &[]],
        permits: true,
        ttl: 3,
        ..Self::DELAY
    };

    /// The same over a connection that ends.
    pub const PERMIT_LOSS: Self = Self {
        name: "permit-loss",
        about: "the same, and one connection that ends or is given up at any time",
        losses: Some(1),
        ..Self::PERMIT
    };

    /// A semaphore with two permits.
    pub const PERMITS: Self = Self {
        name: "permits",
        about: "two clients that seek a permit of a semaphore with two, unbounded delay, no loss",
        claims: [TWO_SEATS, TWO_SEATS, &[]],
        ..Self::PERMIT
    };

    /// More clients than permits.
    pub const PERMITS_THREE: Self = Self {
        name: "permits-three",
        about: "three clients that seek a permit of a semaphore with two, unbounded delay, no loss",
        claims: [TWO_SEATS, TWO_SEATS, TWO_SEATS],
        ..Self::PERMIT
    };

    /// A reader and a writer with numbers.
    pub const READ_FENCED: Self = Self {
        name: "read-fenced",
        about: "no assumption about time: a reader and a writer, numbered; keys vanish, answers are lost, requests come late",
        claims: [READS, WRITES, &[]],
        // A reader does not increment counters, so it takes a counter of two for one master to be
        // ahead of the others.
        counted: 2,
        ..Self::FENCED
    };

    /// The same with a second lock of the writer.
    pub const READ_FENCED_AGAIN: Self = Self {
        name: "read-fenced-again",
        about: "the same without lost answers, and a second lock of the writer behind its first, lost or granted",
        claims: [READS, WRITES, &[]],
        locks: [1, 2],
        ..Self::FENCED_AGAIN
    };

    /// Two batches with numbers.
    pub const BATCH_FENCED: Self = Self {
        name: "batch-fenced",
        about: "no assumption about time, no lost answers: a numbered batch, and a numbered lock of one of its resources",
        claims: [FIRST_TWO, WRITES, &[]],
        losses: Some(0),
        ..Self::FENCED
    };

    /// Masters that count their readers.
    pub const READERS_COUNTED: Self = Self {
        name: "readers-counted",
        about: "masters that count readers instead of naming them: two guards that exclude each other are valid at once",
        flaw: Some(Flaw::ReadersCounted),
        guards_have_keys: false,
        releases: false,
        ..Self::READ_CROWD
    };

    /// Masters on which the key lives as long as the last reader.
    pub const READERS_CUT_SHORT: Self = Self {
        name: "readers-cut-short",
        about: "masters on which the key lives as long as the last reader: two guards that exclude each other are valid at once",
        flaw: Some(Flaw::KeyEndsWithTheLastReader),
        ..Self::READERS_COUNTED
    };

    /// A holder that calls itself exclusive until a quorum has heard that it shares.
    pub const DOWNGRADED_BY_QUORUM: Self = Self {
        name: "downgraded-by-quorum",
        about: "a holder that calls itself exclusive until a quorum has heard of its downgrade: a reader is valid beside it",
        flaw: Some(Flaw::WritesUntilShared),
        releases: false,
        ..Self::DOWNGRADE
    };

    /// Masters that extend a part of a batch.
    pub const BATCH_BY_ANY_KEY: Self = Self {
        name: "batch-by-any-key",
        about: "masters that grant an extension of a batch where any of its keys is ours: a guard without keys",
        flaw: Some(Flaw::BatchExtendedByAnyKey),
        ..Self::BATCH_LOST
    };

    /// Masters that number a batch key by key.
    pub const BATCH_BY_EACH_KEY: Self = Self {
        name: "batch-by-each-key",
        about: "masters that count each key of a batch by itself: a later grant of one resource has a smaller number",
        flaw: Some(Flaw::BatchNumbersEachKey),
        ..Self::BATCH_FENCED
    };

    /// Every scenario that has a name.
    pub const NAMED: &'static [Self] = &[
        Self::DELAY,
        Self::ONE_LOSS,
        Self::TRIES,
        Self::LOSS,
        Self::CRASH,
        Self::TWICE,
        Self::CANCEL,
        Self::OVERDUE,
        Self::STALE,
        Self::RETRY,
        Self::RETRY_LOSS,
        Self::EXTEND,
        Self::EXTEND_LOSS,
        Self::EXTEND_TWICE,
        Self::ALONE,
        Self::ALONE_EXTEND,
        Self::ALONE_TWICE,
        Self::ALONE_OVERDUE,
        Self::ALONE_STALE,
        Self::ALONE_RETRY,
        Self::ALONE_RENEW,
        Self::FENCED,
        Self::FENCED_AGAIN,
        Self::FENCED_AGAIN_LOSS,
        Self::FENCED_TWICE,
        Self::FENCED_RETRY,
        Self::FENCED_HEAL,
        Self::FENCED_DELAY,
        Self::HEAL,
        Self::ALONE_HEAL,
        Self::ALONE_HEAL_SHORT,
        Self::ALONE_HEAL_LOSS,
        Self::READ_WRITE,
        Self::READ_WRITE_LOSS,
        Self::READ_EXTEND,
        Self::READ_EXTEND_LOSS,
        Self::READ_CROWD,
        Self::READ_CROWD_EXTEND,
        Self::READ_READ_WRITE,
        Self::DOWNGRADE,
        Self::DOWNGRADE_LOSS,
        Self::DOWNGRADE_CROWD,
        Self::DOWNGRADE_READ_WRITE,
        Self::BATCH,
        Self::BATCH_EXTEND_LOSS,
        Self::BATCH_LOST,
        Self::ALONE_READ,
        Self::ALONE_BATCH,
        Self::ALONE_BATCH_HEAL,
        Self::ALONE_READ_HEAL,
        Self::PERMIT,
        Self::PERMIT_LOSS,
        Self::PERMITS,
        Self::PERMITS_THREE,
        Self::READ_FENCED,
        Self::READ_FENCED_AGAIN,
        Self::BATCH_FENCED,
        Self::HEAL_AT_ONCE,
        Self::HEAL_IN_QUARANTINE,
        Self::AMNESIA,
        Self::DRIFT,
        Self::TRIES_UNSETTLED,
        Self::READERS_COUNTED,
        Self::READERS_CUT_SHORT,
        Self::DOWNGRADED_BY_QUORUM,
        Self::BATCH_BY_ANY_KEY,
        Self::BATCH_BY_EACH_KEY,
    ];

    /// The scenario of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::NAMED.iter().find(|scenario| scenario.name == name).cloned()
    }
}
