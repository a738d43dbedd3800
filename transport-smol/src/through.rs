//! Lockers over connections that the caller opens.

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use quorlock_core::front::{Driver, Host, Locker, OpenError, Stream};
use quorlock_core::{Address, Config};
use smol::io::{AsyncRead, AsyncWrite};

use crate::runtime::Runtime;

/// Opens lockers over connections that a connector opens: through a tunnel or a proxy, over vsock,
/// or in a simulated network.
///
/// `connector` is called with the address in a master's URL, or with that of the server that a
/// Sentinel or a cluster node named. Its future returns anything that is `AsyncRead` and
/// `AsyncWrite`.
///
/// ```
/// use quorlock_smol::{Address, Config};
/// use smol::io::{AsyncReadExt, AsyncWriteExt};
/// use smol::net::TcpStream;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let masters = ["redis://a", "redis://b", "redis://c"];
/// let tunnel = std::net::SocketAddr::from(([192, 0, 2, 1], 4000));
/// # let embedded = quorlock_embedded::Masters::start(3)?;
/// # let masters = embedded.urls();
/// # let relay = smol::block_on(smol::net::TcpListener::bind("127.0.0.1:0"))?;
/// # let tunnel = relay.local_addr()?;
/// # smol::spawn(async move {
/// #     loop {
/// #         let (mut client, _) = relay.accept().await.unwrap();
/// #         smol::spawn(async move {
/// #             let (mut line, mut byte) = (Vec::new(), [0]);
/// #             while client.read_exact(&mut byte).await.is_ok() && byte != *b"\n" {
/// #                 line.push(byte[0]);
/// #             }
/// #             let master = TcpStream::connect(String::from_utf8(line).unwrap()).await.unwrap();
/// #             client.write_all(b"+").await.unwrap();
/// #             let there = smol::io::copy(client.clone(), master.clone());
/// #             let back = smol::io::copy(master, client);
/// #             let _ = smol::future::or(there, back).await;
/// #         })
/// #         .detach();
/// #     }
/// # })
/// # .detach();
/// // A relay that is told in one line where to connect to, and answers with one byte.
/// let connector = move |address: Address| async move {
///     let mut stream = TcpStream::connect(tunnel).await?;
///     stream.set_nodelay(true)?;
///     stream.write_all(format!("{address}\n").as_bytes()).await?;
///     stream.read_exact(&mut [0]).await?;
///     Ok(stream)
/// };
/// let locker = quorlock_smol::through(connector).open(Config::new(masters)?)?;
/// smol::block_on(async {
///     locker.lock("invoice:42").await?.release().await?;
///     Ok(())
/// })
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
/// waiting; written bytes are flushed. It is dropped at the end, without being shut down.
pub fn through<C, F, S>(connector: C) -> Through<C>
where
    C: Fn(Address) -> F + Send + Sync + 'static,
    F: Future<Output = io::Result<S>> + Send + 'static,
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    Through { connector }
}

/// Opens lockers over connections of a connector. [`through`] returns it.
#[derive(Clone)]
#[must_use = "it opens nothing by itself"]
pub struct Through<C> {
    connector: C,
}

impl<C, F, S> Through<C>
where
    C: Fn(Address) -> F + Send + Sync + 'static,
    F: Future<Output = io::Result<S>> + Send + 'static,
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    /// Opens a locker as [`open`](crate::open) does, over connections of the connector.
    ///
    /// # Errors
    /// [`OpenError::Tls`] if TLS is requested and cannot be used.
    pub fn open(self, config: Config) -> Result<Locker, OpenError> {
        crate::spawned(config, |config| self.open_with_driver(config))
    }

    /// Returns a locker and its driver, like [`open_with_driver`](crate::open_with_driver), over
    /// connections of the connector.
    pub fn open_with_driver(self, config: Config) -> (Locker, Driver) {
        let host: Arc<dyn Host> = Arc::new(quorlock_host::System::new());
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
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }
}
