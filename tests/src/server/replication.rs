//! A master with replicas, and a master that becomes one.

use super::{Inside, Outside, RedisServer};

impl RedisServer {
    /// Makes it a replica of another server; of an embedded master that is only what both say and
    /// it refuses.
    #[track_caller]
    pub fn become_replica_of(&self, primary: &Self) {
        match &self.backend {
            Outside(_) => self.expect_ok(&["REPLICAOF", "127.0.0.1", &primary.port().to_string()]),
            Inside(master) => {
                master.set_replica(true);
                if let Inside(primary) = &primary.backend {
                    primary.set_replicas(1);
                }
            }
        }
    }

    /// How many replicas are attached to it.
    #[track_caller]
    pub fn replicas(&self) -> usize {
        let info = self.command(&["INFO", "replication"]);
        let info = info.text().expect("INFO answers text");
        let replicas = info.lines().find_map(|line| line.strip_prefix("connected_slaves:"));
        replicas.and_then(|replicas| replicas.trim_end().parse().ok()).expect("INFO counts replicas")
    }

    /// Makes a replica a master.
    #[track_caller]
    pub fn become_master(&self) {
        match &self.backend {
            Outside(_) => self.expect_ok(&["REPLICAOF", "NO", "ONE"]),
            Inside(master) => master.set_replica(false),
        }
    }

    /// Makes it refuse writes because it has too few replicas.
    #[track_caller]
    pub fn need_replicas(&self) {
        match &self.backend {
            Outside(_) => self.expect_ok(&["CONFIG", "SET", "min-replicas-to-write", "1"]),
            Inside(master) => master.fail("NOREPLICAS Not enough good replicas to write."),
        }
    }
}
