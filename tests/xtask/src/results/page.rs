//! The page with the last results, rendered from the files.

use super::kept::Figure;
use super::{Kept, Source};

const HEAD: &str = "\
# The last results

`cargo xtask results --write` renders this page from the files beside it. Each is written by its
command, and also has tables, the machine and the servers. `cargo xtask results` says which results
are older than the code that they depend on. No test compares figures of time: machines vary.

| | what was run | command | date | commit |
|---|---|---|---|---|
";

const TARGETS: &str = "
What has a target:

| | result | last | target |
|---|---|---|---|
";

const PICTURE: &str = "
![Ratios of each way to bare sockets](benchmarks.svg)
";

const OTHERS: &str = "
What has none:

| | last |
|---|---|
";

pub(super) fn of(all: &[(&Source, Option<Kept>)]) -> String {
    let mut page = HEAD.to_owned();
    for (Source { name, about, .. }, kept) in all {
        page += &match kept {
            Some(Kept { command, date, commit, .. }) => {
                format!("| {name} | {about} | `{command}` | {date} | {commit} |\n")
            }
            None => format!("| {name} | {about} | | never | |\n"),
        };
    }
    page += TARGETS;
    for (source, kept) in all {
        for (what, values, target) in in_rows(figures(kept).filter(has_target)) {
            page += &format!("| {} | {what} | {} | {target} |\n", source.name, values.join("; "));
        }
    }
    page += OTHERS;
    for (source, kept) in all {
        let others = figures(kept).filter(|figure| !has_target(figure));
        let others: Vec<_> = others.map(|Figure { what, value, .. }| format!("{what}: {value}")).collect();
        if !others.is_empty() {
            page += &format!("| {} | {} |\n", source.name, others.join("; "));
        }
    }
    page + PICTURE
}

/// Figures that differ in nothing but the number of masters are in one row.
fn in_rows<'a>(figures: impl Iterator<Item = Figure<'a>>) -> Vec<(String, Vec<String>, &'a str)> {
    let mut rows: Vec<(String, Vec<String>, &str)> = Vec::new();
    for Figure { what, value, target } in figures {
        let (what, masters) = without_masters(what);
        let value = masters.map_or_else(|| value.to_owned(), |masters| format!("{masters}: {value}"));
        match rows.iter_mut().find(|row| row.0 == what && row.2 == target) {
            Some((_, values, _)) => values.push(value),
            None => rows.push((what, vec![value], target)),
        }
    }
    rows
}

/// What a figure is of, without its number of masters: `alone, 3 masters, smol` becomes `alone,
/// smol`.
fn without_masters(what: &str) -> (String, Option<&str>) {
    const WORD: &str = " masters";
    let found = what.match_indices(WORD).find_map(|(end, _)| {
        let (before, after) = what.split_at(end + WORD.len());
        let (start, words) = before.rsplit_once(", ")?;
        let is_number = words.strip_suffix(WORD)?.parse::<usize>().is_ok();
        is_number.then(|| (format!("{start}{after}"), words))
    });
    found.map_or_else(|| (what.to_owned(), None), |(what, masters)| (what, Some(masters)))
}

fn figures(kept: &Option<Kept>) -> impl Iterator<Item = Figure<'_>> {
    kept.iter().flat_map(Kept::figures)
}

fn has_target(figure: &Figure<'_>) -> bool {
    !figure.target.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_each_figure_beside_its_target() {
        let source =
            |name| Source { name, program: name, with: None, about: "clients contend", depends: &[] };
        let kept = Kept::of(
            "command\tcargo xtask chaos\ncommit\tab\ndate\t2026-11-28\nmachine\tx\n\
             figure\tgrants\t7\tsome\nfigure\tkills\t3\t\nfigure\tpauses\t2\t\n\
             figure\talone, 3 masters, smol\t1.1\tat most 2\nfigure\talone, 5 masters, smol\t1.2\tat most 2\n",
        );
        let page = of(&[(&source("chaos"), kept), (&source("votes"), None)]);
        let rows: Vec<_> =
            page.lines().filter(|line| line.starts_with("| chaos") || line.starts_with("| votes")).collect();
        let expected = [
            "| chaos | clients contend | `cargo xtask chaos` | 2026-11-28 | ab |",
            "| votes | clients contend | | never | |",
            "| chaos | grants | 7 | some |",
            "| chaos | alone, smol | 3 masters: 1.1; 5 masters: 1.2 | at most 2 |",
            "| chaos | kills: 3; pauses: 2 |",
        ];
        assert_eq!(rows, expected);
    }
}
