//! The transports under test, behind one handle: the scenarios use only that.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::time::Duration;

use quorlock_core::Config;
use quorlock_core::front::Locker;

use crate::connectors::{self, Way};

/// A transport together with the runtime that it needs, if any. Dropping it ends the runtime.
#[derive(Debug)]
#[non_exhaustive]
pub enum Transport {
    /// `quorlock-tokio` on a runtime with several threads.
    #[cfg(feature = "tokio")]
    Tokio(tokio::runtime::Runtime),
    /// `quorlock-smol` on smol's global executor.
    Smol,
    /// `quorlock-blocking`, which needs no runtime.
    Blocking,
}

/// The future that [`Transport::sleep`] returns.
pub type Pause = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Transport {
    /// The names that [`Transport::named`] knows.
    pub const NAMES: &[&str] = &[
        #[cfg(feature = "tokio")]
        "tokio",
        "smol",
        "blocking",
    ];

    /// The transport of this name, one of [`Transport::NAMES`].
    pub fn named(name: &str) -> Self {
        match name {
            #[cfg(feature = "tokio")]
            "tokio" => {
                let mut runtime = tokio::runtime::Builder::new_multi_thread();
                Self::Tokio(runtime.worker_threads(2).enable_all().build().expect("threads can be started"))
            }
            "smol" => Self::Smol,
            "blocking" => Self::Blocking,
            other => panic!("there is no transport named {other}"),
        }
    }

    /// Its name, one of [`Transport::NAMES`].
    pub fn name(&self) -> &'static str {
        match self {
            #[cfg(feature = "tokio")]
            Self::Tokio(_) => "tokio",
            Self::Smol => "smol",
            Self::Blocking => "blocking",
        }
    }

    /// A locker with its driver running.
    pub fn open(&self, config: Config) -> Locker {
        if connectors::is_chosen() {
            return self.open_by_connector(Way::Straight, config);
        }
        match self {
            #[cfg(feature = "tokio")]
            Self::Tokio(runtime) => {
                let _inside = runtime.enter();
                quorlock_tokio::open(config).expect("this is inside the runtime")
            }
            Self::Smol => quorlock_smol::open(config).expect("its executor starts by itself"),
            Self::Blocking => quorlock_blocking::open(config).expect("a poll and a thread are left"),
        }
    }

    /// Whether the transport opens its sockets itself, and no connector does.
    pub fn opens_sockets() -> bool {
        !connectors::is_chosen()
    }

    /// A locker with its driver running, whose connections go through the [`Tunnel`](crate::Tunnel)
    /// at this address.
    pub fn open_through(&self, tunnel: SocketAddr, config: Config) -> Locker {
        self.open_by_connector(Way::Tunnel(tunnel), config)
    }

    fn open_by_connector(&self, way: Way, config: Config) -> Locker {
        match self {
            #[cfg(feature = "tokio")]
            Self::Tokio(runtime) => {
                let _inside = runtime.enter();
                let through = quorlock_tokio::through(move |to| connectors::of_tokio::connect(way, to));
                through.open(config).expect("this is inside the runtime")
            }
            Self::Smol => {
                let through = quorlock_smol::through(move |to| connectors::of_smol::connect(way, to));
                through.open(config).expect("its executor starts by itself")
            }
            Self::Blocking => {
                let through = quorlock_blocking::through(move |to| connectors::of_threads::connect(way, &to));
                through.open(config).expect("a poll and a thread are left")
            }
        }
    }

    /// Runs a future on the calling thread, in the transport's runtime.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        match self {
            #[cfg(feature = "tokio")]
            Self::Tokio(runtime) => runtime.block_on(future),
            // The blocking transport's futures may be polled by any executor.
            Self::Smol | Self::Blocking => smol::block_on(future),
        }
    }

    /// A pause in [`Transport::block_on`].
    pub fn sleep(&self, span: Duration) -> Pause {
        match self {
            #[cfg(feature = "tokio")]
            Self::Tokio(_) => Box::pin(tokio::time::sleep(span)),
            Self::Smol | Self::Blocking => Box::pin(async move {
                smol::Timer::after(span).await;
            }),
        }
    }
}
