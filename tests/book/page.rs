//! A page of the book as its tests see it: what is typed, what is printed
//! then, and where links lead.
//!
//! Commands stand in blocks of kind `console`, behind `$ `. A comment right
//! before a block, which readers do not see, says what is special about it:
//!
//! ```text
//! <!-- not run: it takes minutes -->   only its options are checked
//! <!-- needs: fuse, mkfs.ext4 -->      the rest of the page is skipped where these are not
//! <!-- varies -->                      figures differ; rows and headings must be there, in order
//! ```

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// A file of Markdown.
pub struct Page {
    /// Relative to the repository's root.
    pub path: PathBuf,
    text: String,
}

/// Commands that are typed one after another.
#[derive(Debug, Default)]
pub struct Block {
    /// Why none of it is run, where that is so.
    pub not_run: Option<String>,
    /// What has to be there.
    pub needs: Vec<String>,
    /// Whether figures differ each time.
    pub varies: bool,
    /// The commands in their order.
    pub steps: Vec<Step>,
}

/// A command and what it prints.
#[derive(Debug)]
pub struct Step {
    /// Line of the page, from 1.
    pub line: usize,
    /// As the shell gets it, with all of its lines.
    pub command: String,
    /// What the page shows of the output; nothing where it shows none.
    pub output: Vec<String>,
}

/// A link that is no address on the net.
#[derive(Debug)]
pub struct Link {
    /// Line of the page, from 1.
    pub line: usize,
    /// The file it leads to, as the page says it; empty within the page.
    pub file: String,
    /// The heading in that file.
    pub anchor: Option<String>,
}

/// The repository's root.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The README and all pages of the book.
pub fn pages() -> Vec<Page> {
    let mut found = vec![PathBuf::from("README.md")];
    let mut folders = vec![PathBuf::from("docs")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(root().join(&folder)).unwrap() {
            let entry = entry.unwrap();
            let path = folder.join(entry.file_name());
            match entry.file_type().unwrap().is_dir() {
                true => folders.push(path),
                false if path.extension().is_some_and(|kind| kind == "md") => found.push(path),
                false => {}
            }
        }
    }
    found.sort();
    found.into_iter().map(Page::read).collect()
}

impl Page {
    fn read(path: PathBuf) -> Self {
        let text = std::fs::read_to_string(root().join(&path)).unwrap();
        Self { path, text }
    }

    /// A place in the page, as compilers say it.
    pub fn place(&self, line: usize) -> String {
        format!("{}:{line}", self.path.display())
    }

    fn events(&self) -> impl Iterator<Item = (Event<'_>, Range<usize>)> {
        Parser::new_ext(&self.text, Options::ENABLE_TABLES).into_offset_iter()
    }

    fn line(&self, at: usize) -> usize {
        self.text[..at].matches('\n').count() + 1
    }

    /// The blocks of commands.
    ///
    /// # Panics
    /// Where a comment says what nobody understands, and where a command stands
    /// in a block of another kind, in which nobody would try it.
    pub fn blocks(&self) -> Vec<Block> {
        let mut blocks = Vec::new();
        let mut comment = String::new();
        // Kind and first line of the block that the parser is in.
        let mut code: Option<(String, usize, String)> = None;
        for (event, range) in self.events() {
            match event {
                Event::Html(text) => comment.push_str(&text),
                Event::Start(Tag::CodeBlock(kind)) => {
                    let (kind, fence) = match kind {
                        CodeBlockKind::Fenced(kind) => (kind.into_string(), 1),
                        CodeBlockKind::Indented => (String::new(), 0),
                    };
                    code = Some((kind, self.line(range.start) + fence, String::new()));
                }
                Event::Text(text) => {
                    if let Some((_, _, lines)) = &mut code {
                        lines.push_str(&text);
                    }
                }
                Event::End(TagEnd::CodeBlock) => {
                    let (kind, first, lines) = code.take().unwrap();
                    match kind.as_str() {
                        "console" => {
                            let mut block = self.marked(&comment, first);
                            block.steps = self.steps(&lines, first);
                            blocks.push(block);
                        }
                        _ => self.refuse_commands(&lines, first),
                    }
                    comment.clear();
                }
                Event::Start(Tag::HtmlBlock) | Event::End(TagEnd::HtmlBlock) => {}
                _ => comment.clear(),
            }
        }
        blocks
    }

    fn marked(&self, comment: &str, line: usize) -> Block {
        let mut block = Block::default();
        for mark in comment
            .lines()
            .map(str::trim)
            .filter(|mark| !mark.is_empty())
        {
            let inner = mark
                .strip_prefix("<!--")
                .and_then(|mark| mark.strip_suffix("-->"))
                .unwrap_or_default();
            match inner.trim().split_once(": ") {
                Some(("not run", why)) => block.not_run = Some(why.to_owned()),
                Some(("needs", what)) => block.needs.extend(what.split(", ").map(str::to_owned)),
                None if inner.trim() == "varies" => block.varies = true,
                _ => panic!("{}: `{mark}` is no mark of a block", self.place(line)),
            }
        }
        block
    }

    fn steps(&self, text: &str, first: usize) -> Vec<Step> {
        let mut steps: Vec<Step> = Vec::new();
        // What the command goes on to: a line after `\`, or the end of what is fed to it.
        let mut goes_on = false;
        let mut fed: Option<String> = None;
        for (line, text) in (first..).zip(text.lines()) {
            if goes_on || fed.is_some() {
                let step = steps.last_mut().unwrap();
                step.command.push('\n');
                step.command.push_str(text);
                if fed.as_deref() == Some(text) {
                    fed = None;
                }
                goes_on = fed.is_none() && text.ends_with('\\');
            } else if let Some(command) = text.strip_prefix("$ ") {
                goes_on = command.ends_with('\\');
                fed = command
                    .split_once("<<'")
                    .and_then(|(_, rest)| rest.split_once('\''))
                    .map(|(word, _)| word.to_owned());
                steps.push(Step {
                    line,
                    command: command.to_owned(),
                    output: Vec::new(),
                });
            } else {
                let step = steps.last_mut();
                let step = step.unwrap_or_else(|| panic!("{}: no `$ `", self.place(line)));
                step.output.push(text.trim_end().to_owned());
            }
        }
        for step in &mut steps {
            while step.output.last().is_some_and(String::is_empty) {
                step.output.pop();
            }
        }
        steps
    }

    fn refuse_commands(&self, text: &str, first: usize) {
        for (line, text) in (first..).zip(text.lines()) {
            let typed = text.trim_start_matches("$ ");
            let is_command = ["cryptmark ", "cargo "]
                .iter()
                .any(|it| typed.starts_with(it));
            assert!(
                !is_command,
                "{}: commands stand in a block of kind `console`, behind `$ `",
                self.place(line)
            );
        }
    }

    /// What is between single backquotes.
    #[allow(dead_code)] // src/cli/book.rs looks at sentences.
    pub fn code_spans(&self) -> Vec<(usize, String)> {
        let spans = self.events().filter_map(|(event, range)| match event {
            Event::Code(text) => Some((self.line(range.start), text.into_string())),
            _ => None,
        });
        spans.collect()
    }

    /// The links to files and headings.
    pub fn links(&self) -> Vec<Link> {
        let links = self.events().filter_map(|(event, range)| match event {
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                let (file, anchor) = match dest_url.split_once('#') {
                    Some((file, anchor)) => (file, Some(anchor.to_owned())),
                    None => (&*dest_url, None),
                };
                (!dest_url.contains("://")).then(|| Link {
                    line: self.line(range.start),
                    file: file.to_owned(),
                    anchor,
                })
            }
            _ => None,
        });
        links.collect()
    }

    /// The names under which headings can be linked to, as mdBook and the hosts
    /// of repositories make them.
    pub fn anchors(&self) -> BTreeSet<String> {
        let mut anchors = BTreeSet::new();
        let mut heading: Option<String> = None;
        for (event, _) in self.events() {
            match event {
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::Text(text) | Event::Code(text) => {
                    if let Some(heading) = &mut heading {
                        heading.push_str(&text);
                    }
                }
                Event::End(TagEnd::Heading(_)) => {
                    let name: String = heading
                        .take()
                        .unwrap()
                        .to_lowercase()
                        .chars()
                        .filter_map(|sign| match sign {
                            ' ' => Some('-'),
                            sign if sign.is_alphanumeric() || "_-".contains(sign) => Some(sign),
                            _ => None,
                        })
                        .collect();
                    let free = (0..)
                        .map(|number| match number {
                            0 => name.clone(),
                            number => format!("{name}-{number}"),
                        })
                        .find(|name| !anchors.contains(name));
                    anchors.extend(free);
                }
                _ => {}
            }
        }
        anchors
    }
}

/// The calls of `program` in a command of the shell, each with its arguments.
/// What is redirected comes last in our pages.
pub fn calls(command: &str, program: &str) -> Vec<Vec<String>> {
    // What a document is fed with is no command.
    let command = match command.split_once("<<'") {
        Some((command, _)) => command,
        None => command,
    };
    let mut calls = vec![Vec::new()];
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut signs = command.chars();
    while let Some(sign) = signs.next() {
        let current = calls.last_mut().unwrap();
        match (quote, sign) {
            (Some(open), sign) if sign == open => quote = None,
            (Some(_), sign) => word.get_or_insert_default().push(sign),
            (None, '\'' | '"') => {
                quote = Some(sign);
                word.get_or_insert_default();
            }
            (None, '\\') => match signs.next() {
                None | Some('\n') => {}
                Some(sign) => word.get_or_insert_default().push(sign),
            },
            (None, '|' | '&' | ';' | '<' | '>' | '\n') => {
                current.extend(word.take());
                calls.push(Vec::new());
            }
            (None, ' ') => current.extend(word.take()),
            (None, sign) => word.get_or_insert_default().push(sign),
        }
    }
    calls.last_mut().unwrap().extend(word);
    calls.retain(|call: &Vec<String>| call.first().is_some_and(|first| first == program));
    calls
}
