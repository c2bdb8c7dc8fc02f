//! A fleet as a document: overhead by what hosts differ in, what is far from all
//! alike, and what became slower.

use super::{Alike, Breakdown, FleetReport, Outlier, Quantiles, Regression, change};
use crate::chart::dots::{Dot, Dots, Scale};
use crate::chart::{Chart, Label, Plot, TABLED, palette};
use crate::document::{Block, Cell, Column, Document, PAGE, Pick, Row, TERMINAL, Table};
use crate::figure;

/// Maximum number of groups in a picture, because more cannot be distinguished.
/// The tables have all groups.
const DRAWN: usize = 24;
/// Groups of a property that a terminal shows.
const GROUPS: usize = 20;
/// Letters of a name there.
const NAME: usize = 44;

/// The texts for empty findings. They state how many trials a finding needs.
const NONE_FAR: &str = "No trial is far from similar trials, among groups of eight or more.";
const NONE_SLOWER: &str =
    "No version is slower than the one before it, among versions with six trials or more.";

const TITLE: &str = "What encryption costs across a fleet";

pub(super) fn document(report: &FleetReport) -> Document {
    let trials = format!("{} trials of {}", count(report.trials), count(report.runs));
    let (place, compared) = (&report.place, count(report.compared));
    let head = vec![
        Block::heading(1, TITLE).on(PAGE),
        Block::lead(lead(report)).on(PAGE),
        Block::meta(format!(
            "{trials} runs in {place} · {compared} compared with plain"
        ))
        .on(PAGE),
        Block::meta(format!(
            "{place}: {trials} run(s), {compared} of them compared with plain"
        ))
        .on(TERMINAL),
    ];
    let mut body = Vec::new();
    for breakdown in &report.overhead {
        body.extend(overhead(breakdown));
    }
    body.extend(outliers(report));
    body.extend(regressions(report));
    body.extend(Block::how_to_read(WORDS));
    Document {
        title: TITLE.to_owned(),
        head,
        body,
        ..Document::default()
    }
}

fn count(number: u64) -> String {
    figure::grouped(&number.to_string())
}

/// The summary for readers who read only one sentence.
fn lead(report: &FleetReport) -> String {
    let ciphers = report
        .overhead
        .iter()
        .find(|breakdown| breakdown.by == "cipher");
    let most = ciphers.and_then(|breakdown| breakdown.groups.first());
    let cost = match most {
        Some(group) => format!(
            "Against plain, half of the trials with {} are at {} or below, and one in twenty is at \
             {} or below.",
            group.name,
            change(group.p50),
            change(group.p5)
        ),
        None => "No trial was compared with plain.".to_owned(),
    };
    let far = match report.outliers.found {
        0 => NONE_FAR.to_owned(),
        found => format!("{} trial(s) are far from similar trials.", count(found)),
    };
    let slower = match report.regressions.len() {
        0 => NONE_SLOWER.to_owned(),
        found => format!("{found} comparison(s) of versions show a loss."),
    };
    format!("{cost} {far} {slower}")
}

fn overhead(breakdown: &Breakdown) -> Vec<Block> {
    let groups = &breakdown.groups;
    let drawn = &groups[..groups.len().min(DRAWN)];
    let told = &groups[..groups.len().min(GROUPS)];
    let mut note =
        "Line: 5 % to 95 % of the trials; box: the middle half; dot: the median.".to_owned();
    if drawn.len() < groups.len() {
        note += &format!(" The picture shows the {DRAWN} with the most trials.");
    }
    let heading = format!("Encrypted against plain, by {}", breakdown.by);
    let chart = (!drawn.is_empty()).then(|| vec![Block::chart(quantiles(breakdown, drawn))]);
    let all = vec![Block::table(table(breakdown, groups))];
    let mut blocks = vec![
        Block::heading(3, heading).on(PAGE),
        Block::note(note).on(PAGE),
        Block::columns(chart.into_iter().chain([all]).collect()).on(PAGE),
        Block::table(table(breakdown, told)).on(TERMINAL),
    ];
    match groups.len() - told.len() {
        0 => {}
        rest => {
            blocks.push(Block::text(format!("and {rest} more: --json has them all")).on(TERMINAL))
        }
    }
    blocks
}

fn table(breakdown: &Breakdown, groups: &[Quantiles]) -> Table {
    let names = ["p5", "p25", "median", "p75", "p95"];
    let name = Column::word(breakdown.by.clone());
    let name = name.short(format!("Encrypted against plain, by {}", breakdown.by));
    let mut columns = vec![name, Column::number("trials").until(0)];
    columns.extend(names.map(Column::number));
    let rows = groups.iter().map(|group| {
        let ratios = [group.p5, group.p25, group.p50, group.p75, group.p95];
        let clipped: String = match group.name.chars().count() {
            fits if fits <= NAME => group.name.clone(),
            _ => group.name.chars().take(NAME).chain(['…']).collect(),
        };
        let mut cells = vec![
            Cell::word(&group.name).short(clipped),
            Cell::number(count(group.trials), group.trials as f64),
        ];
        cells.extend(ratios.map(|ratio| Cell::number(change(ratio), ratio)));
        Row::new(cells)
    });
    Table::plain(columns, rows.collect())
}

/// A row a group: a line from 5 % to 95 %, a box around the middle half, a dot at
/// the median.
fn quantiles(breakdown: &Breakdown, groups: &[Quantiles]) -> Chart {
    let rows = groups.iter().map(|group| {
        let name = group.name.clone();
        let value = format!("{}, n {}", change(group.p50), count(group.trials));
        let label = Label {
            name,
            value,
            ..Label::default()
        };
        Dot {
            half: Some([group.p25, group.p75]),
            ..Dot::new(label, group.p50, [group.p5, group.p95], palette::INK)
        }
    });
    let foot = "encrypted ÷ plain; left of 1 is slower";
    let dots = Dots::of(Scale::Ratio { most: 3.0 }, foot, rows.collect());
    let label = format!("Quantiles of the overhead by {}", breakdown.by);
    Chart::new(label, TABLED, Plot::Dots(dots))
}

fn outliers(report: &FleetReport) -> Vec<Block> {
    let (found, farthest) = (report.outliers.found, &report.outliers.farthest);
    let mut blocks = vec![Block::heading(3, "Far from similar trials").on(PAGE)];
    if farthest.is_empty() {
        blocks.push(Block::text(NONE_FAR).on(PAGE));
    } else {
        blocks.push(
            Block::note(format!(
                "{} found; the {} farthest are listed. Check those machines, and what else they \
                 were running.",
                count(found),
                farthest.len()
            ))
            .on(PAGE),
        );
        let columns = [
            "cipher, system",
            "run",
            "workload",
            "CPU",
            "device",
            "ratio",
            "similar",
            "trials",
        ];
        let rows = farthest.iter().map(outlier).collect();
        blocks.push(Block::table(Table::plain(columns.map(Column::word).into(), rows)).on(PAGE));
    }
    blocks.push(Block::gap());
    if found == 0 {
        blocks.push(Block::text(NONE_FAR).on(TERMINAL));
        return blocks;
    }
    let mut lines = vec![format!(
        "Far from similar trials: {} trial(s)",
        count(found)
    )];
    for outlier in farthest {
        let Outlier {
            run,
            ratio,
            p25,
            p50,
            p75,
            trials,
            alike,
        } = outlier;
        lines.push(format!(
            "{run}: {}, while {trials} similar trials have {} ({}…{})",
            change(*ratio),
            change(*p50),
            change(*p25),
            change(*p75),
        ));
        lines.push(format!("  {}, {}", alike.name(), alike.place()));
    }
    match found.saturating_sub(farthest.len() as u64) {
        0 => {}
        rest => lines.push(format!("and {} more, less far away", count(rest))),
    }
    blocks.extend(lines.into_iter().map(|line| Block::text(line).on(TERMINAL)));
    blocks
}

fn outlier(outlier: &Outlier) -> Row {
    let Outlier {
        run,
        ratio,
        p25,
        p50,
        p75,
        trials,
        alike,
    } = outlier;
    let all = format!("{} ({}…{})", change(*p50), change(*p25), change(*p75));
    alike_row(
        alike,
        [Cell::word(run)],
        [
            Cell::number(change(*ratio), *ratio),
            Cell::number(all, *p50),
            Cell::number(trials.to_string(), *trials as f64),
        ],
    )
}

/// A row of what `alike` says, with cells before and after that.
fn alike_row<const B: usize, const A: usize>(
    alike: &Alike,
    before: [Cell; B],
    after: [Cell; A],
) -> Row {
    let bits = Some(alike.key_bits).filter(|bits| *bits > 0);
    let cipher = Some(alike.cipher.as_str()).filter(|cipher| !cipher.is_empty());
    let mut cells = vec![Cell::word(alike.name())];
    cells.extend(before);
    cells.extend([&alike.workload, &alike.cpu, &alike.device].map(Cell::word));
    cells.extend(after);
    Row {
        pick: Some(Pick::new(&alike.system, cipher, bits)),
        ..Row::new(cells).hint(cipher)
    }
}

fn regressions(report: &FleetReport) -> Vec<Block> {
    let regressions = &report.regressions;
    let mut blocks = vec![
        Block::gap(),
        Block::heading(3, "Slower in a newer version").on(PAGE),
    ];
    if regressions.is_empty() {
        blocks.push(Block::text(NONE_SLOWER));
        return blocks;
    }
    let note = "The 95 % intervals of both medians do not overlap, and the medians differ by 0.02 \
                or more.";
    let columns = [
        "cipher, system",
        "workload",
        "CPU",
        "device",
        "before",
        "then",
        "after",
        "now",
    ];
    let rows = regressions.iter().map(regression).collect();
    blocks.push(Block::note(note).on(PAGE));
    blocks.push(Block::table(Table::plain(columns.map(Column::word).into(), rows)).on(PAGE));
    let mut lines = vec![format!("Slower in a newer version: {}", regressions.len())];
    for regression in regressions {
        lines.push(format!(
            "{} → {}: {} → {} ({} and {} trials)",
            regression.before,
            regression.after,
            change(regression.before_ratio),
            change(regression.after_ratio),
            regression.before_trials,
            regression.after_trials,
        ));
        lines.push(format!(
            "  {}, {}",
            regression.alike.name(),
            regression.alike.place()
        ));
    }
    blocks.extend(lines.into_iter().map(|line| Block::text(line).on(TERMINAL)));
    blocks
}

fn regression(regression: &Regression) -> Row {
    let ratio =
        |ratio: f64, trials: u64| Cell::number(format!("{} (n {trials})", change(ratio)), ratio);
    let cells = [
        Cell::word(&regression.before),
        ratio(regression.before_ratio, regression.before_trials),
        Cell::word(&regression.after),
        ratio(regression.after_ratio, regression.after_trials),
    ];
    alike_row(&regression.alike, [], cells)
}

/// The meaning of the words.
const WORDS: [(&str, &str); 6] = [
    (
        "Against plain",
        "The encrypted rate divided by the plain rate on the same host, minus one: −10 % is slower \
         by a tenth. Rounded to 0.1 %.",
    ),
    (
        "Trial",
        "All repetitions of one system under one workload on one host.",
    ),
    (
        "Similar",
        "Trials of the same tier, system, cipher, key, workload and file system, on the same model of processor and device.",
    ),
    (
        "Far",
        "Outside the quartiles of at least eight similar trials, by more than three times the \
         interquartile range and by more than 0.02.",
    ),
    (
        "p5, p25, p75, p95",
        "Percentiles: at p5, five of a hundred trials are as slow as that value, or slower.",
    ),
    (
        "Groups",
        "A group of one CPU, device or kernel mixes all workloads and ciphers that ran there. \
         Compare only groups that ran the same plan.",
    ),
];
