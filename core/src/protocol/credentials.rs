//! Logins that change over time: what provides them, and why there may be none.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use super::IoFault;
use crate::endpoint::{Endpoint, Login};

/// Provides the user and the password for each login: for credentials that change, such as the
/// tokens of a cloud's identity service.
///
/// It is called whenever a connection to a master is opened, and by
/// [`Locker::reauthenticate`](crate::front::Locker::reauthenticate). Its login replaces that of the
/// master's URL. A closure can be a provider, too:
///
/// ```
/// use std::sync::{Arc, RwLock};
///
/// use quorlock_core::{Config, Endpoint, Login, Unavailable};
///
/// // A task of your program stores a new token here before the old one expires.
/// let token = Arc::new(RwLock::new(None::<String>));
/// let shared = Arc::clone(&token);
/// let login = move |_: &Endpoint| {
///     let token = shared.read().map_err(|_| Unavailable::Because("no task refreshes the token"))?;
///     let token = token.clone().ok_or(Unavailable::Because("the first token is not there yet"))?;
///     Ok(Login::new(token).with_user("app"))
/// };
/// let config = Config::builder(["redis://a", "redis://b", "redis://c"]).credentials(login).build()?;
/// # Ok::<(), quorlock_core::ConfigError>(())
/// ```
///
/// A refused login is then not reported as a wrong configuration: the next attempt follows soon,
/// and asks for the login again.
pub trait Credentials: Send + Sync + 'static {
    /// Returns the login for this master now.
    ///
    /// It must not block, because the driver, which serves all masters, calls it between its reads
    /// and writes. Fetch tokens elsewhere, and return the last one. A panic is contained, and
    /// counts as [`Unavailable::Panicked`].
    ///
    /// # Errors
    /// Why there is no login. The master then has no vote, and is tried again after
    /// [`reconnect_delay`](crate::ConfigBuilder::reconnect_delay).
    fn now(&self, master: &Endpoint) -> Result<Login, Unavailable>;
}

impl<F> Credentials for F
where
    F: Fn(&Endpoint) -> Result<Login, Unavailable> + Send + Sync + 'static,
{
    fn now(&self, master: &Endpoint) -> Result<Login, Unavailable> {
        self(master)
    }
}

/// Why there is no login for a master at the moment.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Unavailable {
    /// The reason that [`Credentials`] gave. It is shown in errors, so it must hold no secret.
    Because(&'static str),
    /// [`Credentials`] panicked.
    Panicked,
    /// The system denied reading the password file.
    Unreadable(IoFault),
    /// The path of the password file does not lead to a regular file.
    NotAFile,
    /// The password file is empty, apart from a line end.
    EmptyFile,
    /// The password file is larger than 16 KiB. Servers accept no password of that length.
    LongFile,
    /// The password file is not UTF-8 text.
    NotText,
}

impl Unavailable {
    /// The error's text, with the path of the password file.
    pub(super) fn describe(self, file: Option<&Path>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = file.map(|path| format!(" {}", path.display())).unwrap_or_default();
        match self {
            Self::Because(reason) => write!(f, "no login: {reason}"),
            Self::Panicked => f.write_str("no login: the provider of credentials panicked"),
            Self::Unreadable(fault) => write!(f, "no login: the password file{file} cannot be read: {fault}"),
            Self::NotAFile => write!(f, "no login: the password file{file} is not a regular file"),
            Self::EmptyFile => write!(f, "no login: the password file{file} is empty"),
            Self::LongFile => write!(f, "no login: the password file{file} is larger than 16 KiB"),
            Self::NotText => write!(f, "no login: the password file{file} is not UTF-8 text"),
        }
    }
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.describe(None, f)
    }
}

impl std::error::Error for Unavailable {}

/// A configuration's source of logins.
#[derive(Clone)]
pub(crate) struct Provider(pub(crate) Arc<dyn Credentials>);

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Provider(..)")
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn each_reason_says_what_is_wrong_and_where() {
        let denied = Unavailable::Unreadable(IoFault::new(io::ErrorKind::PermissionDenied));
        for (reason, says) in [
            (Unavailable::Because("no token yet"), "no login: no token yet"),
            (Unavailable::Panicked, "no login: the provider of credentials panicked"),
            (denied, "no login: the password file cannot be read: permission denied"),
            (Unavailable::NotAFile, "no login: the password file is not a regular file"),
            (Unavailable::EmptyFile, "no login: the password file is empty"),
            (Unavailable::LongFile, "no login: the password file is larger than 16 KiB"),
            (Unavailable::NotText, "no login: the password file is not UTF-8 text"),
        ] {
            assert_eq!(reason.to_string(), says);
        }
    }
}
