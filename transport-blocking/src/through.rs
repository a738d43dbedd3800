//! Lockers over connections that the caller opens.

use std::fmt;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::sync::Arc;

use quorlock_core::front::{Locker, OpenError};
use quorlock_core::{Address, Cause, Config};

use crate::calls::Connector;
use crate::own::Own;
use crate::socket::Fresh;

/// Opens lockers over connections that a connector opens: through a tunnel or a proxy, or over
/// vsock.
///
/// `connector` is called with the address in a master's URL, or with that of the server that a
/// Sentinel or a cluster node named. It returns a socket: anything that is `Read` and `Write`, with
/// a descriptor (`AsFd`) for which the system reports when it is readable and writable. Unix only.
///
/// ```
/// use std::io::{Read, Write};
/// use std::net::TcpStream;
/// use std::time::Duration;
///
/// use quorlock_blocking::{Address, Config};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let masters = ["redis://a", "redis://b", "redis://c"];
/// let tunnel = std::net::SocketAddr::from(([192, 0, 2, 1], 4000));
/// # let embedded = quorlock_embedded::Masters::start(3)?;
/// # let masters = embedded.urls();
/// # let relay = std::net::TcpListener::bind("127.0.0.1:0")?;
/// # let tunnel = relay.local_addr()?;
/// # std::thread::spawn(move || {
/// #     for client in relay.incoming() {
/// #         let mut client = client.unwrap();
/// #         std::thread::spawn(move || {
/// #             let (mut line, mut byte) = (Vec::new(), [0]);
/// #             while client.read_exact(&mut byte).is_ok() && byte != *b"\n" {
/// #                 line.push(byte[0]);
/// #             }
/// #             let master = TcpStream::connect(String::from_utf8(line).unwrap()).unwrap();
/// #             client.write_all(b"+").unwrap();
/// #             let there = (client.try_clone().unwrap(), master.try_clone().unwrap());
/// #             std::thread::spawn(move || std::io::copy(&mut &there.0, &mut &there.1));
/// #             let _ = std::io::copy(&mut &master, &mut &client);
/// #         });
/// #     }
/// # });
/// const TIMEOUT: Duration = Duration::from_millis(250);
///
/// // A relay that is told in one line where to connect to, and answers with one byte.
/// let connector = move |address: Address| {
///     let mut stream = TcpStream::connect_timeout(&tunnel, TIMEOUT)?;
///     stream.set_nodelay(true)?;
///     stream.set_read_timeout(Some(TIMEOUT))?;
///     stream.write_all(format!("{address}\n").as_bytes())?;
///     stream.read_exact(&mut [0])?;
///     Ok(stream)
/// };
/// let config = Config::builder(masters).connect_timeout(TIMEOUT).build()?;
/// let locker = quorlock_blocking::through(connector).open(config)?;
/// locker.lock("invoice:42").wait()?.release().wait()?;
/// # Ok(())
/// # }
/// ```
/// # The contract of a connector
/// It is called once for each opening of a connection, on a separate thread for each master, as
/// name resolution is: it may block, and no lock waits for it. A name in the address is not
/// resolved, and a connection is used as it is: the connector decides whether small packets wait
/// for more (`TCP_NODELAY`), and whether the system probes quiet connections. The address has no
/// user and no password. TLS of a `rediss://` URL is spoken over the socket, and `sni=` names a
/// master whose certificate has another name than its URL.
///
/// *Timeout*: connector, TLS and greeting share the one `connect_timeout`
/// ([`ConfigBuilder::connect_timeout`](crate::ConfigBuilder::connect_timeout)): after that the
/// master counts as unreachable, and no request waits for it. Nothing ends a call that takes
/// longer, so it should give up by itself: until it has returned, the connector is not called again
/// for this master.
///
/// *Cancel safety*: an opening is abandoned when the locker ends, or for another opening after four
/// times `connect_timeout`, or after the longest `reconnect_delay` if that is longer. A socket that
/// a call returns later is dropped.
///
/// *Errors* count like errors of a socket. Only their kind and the system's code are kept, because
/// an error's text may contain a secret: in [`Cause::Connect`], in [`Cause::Closed`], or, before
/// the master has answered anything, in [`Cause::HungUp`](quorlock_core::Cause::HungUp). A panic of
/// the connector or of its socket is [`Cause::ConnectorPanicked`]. The next opening follows after
/// the usual pause, and the other masters decide meanwhile.
///
/// *The socket* is made non-blocking. It may have read ahead. The thread that serves the sockets
/// reads it, and callers write to it on their threads; each write is flushed. It is dropped at the
/// end, without being shut down.
pub fn through<C, S>(connector: C) -> Through<C>
where
    C: Fn(Address) -> io::Result<S> + Send + Sync + 'static,
    S: Read + Write + AsFd + Send + 'static,
{
    Through { connector }
}

/// Opens lockers over connections of a connector. [`through`] returns it.
#[derive(Clone)]
#[must_use = "it opens nothing by itself"]
pub struct Through<C> {
    connector: C,
}

impl<C, S> Through<C>
where
    C: Fn(Address) -> io::Result<S> + Send + Sync + 'static,
    S: Read + Write + AsFd + Send + 'static,
{
    /// Opens a locker as [`open`](crate::open) does, over connections of the connector.
    ///
    /// # Errors
    /// [`OpenError::System`] if the system has no poll or no thread left, and [`OpenError::Tls`] if
    /// TLS is requested and cannot be used.
    pub fn open(self, config: Config) -> Result<Locker, OpenError> {
        let connector = self.connector;
        let connector: Connector = Arc::new(move |to| {
            let opened = connector(to).and_then(Own::new).map(Fresh::Own);
            opened.map_err(|error| Cause::from(&error))
        });
        crate::open_by(config, Some(&connector))
    }
}

impl<C> fmt::Debug for Through<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Through").finish_non_exhaustive()
    }
}
