//! Problem: a holder stands still past its TTL, another takes over and writes to a database, and
//! then the first one writes, too.
//!
//! Each row has the largest fencing token with which it was written. One statement compares that
//! token and writes, so nothing comes between the two. It creates the row as well.
//!
//! Run: `cargo run -p quorlock-fencing --example sqlite`, on embedded masters, or on those that the
//! command line names.
//!
//! Watch: the second holder has the larger token, and SQLite refuses the late write: no row is
//! changed.
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::fmt::{self, Display, Formatter};
use std::process::ExitCode;
use std::thread::sleep;
use std::time::Duration;

use quorlock_blocking::{Config, FencingToken, Guard};
use quorlock_embedded::Masters;
use rusqlite::{Connection, params};

const TABLE: &str = "\
CREATE TABLE invoice (id TEXT PRIMARY KEY, state TEXT NOT NULL, fence BIGINT NOT NULL)";

const WRITE: &str = "\
INSERT INTO invoice (id, state, fence) VALUES ($1, $2, $3)
ON CONFLICT (id) DO UPDATE SET state = excluded.state, fence = excluded.fence
WHERE invoice.fence <= excluded.fence";

/// A later holder has written: this lock is lost, and its token will be refused from now on.
#[derive(Debug)]
struct LockLost;

impl Display for LockLost {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("the lock is lost: a later holder has written")
    }
}

impl Error for LockLost {}

/// Writes the state of an invoice, unless a later holder has written.
fn write(db: &Connection, id: &str, state: &str, token: FencingToken) -> Result<(), Box<dyn Error>> {
    let fence = i64::try_from(token.get())?;
    match db.execute(WRITE, params![id, state, fence])? {
        0 => Err(LockLost.into()),
        _ => Ok(()),
    }
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let named: Vec<_> = std::env::args().skip(1).collect();
    let embedded = if named.is_empty() { Some(Masters::start(3)?) } else { None };
    let config = || match &embedded {
        Some(masters) => masters.config(),
        None => Config::new(&named),
    };
    let is_right = pause_and_write_late(&config()?)?;
    Ok(if is_right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Whether the value of the second holder has stayed.
fn pause_and_write_late(config: &Config) -> Result<bool, Box<dyn Error>> {
    let first = quorlock_blocking::open(config.clone())?;
    let second = quorlock_blocking::open(config.clone())?;
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("invoices.db");
    let (of_first, of_second) = (Connection::open(&file)?, Connection::open(&file)?);
    of_first.execute(TABLE, [])?;

    // Nothing renews it, as nothing renews the lock of a process that stands still.
    let ttl = Duration::from_millis(500);
    let held = first.lock("invoice:42").ttl(ttl).fenced().wait()?;
    let token = token_of(&held)?;
    println!("the first holder has {token} and writes twice");
    write(&of_first, "42", "open", token)?;
    write(&of_first, "42", "checked", token)?;

    println!("it stands still for longer than its TTL");
    sleep(2 * ttl);
    let next = second.lock("invoice:42").ttl(10 * ttl).fenced().wait()?;
    println!("the second holder has {} and writes", token_of(&next)?);
    write(&of_second, "42", "paid", token_of(&next)?)?;

    println!("the first holder goes on where it was");
    let refused = match write(&of_first, "42", "cancelled", token) {
        Err(error) if error.is::<LockLost>() => error,
        other => return other.map(|()| false),
    };
    println!("{refused}");
    let state: String = of_first.query_row("SELECT state FROM invoice", [], |row| row.get(0))?;
    println!("the invoice is {state}");
    next.release().wait()?;
    Ok(state == "paid")
}

fn token_of(guard: &Guard) -> Result<FencingToken, &'static str> {
    guard.fencing_token().ok_or("the fenced lock has no fencing token")
}

#[cfg(test)]
#[path = "../cases/sqlite.rs"]
mod cases;
