use super::*;

fn targets(all: &[Target]) -> Result<Targets, ConfigError> {
    Targets::new("", all.iter().cloned())
}

#[test]
fn a_batch_that_writes_one_name_is_a_plain_lock() {
    let one = Targets::from(Resource::new("x").unwrap());
    assert_eq!(targets(&["x".into(), Target::read("x")]), Ok(one.clone()));
    assert_eq!(targets(&[Target::read("x"), "x".into()]), Ok(one.clone()));
    assert!(one.as_one().is_some() && !one.is_shared());
    assert!(targets(&[Target::read("x")]).unwrap().as_one().is_none());
}

#[test]
fn names_are_put_in_order_and_counted_once() {
    let all = targets(&["b".into(), "a".into(), "b".into(), Target::read("c")]).unwrap();
    assert_eq!(all.to_string(), "a and 2 more");
    assert_eq!(format!("{all:?}"), r#"{"a": Exclusive, "b": Exclusive, "c": Shared(readers)}"#);
    assert!(all.has_shared() && !all.is_shared());
    assert!(!targets(&["b".into(), "a".into()]).unwrap().has_shared());
}

#[test]
fn too_many_and_contradictory_targets_are_refused() {
    let many = |count: usize| (0..count).map(|n| Target::write(format!("n{n}")));
    assert_eq!(Targets::new("", many(0)), Err(ConfigError::NoTarget));
    assert!(Targets::new("", many(1_024)).is_ok());
    assert_eq!(Targets::new("", many(1_025)), Err(ConfigError::TooManyTargets));
    let reads = |count: usize| (0..count).map(|n| Target::read(format!("n{n}")));
    assert!(Targets::new("", reads(128)).is_ok());
    assert_eq!(Targets::new("", reads(129)), Err(ConfigError::TooManyTargets));
    let long = (0..17).map(|n| Target::write(format!("{n:0>16000}")));
    assert_eq!(Targets::new("", long), Err(ConfigError::TooManyTargets));
    let group = Group::new("g").unwrap();
    let both = [Target::read("x"), Target::share("x", group)];
    assert!(matches!(targets(&both), Err(ConfigError::ConflictingGroups { .. })));
    assert_eq!(Group::new(""), Err(ConfigError::UnusableGroup { bytes: 0 }));
}
