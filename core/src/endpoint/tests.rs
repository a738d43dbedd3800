use std::path::Path;

use proptest::prelude::*;

use super::*;

fn parsed(url: &str) -> Endpoint {
    url.parse().unwrap_or_else(|error| panic!("{url}: {error}"))
}

fn refused(url: &str) -> EndpointError {
    url.parse::<Endpoint>().expect_err(url)
}

#[test]
fn urls_of_tcp_ports_name_host_port_and_database() {
    for (url, shown) in [
        ("redis://a", "a:6379"),
        ("redis://a/", "a:6379"),
        ("valkey://a:7000", "a:7000"),
        ("REDIS://a:7000/0", "a:7000"),
        ("redis://a/2", "a:6379/2"),
        ("redis://a:1/65535", "a:1/65535"),
        ("redis://10.0.0.1:6380", "10.0.0.1:6380"),
        ("redis://[::1]", "[::1]:6379"),
        ("redis://[::1]:7000/3", "[::1]:7000/3"),
        ("redis://[2001:DB8:0:0:0:0:0:1]", "[2001:db8::1]:6379"),
        ("redis://user:pw@redis_1.example.com.:7000", "redis_1.example.com.:7000"),
        ("redis://a?", "a:6379"),
    ] {
        assert_eq!(parsed(url).to_string(), shown, "{url}");
    }
}

#[test]
fn urls_over_tls_take_the_parameters_of_redis_cli() {
    let files = "cacert=/etc/ca.pem&cert=/run/a%20b.crt&key=/run/a.key";
    let endpoint = parsed(&format!("rediss://user:pw@a:6380/2?{files}&sni=cache.internal"));
    assert_eq!(endpoint.to_string(), "a:6380/2");
    let options = TlsOptions::default()
        .with_root_file("/etc/ca.pem")
        .with_client_files("/run/a b.crt", "/run/a.key")
        .with_server_name("cache.internal");
    assert_eq!(endpoint.tls(), Some(&options));
    assert_eq!(options.root_file(), Some(Path::new("/etc/ca.pem")));
    assert_eq!(options.client_files(), Some((Path::new("/run/a b.crt"), Path::new("/run/a.key"))));
    assert_eq!(parsed("VALKEYS://a").tls(), Some(&TlsOptions::default()));
    assert_eq!(parsed("redis://a").tls(), None);
    assert!(parsed("redis://a").same_server(&parsed("rediss://a")));
}

#[test]
fn urls_of_unix_sockets_name_a_path_and_take_parameters() {
    for (url, shown) in [
        ("unix:///run/redis.sock", "unix:/run/redis.sock"),
        ("redis+unix:///run/redis.sock?db=2", "unix:/run/redis.sock/2"),
        ("valkey+unix:///run/with%20space", "unix:/run/with space"),
        ("unix://user:pw@/run/a@b?db=0", "unix:/run/a@b"),
    ] {
        assert_eq!(parsed(url).to_string(), shown, "{url}");
    }
    let endpoint = parsed("unix:///s?user=me&pass=p%26w@=x&db=7");
    assert_eq!((endpoint.user(), endpoint.password(), endpoint.database()), (Some("me"), Some("p&w@=x"), 7));
    assert_eq!(endpoint.address(), &Address::Unix("/s".into()));
}

#[test]
fn credentials_stand_before_the_host_and_are_percent_decoded() {
    for (url, user, password) in [
        ("redis://a", None, None),
        ("redis://@a", None, None),
        ("redis://:@a", None, None),
        ("redis://:secret@a", None, Some("secret")),
        ("redis://me@a", Some("me"), None),
        ("redis://me:@a", Some("me"), Some("")),
        ("redis://me:secret@a", Some("me"), Some("secret")),
        ("redis://m%65:%40%2F%3f%23:%25@a", Some("me"), Some("@/?#:%")),
        ("redis://me:p@ss:w@a", Some("me"), Some("p@ss:w")),
        ("redis://:gr%C3%BCn@a", None, Some("grün")),
        ("unix://me:secret@/s", Some("me"), Some("secret")),
    ] {
        let endpoint = parsed(url);
        assert_eq!((endpoint.user(), endpoint.password()), (user, password), "{url}");
    }
}

#[test]
fn each_mistake_has_its_own_error() {
    use EndpointError::*;
    for (url, error) in [
        ("", UnknownScheme),
        ("a:6379", UnknownScheme),
        ("http://a", UnknownScheme),
        (" redis://a", UnknownScheme),
        ("rediss://a#insecure", Unverified),
        ("rediss://a?verify=none", Unverified),
        ("valkeys://a?insecure=1", Unverified),
        ("redis://a?cacert=/ca.pem", NeedsTls),
        ("redis://a?cert=/c.pem", NeedsTls),
        ("redis://a?key=/k.pem", NeedsTls),
        ("redis://a?sni=b", NeedsTls),
        ("redis+sentinel://a/m?cacert=/ca.pem", NeedsTls),
        ("redis://a,b", SeveralHosts),
        ("redis+sentinel://a", MissingGroup),
        ("redis+sentinel://a/", MissingGroup),
        ("redis+sentinel://a/%0a", MissingGroup),
        ("redis+sentinel:///m", EmptyHost),
        ("redis+sentinel://a,/m", EmptyHost),
        ("redis+sentinel://a,b:0/m", BadPort),
        ("redis+sentinel://a/m/x", BadDatabase),
        ("redis+sentinel://a/m?sentinel-user=b", UserAlone),
        ("redis+sentinel://a/m?sentinel-pass=b&c", UnencodedCharacter),
        ("redis+sentinel://a/m?tag=b", UnknownParameter("tag".into())),
        ("redis://a?sentinel-pass=b", UnknownParameter("sentinel-pass".into())),
        ("redis://a?sentinel-user=b", UnknownParameter("sentinel-user".into())),
        ("redis://a?verify=none", UnknownParameter("verify".into())),
        ("redis+cluster://a", BadTag),
        ("redis+cluster://a?tag=", BadTag),
        ("redis+cluster://a?tag={q0}", BadTag),
        ("redis+cluster://a?tag=q0&tag=q1", RepeatedParameter("tag")),
        ("redis+cluster://a/x?tag=q0", BadDatabase),
        ("redis://a?failover=never", BadFailover),
        ("rediss://a?cert=/c.pem", HalfOfPair),
        ("rediss://a?key=/k.pem", HalfOfPair),
        ("rediss://a?cacert=", MissingFile),
        ("rediss://a?cacert=/a&cacert=/b", RepeatedParameter("cacert")),
        ("redis://", EmptyHost),
        ("redis://:7000", EmptyHost),
        ("redis://me:pw@/2", EmptyHost),
        ("redis://a b", BadHost),
        ("redis://a%20b", BadHost),
        ("redis://::1", BadHost),
        ("redis://::1:6379", BadHost),
        ("redis://[::1", BadHost),
        ("redis://[a]", BadHost),
        ("redis://[::1]x", BadHost),
        ("redis://[fe80::1%eth0]:6379", Zone),
        ("rediss://[fe80::1%25eth0]", Zone),
        ("redis+cluster://a,[fe80::1%2]?tag=q0", Zone),
        ("redis://a:", BadPort),
        ("redis://a:0", BadPort),
        ("redis://a:+1", BadPort),
        ("redis://a:65536", BadPort),
        ("redis://a:port", BadPort),
        ("redis://a:b:1", BadHost),
        ("redis://a/x", BadDatabase),
        ("redis://a/-1", BadDatabase),
        ("redis://a/+1", BadDatabase),
        ("redis://a/65536", BadDatabase),
        ("redis://a/2/", BadDatabase),
        ("unix:///s?db=", BadDatabase),
        ("unix:///s?db", BadDatabase),
        ("redis://:%@a", BadEscape),
        ("redis://:%4@a", BadEscape),
        ("redis://:%zz@a", BadEscape),
        ("redis://:%+1@a", BadEscape),
        ("redis://:%ff@a", BadEscape),
        ("unix:///s%", BadEscape),
        ("unix://", MissingPath),
        ("unix:///", MissingPath),
        ("unix://me:pw@", MissingPath),
        ("unix://?db=1", MissingPath),
        ("unix://run/redis.sock", HostInUnixUrl),
        ("redis://a?timeout=5", UnknownParameter("timeout".into())),
        ("redis://a?password-file=", MissingPasswordFile),
        ("redis://a?password-file", MissingPasswordFile),
        ("redis://a?password-file=%2", BadEscape),
        ("redis://a?password-file=/x&password-file=/x", RepeatedParameter("password-file")),
        ("redis://:pw@a?password-file=/x", PasswordAndFile),
        ("redis://me:@a?password-file=/x", PasswordAndFile),
        ("unix://:pw@/s?password-file=/x", PasswordAndFile),
        ("unix:///s?password-file=/x&pass=pw", PasswordAndFile),
        ("redis://a/1?db=5", UnknownParameter("db".into())),
        ("unix:///s?password=x", UnknownParameter("password".into())),
        ("unix:///s?db=1&db=2", RepeatedParameter("db")),
        ("unix://me@/s?user=you", RepeatedParameter("user")),
        ("unix://:a@/s?pass=b", RepeatedParameter("pass")),
        ("redis://a#b", UnencodedCharacter),
        ("redis://:se#cret@a", UnencodedCharacter),
        ("redis://:se/cret@a", UnencodedCharacter),
        ("redis://me:1?secret=x@a", UnencodedCharacter),
        ("unix:///s?pass=se&cret", UnencodedCharacter),
    ] {
        assert_eq!(refused(url), error, "{url}");
        assert_eq!(error.kind(), snake_case(&format!("{error:?}")), "{url}");
    }
}

/// A variant's name, without its fields, in the form of the labels of metrics.
fn snake_case(variant: &str) -> String {
    let name = variant.chars().take_while(|character| *character != '(');
    let words = name.flat_map(|character| {
        character.is_uppercase().then_some('_').into_iter().chain(character.to_lowercase())
    });
    words.skip(1).collect()
}

#[test]
fn two_names_of_one_server_are_one_master() {
    for (one, two) in [
        ("redis://a", "valkey://A:6379"),
        ("redis://a", "redis://a."),
        ("redis://a/1", "redis://me:pw@a/2"),
        ("redis://[::1]", "redis://[0:0:0:0:0:0:0:1]"),
        ("redis://[::ffff:10.0.0.1]", "redis://10.0.0.1"),
        ("unix:///s?db=1", "redis+unix:///s"),
    ] {
        assert!(parsed(one).same_server(&parsed(two)), "{one} {two}");
    }
    for (one, two) in [
        ("redis://a", "redis://b"),
        ("redis://a:1", "redis://a:2"),
        ("redis://localhost", "redis://127.0.0.1"),
        ("unix:///s", "unix:///t"),
        ("unix:///s", "redis://s"),
    ] {
        assert!(!parsed(one).same_server(&parsed(two)), "{one} {two}");
    }
}

#[test]
fn an_endpoint_is_also_built_from_its_parts() {
    let built = Endpoint::tcp("::1", 7000).unwrap().with_user("me").with_password("secret").with_database(2);
    assert_eq!(built, parsed("redis://me:secret@[::1]:7000/2"));
    let options = TlsOptions::default().with_server_name("b");
    let built = built.with_tls(options).with_failover(Failover::Durable);
    assert_eq!(built, parsed("rediss://me:secret@[::1]:7000/2?sni=b&failover=durable"));
    assert_eq!(Endpoint::tcp("[::1]", 7000), Endpoint::tcp("::1", 7000));
    assert_eq!(Endpoint::unix("/s").unwrap(), parsed("unix:///s"));
    assert_eq!(Endpoint::tcp("", 1), Err(EndpointError::EmptyHost));
    assert_eq!(Endpoint::tcp("a", 0), Err(EndpointError::BadPort));
    assert_eq!(Endpoint::tcp("a:1", 1), Err(EndpointError::BadHost));
    assert_eq!(Endpoint::tcp("fe80::1%eth0", 1), Err(EndpointError::Zone));
    assert_eq!(Endpoint::unix(""), Err(EndpointError::MissingPath));
    assert_eq!(Endpoint::try_from("redis://a"), Endpoint::tcp("a", 6379));
}

#[test]
fn a_password_may_be_in_a_file() {
    for (url, user, file) in [
        ("redis://a:7000/2?password-file=/run/secrets/redis", None, "/run/secrets/redis"),
        ("valkey://me@a?password-file=here%20and%40now", Some("me"), "here and@now"),
        ("redis://@a?password-file=/x", None, "/x"),
        ("unix://me@/s?db=1&password-file=/x", Some("me"), "/x"),
        ("unix:///s?password-file=/x&user=me", Some("me"), "/x"),
    ] {
        let endpoint = parsed(url);
        let read = (endpoint.user(), endpoint.password(), endpoint.password_file());
        assert_eq!(read, (user, None, Some(Path::new(file))), "{url}");
        let built = endpoint.clone().with_password("x");
        assert_eq!((built.password(), built.password_file()), (Some("x"), None));
        assert_eq!(built.with_password_file(file), endpoint);
    }
    let shown = format!("{:?}", parsed("redis://me@a?password-file=/run/x"));
    assert_eq!(shown, "Endpoint(a:6379, user: set, password: in /run/x)");
}

#[test]
fn debug_of_a_login_shows_neither_user_nor_password() {
    let login = Login::new("hunter2").with_user("worker");
    assert_eq!(format!("{login:?} {login:#?}"), "Login(..) Login(..)");
}

#[test]
fn debug_says_whether_credentials_are_set_and_not_which() {
    let endpoint = parsed("redis://worker:hunter2@a/2");
    assert_eq!(format!("{endpoint:?}"), "Endpoint(a:6379/2, user: set, password: set)");
    assert_eq!(format!("{:?}", parsed("redis://a")), "Endpoint(a:6379, user: none, password: none)");
}

/// URLs with the secret in each possible position, with a character in it that should have been
/// encoded.
fn urls_with(secret: &str) -> Vec<String> {
    let mut urls = Vec::new();
    for split in ["", "@", "/", "?", "#", "&", "=", ":", "%", "%40", "[", "]", " ", "?a=", "&a=", "/?"] {
        let secret = format!("{secret}{split}{secret}");
        for scheme in ["redis", "valkey", "rediss", "http", "unix", "redis+unix"] {
            urls.push(format!("{scheme}://:{secret}@a:1/2"));
            urls.push(format!("{scheme}://me:{secret}@a/x?y=1"));
            urls.push(format!("{scheme}://me:1{secret}@[::1"));
            urls.push(format!("{scheme}:///s?pass={secret}&db=1"));
            urls.push(format!("{scheme}:///s?db=1&pass={secret}&x=1"));
        }
        urls.push(format!("me:{secret}@a"));
    }
    urls
}

proptest! {
    #[test]
    fn no_text_panics(text: String, scheme in "(redis|valkey|unix)://", tail in r"[a-z0-9:/@?&=%#\[\].]{0,30}") {
        let _ = text.parse::<Endpoint>();
        for url in [format!("{scheme}{text}"), format!("{scheme}{tail}")] {
            let _ = url.parse::<Endpoint>().map(|endpoint| format!("{endpoint} {endpoint:?}"));
        }
    }

    #[test]
    fn no_password_is_shown_in_any_message(secret in "[A-Z][A-Z0-9]{7,12}") {
        for url in urls_with(&secret) {
            let shown = match url.parse::<Endpoint>() {
                Ok(endpoint) => format!("{endpoint} {endpoint:?}"),
                Err(error) => format!("{error} {error:?}"),
            };
            prop_assert!(!shown.contains(&secret), "{} shows {}", url, shown);
        }
    }
}

#[test]
fn the_number_of_replicas_is_zero_to_sixteen_or_not_declared() {
    let parse = |url: &str| url.parse::<Endpoint>();
    for (url, replicas) in [
        ("redis://a", None),
        ("redis://a?replicas=0", Some(0)),
        ("redis://a?replicas=1", Some(1)),
        ("rediss://a/2?replicas=16&sni=b", Some(16)),
        ("unix:///s?db=1&replicas=2", Some(2)),
    ] {
        assert_eq!(parse(url).map(|endpoint| endpoint.replicas()), Ok(replicas), "{url}");
    }
    for url in
        ["redis://a?replicas=-0", "redis://a?replicas=17", "redis://a?replicas=", "unix:///s?replicas=+1"]
    {
        assert_eq!(parse(url), Err(EndpointError::BadReplicas), "{url}");
    }
    let twice = Err(EndpointError::RepeatedParameter("replicas"));
    assert_eq!(parse("redis://a?replicas=1&replicas=1"), twice);
    assert_eq!(parse("redis://a?replicas=1").unwrap().with_replicas(None), parse("redis://a"));
    assert_eq!(parse("redis://a").unwrap().with_replicas(17), Err(EndpointError::BadReplicas));
}

#[test]
fn a_group_with_sentinels_has_a_name_and_two_logins() {
    let endpoint = parsed(
        "rediss+sentinel://me:pw@a,b:7,[::1]/my%2Fmaster/2?replicas=2&sentinel-user=s&sentinel-pass=%26&sni=x",
    );
    assert_eq!(endpoint.to_string(), "my/master@a:26379,b:7,[::1]:26379/2");
    let Some(Discovery::Sentinel { group, login: Some(login) }) = endpoint.discovery() else { panic!() };
    assert_eq!((group.as_str(), login.user(), login.password()), ("my/master", Some("s"), "&"));
    assert_eq!(
        (endpoint.user(), endpoint.password(), endpoint.replicas()),
        (Some("me"), Some("pw"), Some(2))
    );
    assert_eq!(endpoint.tls().and_then(TlsOptions::server_name), Some("x"));
    assert_eq!(endpoint.places().count(), 3);
    assert!(!format!("{endpoint:?}").contains("pw") && !format!("{endpoint:?}").contains('&'));

    let endpoint = Endpoint::sentinel("m", &[("a", 1)]).unwrap().with_sentinel_login(Login::new("pw"));
    assert!(matches!(endpoint.discovery(), Some(Discovery::Sentinel { login: Some(_), .. })));
}

#[test]
fn a_master_in_a_cluster_has_a_tag() {
    let endpoint = parsed("redis+cluster://a:7000,b/?tag=q0&replicas=1");
    assert_eq!(endpoint.to_string(), "q0@a:7000,b:6379");
    assert_eq!(endpoint.discovery(), Some(&Discovery::Cluster { tag: "q0".to_owned() }));
    assert_eq!(parsed("rediss+cluster://a?tag=q0").tls(), Some(&TlsOptions::default()));
}

#[test]
fn tags_and_lists_of_places_have_a_largest_length() {
    let of = |length, places| Endpoint::cluster(&"q".repeat(length), &vec![("a", 1); places]).err();
    assert_eq!([of(1, 1), of(64, 1), of(64, 32)], [None, None, None]);
    assert_eq!([of(65, 1), of(64, 33)], [Some(EndpointError::BadTag), Some(EndpointError::TooManyPlaces)]);
}

#[test]
fn a_url_says_what_a_failover_may_do() {
    assert_eq!(parsed("redis://a").failover(), None);
    assert_eq!(parsed("redis://a?failover=may-lose-locks").failover(), Some(Failover::MayLoseLocks));
    assert_eq!(parsed("unix:///s?failover=durable").failover(), Some(Failover::Durable));
}

#[test]
fn urls_with_the_same_group_or_tag_and_a_common_server_are_one_master() {
    for (one, two) in [
        ("redis+sentinel://a,b/m", "redis+sentinel://c,b/m"),
        ("redis+cluster://a,b?tag=q", "redis+cluster://b?tag=q"),
    ] {
        assert!(parsed(one).same_server(&parsed(two)), "{one} {two}");
    }
    for (one, two) in [
        ("redis+sentinel://a/m", "redis+sentinel://a/n"),
        ("redis+sentinel://a/m", "redis+sentinel://b/m"),
        ("redis+cluster://a?tag=q", "redis+cluster://a?tag=r"),
        ("redis+cluster://a?tag=q", "redis+cluster://b?tag=q"),
        ("redis+cluster://a?tag=q", "redis://a"),
    ] {
        assert!(!parsed(one).same_server(&parsed(two)), "{one} {two}");
    }
}
