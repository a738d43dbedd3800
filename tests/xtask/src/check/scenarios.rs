//! The examples, and the scenarios on kinds of masters that the test command does not use.

use super::NotRun;
use crate::Outcome;
use crate::process::{cargo, program, read, run, target};

/// The examples that end by themselves and need no server.
const EXAMPLES: [&str; 15] = [
    "cache_refill",
    "cron",
    "custom_runtime",
    "embedded",
    "fenced_store",
    "many_futures",
    "metrics",
    "sqlite",
    "thread_pool",
    "job_queue",
    "axum_handler",
    "fair_leader",
    "leader",
    "rate_limiter",
    "refreshed_token",
];
/// The examples that take the URLs of masters as arguments.
const WITH_MASTERS: [&str; 4] = ["blocking", "smol", "tokio", "by_hand"];
/// The examples that run on a group with Sentinels.
const ON_A_GROUP: [&str; 1] = ["cron_sentinel"];
/// The example that runs on a PostgreSQL server of its own.
const ON_POSTGRES: &str = "postgres";
/// Built with the same options as the tests: for one package alone, the examples and scenarios
/// would be built again.
const SCENARIOS: [&str; 5] = ["test", "--workspace", "--all-features", "--test", "scenarios"];

pub(super) fn examples() -> Outcome {
    // The examples are not run by cargo: the outer cargo sets variables because of which an inner
    // cargo would build some things again.
    let all = EXAMPLES.iter().chain(&WITH_MASTERS).chain(&ON_A_GROUP).chain(&["on_masters"]);
    let names = all.flat_map(|example| ["--example", example]);
    run(cargo(&["build", "--quiet", "--all-features"]).args(names))?;
    for example in EXAMPLES {
        println!("-- {example}");
        read(&mut program(&built(example), &[]))?;
    }
    for example in WITH_MASTERS {
        println!("-- {example}, on three masters");
        let script = "IFS=,; exec \"$0\" $QUORLOCK_MASTERS";
        read(&mut program(&built("on_masters"), &["sh", "-c", script, &built(example)]))?;
    }
    for example in ON_A_GROUP {
        println!("-- {example}, on a group that fails over");
        read(&mut program(&built("on_masters"), &["--fail-over", "5", &built(example)]))?;
    }
    Ok(())
}

/// Where cargo puts an example.
fn built(example: &str) -> String {
    target().join("debug/examples").join(example).to_string_lossy().into_owned()
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

/// The test command leaves the tests on PostgreSQL out if it cannot install it.
pub(super) fn postgres() -> Outcome {
    let tests = ["test", "--workspace", "--all-features", "--example", ON_POSTGRES];
    let left_out = read(cargo(&tests).args(["--quiet", "--", "--list", "--ignored"]))?;
    print!("{left_out}");
    if left_out.contains(": test") {
        let install = "apt-get install postgresql";
        return Err(
            NotRun(format!("there is no PostgreSQL ({install}), so these tests were left out")).into()
        );
    }
    run(&mut cargo(&["build", "--quiet", "--all-features", "--example", ON_POSTGRES]))?;
    read(&mut program(&built(ON_POSTGRES), &[])).map(drop)
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
