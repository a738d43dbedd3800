//! The scripts of several targets, of shared ones and of seats, as the model of a master runs them.
//! That real servers do the same is asserted elsewhere, with the same tests.

// Helpers of tests fail as tests do.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, unreachable_pub)]

use std::time::Duration;

use quorlock_sim::{Command, Master, Session};

#[path = "../../../../tests/shared/claims.rs"]
mod claims;

struct Model {
    master: Master,
    session: Session,
    now: Duration,
}

impl Model {
    fn new() -> Self {
        Self { master: Master::new(1), session: Session::new(), now: Duration::from_secs(1_700_000_000) }
    }
}

impl claims::Desk for Model {
    fn ask(&mut self, arguments: &[&str]) -> String {
        let mut reply = Vec::new();
        let command = Command::new(arguments.iter().copied());
        let _ = self.master.execute(&mut self.session, &command, self.now, &mut reply);
        let mut lines = std::str::from_utf8(&reply).unwrap().split("\r\n");
        read(&mut lines)
    }

    fn pass(&mut self, millis: u64) {
        self.now += Duration::from_millis(millis);
    }
}

fn read(lines: &mut dyn Iterator<Item = &str>) -> String {
    let (kind, rest) = lines.next().unwrap().split_at(1);
    match kind {
        "*" => {
            let parts: Vec<_> = (0..rest.parse().unwrap()).map(|_| read(lines)).collect();
            format!("[{}]", parts.join(" "))
        }
        "$" if rest == "-1" => "nil".into(),
        "$" => lines.next().unwrap().into(),
        "-" => format!("-{rest}"),
        _ => rest.into(),
    }
}

macro_rules! on_the_model {
    ($($test:ident),* $(,)?) => {
        $(
            #[test]
            fn $test() {
                claims::$test(&mut Model::new());
            }
        )*
    };
}

on_the_model! {
    readers_are_named_and_not_counted,
    a_key_lives_as_long_as_the_longest_reader,
    a_dead_reader_is_not_kept_alive_by_others,
    a_release_that_finds_nothing_of_its_own_changes_nothing,
    readers_that_are_forgotten_let_no_writer_in_early,
    who_shared_a_key_that_was_deleted_has_nothing,
    groups_keep_each_other_out,
    a_batch_is_extended_where_all_of_it_is_ours,
    nothing_is_put_back_beside_another,
    a_batch_has_one_number_above_all_counters,
    readers_share_a_number_between_those_of_the_writers,
    after_lost_counters_readers_begin_above_earlier_writers,
    a_master_that_is_quarantined_grants_and_writes_nothing,
    one_server_behind_two_addresses_has_one_vote,
    a_refused_claim_changes_nothing,
    a_waiting_writer_keeps_new_readers_out_and_no_others,
    a_writer_becomes_a_reader_where_it_has_not_been_told_yet,
    seats_are_taken_in_order_and_who_waits_is_told_of_the_first_end,
    several_seats_are_taken_or_none,
    a_claim_that_is_kept_loses_its_token_and_stays,
    the_largest_claim_is_taken_extended_and_released,
}
