//! Gives key names in a cluster a tag as prefix, so that all of them are in one slot.
//!
//! "Redis cluster specification", section "Hash tags": only the text between a name's first braces
//! is hashed. With the same tag before all names, one script can use several keys.

use super::command::{put_argument, put_header};

/// Appends a command again, with `{tag}` before each key name.
///
/// `names` is how many of a script's last values are key names, too: some scripts read keys that
/// are not declared as keys.
pub(crate) fn put_tagged(out: &mut Vec<u8>, command: &[u8], tag: &str, names: usize) {
    let mut rest = command;
    let Some(count) = take_length(&mut rest) else { return };
    put_header(out, b'*', count);
    let (mut is_script, mut keys) = (false, 0..0);
    for place in 0..count {
        let Some(argument) = take_argument(&mut rest) else { return };
        match (place, argument) {
            (0, b"SET" | b"DELIFEQ" | b"DELEX") => keys = 1..2,
            (0, b"EVAL" | b"EVALSHA") => is_script = true,
            (2, number) if is_script => keys = 3..3 + decimal(number).unwrap_or(0),
            _ => {}
        }
        if keys.contains(&place) || place + names >= count {
            put_header(out, b'$', argument.len() + tag.len() + 2);
            for part in [b"{", tag.as_bytes(), b"}", argument, b"\r\n"] {
                out.extend_from_slice(part);
            }
        } else {
            put_argument(out, argument);
        }
    }
}

/// Takes `*3` or `$3` with the end of its line.
fn take_length(rest: &mut &[u8]) -> Option<usize> {
    let end = rest.iter().position(|byte| *byte == b'\r')?;
    let length = decimal(rest.get(1..end)?)?;
    *rest = rest.get(end + 2..)?;
    Some(length)
}

fn take_argument<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = take_length(rest)?;
    let (argument, behind) = rest.split_at_checked(length)?;
    *rest = behind.get(2..)?;
    Some(argument)
}

fn decimal(digits: &[u8]) -> Option<usize> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::super::encode;
    use super::*;

    fn tagged(arguments: &[&str], names: usize) -> Vec<u8> {
        let (mut command, mut out) = (Vec::new(), Vec::new());
        encode(&mut command, &arguments.iter().map(|text| text.as_bytes()).collect::<Vec<_>>());
        put_tagged(&mut out, &command, "q10", names);
        out
    }

    fn expected(arguments: &[&str]) -> Vec<u8> {
        let mut out = Vec::new();
        encode(&mut out, &arguments.iter().map(|text| text.as_bytes()).collect::<Vec<_>>());
        out
    }

    #[test]
    fn every_name_of_a_key_gets_the_tag_and_nothing_else_does() {
        for (command, with_tag) in [
            (&["SET", "job", "t", "NX", "PX", "9"][..], &["SET", "{q10}job", "t", "NX", "PX", "9"][..]),
            (&["SET", "job", "2", "NX", "PX", "9"], &["SET", "{q10}job", "2", "NX", "PX", "9"]),
            (&["DELIFEQ", "job", "t"], &["DELIFEQ", "{q10}job", "t"]),
            (&["DELEX", "job", "IFEQ", "t"], &["DELEX", "{q10}job", "IFEQ", "t"]),
            (&["EVALSHA", "5", "2", "a", "b", "c"], &["EVALSHA", "5", "2", "{q10}a", "{q10}b", "c"]),
            (&["EVAL", "return 1", "0", "a"], &["EVAL", "return 1", "0", "a"]),
            (&["EVAL", "", "1", "", "\r\n$1"], &["EVAL", "", "1", "{q10}", "\r\n$1"]),
            (&["CLIENT", "TRACKING", "ON", "NOLOOP"], &["CLIENT", "TRACKING", "ON", "NOLOOP"]),
        ] {
            assert_eq!(tagged(command, 0), expected(with_tag), "{command:?}");
        }
    }

    #[test]
    fn names_of_keys_among_the_arguments_of_a_script_get_the_tag_too() {
        let with_tag = ["EVALSHA", "5", "1", "{q10}a", "b", "{q10}c", "{q10}d"];
        assert_eq!(tagged(&["EVALSHA", "5", "1", "a", "b", "c", "d"], 2), expected(&with_tag));
    }

    #[test]
    fn bytes_that_are_no_command_are_not_sent() {
        let mut out = Vec::new();
        for part in ["", "*", "*x\r\n", "$3"] {
            put_tagged(&mut out, part.as_bytes(), "q10", 0);
        }
        assert!(out.is_empty());
    }
}
