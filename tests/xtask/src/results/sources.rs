//! The commands whose last result is kept.

/// Of the source that the picture is drawn from.
pub(super) const PICTURED: &str = "bench";

/// A command whose last result is kept.
pub(super) struct Source {
    /// Of its file.
    pub(super) name: &'static str,
    /// The program that writes it,
    pub(super) program: &'static str,
    /// with this argument, or without one that others have.
    pub(super) with: Option<&'static str>,
    /// What its page says about it.
    pub(super) about: &'static str,
    /// The files that can change its result.
    pub(super) depends: &'static [&'static str],
}

/// What every run of clients on real servers depends on.
const CLIENTS: [&str; 3] = ["core/src", "transport-blocking/src", "transport-blocking/host/src"];

const FOREIGN: [&str; 4] = [CLIENTS[0], CLIENTS[1], CLIENTS[2], "tests/examples/foreign"];

const FAILOVERS: [&str; 5] = [CLIENTS[0], CLIENTS[1], CLIENTS[2], "tests/src/chaos", "tests/src/failover"];

const BENCHMARKS: [&str; 6] =
    [CLIENTS[0], CLIENTS[1], CLIENTS[2], "transport-tokio/src", "transport-smol/src", "tests/examples/bench"];

const WORLDS: [&str; 2] = ["core/src", "core/sim/src"];

/// Of several with an argument of a call, the last one is its source.
pub(super) const SOURCES: [Source; 27] = [
    Source {
        name: "chaos",
        program: "chaos",
        with: None,
        about: "clients contend while masters and clients are killed, stopped and emptied",
        depends: &[CLIENTS[0], CLIENTS[1], CLIENTS[2], "tests/src/chaos"],
    },
    Source {
        name: "failover",
        program: "failover",
        with: None,
        about: "clients contend while primaries under sentinels fail over",
        depends: &FAILOVERS,
    },
    Source {
        name: "failover-by-name",
        program: "failover",
        with: Some("--by-name"),
        about: "the same, by a name that leads to the primary",
        depends: &FAILOVERS,
    },
    Source {
        name: "failover-cluster",
        program: "failover",
        with: Some("--cluster"),
        about: "the same in a cluster, whose slots also move",
        depends: &FAILOVERS,
    },
    Source {
        name: "replacing",
        program: "replacing",
        with: None,
        about: "dead masters are replaced while clients run, in the right order and in wrong ones",
        depends: &[
            CLIENTS[0],
            "transport-tokio/src",
            "transport-smol/src",
            CLIENTS[1],
            "tests/src/replacing",
        ],
    },
    Source {
        name: "votes",
        program: "votes",
        with: None,
        about: "which votes are counted, after every history of a server, beside the rule",
        depends: &[CLIENTS[0], CLIENTS[1], CLIENTS[2], "tests/shared/votes"],
    },
    Source {
        name: "simulate",
        program: "simulate",
        with: None,
        about: "simulated worlds with exclusive locks",
        depends: &WORLDS,
    },
    Source {
        name: "simulate-mixed",
        program: "simulate",
        with: Some("--mixed"),
        about: "worlds with locks of every kind on the same names",
        depends: &WORLDS,
    },
    Source {
        name: "simulate-fair",
        program: "simulate",
        with: Some("--fair"),
        about: "worlds in which most clients wait fairly",
        depends: &WORLDS,
    },
    Source {
        name: "simulate-failovers",
        program: "simulate",
        with: Some("--failovers"),
        about: "worlds in which masters with replicas fail over",
        depends: &WORLDS,
    },
    Source {
        name: "simulate-clusters",
        program: "simulate",
        with: Some("--clusters"),
        about: "the same, in clusters whose slots move",
        depends: &WORLDS,
    },
    Source {
        name: "simulate-rebuilds",
        program: "simulate",
        with: Some("--rebuilds"),
        about: "worlds in which masters come back with older data or with that of others",
        depends: &WORLDS,
    },
    Source {
        name: "simulate-handovers",
        program: "simulate",
        with: Some("--handovers"),
        about: "worlds in which locks are handed over while requests are under way",
        depends: &WORLDS,
    },
    Source {
        name: "simulate-replacements",
        program: "simulate",
        with: Some("--replacements"),
        about: "worlds in which a dead master is replaced",
        depends: &WORLDS,
    },
    Source {
        name: "search",
        program: "search",
        with: Some("--all"),
        about: "every order of events among two clients and three masters, up to a bound",
        depends: &["core/src", "tests/search/src"],
    },
    Source {
        name: "faults",
        program: "faults",
        with: None,
        about: "known faults in the code, each of which a test must find",
        depends: &["core", "tests/search", "tests/mutants"],
    },
    Source {
        name: "changes",
        program: "changes",
        with: None,
        about: "small changes of the core, each of which a test must notice",
        depends: &["core/src", "core/tests", "core/sim/tests", "tests/changes"],
    },
    Source {
        name: "loom",
        program: "loom",
        with: None,
        about: "every interleaving of a few threads in hand-written concurrency, up to a bound",
        depends: &["core/src/front", "transport-blocking/src"],
    },
    Source {
        name: PICTURED,
        program: "bench",
        with: None,
        about: "what a lock costs, beside bare sockets and other clients",
        depends: &BENCHMARKS,
    },
    Source {
        name: "handoff",
        program: "bench",
        with: Some("handoff"),
        about: "how a contended lock passes from holder to holder",
        depends: &BENCHMARKS,
    },
    Source {
        name: "kinds",
        program: "bench",
        with: Some("kinds"),
        about: "what the kinds of locks cost, beside a fenced lock",
        depends: &BENCHMARKS,
    },
    Source {
        name: "pairs",
        program: "pairs",
        with: None,
        about: "instructions and allocations of the core for a lock and its release",
        depends: &["core/src", "core/examples/pairs"],
    },
    Source {
        name: "cost",
        program: "cost",
        with: None,
        about: "what fencing, the restart guard and healing cost",
        depends: &CLIENTS,
    },
    Source {
        name: "foreign",
        program: "foreign",
        with: None,
        about: "Quorlock and other Redlock clients exclude each other",
        depends: &FOREIGN,
    },
    Source {
        name: "versions",
        program: "servers",
        with: Some("run"),
        about: "suites of tests on servers of other versions",
        depends: &[
            "core/src",
            "core/sim/src",
            "tests/src",
            "tests/tests",
            "tests/servers",
            "tests/suites.py",
        ],
    },
    Source {
        name: "supervision",
        program: "supervision",
        with: None,
        about: "what `quorlock run` ends, and when",
        depends: &["transport-blocking/command/src", "tests/src/supervision"],
    },
    Source {
        name: "platforms",
        program: "platforms",
        with: None,
        about: "on which platforms the libraries and the command compile",
        depends: &[
            "Cargo.toml",
            "Cargo.lock",
            "core/src",
            "core/sim/src",
            "core/tls/src",
            "transport-tokio/src",
            "transport-smol/src",
            "transport-blocking/src",
            "transport-blocking/host/src",
            "transport-blocking/embedded/src",
            "transport-blocking/command/src",
            "tests/xtask/src/platforms",
        ],
    },
];
