//! The links of the built book. The headings of a page get their names from mdBook, which the tests
//! of the sources do not know. Links to files of the repository are relative in the sources, and
//! lead out of the book.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::Outcome;
use crate::process::root;

/// Where the repository is.
pub(super) const REPOSITORY: &str = env!("CARGO_PKG_REPOSITORY");

/// How a page of the book begins a link to a file of the repository.
const OUT: &str = " href=\"../../";

/// The links of a page, and the places in it to which others can link.
#[derive(Default, PartialEq, Eq, Debug)]
struct Page {
    links: BTreeSet<String>,
    names: BTreeSet<String>,
}

impl Page {
    fn read(html: &str) -> Self {
        let values = |attribute: &str| {
            let begin = format!(" {attribute}=\"");
            let rests = html.split(&begin).skip(1);
            rests.filter_map(|rest| rest.split_once('"')).map(|(value, _)| value.to_owned()).collect()
        };
        let mut links: BTreeSet<String> = values("href");
        links.extend::<BTreeSet<String>>(values("src"));
        Self { links, names: values("id") }
    }
}

/// Makes the links of all pages that lead out of the book lead to the repository.
pub(super) fn lead_out(folder: &Path) -> Outcome {
    for file in fs::read_dir(folder)? {
        let file = file?.path();
        if file.extension().is_some_and(|extension| extension == "html") {
            let html = fs::read_to_string(&file)?;
            if html.contains(OUT) {
                fs::write(&file, to_repository(&html, |path| root().join(path).exists()))?;
            }
        }
    }
    Ok(())
}

/// The page with the address of the repository in its links to files that exist there.
fn to_repository(html: &str, exists: impl Fn(&str) -> bool) -> String {
    let mut parts = html.split(OUT);
    let mut page = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (link, rest) = part.split_once('"').unwrap_or((part, ""));
        let (path, heading) = link.find('#').map_or((link, ""), |at| link.split_at(at));
        // mdBook takes every file of Markdown for one of its pages.
        let markdown = path.strip_suffix(".html").map(|name| format!("{name}.md"));
        let path = markdown.filter(|path| exists(path)).unwrap_or_else(|| path.to_owned());
        page += &if exists(&path) {
            format!(" href=\"{REPOSITORY}/blob/main/{path}{heading}\"{rest}")
        } else {
            format!("{OUT}{link}\"{rest}")
        };
    }
    page
}

/// Follows the links of all pages, except those to other sites.
pub(super) fn links(folder: &Path) -> Outcome {
    let mut pages = BTreeMap::new();
    for file in fs::read_dir(folder)? {
        let name = file?.file_name().to_string_lossy().into_owned();
        // The page with all chapters for printing has other names for their headings. The page for
        // missing pages is shown at any address, so its links are not relative to its own.
        if name.ends_with(".html") && name != "print.html" && name != "404.html" {
            pages.insert(name.clone(), Page::read(&fs::read_to_string(folder.join(name))?));
        }
    }
    let dead = dead(&pages, |file| folder.join(file).exists());
    let all: usize = pages.values().map(|page| page.links.len()).sum();
    println!("{} pages, {all} links", pages.len());
    if all == 0 {
        Err("the book has no links".into())
    } else if dead.is_empty() {
        Ok(())
    } else {
        Err(dead.join("\n").into())
    }
}

/// The links that lead nowhere.
fn dead(pages: &BTreeMap<String, Page>, exists: impl Fn(&str) -> bool) -> Vec<String> {
    let mut dead = Vec::new();
    for (name, page) in pages {
        for link in page.links.iter().filter(|link| !link.contains(':')) {
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let file = if file.is_empty() { name } else { file };
            let is_there = match pages.get(file) {
                Some(page) => heading.is_empty() || page.names.contains(heading),
                None => exists(file),
            };
            if !is_there {
                dead.push(format!("{name}: {link} leads nowhere"));
            }
        }
    }
    dead
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_to_files_of_the_repository_get_its_address() {
        let page = "<a href=\"../../a.rs\"> <a href=\"../../b.html#there\"> <a href=\"../../c.html\"> <a href=\"d.html\">";
        let exists = |path: &str| ["a.rs", "b.md"].contains(&path);
        let expected = format!(
            "<a href=\"{REPOSITORY}/blob/main/a.rs\"> <a href=\"{REPOSITORY}/blob/main/b.md#there\"> \
             <a href=\"../../c.html\"> <a href=\"d.html\">"
        );
        assert_eq!(to_repository(page, exists), expected);
        assert!(REPOSITORY.starts_with("https://"));
    }

    #[test]
    fn links_to_missing_files_and_headings_are_found() {
        let page = "<h2 id=\"here\">x</h2><a href=\"b.html#there\"> <a href=\"https://c/d.html\">\
            <a class=\"x\" href=\"#here\"><a href=\"#nowhere\"><img src=\"e.svg\"><img src=\"f.svg\">";
        let other = "<p id=\"here\"><a href=\"a.html\"><a href=\"missing.html\">";
        let pages =
            [("a.html", page), ("b.html", other)].map(|(name, html)| (name.to_owned(), Page::read(html)));
        let dead = dead(&pages.into(), |file| file == "e.svg");
        let expected = ["a.html: #nowhere", "a.html: b.html#there", "a.html: f.svg", "b.html: missing.html"];
        assert_eq!(dead, expected.map(|link| format!("{link} leads nowhere")));
    }
}
