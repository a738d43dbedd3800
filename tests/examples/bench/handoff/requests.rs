//! How many requests clients sent to the masters.

use std::thread::{self, JoinHandle};

use quorlock_tests::{RedisServer, Value};

/// The text that ends a count. MONITOR shows all earlier commands before it.
const END: &str = "no more requests are counted";

/// Counts the commands that MONITOR shows, on all masters, except those of scripts: these lines
/// come from `lua` instead of an address. INFO's `commandstats` and `total_commands_processed`
/// count commands of scripts as well. As MONITOR costs the servers time, nothing is timed
/// meanwhile.
pub(crate) struct Requests<'a> {
    masters: &'a [RedisServer],
    counting: Vec<JoinHandle<usize>>,
}

impl<'a> Requests<'a> {
    pub(crate) fn count(masters: &'a [RedisServer]) -> Self {
        let counting = masters.iter().map(|master| {
            let mut client = master.client().expect("the server answers");
            assert!(client.command(&["MONITOR"]).is_ok(), "the server shows its commands");
            let count = move || {
                let mut requests = 0;
                loop {
                    match client.receive().expect("the end comes within the timeout") {
                        Value::Simple(line) if line.contains(END) => return requests,
                        // `1339518083.107412 [0 lua] "get" "key"`
                        Value::Simple(line) if !line.contains(" lua] ") => requests += 1,
                        _ => {}
                    }
                }
            };
            thread::spawn(count)
        });
        Self { masters, counting: counting.collect() }
    }

    /// Ends the count, and returns the number of requests.
    pub(crate) fn end(self) -> usize {
        for master in self.masters {
            master.command(&["ECHO", END]);
        }
        self.counting.into_iter().map(|counting| counting.join().expect("a count ends")).sum()
    }
}
