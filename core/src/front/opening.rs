//! Why there is no locker.

use std::error::Error;
use std::fmt;
use std::io;

/// Why a transport could not open a locker.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// There is no async runtime to run the driver on.
    NoRuntime,
    /// The operating system gave no thread, or no way to wait for sockets.
    System(io::Error),
}

impl OpenError {
    /// Returns a word for this kind of error, for the labels of metrics. It is the same in every
    /// version.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::NoRuntime => "no_runtime",
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
            Self::System(error) => {
                write!(f, "the system gave no thread, or no way to wait for sockets: {error}")
            }
        }
    }
}

impl Error for OpenError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::NoRuntime => None,
            Self::System(error) => Some(error),
        }
    }
}

impl From<io::Error> for OpenError {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}
