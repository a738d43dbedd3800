//! The examples, and the scenarios on kinds of masters that the test command does not use.

use crate::Outcome;
use crate::process::{cargo, read, run};

/// The examples that end by themselves and need no server.
const EXAMPLES: [&str; 9] = [
    "cron",
    "custom_runtime",
    "embedded",
    "fenced_store",
    "many_futures",
    "metrics",
    "thread_pool",
    "axum_handler",
    "leader",
];
/// As the tests are built: for one package alone the examples and scenarios would be built again.
const SCENARIOS: [&str; 5] = ["test", "--workspace", "--all-features", "--test", "scenarios"];

pub(super) fn examples() -> Outcome {
    for example in EXAMPLES {
        println!("-- {example}");
        read(&mut cargo(&["run", "--quiet", "--all-features", "--example", example]))?;
    }
    Ok(())
}

/// The test command leaves tests out if there is no `redis-server`. Here there must be one.
pub(super) fn real() -> Outcome {
    let left_out = read(cargo(&SCENARIOS).args(["--quiet", "--", "--list", "--ignored"]))?;
    print!("{left_out}");
    if left_out.contains("left_to_real_servers") {
        return Err("there was no redis-server when the tests were built".into());
    }
    Ok(())
}

pub(super) fn embedded() -> Outcome {
    let selection = ["--", "--skip", "left_to_real_servers", "--test-threads", "16"];
    run(cargo(&SCENARIOS).args(selection).env("QUORLOCK_TEST_SERVER", "embedded"))
}

pub(super) fn clusters() -> Outcome {
    let selection = ["--", "blocking::", "--test-threads", "16"];
    run(cargo(&SCENARIOS).args(selection).env("QUORLOCK_TEST_CLUSTERS", "1"))
}

pub(super) fn tls() -> Outcome {
    run(cargo(&SCENARIOS).args(["--", "--test-threads", "16"]).env("QUORLOCK_TEST_TLS", "1"))
}
