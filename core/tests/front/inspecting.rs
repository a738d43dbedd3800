//! Inspections, as their callers get them.

use quorlock_core::{InspectError, LockState};

use super::driver::Driver;

#[test]
fn an_inspection_is_returned_to_its_caller_until_the_driver_ends() {
    let (locker, driver) = Driver::start(3);
    driver.settle();
    let semaphore = locker.semaphore("gpu", 3).unwrap();
    let (guard, permit) = (locker.lock("job").wait().unwrap(), semaphore.acquire().wait().unwrap());
    let seen = locker.inspect("job").wait().unwrap();
    assert!(seen.is_ours() && seen.answered() == 3, "{seen}");
    assert!(locker.inspect("other").wait().unwrap().is_free());
    let seen = semaphore.inspect().wait().unwrap();
    assert_eq!((seen.held().count(), seen.ours().collect::<Vec<_>>()), (1, vec![0]), "{seen}");
    assert!(matches!(seen.states().next(), Some((0, LockState::Held(_)))));
    drop((guard, permit));
    driver.end();
    assert_eq!(locker.inspect("job").wait().unwrap_err(), InspectError::DriverEnded);
    assert_eq!(semaphore.inspect().wait().unwrap_err(), InspectError::DriverEnded);
}
