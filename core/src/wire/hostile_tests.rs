//! Passes invalid bytes, split at every place, through the scanner and the decoder together.

use proptest::{collection::vec, prelude::*};

use super::{Dialect, Scanner, WireFault, decode};

/// Receives `bytes` in pieces. Returns the lengths of all frames in them, and the fault behind the
/// last one, if there is one. Every frame is decoded in both dialects.
fn receive(bytes: &[u8], pieces: &[usize]) -> (Vec<usize>, Option<WireFault>) {
    let (mut scanner, mut frames, mut start, mut received) = (Scanner::new(), Vec::new(), 0, 0);
    let mut pieces = pieces.iter().copied();
    while received < bytes.len() {
        received = pieces.next().map_or(bytes.len(), |piece| bytes.len().min(received + piece));
        loop {
            match scanner.advance(&bytes[start..received]) {
                Ok(None) => break,
                Ok(Some(length)) => {
                    let frame = &bytes[start..start + length];
                    for dialect in [Dialect::Resp2, Dialect::Resp3] {
                        let _ = decode(dialect, frame).map(|reply| format!("{reply:?}"));
                    }
                    frames.push(length);
                    start += length;
                }
                Err(fault) => return (frames, Some(fault)),
            }
        }
    }
    (frames, None)
}

/// Text that resembles RESP more often than random bytes do.
fn resp_like() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just("\r\n"),
        Just("\r"),
        Just("\n"),
        Just("$"),
        Just("*"),
        Just("%"),
        Just("~"),
        Just(">"),
        Just("="),
        Just("!"),
        Just("_"),
        Just("#t\r\n"),
        Just(","),
        Just("("),
        Just("+OK\r\n"),
        Just("-ERR x\r\n"),
        Just(":1\r\n"),
        Just("$-1\r\n"),
        Just("*-1\r\n"),
        Just("$1\r\na\r\n"),
        Just("=7\r\ntxt:abc\r\n"),
        Just("=3\r\n"),
        Just("!0\r\n\r\n"),
        Just("*2\r\n"),
        Just("%1\r\n"),
        Just("~2\r\n"),
        Just(">1\r\n"),
        Just("*0\r\n"),
        Just("_\r\n"),
        Just(",nan\r\n"),
        Just(",1e9\r\n"),
        Just("0"),
        Just("1"),
        Just("9"),
        Just("-"),
        Just("?"),
        Just("|"),
        Just(";"),
        Just("."),
        Just("H"),
        Just("HELLO 3\r\n"),
        Just("\u{0}"),
    ];
    vec(piece, 0..40).prop_map(|pieces| pieces.concat().into_bytes())
}

/// Well-formed values, which the scanner must accept.
fn well_formed() -> impl Strategy<Value = Vec<u8>> {
    let leaf = prop_oneof![
        "[ -~]{0,8}".prop_map(|text| format!("+{text}\r\n").into_bytes()),
        any::<i64>().prop_map(|number| format!(":{number}\r\n").into_bytes()),
        any::<f64>().prop_map(|number| format!(",{number}\r\n").into_bytes()),
        vec(any::<u8>(), 0..12)
            .prop_map(|bytes| { [format!("${}\r\n", bytes.len()).as_bytes(), &bytes, b"\r\n"].concat() }),
        Just(b"_\r\n".to_vec()),
        Just(b"#f\r\n".to_vec()),
    ];
    leaf.prop_recursive(4, 60, 6, |inner| {
        ("[*~>%]", vec(inner, 0..6)).prop_map(|(kind, mut elements)| {
            let count = if kind == "%" { elements.len() / 2 } else { elements.len() };
            elements.truncate(if kind == "%" { count * 2 } else { count });
            [format!("{kind}{count}\r\n").into_bytes(), elements.concat()].concat()
        })
    })
}

proptest! {
    #[test]
    fn random_bytes_in_random_pieces_never_panic(bytes: Vec<u8>, pieces in vec(1_usize..9, 0..40)) {
        prop_assert_eq!(receive(&bytes, &pieces), receive(&bytes, &[]));
    }

    #[test]
    fn resp_like_bytes_give_the_same_frames_in_every_split(
        bytes in resp_like(),
        pieces in vec(1_usize..9, 0..40),
    ) {
        let whole = receive(&bytes, &[]);
        prop_assert_eq!(&receive(&bytes, &pieces), &whole);
        prop_assert_eq!(&receive(&bytes, &vec![1; bytes.len()]), &whole);
        for split in 0..bytes.len() {
            prop_assert_eq!(&receive(&bytes, &[split]), &whole);
        }
    }

    #[test]
    fn well_formed_replies_are_accepted_whole(bytes in well_formed(), pieces in vec(1_usize..9, 0..40)) {
        prop_assert_eq!(receive(&bytes, &pieces), (vec![bytes.len()], None));
    }

    #[test]
    fn one_changed_byte_never_panics(bytes in well_formed(), place: prop::sample::Index, byte: u8) {
        let mut bytes = bytes;
        let place = place.index(bytes.len());
        bytes[place] = byte;
        prop_assert_eq!(receive(&bytes, &vec![1; bytes.len()]), receive(&bytes, &[]));
    }
}

#[test]
fn the_answer_of_redis_8_to_hello_passes() {
    let module = "%4\r\n$4\r\nname\r\n$2\r\nbf\r\n$3\r\nver\r\n:80200\r\n\
                  $4\r\npath\r\n$13\r\n/x/redisbf.so\r\n$4\r\nargs\r\n*0\r\n";
    let hello = format!("%2\r\n$5\r\nproto\r\n:3\r\n$7\r\nmodules\r\n*40\r\n{}", module.repeat(40));
    assert_eq!(Scanner::new().advance(hello.as_bytes()), Ok(Some(hello.len())));
    let reply = decode(Dialect::Resp3, hello.as_bytes()).unwrap();
    assert_eq!(
        reply.field("modules").and_then(|modules| match modules {
            crate::wire::Reply::Array(modules) => Some(modules.len()),
            _ => None,
        }),
        Some(40)
    );
}
