//! The page with the last results, rendered from the files.

use super::{Kept, Source};

const HEAD: &str = "\
# The last results

`cargo xtask results --write` renders this page from the files beside it. Each is written by its
command, and also has details, the machine and the server. `cargo xtask results` says which results
are older than the code that they depend on. No test compares figures of time: machines vary.

| | what was run | command | date | commit |
|---|---|---|---|---|
";

const FIGURES: &str = "
| | result | last | target |
|---|---|---|---|
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
    page += FIGURES;
    for (source, kept) in all {
        for figure in kept.iter().flat_map(Kept::figures) {
            page +=
                &format!("| {} | {} | {} | {} |\n", source.name, figure.what, figure.value, figure.target);
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_each_figure_beside_its_target() {
        let source =
            |name| Source { name, program: name, with: None, about: "clients contend", depends: &[] };
        let kept = Kept::of(
            "command\tcargo xtask chaos\ncommit\tab\ndate\t2026-11-28\nmachine\tx\nfigure\tgrants\t7\tsome\n",
        );
        let page = of(&[(&source("chaos"), kept), (&source("votes"), None)]);
        let rows: Vec<_> =
            page.lines().filter(|line| line.starts_with("| chaos") || line.starts_with("| votes")).collect();
        let expected = [
            "| chaos | clients contend | `cargo xtask chaos` | 2026-11-28 | ab |",
            "| votes | clients contend | | never | |",
            "| chaos | grants | 7 | some |",
        ];
        assert_eq!(rows, expected);
    }
}
