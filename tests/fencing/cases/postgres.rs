//! What the page about fencing says about PostgreSQL.

// Helpers of tests may panic, like the tests themselves.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::path::Path;
use std::pin::pin;
use std::time::Instant;
use std::{fs, panic};

use quorlock_fencing::statements;
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use tokio::time::timeout;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Error as DatabaseError, IsolationLevel};

use super::*;

/// The longest that a test waits for a state of the server, on a busy machine.
const SOON: Duration = Duration::from_secs(60);
const SNAPSHOTS: [IsolationLevel; 2] = [IsolationLevel::RepeatableRead, IsolationLevel::Serializable];

fn token(number: u64) -> FencingToken {
    FencingToken::new(number).unwrap()
}

/// A server with the tables of the page and of the example.
async fn server() -> (Postgres, Client) {
    let server = Postgres::start().unwrap();
    let client = connect(&server.config()).await.unwrap();
    let [rows, ..] = statements();
    for tables in [rows, TABLES, FENCED] {
        client.batch_execute(tables).await.unwrap();
    }
    (server, client)
}

/// Writes the invoice by the statement of the page. Returns how many rows it has changed.
async fn write(db: &Transaction<'_>, state: &str, fence: i64) -> Result<u64, DatabaseError> {
    db.execute(statements()[1], &[&"42", &state, &fence]).await
}

async fn begin(db: &mut Client, level: IsolationLevel) -> Transaction<'_> {
    let transaction = db.build_transaction().isolation_level(level).start().await.unwrap();
    // From here on it has a snapshot, if the level has one.
    transaction.query_one("SELECT count(*) FROM invoice", &[]).await.unwrap();
    transaction
}

async fn two(server: &Postgres) -> [Client; 2] {
    [connect(&server.config()).await.unwrap(), connect(&server.config()).await.unwrap()]
}

async fn state(db: &Client) -> String {
    db.query_one("SELECT state FROM invoice", &[]).await.unwrap().get(0)
}

/// Waits until a session waits for the lock of another one.
async fn until_one_waits(db: &Client) {
    let began = Instant::now();
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
    while db.query_one(waiting, &[]).await.unwrap().get::<_, i64>(0) == 0 {
        assert!(began.elapsed() < SOON, "no session waits");
        sleep(Duration::from_millis(5)).await;
    }
}

/// What the later statement of two transactions at one row returns, and the value that stays. Both
/// begin before the first one commits. If `is_new`, the first one creates the row.
async fn second_of_two(
    (server, looking): &(Postgres, Client),
    level: IsolationLevel,
    is_new: bool,
    fences: [i64; 2],
) -> (Result<u64, SqlState>, String) {
    looking.batch_execute("TRUNCATE invoice").await.unwrap();
    let [mut one, mut other] = two(server).await;
    if !is_new {
        let transaction = begin(&mut one, level).await;
        assert_eq!(write(&transaction, "before", 1).await.unwrap(), 1);
        transaction.commit().await.unwrap();
    }
    let first = begin(&mut one, level).await;
    let second = begin(&mut other, level).await;
    assert_eq!(write(&first, "first", fences[0]).await.unwrap(), 1);
    let written = {
        let mut write = pin!(write(&second, "second", fences[1]));
        tokio::select! {
            early = &mut write => panic!("it did not wait: {early:?}"),
            () = until_one_waits(looking) => (),
        }
        first.commit().await.unwrap();
        timeout(SOON, write).await.unwrap()
    };
    match written {
        Ok(changed) => {
            second.commit().await.unwrap();
            (Ok(changed), state(looking).await)
        }
        Err(error) => {
            second.rollback().await.unwrap();
            // With the same token, as the page says.
            let again = begin(&mut other, level).await;
            let changed = write(&again, "second", fences[1]).await.unwrap();
            assert_eq!(changed, u64::from(fences[0] <= fences[1]));
            again.commit().await.unwrap();
            (Err(error.code().unwrap().clone()), state(looking).await)
        }
    }
}

#[tokio::test]
#[cfg_attr(no_postgres, ignore = "there is no PostgreSQL")]
async fn the_example_refuses_the_late_transaction() {
    let server = Postgres::start().unwrap();
    let masters = Masters::start(3).unwrap();
    assert!(pause_and_write_late(&masters.config().unwrap(), &server.config()).await.unwrap());
}

#[tokio::test]
#[cfg_attr(no_postgres, ignore = "there is no PostgreSQL")]
async fn rows_are_created_written_twice_and_refused_late() {
    let (_server, mut db) = server().await;
    let writes = [("open", 7, 1), ("paid", 7, 1), ("sent", 8, 1), ("late", 7, 0)];
    for (text, fence, changed) in writes {
        let transaction = db.transaction().await.unwrap();
        assert_eq!(write(&transaction, text, fence).await.unwrap(), changed, "{text}");
        transaction.commit().await.unwrap();
    }
    assert_eq!(state(&db).await, "sent");

    book(&mut db, 1, token(7)).await.unwrap();
    book(&mut db, 10, FencingToken::MAX).await.unwrap();
    assert!(book(&mut db, 100, token(7)).await.unwrap_err().is::<LockLost>());
    let cents: i64 = db.query_one("SELECT cents FROM account", &[]).await.unwrap().get(0);
    assert_eq!(cents, 11);
}

#[tokio::test]
#[cfg_attr(no_postgres, ignore = "there is no PostgreSQL")]
async fn under_read_committed_the_second_transaction_waits_and_compares_again() {
    let server = server().await;
    for is_new in [true, false] {
        let late = second_of_two(&server, IsolationLevel::ReadCommitted, is_new, [8, 7]).await;
        assert_eq!(late, (Ok(0), "first".to_owned()));
        let later = second_of_two(&server, IsolationLevel::ReadCommitted, is_new, [7, 8]).await;
        assert_eq!(later, (Ok(1), "second".to_owned()));
    }
}

#[tokio::test]
#[cfg_attr(no_postgres, ignore = "there is no PostgreSQL")]
async fn with_a_snapshot_the_second_transaction_fails_and_is_decided_when_it_is_run_again() {
    let server = server().await;
    for level in SNAPSHOTS {
        let late = second_of_two(&server, level, false, [8, 7]).await;
        assert_eq!(late, (Err(SqlState::T_R_SERIALIZATION_FAILURE), "first".to_owned()));
        let later = second_of_two(&server, level, true, [7, 8]).await;
        assert_eq!(later, (Err(SqlState::T_R_SERIALIZATION_FAILURE), "second".to_owned()));
    }
}

#[tokio::test]
#[cfg_attr(no_postgres, ignore = "there is no PostgreSQL")]
async fn a_comparison_in_a_statement_of_its_own_does_not_keep_the_late_write_out() {
    let (server, looking) = server().await;
    let [mut one, mut other] = two(&server).await;
    let begun = begin(&mut one, IsolationLevel::ReadCommitted).await;
    write(&begun, "open", 7).await.unwrap();
    begun.commit().await.unwrap();

    let late = begin(&mut one, IsolationLevel::ReadCommitted).await;
    let fence: i64 = late.query_one("SELECT fence FROM invoice", &[]).await.unwrap().get(0);
    assert!(fence <= 7);
    let later = begin(&mut other, IsolationLevel::ReadCommitted).await;
    write(&later, "paid", 8).await.unwrap();
    later.commit().await.unwrap();
    late.execute("UPDATE invoice SET state = 'late'", &[]).await.unwrap();
    late.commit().await.unwrap();
    assert_eq!(state(&looking).await, "late");
}

#[tokio::test]
#[cfg_attr(no_postgres, ignore = "there is no PostgreSQL")]
async fn a_holder_that_stops_inside_its_transaction_is_ended_and_cannot_commit() {
    let (server, mut db) = server().await;
    let mut stopped = connect(&server.config()).await.unwrap();
    let transaction = stopped.transaction().await.unwrap();
    pass(&transaction, "account:ada", token(7)).await.unwrap();
    transaction.execute("UPDATE account SET cents = 1000", &[]).await.unwrap();
    // Counts from the end of this statement.
    transaction.batch_execute("SET idle_in_transaction_session_timeout = '50ms'").await.unwrap();

    timeout(SOON, book(&mut db, 1, token(8))).await.unwrap().unwrap();

    assert!(transaction.commit().await.is_err());
    let cents: i64 = db.query_one("SELECT cents FROM account", &[]).await.unwrap().get(0);
    assert_eq!(cents, 1);
}

#[tokio::test]
#[cfg_attr(no_postgres, ignore = "there is no PostgreSQL")]
async fn fences_that_are_passed_in_different_orders_may_deadlock() {
    let (server, _looking) = server().await;
    let [mut one, mut other] = two(&server).await;
    for client in [&one, &other] {
        client.batch_execute("SET deadlock_timeout = '50ms'").await.unwrap();
    }
    let (first, second) = (one.transaction().await.unwrap(), other.transaction().await.unwrap());
    pass(&first, "a", token(7)).await.unwrap();
    pass(&second, "b", token(7)).await.unwrap();
    let crossed = async { tokio::join!(pass(&first, "b", token(7)), pass(&second, "a", token(7))) };
    let ends = timeout(SOON, crossed).await.unwrap();
    let failed = [ends.0, ends.1].into_iter().filter_map(Result::err).collect::<Vec<_>>();
    let codes: Vec<_> =
        failed.iter().map(|error| error.downcast_ref::<DatabaseError>().unwrap().code()).collect();
    assert_eq!(codes, [Some(&SqlState::T_R_DEADLOCK_DETECTED)]);
}

#[tokio::test]
#[cfg_attr(no_postgres, ignore = "there is no PostgreSQL")]
async fn a_column_of_32_bits_is_too_small_under_the_restart_guard() {
    let (_server, db) = server().await;
    db.batch_execute("CREATE TABLE narrow (fence INTEGER)").await.unwrap();
    let insert = async |token: FencingToken| {
        let number = i64::try_from(token.get()).unwrap();
        db.execute("INSERT INTO narrow VALUES ($1::BIGINT)", &[&number]).await
    };
    let masters = Masters::start(3).unwrap();
    let plain = quorlock_tokio::open(masters.config().unwrap()).unwrap();
    let early = token_of(&plain.lock("account:ada").fenced().await.unwrap()).unwrap();
    assert_eq!(early, token(1));
    insert(early).await.unwrap();

    let masters = Masters::start(3).unwrap();
    let urls: Vec<_> = masters.urls();
    let config = Config::builder(urls).restart_guard(Duration::from_secs(30)).build().unwrap();
    let guarded = quorlock_tokio::open(config).unwrap();
    guarded.bootstrap().await.unwrap();
    let token = token_of(&guarded.lock("account:ada").fenced().await.unwrap()).unwrap();
    let refused = insert(token).await.unwrap_err();
    assert_eq!(refused.code(), Some(&SqlState::NUMERIC_VALUE_OUT_OF_RANGE), "{token}");
}

/// Also if a test fails.
#[test]
#[cfg_attr(no_postgres, ignore = "there is no PostgreSQL")]
fn a_server_ends_with_its_owner() {
    let server = Postgres::start().unwrap();
    let config = server.config();
    let folder = Path::new(config.split_whitespace().next().unwrap().strip_prefix("host=").unwrap());
    let file = fs::read_to_string(folder.join("data/postmaster.pid")).unwrap();
    let process = Pid::from_raw(file.lines().next().unwrap().parse().unwrap()).unwrap();
    test_kill_process(process).unwrap();

    let failed = panic::catch_unwind(move || {
        let _server = server;
        panic!("as a failed test does");
    });

    assert!(failed.is_err());
    assert_eq!(test_kill_process(process), Err(Errno::SRCH));
    assert!(!folder.exists());
}
