//! The login for a master, requested at each greeting and without a mutex held, since it calls user
//! code or reads a file.

use std::path::Path;

use super::host::{Host, MAX_PASSWORD_BYTES};
use super::shared::Shared;
use super::sync::contain;
use crate::endpoint::Login;
use crate::protocol::{MasterId, Unavailable};

impl Shared {
    /// The present login for a master: from the credentials' provider if there is one, else from
    /// the password file, else from the URL.
    pub(super) fn login(&self, master: MasterId) -> Result<Option<Login>, Unavailable> {
        let Some(endpoint) = self.config.masters.get(master.index()) else { return Ok(None) };
        if let Some(provider) = &self.config.credentials {
            let asked = contain(|| provider.0.now(endpoint));
            return asked.unwrap_or(Err(Unavailable::Panicked)).map(Some);
        }
        let read = endpoint.password_file().map(|file| password(&*self.host, file)).transpose()?;
        Ok(endpoint.login(read))
    }
}

/// The password in a file, without the line end that editors and `echo` put there.
fn password(host: &dyn Host, file: &Path) -> Result<String, Unavailable> {
    let bytes = host.read_password(file)?;
    if bytes.len() > MAX_PASSWORD_BYTES {
        return Err(Unavailable::LongFile);
    }
    let text = String::from_utf8(bytes).map_err(|_| Unavailable::NotText)?;
    let line = text.strip_suffix('\n').unwrap_or(&text);
    let password = line.strip_suffix('\r').filter(|_| line.len() < text.len()).unwrap_or(line);
    if password.is_empty() { Err(Unavailable::EmptyFile) } else { Ok(password.to_owned()) }
}
