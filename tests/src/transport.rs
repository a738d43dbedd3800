//! The transports under test, behind one handle: the scenarios know nothing more of them.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::time::Duration;

use quorlock_core::front::Locker;
use quorlock_core::{Address, Config};

use crate::tunnel::{Tunnel, check, is_whole, request};

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

/// What [`Transport::sleep`] gives.
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

    /// A locker with its driver running, whose connections go through the [`Tunnel`](crate::Tunnel) at this address.
    pub fn open_through(&self, tunnel: SocketAddr, config: Config) -> Locker {
        match self {
            #[cfg(feature = "tokio")]
            Self::Tokio(runtime) => {
                let _inside = runtime.enter();
                let connector = move |to: Address| through_tokio(tunnel, to.to_string());
                quorlock_tokio::through(connector).open(config).expect("this is inside the runtime")
            }
            Self::Smol => {
                let connector = move |to: Address| through_smol(tunnel, to.to_string());
                quorlock_smol::through(connector).open(config).expect("its executor starts by itself")
            }
            Self::Blocking => {
                let connector = move |to: Address| Tunnel::connect(tunnel, &to.to_string());
                quorlock_blocking::through(connector).open(config).expect("a poll and a thread are left")
            }
        }
    }

    /// Runs a future on the calling thread, in the transport's runtime.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        match self {
            #[cfg(feature = "tokio")]
            Self::Tokio(runtime) => runtime.block_on(future),
            // The blocking transport's futures may be polled by whoever has an executor.
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

/// A connection through a tunnel, by sockets of tokio.
#[cfg(feature = "tokio")]
async fn through_tokio(tunnel: SocketAddr, name: String) -> io::Result<tokio::net::TcpStream> {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    let mut stream = tokio::net::TcpStream::connect(tunnel).await?;
    stream.set_nodelay(true)?;
    stream.write_all(request(&name).as_bytes()).await?;
    let mut answer = Vec::new();
    while !is_whole(&answer) {
        answer.push(stream.read_u8().await?);
    }
    check(&answer)?;
    Ok(stream)
}

/// A connection through a tunnel, by sockets of smol.
async fn through_smol(tunnel: SocketAddr, name: String) -> io::Result<smol::net::TcpStream> {
    use smol::io::{AsyncReadExt, AsyncWriteExt};

    let mut stream = smol::net::TcpStream::connect(tunnel).await?;
    stream.set_nodelay(true)?;
    stream.write_all(request(&name).as_bytes()).await?;
    let mut answer = Vec::new();
    while !is_whole(&answer) {
        let mut byte = [0];
        stream.read_exact(&mut byte).await?;
        answer.push(byte[0]);
    }
    check(&answer)?;
    Ok(stream)
}
