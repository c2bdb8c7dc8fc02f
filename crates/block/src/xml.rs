//! XML of others, before it is parsed.

/// Attributes that a tag here has, at most.
const MOST_ATTRIBUTES: usize = 64;

/// Namespaces that a text here declares, at most.
const MOST_NAMESPACES: usize = 16;

/// Whether a text has no more attributes in a tag, and no more namespaces, than any that is read
/// here: a parser compares each with each.
pub fn is_simple(text: &str) -> bool {
    if text.matches("xmlns").nth(MOST_NAMESPACES).is_some() {
        return false;
    }
    let (mut in_tag, mut quote, mut attributes) = (false, None, 0);
    for letter in text.bytes() {
        match (quote, letter) {
            (Some(open), _) if letter == open => quote = None,
            (Some(_), _) => {}
            (None, b'<') => (in_tag, attributes) = (true, 0),
            (None, b'>') => in_tag = false,
            (None, b'"' | b'\'') if in_tag => {
                quote = Some(letter);
                attributes += 1;
                if attributes > MOST_ATTRIBUTES {
                    return false;
                }
            }
            _ => {}
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_with_many_attributes_are_refused() {
        let tag = |count: usize, value: &str| {
            let attributes: String = (0..count).map(|nth| format!(" a{nth}={value}")).collect();
            format!("<r{attributes}/>")
        };
        for value in ["\"1\"", "'>'", "\"<\"", "'\"'", "\"'>\""] {
            assert!(is_simple(&tag(MOST_ATTRIBUTES, value)), "{value}");
            assert!(!is_simple(&tag(MOST_ATTRIBUTES + 1, value)), "{value}");
        }
        assert!(is_simple(&format!("<r>{}</r>", tag(60, "'1'").repeat(500))));
        assert!(is_simple("<r>it's \"quoted\" text</r>"));
        let nested = |count| "<a xmlns:b='c'>".repeat(count);
        assert!(is_simple(&nested(16)) && !is_simple(&nested(17)));
    }
}
