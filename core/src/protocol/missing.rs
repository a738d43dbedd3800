//! What the lock of an owner lacks for a request.

use std::fmt;

/// What a request of an [`Owner`](crate::front::Owner) asked for and the owner's lock lacks: see
/// [`AcquireError::HeldWithout`](crate::AcquireError::HeldWithout).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Missing {
    /// A fencing token ([`Request::fenced`](crate::front::Request::fenced)).
    FencingToken,
    /// Renewal ([`Request::renew`](crate::front::Request::renew)): the lock was never renewed, or
    /// its renewal was stopped.
    Renewal,
    /// Renewal for as long as the request asked for
    /// ([`Request::renew_for`](crate::front::Request::renew_for)).
    LongerRenewal,
    /// Healing ([`Request::heal`](crate::front::Request::heal)).
    Healing,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::FencingToken => "without a fencing token",
            Self::Renewal => "without renewal",
            Self::LongerRenewal => "with a renewal that ends sooner",
            Self::Healing => "without healing",
        })
    }
}
