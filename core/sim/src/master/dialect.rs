//! What servers and proxies that speak Redis's protocol lack of Redis.

/// What a server or a proxy lacks of Redis 7.0.
///
/// Each is named after one that is said to lack this. None of these was at hand: what is modelled
/// is the lack, not the server.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Dialect {
    /// Nothing.
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
    /// A proxy that ends the connection at commands that it does not know, those of
    /// [`Dialect::Envoy`].
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

    /// Whether it knows this command, or this subcommand with its command and a bar in front.
    pub(super) fn knows(self, name: &str) -> bool {
        let lacking: &[&str] = match self {
            Self::Redis | Self::Enterprise => &[],
            Self::Kvrocks => &["client|tracking"],
            Self::Garnet => &["eval", "evalsha", "script"],
            Self::Envoy | Self::Twemproxy => &["hello", "info", "client", "config", "script"],
        };
        !lacking.contains(&name)
    }

    /// Whether it ends the connection where it does not know a command.
    pub(super) fn hangs_up(self) -> bool {
        self == Self::Twemproxy
    }

    /// Whether INFO tells `master_replid`. A proxy does not change what a script reads.
    pub(super) fn tells_replication_id(self) -> bool {
        !matches!(self, Self::Enterprise | Self::Kvrocks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_dialect_has_a_name_and_lacks_what_it_says() {
        for (name, dialect) in Dialect::NAMED {
            assert_eq!(Dialect::named(name), Some(dialect));
        }
        assert_eq!(Dialect::named("other"), None);
        assert!(Dialect::Redis.knows("hello") && Dialect::Redis.tells_replication_id());
        assert!(!Dialect::Garnet.knows("evalsha") && Dialect::Garnet.knows("set"));
        assert!(!Dialect::Envoy.hangs_up() && Dialect::Twemproxy.hangs_up());
    }
}
