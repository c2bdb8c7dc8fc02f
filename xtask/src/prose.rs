//! `cargo xtask prose`: how long the sentences of the project are, which phrases its
//! style rules out, and which lines are too long.
//!
//! The README and the pages of docs/ have limits, which fail. Comments and the texts
//! in the code are counted. `target/messages.txt` lists the texts, to be read in one go, and
//! the banned phrases of comments.

mod code;
mod pages;
mod phrases;
mod sentences;

pub(crate) use code::texts;

use crate::root;
use std::path::{Path, PathBuf};

/// Limits of the pages, in words a sentence.
const MEDIAN: usize = 16;
const NINETIETH: usize = 30;

/// Characters in a line of a page.
const COLUMNS: usize = 100;

/// What was counted in one text or in many.
#[derive(Default)]
struct Count {
    /// Words of each sentence.
    words: Vec<usize>,
    semicolons: usize,
    colons: usize,
    /// Characters of the longest line of prose.
    longest_line: usize,
    long_lines: usize,
    bytes: usize,
    /// Where a banned phrase is, and which.
    banned: Vec<String>,
}

impl Count {
    /// Counts the sentences of `paragraph`, which is on or near `line` of `path`.
    fn paragraph(&mut self, path: &Path, line: usize, paragraph: &str) {
        for sentence in sentences::of(paragraph) {
            self.words.push(sentences::words(sentence));
            self.semicolons += sentence.matches(';').count();
            self.colons += sentence.matches(':').count();
            for phrase in phrases::banned(sentence) {
                let place = format!("{}:{line}: {phrase}: {sentence}", path.display());
                self.banned.push(place);
            }
        }
    }

    fn line(&mut self, line: &str) {
        let columns = line.chars().count();
        self.longest_line = self.longest_line.max(columns);
        self.long_lines += usize::from(columns > COLUMNS);
    }

    fn add(&mut self, other: &Self) {
        self.words.extend(&other.words);
        self.semicolons += other.semicolons;
        self.colons += other.colons;
        self.longest_line = self.longest_line.max(other.longest_line);
        self.long_lines += other.long_lines;
        self.bytes += other.bytes;
        self.banned.extend_from_slice(&other.banned);
    }

    /// The sentence length that `percent` of all sentences do not exceed.
    fn percentile(&self, percent: usize) -> usize {
        let mut words = self.words.clone();
        words.sort_unstable();
        let last = words.len().saturating_sub(1);
        words.get(last * percent / 100).copied().unwrap_or_default()
    }

    fn row(&self, name: &str) -> String {
        let each = |count: usize| count as f64 / self.words.len().max(1) as f64;
        format!(
            "{name:42} {:>6} {:>7} {:>4} {:>6.2} {:>6.2} {:>7} {:>6} {:>6} {:>7}",
            self.words.len(),
            self.percentile(50),
            self.percentile(90),
            each(self.semicolons),
            each(self.colons),
            self.longest_line,
            self.long_lines,
            self.banned.len(),
            self.bytes,
        )
    }
}

const HEADER: &str = "\
                                           sent-  median  90 %  semi-  colons longest  long  banned
                                           ences   words words  colons  each     line lines phrases   bytes";

/// Counts everything, and checks the pages.
pub fn run() -> bool {
    let root = root();
    println!("{HEADER}");
    let mut pages = Count::default();
    for path in pages::paths(&root) {
        let Ok(text) = std::fs::read_to_string(root.join(&path)) else {
            eprintln!("{} cannot be read", path.display());
            return false;
        };
        let page = pages::count(&path, &text);
        println!("{}", page.row(&path.display().to_string()));
        pages.add(&page);
    }
    println!("{}", pages.row("README and docs"));

    let mut comments = Count::default();
    let mut texts = Count::default();
    let mut listed = String::new();
    for path in code::paths(&root) {
        match code::count(&root, &path) {
            Ok(said) => {
                comments.add(&said.comments);
                texts.add(&said.texts);
                listed.push_str(&said.listed);
            }
            Err(error) => {
                eprintln!("{}: {error}", path.display());
                return false;
            }
        }
    }
    println!("{}", comments.row("doc comments"));
    println!("{}", texts.row("help texts and messages"));
    for place in &texts.banned {
        println!("{place}");
    }
    listed.push_str("Banned phrases in doc comments\n\n");
    listed.extend(comments.banned.iter().map(|place| format!("{place}\n")));
    let page = root.join("target/messages.txt");
    match std::fs::write(&page, listed) {
        Ok(()) => println!("All texts are in {}", page.display()),
        Err(error) => eprintln!("{}: {error}", page.display()),
    }
    is_within(&pages)
}

/// Whether the pages keep the limits; says which they do not.
fn is_within(pages: &Count) -> bool {
    for place in &pages.banned {
        println!("{place}");
    }
    let (median, ninetieth) = (pages.percentile(50), pages.percentile(90));
    let limits = [
        (pages.banned.is_empty(), "banned phrases: none".to_owned()),
        (
            median <= MEDIAN,
            format!("median of words a sentence: {median}, at most {MEDIAN}"),
        ),
        (
            ninetieth <= NINETIETH,
            format!("90th percentile: {ninetieth}, at most {NINETIETH}"),
        ),
    ];
    for (is_kept, limit) in &limits {
        println!("{} {limit}", if *is_kept { "ok  " } else { "FAIL" });
    }
    limits.iter().all(|(is_kept, _)| *is_kept)
}

/// The files under `folder` of `root` whose names end in `.extension`, sorted, relative.
pub(crate) fn files(root: &Path, folder: &str, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::from(folder)];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(root.join(&folder)) else {
            continue;
        };
        for entry in entries.flatten() {
            let path = folder.join(entry.file_name());
            if entry.path().is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|found| found == extension) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}
