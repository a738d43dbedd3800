//! Configurations from text: a list of masters, and environment variables.

use std::ffi::OsString;

use super::{Config, ConfigBuilder, ConfigError};

impl Config {
    /// The environment variable with the masters: URLs separated by commas.
    pub const MASTERS_VARIABLE: &str = "QUORLOCK_MASTERS";

    /// The environment variable with the prefix of keys.
    pub const PREFIX_VARIABLE: &str = "QUORLOCK_PREFIX";

    /// Returns a configuration for the masters of a list, with every other setting at its default.
    ///
    /// The list is URLs separated by commas. Write a comma inside a URL as `%2C`, except between
    /// the hosts of one URL. Spaces around URLs and empty entries are ignored.
    ///
    /// # Errors
    /// See [`ConfigBuilder::build`].
    pub fn from_list(masters: &str) -> Result<Self, ConfigError> {
        ConfigBuilder::from_list(masters).build()
    }

    /// Returns a configuration from the environment variables that the command `quorlock` also
    /// reads:
    ///
    /// | variable | |
    /// |---|---|
    /// | `QUORLOCK_MASTERS` | the masters, as in [`Config::from_list`] |
    /// | `QUORLOCK_PREFIX` | the prefix of keys, as in [`ConfigBuilder::prefix`]; none if it is not set |
    ///
    /// This crate does not access the system, so the caller passes the function that reads a
    /// variable: [`std::env::var_os`].
    ///
    /// ```no_run
    /// use quorlock_core::Config;
    ///
    /// let config = Config::from_env(std::env::var_os)?;
    /// # Ok::<(), quorlock_core::ConfigError>(())
    /// ```
    ///
    /// # Errors
    /// [`ConfigError::UnsetVariable`] if no masters are named, [`ConfigError::VariableNotText`],
    /// and those of [`ConfigBuilder::build`].
    pub fn from_env(read: impl Fn(&'static str) -> Option<OsString>) -> Result<Self, ConfigError> {
        ConfigBuilder::from_env(read)?.build()
    }
}

impl ConfigBuilder {
    /// Starts a configuration for the masters of a list, as [`Config::from_list`] does.
    pub fn from_list(masters: &str) -> Self {
        Config::builder(Self::urls(masters))
    }

    /// Returns the URLs of a list. An entry without a scheme is another host of the URL before it
    /// (`redis+sentinel://s1,s2/group`).
    pub fn urls(list: &str) -> impl Iterator<Item = &str> {
        let mut rest = list;
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let begins = |at: usize| {
                let behind = rest.get(at + 1..).unwrap_or_default();
                let entry = behind.split(',').next().unwrap_or_default();
                entry.contains("://") || entry.trim().is_empty()
            };
            let end = rest.match_indices(',').map(|(at, _)| at).find(|at| begins(*at));
            let (url, behind) = rest.split_at(end.unwrap_or(rest.len()));
            rest = behind.get(1..).unwrap_or_default();
            Some(url.trim())
        })
        .filter(|url| !url.is_empty())
    }

    /// Starts a configuration with the settings of the environment, as [`Config::from_env`] does.
    ///
    /// # Errors
    /// [`ConfigError::UnsetVariable`] if no masters are named, and
    /// [`ConfigError::VariableNotText`].
    pub fn from_env(read: impl Fn(&'static str) -> Option<OsString>) -> Result<Self, ConfigError> {
        let text = |variable| {
            let value = read(variable).filter(|value| !value.is_empty());
            let text =
                value.map(|value| value.into_string().map_err(|_| ConfigError::VariableNotText { variable }));
            text.transpose()
        };
        let variable = Config::MASTERS_VARIABLE;
        let builder = Self::from_list(&text(variable)?.ok_or(ConfigError::UnsetVariable { variable })?);
        Ok(builder.prefix(text(Config::PREFIX_VARIABLE)?.unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::EndpointError;

    fn masters(config: &Config) -> Vec<String> {
        config.masters().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_list_names_masters() {
        assert_eq!(masters(&Config::from_list(" redis://a, ,redis://b:7,").unwrap()), ["a:6379", "b:7"]);
        let urls = |list| ConfigBuilder::urls(list).collect::<Vec<_>>();
        assert_eq!(
            urls("redis+sentinel://a,b:2/m, redis://c,redis+cluster://d,e?tag=f,"),
            ["redis+sentinel://a,b:2/m", "redis://c", "redis+cluster://d,e?tag=f"]
        );
        assert_eq!(Config::from_list(" , ").unwrap_err(), ConfigError::NoMasters);
        let error = EndpointError::BadPort;
        let refused = Config::from_list("redis://a,redis://b:x").unwrap_err();
        assert_eq!(refused, ConfigError::Endpoint { place: 2, masters: 2, error });
    }

    #[test]
    fn the_environment_names_masters_and_a_prefix() {
        let with = |masters: Option<&str>| {
            Config::from_env(|variable| {
                masters.filter(|_| variable == "QUORLOCK_MASTERS").map(OsString::from)
            })
        };
        assert_eq!(masters(&with(Some("redis://a,redis://b")).unwrap()), ["a:6379", "b:6379"]);
        let both = Config::from_env(|variable| {
            Some(if variable == "QUORLOCK_PREFIX" { "app:" } else { "redis://a" }.into())
        });
        assert_eq!(both.unwrap().prefix(), "app:");
        assert_eq!(with(Some("redis://a")).unwrap().prefix(), "");
        for unset in [None, Some("")] {
            let said = with(unset).unwrap_err().to_string();
            assert!(said.starts_with("QUORLOCK_MASTERS is not set; "), "{said}");
        }
        assert_eq!(with(Some(" ")).unwrap_err(), ConfigError::NoMasters);
        // The function that reads the real environment has the right type.
        drop(Config::from_env(std::env::var_os));
    }

    #[cfg(unix)]
    #[test]
    fn a_variable_that_is_no_text_is_refused() {
        use std::os::unix::ffi::OsStringExt as _;
        let refused = Config::from_env(|_| Some(OsString::from_vec(vec![0xff])));
        assert!(matches!(refused, Err(ConfigError::VariableNotText { variable: "QUORLOCK_MASTERS" })));
    }
}
