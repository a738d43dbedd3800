//! The user and the password of a login.

use std::fmt;

/// A password, and the user that it belongs to. `Debug` shows neither.
///
/// ```
/// # use quorlock_core::Login;
/// let login = Login::new("hunter2").with_user("worker");
/// assert_eq!((login.user(), login.password()), (Some("worker"), "hunter2"));
/// assert_eq!(format!("{login:?}"), "Login(..)");
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Login {
    user: Option<String>,
    password: String,
}

impl Login {
    /// Creates the login of the default user.
    pub fn new(password: impl Into<String>) -> Self {
        Self { user: None, password: password.into() }
    }

    /// Returns this login for a user, for servers with access control lists.
    #[must_use]
    pub fn with_user(self, user: impl Into<String>) -> Self {
        Self { user: Some(user.into()), ..self }
    }

    /// Returns the user; `None` is the default user.
    pub fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// Returns the password. Keep it out of logs.
    pub fn password(&self) -> &str {
        &self.password
    }
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Login(..)")
    }
}
