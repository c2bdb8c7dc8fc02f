//! The charts of a run: rates, costs, time by activity, latencies.

use crate::chart::bars::{Bar, Bars};
use crate::chart::curves::{Curve, Curves};
use crate::chart::dots::{self, Dot, Dots, Scale};
use crate::chart::{Axis, Chart, Label, Plot, palette};
use crate::document::{Block, Figure, PAGE};
use crate::figure;
use crate::group::Group;
use lab::record::{Tier, TimeSplit, Trial};

/// Maximum number of systems in a picture in addition to plain, because more
/// cannot be distinguished.
const SYSTEMS: usize = 24;

pub(super) fn charts(groups: &[Group<'_>]) -> Vec<Block> {
    let most = groups.iter().map(|group| group.rows.len()).max();
    let crowded = most.filter(|most| *most > SYSTEMS + 1);
    let shown: Vec<Group<'_>> = groups.iter().map(|group| group.fastest(SYSTEMS)).collect();
    let figure = |group: &Group<'_>, chart: Chart| Figure {
        title: group.title(),
        note: group.detail(),
        chart,
    };
    let times = shown.iter().all(is_time);
    let (heading, better) = match times {
        true => ("Time of each operation", "shorter is better"),
        false => ("Throughput", "longer is better"),
    };
    let mut blocks = Vec::new();
    if let Some(most) = crowded {
        blocks.push(Block::note(format!(
            "A workload has up to {most} systems. Pictures show plain and the {SYSTEMS} fastest; \
             the tables show all."
        )));
    }
    blocks.push(Block::heading(3, heading));
    blocks.push(Block::note(format!(
        "Median of the repetitions, {better}; the whisker is its 95 % interval, or the range of fewer than six. Each chart has its own scale."
    )));
    blocks.push(Block::charts(
        shown
            .iter()
            .map(|group| figure(group, rates(group)))
            .collect(),
    ));
    let costs = costs(&shown).map(|chart| {
        vec![
            Block::heading(3, "Cost against plain"),
            Block::note("The grey band shows how much plain differs from itself (A/A)."),
            Block::chart(chart),
        ]
    });
    // Times of operations have pictures of their parts.
    let ledger = ledger(&shown).filter(|_| !times).map(|chart| {
        vec![
            Block::heading(3, "Where the time went"),
            Block::note("Share of the driving threads' time."),
            Block::chart(chart),
        ]
    });
    let pair: Vec<Vec<Block>> = costs.into_iter().chain(ledger).collect();
    if !pair.is_empty() {
        blocks.push(Block::columns(pair));
    }
    let latencies: Vec<Figure> = shown
        .iter()
        .filter_map(|group| Some(figure(group, latencies(group)?)))
        .collect();
    if !latencies.is_empty() {
        blocks.push(Block::heading(3, "Latency"));
        blocks.push(Block::note(
            "Requests sorted by latency: the right edge is the slow tail.",
        ));
        blocks.push(Block::charts(latencies));
    }
    blocks.into_iter().map(|block| block.on(PAGE)).collect()
}

/// Whether the bars of a group are times, of which the shorter is better.
fn is_time(group: &Group<'_>) -> bool {
    group.trial().is_some_and(|trial| trial.tier == Tier::Fs)
}

/// A bar a system, of its rate or its time.
fn rates(group: &Group<'_>) -> Chart {
    let bars = group.rows.iter().map(|row| {
        let trial = row.trial;
        let (length, value, full) = match trial.tier {
            Tier::Fs => {
                let time = figure::time_us(trial);
                let full = time.map_or_else(
                    || figure::UNKNOWN.to_owned(),
                    |time| {
                        let [median, low, high] =
                            [time.median, time.low, time.high].map(figure::duration_us);
                        format!("{median} ({low}–{high}, n {})", time.n)
                    },
                );
                (time, figure::time(trial.median_us()), full)
            }
            _ => {
                let (rate, unit) = figure::rate(trial);
                let full = format!("{} {unit}, n {}", figure::interval(rate), rate.n);
                (Some(rate), figure::rate_in_short(trial), full)
            }
        };
        let label = Label::of(trial, &row.label, value, format!("{}: {full}", row.label));
        Bar::whole(label, length, palette::of(trial))
    });
    let what = if is_time(group) { "Time" } else { "Rate" };
    Chart::new(
        format!("{what}: {}", group.title()),
        WHISKERS,
        Plot::Bars(Bars::of(bars)),
    )
}

/// How bars are read.
pub(crate) const WHISKERS: &str = "One bar per system; the whisker is the 95 % interval of the \
                                   median, or the range of fewer than six values.";

/// The cost of encryption in every workload; `None` when no cell was compared
/// with plain.
fn costs(groups: &[Group<'_>]) -> Option<Chart> {
    let blocks = groups.iter().map(|group| {
        let rows = group.rows.iter().filter_map(|row| {
            let overhead = row.trial.overhead.as_ref()?;
            let ratio = overhead.ratio;
            let told = figure::Quantity::of(row.trial);
            let value = told.difference_in_short(ratio, overhead.verdict);
            let tip = format!(
                "{}, {}: {}; ratio {}",
                group.title(),
                row.label,
                figure::overhead(row.trial),
                figure::ratio(ratio)
            );
            let label = Label::of(row.trial, &row.label, value, tip);
            let dot = Dot::new(
                label,
                ratio.median,
                [ratio.low, ratio.high],
                palette::of(row.trial),
            );
            figure::finite(ratio).then_some(dot)
        });
        let again = group
            .floor()
            .map(|overhead| overhead.ratio)
            .filter(|ratio| figure::finite(*ratio));
        dots::Block {
            title: group.title(),
            band: again.map(|ratio| [ratio.low, ratio.high]),
            rows: rows.collect(),
        }
    });
    let blocks: Vec<dots::Block> = blocks.filter(|block| !block.rows.is_empty()).collect();
    let dots = Dots {
        scale: Scale::Ratio { most: 3.0 },
        foot: "encrypted ÷ plain; left of 1 is slower",
        blocks,
    };
    let about = "One dot per system with its 95 % interval; left of 1 is slower than plain. The \
                 grey band shows how much plain differs from itself.";
    let label = "Throughput of encrypted systems divided by plain";
    (!dots.blocks.is_empty()).then(|| Chart::new(label, about, Plot::Dots(dots)))
}

/// A part of the ledger: its name, its colour, how to read it from a record.
type Part = (&'static str, palette::Colour, fn(&TimeSplit) -> Option<f64>);

const PARTS: [Part; 5] = [
    ("crypto", palette::VERMILLION, |time| time.crypto),
    ("copy", palette::YELLOW, |time| time.copy),
    ("submit", palette::PURPLE, |time| time.submit),
    ("wait", palette::SKY, |time| time.wait),
    ("other", palette::GREY, |time| time.other),
];

/// The time of the driving threads by activity; `None` when no cell has a
/// ledger.
fn ledger(groups: &[Group<'_>]) -> Option<Chart> {
    let blocks = groups.iter().map(|group| {
        let bars = group.rows.iter().filter_map(|row| {
            let shares = shares(row.trial);
            let known: f64 = shares.iter().map(|(_, share)| share).sum();
            let in_words = |(part, share): &(&Part, f64)| {
                format!("{} {}", part.0, figure::share(Some(*share)))
            };
            let words: Vec<String> = shares.iter().map(in_words).collect();
            let parts = shares
                .iter()
                .map(|(part, share)| (*share, part.1, figure::share(Some(*share))));
            // The parts are to add up; a reader must see when they do not.
            let value = match (known - 1.0).abs() < 0.02 {
                true => String::new(),
                false => format!("{} accounted for", figure::share(Some(known))),
            };
            let tip = format!("{}, {}: {}", group.title(), row.label, words.join(", "));
            let label = Label::of(row.trial, &row.label, value, tip);
            let parts = parts.collect();
            (!shares.is_empty()).then(|| Bar {
                label,
                parts,
                ..Bar::default()
            })
        });
        (group.title(), bars.collect::<Vec<Bar>>())
    });
    let bars = Bars {
        legend: PARTS.map(|(name, colour, _)| (name, colour)).into(),
        blocks: blocks.filter(|(_, bars)| !bars.is_empty()).collect(),
        whole: Some(1.0),
    };
    let about = "One bar per system, divided into shares of the driving threads' time.";
    (!bars.blocks.is_empty()).then(|| Chart::new("Where the time went", about, Plot::Bars(bars)))
}

/// The known parts as shares of wall × threads.
fn shares(trial: &Trial) -> Vec<(&'static Part, f64)> {
    let total = trial.thread_seconds().unwrap_or_default();
    if !total.is_finite() || total <= 0.0 {
        return Vec::new();
    }
    let shares = PARTS
        .iter()
        .filter_map(|part| Some((part, part.2(&trial.time_s)? / total)));
    shares
        .filter(|(_, share)| share.is_finite() && *share >= 0.0)
        .collect()
}

/// The end of the axis of latencies. Beyond it, too few requests make up a
/// curve.
const LAST: f64 = 99.99;
/// The percentiles that the axis names; all but the last are marked.
const NAMED: [f64; 5] = [50.0, 90.0, 99.0, 99.9, LAST];

/// The whole distribution, tail stretched; nothing when no cell has one.
fn latencies(group: &Group<'_>) -> Option<Chart> {
    let rows = group.rows.iter().enumerate();
    let rows = rows.filter_map(|(number, row)| Some((number, row, row.trial.latency_us.as_ref()?)));
    let curves = rows.map(|(number, row, latency)| {
        let known = |(percentile, us): &&(f64, f64)| {
            (0.0..=LAST).contains(percentile) && us.is_finite() && *us > 0.0
        };
        let points = latency.curve.iter().filter(known);
        let points: Vec<(f64, f64)> = points
            .map(|(percentile, us)| (stretched(*percentile), *us))
            .collect();
        let tip = format!(
            "{}: p50 {}, p90 {}, p99 {}, p99.9 {}, slowest {}",
            row.label,
            figure::duration_us(latency.p50),
            figure::duration_us(latency.p90),
            figure::duration_us(latency.p99),
            figure::duration_us(latency.p99_9),
            figure::duration_us(latency.max),
        );
        let marks = NAMED[..4].iter().filter_map(|named| {
            let at = stretched(*named);
            Some((at, between(&points, at)?))
        });
        Curve {
            label: Label::of(row.trial, &row.label, "", tip),
            colour: palette::of(row.trial),
            marks: marks.collect(),
            number: Some(number),
            points,
        }
    });
    let curves: Vec<Curve> = curves.filter(|curve| curve.points.len() > 1).collect();
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let low = points().map(|(_, us)| *us).reduce(f64::min)? / 1.15;
    let high = points().fold(0.0, |high: f64, (_, us)| high.max(*us)) * 1.15;
    let last = points().fold(2.0, |last: f64, (at, _)| last.max(*at));
    let percentiles = NAMED.map(|named| (stretched(named), format!("p{named}")));
    let about = "One curve per system over the percentiles of its requests. Each further nine \
                 takes the same width.";
    let plot = Plot::Curves(Curves {
        x: Axis::linear(0.0, last, 1, |_| String::new()).named(percentiles),
        y: Axis::logarithmic(low, high, figure::round_duration),
        band: None,
        curves,
    });
    Some(Chart::new(
        format!("Latency distribution of {}", group.title()),
        about,
        plot,
    ))
}

/// Each further nine of a percentile gets the same room.
fn stretched(percentile: f64) -> f64 {
    -(1.0 - percentile / 100.0).log10()
}

/// A curve's value at `x`, between its two nearest points, straight on the
/// logarithmic axis.
fn between(points: &[(f64, f64)], x: f64) -> Option<f64> {
    let pair = points
        .windows(2)
        .find(|pair| (pair[0].0..=pair[1].0).contains(&x))?;
    let ((x0, y0), (x1, y1)) = (pair[0], pair[1]);
    let share = if x1 > x0 { (x - x0) / (x1 - x0) } else { 0.0 };
    Some((y0.ln() + share * (y1.ln() - y0.ln())).exp())
}
