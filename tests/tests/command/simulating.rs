//! `quorlock simulate`: scenarios with and without their defence, worlds from options, and
//! pictures.

use std::fs;

use crate::running::{Ended, Running, quorlock};

const SCENARIOS: [&str; 4] = ["kleppmann-pause", "kleppmann-clock", "kleppmann-delay", "restart-empty"];

#[track_caller]
fn simulate(words: &[&str]) -> Ended {
    Running::of(&mut quorlock(&[&["simulate"], words].concat())).end_by_itself()
}

/// Panics unless every element of the document is closed in order, and its text is escaped.
#[track_caller]
fn assert_well_formed(svg: &str) {
    let mut open = Vec::new();
    let mut rest = svg;
    while let Some((before, behind)) = rest.split_once('<') {
        assert!(!before.contains('>'), "{before}");
        for (place, _) in before.match_indices('&') {
            let entity = &before[place..before.len().min(place + 7)];
            let known = ["&amp;", "&lt;", "&gt;", "&quot;", "&#39;"];
            assert!(known.iter().any(|known| entity.starts_with(known)), "{entity}");
        }
        let (tag, after) = behind.split_once('>').expect("a tag ends");
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
        let name = tag.trim_start_matches('/').split([' ', '/']).next().unwrap();
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name), "{tag}");
        } else if !tag.ends_with('/') {
            open.push(name);
        }
        rest = after;
    }
    assert!(open.is_empty() && rest.trim().is_empty(), "{open:?} {rest}");
}

#[test]
fn each_scenario_is_prevented_with_its_defence_and_broken_without() {
    for scenario in SCENARIOS {
        for seed in ["1", "2", "3"] {
            let kept = simulate(&[scenario, "--seed", seed]);
            assert_eq!((kept.code, kept.err.as_str()), (Some(0), ""), "{scenario}: {}", kept.out);
            assert!(
                kept.out.contains("Prevented: both clients' additions count, and the store holds 2"),
                "{}",
                kept.out
            );
            assert_eq!(kept.out.lines().count(), 3, "{}", kept.out);

            let broken = simulate(&[scenario, "--seed", seed, "--without-defence"]);
            assert_eq!((broken.code, broken.err.as_str()), (Some(1), ""), "{scenario}: {}", broken.out);
            assert!(broken.out.contains("\nBroken: client"), "{}", broken.out);
            assert!(broken.out.contains(" ms  client0  "), "{}", broken.out);
            assert!(broken.out.contains("a promise is broken: client"), "{}", broken.out);
        }
    }
}

#[test]
fn each_scenario_does_harm_without_its_defence_and_none_with_it() {
    let refused = "writes 1, number 1: refused";
    for scenario in ["kleppmann-pause", "kleppmann-clock"] {
        let kept = simulate(&[scenario, "--timeline"]).out;
        assert!(kept.contains(refused) && kept.contains("after it refused one write"), "{kept}");
        let broken = simulate(&[scenario, "--without-defence"]).out;
        assert!(!broken.contains("number") && broken.contains("undid what"), "{broken}");
    }
    let both = "hold valid guards of one resource at once";
    assert!(simulate(&["kleppmann-clock", "--timeline"]).out.contains(both));
    assert!(!simulate(&["kleppmann-pause", "--timeline"]).out.contains(both));
    let told = simulate(&["kleppmann-delay", "--timeline"]).out;
    assert!(told.contains("learns that the votes came too late"), "{told}");
    let trusted = simulate(&["kleppmann-delay", "--without-defence"]).out;
    assert!(trusted.contains("counts 3 late votes and acts") && trusted.contains("undid what"), "{trusted}");
    assert!(simulate(&["restart-empty", "--without-defence"]).out.contains(both));
    let guarded = simulate(&["restart-empty", "--timeline"]).out;
    assert!(guarded.contains("is back, keys kept: Nothing") && !guarded.contains(both), "{guarded}");
}

#[test]
fn the_same_options_print_the_same_output() {
    for words in [
        &["kleppmann-clock", "--timeline"][..],
        &["restart-empty", "--without-defence", "--mermaid"],
        &["--random", "--seed", "5", "--timeline"],
        &["--clients", "3", "--fault", "hang:1@5ms+1s", "--timeline"],
    ] {
        let [one, other] = [simulate(words), simulate(words)];
        assert_eq!((one.code, &one.out), (other.code, &other.out), "{words:?}");
        let seeds = simulate(&[words, &["--seed", "9"]].concat());
        assert_ne!(one.out, seeds.out, "{words:?}");
    }
}

#[test]
fn a_world_from_options_is_shrunk_if_it_breaks_a_promise() {
    let calm = simulate(&["--masters", "5", "--clients", "3", "--fenced", "--fault", "pause:0@5ms+3s"]);
    assert_eq!(calm.code, Some(0), "{}", calm.out);
    assert!(calm.out.contains("3 clients and 5 masters") && calm.out.contains("No promise"), "{}", calm.out);

    let empty = ["--fault", "restart-empty:0@300ms+5ms", "--fault", "restart-empty:1@600ms+5ms"];
    let noise = ["--fault", "flush:2@30s", "--fault", "cut:1-2@3s"];
    let broken = simulate(&[empty, noise].concat());
    assert_eq!(broken.code, Some(1), "{}", broken.out);
    assert!(broken.out.contains("Outside Redlock's assumptions: 3 faults."), "{}", broken.out);
    assert!(broken.out.contains("\n  --fault restart-empty:"), "{}", broken.out);
    assert!(!broken.out.contains("--fault cut:"), "{}", broken.out);
    let guarded = simulate(&[&empty[..], &["--restart-guard", "2s"]].concat());
    assert_eq!(guarded.code, Some(0), "{}", guarded.out);

    let random = simulate(&["--random", "--seed", "3"]);
    assert_eq!(random.code, Some(0), "{}", random.out);
}

#[test]
fn pictures_are_well_formed_and_diagrams_are_mermaid() {
    let directory = tempfile::tempdir().unwrap();
    for scenario in SCENARIOS {
        for defence in [&[][..], &["--without-defence"]] {
            let file = directory.path().join(format!("{scenario}{}.svg", defence.len()));
            let words = [&[scenario, "--svg", file.to_str().unwrap()], defence].concat();
            let ended = simulate(&words);
            assert_eq!(ended.code, Some(i32::from(!defence.is_empty())), "{}", ended.err);
            let svg = fs::read_to_string(&file).unwrap();
            assert_well_formed(&svg);
            for part in
                ["xmlns=\"http://www.w3.org/2000/svg\"", "viewBox=", "prefers-color-scheme:dark", scenario]
            {
                assert!(svg.contains(part), "{part}: {svg}");
            }
            // A client that knows a token can release its lock.
            let is_hex = |word: &str| word.len() >= 20 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
            assert!(!svg.split(|character: char| !character.is_alphanumeric()).any(is_hex));
        }
        let drawn = simulate(&[scenario, "--mermaid"]).out;
        assert!(drawn.starts_with("sequenceDiagram\n    participant client0\n"), "{drawn}");
        assert!(drawn.contains("->>store: "), "{drawn}");
    }
}

#[test]
fn a_file_that_cannot_be_written_exits_with_74() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("missing/a.svg");
    let ended = simulate(&["kleppmann-pause", "--svg", file.to_str().unwrap()]);
    assert_eq!((ended.code, ended.out.as_str()), (Some(74), ""), "{}", ended.err);
    assert!(ended.err.contains("a.svg cannot be written: "), "{}", ended.err);
}

#[test]
fn arguments_that_make_no_sense_exit_with_64_and_a_message() {
    for (words, says) in [
        (&["kleppmann"][..], "kleppmann-pause, kleppmann-clock, kleppmann-delay, restart-empty"),
        (&["kleppmann-pause", "kleppmann-clock"], "--list"),
        (&["kleppmann-pause", "--masters", "5"], "SCENARIO and --masters"),
        (&["--without-defence"], "SCENARIO is missing"),
        (&["--seed", "x"], "--seed"),
        (&["--seed"], "--seed"),
        (&["--masters", "0"], "1 to 9"),
        (&["--masters", "10"], "1 to 9"),
        (&["--clients", "7"], "1 to 6"),
        (&["--ttl", "10"], "unit"),
        (&["--ttl", "1h"], "60s"),
        (&["--restart-guard", "1s"], "--ttl"),
        (&["--random", "--fenced"], "--random"),
        (&["--timeline", "--mermaid"], "--timeline and --mermaid"),
        (&["--svg", ""], "--svg"),
        (&["--fault", "hang"], "KIND:WHO@WHEN"),
        (&["--fault", "bang:1@1s"], "restart-empty"),
        (&["--fault", "hang:1@1s"], "span"),
        (&["--fault", "hang:3@1s+1s"], "masters 0 to 2"),
        (&["--fault", "kill:2@1s"], "clients are numbered 0 to 1"),
        (&["--fault", "hang:1@1h+1s"], "60s"),
        (&["-q"], "-q is an option of"),
        (&["--json"], "--json"),
        (&["-m", "redis://a"], "-m is an option of"),
        (&["--bogus"], "--bogus"),
    ] {
        let ended = simulate(words);
        assert_eq!((ended.code, ended.out.as_str()), (Some(64), ""), "{words:?}: {}", ended.err);
        assert_eq!(ended.err.lines().count(), 1, "{words:?}: {}", ended.err);
        assert!(ended.err.contains(says), "{words:?}: {}", ended.err);
    }
}

#[test]
fn help_and_list_fit_80_columns_and_name_all() {
    for words in [&["--help"][..], &["-h"], &["kleppmann-pause", "-h"], &["--list"]] {
        let ended = simulate(words);
        assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{words:?}");
        assert!(ended.out.lines().all(|line| line.chars().count() <= 80), "{}", ended.out);
        assert!(SCENARIOS.iter().all(|scenario| ended.out.contains(scenario)), "{}", ended.out);
    }
}
