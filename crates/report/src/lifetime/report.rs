//! Lives as a document: what they come to, then each picture with its values.

use super::{Leak, Life, Lifetime, Moment, SHARES, Setup, daily, lasts, seen, time};
use crate::chart::bars::{Bar, Bars};
use crate::chart::curves::{Curve, Curves};
use crate::chart::strips::{Strip, Strips};
use crate::chart::{Axis, Chart, Label, Plot, TABLED, palette};
use crate::document::{Block, Cell, Column, Document, PAGE, Row, TERMINAL, Table};
use crate::figure;

/// Width of the names of setups before a line of blocks.
const NAME: usize = 38;

pub(super) fn document(record: &Lifetime) -> Document {
    let Lifetime {
        title,
        device,
        years,
        seed,
        ..
    } = record;
    let (written, full) = (daily(record.daily_bytes), figure::share(Some(record.fill)));
    let verdict = record.verdict();
    let mut head = vec![
        Block::heading(1, "What encryption does to an SSD over the years").on(PAGE),
        Block::heading(2, title).on(PAGE),
    ];
    if !verdict.is_empty() {
        head.push(Block::lead(&verdict).on(PAGE));
    }
    head.push(Block::meta(format!(
        "Simulated drive {device} · {written} a day into a file system that is {full} full · {} of \
         the writes within files · observed for {} · seed {seed}",
        figure::share(Some(record.overwrites)),
        time(*years)
    ))
    .on(PAGE));
    let percent = record.fill * 100.0;
    let premises =
        format!("{title}: {written} a day into a file system that is {percent:.0} % full");
    head.push(Block::meta(premises).on(TERMINAL));

    let lines = record.setups.iter().filter_map(|life| {
        let map = shades(life.leak.as_ref()?);
        Some(format!("{:<NAME$}{map}", record.name(life.setup)))
    });
    let amplification = |moment: &Moment| moment.write_amplification;
    let rate = |moment: &Moment| moment.write_mb_s;
    let sections = [
        section(
            &format!("How long it lasts, at {written} a day"),
            "The time until every block has had the erases that the preset allows. Twice as much \
             written a day wears it out in half the time.",
            bars(record),
            vec![outcome(record)],
        ),
        section(
            "Write amplification over time",
            "Flash writes for each write of the host. Most of the change comes early.",
            series("Write amplification over time", record, amplification),
            over_time(record, |moment| {
                format!("{:.2}", moment.write_amplification)
            }),
        ),
        section(
            "Throughput over time, MB/s",
            "The rate that the drive can sustain at that time. Its chips also copy the pages that \
             cleaning moves.",
            series("Throughput over time", record, rate),
            over_time(record, |moment| figure::number(moment.write_mb_s)),
        ),
        section(
            "Erases of the blocks",
            "How many blocks had how many erases when nothing changed any more, or when the years \
             were over. Wear levelling keeps the spread constant while the average grows.",
            erases(record),
            vec![wear(record)],
        ),
        section(
            "What the drive reveals without the key",
            "The drive from its start to its end. Filled parts look like noise; empty parts are \
             visibly unused.",
            maps(record),
            vec![
                leaks(record).on(PAGE),
                Block::verbatim(lines.collect()).on(TERMINAL),
            ],
        ),
    ];
    let mut body: Vec<Block> = sections.into_iter().flatten().collect();
    if !verdict.is_empty() {
        body.push(Block::lead(verdict).on(TERMINAL));
    }
    body.extend(Block::how_to_read(WORDS));
    Document {
        title: format!("What encryption does to an SSD: {title}"),
        head,
        body,
        ..Document::default()
    }
}

/// A picture with its values next to it.
fn section(heading: &str, note: &str, chart: Chart, values: Vec<Block>) -> [Block; 3] {
    [
        Block::heading(3, heading),
        Block::note(note),
        Block::columns(vec![vec![Block::chart(chart)], values]),
    ]
}

/// The colour of a setup, the same in every picture.
fn colour(setup: Setup) -> palette::Colour {
    match setup {
        Setup::Plain => palette::GREY,
        Setup::Passed => palette::BLUE,
        Setup::Blocked => palette::VERMILLION,
        Setup::Filled => palette::ORANGE,
        Setup::Unpartitioned => palette::GREEN,
    }
}

/// The mark that distinguishes a setup from the others without colour. The unencrypted setup has
/// none: it is a broad line below the others, which may hide it.
fn mark(setup: Setup) -> Option<usize> {
    match setup {
        Setup::Plain => None,
        Setup::Passed => Some(0),
        Setup::Blocked => Some(1),
        Setup::Filled => Some(2),
        Setup::Unpartitioned => Some(3),
    }
}

fn label(record: &Lifetime, life: &Life, value: String) -> Label {
    let name = record.name(life.setup);
    Label {
        name,
        value,
        ..Label::default()
    }
}

/// A table of the setups, by what it says of a life.
fn by_setup(record: &Lifetime, columns: Vec<Column>, cells: impl Fn(&Life) -> Vec<Cell>) -> Block {
    let columns = std::iter::once(Column::word("setup").short("")).chain(columns);
    let rows = record.setups.iter().map(|life| {
        let name = Cell::word(record.name(life.setup));
        Row::new(std::iter::once(name).chain(cells(life)).collect())
    });
    Block::table(Table::plain(columns.collect(), rows.collect()))
}

fn outcome(record: &Lifetime) -> Block {
    let columns = vec![
        Column::number("write amplification").short("flash writes"),
        Column::number("sustained rate").short("can write"),
        Column::number("lasts"),
        Column::number("TB written by then").on(PAGE),
        Column::word("seen without the key").on(TERMINAL),
    ];
    by_setup(record, columns, |life| {
        let last = life.moments.last().map(|last| last.write_mb_s);
        let amplification = format!("{:.2}", life.write_amplification);
        vec![
            Cell::word(&amplification).short(format!("{amplification} x")),
            Cell::word(figure::with_unit(last.unwrap_or(f64::NAN), "MB/s"))
                .short(format!("{:.0} MB/s", last.unwrap_or(0.0))),
            Cell::word(lasts(life.lifetime_years)),
            Cell::word(figure::number(life.terabytes_written)),
            Cell::word(seen(life.leak.as_ref())),
        ]
    })
}

/// How long the drive lasts under each setup.
fn bars(record: &Lifetime) -> Chart {
    let bars = record.setups.iter().map(|life| Bar {
        label: label(record, life, lasts(life.lifetime_years)),
        parts: vec![(life.lifetime_years, colour(life.setup), String::new())],
        ..Bar::default()
    });
    Chart::new("Lifetime in years", TABLED, Plot::Bars(Bars::of(bars)))
}

/// A series of each setup at round times. A terminal shows a row for each setup. A page, which has
/// a picture next to it, shows a row for each time.
fn over_time(record: &Lifetime, value: impl Fn(&Moment) -> String) -> Vec<Block> {
    let cell = |life: &Life, years: f64| {
        let value = life.at(years).map(&value);
        Cell::word(value.unwrap_or_else(|| figure::UNKNOWN.to_owned()))
    };
    let times = record.times();
    // The narrower the terminal, the later the first time.
    let columns = (0..)
        .zip(&times)
        .map(|(place, (_, name))| Column::number(name.clone()).until(place));
    let told = by_setup(record, columns.collect(), |life| {
        times.iter().map(|(years, _)| cell(life, *years)).collect()
    });
    let setups = record
        .setups
        .iter()
        .map(|life| Column::number(record.name(life.setup)));
    let columns = std::iter::once(Column::word("after"))
        .chain(setups)
        .collect();
    let rows = times.iter().map(|(years, name)| {
        let cells = record.setups.iter().map(|life| cell(life, *years));
        Row::new(std::iter::once(Cell::word(name)).chain(cells).collect())
    });
    let shown = Block::table(Table::plain(columns, rows.collect()));
    vec![told.on(TERMINAL), shown.on(PAGE)]
}

/// The figure that `value` takes of a moment, over time on a scale of powers.
fn series(label_of: &str, record: &Lifetime, value: fn(&Moment) -> f64) -> Chart {
    let all = record.setups.iter().flat_map(|life| &life.moments);
    let highest = all.map(value).fold(f64::MIN_POSITIVE, f64::max) * 1.08;
    let (begin, end) = (record.begin(), record.years);
    let curves = record.setups.iter().map(|life| {
        // A moment covers the time since the one before it.
        let mut points: Vec<(f64, f64)> = Vec::new();
        let mut since = begin;
        for moment in &life.moments {
            let until = moment.years.clamp(begin, end);
            points.extend([(since, value(moment)), (until, value(moment))]);
            since = until;
        }
        // It goes on as it was last.
        points.extend(points.last().map(|(_, last)| (end, *last)));
        let times = record.times().into_iter();
        let marks = times.filter_map(|(years, _)| Some((years, value(life.at(years)?))));
        Curve {
            label: label(record, life, String::new()),
            colour: colour(life.setup),
            marks: marks.collect(),
            number: mark(life.setup),
            points,
        }
    });
    let name = |tick: f64| {
        figure::number(tick)
            .trim_end_matches(".00")
            .trim_end_matches(".0")
            .to_owned()
    };
    let plot = Plot::Curves(Curves {
        x: Axis::logarithmic(begin, end * 1.0001, |_| String::new()).named(record.times()),
        y: Axis::linear(0.0, highest, 6, name),
        band: None,
        curves: curves.collect(),
    });
    Chart::new(label_of, TABLED, plot)
}

fn wear(record: &Lifetime) -> Block {
    let shares = SHARES.iter().map(|(_, name)| Column::number(*name));
    let last = [
        Column::number("mean"),
        Column::number("counted for").short("after"),
    ];
    by_setup(record, shares.chain(last).collect(), |life| {
        let of = |(share, _): &(f64, &str)| Cell::word(life.erases_at(*share).to_string());
        let mean = Cell::word(format!("{:.1}", life.erases_mean()));
        SHARES
            .iter()
            .map(of)
            .chain([mean, Cell::word(life.counted_until())])
            .collect()
    })
}

/// Columns of all histograms, at most.
const COLUMNS: u32 = 76;

/// How many blocks had how many erases, one setup below the other.
fn erases(record: &Lifetime) -> Chart {
    let most = record.setups.iter().filter_map(|life| life.erases.last());
    let most = most.map(|(erases, _)| *erases).max().unwrap_or(0);
    let step = (most + 1).div_ceil(COLUMNS);
    let columns = (most + 1).div_ceil(step);
    let rows = record.setups.iter().map(|life| {
        let mut blocks = vec![0.0; columns as usize];
        for (erases, number) in &life.erases {
            blocks[(erases / step) as usize] += f64::from(*number);
        }
        let value = format!(
            "mean {}, {}",
            figure::number(life.erases_mean()),
            life.counted_until()
        );
        (label(record, life, value), colour(life.setup), blocks)
    });
    let scale = Axis::linear(0.0, f64::from(columns * step), 5, |tick| {
        figure::grouped(&format!("{tick:.0}"))
    });
    let plot = Plot::Strips(Strips {
        kind: Strip::Histogram,
        scale: Some(scale),
        rows: rows.collect(),
    });
    Chart::new("Erases of the blocks", TABLED, plot)
}

/// Parts of the drive of which the table tells the noise.
const PARTS: usize = 4;

fn leaks(record: &Lifetime) -> Block {
    let parts = (1..=PARTS).map(|part| Column::number(format!("noise in quarter {part}")));
    let columns = [Column::word("sees"), Column::number("judged correctly")];
    by_setup(record, columns.into_iter().chain(parts).collect(), |life| {
        let mut cells = vec![Cell::word(seen(life.leak.as_ref()))];
        if let Some(leak) = &life.leak {
            cells.push(Cell::word(format!("{:.1} %", leak.right * 100.0)));
            let part = leak.map.len().div_ceil(PARTS).max(1);
            cells.extend(leak.map.chunks(part).map(|noise| {
                let mean = noise.iter().sum::<f64>() / noise.len() as f64;
                Cell::word(figure::share(Some(mean)))
            }));
        }
        cells.resize_with(PARTS + 2, || Cell::word(figure::UNKNOWN));
        cells
    })
}

/// The observer's view of the drive, from its start to its end.
fn maps(record: &Lifetime) -> Chart {
    let rows = record.setups.iter().map(|life| {
        let map = life
            .leak
            .as_ref()
            .map(|leak| leak.map.clone())
            .unwrap_or_default();
        (
            label(record, life, seen(life.leak.as_ref())),
            colour(life.setup),
            map,
        )
    });
    let plot = Plot::Strips(Strips {
        kind: Strip::Map,
        scale: None,
        rows: rows.collect(),
    });
    Chart::new("Noise on the drive", TABLED, plot)
}

/// A line of blocks, the darker the more noise.
fn shades(leak: &Leak) -> String {
    let shade = |share: &f64| match *share {
        none if none < 0.02 => '·',
        little if little < 0.35 => '░',
        half if half < 0.7 => '▒',
        most if most < 0.98 => '▓',
        _ => '█',
    };
    leak.map.iter().map(shade).collect()
}

/// The meaning of the words.
const WORDS: [(&str, &str); 6] = [
    (
        "TRIM passed, TRIM blocked",
        "Whether the host tells the drive which pages are free again. Otherwise the drive keeps \
         copying those pages.",
    ),
    (
        "Filled with noise",
        "The whole volume was written once at creation, as TrueCrypt formats it. The drive then \
         treats every page as in use.",
    ),
    (
        "Left unpartitioned",
        "That part of the drive is never written, so cleaning has more room.",
    ),
    (
        "Write amplification",
        "The number of pages that the drive writes to its flash for each page of the host.",
    ),
    (
        "Judged correctly",
        "The share of the drive that an observer judges correctly by taking noise for data and the \
         rest for unused space.",
    ),
    (
        "A simulated drive",
        "is a model with a preset's numbers and no particular firmware. Compare the setups with \
         each other; the years are not a prediction.",
    ),
];
