//! What a server reports about itself in INFO.

/// The facts of INFO.
#[derive(Debug, Default)]
pub(crate) struct Info {
    /// `redis`, `valkey` or another name.
    pub(crate) kind: Option<String>,
    pub(crate) version: Option<String>,
    pub(crate) role: Option<String>,
    pub(crate) is_cluster: Option<bool>,
    /// New at every start of the server.
    pub(crate) run_id: Option<String>,
    /// New at every start of the server and at every promotion.
    pub(crate) replication_id: Option<String>,
    pub(crate) replicas: Option<u64>,
    /// How many of them have a port, are in step and have reported within the last second.
    pub(crate) following: u64,
    /// Whether each change is appended to a file.
    pub(crate) appends: Option<bool>,
    /// The limit of its memory in bytes; 0 for none.
    pub(crate) max_memory: Option<u64>,
    pub(crate) eviction: Option<String>,
}

impl Info {
    /// Reads the text of INFO, or of some of its sections.
    pub(crate) fn read(info: &str) -> Self {
        let field = |name: &str| {
            let found = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            found.map(|value| value.trim_end().to_owned()).filter(|value| !value.is_empty())
        };
        let number = |name: &str| field(name).and_then(|value| value.parse::<u64>().ok());
        // Valkey and Redict also report the version of Redis that they are compatible with.
        let own = ["valkey", "redict"].into_iter().find(|kind| field(&format!("{kind}_version")).is_some());
        let kind =
            field("server_name").or_else(|| own.map(str::to_owned)).unwrap_or_else(|| "redis".to_owned());
        let version = field(&format!("{kind}_version")).or_else(|| field("redis_version"));
        Self {
            kind: version.is_some().then_some(kind),
            version,
            role: field("role"),
            is_cluster: number("cluster_enabled").map(|enabled| enabled != 0),
            run_id: field("run_id"),
            replication_id: field("master_replid"),
            replicas: number("connected_slaves"),
            following: info.lines().filter(|line| follows(line)).count() as u64,
            appends: number("aof_enabled").map(|enabled| enabled != 0),
            max_memory: number("maxmemory"),
            eviction: field("maxmemory_policy"),
        }
    }
}

/// Whether this line is about a replica that counts for `replicas=`, such as
/// `slave0:ip=10.0.0.2,port=6379,state=online,offset=84,lag=0`.
fn follows(line: &str) -> bool {
    let Some((name, facts)) = line.trim_end().split_once(':') else { return false };
    let number = name.strip_prefix("slave").and_then(|number| number.parse::<u32>().ok());
    let is = |fact: &str| facts.split(',').any(|other| other == fact);
    number.is_some() && !is("port=0") && is("state=online") && (is("lag=0") || is("lag=1"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replicas_count_that_are_in_step() {
        let info = "connected_slaves:4\r\n\
            slave0:ip=10.0.0.2,port=6379,state=online,offset=84,lag=1\r\n\
            slave1:ip=10.0.0.3,port=6379,state=wait_bgsave,offset=0,lag=0\r\n\
            slave2:ip=10.0.0.4,port=6379,state=online,offset=84,lag=2\r\n\
            slave3:ip=10.0.0.5,port=0,state=online,offset=0,lag=0\r\n\
            slave_repl_offset:0\r\n";
        let info = Info::read(info);
        assert_eq!((info.replicas, info.following), (Some(4), 1));
    }

    #[test]
    fn the_name_of_every_kind_of_server_is_read() {
        for (info, kind, version) in [
            ("redis_version:7.0.15\r\n", "redis", "7.0.15"),
            ("redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.1.1\r\n", "valkey", "8.1.1"),
            ("redict_version:7.3.6\r\nredis_version:7.2.4\r\n", "redict", "7.3.6"),
        ] {
            let info = Info::read(info);
            assert_eq!((info.kind.as_deref(), info.version.as_deref()), (Some(kind), Some(version)));
        }
        let info = Info::read("");
        assert_eq!((info.kind, info.version, info.is_cluster), (None, None, None));
    }
}
