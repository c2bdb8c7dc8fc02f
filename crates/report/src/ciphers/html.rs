//! The sections of a run of bare ciphers.

use super::{Line, Load, curve, lines, main_loads, more_threads};
use crate::figure;
use crate::html::chart::{rates, sizes};
use lab::record::Run;
use maud::{Markup, html};

/// Pictures first, then every figure.
pub(crate) fn sections(run: &Run) -> Markup {
    let loads = main_loads(run);
    html! {
        section {
            h3 { "The engine beside the fastest library" }
            p class="note" {
                "Median of the repetitions; the whisker is its 95 % interval. "
                "The grey bar is the fastest library that has the cipher."
            }
            div class="charts" {
                @for load in &loads {
                    figure {
                        figcaption { strong { (load.title()) } }
                        (rates::render(&load.title(), &lines(run, load)))
                    }
                }
            }
        }
        @for load in &loads { (table(run, load)) }
        @for load in &loads { (by_size(run, load)) }
    }
}

/// The names of the columns; a phone shows them beside each value.
const COLUMNS: [&str; 7] = [
    "Sector",
    "MB/s",
    "Time of a request",
    "Cycles per byte",
    "Against the best library",
    "Weakest size",
    "Constant time",
];

fn table(run: &Run, load: &Load) -> Markup {
    let parallel: Vec<(String, Vec<Line<'_>>)> = more_threads(run, load)
        .into_iter()
        .map(|load| (super::threads(load.threads), lines(run, &load)))
        .collect();
    html! {
        section {
            h3 { (load.title()) }
            div class="scroll" { table class="ciphers" {
                thead { tr {
                    th scope="col" { "Cipher" }
                    @for name in COLUMNS { th scope="col" { (name) } }
                    @for (name, _) in &parallel { th scope="col" { (name) } }
                } }
                tbody {
                    @for line in lines(run, load) { (row(&line, &parallel)) }
                }
            } }
        }
    }
}

fn row(line: &Line<'_>, parallel: &[(String, Vec<Line<'_>>)]) -> Markup {
    let trial = line.trial;
    let values = [
        trial
            .sector_bytes
            .map_or_else(String::new, |bytes| bytes.to_string()),
        figure::interval(trial.throughput_mb_s),
        line.time(),
        line.cycles(),
        line.against(),
        line.weakest(),
        line.constant_time().to_owned(),
    ];
    html! {
        tr {
            th scope="row" title=[trial.cipher.as_deref()] {
                (line.name())
                @if let Some(backend) = &trial.backend { " " span class="note" { (backend) } }
            }
            @for (name, value) in COLUMNS.iter().zip(&values) {
                td data-name=(name) { (value) }
            }
            @for (name, others) in parallel {
                td data-name=(name) {
                    @if let Some(same) = others.iter().find(|other| super::alike(other.trial, trial)) {
                        (figure::interval(same.trial.throughput_mb_s))
                    }
                }
            }
        }
    }
}

/// A chart a cipher: the rate over the size of requests.
fn by_size(run: &Run, load: &Load) -> Markup {
    let charts: Vec<(String, Markup)> = lines(run, load)
        .iter()
        .filter_map(|line| {
            let title = format!(
                "{}, {}-byte sectors",
                line.name(),
                line.trial.sector_bytes.unwrap_or_default()
            );
            let curves = std::iter::once(&line.trial)
                .chain(&line.peers)
                .map(|trial| curve(run, trial))
                .collect::<Vec<_>>();
            let label = format!("{} of {title} by size of requests", load.op);
            Some((title, sizes::render(&label, &curves)?))
        })
        .collect();
    html! {
        @if !charts.is_empty() {
            section {
                h3 { (load.op) " by size of requests, " (super::threads(load.threads)) }
                p class="note" { "MB/s; both scales are logarithmic. A library is called once a sector." }
                div class="charts" {
                    @for (title, svg) in charts {
                        figure { figcaption { strong { (title) } } (svg) }
                    }
                }
            }
        }
    }
}
