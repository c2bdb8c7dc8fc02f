//! Phrases that do not belong into the project's texts.

/// Words and groups of words, in lower case.
const BANNED: [&str; 18] = [
    "is no",
    "are no longer than",
    "possible are",
    "leave away",
    "left away",
    "leaves away",
    "shall",
    "for ever",
    "nobody",
    "somebody",
    "anybody",
    "who wants",
    "who needs",
    "for want of",
    "in vain",
    "goes without",
    "is at home",
    "the issue wins",
];

/// "is no" is right before these: "is no longer", "is no more than".
const AFTER_NO: [&str; 5] = ["longer", "more", "less", "fewer", "larger"];

/// And behind this one: "there is no room".
const BEFORE_NO: &str = "there";

/// Relative clauses that no sentence begins with, unless it is a question.
const FIRST_WORDS: [&str; 4] = ["what", "who", "whoever", "whatever"];

/// The banned phrases in `sentence`.
pub(super) fn banned(sentence: &str) -> Vec<&'static str> {
    let words: Vec<String> = sentence
        .split(|c: char| !(c.is_alphanumeric() || c == '\''))
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    let at = |phrase: &str| {
        let phrase: Vec<&str> = phrase.split(' ').collect();
        let found = words.windows(phrase.len()).position(|part| part == phrase);
        found.map(|first| first + phrase.len())
    };
    let is_right = |end: usize| {
        let next = words.get(end).map(String::as_str);
        let before = end.checked_sub(3).map(|at| words[at].as_str());
        next.is_some_and(|next| AFTER_NO.contains(&next)) || before == Some(BEFORE_NO)
    };
    let mut found: Vec<_> = BANNED
        .into_iter()
        .filter(|phrase| at(phrase).is_some_and(|end| *phrase != "is no" || !is_right(end)))
        .collect();
    let first = words.first().map(String::as_str).unwrap_or_default();
    let is_sentence = sentence.ends_with('.') && words.len() > 4;
    if is_sentence && FIRST_WORDS.contains(&first) {
        found.push("begins with a relative clause");
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn banned_phrases_are_found_as_whole_words() {
        for (sentence, expected) in [
            ("This is no volume.", &["is no"][..]),
            ("It is no longer there.", &[]),
            ("There is no room.", &[]),
            ("It is not shallow.", &[]),
            ("A key shall be kept, by nobody.", &["shall", "nobody"]),
            (
                "What could not be run is counted.",
                &["begins with a relative clause"],
            ),
            ("What does encryption cost on this disk?", &[]),
            ("What is there", &[]),
        ] {
            assert_eq!(banned(sentence), expected, "{sentence}");
        }
    }
}
