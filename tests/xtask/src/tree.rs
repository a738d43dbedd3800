//! Copies of the working tree.

use std::fs;
use std::path::Path;

use crate::Outcome;
use crate::process::{files, root};

/// Copies the working tree, and returns the names of its files. A file that has not changed since
/// the last copy is left as it is, so that cargo does not build it again.
pub(crate) fn copy(tree: &Path) -> Outcome<Vec<String>> {
    let names = files()?;
    if tree.exists() {
        remove_others(tree, tree, &names)?;
    }
    for name in &names {
        let (from, to) = (root().join(name), tree.join(name));
        if fs::read(&to).ok() != Some(fs::read(&from)?) {
            fs::create_dir_all(to.parent().ok_or("a file is in a folder")?)?;
            fs::copy(&from, &to)?;
        }
    }
    Ok(names)
}

/// Removes the files of the copy that the workspace does not have any more.
fn remove_others(tree: &Path, folder: &Path, names: &[String]) -> Outcome {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            remove_others(tree, &path, names)?;
        } else {
            let name = path.strip_prefix(tree)?.to_string_lossy().into_owned();
            if names.binary_search(&name).is_err() {
                fs::remove_file(&path)?;
            }
        }
    }
    Ok(())
}
