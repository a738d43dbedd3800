//! `quorlock completions` and `quorlock man`: descriptions of the command line that clap generates.

use std::fs;
use std::io;

use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};

use crate::arguments::{self, CompletionsArguments, ManArguments};
use crate::ending::UNWRITTEN;
use crate::output::{Level, Output, Verbosity, print};

/// Prints the script. Returns the exit code.
pub(crate) fn completions(arguments: &CompletionsArguments) -> u8 {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut arguments::described(), "quorlock", &mut script);
    print(&String::from_utf8_lossy(&script), 0)
}

/// Writes the pages. Returns the exit code.
pub(crate) fn pages(arguments: &ManArguments) -> u8 {
    let mut root = arguments::described();
    // Subcommands know their whole names only after this.
    root.build();
    for command in std::iter::once(&root).chain(root.get_subcommands()) {
        let man = Man::new(command.clone());
        let file = arguments.directory.join(man.get_filename());
        let written = page(&man, command).and_then(|page| fs::write(&file, page));
        if let Err(error) = written {
            let sentence = format!("{} cannot be written: {error}", file.display());
            Output::new(Verbosity::Normal(0), false).message(Level::Error, &sentence);
            return UNWRITTEN;
        }
    }
    0
}

/// The page of one command. The parts after the options in its help become separate sections with
/// their lines unchanged, because they are tables and scripts.
fn page(man: &Man, command: &Command) -> io::Result<Vec<u8>> {
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    let behind = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let mut sections = Roff::new();
    let mut is_open = false;
    for line in behind.lines() {
        if let Some(heading) = line.strip_suffix(':').filter(|line| !line.starts_with(' ')) {
            if is_open {
                sections.control("fi", []);
            }
            sections.control("SH", [heading.to_uppercase().as_str()]);
            sections.control("nf", []);
            is_open = true;
        } else if !line.is_empty() {
            sections.text([roman(line)]);
        }
    }
    if is_open {
        sections.control("fi", []);
    }
    sections.to_writer(&mut page)?;
    Ok(page)
}
