//! `redis+cluster://` URLs, and `quorlock cluster-plan`, on a cluster of three primaries with a
//! replica each.

use quorlock_tests::groups::{ClusterGroup, Takeover};
use quorlock_tests::{eventually, masters};

use crate::running::{Ended, JOB, Running, SOON, exported, quorlock};

/// Runs `quorlock` with these masters.
fn call(urls: &[String], words: &[&str], token: Option<&str>) -> Ended {
    let mut command = quorlock(words);
    command.env("QUORLOCK_MASTERS", urls.join(","));
    if let Some(token) = token {
        command.env("QUORLOCK_TOKEN", token);
    }
    Running::of(&mut command).end()
}

#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
fn a_plan_names_tags_on_different_masters_and_locks_work_over_its_urls() {
    let cluster = ClusterGroup::start();
    let node = format!("redis://{}", cluster.node(4).address());

    let plan = Running::of(&mut quorlock(&["cluster-plan", "--json", &node])).end();
    assert_eq!((plan.code, plan.err.as_str()), (Some(0), ""));
    let urls = [0, 1, 2].map(|tag| {
        // The node that was asked, and two others: these are reported in any order.
        let given = format!("redis+cluster://{},", cluster.node(4).address());
        let url = plan.out.split('"').find(|part| part.contains(&format!("/?tag=q{tag}&replicas=1")));
        let url = url.unwrap_or_else(|| panic!("{}", plan.out)).to_owned();
        assert!(url.starts_with(&given) && url.matches(',').count() == 2, "{url}");
        let (slot, owner) = (cluster.slot(&format!("q{tag}")), cluster.node(tag).address());
        let told = format!(
            "{{\"tag\":\"q{tag}\",\"slot\":{slot},\"address\":\"{owner}\",\"replicas\":1,\"url\":\"{url}\"}}"
        );
        assert!(plan.out.contains(&told), "{told}: {}", plan.out);
        url
    });

    let guarded = ["--restart-guard", "2s", "--ttl", "2s"];
    let open = call(&urls, &["bootstrap", "--restart-guard", "2s"], None);
    assert_eq!(open.code, Some(0), "{}", open.err);
    assert!(open.err.starts_with("quorlock: all masters vote now. That rests on you: "), "{}", open.err);
    let taken = call(&urls, &[&["acquire"], &guarded[..], &["--fenced", JOB]].concat(), None);
    assert_eq!(taken.code, Some(0), "{}", taken.err);
    let token = exported(&taken.out, "QUORLOCK_TOKEN").unwrap();
    let status = call(&urls, &["status", JOB], Some(&token));
    assert!(status.out.contains("ours, "), "{}", status.out);
    assert_eq!(status.out.matches(&format!("@{}", cluster.node(4).address())).count(), 3);

    // The next owner of a slot knows the lock, and extends it.
    cluster.fail_over(cluster.slot("q0"), Takeover::Agreed);
    cluster.await_complete();
    let extended = call(&urls, &[&["extend"], &guarded[..], &[JOB]].concat(), Some(&token));
    assert_eq!((extended.code, extended.err.as_str()), (Some(0), ""));
    let released = call(&urls, &["release", JOB], Some(&token));
    assert_eq!((released.code, released.err.as_str()), (Some(0), ""));
    for place in 0..6 {
        let keys = cluster.node(place).command(&["KEYS", "*"]);
        let keys = keys.array().unwrap();
        assert!(keys.iter().all(|key| key.text().unwrap().starts_with("{q")), "{keys:?}");
        assert!(!keys.iter().any(|key| key.text().unwrap().ends_with(&format!("}}{JOB}"))), "{keys:?}");
    }

    // The replica of the first node owns its slots now, and votes after its quarantine.
    eventually(SOON, "the doctor finds that all vote", || {
        let doctor = call(&urls, &["doctor", "--restart-guard", "2s", "--json"], None);
        [3, 1, 2].iter().all(|owner| {
            let place = cluster.node(*owner).address();
            doctor.out.contains(&format!("\"server_address\":\"{place}\",\"answered\":true,\"votes\":true"))
        })
    });

    // A client that starts while the node is down that was asked finds the tags by the others.
    cluster.node(4).kill();
    let taken = call(&urls, &[&["acquire"], &guarded[..], &[JOB]].concat(), None);
    assert_eq!(taken.code, Some(0), "{}", taken.err);
}

#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
fn tags_on_one_master_are_reported_and_so_are_too_few_masters() {
    let cluster = ClusterGroup::start();
    let place = cluster.place();
    // Slots 3387, 7450 and 3519: the first and the last are on one master.
    let urls: Vec<_> = ["q0", "q1", "q4"]
        .iter()
        .map(|tag| format!("redis+cluster://{place}/?tag={tag}&failover=may-lose-locks"))
        .collect();

    let status = call(&urls, &["status", JOB], None);
    assert_eq!(status.code, Some(3), "{}{}", status.out, status.err);
    assert_eq!(status.out.matches("its tag is on the same server as q").count(), 1, "{}", status.out);
    assert!(status.out.contains("2 of 3 masters"), "{}", status.out);
    let run = call(&urls, &["run", JOB, "--", "true"], None);
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""));

    let node = cluster.node(0).url();
    let plan = Running::of(&mut quorlock(&["cluster-plan", "--masters", "4", &node])).end();
    assert_eq!(plan.code, Some(1));
    assert!(
        plan.err.contains("3 masters of the cluster have slots, and 4 tags were asked for"),
        "{}",
        plan.err
    );
    assert_eq!(plan.out.lines().count(), 6);
}

#[test]
fn a_server_that_is_in_no_cluster_has_no_plan() {
    let alone = masters(1);
    let plan = Running::of(&mut quorlock(&["cluster-plan", &alone[0].url()])).end();
    assert_eq!((plan.code, plan.out.as_str()), (Some(64), ""));
    assert!(plan.err.contains("is not a node of a cluster"), "{}", plan.err);
    let plan = Running::of(&mut quorlock(&["cluster-plan"])).end();
    assert_eq!(plan.code, Some(64));
    assert!(plan.err.contains("No masters: name each with -m URL"), "{}", plan.err);
}
