//! The scenarios that have a name.

use super::scenario::{Aim, Flaw, Scenario};

impl Scenario {
    /// Two clients, one attempt each, on a network with any delay that loses and closes nothing.
    pub const DELAY: Self = Self {
        name: "delay",
        about: "two clients, one attempt each, unbounded delay, no loss",
        alone: false,
        claims: [&[Aim::Write(0)], &[Aim::Write(0)], &[]],
        permits: false,
        downgraded: [&[]; 3],
        crowd: false,
        flaw: None,
        ttl: 4,
        attempts: [1, 1],
        locks: [1, 1],
        timeout: None,
        extensions: [0, 0],
        extension_ttls: &[],
        renews: None,
        releases: true,
        cancels: false,
        losses: Some(0),
        gives_up: true,
        closes: true,
        overdue: false,
        stale: false,
        crashes: 0,
        crash_keeps_data: true,
        evictions: 0,
        duplicates: 0,
        early: 1,
        late: 0,
        guards_have_keys: true,
        fenced: false,
        counted: 0,
        asynchronous: false,
        healing: false,
        settles: false,
        one_wins: false,
        quarantine: false,
        longer_ttl: 0,
    };

    /// The same, and connections end or are given up once.
    pub const ONE_LOSS: Self = Self {
        name: "one-loss",
        about: "two clients, one attempt each, and one connection that ends or is given up at any time",
        losses: Some(1),
        ..Self::DELAY
    };

    /// Any number of connections end or are given up, any number of times.
    pub const LOSS: Self = Self {
        name: "loss",
        about: "two clients, one attempt each, unbounded delay, and connections that end or are given up any number of times",
        ttl: 3,
        losses: None,
        ..Self::DELAY
    };

    /// Single tries at the same time. One of them must not be told that another holds the lock,
    /// unless the other gets the lock or may get it.
    pub const TRIES: Self = Self {
        name: "tries",
        about: "two clients with a single try each, and a crash of a master that keeps its keys: not both are told that another holds it",
        ttl: 3,
        crashes: 1,
        gives_up: false,
        releases: false,
        settles: true,
        one_wins: true,
        ..Self::DELAY
    };

    /// The same where a try ends with its first round, as other clients' tries do.
    pub const TRIES_UNSETTLED: Self = Self {
        name: "tries-unsettled",
        about: "the same where split votes are not settled: both clients are told that another holds the lock, and none has it",
        settles: false,
        ..Self::TRIES
    };

    /// A crash of a master that keeps its keys.
    pub const CRASH: Self = Self {
        name: "crash",
        about: "two clients, one attempt each, a lost connection, and a crash of a master that keeps its keys",
        crashes: 1,
        ..Self::ONE_LOSS
    };

    /// A crash of a master that loses its keys: outside what the protocol assumes.
    pub const AMNESIA: Self = Self {
        name: "amnesia",
        about: "a crash of a master that loses its keys: outside the assumptions, and two guards are valid at once",
        crashes: 1,
        crash_keeps_data: false,
        guards_have_keys: false,
        ..Self::DELAY
    };

    /// Clocks that differ by more than the drift: outside what the protocol assumes.
    pub const DRIFT: Self = Self {
        name: "drift",
        about: "masters' clocks faster than the drift allows: outside the assumptions, and two guards are valid at once",
        early: 2,
        guards_have_keys: false,
        ..Self::DELAY
    };

    /// A request that was left behind is executed twice.
    pub const TWICE: Self = Self {
        name: "twice",
        about: "two clients, one attempt each, a lost connection, and a request left behind on it that is executed twice",
        duplicates: 1,
        ..Self::ONE_LOSS
    };

    /// Extensions, shorter and longer than the lock's own TTL, and releases.
    pub const EXTEND: Self = Self {
        name: "extend",
        about: "one client extends with a shorter or a longer TTL and releases, the other seeks the lock",
        extensions: [1, 0],
        extension_ttls: &[3, 5],
        ..Self::DELAY
    };

    /// Extensions over connections that end.
    pub const EXTEND_LOSS: Self = Self {
        name: "extend-loss",
        about: "the same, and one connection that ends or is given up at any time",
        losses: Some(1),
        ..Self::EXTEND
    };

    /// Two extensions under way at once.
    pub const EXTEND_TWICE: Self = Self {
        name: "extend-twice",
        about: "one client extends twice, shorter or longer, the other seeks the lock",
        extensions: [2, 0],
        ..Self::EXTEND
    };

    /// A second attempt behind a lost first one.
    pub const RETRY: Self = Self {
        name: "retry",
        about: "one client makes two attempts, each with its own token, the other one; unbounded delay",
        attempts: [2, 1],
        ..Self::DELAY
    };

    /// A second attempt over connections that end.
    pub const RETRY_LOSS: Self = Self {
        name: "retry-loss",
        about: "the same, and one connection that ends or is given up at any time",
        losses: Some(1),
        ..Self::RETRY
    };

    /// Callers that give up.
    pub const CANCEL: Self = Self {
        name: "cancel",
        about: "clients that give their locks up at any time, and one connection that ends or is given up",
        cancels: true,
        ..Self::ONE_LOSS
    };

    /// Answers that are reported as late and come after all, and keys that live longer than they
    /// should.
    pub const OVERDUE: Self = Self {
        name: "overdue",
        about: "answers that are reported as late and arrive after all, one lost connection, masters whose clocks are slow or fast",
        overdue: true,
        late: 1,
        ..Self::ONE_LOSS
    };

    /// Connections that were quiet for long: the attempt is repeated.
    pub const STALE: Self = Self {
        name: "stale",
        about: "one connection that turns out to have been dead for long, for which the attempt is repeated",
        stale: true,
        ..Self::ONE_LOSS
    };

    /// One client among any number of others.
    pub const ALONE: Self = Self {
        name: "alone",
        about: "one client among any number of others, unbounded delay and loss",
        alone: true,
        losses: None,
        ..Self::DELAY
    };

    /// One client among any number of others that extends.
    pub const ALONE_EXTEND: Self = Self {
        name: "alone-extend",
        about: "one client among any number of others: a shorter or longer extension, and a connection that ends",
        extensions: [1, 0],
        extension_ttls: &[3, 5],
        losses: Some(1),
        ..Self::ALONE
    };

    /// One client among any number of others with two extensions under way.
    pub const ALONE_TWICE: Self = Self {
        name: "alone-twice",
        about: "one client among any number of others: two extensions, shorter or longer, unbounded delay",
        extensions: [2, 0],
        losses: Some(0),
        ..Self::ALONE_EXTEND
    };

    /// One client among any number of others whose answers are reported as late.
    pub const ALONE_OVERDUE: Self = Self {
        name: "alone-overdue",
        about: "one client among any number of others: an extension, late answers that arrive after all, a connection that ends",
        extension_ttls: &[5],
        overdue: true,
        ..Self::ALONE_EXTEND
    };

    /// One client among any number of others on connections that were quiet for long.
    pub const ALONE_STALE: Self = Self {
        name: "alone-stale",
        about: "one client among any number of others: a connection that was long dead, for which the attempt is repeated",
        losses: Some(1),
        stale: true,
        ..Self::ALONE
    };

    /// One client among any number of others with a second attempt.
    pub const ALONE_RETRY: Self = Self {
        name: "alone-retry",
        about: "one client among any number of others: two attempts, each with its own token, and a connection that ends",
        attempts: [2, 0],
        losses: Some(1),
        ..Self::ALONE
    };

    /// One client among any number of others that is renewed in the background.
    pub const ALONE_RENEW: Self = Self {
        name: "alone-renew",
        about: "one client among any number of others: renewal in the background, unbounded delay",
        ttl: 5,
        renews: Some(8),
        losses: Some(0),
        ..Self::ALONE
    };

    /// Fenced locks, and no assumption about time.
    pub const FENCED: Self = Self {
        name: "fenced",
        about: "no assumption about time: two clients, one numbered attempt each; keys vanish, answers are lost, requests come late",
        fenced: true,
        counted: 1,
        asynchronous: true,
        losses: None,
        gives_up: false,
        guards_have_keys: false,
        ..Self::DELAY
    };

    /// The same, with two attempts of one client.
    pub const FENCED_AGAIN: Self = Self {
        name: "fenced-again",
        about: "the same without lost answers, and a second lock of one client behind its first, lost or granted",
        locks: [2, 1],
        counted: 0,
        losses: Some(0),
        ..Self::FENCED
    };

    /// The same over connections that end.
    pub const FENCED_AGAIN_LOSS: Self = Self {
        name: "fenced-again-loss",
        about: "the same, and connections that end any number of times",
        losses: None,
        ..Self::FENCED_AGAIN
    };

    /// The same as [`Scenario::FENCED`], with an acquisition that is executed twice.
    pub const FENCED_TWICE: Self = Self {
        name: "fenced-twice",
        about: "no assumption about time, no lost answers, and an acquisition that is executed once more at any later time",
        duplicates: 1,
        locks: [1, 1],
        ..Self::FENCED_AGAIN
    };

    /// The same, with two attempts for one lock.
    pub const FENCED_RETRY: Self = Self {
        name: "fenced-retry",
        about: "no assumption about time, no lost answers, and a second attempt for the same lock behind a lost one",
        attempts: [2, 1],
        locks: [1, 1],
        ..Self::FENCED_AGAIN
    };

    /// Extensions of fenced locks, healing among them.
    pub const FENCED_HEAL: Self = Self {
        name: "fenced-heal",
        about: "no assumption about time: one client extends its numbered lock, which is put back where it is missing",
        extensions: [1, 0],
        extension_ttls: &[4],
        healing: true,
        counted: 0,
        ..Self::FENCED
    };

    /// Fenced locks under the assumptions.
    pub const FENCED_DELAY: Self = Self {
        name: "fenced-delay",
        about: "two clients, one numbered attempt each, unbounded delay, no loss: all that holds without numbers, too",
        ttl: 3,
        fenced: true,
        counted: 1,
        ..Self::DELAY
    };

    /// Healing behind a master that lost its keys and keeps quiet.
    pub const HEAL: Self = Self {
        name: "heal",
        about: "one client extends and heals, a master loses its keys and is in quarantine, the other client seeks the lock",
        ttl: 3,
        extensions: [1, 0],
        extension_ttls: &[3],
        releases: false,
        crashes: 1,
        crash_keeps_data: false,
        healing: true,
        quarantine: true,
        ..Self::DELAY
    };

    /// The same without quarantine: outside what the protocol assumes.
    pub const HEAL_AT_ONCE: Self = Self {
        name: "heal-at-once",
        about: "the same without quarantine: outside the assumptions, and two guards are valid at once",
        quarantine: false,
        guards_have_keys: false,
        ..Self::HEAL
    };

    /// One client among any number of others that heals and counts on it.
    pub const ALONE_HEAL: Self = Self {
        name: "alone-heal",
        about: "one client among any number of others: two extensions with healing, a master loses its keys and is in quarantine",
        alone: true,
        extensions: [2, 0],
        releases: true,
        ..Self::HEAL
    };

    /// The same beside clients with a longer TTL.
    pub const ALONE_HEAL_SHORT: Self = Self {
        name: "alone-heal-short",
        about: "one client among any number of others with longer TTLs: two extensions with healing, a master loses its keys and is in quarantine",
        ttl: 4,
        extension_ttls: &[4],
        longer_ttl: 2,
        releases: false,
        ..Self::ALONE_HEAL
    };

    /// Masters whose restored key counts before the end of the quarantine.
    pub const HEAL_IN_QUARANTINE: Self = Self {
        name: "heal-in-quarantine",
        about: "the same with masters that count in their quarantine as soon as the key was restored: a guard without keys",
        flaw: Some(Flaw::RestoredKeyCountsInQuarantine),
        ..Self::ALONE_HEAL_SHORT
    };

    /// The same over a connection that ends.
    pub const ALONE_HEAL_LOSS: Self = Self {
        name: "alone-heal-loss",
        about: "one client among any number of others: two extensions with healing, and a connection that ends or is given up",
        crashes: 0,
        losses: Some(1),
        ..Self::ALONE_HEAL
    };
}
