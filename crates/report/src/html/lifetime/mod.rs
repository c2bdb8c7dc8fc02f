//! The lives of an SSD as one HTML file: each picture with its values beside it.

mod bars;
mod erases;
mod map;
mod series;

use super::chart::palette;
use super::{Forms, document};
use crate::figure;
use crate::lifetime::{Lifetime, Moment, SHARES, Setup, daily, lasts, seen, time};
use maud::{Markup, html};
use plotters::style::RGBColor;

/// The whole document.
pub fn render(record: &Lifetime) -> String {
    let title = format!("What encryption does to an SSD: {}", record.title);
    let body = html! {
        main {
            h1 { "What encryption does to an SSD over the years" }
            article class="lives" {
                h2 { (record.title) }
                (premises(record))
                @let verdict = record.verdict();
                @if !verdict.is_empty() { p class="lead" { (verdict) } }
                (outcome(record))
                (over_time(record))
                (wear(record))
                (leaks(record))
            }
            (how_to_read())
        }
    };
    document(&title, Forms::None, include_str!("style.css"), &body)
}

/// The colour of a setup, the same in every picture.
fn colour(setup: Setup) -> RGBColor {
    match setup {
        Setup::Plain => palette::GREY,
        Setup::Passed => palette::BLUE,
        Setup::Blocked => palette::VERMILLION,
        Setup::Filled => palette::ORANGE,
        Setup::Unpartitioned => palette::GREEN,
    }
}

fn premises(record: &Lifetime) -> Markup {
    html! {
        p class="meta" {
            "Simulated drive " (record.device) " · " (daily(record.daily_bytes)) " a day into a file system that is "
            (figure::share(Some(record.fill))) " full · " (figure::share(Some(record.overwrites)))
            " of the writes within files · looked at for " (time(record.years))
            " · seed " (record.seed)
        }
    }
}

/// A table of which a phone shows the names of the columns beside each value.
fn table(corner: &str, columns: &[String], rows: &[(String, Vec<String>)]) -> Markup {
    html! {
        div class="scroll" { table {
            thead { tr {
                th scope="col" { (corner) }
                @for name in columns { th scope="col" { (name) } }
            } }
            tbody {
                @for (name, values) in rows {
                    tr {
                        th scope="row" { (name) }
                        @for (column, value) in columns.iter().zip(values) {
                            td data-name=(column) { (value) }
                        }
                    }
                }
            }
        } }
    }
}

/// A picture, and its values beside it.
fn pair(heading: &str, note: &str, picture: &Markup, table: &Markup) -> Markup {
    html! {
        section {
            h3 { (heading) }
            p class="note" { (note) }
            div class="charts pair" {
                figure { (picture) }
                (table)
            }
        }
    }
}

fn names<const N: usize>(names: [&str; N]) -> Vec<String> {
    names.map(str::to_owned).to_vec()
}

fn outcome(record: &Lifetime) -> Markup {
    let columns = names([
        "Lasts",
        "TB written by then",
        "Flash writes for a write",
        "Can write for ever",
    ]);
    let rows: Vec<_> = record
        .setups
        .iter()
        .map(|life| {
            let last = life.moments.last().map_or(f64::NAN, |last| last.write_mb_s);
            let values = vec![
                lasts(life.lifetime_years),
                figure::number(life.terabytes_written),
                format!("{:.2}", life.write_amplification),
                figure::with_unit(last, "MB/s"),
            ];
            (record.name(life.setup), values)
        })
        .collect();
    let heading = format!("How long it lasts, at {} a day", daily(record.daily_bytes));
    pair(
        &heading,
        "Until every block has had the erases that the preset gives it. Twice as much a day wears it out in half the time.",
        &bars::render(record),
        &table("Setup", &columns, &rows),
    )
}

fn over_time(record: &Lifetime) -> Markup {
    let amplification = |moment: &Moment| moment.write_amplification;
    let rate = |moment: &Moment| moment.write_mb_s;
    html! {
        (pair(
            "Write amplification over time",
            "Flash writes for each write of the host. Time runs in powers of ten: what changes, changes early.",
            &series::render("Write amplification over time", record, amplification),
            &values(record, |moment| format!("{:.2}", moment.write_amplification)),
        ))
        (pair(
            "Throughput over time",
            "What the drive can write for ever at that time, MB/s: its chips also copy what cleaning moves.",
            &series::render("Throughput over time", record, rate),
            &values(record, |moment| figure::number(moment.write_mb_s)),
        ))
    }
}

/// A series of each setup at round times.
fn values(record: &Lifetime, value: impl Fn(&Moment) -> String) -> Markup {
    let columns: Vec<String> = record
        .setups
        .iter()
        .map(|life| record.name(life.setup))
        .collect();
    let rows: Vec<(String, Vec<String>)> = record
        .times()
        .into_iter()
        .map(|(years, name)| {
            let at = record.setups.iter().map(|life| life.at(years));
            let values = at.map(|moment| moment.map_or(figure::UNKNOWN.to_owned(), &value));
            (name, values.collect())
        })
        .collect();
    table("After", &columns, &rows)
}

fn wear(record: &Lifetime) -> Markup {
    let mut columns: Vec<String> = SHARES.iter().map(|(_, name)| (*name).to_owned()).collect();
    columns.extend(names(["mean", "counted for"]));
    let rows: Vec<_> = record
        .setups
        .iter()
        .map(|life| {
            let of = |(share, _): &(f64, &str)| life.erases_at(*share).to_string();
            let mut values: Vec<String> = SHARES.iter().map(of).collect();
            values.push(format!("{:.1}", life.erases_mean()));
            values.push(life.counted_until());
            (record.name(life.setup), values)
        })
        .collect();
    pair(
        "Erases of the blocks",
        "How many blocks had how many erases when nothing changed any more, or the years were over. \
         Wear levelling keeps the spread as it is while the average goes on.",
        &erases::render(record),
        &table("Setup", &columns, &rows),
    )
}

/// Parts of the drive of which the table tells the noise.
const PARTS: usize = 4;

fn leaks(record: &Lifetime) -> Markup {
    let mut columns = names(["Sees", "Is right about"]);
    columns.extend((1..=PARTS).map(|part| format!("{part}/{PARTS}")));
    let rows: Vec<_> = record
        .setups
        .iter()
        .map(|life| {
            let mut values = vec![seen(life.leak.as_ref())];
            if let Some(leak) = &life.leak {
                values.push(format!("{:.1} %", leak.right * 100.0));
                let part = leak.map.len().div_ceil(PARTS).max(1);
                values.extend(leak.map.chunks(part).map(|cells| {
                    let mean = cells.iter().sum::<f64>() / cells.len() as f64;
                    figure::share(Some(mean))
                }));
            }
            values.resize(columns.len(), figure::UNKNOWN.to_owned());
            (record.name(life.setup), values)
        })
        .collect();
    pair(
        "What the drive tells without the key",
        "The drive from its start to its end: coloured is noise, empty is visibly unused. The table has the share of noise in each quarter.",
        &map::render(record),
        &table("Setup", &columns, &rows),
    )
}

/// What the words mean.
fn how_to_read() -> Markup {
    let words = [
        (
            "TRIM passed, TRIM blocked",
            "Whether the drive is told which of its pages hold nothing any more. What it is not told, it copies for ever.",
        ),
        (
            "Filled with noise",
            "The whole volume was written once as it was made, as TrueCrypt formats: the drive believes that every page is in use.",
        ),
        (
            "Left unpartitioned",
            "That part of the drive is never written, so cleaning has more room.",
        ),
        (
            "Flash writes for a write",
            "Write amplification: what the drive writes to its flash for each page of the host.",
        ),
        (
            "Is right about",
            "Of how much of the drive an observer, who takes noise for data and the rest for unused, is right.",
        ),
        (
            "A simulated drive",
            "is a model with a preset's numbers and the habits of no firmware in particular: compare the setups, and take no year for a promise.",
        ),
    ];
    html! {
        section class="how" {
            h3 { "How to read this" }
            dl { @for (word, meaning) in words { div { dt { (word) } dd { (meaning) } } } }
        }
    }
}
