//! The report of a run of bare ciphers: charts first, then every figure.

use super::{Line, curve, lines, main_loads, more_threads, threads, title};
use crate::chart::bars::{Bar, Bars};
use crate::chart::curves::{Curve, Curves};
use crate::chart::{Axis, Chart, Label, Plot, palette};
use crate::document::{Block, Cell, Column, Figure, MARKDOWN, PAGE, Row, TERMINAL, Table};
use crate::figure;
use lab::record::{Load, Run, Trial};

/// A picture and a table for each direction, then the curves over request sizes.
pub(crate) fn section(run: &Run) -> Vec<Block> {
    let loads = main_loads(run);
    let figures = loads.iter().map(|load| Figure {
        title: title(load),
        note: String::new(),
        chart: rates(&title(load), &lines(run, load)),
    });
    let mut blocks = vec![
        Block::heading(3, "The engine compared with the fastest library").on(PAGE),
        Block::note(
            "Median of the repetitions; the whisker is its 95 % interval. The grey bar is the \
             fastest library with that cipher.",
        )
        .on(PAGE),
        Block::charts(figures.collect()),
    ];
    for load in &loads {
        blocks.push(Block::heading(3, title(load)));
        blocks.push(Block::text("Medians with their 95 % interval.").on(MARKDOWN));
        blocks.push(Block::table(table(run, load)));
    }
    for load in &loads {
        let figures: Vec<Figure> = lines(run, load)
            .iter()
            .filter_map(|line| by_size(run, load, line))
            .collect();
        if !figures.is_empty() {
            let heading = format!("{} by size of requests, {}", load.op, threads(load.threads));
            blocks.push(Block::heading(3, heading).on(PAGE));
            let note = "MB/s; both scales are logarithmic. A library is called once per sector.";
            blocks.push(Block::note(note).on(PAGE));
            blocks.push(Block::charts(figures));
        }
    }
    blocks
}

fn table(run: &Run, load: &Load) -> Table {
    let parallel: Vec<(String, Vec<Line<'_>>)> = more_threads(run, load)
        .into_iter()
        .map(|load| (threads(load.threads), lines(run, &load)))
        .collect();
    let mut columns = vec![
        Column::word("cipher").bare(),
        Column::number("sector"),
        Column::number("MB/s"),
        Column::number("time of a request").on(MARKDOWN | PAGE),
        Column::number("cycles/B").short("c/B").until(0),
        Column::word("against the best library")
            .short("best library")
            .until(0),
        Column::word("weakest size").on(MARKDOWN | PAGE),
        Column::word("constant time").short("const. time").until(0),
        Column::word("by request size, MB/s").on(MARKDOWN),
    ];
    // A terminal has the most threads: numbers between them are in the other reports.
    for (number, (name, _)) in parallel.iter().enumerate() {
        let last = number + 1 == parallel.len();
        let on = if last { TERMINAL | PAGE } else { PAGE };
        columns.push(Column::number(name.clone()).on(on));
    }
    if parallel.is_empty() {
        columns.push(Column::number("a request").on(TERMINAL).until(0));
    }
    let rows = lines(run, load);
    Table::plain(
        columns,
        rows.iter().map(|line| row(run, line, &parallel)).collect(),
    )
}

fn row(run: &Run, line: &Line<'_>, parallel: &[(String, Vec<Line<'_>>)]) -> Row {
    let trial = line.trial;
    let rate = |trial: &Trial| {
        let rate = trial.throughput_mb_s;
        Cell::number(figure::interval(rate), rate.median).short(figure::number(rate.median))
    };
    let sizes: Vec<String> = curve(run, trial)
        .iter()
        .map(|point| {
            let rate = figure::number(point.throughput_mb_s.median);
            format!("{}: {rate}", figure::size(point.block_bytes))
        })
        .collect();
    let mut cells = vec![
        Cell::word(&line.name),
        Cell::known(
            trial
                .sector_bytes
                .map_or_else(String::new, |bytes| bytes.to_string()),
            trial.sector_bytes.map(f64::from),
        ),
        rate(trial),
        Cell::known(line.time(), trial.median_us()),
        Cell::known(
            line.cycles(),
            trial.cycles_per_byte.map(|cycles| cycles.median),
        ),
        Cell::known(
            line.against(),
            line.best_peer().map(|(_, ratio, _)| ratio.median),
        )
        .short(line.against_in_short()),
        Cell::known(line.weakest(), line.weakest.map(|(ratio, _)| ratio.median)),
        Cell::word(line.constant_time()),
        Cell::word(sizes.join(", ")),
    ];
    cells.extend(parallel.iter().map(|(_, others)| {
        let same = others
            .iter()
            .find(|other| other.trial.encryption() == trial.encryption());
        same.map_or_else(Cell::default, |same| rate(same.trial))
    }));
    if parallel.is_empty() {
        cells.push(Cell::word(line.time()));
    }
    let row = Row::of(trial, cells).hint(trial.cipher.as_deref());
    Row {
        note: trial.backend.clone(),
        ..row
    }
}

/// A bar a cipher, the fastest library's in grey below it.
fn rates(title: &str, lines: &[Line<'_>]) -> Chart {
    let finite = |trial: &Trial| Some(trial.throughput_mb_s).filter(|rate| figure::finite(*rate));
    let bars = lines.iter().map(|line| {
        let rate = line.trial.throughput_mb_s;
        let sector = line.trial.sector_bytes.unwrap_or_default();
        let median = figure::number(rate.median);
        let mut tip = format!(
            "{}, {sector}-byte sectors: {} MB/s, n {}",
            line.name,
            figure::interval(rate),
            rate.n
        );
        let value = match line.best_peer() {
            Some((_, ratio, _)) => {
                tip += &format!("; against the best library: {}", line.against());
                format!("{median}, {} ×", figure::number(ratio.median))
            }
            None => median,
        };
        let peer = line.peers.first().and_then(|peer| finite(peer));
        let label = Label::of(line.trial, format!("{}, {sector}", line.name), value, tip);
        Bar {
            peer: peer.map(|rate| rate.median),
            ..Bar::whole(label, Some(rate), palette::of(line.trial))
        }
    });
    let about = "One bar per cipher with the 95 % interval of its median; below it, in grey, the \
                 fastest library.";
    Chart::new(format!("Rates: {title}"), about, Plot::Bars(Bars::of(bars)))
}

/// The rate of a cipher over the size of requests, by the engine in colour and by the libraries;
/// `None` if fewer than two sizes were measured.
fn by_size(run: &Run, load: &Load, line: &Line<'_>) -> Option<Figure> {
    let sector = line.trial.sector_bytes.unwrap_or_default();
    let title = format!("{}, {sector}-byte sectors", line.name);
    let systems = std::iter::once(&line.trial).chain(&line.peers);
    let mut curves: Vec<Curve> = Vec::new();
    for &trial in systems {
        let points = curve(run, trial)
            .into_iter()
            .filter_map(|trial| Some((trial.block_bytes? as f64, trial.throughput_mb_s.median)));
        let points: Vec<(f64, f64)> = points
            .filter(|(bytes, rate)| *bytes > 0.0 && rate.is_finite() && *rate > 0.0)
            .collect();
        if points.len() < 2 {
            continue;
        }
        let name = match &trial.backend {
            Some(backend) => format!("{}, {backend}", trial.system),
            None => format!("{} {}", trial.system, trial.system_version),
        };
        let values: Vec<String> = points
            .iter()
            .map(|(size, rate)| {
                format!("{} {}", figure::bytes(*size as u64), figure::number(*rate))
            })
            .collect();
        let tip = format!("{name}, MB/s: {}", values.join(", "));
        curves.push(Curve {
            label: Label::of(trial, name, "", tip),
            colour: if curves.is_empty() {
                palette::of(trial)
            } else {
                palette::GREY
            },
            marks: points.clone(),
            number: Some(curves.len()),
            points,
        });
    }
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let first = points().map(|(size, _)| *size).reduce(f64::min)?;
    let last = points().map(|(size, _)| *size).fold(first, f64::max);
    let low = points().map(|(_, rate)| *rate).reduce(f64::min)? / 1.3;
    let high = points().map(|(_, rate)| *rate).fold(low, f64::max) * 1.3;
    let rate = |rate: f64| match rate {
        rate if rate < 1.0 => figure::number(rate),
        rate => figure::grouped(&format!("{rate:.0}")),
    };
    let about = "One curve per system: its rate by request size. Both scales are logarithmic.";
    let named = sizes(first as u64, last as u64).map(|size| (size as f64, figure::bytes(size)));
    let plot = Plot::Curves(Curves {
        x: Axis::logarithmic(first, last, |_| String::new()).named(named),
        y: Axis::logarithmic(low, high, rate),
        band: None,
        curves,
    });
    let chart = Chart::new(
        format!("{} of {title} by size of requests", load.op),
        about,
        plot,
    );
    let note = String::new();
    Some(Figure { title, note, chart })
}

/// Every second or third power of two, so that their names do not touch.
fn sizes(first: u64, last: u64) -> impl Iterator<Item = u64> {
    let step = if last / first > 512 { 3 } else { 2 };
    (0..64)
        .step_by(step)
        .map_while(move |power| first.checked_mul(1 << power))
        .take_while(move |size| *size <= last)
}
