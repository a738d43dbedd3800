//! The variables of the environment: masters and proofs of locks are read from them, and proofs are
//! written to them.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::PathBuf;

use quorlock_blocking::{Config, ConfigBuilder, FencingToken, Resumption, Token};

use super::Claim;
use crate::waiting::Hold;

/// The variables of the environment that are read here. The token of a lock comes only from them,
/// because every user of the machine can see a command's arguments.
#[derive(Default)]
pub(crate) struct Environment {
    /// The masters if no `-m` names any.
    pub(crate) masters: Option<OsString>,
    /// The prefix of keys if there is no `--prefix`.
    pub(crate) prefix: Option<OsString>,
    /// The files for TLS that no option names: issuers, certificate and key.
    pub(crate) tls: [Option<OsString>; 3],
    /// The tokens and numbers of locks that are held, by variable.
    pub(crate) proofs: BTreeMap<String, OsString>,
}

/// A variable's value, with its name for errors.
struct Variable {
    name: String,
    value: OsString,
}

/// The proof of one lock in the environment.
struct Proof {
    token: Variable,
    fence: Option<Variable>,
}

impl Environment {
    /// The variable with the name of the lock.
    pub(crate) const RESOURCE: &str = "QUORLOCK_RESOURCE";
    /// The variable with the token.
    pub(crate) const TOKEN: &str = "QUORLOCK_TOKEN";
    /// The variable with the fencing token of the grant.
    pub(crate) const FENCE: &str = "QUORLOCK_FENCE";
    /// The variable with the index of the permit.
    pub(crate) const PERMIT: &str = "QUORLOCK_PERMIT";

    /// The variables of `--cacert`, `--cert` and `--key`.
    const TLS: [&str; 3] = ["QUORLOCK_CACERT", "QUORLOCK_CERT", "QUORLOCK_KEY"];

    /// Returns the environment of this process.
    pub(crate) fn of_process() -> Self {
        let mut proofs = BTreeMap::new();
        for (name, value) in std::env::vars_os() {
            let name = name.into_string().unwrap_or_default();
            if [Self::TOKEN, Self::FENCE].iter().any(|of_all| name.starts_with(of_all)) && !value.is_empty() {
                proofs.insert(name, value);
            }
        }
        let [masters, prefix] = [Config::MASTERS_VARIABLE, Config::PREFIX_VARIABLE].map(std::env::var_os);
        Self { masters, prefix, tls: Self::TLS.map(std::env::var_os), proofs }
    }

    /// The variables of a lock, each with its value. A variable without a value is unset, because
    /// another lock may have set it. Each exists twice: for the lock that was taken last, and for
    /// each resource of this lock alone, which no other lock overwrites.
    pub(crate) fn of_lock(claim: &Claim, lock: &impl Hold, token: String) -> Vec<(String, Option<String>)> {
        let values = [
            (Self::TOKEN, Some(token)),
            (Self::FENCE, lock.fence().map(|number| number.to_string())),
            (Self::PERMIT, lock.permit().map(|index| index.to_string())),
        ];
        let mut variables = Vec::new();
        for (variable, value) in values {
            let own = claim.names().into_iter().map(|name| Self::own(variable, name));
            variables
                .extend(std::iter::once(variable.to_owned()).chain(own).map(|name| (name, value.clone())));
        }
        variables
    }

    /// The name of `variable` for this lock alone, so that two locks of one script do not overwrite
    /// each other's: ASCII letters and digits stay, and every other byte is written as `_` and two
    /// hexadecimal digits.
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

    /// The masters that the environment names.
    pub(super) fn masters(&self) -> Result<Vec<String>, String> {
        let name = Config::MASTERS_VARIABLE;
        let listed = self.masters.clone().unwrap_or_default().into_string().map_err(|_| {
            format!(
                "{name} is not valid UTF-8: percent-encode the bytes of its URLs that are not UTF-8 (%XX)."
            )
        })?;
        let urls: Vec<_> = ConfigBuilder::urls(&listed).map(str::to_owned).collect();
        if urls.is_empty() {
            return Err(format!(
                "No masters: name each with -m URL, such as -m redis://host:6379, or all in {name}, separated by commas."
            ));
        }
        Ok(urls)
    }

    /// The files for TLS that the environment names.
    pub(super) fn tls_files(&self) -> [Option<PathBuf>; 3] {
        self.tls.clone().map(|file| file.filter(|file| !file.is_empty()).map(PathBuf::from))
    }

    /// The prefix that the environment names.
    pub(super) fn prefix(&self) -> Result<Option<String>, String> {
        let name = Config::PREFIX_VARIABLE;
        let prefix = self.prefix.clone().map(OsString::into_string).transpose();
        prefix.map_err(|_| format!("{name} is not valid UTF-8: choose a prefix that is."))
    }

    /// The proof of this lock, to extend it.
    pub(crate) fn resumption(&self, resource: &[u8]) -> Result<Resumption, String> {
        let Proof { token, fence } = self.proof(resource).ok_or_else(no_token)?;
        token.resumption(fence.as_ref().map(Variable::fencing_token).transpose()?)
    }

    /// The same, to release it. A release needs no number, so the number is not read and cannot be
    /// wrong.
    pub(crate) fn unnumbered(&self, resource: &[u8]) -> Result<Resumption, String> {
        self.proof(resource).ok_or_else(no_token)?.token.resumption(None)
    }

    /// The token of this lock.
    pub(crate) fn token(&self, resource: &[u8]) -> Result<Token, String> {
        Ok(self.unnumbered(resource)?.token)
    }

    /// The proof of this lock: from its own variables, or else from those of the lock that was
    /// taken last.
    fn proof(&self, resource: &[u8]) -> Option<Proof> {
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

impl Variable {
    fn resumption(&self, fence: Option<FencingToken>) -> Result<Resumption, String> {
        self.value.to_str().and_then(|text| Resumption::from_text(text, fence)).ok_or_else(|| {
            format!(
                "{} is not a token: quorlock acquire prints one, of 40 hexadecimal digits or more.",
                self.name
            )
        })
    }

    fn fencing_token(&self) -> Result<FencingToken, String> {
        let number = self.value.to_str().and_then(|number| number.parse().ok()).and_then(FencingToken::new);
        number.ok_or_else(|| {
            format!("{} is not a fencing token that quorlock acquire --fenced printed.", self.name)
        })
    }
}

fn no_token() -> String {
    format!("No token: {} is not set; evaluate the lines that quorlock acquire prints.", Environment::TOKEN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_has_its_own_variables_with_names_that_a_shell_accepts() {
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
            let environment = Environment { proofs, ..Environment::default() };
            environment.proof(b"a").map(|proof| (proof.token.name, proof.fence.map(|fence| fence.name)))
        };
        assert_eq!(of(&[]), None);
        assert_eq!(of(&["QUORLOCK_TOKEN_b", "QUORLOCK_FENCE_a", "QUORLOCK_FENCE"]), None);
        let last = Some(("QUORLOCK_TOKEN".to_owned(), Some("QUORLOCK_FENCE".to_owned())));
        assert_eq!(of(&["QUORLOCK_TOKEN", "QUORLOCK_FENCE", "QUORLOCK_TOKEN_b"]), last);
        // The number of another lock is not used for this one.
        let own = Some(("QUORLOCK_TOKEN_a".to_owned(), None));
        assert_eq!(of(&["QUORLOCK_TOKEN", "QUORLOCK_FENCE", "QUORLOCK_TOKEN_a"]), own);
    }
}
