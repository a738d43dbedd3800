use super::*;

fn word(line: usize, word: &'static str) -> Fault {
    Fault { line, what: What::Word(word) }
}

#[test]
fn a_forbidden_word_is_found_in_a_comment_a_string_and_a_page() {
    assert_eq!(faults_of_rust("fn x() {}\n/// Whoever waits.\n"), [word(2, "whoever")]);
    assert_eq!(faults_of_rust("fn x() { y(\"so many\\n\"); }"), [word(1, "so many")]);
    assert_eq!(faults_of_rust("let x = r#\"a \"mended\" key\"#;"), [word(1, "mended")]);
    assert_eq!(faults_of_rust("/* first\n he */"), [word(2, "he")]);
    assert_eq!(faults_of_page("Text.\n\n| a | in vain |"), [word(3, "in vain")]);
}

#[test]
fn a_phrase_is_found_across_a_line_end() {
    assert_eq!(faults_of_rust("// It waits so\n// long."), [word(1, "so long")]);
    assert_eq!(faults_of_page("waits so\nmany times"), [word(1, "so many")]);
}

#[test]
fn code_and_parts_of_words_are_no_faults() {
    for text in ["let he = 1; // the", "// `whoever`", "// so. Many", "let x = 'h'; let y: &'he str;"] {
        assert_eq!(faults_of_rust(text), [], "{text}");
    }
    assert_eq!(faults_of_rust("let x = '\"'; let whoever = '\\'';"), []);
    assert_eq!(faults_of_rust("so(); // one\nlong(); // two"), []);
    assert_eq!(faults_of_page("`he`\n\n```text\nhe\n```\nthe_he recommend so\n\nlong"), []);
}

#[test]
fn every_word_is_found_and_says_what_to_do() {
    for (phrase, instead) in FORBIDDEN {
        let found = faults_of_rust(&format!("// {}", phrase.to_uppercase()));
        assert!(found.contains(&word(1, phrase)), "{phrase}");
        assert_eq!(What::Word(phrase).to_string(), format!("{phrase:?}: {instead}"));
    }
}

#[test]
fn a_line_that_can_be_wrapped_is_wide_above_100_columns() {
    let wide = |columns: usize| format!("// word {}", "x".repeat(columns - 8));
    assert_eq!(faults_of_rust(&wide(100)), []);
    assert_eq!(faults_of_rust(&wide(101)), [Fault { line: 1, what: What::Wide(101) }]);
    // Code is for rustfmt.
    assert_eq!(faults_of_rust(&format!("let x = 1; {}", wide(101))), []);
    assert_eq!(faults_of_rust(&format!("/// ```text\n{}\n/// ```", wide(101))), []);
    let unbroken = "x".repeat(120);
    assert_eq!(faults_of_rust(&format!("/// {unbroken}")), []);
    assert_eq!(faults_of_page(&format!("- a {unbroken}")).len(), 1);
    assert_eq!(faults_of_page(&format!("[a]: {unbroken}")), []);
    assert_eq!(faults_of_page(&format!("[a]: b {unbroken}")).len(), 1);
    assert_eq!(faults_of_page(&format!("| a {unbroken}\n```\na {unbroken}\n```\n    a {unbroken}")), []);
}
