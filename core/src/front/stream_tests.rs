#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::sync::atomic::AtomicUsize;

use super::*;

/// A stream whose other end is the test.
#[derive(Clone, Default)]
struct Toy(Arc<Mutex<Ends>>);

#[derive(Default)]
struct Ends {
    to_read: Vec<u8>,
    written: Vec<u8>,
    flushed: usize,
    room: usize,
    /// Whether written bytes are kept back until the test releases them.
    keeps_back: bool,
    fails: Option<io::ErrorKind>,
    panics: bool,
    /// Bytes that come as soon as a read has found nothing.
    comes_behind: Vec<u8>,
    waker: Option<Waker>,
}

impl Toy {
    fn ends(&self) -> MutexGuard<'_, Ends> {
        lock(&self.0)
    }

    fn change(&self, change: impl FnOnce(&mut Ends)) {
        change(&mut self.ends());
        let waker = self.ends().waker.take();
        waker.unwrap().wake();
    }

    fn flushed(&self) -> Vec<u8> {
        let ends = self.ends();
        ends.written[..ends.flushed].to_vec()
    }

    fn opened(&self, driver: &Waker) -> (Streamed<Self>, Sink<Self>) {
        let streamed = Streamed::new(self.clone(), driver);
        let sink = streamed.writer();
        (streamed, sink)
    }
}

impl Stream for Toy {
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut ends = self.ends();
        let length = ends.to_read.len().min(buffer.len());
        if length == 0 {
            ends.waker = Some(cx.waker().clone());
            let behind = mem::take(&mut ends.comes_behind);
            if !behind.is_empty() {
                ends.to_read = behind;
                ends.waker.take().unwrap().wake();
            }
            return Poll::Pending;
        }
        buffer[..length].copy_from_slice(&ends.to_read[..length]);
        ends.to_read.drain(..length);
        Poll::Ready(Ok(length))
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut ends = self.ends();
        if ends.panics {
            drop(ends);
            panic!("this is expected");
        }
        if let Some(kind) = ends.fails {
            return Poll::Ready(Err(kind.into()));
        }
        if ends.room == 0 {
            ends.waker = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let length = bytes.len().min(ends.room);
        ends.room -= length;
        ends.written.extend_from_slice(&bytes[..length]);
        Poll::Ready(Ok(length))
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut ends = self.ends();
        if ends.keeps_back {
            ends.waker = Some(cx.waker().clone());
            return Poll::Pending;
        }
        ends.flushed = ends.written.len();
        Poll::Ready(Ok(()))
    }
}

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// A driver that counts how often it was woken.
fn driver() -> (Arc<Count>, Waker) {
    let count = Arc::new(Count::default());
    (Arc::clone(&count), Waker::from(count))
}

fn is_full(written: io::Result<usize>) -> bool {
    written.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
}

#[test]
fn the_driver_is_woken_for_incoming_bytes_and_reads_until_none_are_left() {
    let ((count, waker), toy) = (driver(), Toy::default());
    let (mut streamed, _sink) = toy.opened(&waker);
    let cx = &mut Context::from_waker(&waker);
    let mut buffer = [0; 2];
    // The stream has not been polled yet.
    assert!(streamed.poll_readable(cx).is_ready());
    assert!(streamed.poll_read(cx, &mut buffer, false).is_pending());
    assert!(streamed.poll_readable(cx).is_pending());

    toy.change(|ends| ends.to_read.extend(b"abc"));
    assert_eq!(count.0.load(Ordering::SeqCst), 1);
    for length in [2, 1] {
        assert!(streamed.poll_readable(cx).is_ready());
        assert!(
            matches!(streamed.poll_read(cx, &mut buffer, false), Poll::Ready(Ok(read)) if read == length)
        );
    }
    assert!(streamed.poll_readable(cx).is_ready(), "no waker is registered");
    assert!(streamed.poll_read(cx, &mut buffer, false).is_pending());
    assert!(streamed.poll_readable(cx).is_pending());
}

#[test]
fn a_stream_that_has_woken_nobody_is_read_only_when_the_driver_looks() {
    let toy = Toy::default();
    let (mut streamed, _sink) = toy.opened(Waker::noop());
    let (mut cx, mut buffer) = (Context::from_waker(Waker::noop()), [0; 8]);
    assert!(streamed.poll_read(&mut cx, &mut buffer, false).is_pending());
    toy.ends().to_read.extend(b"+OK");
    assert!(streamed.poll_read(&mut cx, &mut buffer, false).is_pending());
    assert!(matches!(streamed.poll_read(&mut cx, &mut buffer, true), Poll::Ready(Ok(3))));
}

#[test]
fn a_full_stream_wakes_the_driver_and_not_the_caller_who_found_it_full() {
    let ((count, waker), toy) = (driver(), Toy::default());
    let (mut streamed, mut sink) = toy.opened(&waker);
    let cx = &mut Context::from_waker(&waker);
    toy.ends().room = 1;
    assert_eq!(sink.write(b"abc").unwrap(), 1);
    assert!(is_full(sink.write(b"bc")));
    toy.change(|ends| ends.room = 2);
    assert_eq!(count.0.load(Ordering::SeqCst), 1);
    let polled = streamed.poll_write(cx, &mut || matches!(sink.write(b"bc"), Ok(2)));
    assert!(polled.is_ready());
    assert_eq!(toy.flushed(), b"abc");
}

#[test]
fn bytes_that_a_stream_buffers_are_flushed_later_and_written_once() {
    let ((count, waker), toy) = (driver(), Toy::default());
    let (mut streamed, mut sink) = toy.opened(&waker);
    let cx = &mut Context::from_waker(&waker);
    toy.ends().room = 9;
    toy.ends().keeps_back = true;
    assert!(is_full(sink.write(b"abc")), "it is not sent yet");
    // Another caller has added to it.
    assert!(streamed.poll_write(cx, &mut || sink.write(b"abcde").is_ok()).is_pending());
    toy.change(|ends| ends.keeps_back = false);
    assert_eq!(count.0.load(Ordering::SeqCst), 1);
    assert_eq!(sink.write(b"abcde").unwrap(), 3);
    assert_eq!(sink.write(b"de").unwrap(), 2);
    assert_eq!(toy.flushed(), b"abcde");
}

#[test]
fn a_write_error_is_returned_by_a_read_after_the_received_bytes() {
    let ((count, waker), toy) = (driver(), Toy::default());
    let (mut streamed, mut sink) = toy.opened(&waker);
    let cx = &mut Context::from_waker(&waker);
    let mut buffer = [0; 8];
    assert!(streamed.poll_read(cx, &mut buffer, false).is_pending());
    toy.ends().to_read.extend(b"-ERR");
    toy.ends().fails = Some(io::ErrorKind::BrokenPipe);
    // The front treats the sink as full, and wakes the driver.
    assert!(is_full(sink.write(b"abc")));
    assert_eq!(count.0.load(Ordering::SeqCst), 0, "its caller holds mutexes");
    assert!(streamed.poll_readable(cx).is_ready());
    assert!(matches!(streamed.poll_read(cx, &mut buffer, false), Poll::Ready(Ok(4))));
    assert!(streamed.poll_write(cx, &mut || sink.write(b"abc").is_ok()).is_pending());
    assert_eq!(count.0.load(Ordering::SeqCst), 1, "there is another turn");
    let Poll::Ready(Err(error)) = streamed.poll_read(cx, &mut buffer, false) else { panic!("no error") };
    assert_eq!(Cause::from(&error), Cause::Closed);
}

#[test]
fn a_stream_that_panics_or_accepts_no_bytes_is_an_error() {
    for (panics, says) in [(true, Cause::ConnectorPanicked), (false, Cause::Closed)] {
        let ((_, waker), toy) = (driver(), Toy::default());
        let (mut streamed, mut sink) = toy.opened(&waker);
        toy.ends().panics = panics;
        toy.ends().room = 9;
        // Taking zero of some bytes is an error; here even an empty write counts as one.
        assert!(is_full(sink.write(if panics { b"abc" } else { b"" })));
        let read = streamed.poll_read(&mut Context::from_waker(&waker), &mut [0; 8], false);
        let Poll::Ready(Err(error)) = read else { panic!("no error") };
        assert_eq!(Cause::from(&error), says);
    }
}

#[test]
fn the_driver_may_move_to_another_task_between_turns() {
    let ((first, waker), toy) = (driver(), Toy::default());
    let (mut streamed, _sink) = toy.opened(&waker);
    assert!(streamed.poll_read(&mut Context::from_waker(&waker), &mut [0; 8], false).is_pending());
    let (second, waker) = driver();
    assert!(streamed.poll_readable(&mut Context::from_waker(&waker)).is_pending());
    toy.change(|ends| ends.to_read.push(b'a'));
    assert_eq!([first, second].map(|count| count.0.load(Ordering::SeqCst)), [0, 1]);
}

/// On another thread of the runtime the bytes may come between the look and its answer.
#[test]
fn bytes_that_arrive_during_a_read_make_the_stream_readable_again() {
    let toy = Toy::default();
    toy.ends().comes_behind = b"+OK".to_vec();
    let (mut streamed, _sink) = toy.opened(Waker::noop());
    let (mut cx, mut buffer) = (Context::from_waker(Waker::noop()), [0; 8]);
    assert!(streamed.poll_read(&mut cx, &mut buffer, false).is_pending());
    assert!(streamed.poll_readable(&mut cx).is_ready());
    assert!(matches!(streamed.poll_read(&mut cx, &mut buffer, false), Poll::Ready(Ok(3))));
}

/// The last side is dropped on a thread that works for many callers.
#[test]
fn a_stream_that_panics_when_it_is_dropped_does_not_affect_other_callers() {
    struct Fragile(Toy);

    impl Stream for Fragile {
        fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
            self.0.poll_read(cx, buffer)
        }

        fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
            self.0.poll_write(cx, bytes)
        }

        fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            self.0.poll_flush(cx)
        }
    }

    impl Drop for Fragile {
        fn drop(&mut self) {
            self.0.ends().panics = true;
            panic!("this is expected");
        }
    }

    let toy = Toy::default();
    let streamed = Streamed::new(Fragile(toy.clone()), Waker::noop());
    let sink = streamed.writer();
    drop(streamed);
    drop(sink);
    assert!(toy.ends().panics);
}
