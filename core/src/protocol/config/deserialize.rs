//! Configurations from files, by serde. The builder checks the settings, so the errors are the
//! builder's.

use std::ops::RangeInclusive;
use std::time::Duration;

use serde::de::Error;
use serde::{Deserialize, Deserializer};

use super::{Config, ConfigBuilder};
use crate::protocol::EvictionPolicy;

/// With the feature `serde`: a table with `masters`, and any of the builder's other settings under
/// their names.
///
/// `masters` is a list of URLs, or one text with commas between them. A duration is a text such as
/// `"500ms"`, `"1.5s"` or `"2m"`; a pair of bounds is a list of two; `"none"` means no limit.
impl<'de> Deserialize<'de> for Config {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let settings = Settings::deserialize(deserializer)?;
        settings.into_builder().build().map_err(D::Error::custom)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename = "Config")]
struct Settings {
    masters: Masters,
    ttl: Option<Span>,
    timeout: Option<Limit>,
    longest_hold: Option<Limit>,
    request_timeout: Option<Span>,
    connect_timeout: Option<Span>,
    retry_delay: Option<[Span; 2]>,
    reconnect_delay: Option<[Span; 2]>,
    max_in_flight_requests: Option<usize>,
    max_in_flight_bytes: Option<usize>,
    max_locks: Option<usize>,
    client_name: Option<String>,
    prefix: Option<String>,
    restart_guard: Option<Span>,
    #[serde(default)]
    allowed_evictions: Vec<Policy>,
    wake_ups: Option<bool>,
    keep_alive: Option<Span>,
}

impl Settings {
    fn into_builder(self) -> ConfigBuilder {
        let bounds = |[start, end]: [Span; 2]| RangeInclusive::new(start.0, end.0);
        let allow = |builder, Policy(policy)| ConfigBuilder::allow_eviction(builder, policy);
        let builder = match &self.masters {
            Masters::Listed(list) => ConfigBuilder::from_list(list),
            Masters::Each(urls) => Config::builder(urls),
        };
        let builder = self.allowed_evictions.into_iter().fold(builder, allow);
        let builder = with(builder, self.ttl.map(|ttl| ttl.0), ConfigBuilder::ttl);
        let builder = with(builder, self.timeout.map(|limit| limit.0), ConfigBuilder::timeout);
        let builder = with(builder, self.longest_hold.map(|limit| limit.0), ConfigBuilder::longest_hold);
        let builder =
            with(builder, self.request_timeout.map(|limit| limit.0), ConfigBuilder::request_timeout);
        let builder =
            with(builder, self.connect_timeout.map(|limit| limit.0), ConfigBuilder::connect_timeout);
        let builder = with(builder, self.retry_delay.map(bounds), ConfigBuilder::retry_delay);
        let builder = with(builder, self.reconnect_delay.map(bounds), ConfigBuilder::reconnect_delay);
        let builder = with(builder, self.max_in_flight_requests, ConfigBuilder::max_in_flight_requests);
        let builder = with(builder, self.max_in_flight_bytes, ConfigBuilder::max_in_flight_bytes);
        let builder = with(builder, self.max_locks, ConfigBuilder::max_locks);
        let builder = with(builder, self.client_name, ConfigBuilder::client_name);
        let builder = with(builder, self.prefix, ConfigBuilder::prefix);
        let builder =
            with(builder, self.restart_guard.map(|longest| longest.0), ConfigBuilder::restart_guard);
        let builder = with(builder, self.wake_ups, ConfigBuilder::wake_ups);
        with(builder, self.keep_alive.map(|quiet| quiet.0), ConfigBuilder::keep_alive)
    }
}

/// The builder with this setting, if the file has it.
fn with<T>(
    builder: ConfigBuilder,
    value: Option<T>,
    set: impl FnOnce(ConfigBuilder, T) -> ConfigBuilder,
) -> ConfigBuilder {
    match value {
        Some(value) => set(builder, value),
        None => builder,
    }
}

/// No error repeats a URL: it may hold a password.
#[derive(Deserialize)]
#[serde(untagged, expecting = "masters needs a list of URLs, or one text in which commas separate them")]
enum Masters {
    Listed(String),
    Each(Vec<String>),
}

#[derive(Deserialize)]
#[serde(try_from = "String")]
struct Span(Duration);

impl TryFrom<String> for Span {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        // humantime reads `M` as a month, which is hardly intended.
        let duration = humantime::parse_duration(&text).ok().filter(|_| !text.contains('M'));
        duration.map(Self).ok_or("needs a duration such as \"500ms\", \"1.5s\" or \"2m\"")
    }
}

#[derive(Deserialize)]
#[serde(try_from = "String")]
struct Limit(Option<Duration>);

impl TryFrom<String> for Limit {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        match text.as_str() {
            "none" => Ok(Self(None)),
            _ => Span::try_from(text).map(|Span(limit)| Self(Some(limit))),
        }
    }
}

#[derive(Deserialize)]
#[serde(try_from = "String")]
struct Policy(EvictionPolicy);

impl TryFrom<String> for Policy {
    type Error = &'static str;

    fn try_from(name: String) -> Result<Self, Self::Error> {
        EvictionPolicy::named(&name)
            .map(Self)
            .ok_or("needs a value of maxmemory-policy, such as \"volatile-ttl\"")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Ttl;

    fn read(json: &str) -> Result<Config, String> {
        serde_json::from_str(json).map_err(|error: serde_json::Error| error.to_string())
    }

    #[test]
    fn every_setting_is_read() {
        let config = read(
            r#"{"masters": "redis://a, redis://:hunter2@b", "ttl": "20s", "timeout": "none", "longest_hold": "2h",
                "request_timeout": "30ms", "connect_timeout": "0.5s", "retry_delay": ["1ms", "2ms"],
                "reconnect_delay": ["3ms", "3ms"], "max_in_flight_requests": 1, "max_in_flight_bytes": 2, "max_locks": 3,
                "client_name": "x", "prefix": "app:", "restart_guard": "1m", "allowed_evictions": ["volatile-ttl"], "wake_ups": false,
                "keep_alive": "4m"}"#,
        )
        .unwrap();
        let ms = Duration::from_millis;
        assert_eq!(
            config.masters().iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["a:6379", "b:6379"]
        );
        assert_eq!((config.ttl(), config.timeout()), (Ttl::new(ms(20_000)).unwrap(), None));
        assert_eq!(config.longest_hold(), Some(ms(7_200_000)));
        assert_eq!((config.request_timeout(), config.connect_timeout()), (ms(30), ms(500)));
        assert_eq!((config.retry_delay(), config.reconnect_delay()), (ms(1)..=ms(2), ms(3)..=ms(3)));
        assert_eq!((config.max_in_flight_requests(), config.max_in_flight_bytes()), (1, 2));
        assert_eq!((config.max_locks(), config.client_name()), (3, Some("x")));
        assert_eq!((config.prefix(), config.restart_guard()), ("app:", Some(ms(60_000))));
        assert_eq!(config.allowed_evictions(), [EvictionPolicy::VolatileTtl]);
        assert_eq!((config.wake_ups(), config.keep_alive()), (false, Some(ms(240_000))));
    }

    #[test]
    fn missing_settings_have_their_defaults() {
        let config = read(r#"{"masters": ["redis://a", "redis://b"]}"#).unwrap();
        let default = Config::new(["redis://a", "redis://b"]).unwrap();
        assert_eq!(format!("{config:?}"), format!("{default:?}"));
    }

    #[test]
    fn invalid_settings_are_refused_without_showing_a_secret() {
        for (json, says) in [
            ("{}", "missing field `masters`"),
            (r#"{"masters": []}"#, "no master is named"),
            (r#"{"masters": ["redis://a", "redis://:hunter2@b:x"]}"#, "master 2 of 2: the port"),
            (r#"{"masters": [["redis://:hunter2@b"]]}"#, "a list of URLs"),
            (r#"{"masters": "redis://a", "ttl": "hunter2"}"#, "needs a duration"),
            (r#"{"masters": "redis://a", "ttl": "20ms"}"#, "leaves no validity"),
            (r#"{"masters": "redis://a", "retry_delay": ["2ms", "1ms"]}"#, "lower bound above"),
            (
                r#"{"masters": "redis://a", "allowed_evictions": ["hunter2"]}"#,
                "needs a value of maxmemory-policy",
            ),
            (r#"{"masters": "redis://a", "timeout_of_requests": "1s"}"#, "unknown field"),
        ] {
            let error = read(json).unwrap_err();
            assert!(error.contains(says) && !error.contains("hunter2"), "{json}: {error}");
        }
    }
}
