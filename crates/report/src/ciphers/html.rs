//! The sections of a run of bare ciphers.

use super::{Line, Load, curve, lines, main_loads, more_threads};
use crate::figure;
use crate::html::chart::{rates, sizes};
use crate::html::table::{self, Cell};
use lab::record::{Run, Trial};
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
            div class="scroll" { table class="ciphers sorts" {
                (table::head(["Cipher"].into_iter().chain(columns(&parallel))))
                tbody {
                    @for line in lines(run, load) { (row(&line, &parallel)) }
                }
            } }
        }
    }
}

fn columns<'a>(parallel: &'a [(String, Vec<Line<'_>>)]) -> impl Iterator<Item = &'a str> {
    let more = parallel.iter().map(|(name, _)| name.as_str());
    COLUMNS.into_iter().chain(more)
}

fn row(line: &Line<'_>, parallel: &[(String, Vec<Line<'_>>)]) -> Markup {
    let trial = line.trial;
    let rate = |trial: &Trial| {
        let rate = trial.throughput_mb_s;
        Cell::number(figure::interval(rate), rate.median)
    };
    let sector = trial.sector_bytes.map(f64::from);
    let cycles = trial.cycles_per_byte.map(|cycles| cycles.median);
    let mut cells = vec![
        Cell::known(
            trial
                .sector_bytes
                .map_or_else(String::new, |bytes| bytes.to_string()),
            sector,
        ),
        rate(trial),
        Cell::number(line.time(), trial.latency_us.p50),
        Cell::known(line.cycles(), cycles),
        Cell::known(
            line.against(),
            line.best_peer().map(|(_, ratio, _)| ratio.median),
        ),
        Cell::known(line.weakest(), line.weakest.map(|(ratio, _)| ratio.median)),
        Cell::word(line.constant_time()),
    ];
    cells.extend(parallel.iter().map(|(_, others)| {
        let same = others.iter().find(|other| super::alike(other.trial, trial));
        same.map_or_else(|| Cell::known(String::new(), None), |same| rate(same.trial))
    }));
    let name = html! {
        (line.name)
        @if let Some(backend) = &trial.backend { " " span class="note" { (backend) } }
    };
    table::row(
        trial,
        trial.cipher.as_deref(),
        name,
        columns(parallel),
        &cells,
    )
}

/// A chart a cipher: the rate over the size of requests.
fn by_size(run: &Run, load: &Load) -> Markup {
    let charts: Vec<(String, Markup)> = lines(run, load)
        .iter()
        .filter_map(|line| {
            let title = format!(
                "{}, {}-byte sectors",
                line.name,
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
