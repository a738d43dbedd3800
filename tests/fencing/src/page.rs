//! What the page about fencing shows.

const PAGE: &str = include_str!("../../../core/docs/fencing.md");

/// The SQL statements of the page, in their order: for a table whose rows have their own fence,
/// the table and the write; for a fence of its own, the table and the check.
///
/// # Panics
///
/// If the page has another number of statements.
pub fn statements() -> [&'static str; 4] {
    let mut blocks = blocks("sql").into_iter();
    let statements = [(); 4].map(|()| blocks.next().expect("the page has four statements"));
    assert_eq!(blocks.next(), None, "the page has more statements than are looked at");
    statements
}

/// The page's blocks in this language, without their last line feed.
fn blocks(language: &str) -> Vec<&'static str> {
    let begin = format!("\n```{language}\n");
    let blocks = PAGE.split(begin.as_str()).skip(1);
    blocks.filter_map(|rest| rest.split_once("\n```\n")).map(|(block, _)| block).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLES: [&str; 2] =
        [include_str!("../examples/sqlite.rs"), include_str!("../examples/postgres.rs")];

    #[test]
    fn every_statement_of_the_page_is_that_of_an_example() {
        for statement in statements() {
            let literal = format!(": &str = \"\\\n{statement}\";\n");
            assert!(EXAMPLES.iter().any(|example| example.contains(&literal)), "{statement}");
        }
    }

    #[test]
    fn every_program_of_the_page_is_a_part_of_an_example() {
        let programs = blocks("rust");
        assert_eq!(programs.len(), 2);
        for program in programs {
            let part = format!("\n{program}\n");
            assert!(EXAMPLES.iter().any(|example| example.contains(&part)), "{program}");
        }
    }
}
