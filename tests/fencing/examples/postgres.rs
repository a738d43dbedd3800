//! Problem: a holder stands still past its TTL, and then writes to several tables that another
//! holder has written meanwhile.
//!
//! A table has the largest fencing token of each resource. A transaction first compares and raises
//! that token. The row then stays locked until the transaction ends, so whatever the transaction
//! writes is before all writes of later holders.
//!
//! Run: `cargo run -p quorlock-fencing --example postgres`, on embedded masters, and on a
//! PostgreSQL server that it starts in a temporary directory. The command line may name a server of
//! yours instead: `-- 'host=localhost user=test dbname=test'`. Its tables must not exist yet.
//!
//! Watch: the second holder has the larger token, and PostgreSQL refuses the late transaction:
//! neither table is changed.
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::fmt::{self, Display, Formatter};
use std::process::ExitCode;
use std::time::Duration;

use quorlock_embedded::Masters;
use quorlock_fencing::Postgres;
use quorlock_tokio::{Config, FencingToken, Guard};
use tokio::time::sleep;
use tokio_postgres::{Client, NoTls, Transaction};

const TABLES: &str = "\
CREATE TABLE fence (resource TEXT PRIMARY KEY, token BIGINT NOT NULL)";

const FENCE: &str = "\
INSERT INTO fence (resource, token) VALUES ($1, $2)
ON CONFLICT (resource) DO UPDATE SET token = excluded.token
WHERE fence.token <= excluded.token";

/// The tables behind the fence.
const FENCED: &str = "\
CREATE TABLE account (name TEXT PRIMARY KEY, cents BIGINT NOT NULL);
CREATE TABLE posting (account TEXT NOT NULL, cents BIGINT NOT NULL);
INSERT INTO account (name, cents) VALUES ('ada', 0)";

type Failure = Box<dyn Error + Send + Sync>;

/// A later holder has written: this lock is lost, and its token will be refused from now on.
#[derive(Debug)]
struct LockLost;

impl Display for LockLost {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("the lock is lost: a later holder has written")
    }
}

impl Error for LockLost {}

/// Raises the fence of a resource. Until the transaction ends, no other one passes it.
async fn pass(db: &Transaction<'_>, resource: &str, token: FencingToken) -> Result<(), Failure> {
    let token = i64::try_from(token.get())?;
    match db.execute(FENCE, &[&resource, &token]).await? {
        0 => Err(LockLost.into()),
        _ => Ok(()),
    }
}

/// Books an amount in both tables, or in neither.
async fn book(db: &mut Client, cents: i64, token: FencingToken) -> Result<(), Failure> {
    let transaction = db.transaction().await?;
    pass(&transaction, "account:ada", token).await?; // an error here rolls back
    transaction.execute("UPDATE account SET cents = cents + $1 WHERE name = 'ada'", &[&cents]).await?;
    transaction.execute("INSERT INTO posting (account, cents) VALUES ('ada', $1)", &[&cents]).await?;
    transaction.commit().await?;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<ExitCode, Failure> {
    let named = std::env::args().nth(1);
    let own = if named.is_none() { Some(Postgres::start()?) } else { None };
    let database = named.or_else(|| own.as_ref().map(Postgres::config)).unwrap_or_default();
    let masters = Masters::start(3)?;
    let is_right = pause_and_write_late(&masters.config()?, &database).await?;
    Ok(if is_right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Whether only what the holders wrote in time is in both tables.
async fn pause_and_write_late(masters: &Config, database: &str) -> Result<bool, Failure> {
    let first = quorlock_tokio::open(masters.clone())?;
    let second = quorlock_tokio::open(masters.clone())?;
    let (mut of_first, mut of_second) = (connect(database).await?, connect(database).await?);
    of_first.batch_execute(TABLES).await?;
    of_first.batch_execute(FENCED).await?;

    // Nothing renews it, as nothing renews the lock of a process that stands still.
    let ttl = Duration::from_millis(500);
    let held = first.lock("account:ada").ttl(ttl).fenced().await?;
    let token = token_of(&held)?;
    println!("the first holder has {token} and books twice");
    book(&mut of_first, 1, token).await?;
    book(&mut of_first, 10, token).await?;

    println!("it stands still for longer than its TTL");
    sleep(2 * ttl).await;
    let next = second.lock("account:ada").ttl(10 * ttl).fenced().await?;
    println!("the second holder has {} and books", token_of(&next)?);
    book(&mut of_second, 100, token_of(&next)?).await?;

    println!("the first holder goes on where it was");
    let refused = match book(&mut of_first, 1_000, token).await {
        Err(error) if error.is::<LockLost>() => error,
        other => return other.map(|()| false),
    };
    println!("{refused}");
    let sums = "SELECT (SELECT cents FROM account), (SELECT sum(cents)::BIGINT FROM posting)";
    let row = of_first.query_one(sums, &[]).await?;
    let (account, postings): (i64, i64) = (row.get(0), row.get(1));
    println!("the account has {account} cents, the postings have {postings}");
    next.release().await?;
    Ok((account, postings) == (111, 111))
}

async fn connect(database: &str) -> Result<Client, tokio_postgres::Error> {
    let (client, connection) = tokio_postgres::connect(database, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

fn token_of(guard: &Guard) -> Result<FencingToken, &'static str> {
    guard.fencing_token().ok_or("the fenced lock has no fencing token")
}

#[cfg(test)]
#[path = "../cases/postgres.rs"]
mod cases;
