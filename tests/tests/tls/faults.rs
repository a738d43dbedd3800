//! Each fault by a real server, and what a user reads about it.

use std::time::Duration;

use quorlock_blocking::{AcquireError, Config};
use quorlock_core::{Cause, TlsFault, Vote};
use quorlock_tests::rcgen::date_time_ymd;
use quorlock_tests::{Certificates, NAMES, RedisServer, ServerOptions};

/// The URL of a server, with parameters.
pub(crate) fn url(server: &RedisServer, parameters: &str) -> String {
    format!("rediss://{}?{parameters}", server.address())
}

pub(crate) fn cacert(certificates: &Certificates) -> String {
    format!("cacert={}", certificates.root().display())
}

pub(crate) fn pair(certificates: &Certificates) -> String {
    format!("cert={}&key={}", certificates.certificate().display(), certificates.key().display())
}

/// Why the master of this URL has no vote, and the message about it.
fn fault(url: &str) -> (Cause, String) {
    let config = Config::builder([url]).connect_timeout(Duration::from_secs(2)).build().unwrap();
    let error = quorlock_blocking::open(config).unwrap().try_lock("job").wait().unwrap_err();
    let Some((_, Vote::Failed(cause))) = error.ballot().unwrap().votes().next() else { panic!("{error}") };
    // The test of secrets searches all output.
    eprintln!("{error}\n{error:?}");
    if cause.is_configuration() {
        assert!(matches!(error, AcquireError::Misconfigured(_)), "{error}");
    }
    (cause, error.to_string())
}

#[track_caller]
fn expect(url: &str, fault_is: TlsFault, says: &str) {
    let (cause, text) = fault(url);
    assert_eq!(cause, Cause::Tls(fault_is), "{text}");
    assert!(text.contains(says), "{text}");
}

fn server(certificates: &Certificates, demands: &str) -> RedisServer {
    ServerOptions::new().tls(certificates, demands).start()
}

fn shared() -> &'static Certificates {
    Certificates::shared()
}

#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
pub(crate) fn an_untrusted_issuer_is_reported() {
    let other = Certificates::own(NAMES, |_| {});
    expect(&url(&server(&other, "no"), &cacert(shared())), TlsFault::UnknownIssuer, "cacert=");
}

#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
pub(crate) fn a_certificate_for_another_name_is_reported_with_its_own_name() {
    let elsewhere = Certificates::own(&["cache.internal"], |_| {});
    let server = server(&elsewhere, "no");
    expect(&url(&server, &cacert(&elsewhere)), TlsFault::WrongName, "sni=");

    let config = Config::new([url(&server, &format!("{}&sni=cache.internal", cacert(&elsewhere)))]).unwrap();
    assert!(quorlock_blocking::open(config).unwrap().lock("job").wait().is_ok());
}

#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
pub(crate) fn expired_and_not_yet_valid_certificates_are_reported() {
    let ended = Certificates::own(NAMES, |params| {
        (params.not_before, params.not_after) = (date_time_ymd(2020, 1, 1), date_time_ymd(2021, 1, 1));
    });
    expect(&url(&server(&ended, "no"), &cacert(&ended)), TlsFault::Expired, "expired");
    let early = Certificates::own(NAMES, |params| {
        (params.not_before, params.not_after) = (date_time_ymd(2090, 1, 1), date_time_ymd(2091, 1, 1));
    });
    expect(&url(&server(&early, "no"), &cacert(&early)), TlsFault::NotYetValid, "not valid yet");
}

#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
pub(crate) fn a_missing_client_certificate_is_reported() {
    // TLS 1.3 reports the missing certificate after the handshake, and TLS 1.2 within it.
    for protocols in ["TLSv1.3", "TLSv1.2"] {
        let options = ServerOptions::new().config(&format!("tls-protocols {protocols}"));
        let server = options.tls(shared(), "yes").start();
        let trusted = cacert(shared());
        expect(&url(&server, &trusted), TlsFault::ClientCertificateRequired, "cert= and key=");

        let other = Certificates::own(NAMES, |_| {});
        let shown = format!("{trusted}&{}", pair(&other));
        expect(&url(&server, &shown), TlsFault::ClientCertificateRefused, "this client's certificate");

        let config = Config::new([url(&server, &format!("{trusted}&{}", pair(shared())))]).unwrap();
        assert!(quorlock_blocking::open(config).unwrap().lock("job").wait().is_ok(), "{protocols}");
    }
}

#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
pub(crate) fn a_missing_common_version_or_cipher_is_reported() {
    let options = ServerOptions::new().config("tls-protocols TLSv1.2").config("tls-ciphers AES128-SHA");
    let server = options.tls(shared(), "no").start();
    expect(&url(&server, &cacert(shared())), TlsFault::NoCommonVersion, "allow TLS 1.2 or 1.3 on the server");
}

#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
pub(crate) fn a_port_without_tls_is_reported() {
    // Redis does not answer a greeting that is not a command.
    let silent = RedisServer::start();
    let (cause, text) = fault(&url(&silent, &cacert(shared())));
    assert!(matches!(cause, Cause::NoHandshake { .. }), "{cause:?}");
    assert!(text.contains("is this a TLS port?"), "{text}");

    let answers = quorlock_tests::FakeMaster::start(|peer, _| {
        use std::io::{Read, Write};
        let _ = peer.read(&mut [0; 1024]);
        let _ = peer.write_all(b"-ERR unknown command\r\n");
        let _ = peer.read(&mut [0; 1024]);
    });
    let url = format!("rediss://{}?{}", answers.address(), cacert(shared()));
    expect(&url, TlsFault::NotTls, "redis://");
}

#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
pub(crate) fn unusable_tls_files_are_reported() {
    let open = |parameters: &str| {
        let config = Config::new([format!("rediss://127.0.0.1:1?{parameters}")]).unwrap();
        quorlock_blocking::open(config).unwrap_err().to_string()
    };
    assert!(open("cacert=/no/such/file").contains("/no/such/file"));
    let key = shared().key();
    let text = open(&format!("cacert={}", key.display()));
    assert!(text.contains("has no certificate of an issuer"), "{text}");
    let (certificate, other) = (shared().certificate(), Certificates::own(NAMES, |_| {}));
    let text = open(&format!("cert={}&key={}", certificate.display(), other.key().display()));
    assert!(text.contains("of one pair"), "{text}");
    // No part of a key is ever printed.
    let secret: String = std::fs::read_to_string(other.key()).unwrap().lines().nth(1).unwrap().into();
    assert!(!text.contains(&secret[..16]), "{text}");
}
