//! The table of votes on real servers. `cargo xtask votes --help`
#![allow(clippy::print_stdout, clippy::print_stderr)]
// What it shares with tests may panic, like the tests themselves.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, unreachable_pub)]

#[path = "../shared/votes/servers.rs"]
mod servers;
#[path = "../shared/votes/mod.rs"]
mod votes;

use std::process::ExitCode;
use std::sync::Mutex;
use std::thread;

use quorlock_tests::results::Results;
use votes::{History, Setting, Table, live};

/// Lives at once. They mostly wait for keys to expire.
const AT_ONCE: usize = 4;

const HELP: &str = "\
votes [HISTORY]

Starts servers for each history of a server and each configuration, and compares which answers a client counts with
what the rule for a vote allows. With the name of a history, such as RebuiltFromAnother, only that one.

Exit codes: 0, each cell is as the rule says or in the list of exceptions; 1, some are not; 2, there is no such history.";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.iter().any(|argument| argument == "--help" || argument == "-h") {
        println!("{HELP}");
        return ExitCode::SUCCESS;
    }
    let is_wanted = |(history, _): &(History, Setting)| {
        arguments.first().is_none_or(|name| *name == format!("{history:?}"))
    };
    let mut wanted: Vec<_> = Table::all().filter(is_wanted).collect();
    if wanted.is_empty() {
        eprintln!("votes: there is no such history; the names are {:?}", History::ALL);
        return ExitCode::from(2);
    }
    wanted.reverse();
    let (wanted, lived) = (Mutex::new(wanted), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let Some((history, setting)) = wanted.lock().unwrap().pop() else { return };
                    let life = live::<servers::RealServers>(history, setting);
                    lived.lock().unwrap().push(life);
                }
            });
        }
    });
    let mut lived = lived.into_inner().unwrap();
    lived.sort_by_key(|life| (life.history, life.setting));
    let table = Table::new(lived);
    println!("{table}");
    let wrong = table.wrong();
    wrong.iter().for_each(|cell| println!("{cell}"));
    if !wrong.is_empty() {
        return ExitCode::FAILURE;
    }
    if !arguments.is_empty() {
        return ExitCode::SUCCESS;
    }
    let mut results = Results::new();
    results.servers();
    results.figure("cells that are not as the rule says", 0, "none");
    let [cells, counted, refused] = table.size();
    results.figure("cells", cells, "");
    results.figure("cells that are counted against the rule, and listed", counted, "");
    results.figure("cells that are refused without need, and listed", refused, "");
    results.write().unwrap();
    ExitCode::SUCCESS
}
