//! The scripts of several targets, of shared ones and of seats, as the model of a master runs them.
//! The same tests run on real servers elsewhere.

// Helpers of tests may panic, like the tests themselves.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, unreachable_pub)]

use std::time::Duration;

use quorlock_sim::{Command, Master, Session};

#[macro_use]
#[path = "../../../../tests/shared/claims_tests.rs"]
mod claims_tests;
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

test_claims! { on Model::new(), }
