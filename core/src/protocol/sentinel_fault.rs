//! Why a sentinel has not named the server of a master.

use std::fmt;

use crate::wire::ServerError;

/// What is wrong with a master's sentinels, or with its URL's description of them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum SentinelFault {
    /// None of the sentinels watches a group of this name.
    UnknownGroup,
    /// The server that answers is not a sentinel.
    NotASentinel,
    /// The URL is for a server, but a sentinel answers.
    IsSentinel,
    /// The sentinel answers with an error, usually because it requires a login.
    Refused(ServerError),
}

impl SentinelFault {
    /// Returns whether only a configuration change can solve it, here or on the sentinels.
    pub fn is_configuration(self) -> bool {
        match self {
            Self::UnknownGroup | Self::NotASentinel | Self::IsSentinel => true,
            Self::Refused(error) => error.is_configuration(),
        }
    }
}

impl fmt::Display for SentinelFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownGroup => f.write_str("its sentinels know no group of this name"),
            Self::NotASentinel => {
                f.write_str("is not a sentinel: give the hosts and ports of sentinels, usually port 26379")
            }
            Self::IsSentinel => f.write_str(
                "is a sentinel, not a master: write redis+sentinel://host:port/GROUP, with the name in its \
                 `sentinel monitor`",
            ),
            Self::Refused(error) => {
                write!(f, "a sentinel refused: {error}; check sentinel-user= and sentinel-pass=")
            }
        }
    }
}
