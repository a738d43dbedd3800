//! Commands as people type them: words in one line, quoted as in a shell.

/// The words of a line, or `None` if its quotes do not match.
///
/// Within double quotes `\n`, `\r`, `\t`, `\b`, `\a` and `\xff` are what they are in C, and any
/// other byte after a backslash is itself; within single quotes only `\'` is special. A closing
/// quote ends its word.
pub(super) fn split_arguments(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    // The server reads the line as a C string.
    let mut bytes = line.split(|byte| *byte == 0).next().unwrap_or_default();
    let mut words = Vec::new();
    loop {
        bytes = bytes.trim_ascii_start();
        // The standard library does not count the vertical tab as a space; C does.
        while let [b'\x0b', rest @ ..] = bytes {
            bytes = rest.trim_ascii_start();
        }
        if bytes.is_empty() {
            return Some(words);
        }
        let mut word = Vec::new();
        bytes = take_word(bytes, &mut word)?;
        words.push(word);
    }
}

/// Takes one word from the front, and returns the rest.
fn take_word<'a>(mut bytes: &'a [u8], word: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        match bytes {
            [] => return Some(bytes),
            [b'"', rest @ ..] => return ends_word(take_double_quoted(rest, word)?),
            [b'\'', rest @ ..] => return ends_word(take_single_quoted(rest, word)?),
            [byte, ..] if is_space(*byte) => return Some(bytes),
            [byte, rest @ ..] => {
                word.push(*byte);
                bytes = rest;
            }
        }
    }
}

fn take_double_quoted<'a>(mut bytes: &'a [u8], word: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        match bytes {
            [] => return None,
            [b'"', rest @ ..] => return Some(rest),
            [b'\\', b'x', high, low, rest @ ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                let digit =
                    |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
                word.push(digit(*high)? << 4 | digit(*low)?);
                bytes = rest;
            }
            [b'\\', escaped, rest @ ..] => {
                word.push(match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => b'\x08',
                    b'a' => b'\x07',
                    other => *other,
                });
                bytes = rest;
            }
            [byte, rest @ ..] => {
                word.push(*byte);
                bytes = rest;
            }
        }
    }
}

fn take_single_quoted<'a>(mut bytes: &'a [u8], word: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        match bytes {
            [] => return None,
            [b'\'', rest @ ..] => return Some(rest),
            [b'\\', b'\'', rest @ ..] => {
                word.push(b'\'');
                bytes = rest;
            }
            [byte, rest @ ..] => {
                word.push(*byte);
                bytes = rest;
            }
        }
    }
}

/// A closing quote must be followed by a space or the end.
fn ends_word(rest: &[u8]) -> Option<&[u8]> {
    rest.first().is_none_or(|byte| is_space(*byte)).then_some(rest)
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\x0b' | b'\x0c' | b'\r')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Option<Vec<String>> {
        let words = split_arguments(line.as_bytes())?;
        Some(words.iter().map(|word| word.escape_ascii().to_string()).collect())
    }

    #[test]
    fn lines_are_split_as_in_a_shell() {
        for (line, expected) in [
            ("", vec![]),
            (" PING\r", vec!["PING"]),
            ("SET k \"a b\" 'c d'", vec!["SET", "k", "a b", "c d"]),
            (r#"ECHO "\x41\n\"\q""#, vec!["ECHO", r#"A\n\"q"#]),
            (r"ECHO 'it\'s \n'", vec!["ECHO", r"it\'s \\n"]),
            ("ECHO \"\"", vec!["ECHO", ""]),
            ("ECHO ab\"cd\"", vec!["ECHO", "abcd"]),
        ] {
            assert_eq!(words(line).unwrap(), expected, "{line}");
        }
        for line in ["ECHO \"a", "ECHO 'a", "ECHO \"a\"b", "ECHO 'a'b", "ECHO \"a\\"] {
            assert_eq!(words(line), None, "{line}");
        }
    }
}
