//! A comparison as text, Markdown and JSON.

use super::{Comparison, Difference, Key, Normalise, Pair};
use crate::html::store::{run_address, way_back};
use crate::html::table::{self, Cell};
use crate::html::{Forms, document, pick};
use crate::markdown::escape;
use crate::text::Style;
use crate::{figure, group};
use comfy_table::{CellAlignment, ContentArrangement};
use maud::html;

/// The comparison for a terminal.
pub fn text(comparison: &Comparison, style: &Style) -> String {
    let mut lines = Vec::new();
    for (name, side) in [("A", &comparison.a), ("B", &comparison.b)] {
        let partial = if side.partial { ", PARTIAL" } else { "" };
        style.wrap(
            &mut lines,
            &format!(
                "{name}: {} · run {} · {}{partial}",
                side.plan, side.run, side.started
            ),
        );
    }
    if !comparison.differences.is_empty() {
        style.wrap(&mut lines, &label(comparison));
    }
    style.wrap(&mut lines, &floor(comparison));
    if let Some(line) = division(comparison) {
        style.wrap(&mut lines, line);
    }
    lines.push(String::new());

    let [a, b] = heads(comparison);
    let mut table = style.table(&["workload", "system", a, b, "B against A"]);
    table
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(style.columns() as u16);
    for pair in &comparison.cells {
        table.add_row(row(comparison, pair).map(|cell| style.text(&cell)));
    }
    for column in [2, 3] {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    lines.extend(table.lines().map(|line| style.paint(line.trim_end())));
    lines.push(String::new());
    for (name, keys) in [("A", &comparison.only_a), ("B", &comparison.only_b)] {
        for key in keys {
            style.wrap(&mut lines, &format!("only in {name}: {}", cell(key)));
        }
    }
    style.wrap(&mut lines, &conclusion(comparison));
    let mut text = lines.join("\n");
    text.push('\n');
    text
}

/// The comparison for an issue or a pull request.
pub fn markdown(comparison: &Comparison) -> String {
    let mut out = String::from("# Comparison\n\n");
    for (name, side) in [("A", &comparison.a), ("B", &comparison.b)] {
        let partial = if side.partial { ", partial" } else { "" };
        let text = format!("{}, run {}, {}{partial}", side.plan, side.run, side.started);
        out.push_str(&format!("* {name}: {}\n", escape(&text)));
    }
    if !comparison.differences.is_empty() {
        out.push_str(&format!("* {}\n", escape(&label(comparison))));
    }
    out.push_str(&format!("* {}\n", escape(&floor(comparison))));
    if let Some(line) = division(comparison) {
        out.push_str(&format!("* {}\n", escape(line)));
    }
    let [a, b] = heads(comparison);
    out.push_str(&format!(
        "\n| workload | system | {a} | {b} | B against A |\n|---|---|---:|---:|---|\n"
    ));
    for pair in &comparison.cells {
        let cells = row(comparison, pair).map(|cell| escape(&cell));
        out.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    out.push('\n');
    for (name, keys) in [("A", &comparison.only_a), ("B", &comparison.only_b)] {
        for key in keys {
            out.push_str(&format!("* only in {name}: {}\n", escape(&cell(key))));
        }
    }
    out.push_str(&format!("\n{}\n", escape(&conclusion(comparison))));
    out
}

/// The comparison as a page for who browses a store.
pub fn html(comparison: &Comparison) -> String {
    let title = format!("{} and {}", comparison.a.plan, comparison.b.plan);
    let [a, b] = heads(comparison);
    let columns = [a, b, "B against A"];
    let body = html! {
        a class="skip" href="#figures" { "Skip to the table" }
        header {
            (way_back())
            h1 { "B against A" }
            p class="lead" { (conclusion(comparison)) }
            @if !comparison.differences.is_empty() { p class="warning" { (label(comparison)) } }
            @for (name, side) in [("A", &comparison.a), ("B", &comparison.b)] {
                p class="meta" {
                    (name) ": " a href=(run_address(&side.run)) { (side.plan) }
                    " · run " (side.run) " · " (side.started)
                    @if side.partial { " · " strong { "partial" } }
                }
            }
            p class="meta" { (floor(comparison)) }
            @if let Some(line) = division(comparison) { p class="warning" { (line) } }
            div id="pick" {}
        }
        main id="figures" {
            div class="scroll" { table class="sorts" {
                (table::head(["Workload, system"].into_iter().chain(columns)))
                @for pairs in comparison.cells.chunk_by(|a, b| workload(&a.key) == workload(&b.key)) {
                    tbody {
                        (table::group(columns.len() + 1, html! { (workload(&pairs[0].key)) }))
                        @for pair in pairs {
                            @let [_, label, a, b, difference] = row(comparison, pair);
                            @let rates = [pair.a_mb_s.median, pair.b_mb_s.median];
                            @let [by_a, by_b] = pair.normalised.or(pair.time_us).unwrap_or(rates);
                            (table::picked(
                                pick::system(&pair.key.system),
                                &pick::cipher(pair.key.cipher.as_deref(), pair.key.key_bits),
                                pair.key.cipher.as_deref(),
                                html! { (label) },
                                columns,
                                &[
                                    Cell::number(a, by_a),
                                    Cell::number(b, by_b),
                                    Cell::known(difference, pair.ratio.map(|ratio| ratio.median)),
                                ],
                            ))
                        }
                    }
                }
            } }
            @for (name, keys) in [("A", &comparison.only_a), ("B", &comparison.only_b)] {
                @if !keys.is_empty() {
                    h2 { "Only in " (name) }
                    ul { @for key in keys { li { (cell(key)) } } }
                }
            }
        }
    };
    document(&title, Forms::Here, "", &body)
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

fn label(comparison: &Comparison) -> String {
    format!(
        "DIFFERENT ENVIRONMENTS (A / B): {}",
        differences(&comparison.differences)
    )
}

fn floor(comparison: &Comparison) -> String {
    format!(
        "Noise floor: differences up to {:.1} % are not told apart",
        comparison.noise_floor * 100.0
    )
}

/// What was divided by what, where anything was.
fn division(comparison: &Comparison) -> Option<&'static str> {
    comparison.normalised.map(|by| match by {
        Normalise::Cycles => {
            "NORMALISED: cycles of its own clock that a byte takes on each machine; slower and faster are of these"
        }
        Normalise::Plain => {
            "NORMALISED: shares of the plain rate of each machine; slower and faster are of these"
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

fn row(comparison: &Comparison, pair: &Pair) -> [String; 5] {
    let [a, b] = match (comparison.normalised, pair.normalised, pair.time_us) {
        (None, _, Some(times)) => times.map(figure::duration_us),
        (None, _, None) => [pair.a_mb_s, pair.b_mb_s].map(|rate| figure::number(rate.median)),
        (Some(_), Some(shown), _) => shown.map(figure::number),
        (Some(_), None, _) => [figure::UNKNOWN, figure::UNKNOWN].map(str::to_owned),
    };
    let difference = pair.ratio.map_or_else(
        || "no samples to compare".to_owned(),
        |ratio| figure::difference(ratio, pair.verdict),
    );
    let mark = if pair.exceeds { " (!)" } else { "" };
    [
        workload(&pair.key),
        pair.label.clone(),
        a,
        b,
        format!("{difference}{mark}"),
    ]
}

fn cell(key: &Key) -> String {
    format!(
        "{} · {}",
        workload(key),
        group::name(key.cipher.as_deref(), key.key_bits, &key.system)
    )
}

/// The workload, on which file system, and of a drive that has lived how.
fn workload(key: &Key) -> String {
    match (&key.fs, &key.life) {
        (Some(fs), _) => format!("{} on {fs}", key.workload),
        (None, Some(life)) => format!("{}, {life}", key.workload),
        (None, None) => key.workload.clone(),
    }
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
        "Of {} cells in both runs, B is slower in {}, faster in {}, not distinguishable in {}.",
        comparison.cells.len(),
        count(Verdict::Slower),
        count(Verdict::Faster),
        count(Verdict::NotDistinguishable)
    );
    if let Some(percent) = comparison.slower_than {
        let exceeding = comparison.exceeding().count();
        text.push_str(&match exceeding {
            0 => format!(" None is certainly slower by more than {percent} %."),
            count => format!(" {count} certainly slower by more than {percent} % (!)."),
        });
    }
    text
}
