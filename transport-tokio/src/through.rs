//! Lockers over connections that the caller opens.

mod clock;

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use quorlock_core::front::{Driver, Host, Locker, OpenError, Stream};
use quorlock_core::{Address, Config};
use quorlock_host::System;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::runtime::Handle;

use self::clock::InTimeOf;
use crate::runtime::{self, OutsideOfAsync, Runtime};

/// Opens lockers over connections that a connector opens: through a tunnel or a proxy, over vsock,
/// or in a simulated network.
///
/// `connector` is called with the address in a master's URL, or with that of the server that a
/// Sentinel or a cluster node named. Its future returns anything that is `AsyncRead` and
/// `AsyncWrite`.
///
/// ```
/// use quorlock_tokio::{Address, Config};
/// use tokio::io::{AsyncReadExt, AsyncWriteExt};
/// use tokio::net::TcpStream;
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let masters = ["redis://a", "redis://b", "redis://c"];
/// let tunnel = std::net::SocketAddr::from(([192, 0, 2, 1], 4000));
/// # let embedded = quorlock_embedded::Masters::start(3)?;
/// # let masters = embedded.urls();
/// # let relay = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
/// # let tunnel = relay.local_addr()?;
/// # tokio::spawn(async move {
/// #     loop {
/// #         let (mut client, _) = relay.accept().await.unwrap();
/// #         tokio::spawn(async move {
/// #             let mut line = Vec::new();
/// #             while client.read_u8().await.map(|byte| line.push(byte)).is_ok() && !line.ends_with(b"\n") {}
/// #             let to = String::from_utf8(line).unwrap();
/// #             let mut master = TcpStream::connect(to.trim()).await.unwrap();
/// #             client.write_all(b"+").await.unwrap();
/// #             let _ = tokio::io::copy_bidirectional(&mut client, &mut master).await;
/// #         });
/// #     }
/// # });
/// // A relay that is told in one line where to connect to, and answers with one byte.
/// let connector = move |address: Address| async move {
///     let mut stream = TcpStream::connect(tunnel).await?;
///     stream.set_nodelay(true)?;
///     stream.write_all(format!("{address}\n").as_bytes()).await?;
///     stream.read_u8().await?;
///     Ok(stream)
/// };
/// let locker = quorlock_tokio::through(connector).open(Config::new(masters)?)?;
/// locker.lock("invoice:42").await?.release().await?;
/// # Ok(())
/// # }
/// ```
/// # The contract of a connector
/// It is called once for each opening of a connection, in the driver's task, which then polls its
/// future: neither may block. A name in the address is not resolved, and a connection is used as it
/// is: the connector decides whether small packets wait for more (`TCP_NODELAY`), and whether the
/// system probes quiet connections. The address has no user and no password. TLS of a `rediss://`
/// URL is spoken over the stream, and `sni=` names a master whose certificate has another name than
/// its URL.
///
/// *Timeout*: connector, TLS and greeting share the one `connect_timeout`
/// ([`ConfigBuilder::connect_timeout`](crate::ConfigBuilder::connect_timeout)): after that the
/// master counts as unreachable, and no request waits for it.
///
/// *Cancel safety*: the future is dropped when the locker or its driver ends, or when the opening
/// is given up for another one. That is after four times `connect_timeout`, or after the longest
/// `reconnect_delay` if that is longer.
///
/// *Errors* count like errors of a socket. Only their kind and the system's code are kept, because
/// an error's text may contain a secret: in [`Cause::Connect`](quorlock_core::Cause::Connect), in
/// [`Cause::Closed`](quorlock_core::Cause::Closed), or, before the master has answered anything, in
/// [`Cause::HungUp`](quorlock_core::Cause::HungUp). A panic of the connector or of its stream is
/// [`Cause::ConnectorPanicked`](quorlock_core::Cause::ConnectorPanicked). The next opening follows
/// after the usual pause, and the other masters decide meanwhile.
///
/// *The stream* is read by the driver. Callers write to it on their threads, at once and without
/// waiting; written bytes are flushed. It is dropped at the end without being shut down, and
/// dropping it must not block. A tokio stream accepts no bytes once its runtime has ended: a guard
/// that is dropped after that leaves its key until the TTL ends. Answers that arrive while the
/// runtime is busy for longer than `request_timeout` count as silence, because a stream is read
/// only when its runtime reports that it is readable.
pub fn through<C, F, S>(connector: C) -> Through<C>
where
    C: Fn(Address) -> F + Send + Sync + 'static,
    F: Future<Output = io::Result<S>> + Send + 'static,
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    Through { connector, time: None }
}

/// Opens lockers over connections of a connector. [`through`] returns it.
#[derive(Clone)]
#[must_use = "it opens nothing by itself"]
pub struct Through<C> {
    connector: C,
    /// The runtime whose clock the locker uses instead of the system's.
    time: Option<Handle>,
}

impl<C, F, S> Through<C>
where
    C: Fn(Address) -> F + Send + Sync + 'static,
    F: Future<Output = io::Result<S>> + Send + 'static,
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    /// Makes the locker use a runtime's clock, for tests in simulated time: in `turmoil`, or if
    /// `tokio::time` is paused.
    ///
    /// Without it a locker uses the system's clock, so TTLs and timeouts do not follow simulated
    /// time. Use it only in tests: tokio's clock may stop while the machine sleeps, and keys expire
    /// meanwhile. Random bytes still come from the system.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use quorlock_tokio::{Config, LossCause};
    /// use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
    /// use tokio::runtime::Handle;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?;
    /// runtime.block_on(async {
    ///     // A master in this process. A simulated network would connect to one of its hosts.
    ///     let connector = |_| async {
    ///         let (ours, mut theirs) = duplex(4096);
    ///         tokio::spawn(async move {
    ///             let (mut master, mut session) = (quorlock_sim::Master::new(1), quorlock_sim::Session::new());
    ///             let (since, mut buffer) = (tokio::time::Instant::now(), [0; 4096]);
    ///             while let Ok(bytes @ 1..) = theirs.read(&mut buffer).await {
    ///                 let mut replies = Vec::new();
    ///                 let _ = master.serve(&mut session, &buffer[..bytes], since.elapsed(), &mut replies);
    ///                 theirs.write_all(&replies).await.unwrap();
    ///             }
    ///         });
    ///         Ok(ours)
    ///     };
    ///     let through = quorlock_tokio::through(connector).time_of(&Handle::current());
    ///     let locker = through.open(Config::new(["redis://simulated"])?)?;
    ///     let guard = locker.lock("invoice:42").ttl(Duration::from_secs(3600)).await?;
    ///     // An hour passes at once.
    ///     assert_eq!(guard.lost().await, LossCause::Expired);
    ///     Ok(())
    /// })
    /// # }
    /// ```
    pub fn time_of(self, runtime: &Handle) -> Self {
        Self { time: Some(runtime.clone()), ..self }
    }

    /// Opens a locker as [`open`](crate::open) does, over connections of the connector.
    ///
    /// # Errors
    /// [`OpenError::NoRuntime`] outside a tokio runtime, [`OpenError::IncompleteRuntime`] if the
    /// runtime was built without timers, and [`OpenError::Tls`] if TLS is requested and cannot be
    /// used.
    pub fn open(self, config: Config) -> Result<Locker, OpenError> {
        crate::spawned(&runtime::present()?, config, |config| self.open_with_driver(config))
    }

    /// Returns a locker and its driver, like [`open_with_driver`](crate::open_with_driver), over
    /// connections of the connector.
    pub fn open_with_driver(self, config: Config) -> (Locker, Driver) {
        let system = System::waiting_by(OutsideOfAsync);
        let host: Arc<dyn Host> = match self.time {
            None => Arc::new(system),
            Some(runtime) => Arc::new(InTimeOf::new(runtime, system)),
        };
        let connector = self.connector;
        let connector = move |to| {
            let connecting = connector(to);
            async move { connecting.await.map(Both) }
        };
        Driver::open_through(crate::secured(config), host, Runtime, connector)
    }
}

impl<C> fmt::Debug for Through<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Through").finish_non_exhaustive()
    }
}

/// Both directions of a stream.
struct Both<S>(S);

impl<S: AsyncRead + AsyncWrite + Send + Unpin + 'static> Stream for Both<S> {
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut read = ReadBuf::new(buffer);
        Pin::new(&mut self.0).poll_read(cx, &mut read).map_ok(|()| read.filled().len())
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }
}
