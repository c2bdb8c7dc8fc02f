//! Sentences and words.

/// Words before which a full stop ends no sentence.
const ABBREVIATIONS: [&str; 9] = [
    "e.g.", "i.e.", "etc.", "cf.", "vs.", "approx.", "no.", "No.", "sec.",
];

/// The sentences of a paragraph.
pub(super) fn of(paragraph: &str) -> Vec<&str> {
    let mut sentences = Vec::new();
    let mut start = 0;
    for (at, c) in paragraph.char_indices() {
        if !matches!(c, '.' | '!' | '?') {
            continue;
        }
        let end = at + c.len_utf8();
        // Brackets and quotation marks that close belong to it.
        let closing = |c: char| matches!(c, ')' | '"' | '”' | '*' | '`' | '_');
        let rest = paragraph[end..].trim_start_matches(closing);
        let ends_line = rest.is_empty() || rest.starts_with(char::is_whitespace);
        let next = rest.trim_start().chars().next();
        let begins = next.is_none_or(|c| !c.is_lowercase());
        let last_word = paragraph[start..end].rsplit(char::is_whitespace).next();
        let is_short = last_word.is_some_and(|word| ABBREVIATIONS.contains(&word));
        if ends_line && begins && !is_short {
            let end = paragraph.len() - rest.len();
            sentences.push(paragraph[start..end].trim());
            start = end;
        }
    }
    sentences.push(paragraph[start..].trim());
    sentences.retain(|sentence| words(sentence) > 0);
    sentences
}

/// How many words there are: runs of characters with a letter or a digit.
pub(super) fn words(sentence: &str) -> usize {
    let is_word = |word: &&str| word.contains(char::is_alphanumeric);
    sentence.split_whitespace().filter(is_word).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_paragraph_falls_into_its_sentences() {
        for (paragraph, expected) in [
            ("One. Two!", &["One.", "Two!"][..]),
            ("It is 3.5 µs long", &["It is 3.5 µs long"]),
            (
                "Take one, e.g. AES. Go on.",
                &["Take one, e.g. AES.", "Go on."],
            ),
            ("(A whole one.) Another.", &["(A whole one.)", "Another."]),
            ("See docs/GUIDE.md for it.", &["See docs/GUIDE.md for it."]),
            (" — ", &[]),
        ] {
            assert_eq!(of(paragraph), expected);
        }
        assert_eq!(words("AES-256 costs 3.1 % – or less"), 5);
    }
}
