//! One encrypted connection.

use std::io::{Read, Write};
use std::sync::Arc;

use quorlock_core::{Cause, Channel, ChannelFacts, ChannelState, TlsFault};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, ProtocolVersion, SupportedCipherSuite};

use crate::fault::{Stage, cause};

/// The most bytes of one record (RFC 8446, section 5.1).
const RECORD_BYTES: usize = 16 * 1024;

/// Records that are left unused below a cipher's limit: those of the handshake and the last one.
const SPARE_RECORDS: u64 = 4;

pub(crate) struct TlsChannel {
    connection: ClientConnection,
    /// How many records have been encrypted so far.
    records: u64,
    /// How many records may be encrypted with TLS 1.2, which does not renew its keys. At this limit
    /// rustls reports a message as accepted and does not send it.
    most_records: Option<u64>,
    has_certificate: bool,
    has_outdated_files: bool,
    has_heard_tls: bool,
    /// Detects forks: a forked child would use the same record numbers a second time.
    forks: forkguard::Guard,
}

impl TlsChannel {
    pub(crate) fn new(
        config: Arc<ClientConfig>,
        name: ServerName<'static>,
        has_outdated_files: bool,
    ) -> Result<Self, Cause> {
        let has_certificate = config.client_auth_cert_resolver.has_certs();
        let mut connection = ClientConnection::new(config, name).map_err(|_| Cause::Tls(TlsFault::Other))?;
        // The front limits the bytes in flight. A limit here could refuse a part of a message.
        connection.set_buffer_limit(None);
        Ok(Self {
            connection,
            records: 0,
            most_records: None,
            has_certificate,
            has_outdated_files,
            has_heard_tls: false,
            forks: forkguard::new(),
        })
    }

    /// The bytes that rustls has to send.
    fn take_output(&mut self, wire: &mut Vec<u8>) {
        while self.connection.wants_write() {
            // Writing to memory does not fail.
            if self.connection.write_tls(wire).is_err() {
                return;
            }
        }
    }

    fn failed(&self, error: &rustls::Error) -> Cause {
        cause(
            error,
            Stage {
                has_cipher: self.connection.negotiated_cipher_suite().is_some(),
                has_certificate: self.has_certificate,
                has_heard_tls: self.has_heard_tls,
            },
        )
    }
}

impl Channel for TlsChannel {
    fn open(
        &mut self,
        mut wire: &[u8],
        plain: &mut Vec<u8>,
        reply: &mut Vec<u8>,
    ) -> Result<ChannelState, Cause> {
        let mut has_ended = false;
        while !wire.is_empty() {
            // rustls takes one chunk at a time, and no more until its decrypted bytes have been
            // read.
            if self.connection.read_tls(&mut wire).is_err() {
                return Err(Cause::Tls(TlsFault::Other));
            }
            let state = self.connection.process_new_packets();
            self.take_output(reply);
            let state = state.map_err(|error| self.failed(&error))?;
            self.has_heard_tls |= state.tls_bytes_to_write() > 0 || !self.connection.is_handshaking();
            let start = plain.len();
            plain.resize(start + state.plaintext_bytes_to_read(), 0);
            let room = plain.get_mut(start..).unwrap_or_default();
            if self.connection.reader().read_exact(room).is_err() {
                return Err(Cause::Tls(TlsFault::Other));
            }
            has_ended = state.peer_has_closed();
        }
        self.take_output(reply);
        if has_ended {
            return Ok(ChannelState::Ended);
        }
        if self.connection.is_handshaking() {
            return Ok(ChannelState::Opening);
        }
        if let Some(SupportedCipherSuite::Tls12(suite)) = self.connection.negotiated_cipher_suite() {
            self.most_records = Some(suite.common.confidentiality_limit.saturating_sub(SPARE_RECORDS));
        }
        Ok(ChannelState::Established)
    }

    fn seal(&mut self, plain: &[u8], wire: &mut Vec<u8>) -> Result<(), Cause> {
        if self.forks.detected_fork() {
            return Err(Cause::Closed);
        }
        let records = u64::try_from(plain.len().div_ceil(RECORD_BYTES)).unwrap_or(u64::MAX);
        self.records = self.records.saturating_add(records);
        if self.most_records.is_some_and(|most| self.records > most) {
            return Err(Cause::Closed);
        }
        if self.connection.writer().write_all(plain).is_err() {
            return Err(Cause::Tls(TlsFault::Other));
        }
        self.take_output(wire);
        Ok(())
    }

    fn close(&mut self, wire: &mut Vec<u8>) {
        self.connection.send_close_notify();
        self.take_output(wire);
    }

    fn is_worn(&self) -> bool {
        self.most_records.is_some_and(|most| self.records > most / 2)
    }

    fn has_outdated_files(&self) -> bool {
        self.has_outdated_files
    }

    fn facts(&self) -> Option<ChannelFacts> {
        let version = match self.connection.protocol_version()? {
            ProtocolVersion::TLSv1_2 => "TLS 1.2",
            ProtocolVersion::TLSv1_3 => "TLS 1.3",
            _ => return None,
        };
        let certificate = self.connection.peer_certificates()?.first()?;
        Some(ChannelFacts::new(version, certificate.to_vec()))
    }
}
