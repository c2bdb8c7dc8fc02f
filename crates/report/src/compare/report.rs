//! A comparison as a document.

use super::{Comparison, Difference, Key, Normalise, Pair, Side};
use crate::document::{
    Block, Cell, Column, Document, MARKDOWN, PAGE, Pick, Row, Rows, TERMINAL, Table,
};
use crate::html::{Around, run_address, ways};
use crate::render::text::Style;
use crate::{figure, render};
use lab::record::Setup;
use maud::html;

/// The comparison for a terminal.
pub fn text(comparison: &Comparison, style: &Style) -> String {
    render::text::render(&document(comparison), style)
}

/// The comparison for an issue or a pull request.
pub fn markdown(comparison: &Comparison) -> String {
    render::markdown::render(&document(comparison))
}

/// The comparison as a page for users who browse a store.
pub fn html(comparison: &Comparison, around: Around) -> String {
    let mut page = document(comparison);
    page.head.insert(0, ways(around));
    render::html::render(&page)
}

fn document(comparison: &Comparison) -> Document {
    let sides = [("A", &comparison.a), ("B", &comparison.b)];
    let labels = labels(comparison);
    let (floor, division) = (floor(comparison), division(comparison).map(str::to_owned));
    let mut head = vec![
        Block::heading(1, "B against A").on(PAGE),
        Block::heading(2, "Comparison").on(MARKDOWN),
        Block::lead(conclusion(comparison)).on(PAGE),
    ];
    let named = sides.map(|(name, side)| format!("{name}: {}", in_a_line(side)));
    let points = named
        .into_iter()
        .chain(labels.clone())
        .chain([floor.clone()])
        .chain(division.clone());
    head.push(Block::list(points).on(MARKDOWN));
    for (name, side) in sides {
        let partial = if side.partial { ", PARTIAL" } else { "" };
        let line = format!(
            "{name}: {} · run {} · {}{partial}",
            side.plan, side.run, side.started
        );
        head.push(Block::meta(line).on(TERMINAL));
    }
    let labels = labels.into_iter();
    head.extend(labels.map(|label| Block::warning(label).on(TERMINAL | PAGE)));
    for (name, side) in sides {
        head.push(Block::markup(html! {
            p class="meta" {
                (name) ": " a href=(run_address(&side.run)) { (side.plan) }
                " · run " (side.run) " · " (side.started)
                @if side.partial { " · " strong { "partial" } }
            }
        }));
    }
    head.push(Block::meta(floor).on(TERMINAL | PAGE));
    head.extend(division.map(|line| Block::warning(line).on(TERMINAL | PAGE)));

    let mut body = vec![Block::table(table(comparison))];
    for (name, keys) in [("A", &comparison.only_a), ("B", &comparison.only_b)] {
        if keys.is_empty() {
            continue;
        }
        let cells: Vec<String> = keys.iter().map(cell).collect();
        let named = |cell: &String| format!("only in {name}: {cell}");
        body.push(Block::heading(2, format!("Only in {name}")).on(PAGE));
        body.push(Block::list(cells.iter().map(named)).on(MARKDOWN));
        body.extend(
            cells
                .iter()
                .map(|cell| Block::text(named(cell)).on(TERMINAL)),
        );
        body.push(Block::list(cells).on(PAGE));
    }
    body.push(Block::text(conclusion(comparison)).on(TERMINAL | MARKDOWN));
    Document {
        title: format!("{} and {}", comparison.a.plan, comparison.b.plan),
        served: true,
        head,
        body,
        ..Document::default()
    }
}

fn in_a_line(side: &Side) -> String {
    let partial = if side.partial { ", partial" } else { "" };
    format!("{}, run {}, {}{partial}", side.plan, side.run, side.started)
}

fn table(comparison: &Comparison) -> Table {
    let [a, b] = heads(comparison);
    let columns = vec![
        Column::word("system"),
        Column::number(a),
        Column::number(b),
        Column::word("B against A"),
    ];
    let alike = |a: &Pair, b: &Pair| a.key.title == b.key.title;
    let groups = comparison.cells.chunk_by(alike).map(|pairs| Rows {
        title: pairs[0].key.title.clone(),
        rows: pairs.iter().map(|pair| row(comparison, pair)).collect(),
        ..Rows::default()
    });
    let by = Column::word("workload").on(TERMINAL | MARKDOWN);
    Table::new(columns, groups.collect()).grouped(by)
}

/// The comparison as indented JSON, with a final newline.
pub fn json(comparison: &Comparison) -> Result<String, serde_json::Error> {
    let mut text = serde_json::to_string_pretty(comparison)?;
    text.push('\n');
    Ok(text)
}

/// The differences of two environments on one line.
pub(super) fn differences(differences: &[Difference]) -> String {
    let items: Vec<String> = differences
        .iter()
        .map(|difference| format!("{} ({} / {})", difference.what, difference.a, difference.b))
        .collect();
    items.join(", ")
}

/// What is known to differ, and what is not known.
fn labels(comparison: &Comparison) -> Vec<String> {
    let Comparison {
        differences: found,
        unknown,
        ..
    } = comparison;
    let differ = || format!("DIFFERENT ENVIRONMENTS (A / B): {}", differences(found));
    let may = || format!("UNKNOWN in both, so it may differ: {}", unknown.join(", "));
    let differ = (!found.is_empty()).then(differ);
    let may = (!unknown.is_empty()).then(may);
    differ.into_iter().chain(may).collect()
}

fn floor(comparison: &Comparison) -> String {
    let judged = match is_mixed(comparison) {
        true => ". Encrypted systems are judged by their share of the plain rate",
        false => "",
    };
    let floors = || comparison.cells.iter().map(|pair| pair.noise_floor * 100.0);
    let least = format!("{:.1}", floors().fold(f64::INFINITY, f64::min));
    let most = format!("{:.1}", comparison.noise_floor * 100.0);
    let floor = match least == most {
        true => most,
        false => format!("{least} to {most}"),
    };
    format!("Noise floor: differences up to {floor} % are not distinguishable{judged}")
}

/// Whether some rates were divided and others not.
fn is_mixed(comparison: &Comparison) -> bool {
    comparison.normalised.is_none() && comparison.cells.iter().any(|pair| pair.by.is_some())
}

/// The note on the division of rates, if there was one.
fn division(comparison: &Comparison) -> Option<&'static str> {
    comparison.normalised.map(|by| match by {
        Normalise::Cycles => {
            "NORMALISED: cycles per byte, by the clock of each machine; slower and faster refer to \
             these"
        }
        Normalise::Plain => {
            "NORMALISED: shares of the plain rate of each machine; slower and faster refer to these"
        }
    })
}

fn heads(comparison: &Comparison) -> [&'static str; 2] {
    let timed = comparison.cells.iter().all(|pair| pair.time_us.is_some());
    match comparison.normalised {
        None if timed => ["A", "B"],
        None => ["A MB/s", "B MB/s"],
        Some(Normalise::Cycles) => ["A c/B", "B c/B"],
        Some(Normalise::Plain) => ["A ÷ plain", "B ÷ plain"],
    }
}

fn row(comparison: &Comparison, pair: &Pair) -> Row {
    let [a, b] = match (comparison.normalised, pair.normalised, pair.time_us) {
        (None, _, Some(times)) => times.map(figure::duration_us),
        (None, _, None) => [pair.a_mb_s, pair.b_mb_s].map(|rate| figure::number(rate.median)),
        (Some(_), Some(shown), _) => shown.map(figure::number),
        (Some(_), None, _) => [figure::UNKNOWN, figure::UNKNOWN].map(str::to_owned),
    };
    let shares = pair.normalised.filter(|_| comparison.normalised.is_none());
    let [share_of_a, share_of_b] = match shares {
        Some(shares) => shares.map(|share| format!(" ({:.1} %)", share * 100.0)),
        None => [String::new(), String::new()],
    };
    let rates = [pair.a_mb_s.median, pair.b_mb_s.median];
    let divided = pair.normalised.filter(|_| comparison.normalised.is_some());
    let [by_a, by_b] = divided.or(pair.time_us).unwrap_or(rates);
    let told = match (comparison.normalised, pair.time_us) {
        (None, Some(_)) => figure::Quantity::Times,
        _ => figure::Quantity::Rates,
    };
    let difference = pair.ratio.map_or_else(
        || "no samples to compare".to_owned(),
        |ratio| told.difference(ratio, pair.verdict),
    );
    // The judged quantity is named if it is not the same for all pairs.
    let by = match pair.by.is_none() && is_mixed(comparison) {
        true => "rate ",
        false => "",
    };
    let difference = format!("{by}{difference}");
    let mark = if pair.exceeds { " (!)" } else { "" };
    let Setup {
        system,
        cipher,
        key_bits,
        ..
    } = &pair.key.setup;
    let row = Row::new(vec![
        Cell::word(&pair.key.label),
        Cell::number(format!("{a}{share_of_a}"), by_a).short(a),
        Cell::number(format!("{b}{share_of_b}"), by_b).short(b),
        Cell::known(
            format!("{difference}{mark}"),
            pair.ratio.map(|ratio| ratio.median),
        ),
    ]);
    Row {
        pick: Some(Pick::new(system, cipher.as_deref(), *key_bits)),
        ..row.hint(cipher.as_deref())
    }
}

fn cell(key: &Key) -> String {
    format!("{} · {}", key.title, key.label)
}

fn conclusion(comparison: &Comparison) -> String {
    use lab::record::Verdict;
    let count = |verdict| {
        comparison
            .cells
            .iter()
            .filter(|pair| pair.verdict == verdict)
            .count()
    };
    let mut text = format!(
        "Of {} cells in both runs, B is slower in {}, faster in {}, not distinguishable in {}",
        comparison.cells.len(),
        count(Verdict::Slower),
        count(Verdict::Faster),
        count(Verdict::NotDistinguishable)
    );
    text += &match count(Verdict::TooFew) {
        0 => ".".to_owned(),
        count => format!(", and too few samples in {count}."),
    };
    if let Some(percent) = comparison.slower_than {
        let exceeding = comparison.exceeding().count();
        text.push_str(&match exceeding {
            0 => format!(" None is certainly slower by more than {percent} %."),
            count => format!(" {count} certainly slower by more than {percent} % (!)."),
        });
        let lowest = comparison.unjudged().map(|pair| pair.noise_floor);
        let lowest = lowest.fold(f64::INFINITY, f64::min);
        let reason = match lowest / (1.0 + lowest) > percent / 100.0 {
            true => format!(
                "the noise floor of {:.1} % is above the threshold",
                lowest * 100.0
            ),
            false => "their intervals are too wide, or their samples too few".to_owned(),
        };
        match comparison.unjudged().count() {
            0 => {}
            count => text.push_str(&format!(" {count} could not be judged: {reason}.")),
        }
        match comparison.only_a.len() {
            0 => {}
            1 => text.push_str(" B lacks 1 cell of A."),
            count => text.push_str(&format!(" B lacks {count} cells of A.")),
        }
    }
    text
}
