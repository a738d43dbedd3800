//! Tables of results in pages for users: each stands between two lines, of which the first names
//! its source and its table.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use super::Kept;
use crate::Outcome;
use crate::process::root;

const BEGIN: &str = "<!-- results of ";
const END: &str = "<!-- end of results -->";

/// The pages that have such a table, with the tables of these results.
pub(super) fn pages(kept: &BTreeMap<&str, &Kept>) -> Outcome<Vec<(PathBuf, String)>> {
    let mut pages = Vec::new();
    let mut paths = vec![root().join("README.md")];
    for file in fs::read_dir(root().join("core/docs"))? {
        paths.push(file?.path());
    }
    for path in paths {
        if path.extension().is_some_and(|extension| extension == "md") {
            let page = fs::read_to_string(&path)?;
            if page.contains(BEGIN) {
                let page = inserted(&page, kept).map_err(|error| format!("{}: {error}", path.display()))?;
                pages.push((path, page));
            }
        }
    }
    Ok(pages)
}

/// The page with each of its tables as the results have it.
fn inserted(page: &str, kept: &BTreeMap<&str, &Kept>) -> Result<String, String> {
    let mut all = String::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        all += &format!("{line}\n");
        let Some(names) = line.strip_prefix(BEGIN) else { continue };
        let names = names.strip_suffix(" -->").and_then(|names| names.split_once(": "));
        let (source, table) = names.ok_or("a table is named as SOURCE: TABLE")?;
        if !lines.by_ref().any(|line| line == END) {
            return Err(format!("the table of {source} has no end: {END}"));
        }
        if let Some(kept) = kept.get(source) {
            for (place, cells) in kept.table(table).enumerate() {
                all += &format!("| {} |\n", cells.join(" | "));
                if place == 0 {
                    all += &format!("|{}\n", "---|".repeat(cells.len()));
                }
            }
        }
        all += &format!("{END}\n");
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_takes_the_place_of_the_one_before() {
        let kept =
            Kept { lines: Kept::lines("row\tpairs\tway\tN\nrow\tpairs\tfront\t3\n"), ..Kept::default() };
        let kept = BTreeMap::from([("pairs", &kept)]);
        let page = "a\n<!-- results of pairs: pairs -->\nold\n<!-- end of results -->\nb\n";
        let expected = "a\n<!-- results of pairs: pairs -->\n| way | N |\n|---|---|\n| front | 3 |\n<!-- end of results -->\nb\n";
        assert_eq!(inserted(page, &kept).unwrap(), expected);
        assert_eq!(inserted(expected, &kept).unwrap(), expected);
    }

    #[test]
    fn a_table_without_an_end_is_an_error() {
        let page = "<!-- results of pairs: pairs -->\nold\n";
        assert!(inserted(page, &BTreeMap::new()).unwrap_err().contains("no end"));
    }
}
