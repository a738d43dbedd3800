//! What the page about fencing says about SQLite.

// Helpers of tests may panic, like the tests themselves.
#![allow(clippy::unwrap_used, clippy::panic)]

use quorlock_fencing::statements;
use rusqlite::{ErrorCode, TransactionBehavior};
use tempfile::TempDir;

use super::*;

fn token(number: u64) -> FencingToken {
    FencingToken::new(number).unwrap()
}

/// A database with an empty table.
fn database() -> (TempDir, Connection) {
    let folder = tempfile::tempdir().unwrap();
    let db = Connection::open(folder.path().join("db")).unwrap();
    db.execute(TABLE, []).unwrap();
    (folder, db)
}

#[track_caller]
fn is_refused(written: Result<(), Box<dyn Error>>) {
    let error = written.unwrap_err();
    assert!(error.is::<LockLost>(), "{error}");
}

/// The only invoice, with its fence.
fn stored(db: &Connection) -> (String, i64) {
    db.query_row("SELECT state, fence FROM invoice", [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap()
}

#[test]
fn the_example_refuses_the_late_write() {
    let masters = Masters::start(3).unwrap();
    assert!(pause_and_write_late(&masters.config().unwrap()).unwrap());
}

#[test]
fn the_first_write_creates_the_row_and_its_holder_may_write_again() {
    let (_folder, db) = database();
    write(&db, "42", "open", token(7)).unwrap();
    assert_eq!(stored(&db), ("open".to_owned(), 7));
    write(&db, "42", "paid", token(7)).unwrap();
    assert_eq!(stored(&db), ("paid".to_owned(), 7));
}

#[test]
fn a_late_write_changes_no_row() {
    let (_folder, db) = database();
    write(&db, "42", "paid", token(8)).unwrap();
    is_refused(write(&db, "42", "open", token(7)));
    assert_eq!(stored(&db), ("paid".to_owned(), 8));
    write(&db, "42", "sent", token(9)).unwrap();
    assert_eq!(stored(&db), ("sent".to_owned(), 9));
}

#[test]
fn the_largest_fencing_token_fits() {
    let (_folder, db) = database();
    write(&db, "42", "paid", FencingToken::MAX).unwrap();
    assert_eq!(stored(&db).1, (1 << 53) - 1);
    is_refused(write(&db, "42", "open", token(FencingToken::MAX.get() - 1)));
}

#[test]
fn a_plain_update_cannot_tell_a_missing_row_from_a_later_holder() {
    let (_folder, db) = database();
    let update = || db.execute("UPDATE invoice SET state = 'open' WHERE id = '42' AND fence <= 7", []);
    assert_eq!(update().unwrap(), 0);
    write(&db, "42", "paid", token(8)).unwrap();
    assert_eq!(update().unwrap(), 0);
}

#[test]
fn a_deleted_row_has_forgotten_its_fence() {
    let (_folder, db) = database();
    write(&db, "42", "paid", token(8)).unwrap();
    db.execute("DELETE FROM invoice", []).unwrap();
    write(&db, "42", "open", token(7)).unwrap();
}

#[test]
fn a_late_write_is_refused_only_after_the_fence_was_raised() {
    for raises_first in [false, true] {
        let (_folder, db) = database();
        write(&db, "42", "open", token(7)).unwrap();
        if raises_first {
            write(&db, "42", "open", token(8)).unwrap();
        }
        let read = stored(&db).0;
        let late = write(&db, "42", "late", token(7));
        assert_eq!(late.is_ok(), !raises_first);
        assert_eq!(stored(&db).0 == read, raises_first, "what the later holder has read is still true");
    }
}

#[test]
fn a_refused_transaction_leaves_everything_as_it_was() {
    let (_folder, mut db) = database();
    let [_, _, table, check] = statements();
    db.execute(table, []).unwrap();
    let mut book = |state: &str, fence: i64| {
        let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
        let passed = transaction.execute(check, params!["invoice:42", fence]).unwrap();
        transaction.execute(WRITE, params!["42", state, fence]).unwrap();
        if passed == 1 {
            transaction.commit().unwrap();
        }
        passed
    };
    assert_eq!([book("open", 7), book("paid", 8), book("late", 7), book("sent", 8)], [1, 1, 0, 1]);
    assert_eq!(stored(&db), ("sent".to_owned(), 8));
}

#[test]
fn a_transaction_that_has_read_fails_at_the_fence_unless_it_began_immediate() {
    for (behavior, is_busy) in
        [(TransactionBehavior::Deferred, true), (TransactionBehavior::Immediate, false)]
    {
        let (folder, mut db) = database();
        let mode: String = db.query_row("PRAGMA journal_mode = wal", [], |row| row.get(0)).unwrap();
        assert_eq!(mode, "wal");
        let other = Connection::open(folder.path().join("db")).unwrap();
        other.busy_timeout(Duration::ZERO).unwrap();

        let transaction = db.transaction_with_behavior(behavior).unwrap();
        let _: i64 = transaction.query_row("SELECT count(*) FROM invoice", [], |row| row.get(0)).unwrap();
        let of_other = write(&other, "42", "open", token(7));
        let written = transaction.execute(WRITE, params!["42", "paid", 8]);

        assert_eq!(of_other.is_ok(), is_busy, "{of_other:?}");
        let code = written.map_err(|error| error.sqlite_error_code());
        assert_eq!(code, if is_busy { Err(Some(ErrorCode::DatabaseBusy)) } else { Ok(1) });
    }
}

#[test]
fn a_reader_may_have_the_token_of_the_writer_before_it_and_the_next_writer_has_a_larger_one() {
    let masters = Masters::start(3).unwrap();
    let locker = quorlock_blocking::open(masters.config().unwrap()).unwrap();
    let writer = token_of(&locker.write("doc").fenced().wait().unwrap()).unwrap();
    let reader = token_of(&locker.read("doc").fenced().wait().unwrap()).unwrap();
    let next = token_of(&locker.write("doc").fenced().wait().unwrap()).unwrap();
    assert_eq!(reader, writer);
    assert!(next > reader, "{next} after {reader}");

    let (_folder, db) = database();
    write(&db, "42", "read", reader).unwrap();
    write(&db, "42", "late", writer).unwrap();
    write(&db, "42", "next", next).unwrap();
    is_refused(write(&db, "42", "later", writer));
}
