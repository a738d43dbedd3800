//! Logins that change while locks are held and requested. All passwords begin alike, so that the
//! test of secrets finds them in output.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{scope, sleep};

use quorlock_core::{Endpoint, Login, Unavailable};
use tempfile::TempDir;

use crate::kit::*;

/// A password in a file, as Kubernetes keeps a secret: a new one replaces the old one atomically.
struct Secret(TempDir);

impl Secret {
    fn new(password: &str) -> Self {
        let secret = Self(tempfile::tempdir().unwrap());
        secret.write(password);
        secret
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("password")
    }

    fn write(&self, password: &str) {
        let next = self.0.path().join("next");
        fs::write(&next, format!("{password}\n")).unwrap();
        fs::rename(next, self.path()).unwrap();
    }
}

fn in_file(user: &str, master: &RedisServer, file: &Path) -> String {
    let url = url_of(format_args!("{user}@{}", master.address()));
    let follows = if url.contains('?') { '&' } else { '?' };
    format!("{url}{follows}password-file={}", file.display())
}

fn expect_ok(master: &RedisServer, command: &[&str]) {
    let reply = master.command(command);
    assert!(reply.is_ok(), "{command:?}: {reply:?}");
}

pub(crate) fn a_password_file_that_changes_under_load_fails_no_lock(transport: &Transport) {
    let masters = Fleet::start(3, |options, _| options.acl_user("app on >hunter2-old ~* +@all"));
    let secret = Secret::new("hunter2-old");
    let urls = masters.iter().map(|master| in_file("app", master, &secret.path()));
    let locker = transport.open(patient(urls).build().unwrap());
    all_ready(&locker);
    let (is_over, done) = (AtomicBool::new(false), AtomicUsize::new(0));

    scope(|scope| {
        for caller in 0..4 {
            let (locker, is_over, done) = (&locker, &is_over, &done);
            scope.spawn(move || {
                while !is_over.load(Ordering::SeqCst) {
                    let guard = locker.lock(format!("job{caller}")).wait().unwrap();
                    assert!(guard.extend(2 * TTL).wait().is_ok());
                    assert!(guard.release().wait().is_ok());
                    done.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        let some_locks = || {
            let before = done.load(Ordering::SeqCst);
            eventually(SOON, "locks go on", || done.load(Ordering::SeqCst) >= before + 20);
        };
        some_locks();
        for master in &*masters {
            expect_ok(master, &["ACL", "SETUSER", "app", ">hunter2-new"]);
            some_locks();
        }
        secret.write("hunter2-new");
        for master in &*masters {
            expect_ok(master, &["ACL", "SETUSER", "app", "<hunter2-old"]);
            // A server does not end connections that have logged in, but in practice something ends
            // them sooner or later.
            assert!(master.command(&["CLIENT", "KILL", "USER", "app"]).int().unwrap() >= 1);
            all_ready(&locker);
            some_locks();
        }
        is_over.store(true, Ordering::SeqCst);
    });

    let report = locker.report();
    assert_eq!(usize::try_from(report.acquisitions.granted), Ok(done.load(Ordering::SeqCst)));
    all_ready(&locker);
}

pub(crate) fn a_password_file_is_read_at_each_login(transport: &Transport) {
    let masters = Fleet::start(3, |options, _| options.password("hunter2-right"));
    let secret = Secret::new("hunter2-right");
    let file = secret.path();
    let urls: Vec<_> = masters.iter().map(|master| in_file("", master, &file)).collect();
    // One master has its own password file, which is missing.
    let missing = in_file("", &masters[2], &file.with_extension("missing"));
    let locker = transport.open(patient([&urls[0], &urls[1], &missing]).build().unwrap());
    let guard = locker.lock("job").wait().unwrap();
    assert_eq!(guard.release().wait(), Ok(Released::Freed));
    eventually(SOON, "the state tells why", || {
        matches!(locker.masters()[2].1, MasterState::Down(Cause::NoLogin(Unavailable::Unreadable(_))))
    });

    // Although there is no quorum, this is not a configuration error: the next login may succeed.
    secret.write("hunter2-wrong");
    let locker = transport.open(patient(&urls).build().unwrap());
    scope(|scope| {
        let seeking = scope.spawn(|| locker.lock("job").wait());
        eventually(SOON, "the password is refused", || {
            let refused = MasterState::Down(Cause::LoginRefused(ServerError::WrongPass));
            locker.masters().iter().all(|(_, state)| *state == refused)
        });
        secret.write("hunter2-right");
        assert!(seeking.join().unwrap().unwrap().is_valid());
    });
    let error = transport.open(patient([missing]).build().unwrap()).try_lock("job").wait().unwrap_err();
    let says = format!("the password file {} cannot be read: ", file.with_extension("missing").display());
    assert!(error.to_string().contains(&says), "{error}");
    assert!(!format!("{error} {error:?} {locker:?}").contains("hunter2"));
}

pub(crate) fn connections_in_use_log_in_again(transport: &Transport) {
    let masters = Fleet::start(3, |options, _| options.password("hunter2-first"));
    let password = Arc::new(Mutex::new("hunter2-first"));
    let current = Arc::clone(&password);
    let login = move |_: &Endpoint| Ok(Login::new(*current.lock().unwrap()));
    let urls = masters.iter().map(|master| url_of(master.address()));
    let locker = transport.open(patient(urls).credentials(login).build().unwrap());
    let guard = locker.lock("job").wait().unwrap();
    all_ready(&locker);
    let change = |word: &'static str| {
        masters.iter().for_each(|master| expect_ok(master, &["CONFIG", "SET", "requirepass", word]));
    };
    let greetings = || masters.iter().map(|master| master.calls(Calls::Hello)).sum::<u64>();
    let greeted = greetings();

    change("hunter2-second");
    *password.lock().unwrap() = "hunter2-second";
    assert_eq!(locker.reauthenticate(), Ok(()));
    assert!(guard.extend(2 * TTL).wait().unwrap() > TTL);
    assert_eq!(greetings(), greeted);
    all_ready(&locker);

    // A refused connection is opened again, with the login that is then valid.
    *password.lock().unwrap() = "hunter2-wrong";
    assert_eq!(locker.reauthenticate(), Ok(()));
    eventually(SOON, "the login is refused", || ready(&locker) == 0);
    *password.lock().unwrap() = "hunter2-second";
    all_ready(&locker);
    assert_eq!(guard.release().wait(), Ok(Released::Freed));
    change("hunter2-first");
}

pub(crate) fn without_a_token_a_master_has_no_vote_and_the_others_decide(transport: &Transport) {
    let masters = Fleet::start(3, |options, _| options.password("hunter2-token"));
    let fails = Arc::new(AtomicUsize::new(0));
    let (asked, first) = (Arc::clone(&fails), masters[0].address().to_string());
    let login = move |master: &Endpoint| {
        let calls = asked.fetch_add(1, Ordering::SeqCst);
        match master.address().to_string() == first {
            true if calls % 2 == 0 => panic!("a provider that panics, on purpose"),
            true => Err(Unavailable::Because("no token yet")),
            false => Ok(Login::new("hunter2-token")),
        }
    };
    let urls = masters.iter().map(|master| url_of(master.address()));
    let locker = transport.open(patient(urls).credentials(login).build().unwrap());

    let guard = locker.lock("job").wait().unwrap();
    for why in [Unavailable::Panicked, Unavailable::Because("no token yet")] {
        eventually(SOON, "the state tells why", || {
            locker.masters()[0].1 == MasterState::Down(Cause::NoLogin(why))
        });
    }
    sleep(millis(500));
    assert!(fails.load(Ordering::SeqCst) < 30, "no storm of attempts");
    assert_eq!(guard.release().wait(), Ok(Released::Freed));
}
