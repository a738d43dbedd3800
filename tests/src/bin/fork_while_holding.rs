//! A process that forks while it holds a lock: `fork_while_holding TRANSPORT URL...` locks `job`,
//! lets a child end with its copies of everything, and releases when its input ends.

// The test reads this line.
#![allow(clippy::print_stdout)]

use std::io::Read;
use std::time::{Duration, Instant};

use fork::Fork;
use quorlock_core::{AcquireError, Config, LossCause};
use quorlock_tests::Transport;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let transport = Transport::named(&arguments.next().unwrap_or_default());
    let config = Config::builder(arguments).request_timeout(Duration::from_secs(3)).build();
    let locker = transport.open(config.expect("the arguments are URLs"));
    let lock = |name| locker.lock(name).ttl(Duration::from_secs(20)).renew();
    let guard = lock("job").wait().expect("the masters are healthy");
    match fork::fork().expect("a process can be started") {
        Fork::Child => {
            assert_eq!(guard.check(), Err(LossCause::Forked));
            let start = Instant::now();
            let error = lock("other").wait().expect_err("the child has no driver");
            assert_eq!(error, AcquireError::Forked);
            assert!(start.elapsed() < Duration::from_secs(1));
            drop((guard, locker));
            println!("child: not valid, lock() refused, dropped");
            // Dropping the runtime in the child would wait for threads that do not exist there.
            let _stays = std::mem::ManuallyDrop::new(transport);
        }
        Fork::Parent(child) => {
            fork::waitpid(child).expect("the child ends");
            println!("parent: child ended, {:?}", guard.check());
            let _ = std::io::stdin().read(&mut [0]);
            println!("parent: released, {:?}", guard.release().wait());
        }
    }
}
