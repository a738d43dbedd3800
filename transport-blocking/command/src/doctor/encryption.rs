//! The TLS version of a connection, and the expiry of the server's certificate.

use std::time::{Duration, SystemTime};

use der::asn1::{AnyRef, GeneralizedTime, UtcTime};
use der::{Decode, SliceReader, Tag, Tagged};
use quorlock_core::ChannelFacts;

/// A certificate that ends sooner causes a warning. Certificates that programs renew usually have a
/// month left when they are renewed.
const ENDS_SOON: u64 = 14;

/// How a connection is encrypted.
#[derive(Debug)]
pub(super) struct Encryption {
    /// The version of the protocol, such as `TLS 1.3`.
    pub(super) version: &'static str,
    /// The end of the server's certificate; `None` if it cannot be read.
    pub(super) end: Option<End>,
}

/// When a certificate ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct End {
    /// As seconds since 1970.
    at: Duration,
    /// Whole days until then, by this machine's clock.
    pub(super) days: u64,
    is_over: bool,
}

impl Encryption {
    pub(super) fn of(facts: &ChannelFacts) -> Self {
        // A clock before 1970 was never set: every certificate ends later.
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let end = not_after(&facts.certificate).ok();
        Self { version: facts.version, end: end.map(|at| End::new(at, now)) }
    }
}

impl End {
    fn new(at: Duration, now: Duration) -> Self {
        Self { at, days: at.saturating_sub(now).as_secs() / (24 * 60 * 60), is_over: at <= now }
    }

    /// Whether the certificate has ended. A handshake that verifies it then fails.
    pub(super) fn is_over(self) -> bool {
        self.is_over
    }

    pub(super) fn is_soon(self) -> bool {
        self.days < ENDS_SOON
    }

    /// The date and time in UTC, in the format of RFC 3339.
    pub(super) fn date(self) -> String {
        humantime::format_rfc3339_seconds(SystemTime::UNIX_EPOCH + self.at).to_string()
    }
}

/// The end of a certificate's validity, since 1970 (RFC 5280, section 4.1).
fn not_after(certificate: &[u8]) -> der::Result<Duration> {
    let certificate = AnyRef::from_der(certificate)?;
    let signed = AnyRef::decode(&mut SliceReader::new(certificate.value())?)?;
    let mut fields = SliceReader::new(signed.value())?;
    // The version may be missing; then the certificate begins with the serial number.
    if AnyRef::decode(&mut fields)?.tag() != Tag::Integer {
        AnyRef::decode(&mut fields)?;
    }
    let _algorithm = AnyRef::decode(&mut fields)?;
    let _issuer = AnyRef::decode(&mut fields)?;
    let validity = AnyRef::decode(&mut fields)?;
    let mut validity = SliceReader::new(validity.value())?;
    let _not_before = AnyRef::decode(&mut validity)?;
    // Dates from 2050 on are written as GeneralizedTime.
    match Tag::peek(&validity)? {
        Tag::UtcTime => Ok(UtcTime::decode(&mut validity)?.to_unix_duration()),
        _ => Ok(GeneralizedTime::decode(&mut validity)?.to_unix_duration()),
    }
}
