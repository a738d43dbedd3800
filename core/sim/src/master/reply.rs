//! Replies as bytes, in RESP 2 or RESP 3.

use std::borrow::Cow;

/// An error reply without its leading `-`: the code, a space and the sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure(Cow<'static, [u8]>);

impl Failure {
    /// A constant sentence.
    pub(super) const fn new(text: &'static str) -> Self {
        Self(Cow::Borrowed(text.as_bytes()))
    }

    /// A sentence made of these pieces. Servers print echoed arguments as C strings, so each ends
    /// at its first NUL.
    pub(super) fn of(pieces: &[&[u8]]) -> Self {
        let until_nul = |piece: &&[u8]| piece.split(|byte| *byte == 0).next().unwrap_or_default().to_vec();
        Self(Cow::Owned(pieces.iter().flat_map(until_nul).collect()))
    }

    /// The error of reading a target, with its place in the claim.
    pub(super) fn at_target(&self, place: usize) -> Self {
        Self(Cow::Owned([self.text(), format!(" (target {place})").as_bytes()].concat()))
    }

    /// A sentence of any bytes.
    pub(super) fn raw(text: Vec<u8>) -> Self {
        Self(Cow::Owned(text))
    }

    pub(super) fn text(&self) -> &[u8] {
        &self.0
    }
}

pub(super) const WRONG_TYPE: Failure =
    Failure::new("WRONGTYPE Operation against a key holding the wrong kind of value");
pub(super) const OUT_OF_MEMORY: Failure =
    Failure::new("OOM command not allowed when used memory > 'maxmemory'.");
pub(super) const SYNTAX: Failure = Failure::new("ERR syntax error");
pub(super) const NOT_AN_INTEGER: Failure = Failure::new("ERR value is not an integer or out of range");

/// The reply to one command, while it is being written.
pub(super) struct Reply<'a> {
    out: &'a mut Vec<u8>,
    /// RESP 3 has separate types for null, maps and texts.
    pub(super) resp3: bool,
}

impl<'a> Reply<'a> {
    pub(super) fn new(out: &'a mut Vec<u8>, resp3: bool) -> Self {
        Self { out, resp3 }
    }

    /// The bytes so far, including other replies.
    pub(super) fn length(&self) -> usize {
        self.out.len()
    }

    /// Removes what was written after this length, and returns it.
    pub(super) fn take_behind(&mut self, length: usize) -> Vec<u8> {
        self.out.split_off(length)
    }

    pub(super) fn put_back(&mut self, taken: &[u8]) {
        self.out.extend_from_slice(taken);
    }

    pub(super) fn ok(&mut self) {
        self.simple("OK");
    }

    pub(super) fn simple(&mut self, text: &str) {
        self.line(b'+', text.as_bytes());
    }

    /// An error is one line, so line ends in it become spaces.
    pub(super) fn error(&mut self, failure: &Failure) {
        let flat = failure.text().iter().map(|byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { *byte });
        let flat: Vec<u8> = flat.collect();
        self.line(b'-', &flat);
    }

    pub(super) fn integer(&mut self, value: i64) {
        self.line(b':', value.to_string().as_bytes());
    }

    /// A floating-point number, which is always whole in this model: a text in RESP 2.
    pub(super) fn double(&mut self, value: i64) {
        let text = value.to_string();
        if self.resp3 { self.line(b',', text.as_bytes()) } else { self.bulk(text.as_bytes()) }
    }

    pub(super) fn bulk(&mut self, bytes: &[u8]) {
        self.header(b'$', bytes.len());
        self.payload(bytes);
    }

    /// A text meant for people: a bulk string in RESP 2, a verbatim string in RESP 3.
    pub(super) fn verbatim(&mut self, text: &str) {
        if self.resp3 {
            self.header(b'=', text.len() + 4);
            self.out.extend_from_slice(b"txt:");
            self.payload(text.as_bytes());
        } else {
            self.bulk(text.as_bytes());
        }
    }

    pub(super) fn null(&mut self) {
        self.out.extend_from_slice(if self.resp3 { b"_\r\n" } else { b"$-1\r\n" });
    }

    /// The header of an array; its elements are written next.
    pub(super) fn array(&mut self, elements: usize) {
        self.header(b'*', elements);
    }

    /// The header of a map, in RESP 2 an array of keys and values; they are written next.
    pub(super) fn map(&mut self, entries: usize) {
        if self.resp3 { self.header(b'%', entries) } else { self.header(b'*', 2 * entries) }
    }

    /// The header of a push, which is not a reply; its elements are written next.
    pub(super) fn push(&mut self, elements: usize) {
        self.header(b'>', elements);
    }

    fn header(&mut self, kind: u8, length: usize) {
        self.line(kind, length.to_string().as_bytes());
    }

    fn line(&mut self, kind: u8, text: &[u8]) {
        self.out.push(kind);
        self.payload(text);
    }

    fn payload(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
        self.out.extend_from_slice(b"\r\n");
    }
}
