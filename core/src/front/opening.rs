//! Why a locker could not be opened.

use std::error::Error;
use std::fmt;
use std::io;

use crate::protocol::{Config, TlsFault};

/// Why a transport could not open a locker.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// There is no async runtime to run the driver on.
    NoRuntime,
    /// The async runtime was built without the timers or the IO that a driver needs. It names what
    /// is missing.
    IncompleteRuntime(&'static str),
    /// Something that TLS to the masters needs is missing or unusable.
    Tls(Box<dyn Error + Send + Sync>),
    /// The operating system provided no thread, or no way to wait for sockets.
    System(io::Error),
}

impl OpenError {
    /// Loads what TLS needs, if a master is reached over TLS. A transport calls this when it opens
    /// a locker.
    ///
    /// # Errors
    /// [`OpenError::Tls`], also if this program was built without TLS.
    pub fn prepare_security(config: &Config) -> Result<(), Self> {
        if config.masters().iter().all(|master| master.tls().is_none()) {
            return Ok(());
        }
        match config.security() {
            Some(security) => security.prepare(config.masters()).map_err(Self::Tls),
            None => Err(Self::Tls(format!("a master {}", TlsFault::NotBuiltIn).into())),
        }
    }

    /// Returns a word for this kind of error, for the labels of metrics. It is the same in every
    /// version.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::NoRuntime => "no_runtime",
            Self::IncompleteRuntime(_) => "incomplete_runtime",
            Self::Tls(_) => "tls",
            Self::System(_) => "system",
        }
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRuntime => f.write_str(
                "there is no async runtime here; call `open` inside of one, or use `open_with_driver`",
            ),
            Self::IncompleteRuntime(part) => {
                write!(f, "the async runtime here has no {part}: call `enable_all` on its builder")
            }
            Self::Tls(error) => write!(f, "TLS cannot be used: {error}"),
            Self::System(error) => {
                write!(f, "could not start a thread, or could not wait for sockets: {error}")
            }
        }
    }
}

impl Error for OpenError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::NoRuntime | Self::IncompleteRuntime(_) => None,
            Self::Tls(error) => Some(&**error),
            Self::System(error) => Some(error),
        }
    }
}

impl From<io::Error> for OpenError {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}
