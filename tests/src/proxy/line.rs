//! One direction of one connection: the bytes read, when they are due, and how they are written.
//! This module handles order, delay and the shape of writes. It does not handle sockets or broken
//! connections.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use super::unconfirmed::Unconfirmed;

const READ_BYTES: usize = 64 << 10;
/// The limit of bytes under way; above it the source is not read, as with a full window.
const MAX_UNDER_WAY_BYTES: usize = 4 << 20;

/// The faults of a direction, for all connections.
#[derive(Clone, Debug, Default)]
pub(super) struct Faults {
    pub(super) delay: Duration,
    pub(super) split: bool,
    pub(super) coalesce: Option<Duration>,
    pub(super) stall: bool,
    pub(super) late_ends: bool,
    pub(super) black_hole: bool,
}

#[derive(Debug)]
enum Parcel {
    Bytes(Vec<u8>),
    /// The source has closed in order.
    End,
    /// The source has reset the connection.
    Reset,
}

#[derive(Debug, Default)]
pub(super) struct Line {
    /// Bytes under way, in order; due instants need not increase, because later bytes wait for
    /// earlier ones.
    queue: VecDeque<(Instant, Parcel)>,
    under_way_bytes: usize,
    /// Bytes that are due, of which `sent` are written.
    out: Vec<u8>,
    sent: usize,
    /// When `out` is written, while coalescing.
    gate: Option<Instant>,
    /// The destination accepts no more bytes.
    blocked: bool,
    ended: bool,
    lost: bool,
    delivered_end: bool,
    unconfirmed: Option<Unconfirmed>,
}

impl Line {
    /// A line for requests, on which no `WAIT` arrives.
    pub(super) fn unconfirmed() -> Self {
        Self { unconfirmed: Some(Unconfirmed::default()), ..Self::default() }
    }

    /// Whether the source should be read.
    pub(super) fn is_open(&self) -> bool {
        !self.ended && self.under_way_bytes < MAX_UNDER_WAY_BYTES
    }

    /// Whether the source has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Whether the end of the source has been lost on the way.
    pub(super) fn lost_its_end(&self) -> bool {
        self.ended && self.lost
    }

    /// Whether the end of the source has arrived.
    pub(super) fn is_over(&self) -> bool {
        self.delivered_end
    }

    /// Whether bytes wait for the destination.
    pub(super) fn is_blocked(&self) -> bool {
        self.blocked
    }

    /// From here on everything is lost.
    pub(super) fn lose(&mut self) {
        self.lost = true;
        self.queue.clear();
        self.out.clear();
        (self.sent, self.under_way_bytes, self.gate, self.blocked) = (0, 0, None, false);
    }

    /// Makes everything under way due.
    pub(super) fn hurry(&mut self, now: Instant) {
        self.gate = None;
        for (due, _) in &mut self.queue {
            *due = now;
        }
    }

    /// Reads everything from the source, as far as there is room.
    pub(super) fn read_from(&mut self, source: &mut TcpStream, now: Instant, faults: &Faults) {
        let mut buffer = vec![0; READ_BYTES];
        while self.is_open() {
            match source.read(&mut buffer) {
                Ok(0) => self.take(Parcel::End, now, faults),
                Ok(length) => {
                    let bytes = buffer.get(..length).unwrap_or_default();
                    let bytes = match &mut self.unconfirmed {
                        Some(unconfirmed) => unconfirmed.pass(bytes),
                        None => bytes.to_vec(),
                    };
                    self.take(Parcel::Bytes(bytes), now, faults);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => self.take(Parcel::Reset, now, faults),
            }
        }
    }

    /// Sends bytes that no source sent.
    pub(super) fn inject(&mut self, bytes: &[u8], now: Instant, faults: &Faults) {
        self.take(Parcel::Bytes(bytes.to_vec()), now, faults);
    }

    fn take(&mut self, parcel: Parcel, now: Instant, faults: &Faults) {
        self.ended |= !matches!(parcel, Parcel::Bytes(_));
        self.lost |= faults.black_hole;
        if self.lost {
            return;
        }
        if let Parcel::Bytes(bytes) = &parcel {
            self.under_way_bytes += bytes.len();
        }
        self.queue.push_back((now + faults.delay, parcel));
    }

    /// Writes the due bytes. An error means that the connection must be reset.
    pub(super) fn write_to(
        &mut self,
        destination: &mut TcpStream,
        now: Instant,
        faults: &Faults,
    ) -> io::Result<()> {
        self.blocked = false;
        loop {
            let end_is_due = self.collect(now, faults);
            if self.gate.is_some_and(|gate| gate > now) {
                return Ok(());
            }
            let rest = self.out.get(self.sent..).unwrap_or_default();
            if rest.is_empty() {
                self.out.clear();
                (self.sent, self.gate) = (0, None);
                match end_is_due {
                    None if self.next_is_due(now, faults) => continue,
                    None => return Ok(()),
                    Some(Parcel::Reset) => return Err(ErrorKind::ConnectionReset.into()),
                    Some(_) => {
                        self.delivered_end = true;
                        return destination.shutdown(Shutdown::Write);
                    }
                }
            }
            let rest = if faults.split { rest.get(..1).unwrap_or(rest) } else { rest };
            match destination.write(rest) {
                Ok(written) => {
                    self.sent += written;
                    self.under_way_bytes = self.under_way_bytes.saturating_sub(written);
                    if faults.split {
                        // Gives the reader a chance to see the byte alone.
                        thread::yield_now();
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.blocked = true;
                    return Ok(());
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Moves due bytes to `out`. Returns the end of the source once all bytes before it are
    /// written.
    fn collect(&mut self, now: Instant, faults: &Faults) -> Option<Parcel> {
        while self.next_is_due(now, faults) {
            match self.queue.pop_front() {
                Some((_, Parcel::Bytes(bytes))) => {
                    if self.out.is_empty() {
                        self.gate = faults.coalesce.map(|collect| now + collect);
                    }
                    self.out.extend_from_slice(&bytes);
                }
                Some((due, end)) if !self.out.is_empty() => {
                    self.queue.push_front((due, end));
                    return None;
                }
                end => return end.map(|(_, end)| end),
            }
        }
        None
    }

    fn next_is_due(&self, now: Instant, faults: &Faults) -> bool {
        self.next(faults).is_some_and(|due| due <= now)
    }

    /// When the next parcel is due, unless it is held back.
    fn next(&self, faults: &Faults) -> Option<Instant> {
        let (due, parcel) = self.queue.front()?;
        let is_held = faults.stall || faults.late_ends && !matches!(parcel, Parcel::Bytes(_));
        (!is_held).then_some(*due)
    }

    /// When there is something to write, unless the destination must accept bytes first.
    pub(super) fn next_due(&self, faults: &Faults) -> Option<Instant> {
        if self.blocked {
            None
        } else if self.gate.is_some() {
            self.gate
        } else {
            self.next(faults)
        }
    }
}
