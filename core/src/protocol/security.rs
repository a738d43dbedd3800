//! Encryption as the front uses it, and its errors.

use std::error::Error;
use std::fmt;

use super::Cause;
use crate::endpoint::{Address, Endpoint};

/// Creates the encrypted channels to masters whose URLs ask for them (`rediss://`).
///
/// The implementation over rustls is in `quorlock-tls`; the transports have it with their feature
/// `tls`.
pub trait Security: fmt::Debug + Send + Sync + 'static {
    /// Reads what the channels to these masters will need, on the calling thread, which may block.
    /// A transport calls it when a locker is opened.
    ///
    /// # Errors
    /// What is missing or unusable, in words for the user.
    fn prepare(&self, masters: &[Endpoint]) -> Result<(), Box<dyn Error + Send + Sync>>;

    /// Returns a channel for one connection to this address. The address is the master's, or that
    /// of a sentinel or cluster node that is asked for the master's address. This is called when
    /// the connection is open, on the thread that drives the sockets.
    ///
    /// # Errors
    /// Why there is none, usually a [`Cause::Tls`].
    fn channel(&self, master: &Endpoint, address: &Address) -> Result<Box<dyn Channel>, Cause>;
}

/// One encrypted connection, without its socket: bytes in, bytes out.
///
/// The first call is [`open`](Self::open) without bytes. What it puts into `reply` opens the
/// handshake.
pub trait Channel: Send {
    /// Takes bytes from the socket. Appends the decrypted bytes to `plain`, and to `reply` the
    /// bytes to send in answer.
    ///
    /// # Errors
    /// The connection is no longer usable. `reply` may contain an alert to send.
    fn open(&mut self, wire: &[u8], plain: &mut Vec<u8>, reply: &mut Vec<u8>) -> Result<ChannelState, Cause>;

    /// Encrypts `plain`, and appends the bytes to send to `wire`. It is called only once the
    /// channel is established.
    ///
    /// # Errors
    /// The connection is no longer usable, and nothing of `plain` was encrypted.
    fn seal(&mut self, plain: &[u8], wire: &mut Vec<u8>) -> Result<(), Cause>;

    /// Ends the channel: appends its last message to `wire`.
    fn close(&mut self, wire: &mut Vec<u8>);

    /// Returns whether a fresh connection should soon replace this one, because the channel's keys
    /// have encrypted much data.
    fn is_worn(&self) -> bool {
        false
    }

    /// Returns whether it uses earlier contents of files, because they have changed and what they
    /// contain now cannot be used. Then its master has
    /// [`Warning::OutdatedFiles`](crate::Warning::OutdatedFiles).
    fn has_outdated_files(&self) -> bool {
        false
    }

    /// Returns what the handshake agreed on, once the channel is established.
    fn facts(&self) -> Option<ChannelFacts> {
        None
    }
}

/// What the handshake of a [`Channel`] agreed on, for reports.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ChannelFacts {
    /// The protocol's version as text, such as `TLS 1.3`.
    pub version: &'static str,
    /// The master's own certificate in DER, without those of its issuers.
    pub certificate: Vec<u8>,
}

impl ChannelFacts {
    /// Creates the facts, for an implementation of [`Channel`].
    pub fn new(version: &'static str, certificate: Vec<u8>) -> Self {
        Self { version, certificate }
    }
}

/// The state of a [`Channel`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChannelState {
    /// The handshake is under way.
    Opening,
    /// The handshake is done: the channel carries bytes.
    Established,
    /// The master has closed its side: it sends no more.
    Ended,
}

/// What is wrong with an encrypted connection.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum TlsFault {
    /// The URL asks for TLS, and this program was built without it.
    NotBuiltIn,
    /// No trusted issuer issued the master's certificate.
    UnknownIssuer,
    /// The master's certificate is for other names.
    WrongName,
    /// The master's certificate has expired.
    Expired,
    /// The master's certificate is not valid yet.
    NotYetValid,
    /// The master's certificate is unusable for another reason.
    BadCertificate,
    /// The system has no trusted root certificates.
    NoRoots,
    /// The file that `cacert=` names cannot be read, or has no certificates.
    RootFile,
    /// One of the files that `cert=` and `key=` name cannot be read or has no certificate or key,
    /// or the two do not belong together.
    ClientFiles,
    /// The master requires a client certificate, but none is configured.
    ClientCertificateRequired,
    /// The master does not accept the client certificate.
    ClientCertificateRefused,
    /// The two sides have no TLS version or no cipher in common.
    NoCommonVersion,
    /// The other side does not speak TLS.
    NotTls,
    /// A certificate cannot contain the host's name.
    UnusableName,
    /// Anything else.
    Other,
}

impl TlsFault {
    /// Whether only a change of configuration can solve it, here or on the server.
    pub(super) fn is_configuration(self) -> bool {
        self != Self::Other
    }
}

/// Displays what is wrong, and what to do about it.
impl fmt::Display for TlsFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotBuiltIn => {
                "needs TLS, which is not built in: enable the feature `tls-ring` of quorlock-tokio, quorlock-smol or quorlock-blocking"
            }
            Self::UnknownIssuer => {
                "its certificate is from an issuer that is not trusted here: name that issuer's certificate with cacert="
            }
            Self::WrongName => {
                "its certificate is for another name: use that name in the URL, or give it with sni="
            }
            Self::Expired => "its certificate has expired: renew it on the server, and compare the clocks",
            Self::NotYetValid => "its certificate is not valid yet: compare the clocks",
            Self::BadCertificate => {
                "its certificate cannot be used: it must be a server's certificate, signed by the issuer that cacert= names"
            }
            Self::NoRoots => {
                "this system has no trusted root certificates: install them (ca-certificates), or name one with cacert="
            }
            Self::RootFile => "the file of cacert= cannot be read, or has no PEM certificate in it",
            Self::ClientFiles => {
                "the files of cert= and key= cannot be read, are not PEM, or do not belong together: give both, of one pair"
            }
            Self::ClientCertificateRequired => {
                "wants a certificate of its clients: give one with cert= and key=, or set tls-auth-clients no on the server"
            }
            Self::ClientCertificateRefused => {
                "does not accept this client's certificate: it must be valid, and from an issuer that the server trusts"
            }
            Self::NoCommonVersion => "shares no TLS version or cipher with this client: allow TLS 1.2 or 1.3 on the server",
            Self::NotTls => "does not speak TLS: is this a plain port? Then use redis://",
            Self::UnusableName => "its host name cannot be in a certificate: give the certificate's name with sni=",
            Self::Other => "the TLS connection failed",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A channel that implements only what it must.
    struct Least;

    impl Channel for Least {
        fn open(&mut self, _: &[u8], _: &mut Vec<u8>, _: &mut Vec<u8>) -> Result<ChannelState, Cause> {
            Ok(ChannelState::Established)
        }

        fn seal(&mut self, _: &[u8], _: &mut Vec<u8>) -> Result<(), Cause> {
            Ok(())
        }

        fn close(&mut self, _: &mut Vec<u8>) {}
    }

    #[test]
    fn a_channel_that_does_not_say_otherwise_is_neither_worn_nor_outdated() {
        assert!(!Least.is_worn() && !Least.has_outdated_files());
        assert_eq!(Least.facts(), None);
    }
}
