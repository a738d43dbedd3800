//! Which masters a configuration may have.

use std::mem;

use super::ConfigBuilder;
use crate::endpoint::{Endpoint, EndpointError};
use crate::protocol::ConfigError;

impl ConfigBuilder {
    /// Takes the masters, each of which is usable and named once.
    pub(super) fn take_masters(&mut self) -> Result<Vec<Endpoint>, ConfigError> {
        let named = self.masters.len();
        let has_other_logins = self.credentials.is_some();
        let checked = |master: Endpoint| {
            // Otherwise the client would be the server's default user without a word.
            let lacks_password = master.lacks_password() && !has_other_logins;
            if lacks_password { Err(EndpointError::NoPassword) } else { Ok(master) }
        };
        let masters = (1..)
            .zip(mem::take(&mut self.masters))
            .map(|(place, master)| {
                let master = master.and_then(checked);
                master.map_err(|error| ConfigError::Endpoint { place, masters: named, error })
            })
            .collect::<Result<Vec<_>, _>>()?;
        for (place, master) in masters.iter().enumerate() {
            if masters.iter().take(place).any(|earlier| earlier.same_server(master)) {
                return Err(ConfigError::SameMasterTwice { master: master.to_string() });
            }
        }
        Ok(masters)
    }
}

/// Whether a failover of this master may lose locks although its URL does not say so.
pub(super) fn loses_locks_unsaid(master: &Endpoint, is_guarded: bool) -> bool {
    let is_covered = is_guarded && master.replicas().is_some();
    master.discovery().is_some() && !is_covered && master.failover().is_none()
}
