//! Owners of locks of several resources, and of locks that are read.

use quorlock_core::Target;

use crate::kit::*;

pub(crate) fn an_owner_gets_a_part_of_what_it_holds_without_a_request(transport: &Transport) {
    let masters = masters(3);
    let locker = open(transport, &masters);
    let owner = locker.owner();
    let outer = owner.lock_all([Target::write("order:7"), Target::read("tariff")]).fenced().wait().unwrap();
    held_on(&masters, &owner.lock("order:7").wait().unwrap(), 3);
    let scripts = || masters.iter().map(|master| master.calls(Calls::Script)).sum::<u64>();
    let before = scripts();
    for _ in 0..1_000 {
        let inner = owner.lock("order:7").fenced().wait().unwrap();
        let read = owner.read("tariff").wait().unwrap();
        assert_eq!((inner.token(), read.token()), (outer.token(), outer.token()));
    }
    for (request, at) in
        [(owner.write("tariff"), "tariff"), (owner.lock_all(["order:7", "stock:3"]), "order:7")]
    {
        let error = request.wait().unwrap_err();
        let AcquireError::WouldDeadlock { resource } = &error else { panic!("{error}") };
        assert_eq!(resource.to_string(), at);
    }
    assert_eq!(scripts(), before);
    no_key(&masters, "stock:3");
    // Another owner is another reader. It is opened only here, because its start calls scripts too.
    let other = open(transport, &masters);
    drop(other.owner().read("tariff").wait().unwrap());
    assert_eq!(outer.release().wait(), Ok(Released::Freed));
    no_key(&masters, "order:7");
    no_key(&masters, "tariff");
}

pub(crate) fn an_owner_reads_what_it_writes_and_what_it_has_downgraded(transport: &Transport) {
    let masters = masters(3);
    let (locker, other) = (open(transport, &masters), open(transport, &masters));
    let owner = locker.owner();
    let writer = owner.write("doc").wait().unwrap();
    drop(owner.read("doc").wait().unwrap());
    let reader = writer.downgrade().unwrap();
    let inner = owner.read("doc").wait().unwrap();
    assert_eq!(inner.token(), reader.token());
    let error = owner.write("doc").wait().unwrap_err();
    assert!(matches!(error, AcquireError::WouldDeadlock { .. }), "{error}");
    drop(reader);
    assert!(other.write("doc").attempts(1).wait().is_err());
    assert_eq!(inner.release().wait(), Ok(Released::Freed));
    assert_eq!(other.write("doc").wait().unwrap().release().wait(), Ok(Released::Freed));
}
