use std::sync::{Arc, Mutex, MutexGuard};

use super::*;

/// A socket whose other end is the test.
#[derive(Clone, Default)]
struct Toy(Arc<Mutex<Ends>>);

#[derive(Default)]
struct Ends {
    taken: Vec<u8>,
    room: usize,
    /// How often it was written to.
    calls: usize,
}

impl Toy {
    fn with_room(room: usize) -> Self {
        let toy = Self::default();
        toy.ends().room = room;
        toy
    }

    fn ends(&self) -> MutexGuard<'_, Ends> {
        self.0.lock().unwrap()
    }

    fn taken(&self) -> String {
        String::from_utf8(self.ends().taken.clone()).unwrap()
    }

    fn is_closed(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }
}

impl Write for Toy {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut ends = self.ends();
        ends.calls += 1;
        let length = bytes.len().min(ends.room);
        if length == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        ends.room -= length;
        ends.taken.extend_from_slice(&bytes[..length]);
        Ok(length)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A channel that puts each record into brackets, and answers a question. It asks for a fresh
/// connection from its third record on.
#[derive(Default)]
struct Brackets {
    records: usize,
}

impl Channel for Brackets {
    fn open(&mut self, wire: &[u8], plain: &mut Vec<u8>, reply: &mut Vec<u8>) -> Result<ChannelState, Cause> {
        plain.extend_from_slice(wire);
        if wire == b"?" {
            reply.extend_from_slice(b"!");
        }
        Ok(ChannelState::Established)
    }

    fn seal(&mut self, plain: &[u8], wire: &mut Vec<u8>) -> Result<(), Cause> {
        self.records += 1;
        wire.extend([b"<", plain, b">"].concat());
        Ok(())
    }

    fn close(&mut self, wire: &mut Vec<u8>) {
        wire.extend_from_slice(b".");
    }

    fn is_worn(&self) -> bool {
        self.records >= 3
    }
}

fn master() -> MasterId {
    MasterId::all(1).next().unwrap()
}

fn append(queue: &mut Queue, generation: u32, bytes: &[u8]) {
    queue.append(master(), generation, &mut bytes.to_vec());
}

/// A queue with an encrypted connection of this generation.
fn secured(generation: u32, toy: &Toy) -> Queue {
    let (channel, sink) = (Box::new(Brackets::default()), Box::new(toy.clone()));
    let mut queue = Queue::new(1);
    queue.open_secured(master(), generation, Secured { channel, sink, backlog: Vec::new() });
    assert!(!queue.write());
    queue
}

fn read(queue: &mut Queue, wire: &[u8]) {
    let state = queue.decrypt(master(), 2, wire, &mut Vec::new());
    assert_eq!(state, Some(Ok(ChannelState::Established)));
}

#[test]
fn only_the_present_connection_gets_bytes_and_ends() {
    let toy = Toy::with_room(99);
    let mut queue = Queue::new(1);
    queue.open(master(), 2, Box::new(toy.clone()));
    for other in [0, 1, 3] {
        append(&mut queue, other, b"other");
        queue.close(master(), other);
    }
    append(&mut queue, 2, b"own");
    assert!(!queue.write());
    assert_eq!((toy.taken().as_str(), toy.is_closed()), ("own", false));

    append(&mut queue, 2, b", last");
    queue.close(master(), 2);
    assert!(!queue.write());
    assert_eq!((toy.taken().as_str(), toy.is_closed()), ("own, last", true));
    for generation in 0..4 {
        append(&mut queue, generation, b"late");
        queue.close(master(), generation);
    }
    assert!(queue.pending.is_empty() && queue.outlets[0].backlog.is_empty(), "nothing is kept for nobody");
}

#[test]
fn an_encrypted_connection_ends_behind_its_bytes() {
    let toy = Toy::with_room(99);
    let mut queue = secured(2, &toy);
    append(&mut queue, 2, b"last");
    queue.close(master(), 2);
    assert!(!queue.write());
    assert_eq!((toy.taken().as_str(), toy.is_closed()), ("<last>.", true));
    assert!(queue.decrypt(master(), 2, b"?", &mut Vec::new()).is_none(), "its channel is gone");
}

/// Many requests go out in one record and one write, although the driver reads meanwhile.
#[test]
fn a_read_writes_the_answer_of_a_channel_at_once_and_nothing_without_one() {
    let toy = Toy::with_room(99);
    let mut queue = secured(2, &toy);
    append(&mut queue, 2, b"a");
    read(&mut queue, b"data");
    append(&mut queue, 2, b"b");
    assert_eq!(toy.ends().calls, 0);
    assert!(!queue.write());
    assert_eq!(toy.taken(), "<ab>");
    read(&mut queue, b"?");
    assert_eq!(toy.taken(), "<ab>!");
    let generation = queue.decrypt(master(), 1, b"?", &mut Vec::new());
    assert!(generation.is_none() && toy.taken() == "<ab>!", "that was an earlier connection");
}

#[test]
fn a_full_socket_gets_the_answer_of_a_channel_when_it_has_room() {
    let toy = Toy::with_room(1);
    let mut queue = secured(2, &toy);
    append(&mut queue, 2, b"a");
    assert!(queue.write());
    let calls = toy.ends().calls;
    read(&mut queue, b"?");
    append(&mut queue, 2, b"b");
    assert!(!queue.write());
    assert_eq!(toy.ends().calls, calls, "it is not tried before the driver knows of room");
    toy.ends().room = 99;
    assert!(queue.retry(master()));
    assert_eq!(toy.taken(), "<a>!<b>");
}

#[test]
fn a_channel_that_asks_for_a_fresh_connection_is_reported_once() {
    let mut queue = secured(2, &Toy::with_room(99));
    let reported = (0..6).map(|_| {
        append(&mut queue, 2, b"a");
        assert!(!queue.write());
        let troubles = queue.take_troubles();
        assert!(troubles.iter().all(|trouble| trouble.generation == 2 && trouble.cause.is_none()));
        troubles.len()
    });
    assert_eq!(reported.collect::<Vec<_>>(), [0, 0, 1, 0, 0, 0]);
}
