//! Real servers as nodes of clusters, each the only node of its cluster, and the names of keys
//! there.

use std::sync::OnceLock;
use std::time::Duration;

use crate::eventually::eventually;
use crate::options::ServerOptions;
use crate::server::RedisServer;

/// `1` makes each real server the only node of a cluster, which owns only the slot of a tag.
const CLUSTERS_VARIABLE: &str = "QUORLOCK_TEST_CLUSTERS";
/// The tag in the URLs of these nodes.
pub(crate) const TAG: &str = "q0";
/// The slot of that tag.
const SLOT: &str = "3387";
/// The longest wait until a node serves its slot. It accepts no command for two seconds after its
/// start.
const SOON: Duration = Duration::from_secs(15);

/// Whether the real servers of this process are nodes of clusters.
pub fn is_chosen() -> bool {
    static CHOSEN: OnceLock<bool> = OnceLock::new();

    *CHOSEN.get_or_init(|| std::env::var_os(CLUSTERS_VARIABLE).is_some_and(|value| value == "1"))
}

/// These options, with the additions for the only node of a cluster if clusters are chosen.
pub(crate) fn configured(options: &ServerOptions) -> ServerOptions {
    if is_chosen() && !options.is_node {
        // Without that setting, the node serves nothing while any slot has no owner.
        options.clone().only_node().config("cluster-require-full-coverage no")
    } else {
        options.clone()
    }
}

/// Makes the only node of a cluster serve the slot, after its first start or a later one.
pub(crate) fn serve(node: &RedisServer) {
    // After a restart it still has the slot, and reports that.
    node.command(&["CLUSTER", "ADDSLOTS", SLOT]);
    eventually(SOON, "the node serves its slot", || {
        node.command(&["CLUSTER", "INFO"]).text().is_some_and(|info| info.contains("cluster_state:ok"))
    });
}

/// A command with the tag before the names of its keys.
pub(crate) fn tagged<A: AsRef<[u8]>>(args: &[A]) -> Vec<Vec<u8>> {
    let name = args.first().map(|name| name.as_ref().to_ascii_uppercase()).unwrap_or_default();
    let keys = match name.as_slice() {
        b"DEL" | b"EXISTS" | b"MGET" => 1..args.len(),
        b"GET" | b"SET" | b"PTTL" | b"PEXPIRE" | b"TYPE" | b"LPUSH" | b"RPUSH" | b"ZADD" | b"ZREVRANGE" => {
            1..2
        }
        _ => 0..0,
    };
    let tag = |(place, arg): (usize, &A)| {
        let tag = if keys.contains(&place) { format!("{{{TAG}}}") } else { String::new() };
        [tag.as_bytes(), arg.as_ref()].concat()
    };
    args.iter().enumerate().map(tag).collect()
}
