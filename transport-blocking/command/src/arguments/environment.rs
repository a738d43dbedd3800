//! The variables of the environment: where masters and proofs of locks come from, and where proofs go.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write as _;

/// The variables of the environment that mean something here. What is proof of a lock comes in them only: everybody on the machine can
/// see a command's arguments.
#[derive(Default)]
pub(crate) struct Environment {
    /// The masters when no `-m` names any.
    pub(crate) masters: Option<OsString>,
    /// The tokens and numbers of locks that are held, by variable.
    pub(crate) proofs: BTreeMap<String, OsString>,
}

/// What a variable says, with its name for an error about it.
pub(crate) struct Variable {
    pub(crate) name: String,
    pub(crate) value: OsString,
}

/// What the environment has about one lock.
pub(crate) struct Proof {
    pub(crate) token: Variable,
    pub(crate) fence: Option<Variable>,
}

impl Environment {
    /// The variable that names the masters when no `-m` does.
    pub(crate) const MASTERS: &str = "QUORLOCK_MASTERS";
    /// The variable that tells what is locked.
    pub(crate) const RESOURCE: &str = "QUORLOCK_RESOURCE";
    /// The variable that proves who holds the lock.
    pub(crate) const TOKEN: &str = "QUORLOCK_TOKEN";
    /// The variable that numbers the grant.
    pub(crate) const FENCE: &str = "QUORLOCK_FENCE";

    /// That of this process.
    pub(crate) fn of_process() -> Self {
        let mut proofs = BTreeMap::new();
        for (name, value) in std::env::vars_os() {
            let name = name.into_string().unwrap_or_default();
            if [Self::TOKEN, Self::FENCE].iter().any(|of_all| name.starts_with(of_all)) && !value.is_empty() {
                proofs.insert(name, value);
            }
        }
        let masters = std::env::var_os(Self::MASTERS).filter(|value| !value.is_empty());
        Self { masters, proofs }
    }

    /// What `variable` is called for this lock alone, so that two locks of one script do not overwrite each other's: ASCII letters
    /// and digits of the name stay, and every other byte is written as `_` and two hexadecimal digits.
    pub(crate) fn own(variable: &str, resource: &[u8]) -> String {
        let mut name = format!("{variable}_");
        for byte in resource {
            if byte.is_ascii_alphanumeric() {
                name.push(char::from(*byte));
            } else {
                // Writing to a string does not fail.
                let _ = write!(name, "_{byte:02x}");
            }
        }
        name
    }

    /// The proof of this lock: in variables of its own, or else in those of the lock that was taken last.
    pub(crate) fn proof(&self, resource: &[u8]) -> Option<Proof> {
        let pair = |token: String, fence: String| {
            let variable = |name: String| {
                let value = self.proofs.get(&name).cloned()?;
                Some(Variable { name, value })
            };
            Some(Proof { token: variable(token)?, fence: variable(fence) })
        };
        pair(Self::own(Self::TOKEN, resource), Self::own(Self::FENCE, resource))
            .or_else(|| pair(Self::TOKEN.to_owned(), Self::FENCE.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_has_variables_of_its_own_with_names_that_a_shell_takes() {
        let own = |resource: &[u8]| Environment::own(Environment::TOKEN, resource);
        assert_eq!(own(b"deploy"), "QUORLOCK_TOKEN_deploy");
        assert_eq!(own(b"invoice:42"), "QUORLOCK_TOKEN_invoice_3a42");
        assert_eq!(own(b"a_3a"), "QUORLOCK_TOKEN_a_5f3a");
        assert_eq!(own("\u{e4} \n\0=".as_bytes()), "QUORLOCK_TOKEN__c3_a4_20_0a_00_3d");
        assert_eq!(own(b"\xff"), "QUORLOCK_TOKEN__ff");
    }

    #[test]
    fn the_variables_of_a_lock_come_before_those_of_the_last_one() {
        let of = |variables: &[&str]| {
            let proofs = variables.iter().map(|name| ((*name).to_owned(), OsString::from(name))).collect();
            let environment = Environment { masters: None, proofs };
            environment.proof(b"a").map(|proof| (proof.token.name, proof.fence.map(|fence| fence.name)))
        };
        assert_eq!(of(&[]), None);
        assert_eq!(of(&["QUORLOCK_TOKEN_b", "QUORLOCK_FENCE_a", "QUORLOCK_FENCE"]), None);
        let last = Some(("QUORLOCK_TOKEN".to_owned(), Some("QUORLOCK_FENCE".to_owned())));
        assert_eq!(of(&["QUORLOCK_TOKEN", "QUORLOCK_FENCE", "QUORLOCK_TOKEN_b"]), last);
        // The number of another lock is not taken for this one's.
        let own = Some(("QUORLOCK_TOKEN_a".to_owned(), None));
        assert_eq!(of(&["QUORLOCK_TOKEN", "QUORLOCK_FENCE", "QUORLOCK_TOKEN_a"]), own);
    }
}
