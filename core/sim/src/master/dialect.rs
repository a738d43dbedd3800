//! Features of Redis that other servers and proxies with its protocol lack.

/// The features of Redis 7.0 that a server or a proxy lacks.
///
/// Each variant is named after a server or a proxy that, according to its documentation, lacks
/// these features. None of them was at hand: only the missing features are modelled, not the
/// server.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Dialect {
    /// None: everything is there.
    #[default]
    Redis,
    /// No replication id in INFO.
    Enterprise,
    /// No replication id in INFO, and no `CLIENT TRACKING`.
    Kvrocks,
    /// No scripts: EVAL, EVALSHA and SCRIPT are unknown.
    Garnet,
    /// A proxy that knows neither HELLO nor INFO, CLIENT, CONFIG and SCRIPT.
    Envoy,
    /// A proxy that lacks the same commands as [`Dialect::Envoy`], and ends the connection when it
    /// gets one of them.
    Twemproxy,
}

impl Dialect {
    /// All of them, each with its name.
    pub const NAMED: [(&str, Self); 6] = [
        ("redis", Self::Redis),
        ("enterprise", Self::Enterprise),
        ("kvrocks", Self::Kvrocks),
        ("garnet", Self::Garnet),
        ("envoy", Self::Envoy),
        ("twemproxy", Self::Twemproxy),
    ];

    /// Returns the dialect of this name, or `None` if there is none.
    pub fn named(name: &str) -> Option<Self> {
        Self::NAMED.iter().find(|(known, _)| *known == name).map(|(_, dialect)| *dialect)
    }

    /// Whether it knows this command, or this subcommand (written `command|subcommand`).
    pub(super) fn knows(self, name: &str) -> bool {
        let lacking: &[&str] = match self {
            Self::Redis | Self::Enterprise => &[],
            Self::Kvrocks => &["client|tracking"],
            Self::Garnet => &["eval", "evalsha", "script"],
            Self::Envoy | Self::Twemproxy => &["hello", "info", "client", "config", "script"],
        };
        !lacking.contains(&name)
    }

    /// Whether it ends the connection at an unknown command.
    pub(super) fn hangs_up(self) -> bool {
        self == Self::Twemproxy
    }

    /// Whether INFO reports `master_replid` to a script. Behind a proxy, a script still reads the
    /// server's INFO.
    pub(super) fn tells_replication_id(self) -> bool {
        !matches!(self, Self::Enterprise | Self::Kvrocks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_dialect_is_found_by_its_name_and_has_its_own_features() {
        for (name, dialect) in Dialect::NAMED {
            assert_eq!(Dialect::named(name), Some(dialect));
        }
        assert_eq!(Dialect::named("other"), None);
        assert!(Dialect::Redis.knows("hello") && Dialect::Redis.tells_replication_id());
        assert!(!Dialect::Garnet.knows("evalsha") && Dialect::Garnet.knows("set"));
        assert!(!Dialect::Envoy.hangs_up() && Dialect::Twemproxy.hangs_up());
    }
}
