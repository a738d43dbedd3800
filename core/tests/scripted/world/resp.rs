//! Just enough RESP to read what the machine writes and to answer it.

pub fn ok() -> Vec<u8> {
    b"+OK\r\n".to_vec()
}

pub fn error(text: &str) -> Vec<u8> {
    format!("-{text}\r\n").into_bytes()
}

pub fn integer(value: i64) -> Vec<u8> {
    format!(":{value}\r\n").into_bytes()
}

pub fn bulk(text: &str) -> Vec<u8> {
    format!("${}\r\n{text}\r\n", text.len()).into_bytes()
}

pub fn null(resp3: bool) -> Vec<u8> {
    if resp3 { b"_\r\n".to_vec() } else { b"$-1\r\n".to_vec() }
}

/// Takes the first whole command, an array of strings, off the front of `bytes`.
pub fn take_command(bytes: &mut Vec<u8>) -> Option<Vec<Vec<u8>>> {
    let mut at = 0;
    let count = number(bytes, b'*', &mut at)?;
    let mut arguments = Vec::new();
    for _ in 0..count {
        let length = number(bytes, b'$', &mut at)?;
        arguments.push(bytes.get(at..at + length)?.to_vec());
        assert_eq!(bytes.get(at + length..at + length + 2)?, b"\r\n");
        at += length + 2;
    }
    bytes.drain(..at);
    Some(arguments)
}

fn number(bytes: &[u8], kind: u8, at: &mut usize) -> Option<usize> {
    assert_eq!(*bytes.get(*at)?, kind, "not a command: {:?}", bytes.escape_ascii().to_string());
    let rest = &bytes[*at + 1..];
    let end = rest.windows(2).position(|pair| pair == b"\r\n")?;
    *at += 1 + end + 2;
    Some(std::str::from_utf8(&rest[..end]).unwrap().parse().unwrap())
}
