//! A run as a document: the answer, the place of the measurement, every cell, the additions of each
//! section, the warnings.

mod charts;

pub(crate) use charts::WHISKERS;

use crate::document::{Block, Cell, Column, Document, MARKDOWN, PAGE, Row, Rows, TERMINAL, Table};
use crate::group;
use crate::{
    advice, benchmark, beside, ciphers, energy, figure, file_systems, kdf, marks, steady, sweep,
};
use lab::record::{Latency, NoiseVerdict, Run, Trial};
use maud::html;

/// One run; its title and its name stand above it on a page.
pub(crate) fn document(run: &Run) -> Document {
    let partial = |word: &str| {
        if run.partial {
            format!(", {word}")
        } else {
            String::new()
        }
    };
    let noise = format!("Noise floor: {}", figure::noise(run));
    let points = [
        format!("Run: {}{}, {}", run.run, partial("partial"), run.started),
        format!("Machine: {}", figure::machine(run)),
        format!("Device: {}", figure::devices(run).join("; ")),
        noise.clone(),
    ];
    let mut head = vec![
        Block::heading(2, format!("What encryption costs: {}", run.plan)).on(MARKDOWN),
        Block::lead(advice::sentence(run)),
        Block::gap(),
        Block::list(points).on(MARKDOWN),
        Block::meta(format!(
            "{} · run {} · {}{}",
            run.plan,
            run.run,
            run.started,
            partial("PARTIAL")
        ))
        .on(TERMINAL),
        Block::meta(figure::machine(run)).on(TERMINAL),
    ];
    let devices = figure::devices(run).into_iter();
    head.extend(devices.map(|device| Block::meta(device).on(TERMINAL)));
    head.push(Block::text(noise).on(TERMINAL));
    head.push(provenance(run));

    let mut body = vec![Block::gap()];
    body.extend(cells(run));
    for section in [
        sweep::section(run),
        steady::section(run),
        marks::section(run),
        beside::section(run),
        energy::section(run),
    ] {
        body.push(Block::gap());
        body.extend(section);
    }
    body.push(Block::gap());
    body.push(Block::warnings(group::warnings(run)));
    body.push(Block::heading(3, "Environment").on(PAGE));
    body.push(environment(run));
    Document {
        title: title(std::slice::from_ref(run)),
        head,
        body,
        ..Document::default()
    }
}

/// What is known so far of a run that goes on: the answer, with its pictures and figures.
pub(crate) fn so_far(run: &Run) -> Vec<Block> {
    let mut blocks = vec![Block::lead(advice::sentence(run))];
    blocks.extend(cells(run));
    blocks
}

/// The page of several runs: the answers first, then every run. `way` stands above
/// all.
pub(crate) fn page(runs: &[Run], way: Option<Block>) -> Document {
    let several = runs.len() > 1;
    let mut head: Vec<Block> = way.into_iter().collect();
    head.push(Block::heading(1, "What encryption costs"));
    if runs.is_empty() {
        head.push(Block::lead("There is no run to report."));
    }
    let mut body = Vec::new();
    for (number, run) in runs.iter().enumerate() {
        let name = format!("run-{number}");
        head.push(Block::markup(html! {
            h2 { @if several { a href={ "#" (name) } { (run.plan) } } @else { (run.plan) } }
        }));
        if several {
            body.push(Block::markup(
                html! { h2 id=(name) class="run" { (run.plan) ", " (run.started) } },
            ));
        }
        let told = document(run);
        head.extend(told.head);
        body.extend(told.body);
    }
    body.extend(Block::how_to_read(WORDS));
    Document {
        title: title(runs),
        head,
        body,
        ..Document::default()
    }
}

fn title(runs: &[Run]) -> String {
    let plans: Vec<&str> = runs.iter().map(|run| run.plan.as_str()).collect();
    match plans.as_slice() {
        [] => "What encryption costs".to_owned(),
        plans => format!("What encryption costs: {}", plans.join(", ")),
    }
}

/// How quiet it was, and which run this is, on the page.
fn provenance(run: &Run) -> Block {
    let word = match run.noise.verdict {
        NoiseVerdict::Quiet => "quiet",
        NoiseVerdict::Noisy => "noisy",
        NoiseVerdict::Unknown => "unknown",
    };
    Block::markup(html! {
        p class="noise" {
            span class={ "badge " (word) } { (word) }
            " Noise floor: " (figure::noise(run)) "."
        }
        p class="meta" {
            "Run " (run.run) " · " (run.started) " · " (figure::machine(run))
            @if run.partial { " · " strong { "partial" } }
        }
    })
}

/// The measured cells, arranged as they are compared.
fn cells(run: &Run) -> Vec<Block> {
    let groups = group::groups(&run.trials);
    if ciphers::is_bare(run) {
        let mut blocks = ciphers::section(run);
        if benchmark::is_benchmark(run) {
            blocks = benchmark::section(run, blocks);
        }
        return blocks;
    }
    if kdf::is_kdf(run) {
        return kdf::section(run);
    }
    if groups.is_empty() {
        return vec![Block::text("No cell was measured.").on(TERMINAL | PAGE)];
    }
    let mut blocks = charts::charts(&groups);
    if file_systems::is_fs(run) {
        blocks.extend(file_systems::section(run));
        return blocks;
    }
    for group in &groups {
        blocks.push(Block::heading(3, group.title()).on(MARKDOWN));
        let note = format!(
            "{}. Medians with their 95 % interval, or the range of fewer than six values.",
            group.detail()
        );
        blocks.push(Block::text(note).on(MARKDOWN));
        let rows = group
            .rows
            .iter()
            .map(|row| figures(&row.label, row.trial))
            .collect();
        blocks.push(Block::table(Table::plain(columns(), rows)).on(MARKDOWN));
        if let Some(overhead) = group.floor() {
            let again = figure::Quantity::Rates.difference(overhead.ratio, overhead.verdict);
            let again = format!("Plain against itself (A/A): {again}");
            blocks.push(Block::text(again).on(MARKDOWN));
        }
    }
    let all = groups.iter().map(|group| {
        let rows = group.rows.iter().map(|row| figures(&row.label, row.trial));
        Rows {
            title: group.title(),
            detail: group.detail(),
            rows: rows.chain(group.again.as_ref().map(again)).collect(),
            remark: None,
        }
    });
    blocks.push(Block::heading(3, "All figures").on(PAGE));
    blocks.push(Block::table(Table::new(columns(), all.collect())).on(TERMINAL | PAGE));
    blocks
}

fn columns() -> Vec<Column> {
    vec![
        Column::word("system").bare(),
        Column::number("rate").alone(),
        Column::number("n").on(MARKDOWN | PAGE),
        Column::number("p50").on(MARKDOWN | PAGE),
        Column::number("p99").until(1),
        Column::number("p99.9").on(PAGE),
        Column::word("against plain"),
        Column::number("smallest difference").on(MARKDOWN | PAGE),
        Column::number("crypto").until(0),
        Column::word("limit").until(0),
    ]
}

fn figures(label: &str, trial: &Trial) -> Row {
    let (rate, unit) = figure::rate(trial);
    let duration = |part: fn(&Latency) -> f64| {
        let us = trial.latency_us.as_ref().map(part);
        Cell::known(figure::time(us), us.filter(|us| *us > 0.0))
    };
    let cost = trial.overhead.as_ref();
    let smallest = cost.and_then(|cost| cost.smallest);
    let crypto = figure::crypto_share(trial);
    let cells = vec![
        Cell::word(label),
        Cell::number(format!("{} {unit}", figure::interval(rate)), rate.median)
            .short(figure::with_unit(rate.median, unit)),
        Cell::number(rate.n.to_string(), f64::from(rate.n)),
        duration(|latency| latency.p50),
        duration(|latency| latency.p99),
        duration(|latency| latency.p99_9),
        Cell::known(figure::overhead(trial), cost.map(|cost| cost.ratio.median)),
        Cell::known(
            smallest.map_or_else(String::new, |share| {
                format!("{} %", figure::percent(share * 100.0))
            }),
            smallest,
        ),
        Cell::known(figure::share(crypto), crypto),
        Cell::word(figure::limit(trial)),
    ];
    Row::of(trial, cells).hint(trial.cipher.as_deref())
}

/// The row of a second measurement. On a terminal only its ratio says something
/// new: the noise floor of this workload.
fn again(again: &group::Row<'_>) -> Row {
    let mut row = figures(&again.label, again.trial);
    for place in [1, 4, 8, 9] {
        row.cells[place].short = Some(String::new());
    }
    row
}

/// The machine and the devices, as far as they are known.
fn environment(run: &Run) -> Block {
    let host = &run.host;
    let hertz = |hertz: Option<f64>| hertz.map(|hertz| figure::with_unit(hertz / 1e9, "GHz"));
    let some = |text: &String| (!text.is_empty()).then(|| text.clone());
    let clock = format!(
        "resolution {} ns, {} ns a reading",
        figure::number(host.clock_resolution_ns),
        figure::number(host.clock_cost_ns)
    );
    let facts = [
        ("Processor", some(&host.cpu)),
        ("Cores", (host.cores > 0).then(|| host.cores.to_string())),
        ("Clock under load", hertz(host.clock_hz)),
        ("Time-stamp counter", hertz(host.tsc_hz)),
        ("Clock used", Some(clock)),
        ("Cipher instructions", some(&host.features.join(" "))),
        ("Governor", host.governor.clone()),
        (
            "Memory",
            (host.memory > 0).then(|| figure::bytes(host.memory)),
        ),
        ("System", some(&host.os)),
        ("Kernel", some(&host.kernel)),
        ("Hypervisor", host.hypervisor.clone()),
        ("Load average", host.load_average.map(figure::number)),
        (
            "Stolen CPU time",
            host.steal.map(|steal| figure::share(Some(steal))),
        ),
        ("Seed", Some(run.seed.to_string())),
    ];
    let facts = facts
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?)));
    let devices = figure::devices(run)
        .into_iter()
        .map(|device| ("Device".to_owned(), device));
    let versions = host
        .versions
        .iter()
        .map(|(name, version)| (name.clone(), version.clone()));
    Block::facts(facts.chain(devices).chain(versions))
}

/// The meaning of the words and the charts.
const WORDS: [(&str, &str); 9] = [
    (
        "Noise floor",
        "The difference between two measurements of the plain system. A smaller difference below \
         means nothing.",
    ),
    (
        "Against plain",
        "The rate divided by the plain rate on the same data, from rounds that measured both in \
         alternation. Each rate covers all rounds of its system; a system that is decided early \
         has fewer. The interval holds the true median with 95 % confidence. With fewer than six \
         values it is the range from the smallest to the largest. Fewer than three values are too \
         few for a verdict. “not distinguishable” is a result, not a failure.",
    ),
    (
        "Smallest difference",
        "A smaller loss of rate could not be detected: it lies within the interval or the noise \
         floor.",
    ),
    (
        "Limit",
        "Where most of the time went. If the device is the limit, the cipher had time to spare, \
         and a faster device would show a larger cost.",
    ),
    (
        "Cycles per byte",
        "The time of one thread multiplied by the core's clock, which was measured before. It \
         carries over to other machines of the same kind better than MB/s.",
    ),
    (
        "Pictures",
        "Point at a row to see its values, or focus the picture with the tab key and press the \
         arrow keys.",
    ),
    (
        "Tables",
        "Click a column's head to sort each workload by it: ascending, then descending, then in \
         the original order.",
    ),
    ("p99", "99 of 100 requests were faster than this."),
    (
        "MB/s",
        "Millions of bytes a second (10⁶); KiB and MiB are powers of two.",
    ),
];
