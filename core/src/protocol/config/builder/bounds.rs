//! The smallest and the largest values of settings.

use super::ConfigBuilder;
use crate::protocol::{ConfigError, Ttl};

impl ConfigBuilder {
    pub(super) fn check_bounds(&self) -> Result<(), ConfigError> {
        for (setting, span) in [
            ("request_timeout", self.request_timeout),
            ("connect_timeout", self.connect_timeout),
            ("retry_delay", *self.retry_delay.start()),
            ("reconnect_delay", *self.reconnect_delay.start()),
            // These may be unset, but not zero.
            ("longest_hold", self.longest_hold.unwrap_or(Ttl::MAX)),
            ("restart_guard", self.restart_guard.unwrap_or(Ttl::MAX)),
            ("keep_alive", self.keep_alive.unwrap_or(Ttl::MAX)),
        ] {
            if span.is_zero() {
                return Err(ConfigError::ZeroSpan { setting });
            }
        }
        for (setting, span) in [
            ("request_timeout", self.request_timeout),
            ("connect_timeout", self.connect_timeout),
            ("retry_delay", *self.retry_delay.end()),
            ("reconnect_delay", *self.reconnect_delay.end()),
            ("restart_guard", self.restart_guard.unwrap_or_default()),
            ("keep_alive", self.keep_alive.unwrap_or_default()),
        ] {
            if span > Ttl::MAX {
                return Err(ConfigError::EndlessSpan { setting, span });
            }
        }
        for (setting, limit) in [("timeout", self.timeout), ("longest_hold", self.longest_hold)] {
            if let Some(limit) = limit.filter(|limit| *limit > Ttl::MAX) {
                return Err(ConfigError::EndlessLimit { setting, limit });
            }
        }
        for (setting, bounds) in
            [("retry_delay", &self.retry_delay), ("reconnect_delay", &self.reconnect_delay)]
        {
            if bounds.is_empty() {
                return Err(ConfigError::ReversedBounds { setting });
            }
        }
        for (setting, limit) in [
            ("max_in_flight_requests", self.max_in_flight_requests),
            ("max_in_flight_bytes", self.max_in_flight_bytes),
            ("max_locks", self.max_locks),
        ] {
            if limit == 0 {
                return Err(ConfigError::ZeroLimit { setting });
            }
        }
        Ok(())
    }
}
