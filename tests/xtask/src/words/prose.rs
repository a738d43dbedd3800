//! The words of comments, strings and pages, without code.

/// A word in lower case.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Word {
    pub(super) text: String,
    pub(super) line: usize,
    /// Whether a phrase cannot go on with it: it begins a text, or follows a punctuation mark.
    pub(super) is_first: bool,
}

/// The words of a Rust file's comments and string literals.
pub(super) fn of_rust(text: &str) -> Vec<Word> {
    let mut words = Words::default();
    let (mut rest, mut line) = (text, 1);
    while let Some(first) = rest.chars().next() {
        let taken = if rest.starts_with("//") {
            let comment = &rest[..rest.find('\n').unwrap_or(rest.len())];
            words.read(comment.trim_start_matches(['/', '!']), line);
            comment.len()
        } else if rest.starts_with("/*") {
            let comment = &rest[..rest.find("*/").map_or(rest.len(), |end| end + 2)];
            words.read(comment, line);
            comment.len()
        } else if first == '"' {
            let literal = &rest[..string(rest)];
            words.end();
            words.read(literal, line);
            words.end();
            literal.len()
        } else if let Some(length) = raw_string(rest) {
            words.end();
            words.read(&rest[..length], line);
            words.end();
            length
        } else if first == '\'' {
            character(rest)
        } else if first.is_alphanumeric() || first == '_' {
            // A comment of code that follows other code is a text of its own.
            words.end();
            rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len())
        } else {
            if !first.is_whitespace() {
                words.end();
            }
            first.len_utf8()
        };
        let (read, unread) = rest.split_at(taken);
        line += read.matches('\n').count();
        rest = unread;
    }
    words.found
}

/// The words of a page in Markdown, without its blocks of code.
pub(super) fn of_page(text: &str) -> Vec<Word> {
    let mut words = Words::default();
    let mut is_code = false;
    for (place, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
            words.end();
        } else if line.trim().is_empty() {
            words.end();
        } else if !is_code {
            words.read(line, place + 1);
        }
    }
    words.found
}

/// How long the string literal is that begins here.
fn string(text: &str) -> usize {
    let mut is_escaped = false;
    for (place, c) in text.char_indices().skip(1) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => return place + 1,
            _ => {}
        }
    }
    text.len()
}

/// How long the raw string literal is that begins here, if one does.
fn raw_string(text: &str) -> Option<usize> {
    let hashes = text.strip_prefix('r')?.trim_start_matches('#');
    let count = text.len() - 1 - hashes.len();
    let inner = hashes.strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(count));
    Some(inner.find(&end).map_or(text.len(), |place| count + 2 + place + end.len()))
}

/// How long the character literal is that begins here; 1 for the mark of a lifetime.
fn character(text: &str) -> usize {
    let mut chars = text.char_indices().skip(1);
    match (chars.next(), chars.next()) {
        (Some((_, '\\')), Some((place, _))) => {
            text[place + 1..].find('\'').map_or(text.len(), |end| place + 2 + end)
        }
        (Some(_), Some((place, '\''))) => place + 1,
        _ => 1,
    }
}

#[derive(Default)]
struct Words {
    found: Vec<Word>,
    goes_on: bool,
}

impl Words {
    /// Ends a text.
    fn end(&mut self) {
        self.goes_on = false;
    }

    /// Takes in the words of a text that begins in this line. Code between backticks counts as a
    /// punctuation mark.
    fn read(&mut self, text: &str, first_line: usize) {
        for (place, line) in text.lines().enumerate() {
            for (part, prose) in line.split('`').enumerate() {
                if part % 2 == 1 {
                    self.end();
                } else {
                    self.read_prose(prose, first_line + place);
                }
            }
        }
    }

    fn read_prose(&mut self, prose: &str, line: usize) {
        let mut rest = prose;
        while let Some(first) = rest.chars().next() {
            let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '\'' | '’');
            let taken = if first.is_alphanumeric() || first == '_' {
                let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
                let text = rest[..length].trim_end_matches(['-', '\'', '’']).to_lowercase();
                self.found.push(Word { text, line, is_first: !self.goes_on });
                self.goes_on = true;
                length
            } else {
                self.goes_on &= first.is_whitespace();
                first.len_utf8()
            };
            rest = &rest[taken..];
        }
    }
}
