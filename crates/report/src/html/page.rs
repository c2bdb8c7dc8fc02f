//! The body of a report: the answers first, then of each run charts and every figure.

use super::chart::{bars, forest, latency, ledger};
use super::table::{self, Cell};
use crate::group::{self, Group};
use crate::{advice, benchmark, beside, ciphers, figure, file_systems, kdf, marks, steady, sweep};
use lab::record::{NoiseVerdict, Run, Trial};
use maud::{Markup, html};

/// Trials from which on a page is large.
const LARGE: usize = 1000;

/// The page's body: the answers first, then every run. `way` stands above all.
pub(super) fn body(runs: &[Run], way: Markup) -> Markup {
    let several = runs.len() > 1;
    // What is out of sight is then not laid out; who takes a picture of a whole
    // page would miss it, so that smaller pages do without.
    let large = runs.iter().map(|run| run.trials.len()).sum::<usize>() > LARGE;
    html! {
        a class="skip" href="#figures" { "Skip to the pictures and tables" }
        header {
            (way)
            h1 { "What encryption costs" }
            @if runs.is_empty() { p class="lead" { "There is no run to report on." } }
            @for (number, run) in runs.iter().enumerate() {
                h2 {
                    @if several { a href=(format!("#run-{number}")) { (run.plan) } }
                    @else { (run.plan) }
                }
                p class="lead" { (advice::sentence(run)) }
                (noise(run))
                p class="meta" {
                    "Run " (run.run) " · " (run.started) " · " (figure::machine(run))
                    @if run.partial { " · " strong { "partial" } }
                }
            }
            div id="pick" {}
        }
        main id="figures" class=[large.then_some("large")] {
            @for (number, run) in runs.iter().enumerate() {
                article id=(format!("run-{number}")) {
                    @if several { h2 { (run.plan) ", " (run.started) } }
                    (sections(run))
                }
            }
            (how_to_read())
        }
    }
}

/// Everything about one run.
fn sections(run: &Run) -> Markup {
    let groups = group::groups(&run.trials);
    html! {
        @if ciphers::is_bare(run) {
            (ciphers::html::sections(run))
            @if benchmark::is_benchmark(run) { (benchmark::html(run)) }
        } @else if kdf::is_kdf(run) {
            (kdf::html(run))
        } @else if groups.is_empty() {
            p { "No cell was measured." }
        } @else if file_systems::is_fs(run) {
            (charts(&groups))
            (file_systems::html(run))
        } @else {
            (charts(&groups))
            (table(&groups))
        }
        @if let Some(lives) = sweep::html(run) { (lives) }
        @if let Some(steady) = steady::html(run) { (steady) }
        @if let Some(marks) = marks::html(run) { (marks) }
        @if let Some(beside) = beside::html(run) { (beside) }
        (warnings(run))
        (environment(run))
    }
}

fn noise(run: &Run) -> Markup {
    let (class, word) = match run.noise.verdict {
        NoiseVerdict::Quiet => ("quiet", "quiet"),
        NoiseVerdict::Noisy => ("noisy", "noisy"),
        NoiseVerdict::Unknown => ("unknown", "unknown"),
    };
    html! {
        p class="noise" {
            span class={ "badge " (class) } { (word) }
            " Noise floor: " (figure::noise(run)) "."
        }
    }
}

/// How many systems a picture shows beside plain: more cannot be told apart.
const SYSTEMS: usize = 24;

fn charts(groups: &[Group<'_>]) -> Markup {
    let most = groups.iter().map(|group| group.rows.len()).max();
    let crowded = most.filter(|most| *most > SYSTEMS + 1);
    let shown: Vec<Group<'_>> = groups.iter().map(|group| group.fastest(SYSTEMS)).collect();
    let groups = shown.as_slice();
    let latencies: Vec<(&Group<'_>, Markup)> = groups
        .iter()
        .filter_map(|group| Some((group, latency::render(group)?)))
        .collect();
    let forest = forest::render(groups);
    let times = groups.iter().all(bars::is_time);
    // Times of operations have pictures of their parts.
    let ledger = (!times).then(|| ledger::render(groups)).flatten();
    let (heading, better) = match times {
        true => ("Time of each operation", "shorter is better"),
        false => ("Throughput", "longer is better"),
    };
    html! {
        @if let Some(most) = crowded {
            p class="note" {
                "Of the up to " (most) " systems of a workload, pictures show the " (SYSTEMS)
                " fastest and plain; the tables have all."
            }
        }
        section {
            h3 { (heading) }
            p class="note" {
                "Median of the repetitions, " (better) "; the whisker is its 95 % interval. "
                "Each chart has its own scale."
            }
            div class="charts" {
                @for group in groups { (chart(group, bars::render(group))) }
            }
        }
        @if forest.is_some() || ledger.is_some() {
            div class="charts pair" {
                @if let Some(forest) = forest {
                    section {
                        h3 { "Cost against plain" }
                        p class="note" { "The grey band is how much plain differs from itself (A/A)." }
                        figure { (forest) }
                    }
                }
                @if let Some(ledger) = ledger {
                    section {
                        h3 { "Where the time went" }
                        p class="note" { "Share of the driving threads' time." }
                        figure { (ledger) }
                    }
                }
            }
        }
        @if !latencies.is_empty() {
            section {
                h3 { "Latency" }
                p class="note" { "Requests sorted by latency: the right edge is the slow tail." }
                div class="charts" {
                    @for (group, svg) in latencies { (chart(group, svg)) }
                }
            }
        }
    }
}

fn chart(group: &Group<'_>, svg: Markup) -> Markup {
    html! {
        figure {
            figcaption { strong { (group.title()) } " " span class="note" { (group.detail()) } }
            (svg)
        }
    }
}

/// The names of the columns; a phone shows them beside each value.
const COLUMNS: [&str; 8] = [
    "Rate",
    "n",
    "p50",
    "p99",
    "p99.9",
    "Against plain",
    "Crypto",
    "Limit",
];

fn table(groups: &[Group<'_>]) -> Markup {
    html! {
        section {
            h3 { "All figures" }
            div class="scroll" { table class="sorts" {
                (table::head(std::iter::once("System").chain(COLUMNS)))
                @for group in groups {
                    tbody {
                        (table::group(COLUMNS.len() + 1, html! {
                            (group.title()) " " span class="note" { (group.detail()) }
                        }))
                        @for row in &group.rows { (cells(&row.label, row.trial)) }
                        @if let Some(again) = group.again { (cells(&group::label(again), again)) }
                    }
                }
            } }
        }
    }
}

fn cells(label: &str, trial: &Trial) -> Markup {
    let (rate, unit) = figure::rate(trial);
    let latency = &trial.latency_us;
    let duration = |us: f64| Cell::known(figure::duration_us(us), Some(us).filter(|us| *us > 0.0));
    let cost = trial.overhead.as_ref();
    let crypto = figure::crypto_share(trial);
    let cells = [
        Cell::number(format!("{} {unit}", figure::interval(rate)), rate.median),
        Cell::number(rate.n.to_string(), f64::from(rate.n)),
        duration(latency.p50),
        duration(latency.p99),
        duration(latency.p99_9),
        Cell::known(
            cost.map_or_else(String::new, figure::overhead),
            cost.map(|cost| cost.ratio.median),
        ),
        Cell::known(figure::share(crypto), crypto),
        Cell::word(figure::limit(trial)),
    ];
    table::row(
        trial,
        trial.cipher.as_deref(),
        html! { (label) },
        COLUMNS,
        &cells,
    )
}

fn warnings(run: &Run) -> Markup {
    let warnings = group::warnings(run);
    html! {
        @if !warnings.is_empty() {
            section {
                h3 { "Warnings" }
                ul class="warning" { @for warning in warnings { li { (warning) } } }
            }
        }
    }
}

fn environment(run: &Run) -> Markup {
    let host = &run.host;
    let hertz = |hertz: Option<f64>| hertz.map(|hertz| figure::with_unit(hertz / 1e9, "GHz"));
    let some = |text: &String| (!text.is_empty()).then(|| text.clone());
    let mut facts = vec![
        ("Processor", some(&host.cpu)),
        ("Cores", (host.cores > 0).then(|| host.cores.to_string())),
        ("Clock under load", hertz(host.clock_hz)),
        ("Time-stamp counter", hertz(host.tsc_hz)),
        (
            "Clock used",
            Some(format!(
                "resolution {} ns, {} ns a reading",
                figure::number(host.clock_resolution_ns),
                figure::number(host.clock_cost_ns)
            )),
        ),
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
    facts.extend(
        figure::devices(run)
            .into_iter()
            .map(|device| ("Device", Some(device))),
    );
    html! {
        section {
            h3 { "Environment" }
            dl {
                @for (name, value) in facts {
                    @if let Some(value) = value { div { dt { (name) } dd { (value) } } }
                }
                @for (name, version) in &host.versions {
                    div { dt { (name) } dd { (version) } }
                }
            }
        }
    }
}

/// What the words and the charts mean.
fn how_to_read() -> Markup {
    let words = [
        (
            "Noise floor",
            "The plain system measured twice. If it differs from itself, no smaller difference below means anything.",
        ),
        (
            "Against plain",
            "The rate divided by the plain rate on the same data, measured in turns. \
             The interval holds the true median with 95 % confidence; \
             “not distinguishable” is a result, not a failure.",
        ),
        (
            "Limit",
            "What most of the time went to. Where the device is the limit, the cipher had time to spare: \
             a faster device would show a larger cost.",
        ),
        (
            "Cycles per byte",
            "Time of one thread times the core's clock, which was measured before; it carries over to \
             other machines of the same kind better than MB/s.",
        ),
        (
            "Pictures",
            "Point at a row to see its values; or focus the picture with the tab key and press the arrow keys.",
        ),
        (
            "Tables",
            "A column's head sorts by it, within each workload: up, then down, then as it was.",
        ),
        ("p99", "99 of 100 requests were faster than this."),
        (
            "MB/s",
            "Millions of bytes a second (10⁶); KiB and MiB are powers of two.",
        ),
    ];
    html! {
        section class="how" {
            h3 { "How to read this" }
            dl { @for (word, meaning) in words { div { dt { (word) } dd { (meaning) } } } }
        }
    }
}
