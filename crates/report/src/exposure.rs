//! The visible part of files without the key, and the space that they take: a table of each, the
//! files as they are stored, and a sentence.

use crate::document::{Block, Cell, Column, MARKDOWN, PAGE, Row, Table};
use crate::figure;
use crate::group;
use lab::record::{Exposure, Run, Shown};

/// How the tables were made.
const NOTE: &str = "A small tree of files was written, closed, and looked for in what is stored, \
                    without the key. Space is that of one file: the sizes of what is stored for \
                    it, and the blocks that this takes.";

/// Stored files that are listed of each system.
const LISTED: usize = 4;

/// A property of files: its words in tables and sentences, and how much of it is seen.
type Property = (&'static str, fn(&Exposure) -> Shown);

const PROPERTIES: [Property; 7] = [
    ("contents", |seen| seen.contents),
    ("names", |seen| seen.names),
    ("name lengths", |seen| seen.name_lengths),
    ("sizes", |seen| seen.sizes),
    ("times", |seen| seen.times),
    ("number of files", |seen| seen.count),
    ("tree", |seen| seen.tree),
];

/// The tables, and what is stored; empty if nothing was looked at.
pub(crate) fn section(run: &Run) -> Vec<Block> {
    if run.exposures.is_empty() {
        return Vec::new();
    }
    let columns = std::iter::once(Column::word("system"))
        .chain(PROPERTIES.map(|(name, _)| Column::word(name).short(short(name))));
    let rows = run.exposures.iter().map(|seen| {
        let shown = PROPERTIES.map(|(_, of)| Cell::word(word(of(seen))));
        let cells = std::iter::once(Cell::word(name(run, seen))).chain(shown);
        Row::new(cells.collect())
    });
    let mut blocks = vec![
        Block::heading(3, "What the storage shows without the key"),
        Block::table(Table::plain(columns.collect(), rows.collect())),
    ];
    blocks.extend(space(run));
    blocks.push(Block::note(NOTE));
    let listed = run.exposures.iter().filter(|seen| !seen.entries.is_empty());
    let listed: Vec<&Exposure> = listed.collect();
    if !listed.is_empty() {
        blocks.push(
            Block::heading(4, "Stored files: size, time of change, path").on(PAGE | MARKDOWN),
        );
    }
    for seen in listed {
        blocks.push(Block::text(name(run, seen)).on(PAGE | MARKDOWN));
        let lines = seen.entries.iter().take(LISTED).map(|entry| {
            let path = figure::one_line(&entry.path);
            let day = jiff::Timestamp::from_second(entry.modified);
            let day = day.map_or_else(
                |_| figure::UNKNOWN.to_owned(),
                |time| time.strftime("%Y-%m-%d").to_string(),
            );
            format!("{:>8}  {day:>10}  {path}", entry.bytes)
        });
        blocks.push(Block::verbatim(lines.collect()).on(PAGE | MARKDOWN));
    }
    blocks
}

/// The space of files of each size.
fn space(run: &Run) -> Option<Block> {
    let sizes = run.exposures.iter().map(|seen| &seen.space);
    let sizes = sizes.max_by_key(|space| space.len())?;
    let columns = sizes
        .iter()
        .map(|space| Column::number(format!("stored for {}", figure::bytes(space.file_bytes))));
    let columns = std::iter::once(Column::word("system")).chain(columns);
    let rows = run.exposures.iter().map(|seen| {
        let cells = sizes.iter().map(|size| {
            let found = seen
                .space
                .iter()
                .find(|space| space.file_bytes == size.file_bytes);
            let text = found.map_or_else(
                || figure::UNKNOWN.to_owned(),
                |space| {
                    format!(
                        "{} in {}",
                        figure::grouped(&space.stored_bytes.to_string()),
                        figure::bytes(space.allocated_bytes)
                    )
                },
            );
            Cell::known(text, found.map(|space| space.stored_bytes as f64))
        });
        let cells = std::iter::once(Cell::word(name(run, seen))).chain(cells);
        Row::new(cells.collect())
    });
    Some(Block::table(Table::plain(
        columns.collect(),
        rows.collect(),
    )))
}

/// The part that each system leaves visible; systems that leave the same are named together. Empty if
/// nothing was looked at.
pub(crate) fn sentence(run: &Run) -> String {
    let mut alike: Vec<(String, Vec<String>)> = Vec::new();
    let encrypted = run.exposures.iter();
    for seen in encrypted.filter(|seen| !group::is_unencrypted(&seen.system)) {
        let shown = PROPERTIES
            .iter()
            .filter_map(|(property, of)| match of(seen) {
                Shown::Hidden => None,
                Shown::Exact => Some((*property).to_owned()),
                Shown::Within(span) => Some(format!("{property} within {span} bytes")),
            });
        let shown = shown.collect::<Vec<String>>().join(", ");
        let system = seen.system.clone();
        match alike.iter_mut().find(|(known, _)| *known == shown) {
            Some((_, systems)) if systems.contains(&system) => {}
            Some((_, systems)) => systems.push(system),
            None => alike.push((shown, vec![system])),
        }
    }
    let sentences = alike.iter().map(|(shown, systems)| {
        let shown = match shown.as_str() {
            "" => "nothing of files",
            shown => shown,
        };
        format!(" Without the key {} shows {shown}.", systems.join(" or "))
    });
    sentences.collect()
}

/// A property's name on a terminal.
fn short(name: &'static str) -> &'static str {
    match name {
        "name lengths" => "lengths",
        "number of files" => "count",
        name => name,
    }
}

fn word(shown: Shown) -> String {
    match shown {
        Shown::Hidden => "hidden".to_owned(),
        Shown::Within(span) => format!("within {span} B"),
        Shown::Exact => "visible".to_owned(),
    }
}

fn name(run: &Run, seen: &Exposure) -> String {
    let of_it =
        |trial: &&lab::record::Trial| trial.system == seen.system && trial.cipher == seen.cipher;
    let key_bits = run
        .trials
        .iter()
        .find(of_it)
        .and_then(|trial| trial.key_bits);
    group::name(seen.cipher.as_deref(), key_bits, &seen.system)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn systems_that_show_the_same_share_a_sentence() {
        let seen = |system: &str, sizes, times| Exposure {
            system: system.to_owned(),
            sizes,
            times,
            ..Exposure::default()
        };
        let run = Run {
            exposures: vec![
                seen("none", Shown::Exact, Shown::Exact),
                seen("dm-crypt", Shown::Hidden, Shown::Hidden),
                seen("gocryptfs", Shown::Exact, Shown::Exact),
                seen("encfs", Shown::Exact, Shown::Exact),
                seen("ecryptfs", Shown::Within(4095), Shown::Exact),
            ],
            ..Run::default()
        };
        assert_eq!(
            sentence(&run),
            " Without the key dm-crypt shows nothing of files. Without the key gocryptfs or encfs \
             shows sizes, times. Without the key ecryptfs shows sizes within 4095 bytes, times."
        );
        assert!(sentence(&Run::default()).is_empty());
        assert!(section(&Run::default()).is_empty());
    }
}
