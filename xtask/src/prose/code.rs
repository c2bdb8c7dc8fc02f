//! The prose of Rust: doc comments, and texts in quotation marks.

use super::{Count, files, sentences};
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Words from which on a text is taken for prose.
const FEWEST_WORDS: usize = 4;

/// The program's sources, relative to `root`, without tests.
pub(super) fn paths(root: &Path) -> Vec<PathBuf> {
    let mut paths = files(root, "src", "rs");
    let crates = ["crates", "bindings"].map(|folder| files(root, folder, "rs"));
    for path in crates.into_iter().flatten() {
        let is_product = path
            .components()
            .nth(2)
            .is_some_and(|c| c.as_os_str() == "src");
        let is_test = path
            .iter()
            .any(|part| part == "tests" || part == "tests.rs");
        if is_product && !is_test {
            paths.push(path);
        }
    }
    paths
}

/// What a file says.
#[derive(Default)]
pub(super) struct Said {
    pub(super) comments: Count,
    pub(super) texts: Count,
    /// The texts, each with its place.
    pub(super) listed: String,
}

/// Counts the comments and the texts of a file.
pub(super) fn count(root: &Path, path: &Path) -> Result<Said, String> {
    let source = std::fs::read_to_string(root.join(path)).map_err(|error| error.to_string())?;
    let found = Found::of(&source)?;
    let mut said = Said::default();
    for (line, comment) in found.comments {
        for paragraph in paragraphs(&comment) {
            said.comments.paragraph(path, line, &paragraph);
        }
    }
    let is_prose = |(_, text): &(usize, String)| sentences::words(text) >= FEWEST_WORDS;
    for (line, text) in found.texts.into_iter().filter(is_prose) {
        let place = format!("{}:{line}", path.display());
        said.listed.push_str(&format!("{place}\n{text}\n\n"));
        for paragraph in paragraphs(&text) {
            said.texts.paragraph(path, line, &paragraph);
        }
    }
    Ok(said)
}

/// The texts in quotation marks of a source, each with its line. Those of tests are left out.
///
/// # Errors
/// What is wrong with the source, if it is not Rust.
pub(crate) fn texts(source: &str) -> Result<Vec<(usize, String)>, String> {
    Ok(Found::of(source)?.texts)
}

/// The paragraphs of a text, its code left out.
fn paragraphs(text: &str) -> Vec<String> {
    let mut paragraphs = vec![String::new()];
    let mut is_code = false;
    for line in text.lines().map(str::trim) {
        if line.starts_with("```") {
            is_code = !is_code;
        } else if line.is_empty() || line.starts_with('#') || line.starts_with('|') {
            paragraphs.push(String::new());
        } else if !is_code {
            let last = paragraphs.last_mut().expect("one at least");
            last.push_str(line);
            last.push(' ');
        }
    }
    paragraphs
}

#[derive(Default)]
struct Found {
    comment: (usize, String),
    comments: Vec<(usize, String)>,
    texts: Vec<(usize, String)>,
}

impl Found {
    fn of(source: &str) -> Result<Self, String> {
        let tokens = TokenStream::from_str(source).map_err(|error| error.to_string())?;
        let mut found = Self::default();
        found.tokens(tokens);
        found.end_of_comment();
        Ok(found)
    }

    fn tokens(&mut self, tokens: TokenStream) {
        let mut is_attribute = false;
        let mut skip = false;
        for token in tokens {
            match token {
                TokenTree::Punct(punct) => {
                    let was = is_attribute;
                    is_attribute = punct.as_char() == '#' || (was && punct.as_char() == '!');
                    // What a test is of ends with its body, or with a semicolon.
                    skip &= punct.as_char() != ';';
                }
                TokenTree::Group(group) if is_attribute => {
                    is_attribute = false;
                    let text = group.stream().to_string();
                    if let Some(comment) = text.strip_prefix("doc =") {
                        self.comment(group.span().start().line, comment.trim());
                        continue;
                    }
                    self.end_of_comment();
                    skip |= text.starts_with("cfg (test") || text == "test";
                    self.tokens(group.stream());
                }
                TokenTree::Group(group) => {
                    self.end_of_comment();
                    if !skip {
                        self.tokens(group.stream());
                    }
                    skip &= group.delimiter() != Delimiter::Brace;
                }
                TokenTree::Literal(literal) => {
                    self.end_of_comment();
                    let text = unquoted(&literal.to_string()).filter(|_| !skip);
                    let line = literal.span().start().line;
                    self.texts.extend(text.map(|text| (line, text)));
                }
                TokenTree::Ident(_) => {
                    is_attribute = false;
                    self.end_of_comment();
                }
            }
        }
    }

    /// Adds a line of a comment.
    fn comment(&mut self, line: usize, quoted: &str) {
        let Some(text) = unquoted(quoted) else { return };
        if self.comment.1.is_empty() {
            self.comment.0 = line;
        }
        self.comment.1.push_str(&text);
        self.comment.1.push('\n');
    }

    fn end_of_comment(&mut self) {
        if !self.comment.1.is_empty() {
            self.comments.push(std::mem::take(&mut self.comment));
        }
    }
}

/// What a string literal holds; `None` for other literals.
fn unquoted(literal: &str) -> Option<String> {
    syn::parse_str::<syn::LitStr>(literal)
        .ok()
        .map(|text| text.value())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_texts_are_found_and_tests_are_not() {
        let source = r#"
            /// One line
            /// and its end.
            fn say() { println!("this is what it says"); let _ = b"bytes are no text here"; }
            #[cfg(test)]
            mod tests { const X: &str = "a test's text is not counted"; }
            #[test]
            fn t() { panic!("nor is this one of them"); }
        "#;
        let found = Found::of(source).unwrap();
        let texts: Vec<&str> = found.texts.iter().map(|(_, text)| &text[..]).collect();
        assert_eq!(texts, ["this is what it says"]);
        assert_eq!(found.comments[0].1, " One line\n and its end.\n");
    }
}
