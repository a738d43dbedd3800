//! Lockers over connections of the caller's own.

use std::fmt;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::sync::Arc;

use quorlock_core::front::{Locker, OpenError};
use quorlock_core::{Address, Cause, Config};

use crate::caller::Connector;
use crate::own::Own;
use crate::socket::Socket;

/// Returns a way to open lockers over connections of the caller's own: through a tunnel or a proxy,
/// or over vsock.
///
/// `connector` is called with the address in a master's URL, or of the server that was found by
/// asking, and gives a socket: anything that is `Read` and `Write`, with a descriptor (`AsFd`) of
/// which the system tells when there is something to read and room to write. Unix only.
///
/// ```
/// use std::io::{Read, Write};
/// use std::net::TcpStream;
/// use std::time::Duration;
///
/// use quorlock_blocking::{Address, Config};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let masters = quorlock_embedded::Masters::start(3)?;
/// # let urls = masters.urls();
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
/// let config = Config::builder(urls).connect_timeout(TIMEOUT).build()?;
/// let locker = quorlock_blocking::through(connector).open(config)?;
/// locker.lock("invoice:42").wait()?.release().wait()?;
/// # Ok(())
/// # }
/// ```
///
/// # What a connector has to know
/// It is called once for each opening of a connection, on a thread of its own for each master, as
/// name resolution is: it may wait, and no lock waits for it. The name is not resolved, and a
/// connection is used as it is: whether small packets wait for more (`TCP_NODELAY`) and whether the
/// system probes quiet connections is up to the connector. The address has no user and no password.
/// TLS of a `rediss://` URL is spoken over the socket, and `sni=` names a master whose certificate
/// has another name than its URL.
///
/// *Timeout*: connector, TLS and greeting share the one `connect_timeout`
/// ([`ConfigBuilder::connect_timeout`](crate::ConfigBuilder::connect_timeout)): after that the
/// master counts as unreachable, and no request waits for it. Nothing ends a call that takes
/// longer, so it should give up by itself: until it has returned, the connector is not called again
/// for this master.
///
/// *Cancel safety*: an opening is given up for another one after the longer of four such times and
/// the longest `reconnect_delay`, and when the locker ends. What a call gives after that is
/// dropped.
///
/// *Errors* count as those of a socket. Only their [`io::ErrorKind`] is kept, in [`Cause::Connect`]
/// or [`Cause::Closed`], and one before the master has answered anything in
/// [`Cause::HungUp`](quorlock_core::Cause::HungUp): an error's text may hold a secret. A panic of
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

/// A way to open lockers over connections of the caller's own. [`through`] makes one.
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
    /// [`OpenError::System`] where the system gives no poll or no thread, and [`OpenError::Tls`]
    /// where TLS is asked for and cannot be used.
    pub fn open(self, config: Config) -> Result<Locker, OpenError> {
        let connector = self.connector;
        let connector: Connector = Arc::new(move |to| {
            let opened = connector(to).and_then(Own::new).map(Socket::Own);
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
