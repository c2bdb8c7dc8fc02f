//! The prose of Markdown: paragraphs and items, without code, tables and headings.

use super::{Count, files};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use std::path::{Path, PathBuf};

/// The README and the pages of docs/, relative to `root`.
pub(super) fn paths(root: &Path) -> Vec<PathBuf> {
    let mut paths = vec![PathBuf::from("README.md")];
    paths.extend(files(root, "docs", "md"));
    paths
}

/// Counts one page.
pub(super) fn count(path: &Path, text: &str) -> Count {
    let mut count = Count {
        bytes: text.len(),
        ..Count::default()
    };
    let mut inside = Vec::new();
    let mut paragraph = String::new();
    for (event, range) in Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter() {
        match event {
            Event::Start(tag) => {
                let is_block = !matches!(
                    tag,
                    Tag::Emphasis | Tag::Strong | Tag::Link { .. } | Tag::Image { .. }
                );
                if is_block {
                    // An item's text has no paragraph of its own in a tight list.
                    let line = line_of(text, range.start);
                    count.paragraph(path, line, &std::mem::take(&mut paragraph));
                }
                inside.push(tag.to_end());
                if matches!(tag, Tag::Paragraph) {
                    text[range].lines().for_each(|line| count.line(line));
                }
            }
            Event::End(tag) => {
                inside.pop();
                let ends_text = matches!(
                    tag,
                    TagEnd::Paragraph | TagEnd::Item | TagEnd::Heading(_) | TagEnd::TableCell
                );
                let text_of_it = match ends_text {
                    true => std::mem::take(&mut paragraph),
                    false => continue,
                };
                if matches!(tag, TagEnd::Paragraph | TagEnd::Item) {
                    let line = line_of(text, range.start);
                    count.paragraph(path, line, &text_of_it);
                }
            }
            Event::Text(_) if inside.iter().any(|tag| matches!(tag, TagEnd::CodeBlock)) => {}
            Event::Text(part) => paragraph.push_str(&part),
            // Code is one word, whatever is in it.
            Event::Code(code) => {
                let is_word = code.contains(char::is_alphanumeric);
                paragraph.push_str(if is_word { "`x`" } else { "" });
            }
            Event::SoftBreak | Event::HardBreak => paragraph.push(' '),
            _ => {}
        }
    }
    count
}

fn line_of(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_prose_is_counted() {
        let page = "# A heading that counts for nothing\n\nOne `cmd --x y` here.\n\n\
            | a | b |\n|---|---|\n| this is | a table |\n\n```console\n$ not this\n```\n\n\
            * An item of five words\n* [A link](url.md) is two. Another\n  sentence.\n";
        let count = count(Path::new("page.md"), page);
        assert_eq!(count.words, [3, 5, 4, 2]);
        assert_eq!(count.longest_line, 21);
    }
}
