//! Settings that are accepted and settings that are refused.

use super::super::Channel;
use super::*;
use crate::endpoint::{EndpointError, Login};

const MILLI: Duration = Duration::from_millis(1);

fn three() -> ConfigBuilder {
    Config::builder(["redis://a", "redis://b", "redis://c"])
}

#[test]
fn every_unusable_setting_is_refused_with_its_own_error() {
    let none: [&str; 0] = [];
    assert_eq!(Config::new(none).unwrap_err(), ConfigError::NoMasters);
    let many: Vec<_> = (0..65).map(|n| format!("redis://h{n}")).collect();
    assert_eq!(Config::new(many).unwrap_err(), ConfigError::TooManyMasters { masters: 65 });
    let twice = Config::new(["redis://a/1", "redis://A:6379/2"]).unwrap_err();
    assert_eq!(twice, ConfigError::SameMasterTwice { master: "A:6379/2".into() });
    assert_eq!(three().ttl(Duration::ZERO).build().unwrap_err(), ConfigError::ZeroTtl);
    assert!(matches!(three().ttl(52 * MILLI).build(), Err(ConfigError::TtlTooShort { .. })));
    assert!(matches!(three().ttl(Duration::MAX).build(), Err(ConfigError::OversizedTtl { .. })));
    for (zero, setting) in [
        (three().request_timeout(Duration::ZERO), "request_timeout"),
        (three().connect_timeout(Duration::ZERO), "connect_timeout"),
        (three().retry_delay(Duration::ZERO..=MILLI), "retry_delay"),
        (three().reconnect_delay(Duration::ZERO..=MILLI), "reconnect_delay"),
        (three().longest_hold(Duration::ZERO), "longest_hold"),
        (three().restart_guard(Duration::ZERO), "restart_guard"),
    ] {
        assert_eq!(zero.build().unwrap_err(), ConfigError::ZeroSpan { setting });
    }
    let bounds = RangeInclusive::new(2 * MILLI, MILLI);
    let reversed = three().retry_delay(bounds).build().unwrap_err();
    assert_eq!(reversed, ConfigError::ReversedBounds { setting: "retry_delay" });
    assert!(matches!(three().request_timeout(Duration::MAX).build(), Err(ConfigError::EndlessSpan { .. })));
    let setting = "max_locks";
    assert_eq!(three().max_locks(0).build().unwrap_err(), ConfigError::ZeroLimit { setting });
    let prefix = |bytes| three().prefix("x".repeat(bytes)).build();
    assert!(prefix(1024).is_ok());
    assert_eq!(prefix(1025).unwrap_err(), ConfigError::OversizedPrefix { bytes: 1025 });
    assert_eq!(three().prefix("quorlock:").build().unwrap_err(), ConfigError::ReservedPrefix);
    assert_eq!(three().client_name("a b").build().unwrap_err(), ConfigError::UnusableClientName);
}

#[test]
fn the_kind_of_an_error_is_its_name() {
    let (setting, variable, master) = ("ttl", "X", String::from("a"));
    let (bytes, resource, span) = (0, Resource::new("r").unwrap(), MILLI);
    let errors = [
        ConfigError::NoMasters,
        ConfigError::TooManyMasters { masters: 65 },
        ConfigError::SameMasterTwice { master: master.clone() },
        ConfigError::Endpoint { place: 1, masters: 1, error: EndpointError::BadPort },
        ConfigError::EmptyResource,
        ConfigError::OversizedResource { bytes },
        ConfigError::NoTarget,
        ConfigError::TooManyTargets,
        ConfigError::ConflictingGroups { resource },
        ConfigError::ResumedAsAnother,
        ConfigError::FairOfSeveral,
        ConfigError::UnusablePermits { permits: 0 },
        ConfigError::UnusablePermitsAtOnce { permits: 0, most: 1 },
        ConfigError::UnusableGroup { bytes },
        ConfigError::ZeroTtl,
        ConfigError::OversizedTtl { ttl: span },
        ConfigError::TtlTooShort { ttl: span, more_than: span },
        ConfigError::ZeroSpan { setting },
        ConfigError::EndlessSpan { setting, span },
        ConfigError::EndlessLimit { setting, limit: span },
        ConfigError::ReversedBounds { setting },
        ConfigError::ZeroLimit { setting },
        ConfigError::TtlAboveFleet { ttl: span, longest: span },
        ConfigError::ReplicasWithoutGuard { master: master.clone() },
        ConfigError::FailoverUnguarded { master: master.clone() },
        ConfigError::FencedThoughLost { master },
        ConfigError::ReservedResource,
        ConfigError::OversizedPrefix { bytes },
        ConfigError::ReservedPrefix,
        ConfigError::UnsetVariable { variable },
        ConfigError::VariableNotText { variable },
        ConfigError::UnusableClientName,
    ];
    for error in errors {
        let name: String = format!("{error:?}").chars().take_while(char::is_ascii_alphanumeric).collect();
        let words =
            name.chars().map(|char| if char.is_uppercase() { format!("_{char}") } else { char.into() });
        assert_eq!(format!("_{}", error.kind()), words.collect::<String>().to_lowercase());
    }
}

#[test]
fn an_unusable_url_is_named_by_its_position() {
    let error = Config::new(["redis://a", "redis://:hunter2@b:x", "redis://c"]).unwrap_err();
    assert_eq!(error, ConfigError::Endpoint { place: 2, masters: 3, error: EndpointError::BadPort });
    assert_eq!(error.to_string(), "master 2 of 3: the port is not a number from 1 to 65535");
    let source = std::error::Error::source(&error).and_then(|source| source.downcast_ref());
    assert_eq!(source, Some(&EndpointError::BadPort));
    assert!(std::error::Error::source(&ConfigError::NoMasters).is_none());
    let error = Config::builder(["http://a"]).master("redis://b".parse().unwrap()).build().unwrap_err();
    assert_eq!(error, ConfigError::Endpoint { place: 1, masters: 2, error: EndpointError::UnknownScheme });
}

#[test]
fn a_user_needs_a_password_or_another_source_of_logins() {
    let without = Config::new(["redis://:hunter2@a", "redis://hunter3@b"]).unwrap_err();
    assert_eq!(without, ConfigError::Endpoint { place: 2, masters: 2, error: EndpointError::NoPassword });
    assert!(
        without.to_string().starts_with("master 2 of 2: the user has no password: write user:password@host")
    );
    for url in ["redis://me:@a", "redis://me@a?password-file=/run/x", "unix:///s?user=me&pass="] {
        assert!(Config::new([url]).is_ok(), "{url}");
    }
    let endpoint = Endpoint::tcp("a", 6379).unwrap().with_user("me");
    let builder = Config::builder([""; 0]).master(endpoint);
    assert!(builder.clone().build().is_err());
    assert!(builder.credentials(|_: &Endpoint| Ok(Login::new("hunter2"))).build().is_ok());
}

#[test]
fn an_endless_span_is_refused_with_its_setting_its_value_and_the_cure() {
    let said = |builder: ConfigBuilder| builder.build().unwrap_err().to_string();
    let beyond = Ttl::MAX + MILLI;
    for (endless, says) in [
        (
            three().timeout(beyond),
            "timeout is longer than the longest possible, 366 d; for no limit use timeout(None)",
        ),
        (
            three().longest_hold(Duration::from_secs(400 * 86_400)),
            "longest_hold of 400 d is longer than the longest possible, 366 d; for no limit use longest_hold(None)",
        ),
        (three().restart_guard(beyond), "restart_guard is longer than the longest possible, 366 d"),
        (three().connect_timeout(beyond), "connect_timeout is longer than the longest possible, 366 d"),
        (three().longest_hold(Duration::ZERO), "longest_hold is zero; use 1 ms or more"),
    ] {
        assert_eq!(said(endless), says);
    }
    for setting in [three().timeout(Duration::MAX), three().longest_hold(Duration::MAX)] {
        assert!(matches!(setting.build(), Err(ConfigError::EndlessLimit { .. })));
    }
}

#[test]
fn a_limit_of_none_and_the_longest_limit_are_accepted() {
    let config = three().timeout(Ttl::MAX).longest_hold(Ttl::MAX).build().unwrap();
    assert_eq!((config.timeout(), config.longest_hold()), (Some(Ttl::MAX), Some(Ttl::MAX)));
    let config = three().timeout(None).longest_hold(None).build().unwrap();
    assert_eq!((config.timeout(), config.longest_hold()), (None, None));
    // One try.
    assert_eq!(three().timeout(Duration::ZERO).build().unwrap().timeout, Some(Duration::ZERO));
}

#[test]
fn every_setting_of_the_builder_is_in_the_configuration() {
    let hour = Duration::from_secs(3600);
    let fourth = "redis://d".parse().unwrap();
    let config = three()
        .master(fourth)
        .ttl(20_000 * MILLI)
        .timeout(hour)
        .longest_hold(2 * hour)
        .request_timeout(30 * MILLI)
        .connect_timeout(Ttl::MAX)
        .retry_delay(MILLI..=Ttl::MAX)
        .reconnect_delay(Ttl::MAX..=Ttl::MAX)
        .max_in_flight_requests(2)
        .max_in_flight_bytes(3)
        .max_locks(4)
        .client_name("quorlock-1!")
        .prefix("app:")
        .build()
        .unwrap();
    assert_eq!(config.masters().last().map(ToString::to_string), Some("d:6379".to_owned()));
    assert_eq!(config.master_ids().map(MasterId::index).collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert_eq!((config.quorum().masters(), config.quorum().needed()), (4, 3));
    assert_eq!(config.ttl().as_millis(), 20_000);
    assert_eq!((config.timeout(), config.longest_hold()), (Some(hour), Some(2 * hour)));
    assert_eq!((config.request_timeout(), config.connect_timeout()), (30 * MILLI, Ttl::MAX));
    assert_eq!(config.retry_delay(), MILLI..=Ttl::MAX);
    assert_eq!(config.reconnect_delay(), Ttl::MAX..=Ttl::MAX);
    assert_eq!(
        (config.max_in_flight_requests(), config.max_in_flight_bytes(), config.max_locks()),
        (2, 3, 4)
    );
    assert_eq!(config.client_name(), Some("quorlock-1!"));
    assert_eq!((config.prefix(), config.resource("job").unwrap().key()), ("app:", &b"app:job"[..]));
    assert_eq!((config.restart_guard(), config.allowed_evictions()), (None, &[][..]));
    assert!(config.wake_ups());
    assert_eq!(three().client_name("").build().unwrap_err(), ConfigError::UnusableClientName);
}

#[test]
fn every_setting_of_the_restart_guard_is_in_the_configuration() {
    let config = three()
        .restart_guard(Ttl::MAX)
        .allow_eviction(EvictionPolicy::VolatileTtl)
        .wake_ups(false)
        .build()
        .unwrap();
    assert_eq!(config.restart_guard(), Some(Ttl::MAX));
    assert_eq!(config.fleet(MasterId::all(3).next().unwrap()).map(|fleet| fleet.masters), Some(3));
    assert_eq!(config.allowed_evictions(), [EvictionPolicy::VolatileTtl]);
    assert!(!config.wake_ups());
}

/// An implementation of TLS whose error is its name.
#[derive(Debug)]
struct Named(&'static str);

impl Security for Named {
    fn prepare(&self, _: &[Endpoint]) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        Err(self.0.into())
    }

    fn channel(&self, _: &Endpoint, _: &Address) -> Result<Box<dyn Channel>, Cause> {
        Err(Cause::Closed)
    }
}

#[test]
fn the_transports_tls_is_used_if_a_url_asks_for_it_and_the_configuration_has_none() {
    let (plain, mixed) = (["redis://a", "redis://b"], ["redis://a", "rediss://b"]);
    for (masters, own, used) in [
        (plain, None, None),
        (plain, Some("own"), Some("own")),
        (mixed, None, Some("transport")),
        (mixed, Some("own"), Some("own")),
    ] {
        let builder = Config::builder(masters);
        let builder = own.map_or(builder.clone(), |own| builder.tls(Named(own)));
        let config = builder.build().unwrap().or_security(|| Arc::new(Named("transport")));
        let name = config.security().map(|tls| tls.prepare(&[]).unwrap_err().to_string());
        assert_eq!(name.as_deref(), used, "{masters:?}, {own:?}");
    }
}

#[test]
fn a_ttl_must_be_longer_than_its_drift_and_one_request_timeout() {
    let ttl = Ttl::new(100 * MILLI).unwrap();
    assert_eq!(check_ttl(ttl, 97 * MILLI - Duration::from_nanos(1)), Ok(()));
    let more_than = 100 * MILLI;
    let too_short = ConfigError::TtlTooShort { ttl: 100 * MILLI, more_than };
    assert_eq!(check_ttl(ttl, 97 * MILLI), Err(too_short.clone()));
    let said = too_short.to_string();
    assert!(said.starts_with("a TTL of 100 ms leaves no validity; it must be more than 100 ms"), "{said}");
}

#[test]
fn one_master_and_even_numbers_of_masters_work() {
    assert_eq!(Config::new(["redis://a"]).unwrap().quorum().needed(), 1);
    assert_eq!(Config::new(["redis://a", "valkey://b"]).unwrap().quorum().needed(), 2);
}
