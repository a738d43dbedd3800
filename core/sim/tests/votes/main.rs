//! The table of votes on the model of a master. The same table runs on real servers elsewhere.

// Helpers of tests may panic, like the tests themselves.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, unreachable_pub)]

mod model;
#[path = "../../../../tests/shared/votes/mod.rs"]
mod votes;

use votes::{Table, live};

#[test]
fn no_answer_is_counted_that_must_not_be() {
    let table = Table::new(Table::all().map(|(history, setting)| live::<model::Model>(history, setting)));
    println!("{table}");
    assert_eq!(table.wrong(), Vec::<String>::new());
}
