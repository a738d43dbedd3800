//! A file of results: lines of fields that are separated by tabs. The first lines say what was run,
//! on what, and when.

/// The last result of a command.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) command: String,
    pub(crate) commit: String,
    pub(crate) date: String,
    pub(crate) machine: String,
    /// What the program wrote.
    pub(crate) lines: Vec<Vec<String>>,
}

/// A figure, and what it should be.
pub(crate) struct Figure<'a> {
    pub(crate) what: &'a str,
    pub(crate) value: &'a str,
    pub(crate) target: &'a str,
}

impl Kept {
    pub(crate) fn lines(text: &str) -> Vec<Vec<String>> {
        text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect()
    }

    pub(crate) fn of(text: &str) -> Option<Self> {
        let mut lines = Self::lines(text).into_iter();
        let mut field = |name: &str| {
            let line = lines.next()?;
            let [kind, value] = <[String; 2]>::try_from(line).ok()?;
            (kind == name).then_some(value)
        };
        let [command, commit, date, machine] =
            [field("command")?, field("commit")?, field("date")?, field("machine")?];
        Some(Self { command, commit, date, machine, lines: lines.collect() })
    }

    pub(crate) fn to_text(&self) -> String {
        let Self { command, commit, date, machine, lines } = self;
        let head = [("command", command), ("commit", commit), ("date", date), ("machine", machine)];
        let head = head.map(|(name, value)| format!("{name}\t{value}\n")).concat();
        head + &lines.iter().map(|line| line.join("\t") + "\n").collect::<String>()
    }

    /// The rows of a table. The first one has the names of its columns.
    pub(crate) fn table(&self, table: &str) -> impl Iterator<Item = &[String]> {
        self.lines.iter().filter_map(move |line| match line.as_slice() {
            [kind, name, cells @ ..] if kind == "row" && name == table => Some(cells),
            _ => None,
        })
    }

    pub(crate) fn figures(&self) -> impl Iterator<Item = Figure<'_>> {
        self.lines.iter().filter_map(|line| match line.as_slice() {
            [kind, what, value, target] if kind == "figure" => Some(Figure { what, value, target }),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "command\tcargo xtask chaos --seed 1\ncommit\tabcd1234\ndate\t2026-11-28\n\
                        machine\t2 cores, Linux x86_64\nserver\tredis 7.0.15\nfigure\tbroken promises\t0\tnone\n";

    #[test]
    fn a_file_is_read_as_it_was_written() {
        let kept = Kept::of(TEXT).unwrap();
        assert_eq!(kept.to_text(), TEXT);
        assert_eq!((kept.command.as_str(), kept.commit.as_str()), ("cargo xtask chaos --seed 1", "abcd1234"));
        let figures: Vec<_> =
            kept.figures().map(|figure| (figure.what, figure.value, figure.target)).collect();
        assert_eq!(figures, [("broken promises", "0", "none")]);
    }

    #[test]
    fn a_file_without_its_first_lines_is_refused() {
        assert_eq!(Kept::of("figure\tbroken promises\t0\tnone\n"), None);
        assert_eq!(Kept::of(""), None);
    }
}
