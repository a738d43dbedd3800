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
        for Figure { what, value, target } in figures(kept).filter(has_target) {
            page += &format!("| {} | {what} | {value} | {target} |\n", source.name);
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
            "command\tcargo xtask chaos\ncommit\tab\ndate\t2026-11-28\nmachine\tx\nfigure\tgrants\t7\tsome\nfigure\tkills\t3\t\nfigure\tpauses\t2\t\n",
        );
        let page = of(&[(&source("chaos"), kept), (&source("votes"), None)]);
        let rows: Vec<_> =
            page.lines().filter(|line| line.starts_with("| chaos") || line.starts_with("| votes")).collect();
        let expected = [
            "| chaos | clients contend | `cargo xtask chaos` | 2026-11-28 | ab |",
            "| votes | clients contend | | never | |",
            "| chaos | grants | 7 | some |",
            "| chaos | kills: 3; pauses: 2 |",
        ];
        assert_eq!(rows, expected);
    }
}
