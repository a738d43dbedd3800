//! The changes that no test notices, each with the reason why that is right: `survivors.tsv`.

use std::collections::BTreeMap;

use crate::Outcome;

/// The reasons, by the names of the changes. Lines with `#` are comments.
pub(crate) fn read(text: &str) -> Outcome<BTreeMap<&str, &str>> {
    let mut reasons = BTreeMap::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (name, reason) = line.split_once('\t').ok_or_else(|| format!("no tab and reason: {line}"))?;
        if reason.trim().is_empty() {
            return Err(format!("no reason: {line}").into());
        }
        if reasons.insert(name, reason).is_some() {
            return Err(format!("named twice: {name}").into());
        }
    }
    Ok(reasons)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_a_name_and_a_reason() {
        let reasons = read("# comment\na.rs: b\tIt reserves room.\n").unwrap();
        assert_eq!(reasons.get("a.rs: b"), Some(&"It reserves room."));
        assert!(read("a.rs: b\n").is_err() && read("a\t \n").is_err() && read("a\tb\na\tc\n").is_err());
    }
}
