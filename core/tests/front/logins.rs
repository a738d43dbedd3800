//! Logins: the provider is asked at each greeting, and at any time on connections in use.

use std::path::Path;
use std::sync::{Arc, Mutex};

use quorlock_core::front::{Locker, MAX_PASSWORD_BYTES};
use quorlock_core::{Cause, Config, Endpoint, Login, MasterState, ServerError, Unavailable};

use super::driver::{Driver, ms};

/// A provider of logins, and its present answer.
#[derive(Clone)]
struct Provider(Arc<Mutex<Result<&'static str, Unavailable>>>);

impl Provider {
    fn of(password: &'static str) -> Self {
        Self(Arc::new(Mutex::new(Ok(password))))
    }

    fn says(&self, login: Result<&'static str, Unavailable>) {
        *self.0.lock().unwrap() = login;
    }

    fn open(&self, password: &str) -> (Locker, Arc<Driver>) {
        let provider = self.clone();
        let now = move |master: &Endpoint| {
            assert!(master.to_string().starts_with("master"));
            let said = *provider.0.lock().unwrap();
            // The mutex guard has been dropped: a panic must not poison the mutex.
            if said == Err(Unavailable::Panicked) {
                panic!("a provider that panics, on purpose");
            }
            said.map(Login::new)
        };
        let config = Config::builder((0..3).map(|number| format!("redis://master{number}")));
        let (locker, driver) = Driver::over(config.credentials(now).build().unwrap(), true);
        set_password(&driver, password);
        (locker, driver)
    }
}

fn set_password(driver: &Driver, password: &str) {
    (0..3).for_each(|master| driver.with_master(master, |server| server.set_password(Some(password))));
}

fn first(locker: &Locker) -> MasterState {
    locker.masters().remove(0).1
}

const READY: MasterState = MasterState::Ready { warnings: Vec::new() };

#[test]
fn the_provider_is_asked_at_each_greeting() {
    let provider = Provider::of("first");
    let (locker, driver) = provider.open("first");
    driver.settle();
    assert_eq!(first(&locker), READY);

    set_password(&driver, "second");
    provider.says(Ok("second"));
    driver.lose(0);
    driver.pass(ms(50));
    driver.settle();

    assert_eq!(first(&locker), READY);
    driver.end();
}

#[test]
fn without_a_login_the_opening_fails_with_the_reason_and_is_tried_again_soon() {
    let provider = Provider::of("secret");
    let (locker, driver) = provider.open("secret");
    for why in [Unavailable::Because("no token yet"), Unavailable::Panicked] {
        driver.settle();
        provider.says(Err(why));
        driver.lose(0);
        driver.pass(ms(50));
        driver.settle();
        assert_eq!(first(&locker), MasterState::Down(Cause::NoLogin(why)));

        provider.says(Ok("secret"));
        driver.pass(ms(2_500));
        driver.settle();
        assert_eq!(first(&locker), READY);
    }
    driver.end();
}

#[test]
fn connections_in_use_log_in_again_without_being_closed() {
    let provider = Provider::of("first");
    let (locker, driver) = provider.open("first");
    driver.settle();
    let guard = locker.lock("job").wait().unwrap();

    set_password(&driver, "second");
    provider.says(Ok("second"));
    assert_eq!(locker.reauthenticate(), Ok(()));
    driver.settle();

    assert_eq!(first(&locker), READY);
    assert!(guard.release().wait().is_ok());
    let reconnects: u64 = locker.report().masters.iter().map(|master| master.reconnects).sum();
    assert_eq!(reconnects, 0);

    // A refused login ends the connection, and the next greeting asks again.
    provider.says(Ok("wrong"));
    assert_eq!(locker.reauthenticate(), Ok(()));
    driver.settle();
    assert_eq!(first(&locker), MasterState::Down(Cause::LoginRefused(ServerError::WrongPass)));
    provider.says(Ok("second"));
    driver.pass(ms(50));
    driver.settle();
    assert_eq!(first(&locker), READY);

    let why = Unavailable::Because("no token");
    provider.says(Err(why));
    assert_eq!(locker.reauthenticate(), Err(why));
    driver.settle();
    assert_eq!(first(&locker), READY);
    driver.end();
}

#[test]
fn a_host_that_cannot_read_files_reports_the_name_of_the_file() {
    let config = Config::builder(["redis://master0?password-file=/run/secrets/x"]).build().unwrap();
    let (locker, driver) = Driver::over(config, true);
    driver.settle();

    let error = locker.try_lock("job").wait().unwrap_err().to_string();

    assert!(error.contains("no login: the password file /run/secrets/x cannot be read: "), "{error}");
    assert_eq!(locker.masters()[0].0.password_file(), Some(Path::new("/run/secrets/x")));
    driver.end();
}

#[test]
fn a_password_file_is_read_as_a_line() {
    let (locker, driver) = {
        let config = Config::builder(["redis://master0?password-file=/x"]).build().unwrap();
        Driver::over(config, true)
    };
    driver.with_master(0, |server| server.set_password(Some("p@ss word ")));
    let read = |bytes: &[u8]| {
        driver.has_file(bytes);
        driver.pass(ms(3_000));
        driver.settle();
        let state = first(&locker);
        if state == READY {
            driver.has_file(b"");
            driver.lose(0);
            driver.settle();
        }
        state
    };
    for text in ["p@ss word ", "p@ss word \n", "p@ss word \r\n"] {
        assert_eq!(read(text.as_bytes()), READY, "{text:?}");
    }
    let wrong = MasterState::Down(Cause::LoginRefused(ServerError::WrongPass));
    for text in ["p@ss word \n\n", "p@ss word", "\np@ss word ", "p@ss word \r"] {
        assert_eq!(read(text.as_bytes()), wrong, "{text:?}");
    }
    for (bytes, why) in [
        (&b""[..], Unavailable::EmptyFile),
        (b"\n", Unavailable::EmptyFile),
        (b"\r\n", Unavailable::EmptyFile),
        (b"\xff", Unavailable::NotText),
        (&[b'x'; MAX_PASSWORD_BYTES + 1], Unavailable::LongFile),
    ] {
        assert_eq!(read(bytes), MasterState::Down(Cause::NoLogin(why)));
    }
    assert_eq!(read(&[b'x'; MAX_PASSWORD_BYTES]), wrong, "it is not too long");
    driver.end();
}
