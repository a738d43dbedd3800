//! What other servers do otherwise than Redis 7.0, which is what the model is a model of.

use std::fmt;

use quorlock_tests::Value;

use crate::commands::Arguments;

#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Version {
    is_valkey: bool,
    major: u32,
    minor: u32,
}

impl Version {
    /// From `INFO server`.
    pub fn of(info: &Value) -> Self {
        let info = info.text().unwrap();
        let field = |name: &str| info.lines().find_map(|line| line.strip_prefix(name));
        let valkey = field("valkey_version:");
        let version = valkey.or_else(|| field("redis_version:")).unwrap();
        let mut numbers = version.split('.').map(|number| number.parse().unwrap());
        Self { is_valkey: valkey.is_some(), major: numbers.next().unwrap(), minor: numbers.next().unwrap() }
    }

    pub fn is_modelled(self) -> bool {
        !self.is_valkey && (self.major, self.minor) == (7, 0)
    }

    /// Whether the command is not sent to this server, because it does something else there.
    pub fn leaves_out(self, _arguments: &Arguments) -> bool {
        false
    }

    /// Whether this server words the same reply like this.
    pub fn words_it_so(self, _model: &[u8], _real: &[u8]) -> bool {
        false
    }

    /// Whether INFO has this field.
    pub fn tells(self, _field: &str) -> bool {
        true
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = if self.is_valkey { "Valkey" } else { "Redis" };
        write!(f, "{name} {}.{}", self.major, self.minor)
    }
}
