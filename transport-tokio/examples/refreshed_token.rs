//! Problem: the masters' password is a token of an identity service, and expires after some
//! minutes.
//!
//! A task of the program fetches a new token in time, and connections log in with it before the old
//! one expires.
//!
//! Run: `cargo run -p quorlock-tokio --example refreshed_token`, on embedded masters, and with a
//! second in place of a minute.
//!
//! Watch: a lock is held while three new tokens replace one another, and no connection is closed.
//! If a new token comes too late, the masters have no vote until it has come.
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use quorlock_embedded::Masters;
use quorlock_tokio::quorlock_core::{Endpoint, Login, Unavailable};
use quorlock_tokio::{Config, Locker};
use tokio::time::sleep;

/// Stands for a minute: a second keeps the example short.
const REFRESHED_EVERY: Duration = Duration::from_secs(1);

/// The newest token. It is locked only while it is copied, since the driver waits meanwhile.
#[derive(Clone, Default)]
struct Token(Arc<RwLock<Option<String>>>);

impl Token {
    fn set(&self, token: String) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some(token);
    }

    fn login(&self) -> Result<Login, Unavailable> {
        let token = self.0.read().unwrap_or_else(PoisonError::into_inner).clone();
        // Without a token the masters have no vote, and are tried again soon.
        token.map(Login::new).ok_or(Unavailable::Because("the first token has not been fetched"))
    }
}

/// Asks the identity service, here the masters' operator.
async fn fetch(masters: &Masters, number: u32) -> String {
    let token = format!("token-{number}");
    for master in masters.iter() {
        master.model(|model| model.set_password(Some(&token)));
    }
    token
}

/// Keeps the token fresh, in the connections too. A real task would fetch again after a failure.
async fn refresh(token: &Token, locker: &Locker, masters: &Masters) {
    for number in 2.. {
        sleep(REFRESHED_EVERY).await;
        token.set(fetch(masters, number).await);
        match locker.reauthenticate() {
            Ok(()) => println!("all connections log in with token {number}"),
            Err(why) => println!("no new login: {why}"),
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let masters = Masters::start(3)?;
    let token = Token::default();
    token.set(fetch(&masters, 1).await);

    let newest = token.clone();
    let config = Config::builder(masters.urls()).credentials(move |_: &Endpoint| newest.login());
    let locker = quorlock_tokio::open(config.build()?)?;

    let guard = locker.lock("report").ttl(Duration::from_secs(2)).renew().await?;
    println!("the lock is held");
    tokio::select! {
        () = refresh(&token, &locker, &masters) => {}
        () = sleep(REFRESHED_EVERY * 7 / 2) => {}
        cause = guard.lost() => return Err(cause.to_string().into()),
    }
    guard.release().await?;
    println!("released after three new tokens");
    Ok(())
}
