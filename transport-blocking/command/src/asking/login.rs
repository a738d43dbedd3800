//! The password of a master: from its URL, or from the file that the URL names.

use quorlock_core::front::Host as _;
use quorlock_core::{Cause, Endpoint, Unavailable};
use quorlock_host::System;

/// The password to log in with, if there is one.
pub(crate) fn password(endpoint: &Endpoint) -> Result<Option<String>, Cause> {
    let Some(file) = endpoint.password_file() else {
        return Ok(endpoint.password().map(str::to_owned));
    };
    let bytes = System::new().read_password(file).map_err(Cause::NoLogin)?;
    let text = String::from_utf8(bytes).map_err(|_| Cause::NoLogin(Unavailable::NotText))?;
    // As in the library: one line end is not part of the password.
    let line = text.strip_suffix('\n').map_or(&*text, |line| line.strip_suffix('\r').unwrap_or(line));
    if line.is_empty() { Err(Cause::NoLogin(Unavailable::EmptyFile)) } else { Ok(Some(line.to_owned())) }
}
