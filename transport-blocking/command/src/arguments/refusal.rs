//! clap's errors as sentences of ours. clap's own repeat the value that is wrong, which may be a
//! URL with a password, or a token.

use std::error::Error as _;
use std::ffi::OsString;

use clap::Command;
use clap::error::{ContextKind, ContextValue, Error, ErrorKind};

use super::Environment;

/// What is wrong with the command line `words`, and what to do, in one sentence.
pub(super) fn sentence(error: &Error, root: &mut Command, words: &[OsString]) -> String {
    // Only a command that was built knows its whole name for the usage.
    root.build();
    let first = words.get(1).and_then(|word| word.to_str());
    let subcommand = first.and_then(|word| root.find_subcommand(word)).cloned();
    let Some(mut subcommand) = subcommand else { return outside(error, root) };
    let name = subcommand.get_name().to_owned();
    let usage = subcommand.render_usage().to_string();
    let usage = usage.trim().trim_start_matches("Usage: ");
    let concerned = option(error, ContextKind::InvalidArg);
    match error.kind() {
        ErrorKind::UnknownArgument => match concerned {
            Some(option) if !is_behind_dashes(&option, words) => unknown(error, root, &subcommand, &option),
            _ => format!("There is one argument too many: write {usage}.{}", surplus(&name)),
        },
        ErrorKind::MissingRequiredArgument => {
            let missing = strings(error, ContextKind::InvalidArg);
            let missing = missing.first().map(|missing| bare(missing)).unwrap_or_default();
            let hint = if missing.starts_with('-') {
                format!(" quorlock {name} --help explains it.")
            } else {
                String::new()
            };
            format!("{missing} is missing: write {usage}.{hint}")
        }
        kind => {
            let Some(concerned) = concerned.or_else(|| placeholder(error)) else {
                return format!(
                    "An argument cannot be read; quorlock {name} --help shows how it is written."
                );
            };
            match kind {
                ErrorKind::TooManyValues => format!("{concerned} takes no value."),
                ErrorKind::ArgumentConflict => {
                    let prior = strings(error, ContextKind::PriorArg);
                    let prior: Vec<_> = prior.iter().map(|prior| bare(prior)).collect();
                    format!(
                        "{concerned} and {} contradict each other: give one of them.",
                        prior.join(" and ")
                    )
                }
                _ => match (error.source(), strings(error, ContextKind::ValidValue).as_slice()) {
                    (Some(reason), _) => format!("{concerned} {reason}."),
                    (None, []) => format!("{concerned} needs a value; quorlock {name} --help shows which."),
                    (None, valid) => format!("{concerned} needs one of these: {}.", valid.join(", ")),
                },
            }
        }
    }
}

/// Whether this word is behind `--`, where nothing is an option.
fn is_behind_dashes(option: &str, words: &[OsString]) -> bool {
    let dashes = words.iter().position(|word| word == "--");
    let place = words.iter().position(|word| word.as_encoded_bytes().starts_with(option.as_bytes()));
    matches!((dashes, place), (Some(dashes), Some(place)) if dashes < place)
}

/// The sentence about a command line that does not begin with a subcommand.
fn outside(error: &Error, root: &Command) -> String {
    let all: Vec<_> = root.get_subcommands().map(Command::get_name).collect();
    let example = "write quorlock run [OPTIONS] RESOURCE COMMAND, or quorlock --help";
    match (error.kind(), option(error, ContextKind::InvalidArg)) {
        (ErrorKind::UnknownArgument, Some(option)) => match owners(root, &option).as_slice() {
            [] => format!("There is no option {option}; quorlock --help lists all options."),
            owners @ [owner, ..] => {
                format!("Write {option} after {}: quorlock {owner} {option} ...", joined(owners, "or"))
            }
        },
        (ErrorKind::InvalidSubcommand, _) => {
            format!("The subcommands are {}: {example}.", joined(&all, "and"))
        }
        _ => format!("Nothing to do: {example}."),
    }
}

/// The sentence about an option that the subcommand does not have.
fn unknown(error: &Error, root: &Command, subcommand: &Command, option: &str) -> String {
    let name = subcommand.get_name();
    let suggested = strings(error, ContextKind::SuggestedArg);
    match (owners(root, option).as_slice(), suggested.first()) {
        ([], Some(suggested)) => {
            format!(
                "There is no option {option}; did you mean {}? quorlock {name} --help lists all.",
                bare(suggested)
            )
        }
        ([], None) => {
            let hint = if name == "run" { " Options of COMMAND go after it." } else { "" };
            format!("There is no option {option}; quorlock {name} --help lists its options.{hint}")
        }
        (owners, _) => format!(
            "{option} is an option of {}, not of {name}; quorlock {name} --help lists its options.",
            joined(owners, "and")
        ),
    }
}

/// A hint about arguments beyond those that a subcommand takes.
fn surplus(subcommand: &str) -> String {
    match subcommand {
        "acquire" => " To run a command under the lock, use quorlock run.".to_owned(),
        "extend" | "release" => format!(
            " The token belongs in the variable {}: every user of the machine can see arguments.",
            Environment::TOKEN
        ),
        "simulate" => " quorlock simulate --list names the scenarios.".to_owned(),
        _ => String::new(),
    }
}

/// The subcommands that have this option.
fn owners<'a>(root: &'a Command, option: &str) -> Vec<&'a str> {
    let is_it = |arg: &clap::Arg| match option.strip_prefix("--") {
        Some(long) => arg.get_long() == Some(long),
        None => arg.get_short().is_some_and(|short| option.strip_prefix('-') == Some(&short.to_string())),
    };
    let has_it = |command: &&Command| command.get_arguments().any(is_it);
    root.get_subcommands().filter(has_it).map(Command::get_name).collect()
}

/// The option that an error is about, if it has the form of an option: anything else may be a
/// secret.
fn option(error: &Error, kind: ContextKind) -> Option<String> {
    let named = strings(error, kind);
    let named = bare(named.first()?);
    let letters = named
        .strip_prefix("--")
        .or_else(|| named.strip_prefix('-').filter(|rest| rest.chars().count() == 1))?;
    let is_plain = letters.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '-');
    (is_plain && !letters.is_empty()).then(|| named.to_owned())
}

/// The positional argument that an error is about, such as `RESOURCE`.
fn placeholder(error: &Error) -> Option<String> {
    let named = strings(error, ContextKind::InvalidArg);
    let inner = named.first()?.trim_start_matches(['[', '<']).split([']', '>']).next()?;
    (inner.bytes().all(|byte| byte.is_ascii_uppercase()) && !inner.is_empty()).then(|| inner.to_owned())
}

/// Returns `--wait` for `--wait <DURATION>`, and `RESOURCE` for `<RESOURCE>`.
fn bare(argument: &str) -> &str {
    argument.split([' ', '=']).next().unwrap_or_default().trim_matches(['[', ']', '<', '>', '.'])
}

fn strings(error: &Error, kind: ContextKind) -> Vec<String> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => vec![text.clone()],
        Some(ContextValue::Strings(texts)) => texts.clone(),
        _ => Vec::new(),
    }
}

/// `run, acquire and extend`.
fn joined(names: &[&str], word: &str) -> String {
    match names.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, others)) => format!("{} {word} {last}", others.join(", ")),
        None => String::new(),
    }
}
