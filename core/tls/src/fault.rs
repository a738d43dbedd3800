//! What rustls' errors mean for a connection to a Redis server.

use quorlock_core::{Cause, TlsFault};
use rustls::{AlertDescription, CertificateError, Error};

/// How far a handshake had got when it failed.
#[derive(Clone, Copy)]
pub(crate) struct Stage {
    /// Both sides have agreed on a cipher.
    pub(crate) has_cipher: bool,
    /// This client has a certificate to show.
    pub(crate) has_certificate: bool,
    /// Whether the other side has sent a TLS message.
    pub(crate) has_heard_tls: bool,
}

pub(crate) fn cause(error: &Error, stage: Stage) -> Cause {
    Cause::Tls(match error {
        Error::InvalidCertificate(error) => certificate(error),
        Error::AlertReceived(alert) => alerted(*alert, stage),
        Error::PeerIncompatible(_) => TlsFault::NoCommonVersion,
        Error::InvalidMessage(_) if !stage.has_heard_tls => TlsFault::NotTls,
        _ => TlsFault::Other,
    })
}

fn certificate(error: &CertificateError) -> TlsFault {
    match error {
        // The second is the error for an issuer with the same name and another key.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => TlsFault::UnknownIssuer,
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            TlsFault::WrongName
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => TlsFault::Expired,
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => TlsFault::NotYetValid,
        _ => TlsFault::BadCertificate,
    }
}

fn alerted(alert: AlertDescription, stage: Stage) -> TlsFault {
    match alert {
        AlertDescription::CertificateRequired => TlsFault::ClientCertificateRequired,
        // TLS 1.2 reports a missing client certificate in this way, after both sides have agreed on
        // a cipher.
        AlertDescription::HandshakeFailure if stage.has_cipher && !stage.has_certificate => {
            TlsFault::ClientCertificateRequired
        }
        AlertDescription::BadCertificate
        | AlertDescription::UnsupportedCertificate
        | AlertDescription::CertificateRevoked
        | AlertDescription::CertificateExpired
        | AlertDescription::CertificateUnknown
        | AlertDescription::UnknownCA
        | AlertDescription::AccessDenied
        | AlertDescription::DecryptError => TlsFault::ClientCertificateRefused,
        AlertDescription::ProtocolVersion
        | AlertDescription::InsufficientSecurity
        | AlertDescription::HandshakeFailure => TlsFault::NoCommonVersion,
        AlertDescription::UnrecognisedName => TlsFault::WrongName,
        _ => TlsFault::Other,
    }
}
