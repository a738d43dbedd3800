//! Links of the READMEs and pages: files, anchors, and the chapters of the book.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::documented::{pages, root};

/// The list of the book's chapters.
const SUMMARY: &str = "core/docs/SUMMARY.md";

/// The page without its blocks of code.
fn prose(page: &str) -> String {
    let mut is_open = false;
    let is_prose = |line: &&str| {
        let is_fence = line.starts_with("```");
        is_open ^= is_fence;
        !is_open && !is_fence
    };
    page.lines().filter(is_prose).map(|line| format!("{line}\n")).collect()
}

/// `[name]: target` at the beginning of a line.
fn definitions(page: &str) -> Vec<(String, String)> {
    let definition = |line: &str| {
        let (name, target) = line.strip_prefix('[')?.split_once("]: ")?;
        Some((name.to_owned(), target.to_owned()))
    };
    prose(page).lines().filter_map(definition).collect()
}

/// `[text](target)`.
fn inline(page: &str) -> Vec<String> {
    let prose = prose(page);
    prose.split("](").skip(1).map(|rest| rest.split_once(')').unwrap().0.to_owned()).collect()
}

/// The name of a heading in links.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().to_lowercase().replace(' ', "-");
    kept.chars().filter(|it| it.is_alphanumeric() || "-_".contains(*it)).collect()
}

/// Why the target of a link in `name` does not exist.
fn dead(name: &str, target: &str) -> Option<String> {
    if target.contains("://") {
        return None;
    }
    let target = match target.strip_prefix('#') {
        Some(_) => root().join(format!("{name}{target}")),
        None => root().join(name).parent().unwrap().join(target),
    };
    let target = target.to_str().unwrap();
    let (file, heading) = target.split_once('#').unwrap_or((target, ""));
    if !Path::new(file).exists() {
        return Some(format!("{file} does not exist"));
    }
    if heading.is_empty() {
        return None;
    }
    let page = prose(&fs::read_to_string(file).unwrap());
    let mut anchors =
        page.lines().filter(|line| line.starts_with('#')).map(|line| anchor(line.trim_start_matches('#')));
    (!anchors.any(|anchor| anchor == heading)).then(|| format!("{file} has no heading #{heading}"))
}

#[test]
fn every_link_leads_to_a_file_and_a_heading_that_exist() {
    let mut pages = pages();
    // Pages for developers are not in the list of `pages`.
    for folder in ["", "tests/"] {
        let files = fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path());
        for file in files.filter(|file| file.extension().is_some_and(|extension| extension == "md")) {
            let name = format!("{folder}{}", file.file_name().unwrap().to_str().unwrap());
            pages.push((name, fs::read_to_string(file).unwrap()));
        }
    }
    let mut faults = Vec::new();
    for (name, page) in &pages {
        let targets = inline(page).into_iter().chain(definitions(page).into_iter().map(|(_, to)| to));
        faults.extend(targets.filter_map(|to| Some(format!("{name}: {}", dead(name, &to)?))));
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn every_link_by_a_name_has_a_definition_that_is_used() {
    for (name, page) in pages() {
        let defined: BTreeSet<_> = definitions(&page).into_iter().map(|(name, _)| name).collect();
        let prose = prose(&page);
        for used in prose.split("][").skip(1).filter_map(|rest| rest.split_once(']')) {
            assert!(defined.contains(used.0), "{name}: nothing defines [{}]", used.0);
        }
        for defined in defined {
            assert!(prose.matches(&format!("[{defined}]")).count() > 1, "{name}: nothing uses [{defined}]");
        }
    }
}

#[test]
fn every_page_is_a_chapter_of_the_book_once() {
    let summary = fs::read_to_string(root().join(SUMMARY)).unwrap();
    let mut chapters = inline(&summary);
    chapters.sort();
    let is_page = |name: &String| name.starts_with("core/docs/") && name != SUMMARY;
    let pages: Vec<_> = pages().into_iter().map(|(name, _)| name).filter(is_page).collect();
    let chapters: Vec<_> = chapters.iter().map(|chapter| format!("core/docs/{chapter}")).collect();
    assert_eq!(chapters, pages);
}

/// In rustdoc a page is a module, so its links to other pages must not lead to their files, and
/// those to files of the repository are not relative.
#[test]
fn every_link_of_a_page_leads_to_the_same_place_in_rustdoc() {
    let guide = fs::read_to_string(root().join("core/src/guide.rs")).unwrap();
    for (name, page) in pages() {
        let Some(file) = name.strip_prefix("core/docs/").filter(|_| name != SUMMARY) else { continue };
        let (before, _) =
            guide.split_once(&format!("include_str!(\"../docs/{file}\")")).expect("it has a module");
        let of_it = before.rsplit("\n\n").next().unwrap();
        for target in inline(&page) {
            let is_outside = target.contains("://") || target.starts_with('#');
            assert!(is_outside, "{name}: write [text][name] for {target}, and define the name below");
        }
        for (defined, target) in definitions(&page) {
            if target.contains("://") {
                continue;
            }
            let line = match (target.strip_prefix("../../"), target.split_once(".md")) {
                (Some(path), _) => format!("#[doc = repository_file!({defined:?}, {path:?})]"),
                (None, Some((page, heading))) => format!("/// [{defined}]: {}{heading}", page.to_lowercase()),
                (None, None) => format!("#[doc = picture!({defined:?}, {target:?})]"),
            };
            assert!(of_it.lines().any(|it| it == line), "core/src/guide.rs needs {line:?} for {file}");
        }
    }
}

/// Where the repository is, is known to its root manifest alone: all else is relative, or derived.
#[test]
fn no_other_file_than_the_manifest_has_the_address_of_the_repository() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let (_, rest) = manifest.split_once("\nrepository = \"https://").unwrap();
    let address = rest.split_once('"').unwrap().0;
    let (mut folders, mut having, mut files) = (vec![root()], Vec::new(), 0);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_symlink() || [".git", "target"].contains(&path.file_name().unwrap().to_str().unwrap())
            {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
            files += 1;
            if text.contains(address) {
                having.push(path.strip_prefix(root()).unwrap().to_owned());
            }
        }
    }
    assert_eq!(having, [Path::new("Cargo.toml")], "of {files} files");
}

/// A phone is narrower than a picture, and a page may be dark.
#[test]
fn every_picture_shrinks_with_its_page_and_has_its_own_background() {
    let docs = fs::read_dir(root().join("core/docs")).unwrap().map(|entry| entry.unwrap().path());
    let pictures: Vec<_> = docs.filter(|file| file.extension().is_some_and(|it| it == "svg")).collect();
    assert!(!pictures.is_empty());
    for picture in pictures {
        let svg = fs::read_to_string(&picture).unwrap();
        let (opening, _) = svg.split_once('>').unwrap();
        assert!(opening.contains("width=\"100%\"") && opening.contains("viewBox"), "{picture:?}");
        assert!(svg.contains("class=\"ground\"") && svg.contains(".ground{fill:#"), "{picture:?}");
    }
}
