//! Shows the main use of Quorlock on one machine: starts three redis-servers, runs a command under
//! a lock on them, and shows what the masters hold during the run and afterwards.
#![allow(clippy::print_stdout)]

use std::process::{Command, ExitCode};

use quorlock_tests::masters;

fn main() -> std::io::Result<ExitCode> {
    let fleet = masters(3);
    println!("three masters: {}", fleet.urls().join(" "));
    let shows: Vec<_> =
        fleet.iter().map(|server| format!("redis-cli -p {} get job", server.port())).collect();
    let script = format!(
        "echo \"this runs under the lock $QUORLOCK_RESOURCE; the masters hold:\"; {}",
        shows.join("; ")
    );
    let mut quorlock = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    quorlock.args(["run", "--quiet", "-p", "quorlock", "--", "run", "-v"]);
    for url in fleet.urls() {
        quorlock.args(["-m", &url]);
    }
    let status = quorlock.args(["job", "--", "sh", "-c", &script]).status()?;
    println!("and afterwards: {:?}", fleet.get("job"));
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
