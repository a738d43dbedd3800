//! What the command says about itself, as files: completions and manual pages. And the texts and
//! examples of the repository, for readers who do not have it.

use std::fs;
use std::path::{Path, PathBuf};

use super::archive::copy;
use super::binary;
use crate::Outcome;
use crate::process::{program, read, root, run};

const REPOSITORY: &str = env!("CARGO_PKG_REPOSITORY");

/// The shells that get completions, and where each looks for them by default.
const SHELLS: [(&str, &str); 3] = [("bash", "quorlock"), ("fish", "quorlock.fish"), ("zsh", "_quorlock")];

/// The licences, in the root of the repository.
pub(super) const LICENCES: [&str; 2] = ["LICENSE-APACHE", "LICENSE-MIT"];
/// The folder of the command's crate.
pub(super) const COMMAND: &str = "transport-blocking/command";

/// Writes them into a folder beside the binary, where cargo-deb finds them.
pub(super) fn write(quorlock: &Path) -> Outcome<PathBuf> {
    let folder = binary::folder().join("pages");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    let quorlock = quorlock.to_string_lossy();
    fs::create_dir_all(folder.join("man/man1"))?;
    run(program(&quorlock, &["man"]).arg(folder.join("man/man1")))?;
    for (shell, file) in SHELLS {
        let completions = folder.join("completions").join(shell);
        fs::create_dir_all(&completions)?;
        fs::write(completions.join(file), read(&mut program(&quorlock, &["completions", shell]))?)?;
    }
    let text = |name: &str| fs::read_to_string(root().join(name));
    fs::write(folder.join("README.md"), absolute(&text(&format!("{COMMAND}/README.md"))?))?;
    fs::write(folder.join("CHANGELOG.md"), absolute(&text("CHANGELOG.md")?))?;
    copy(&root().join(COMMAND).join("deploy"), &folder.join("deploy"))?;
    Ok(folder)
}

/// The page with links to the repository in place of links to its files.
fn absolute(page: &str) -> String {
    let mut text = page.to_owned();
    for before in ["](", "]: "] {
        let mut parts = text.split(before);
        let mut linked = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            linked += before;
            if !part.starts_with("http") && !part.starts_with('#') {
                linked += &format!("{REPOSITORY}/blob/v{}/", super::VERSION);
            }
            linked += part.strip_prefix("../../").unwrap_or(part);
        }
        text = linked;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_to_files_lead_to_the_repository() {
        let page = "[a](README.md#b) [c][d] [e](https://f) [g](#h)\n[d]: ../../core/i.md\n[j]: https://k\n";
        let to = format!("{REPOSITORY}/blob/v{}", super::super::VERSION);
        let expected = format!(
            "[a]({to}/README.md#b) [c][d] [e](https://f) [g](#h)\n[d]: {to}/core/i.md\n[j]: https://k\n"
        );
        assert_eq!(absolute(page), expected);
    }
}
