//! The library with secrets, and the `Debug` output of all its types.

use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use quorlock_core::{Endpoint, Login};
use quorlock_tests::secrets::note;
use quorlock_tests::{Certificates, NAMES};
use quorlock_tls::Tls;

use crate::kit::*;
use crate::{certificates, faults, logins, subscriber};

const PASSWORD: &str = "hunter2-of-the-masters";

/// Prints a value in both forms of `Debug`.
fn show(what: &impl Debug) {
    println!("{what:?}\n{what:#?}");
}

fn show_guard(guard: &Guard) {
    note(guard.token().expose());
    show(guard);
    show(&guard.token());
    show(&guard.resumption());
    show(&guard.watch());
}

/// Uses locks on masters that require a password and a certificate of their clients.
fn locks(transport: &Transport) {
    let own = Certificates::own(NAMES, |_| {});
    let masters = Fleet::start(3, |options, _| options.password(PASSWORD).tls(&own, "yes"));
    let urls: Vec<_> = masters
        .iter()
        .map(|master| format!("rediss://:{PASSWORD}@{}?{}", master.address(), faults::cacert(&own)))
        .collect();
    let read = |file| std::fs::read(file).unwrap();
    let password = Arc::new(Mutex::new(PASSWORD));
    let current = Arc::clone(&password);
    let login = move |_: &Endpoint| {
        let login = Login::new(*current.lock().unwrap()).with_user("default");
        show(&login);
        Ok(login)
    };
    let tls = || Tls::builder().client_pem(&read(own.certificate()), &read(own.key())).unwrap();
    show(&tls());
    let builder = patient(&urls)
        .ttl(10 * SECOND)
        .request_timeout(SECOND)
        .credentials(login)
        .tls(tls().build().unwrap());
    show(&builder);
    let config = builder.build().unwrap();
    show(&config);
    show(&tls().build().unwrap());
    let locker = transport.open(config);
    all_ready(&locker);

    let request = locker.lock("job").renew();
    show(&request);
    let guard = request.wait().unwrap();
    show_guard(&guard);
    show(&locker.try_lock("job").wait().unwrap_err());
    show(&guard.extend(20 * SECOND).wait());
    show(&locker.inspect("job").wait());
    let handed = guard.hand_over().unwrap();
    show(&handed);
    let resumed = locker.resume("job", handed).wait().unwrap();
    show_guard(&resumed);
    show(&locker.force_release("job").wait());
    let lost = resumed.extend(20 * SECOND).wait().unwrap_err();
    show(&lost);
    show(&resumed.release().wait());
    let renewed = locker.lock("short").ttl(2 * SECOND).renew().wait().unwrap();
    show_guard(&renewed);
    let extensions = || masters.iter().map(|master| master.calls(Calls::Extension)).sum::<u64>();
    let before = extensions();
    eventually(SOON, "it is renewed", || extensions() >= before + 6);
    let read = locker.read("shared").wait().unwrap();
    note(read.token().expose());
    show(&read);
    show(&locker.masters());

    // The provider's password is refused.
    *password.lock().unwrap() = "hunter2-that-is-wrong";
    assert_eq!(locker.reauthenticate(), Ok(()));
    eventually(SOON, "the login is refused", || ready(&locker) == 0);
    show(&locker.masters());
    show(&locker.report());
    show(&locker.lock("other").timeout(millis(300)).wait().unwrap_err());
    show(&locker);
    drop((read, renewed));

    // The password of a URL is refused too.
    for (url, parameters) in [("hunter2-too", faults::pair(&own)), (PASSWORD, String::new())] {
        let url = format!("rediss://:{url}@{}?{}&{parameters}", masters[0].address(), faults::cacert(&own));
        let config = patient([url.trim_end_matches('&')]).build().unwrap();
        show(&config);
        let error = transport.open(config).try_lock("job").wait().unwrap_err();
        show(&error);
        println!("{error}");
    }
}

/// Configurations that are refused, and files that cannot be used.
fn refusals() {
    let own = Certificates::own(NAMES, |_| {});
    for url in [
        format!("rediss://:{PASSWORD}@host:port"),
        format!("rediss://:{PASSWORD}?x@host"),
        format!("rediss://:{PASSWORD}@host?cacert=a&cacert={PASSWORD}"),
        format!("rediss://:{PASSWORD}@host/0#insecure"),
        format!("rediss://:{PASSWORD}@host?password-file=/no/such/file"),
        format!("https://:{PASSWORD}@host"),
    ] {
        let error = Config::new([url]).unwrap_err();
        show(&error);
        println!("{error}");
    }
    let other = Certificates::own(NAMES, |_| {});
    let read = |file| std::fs::read(file).unwrap();
    for built in [
        Tls::builder().client_pem(&read(own.certificate()), &read(other.key())),
        Tls::builder().client_pem(&read(own.key()), &read(own.certificate())),
        Tls::builder().root_pem(&read(own.key())),
        Ok(Tls::builder().client_files(own.key(), own.certificate())),
        Ok(Tls::builder().root_file(own.key())),
    ] {
        let error = built.and_then(|builder| builder.build()).unwrap_err();
        show(&error);
        println!("{error}");
    }
}

#[test]
#[ignore = "what it says is looked through by another test"]
fn prints_everything_that_the_library_says() {
    note("hunter2");
    subscriber::print_all();
    refusals();
    for name in Transport::NAMES {
        let transport = Transport::named(name);
        locks(&transport);
        logins::a_password_file_that_changes_under_load_fails_no_lock(&transport);
        logins::a_password_file_is_read_at_each_login(&transport);
        logins::connections_in_use_log_in_again(&transport);
        logins::without_a_token_a_master_has_no_vote_and_the_others_decide(&transport);
    }
    faults::an_untrusted_issuer_is_reported();
    faults::a_certificate_for_another_name_is_reported_with_its_own_name();
    faults::expired_and_not_yet_valid_certificates_are_reported();
    faults::a_missing_client_certificate_is_reported();
    faults::a_missing_common_version_or_cipher_is_reported();
    faults::a_port_without_tls_is_reported();
    faults::unusable_tls_files_are_reported();
    certificates::files_that_have_changed_are_read_at_the_next_connection();
    certificates::tls_files_that_become_unusable_leave_the_last_good_ones_in_use();
    certificates::values_in_code_do_what_files_do();
    certificates::a_dangerous_option_warns_and_works();
}
