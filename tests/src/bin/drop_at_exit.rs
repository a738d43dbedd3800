//! A process whose last statement drops a guard: `drop_at_exit TRANSPORT URL...` locks `job` and
//! ends.

use quorlock_core::Config;
use quorlock_tests::Transport;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let transport = Transport::named(&arguments.next().unwrap_or_default());
    let config = Config::new(arguments).expect("the arguments are URLs");
    let locker = transport.open(config);
    let guard = locker.lock("job").wait().expect("the masters are healthy");
    // The runtime and the locker are gone when the guard is dropped, so nothing is left that could
    // send a release for it.
    drop((locker, transport));
    drop(guard);
}
