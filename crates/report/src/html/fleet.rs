//! A fleet as one HTML file: overhead by what hosts differ in, what is far from all
//! alike, and what became slower.

use super::chart::quantiles;
use super::table::{self, Cell};
use super::{Forms, document};
use crate::figure;
use crate::fleet::{Alike, Breakdown, FleetReport, Outlier, Quantiles, Regression, change};
use maud::{Markup, html};

/// Groups that a picture shows: more cannot be told apart. The tables have all.
const DRAWN: usize = 24;

/// The whole document.
pub fn render(report: &FleetReport) -> String {
    let count = |number: u64| figure::grouped(&number.to_string());
    let body = html! {
        main {
            h1 { "What encryption costs across a fleet" }
            p class="lead" { (lead(report)) }
            p class="meta" {
                (count(report.trials)) " trials of " (count(report.runs)) " runs in " (report.place)
                " · " (count(report.compared)) " beside plain"
            }
            @for breakdown in &report.overhead { (overhead(breakdown)) }
            (outliers(report))
            (regressions(report))
            (how_to_read())
        }
    };
    document(
        "What encryption costs across a fleet",
        Forms::None,
        "",
        &body,
    )
}

/// What whoever reads one sentence needs to know.
fn lead(report: &FleetReport) -> String {
    let ciphers = report
        .overhead
        .iter()
        .find(|breakdown| breakdown.by == "cipher");
    let most = ciphers.and_then(|breakdown| breakdown.groups.first());
    let cost = match most {
        Some(group) => format!(
            "Half of the trials with {} are at {} or below plain's rate, one of twenty at {} or below.",
            group.name,
            change(group.p50),
            change(group.p5)
        ),
        None => "No trial was compared with plain.".to_owned(),
    };
    let far = match report.outliers.found {
        0 => "No trial is far from all alike".to_owned(),
        found => format!(
            "{} trial(s) are far from all alike",
            figure::grouped(&found.to_string())
        ),
    };
    let slower = match report.regressions.len() {
        0 => "no version is slower than the one before it".to_owned(),
        found => format!("{found} comparison(s) of versions show a loss"),
    };
    format!("{cost} {far}, and {slower}.")
}

const QUANTILES: [&str; 6] = ["Trials", "p5", "p25", "Median", "p75", "p95"];

fn overhead(breakdown: &Breakdown) -> Markup {
    let drawn = &breakdown.groups[..breakdown.groups.len().min(DRAWN)];
    let label = format!("Quantiles of the overhead by {}", breakdown.by);
    html! {
        section {
            h3 { "Encrypted against plain, by " (breakdown.by) }
            p class="note" {
                "Line: 5 % to 95 % of the trials; box: the middle half; dot: the median."
                @if drawn.len() < breakdown.groups.len() {
                    " The picture has the " (DRAWN) " with the most trials."
                }
            }
            div class="charts pair breakdown" {
                @if let Some(chart) = quantiles::render(&label, drawn) { figure { (chart) } }
                div class="scroll" { table class="sorts" {
                    (table::head(std::iter::once(breakdown.by.as_str()).chain(QUANTILES)))
                    tbody { @for group in &breakdown.groups { (group_row(group)) } }
                } }
            }
        }
    }
}

fn group_row(group: &Quantiles) -> Markup {
    let ratio = |ratio: f64| Cell::number(change(ratio), ratio);
    let trials = figure::grouped(&group.trials.to_string());
    let cells = [
        Cell::number(trials, group.trials as f64),
        ratio(group.p5),
        ratio(group.p25),
        ratio(group.p50),
        ratio(group.p75),
        ratio(group.p95),
    ];
    table::named(html! { (group.name) }, QUANTILES, &cells)
}

const OUTLIERS: [&str; 7] = [
    "Run",
    "Workload",
    "CPU",
    "Device",
    "Ratio",
    "All alike",
    "Trials",
];

fn outliers(report: &FleetReport) -> Markup {
    let farthest = &report.outliers.farthest;
    html! {
        section {
            h3 { "Far from all alike" }
            @if farthest.is_empty() {
                p { "None: every trial is near those that measure the same on the same kind of machine." }
            } @else {
                p class="note" {
                    (figure::grouped(&report.outliers.found.to_string())) " found; the farthest "
                    (farthest.len()) ". Look at that machine, or at what else it did."
                }
                div class="scroll" { table class="sorts alike" {
                    (table::head(std::iter::once("Cipher, system").chain(OUTLIERS)))
                    tbody { @for outlier in farthest { (outlier_row(outlier)) } }
                } }
            }
        }
    }
}

fn alike_row<const N: usize>(alike: &Alike, columns: [&str; N], cells: &[Cell]) -> Markup {
    let bits = Some(alike.key_bits).filter(|bits| *bits > 0);
    let cipher = Some(alike.cipher.as_str()).filter(|cipher| !cipher.is_empty());
    table::picked(
        super::pick::system(&alike.system),
        &super::pick::cipher(cipher, bits),
        cipher,
        html! { (alike.name()) },
        columns,
        cells,
    )
}

fn outlier_row(outlier: &Outlier) -> Markup {
    let alike = &outlier.alike;
    let cells = [
        Cell::word(&outlier.run),
        Cell::word(&alike.workload),
        Cell::word(&alike.cpu),
        Cell::word(&alike.device),
        Cell::number(change(outlier.ratio), outlier.ratio),
        Cell::number(
            format!(
                "{} ({}…{})",
                change(outlier.p50),
                change(outlier.p25),
                change(outlier.p75)
            ),
            outlier.p50,
        ),
        Cell::number(outlier.trials.to_string(), outlier.trials as f64),
    ];
    alike_row(alike, OUTLIERS, &cells)
}

const REGRESSIONS: [&str; 7] = [
    "Workload", "CPU", "Device", "Before", "Then", "After", "Now",
];

fn regressions(report: &FleetReport) -> Markup {
    html! {
        section {
            h3 { "Slower with a version" }
            @if report.regressions.is_empty() {
                p { "None: no version is slower than the one that was seen before it." }
            } @else {
                p class="note" {
                    "The 95 % intervals of both medians do not touch, and these differ by 0.02 or more."
                }
                div class="scroll" { table class="sorts alike" {
                    (table::head(std::iter::once("Cipher, system").chain(REGRESSIONS)))
                    tbody { @for regression in &report.regressions { (regression_row(regression)) } }
                } }
            }
        }
    }
}

fn regression_row(regression: &Regression) -> Markup {
    let alike = &regression.alike;
    let ratio =
        |ratio: f64, trials: u64| Cell::number(format!("{} (n {trials})", change(ratio)), ratio);
    let cells = [
        Cell::word(&alike.workload),
        Cell::word(&alike.cpu),
        Cell::word(&alike.device),
        Cell::word(&regression.before),
        ratio(regression.before_ratio, regression.before_trials),
        Cell::word(&regression.after),
        ratio(regression.after_ratio, regression.after_trials),
    ];
    alike_row(alike, REGRESSIONS, &cells)
}

/// What the words mean.
fn how_to_read() -> Markup {
    let words = [
        (
            "Against plain",
            "The encrypted rate divided by the plain one on the same host, less one: −10 % is slower by a tenth. To 0.1 %.",
        ),
        (
            "Trial",
            "One system under one workload on one host, all its repetitions.",
        ),
        (
            "Alike",
            "Trials of the same tier, system, cipher, key, workload and file system, on the same model of processor and device.",
        ),
        (
            "Far",
            "Outside the quartiles of at least eight alike, by more than three times their distance and by more than 0.02.",
        ),
        (
            "p5, p25, p75, p95",
            "So many of a hundred trials are as slow as that, or slower.",
        ),
        (
            "Groups",
            "Trials of a CPU, a device or a kernel mix workloads and ciphers as they were measured: compare groups that ran the same plan.",
        ),
    ];
    html! {
        section class="how" {
            h3 { "How to read this" }
            dl { @for (word, meaning) in words { div { dt { (word) } dd { (meaning) } } } }
        }
    }
}
