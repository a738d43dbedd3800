//! What the measurements should be.

/// What a column of a way should be, in a table that begins so.
pub(crate) struct Target {
    pub(crate) table: &'static str,
    pub(crate) way: &'static str,
    pub(crate) column: &'static str,
    pub(crate) target: &'static str,
}

const fn of(table: &'static str, way: &'static str, column: &'static str, target: &'static str) -> Target {
    Target { table, way, column, target }
}

const THREE: &str = "One caller, 3 masters";
const FIVE: &str = "One caller, 5 masters";
const MANY: &str = "64 workers, 3 masters";
const MANY_OF_FIVE: &str = "64 workers, 5 masters";
const FLOOR: &str = "One caller, to the floor";
const HUNG: &str = "One caller, 1 of 3 masters hung";
const DEAD: &str = "One caller, 1 of 3 masters dead";
const HELD: &str = "10,000 locks";

pub(crate) const TARGETS: &[Target] = &[
    of(THREE, "blocking", "pair to raw", "at most 1.08"),
    of(FIVE, "blocking", "pair to raw", "at most 1.08"),
    of(THREE, "tokio", "pair to raw", "at most 1.1"),
    of(FIVE, "tokio", "pair to raw", "at most 1.1"),
    of(FLOOR, "smol, 3 masters", "pair p50", "at most 1.1"),
    of(FLOOR, "smol, 5 masters", "pair p50", "at most 1.1"),
    of(MANY, "smol", "to raw", "at least 0.95"),
    of(MANY, "tokio", "to raw", "at least 0.95"),
    of(MANY_OF_FIVE, "smol", "to raw", "at least 0.88"),
    of(MANY_OF_FIVE, "tokio", "to raw", "at least 0.88"),
    of(MANY, "blocking-threads", "to raw", "at least 0.5, and 0.8 of raw-threads"),
    of(MANY, "raw-threads", "to raw", ""),
    of(MANY, "tokio-2", "to raw", "at least 0.8"),
    of(HUNG, "blocking", "to healthy", "at most 1.1, or as raw"),
    of(HUNG, "smol", "to healthy", "at most 1.1, or as raw"),
    of(HUNG, "tokio", "to healthy", "at most 1.1, or as raw"),
    of(HUNG, "raw", "to healthy", ""),
    of(DEAD, "blocking", "to healthy", "at most 1.1, or as raw"),
    of(DEAD, "smol", "to healthy", "at most 1.1, or as raw"),
    of(DEAD, "tokio", "to healthy", "at most 1.1, or as raw"),
    of(DEAD, "raw", "to healthy", ""),
    of("One caller, many masters", "blocking, 51 masters", "growth to raw's", "at most 1.1"),
    of("One caller, many masters", "smol, 51 masters", "growth to raw's", "at most 1.1"),
    of("One caller, many masters", "tokio, 51 masters", "growth to raw's", "at most 1.1"),
    of(HELD, "blocking", "CPU to raw", "at most 1.6"),
    of(HELD, "smol", "CPU to raw", "at most 1.6"),
    of(HELD, "tokio", "CPU to raw", "at most 1.6"),
    of(HELD, "blocking", "memory of a lock, bytes", "at most 1,024"),
    of(HELD, "tokio", "memory of a lock, bytes", "at most 1,024"),
    // Hand-offs.
    of("A", "smol", "p50_to_raw", "at most 1.25"),
    of("A", "tokio", "p50_to_raw", "at most 1.15"),
    of("D", "blocking", "in_order", "yes"),
    of("D", "smol", "in_order", "yes"),
    of("D", "tokio", "in_order", "yes"),
    of("G turns", "blocking", "longest", "at most 2.5"),
    of("G turns", "fair", "longest", "at most 2.5"),
    of("G turns", "blocking", "busiest", "at most 1.15"),
    of("G turns", "fair", "busiest", "at most 1.15"),
    of("G near", "blocking", "least", "at least 0.8"),
    of("G near", "fair", "least", "at least 0.8"),
    of("G beside-foreign", "blocking", "other_part", "at most 0.35"),
    of("G beside-foreign", "fair", "other_part", "at most 0.35"),
    of("G killed", "blocking", "stall_p50_ms", "at most 350"),
    of("G killed", "fair", "stall_p50_ms", "at most 350"),
    of("G killed", "blocking", "stall_max_ms", "at most 600"),
    of("G killed", "fair", "stall_max_ms", "at most 600"),
    // Kinds.
    of("O", "read", "pair_to_fenced", "at most 1.2"),
    of("O", "several:2:2", "pair_to_fenced", "at most 1.2"),
    of("O", "fenced-several:2:2", "pair_to_fenced", "at most 1.2"),
    of("O", "permit:4", "requests", "at most twice the masters"),
    of("M", "several:1000:1000", "busy_p99_ms", "at most 5"),
    of("M", "fenced-several:1000:1000", "busy_p99_ms", "at most 5"),
    of("B", "3 of 10, 8", "requests", "at most 16 with three masters"),
    of("B", "3 of 10, 8", "longest_ms", "at most 500"),
    of("W", "32 readers", "beyond_p99", "at most 5 ms"),
    of("D", "writer", "max_ms", "at most 1,100"),
    of("D", "reader", "max_ms", "at most 20"),
    of("P", "32 processes", "requests", "at most 45"),
    of("P", "32 processes", "in_use", "at least 0.7"),
    of("P", "32 processes", "longest", "at most 4"),
];
