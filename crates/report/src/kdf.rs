//! Runs of key derivations: what unlocking costs here, and what a guess at a
//! passphrase costs whoever has the volume's header.
//!
//! A guess takes `threads × lanes` cores, as far as the machine has them, for
//! `1 / rate` seconds. What an attacker's other hardware would cost is not
//! measured and not estimated.

use crate::figure;
use crate::group;
use crate::html::chart::costs::{self, Cost};
use crate::html::table::{self, Cell};
use crate::markdown::escape;
use crate::text::Style;
use comfy_table::CellAlignment;
use lab::record::{Interval, Kdf, Run, Trial};
use maud::{Markup, html};

/// Whether a run measured key derivations and nothing else.
pub(crate) fn is_kdf(run: &Run) -> bool {
    !run.trials.is_empty() && run.trials.iter().all(|trial| trial.kdf.is_some())
}

/// A Julian year, as astronomers and crackers count.
const YEAR_SECONDS: f64 = 365.25 * 86_400.0;

/// One recipe: its unlocking, and its guessing where that was measured.
struct Line<'a> {
    unlock: &'a Trial,
    kdf: &'a Kdf,
    guess: Option<Guess>,
}

/// What trying a passphrase costs.
struct Guess {
    /// All cores of the machine together.
    per_second: f64,
    core_seconds: f64,
}

/// The dearest guess first; what was not guessed comes last.
fn lines(run: &Run) -> Vec<Line<'_>> {
    let of = |op: &'static str| {
        let fits = move |trial: &&Trial| trial.op == op && !group::is_again(trial);
        run.trials.iter().filter(fits)
    };
    let mut lines: Vec<Line<'_>> = of("unlock")
        .filter_map(|unlock| {
            let guess = of("guess").find(|guess| guess.workload == unlock.workload);
            Some(Line {
                unlock,
                kdf: unlock.kdf.as_ref()?,
                guess: guess.and_then(|trial| Guess::of(trial, run.host.cores)),
            })
        })
        .collect();
    let cost = |line: &Line<'_>| line.guess.as_ref().map_or(0.0, |guess| guess.core_seconds);
    lines.sort_by(|a, b| cost(b).total_cmp(&cost(a)));
    lines
}

impl Guess {
    fn of(trial: &Trial, cores: u32) -> Option<Self> {
        let lanes = trial.kdf.as_ref()?.lanes;
        let busy = trial.threads.saturating_mul(lanes).min(cores.max(1));
        let per_second = trial.iops.median;
        (per_second.is_finite() && per_second > 0.0).then(|| Self {
            per_second,
            core_seconds: f64::from(busy) / per_second,
        })
    }

    fn per_core_year(&self) -> f64 {
        YEAR_SECONDS / self.core_seconds
    }
}

impl Line<'_> {
    /// `sha512 × 500,000`, `argon2id, 4 passes, 4 lanes`.
    fn derivation(&self) -> String {
        let kdf = self.kdf;
        let iterations = figure::grouped(&kdf.iterations.to_string());
        match &kdf.hash {
            Some(hash) => format!("{hash} × {iterations}"),
            None => format!("{}, {iterations} passes, {} lanes", kdf.name, kdf.lanes),
        }
    }

    /// The workload without what the derivation repeats: `veracrypt-system`.
    fn format(&self) -> String {
        let name = &self.unlock.workload;
        let cut = name.find(&format!("-{}", self.kdf.name));
        cut.map_or_else(|| name.clone(), |at| name[..at].to_owned())
    }

    fn memory(&self) -> String {
        match self.kdf.memory_kib {
            0 => figure::UNKNOWN.to_owned(),
            kib => figure::bytes(u64::from(kib) * 1024),
        }
    }

    /// Time of one unlock, with the interval over the repetitions.
    fn unlock(&self) -> String {
        let rate = self.unlock.iops;
        if !figure::finite(rate) || rate.low <= 0.0 {
            return figure::UNKNOWN.to_owned();
        }
        let ms = |rate: f64| figure::number(1e3 / rate);
        format!("{} ({}–{})", ms(rate.median), ms(rate.high), ms(rate.low))
    }

    fn guess(&self, value: impl Fn(&Guess) -> f64) -> String {
        self.guess.as_ref().map_or_else(
            || figure::UNKNOWN.to_owned(),
            |guess| figure::number(value(guess)),
        )
    }

    /// How many times as dear as the cheapest guess of the run.
    fn against(&self, cheapest: Option<f64>) -> String {
        match cheapest {
            Some(cheapest) => format!("{} ×", self.guess(|guess| guess.core_seconds / cheapest)),
            None => figure::UNKNOWN.to_owned(),
        }
    }

    fn cells(&self, cheapest: Option<f64>) -> [String; 8] {
        [
            self.format(),
            self.derivation(),
            self.unlock(),
            self.memory(),
            self.guess(|guess| guess.core_seconds),
            self.guess(|guess| guess.per_second),
            self.guess(Guess::per_core_year),
            self.against(cheapest),
        ]
    }

    fn pictured(&self) -> Cost<'_> {
        let rate = self.unlock.iops;
        Cost {
            name: format!("{}, {}", self.format(), self.derivation()),
            trial: self.unlock,
            unlock: Interval {
                median: 1.0 / rate.median,
                low: 1.0 / rate.high,
                high: 1.0 / rate.low,
                n: rate.n,
            },
            guess: self.guess.as_ref().map(|guess| guess.core_seconds),
        }
    }

    /// The row of the page's table.
    fn row(&self, cheapest: Option<f64>) -> Markup {
        let guess = self.guess.as_ref();
        let values = [
            None,
            Some(1e3 / self.unlock.iops.median),
            Some(f64::from(self.kdf.memory_kib)),
            guess.map(|guess| guess.core_seconds),
            guess.map(|guess| guess.per_second),
            guess.map(Guess::per_core_year),
            guess.map(|guess| guess.core_seconds),
        ];
        let [name, texts @ ..] = self.cells(cheapest);
        let cells: Vec<Cell> = texts
            .into_iter()
            .zip(values)
            .map(|(text, value)| Cell::known(text, value))
            .collect();
        let (title, name) = (&self.unlock.workload, html! { (name) });
        let columns = COLUMNS.into_iter().skip(1);
        table::row(self.unlock, Some(title), name, columns, &cells)
    }
}

/// Core-seconds of the cheapest guess.
fn cheapest(lines: &[Line<'_>]) -> Option<f64> {
    let costs = lines.iter().filter_map(|line| line.guess.as_ref());
    costs.map(|guess| guess.core_seconds).min_by(f64::total_cmp)
}

const COLUMNS: [&str; 8] = [
    "format",
    "derivation",
    "unlock, ms",
    "memory",
    "core-s a guess",
    "guesses/s",
    "a core-year",
    "cost",
];

/// The columns that a terminal has, by their places, and those of a narrow one.
const TERMINAL: [usize; 6] = [0, 1, 2, 3, 4, 7];
const NARROW: [usize; 4] = [0, 1, 2, 4];

/// What the figures of a terminal mean.
const TERMINAL_NOTE: &str = "A guess costs core-seconds of this machine and the memory beside it; cost is against \
     the cheapest guess of the run. Whoever has faster hardware pays less.";

/// What the figures mean.
const NOTE: &str = "A guess costs core-seconds of this machine and the memory beside it; guesses/s are \
     those of all its cores; a core-year is how many passphrases one core tries in a year; cost is \
     against the cheapest guess of the run. Whoever has faster hardware pays less.";

/// What to choose, in a sentence.
pub(crate) fn sentence(run: &Run) -> String {
    let lines = lines(run);
    let mut guessed = lines.iter().filter(|line| line.guess.is_some());
    let (Some(dearest), Some(cheapest)) = (guessed.next(), guessed.next_back()) else {
        return "Too little was measured to compare what a guess costs.".to_owned();
    };
    let name = |line: &Line<'_>| format!("{} ({})", line.format(), line.derivation());
    format!(
        "A guess costs most with {}: {} core-seconds and {} of memory; least with {}: {} core-seconds.",
        name(dearest),
        dearest.guess(|guess| guess.core_seconds),
        match dearest.kdf.memory_kib {
            0 => "next to nothing".to_owned(),
            _ => dearest.memory(),
        },
        name(cheapest),
        cheapest.guess(|guess| guess.core_seconds),
    )
}

/// The table on a terminal.
pub(crate) fn text(run: &Run, style: &Style) -> Vec<String> {
    let fits = |lines: &Vec<String>| {
        let width = |line: &String| line.chars().count();
        lines.iter().all(|line| width(line) <= style.columns())
    };
    let mut out = [&TERMINAL[..], &NARROW]
        .into_iter()
        .map(|columns| laid_out(run, style, columns))
        .find(fits)
        .unwrap_or_else(|| stacked(run, style));
    out.push(String::new());
    style.wrap(&mut out, TERMINAL_NOTE);
    out
}

fn laid_out(run: &Run, style: &Style, columns: &[usize]) -> Vec<String> {
    let header: Vec<&str> = columns.iter().map(|&place| COLUMNS[place]).collect();
    let mut table = style.table(&header);
    let lines = lines(run);
    let cheapest = cheapest(&lines);
    for line in &lines {
        let cells = line.cells(cheapest);
        table.add_row(columns.iter().map(|&place| style.text(&cells[place])));
    }
    for column in 2..columns.len() {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
        .lines()
        .map(|line| line.trim_end().to_owned())
        .collect()
}

/// No table, for what is too narrow.
fn stacked(run: &Run, style: &Style) -> Vec<String> {
    let mut out = Vec::new();
    for line in lines(run) {
        style.wrap(
            &mut out,
            &format!("{}, {}", line.format(), line.derivation()),
        );
        style.wrap(
            &mut out,
            &format!(
                "  unlock {} ms, {} core-seconds a guess",
                line.unlock(),
                line.guess(|guess| guess.core_seconds)
            ),
        );
    }
    out
}

/// The table as Markdown.
pub(crate) fn markdown(run: &Run) -> String {
    let lines = lines(run);
    let cheapest = cheapest(&lines);
    let mut out = format!(
        "\n## Key derivations\n\n{}\n\n| {} |\n|---|---|---:|---:|---:|---:|---:|---:|\n",
        escape(NOTE),
        COLUMNS.join(" | ")
    );
    for line in &lines {
        let cells = line.cells(cheapest).map(|cell| escape(&cell));
        out.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    out
}

/// A picture and the table as a section of the page.
pub(crate) fn html(run: &Run) -> Markup {
    let lines = lines(run);
    let cheapest = cheapest(&lines);
    let pictured: Vec<Cost<'_>> = lines.iter().map(Line::pictured).collect();
    html! {
        section {
            h3 { "What unlocking costs, and what a guess costs" }
            p class="note" { (NOTE) }
            @if let Some(picture) = costs::render("Seconds of an unlock and core-seconds of a guess", &pictured) {
                div class="charts" { figure {
                    figcaption { strong { "Unlock (dot) and guess (diamond)" } ", logarithmic" }
                    (picture)
                } }
            }
            div class="scroll" { table class="ciphers sorts" {
                (table::head(COLUMNS))
                tbody { @for line in &lines { (line.row(cheapest)) } }
            } }
        }
    }
}
