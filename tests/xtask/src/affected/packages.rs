//! Which packages can notice a change of a file: the one that it belongs to, those that depend on
//! this one, and those whose sources include it.

use std::collections::BTreeSet;
use std::fs;

use crate::Outcome;
use crate::process::root;

/// Folders whose files only the tests of their own package need.
const TESTS: [&str; 3] = ["/tests/", "/examples/", "/benches/"];

/// A package of the workspace.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Package {
    pub(super) name: String,
    /// From the root of the workspace, with a slash at the end.
    pub(super) folder: String,
    /// What it depends on.
    needs: Vec<String>,
    /// What its tests and examples depend on.
    tests_need: Vec<String>,
    /// The files that its sources include, from the root.
    includes: BTreeSet<String>,
}

/// All packages of the workspace.
pub(super) fn all(files: &[String]) -> Outcome<Vec<Package>> {
    let manifest = fs::read_to_string(root().join("Cargo.toml"))?;
    let folders: Vec<_> = members(&manifest).into_iter().map(|member| format!("{member}/")).collect();
    let mut packages = Vec::new();
    for folder in &folders {
        let manifest = fs::read_to_string(root().join(folder).join("Cargo.toml"))?;
        let mut package =
            Package::of(folder, &manifest).ok_or_else(|| format!("{folder}Cargo.toml has no name"))?;
        for file in files.iter().filter(|file| file.ends_with(".rs") && owner(&folders, file) == Some(folder))
        {
            package.includes.extend(included(file, &fs::read_to_string(root().join(file))?));
        }
        packages.push(package);
    }
    Ok(packages)
}

/// The members in the manifest of the workspace.
fn members(manifest: &str) -> Vec<&str> {
    let list = manifest.split_once("members = [").and_then(|(_, rest)| rest.split_once(']'));
    list.map_or_else(Vec::new, |(list, _)| list.split('"').skip(1).step_by(2).collect())
}

/// The innermost of these folders that a file is in.
fn owner<'a>(folders: &'a [String], file: &str) -> Option<&'a String> {
    folders.iter().filter(|folder| file.starts_with(*folder)).max_by_key(|folder| folder.len())
}

impl Package {
    fn of(folder: &str, manifest: &str) -> Option<Self> {
        let (mut name, mut section) = (None, "");
        let (mut needs, mut tests_need) = (Vec::new(), Vec::new());
        for line in manifest.lines() {
            if let Some(header) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
                section = header;
            }
            let Some((key, value)) = line.split_once('=') else { continue };
            // `quorlock-core.workspace = true` has its name before the dot.
            let key = key.trim().split('.').next().unwrap_or_default();
            match section {
                "package" if key == "name" => name = Some(value.trim().trim_matches('"').to_owned()),
                _ if section.ends_with("dev-dependencies") => tests_need.push(key.to_owned()),
                _ if section.ends_with("dependencies") => needs.push(key.to_owned()),
                _ => {}
            }
        }
        Some(Self { name: name?, folder: folder.to_owned(), needs, tests_need, includes: BTreeSet::new() })
    }
}

/// The files that a source includes, from the root.
fn included(file: &str, source: &str) -> Vec<String> {
    const BEFORE: [&str; 3] = ["include_str!(\"", "include!(\"", "#[path = \""];
    let name = |line: &str| {
        let (_, rest) = BEFORE.iter().find_map(|before| line.split_once(before))?;
        Some(beside(file, rest.split_once('"')?.0))
    };
    source.lines().filter_map(name).collect()
}

/// A path from a file, as one from the root.
fn beside(file: &str, path: &str) -> String {
    let mut parts: Vec<_> = file.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        if part == ".." {
            parts.pop();
        } else {
            parts.push(part);
        }
    }
    parts.join("/")
}

/// The packages whose tests can notice a change of a file.
pub(super) fn noticing<'a>(packages: &'a [Package], file: &str) -> BTreeSet<&'a str> {
    let folders: Vec<_> = packages.iter().map(|package| package.folder.clone()).collect();
    let own =
        owner(&folders, file).and_then(|folder| packages.iter().find(|package| package.folder == *folder));
    let mut first: Vec<&Package> =
        packages.iter().filter(|package| package.includes.contains(file)).collect();
    // A page or a table in a package's folder is noticed by those that include it.
    first.extend(own.filter(|_| file.ends_with(".rs") || file.ends_with(".toml")));
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    let is_only_for_tests = own.is_some_and(|own| {
        let inside = file.strip_prefix(&own.folder).unwrap_or(file);
        TESTS.iter().any(|folder| format!("/{inside}").starts_with(folder))
    });
    while let Some(package) = first.pop() {
        if seen.insert(&package.name) && !is_only_for_tests {
            first.extend(packages.iter().filter(|other| other.needs.contains(&package.name)));
        }
    }
    let tested = |package: &&Package| package.tests_need.iter().any(|need| seen.contains(need.as_str()));
    let by_tests: Vec<_> = packages.iter().filter(|_| !is_only_for_tests).filter(tested).collect();
    seen.extend(by_tests.iter().map(|package| package.name.as_str()));
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(folder: &str, manifest: &str, source: &str) -> Package {
        let mut package = Package::of(folder, manifest).unwrap();
        package.includes.extend(included(&format!("{folder}src/lib.rs"), source));
        package
    }

    /// A core, a transport, a program, and tests of the core that use the transport.
    fn packages() -> Vec<Package> {
        vec![
            package(
                "core/",
                "[package]\nname = \"core\"\n[dev-dependencies]\ntransport = { path = \"../x\" }\n",
                "#[doc = include_str!(\"../docs/start.md\")]",
            ),
            package(
                "core/sim/",
                "[package]\nname = \"sim\"\n",
                "#[path = \"../../../tests/shared/claims.rs\"]",
            ),
            package("x/", "[package]\nname = \"transport\"\n[dependencies]\ncore.workspace = true\n", ""),
            package("x/bin/", "[package]\nname = \"program\"\n[dependencies]\ntransport = \"1\"\n", ""),
        ]
    }

    #[test]
    fn a_source_is_noticed_by_its_package_and_by_all_that_depend_on_it() {
        let packages = packages();
        let noticed = |file| noticing(&packages, file).into_iter().collect::<Vec<_>>();
        assert_eq!(noticed("core/src/lib.rs"), ["core", "program", "transport"]);
        assert_eq!(noticed("core/sim/src/lib.rs"), ["sim"]);
        assert_eq!(noticed("x/src/lib.rs"), ["core", "program", "transport"]);
        assert_eq!(noticed("x/bin/src/main.rs"), ["program"]);
    }

    #[test]
    fn tests_are_noticed_by_their_own_package_and_included_files_by_those_that_include_them() {
        let packages = packages();
        let noticed = |file| noticing(&packages, file).into_iter().collect::<Vec<_>>();
        assert_eq!(noticed("core/tests/one.rs"), ["core"]);
        assert_eq!(noticed("tests/shared/claims.rs"), ["sim"]);
        assert_eq!(noticed("core/docs/start.md"), ["core", "program", "transport"]);
        assert_eq!(noticed("core/docs/other.md"), Vec::<&str>::new());
    }
}
