//! The ways by name.

use std::net::SocketAddr;

use quorlock_core::Config;
use smol::LocalExecutor;

use crate::client::Client;
use crate::ours::{Ours, Place};
#[cfg(feature = "peers")]
use crate::peers::{Rslock, redlock, redsync};
use crate::raw::{Raw, futures};

/// The floor that all others are compared with.
pub(crate) const RAW: &str = "raw";
/// The floor of many threads that wait.
pub(crate) const RAW_THREADS: &str = "raw-threads";
/// The floor of async-io's sockets.
pub(crate) const RAW_SMOL: &str = "raw-smol";
/// The floor of code in `main` under a runtime with several threads.
#[cfg(feature = "tokio")]
pub(crate) const RAW_MAIN: &str = "raw-tokio-main";

/// Our transports, each in the place that suits it best. These are measured with more masters, with
/// faults and with many locks.
pub(crate) const TRANSPORTS: &[&str] = &[
    "blocking",
    "smol",
    #[cfg(feature = "tokio")]
    "tokio",
];

/// The ways that are measured with one caller.
pub(crate) const SEQUENTIAL: &[&str] = &[
    RAW,
    "blocking",
    "blocking-futures",
    RAW_SMOL,
    "smol",
    #[cfg(feature = "tokio")]
    "tokio",
    #[cfg(feature = "tokio")]
    "tokio-2",
    #[cfg(feature = "tokio")]
    RAW_MAIN,
    #[cfg(feature = "tokio")]
    "tokio-main",
];

/// The ways that are measured with many workers.
pub(crate) const IN_FLIGHT: &[&str] = &[
    RAW,
    RAW_THREADS,
    "blocking-threads",
    "blocking-futures",
    "smol",
    #[cfg(feature = "tokio")]
    "tokio",
    #[cfg(feature = "tokio")]
    "tokio-2",
];

/// Other clients.
pub(crate) const PEERS: &[&str] = &[
    #[cfg(feature = "peers")]
    "rslock",
    #[cfg(feature = "peers")]
    "redlock",
    #[cfg(feature = "peers")]
    "redsync",
];

/// Connects a way. Returns `None` if there is no way of this name.
pub(crate) fn open(name: &str, addresses: &[SocketAddr]) -> Option<Box<dyn Client>> {
    Some(match name {
        RAW => Box::new(Raw::open(addresses)),
        RAW_THREADS => Box::new(Raw::with_threads(addresses)),
        RAW_SMOL => Box::new(futures::smol(addresses)),
        #[cfg(feature = "tokio")]
        RAW_MAIN => Box::new(futures::tokio_main::open(addresses, two_threads())),
        #[cfg(feature = "peers")]
        "rslock" => Box::new(Rslock::open(addresses, one_thread())),
        #[cfg(feature = "peers")]
        "redlock" => Box::new(redlock(addresses)),
        #[cfg(feature = "peers")]
        "redsync" => Box::new(redsync(addresses)),
        name => Box::new(ours(name, addresses)?),
    })
}

/// Connects one of our ways. Returns `None` if there is none of this name.
pub(crate) fn ours(name: &str, addresses: &[SocketAddr]) -> Option<Ours> {
    ours_at(name, addresses.iter().map(|address| format!("redis://{address}")))
}

/// The same, on the masters with these URLs.
pub(crate) fn ours_at(name: &str, urls: impl Iterator<Item = String>) -> Option<Ours> {
    let config = Config::new(urls).expect("usable masters");
    let blocking = |config| quorlock_blocking::open(config).expect("a poll and a thread are left");
    Some(match name {
        "blocking" | "blocking-threads" => Ours::new(Place::Threads, blocking(config)),
        "blocking-futures" => Ours::new(Place::Serving(LocalExecutor::new()), blocking(config)),
        "smol" => {
            let executor = LocalExecutor::new();
            let (locker, driver) = quorlock_smol::open_with_driver(config);
            executor.spawn(driver).detach();
            Ours::new(Place::Local(executor), locker)
        }
        #[cfg(feature = "tokio")]
        "tokio" => on_tokio(one_thread(), Place::Tasks, config),
        #[cfg(feature = "tokio")]
        "tokio-2" => on_tokio(two_threads(), Place::Tasks, config),
        #[cfg(feature = "tokio")]
        "tokio-main" => on_tokio(two_threads(), Place::Main, config),
        _ => return None,
    })
}

#[cfg(feature = "tokio")]
fn on_tokio(
    runtime: tokio::runtime::Runtime,
    place: fn(tokio::runtime::Runtime) -> Place,
    config: Config,
) -> Ours {
    let locker = {
        let _inside = runtime.enter();
        quorlock_tokio::open(config).expect("this is inside the runtime")
    };
    Ours::new(place(runtime), locker)
}

#[cfg(feature = "tokio")]
fn one_thread() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a poll is left")
}

#[cfg(feature = "tokio")]
fn two_threads() -> tokio::runtime::Runtime {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.worker_threads(2).enable_all().build().expect("threads can be started")
}
