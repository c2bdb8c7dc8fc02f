//! Runs of key derivations: the cost of unlocking here, and an attacker's cost
//! of guessing a passphrase with the volume's header.
//!
//! A guess takes `threads × lanes` cores, as far as the machine has them, for
//! `1 / rate` seconds. The cost on an attacker's other hardware is neither
//! measured nor estimated.

use crate::chart::dots::{Dot, Dots, Scale};
use crate::chart::{Chart, Label, Plot, palette};
use crate::document::{Block, Cell, Column, Figure, MARKDOWN, PAGE, Row, TERMINAL, Table};
use crate::figure;
use crate::group;
use lab::record::{Kdf, Run, Trial};

/// Whether a run measured key derivations and nothing else.
pub(crate) fn is_kdf(run: &Run) -> bool {
    !run.trials.is_empty() && run.trials.iter().all(|trial| trial.kdf().is_some())
}

/// A Julian year, as astronomers and crackers count.
const YEAR_SECONDS: f64 = 365.25 * 86_400.0;

/// One recipe: its unlocking, and its guessing if that was measured.
struct Line<'a> {
    unlock: &'a Trial,
    kdf: &'a Kdf,
    guess: Option<Guess>,
}

/// The cost of trying a passphrase.
struct Guess {
    /// All cores of the machine together.
    per_second: f64,
    core_seconds: f64,
}

/// The most expensive guess first. Derivations that were not guessed come last.
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
                kdf: unlock.kdf()?,
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
        let lanes = trial.kdf()?.lanes;
        let busy = trial.threads?.saturating_mul(lanes).min(cores.max(1));
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

    fn row(&self, cheapest: Option<f64>) -> Row {
        let guess = |value: fn(&Guess) -> f64| {
            Cell::known(self.guess(value), self.guess.as_ref().map(value))
        };
        let core_seconds = self.guess.as_ref().map(|guess| guess.core_seconds);
        let cells = vec![
            Cell::word(self.format()),
            Cell::word(self.derivation()),
            Cell::number(self.unlock(), 1e3 / self.unlock.iops.median),
            Cell::number(self.memory(), f64::from(self.kdf.memory_kib)),
            guess(|guess| guess.core_seconds),
            guess(|guess| guess.per_second),
            guess(Guess::per_core_year),
            Cell::known(self.against(cheapest), core_seconds),
        ];
        Row::of(self.unlock, cells).hint(Some(&self.unlock.workload))
    }

    /// Its times on a scale of seconds; nothing without a time.
    fn dot(&self) -> Option<Dot> {
        let rate = self.unlock.iops;
        let [at, low, high] = [rate.median, rate.high, rate.low].map(|rate| 1.0 / rate);
        let guess = self.guess.as_ref().map(|guess| guess.core_seconds);
        let mut seconds = [at, low, high].into_iter().chain(guess);
        let name = format!("{}, {}", self.format(), self.derivation());
        let unlock = figure::duration_us(at * 1e6);
        let value = match guess {
            Some(guess) => format!("{unlock}; a guess {} core-s", figure::number(guess)),
            None => unlock,
        };
        if !seconds.all(|value| value.is_finite() && value > 0.0) {
            return None;
        }
        let tip = format!("{name}: {value}");
        let label = Label::of(self.unlock, name, value, tip);
        Some(Dot {
            other: guess.map(|guess| (guess, palette::VERMILLION)),
            ..Dot::new(label, at, [low, high], palette::BLUE)
        })
    }
}

/// Core-seconds of the cheapest guess.
fn cheapest(lines: &[Line<'_>]) -> Option<f64> {
    let costs = lines.iter().filter_map(|line| line.guess.as_ref());
    costs.map(|guess| guess.core_seconds).min_by(f64::total_cmp)
}

/// The meaning of the figures on a terminal.
const TERMINAL_NOTE: &str = "A guess takes core-seconds of this machine and the memory shown. The \
                             cost is relative to the cheapest guess of the run. On faster hardware \
                             a guess costs less.";

/// The meaning of the figures.
const NOTE: &str = "A guess takes core-seconds of this machine and the memory shown. Guesses/s are \
                    those of all its cores. A core-year is the number of passphrases that one core \
                    tries in a year. The cost is relative to the cheapest guess of the run. On \
                    faster hardware a guess costs less.";

/// The derivation to choose, in a sentence.
pub(crate) fn sentence(run: &Run) -> String {
    let lines = lines(run);
    let mut guessed = lines.iter().filter(|line| line.guess.is_some());
    let (Some(dearest), Some(cheapest)) = (guessed.next(), guessed.next_back()) else {
        return "There are too few measurements to compare the cost of a guess.".to_owned();
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

/// A picture and the table.
pub(crate) fn section(run: &Run) -> Vec<Block> {
    let lines = lines(run);
    let cheapest = cheapest(&lines);
    let columns = vec![
        Column::word("format"),
        Column::word("derivation"),
        Column::number("unlock, ms"),
        Column::number("memory").until(0),
        Column::number("core-s a guess"),
        Column::number("guesses/s").on(MARKDOWN | PAGE),
        Column::number("a core-year").on(MARKDOWN | PAGE),
        Column::number("cost").until(0),
    ];
    let rows = lines.iter().map(|line| line.row(cheapest)).collect();
    let dots: Vec<Dot> = lines.iter().filter_map(Line::dot).collect();
    let mut blocks = vec![
        Block::heading(3, "Key derivations").on(MARKDOWN),
        Block::heading(3, "What unlocking costs, and what a guess costs").on(PAGE),
        Block::note(NOTE).on(MARKDOWN | PAGE),
    ];
    if !dots.is_empty() {
        blocks.push(Block::charts(vec![Figure {
            title: "Unlock (dot) and guess (diamond)".to_owned(),
            note: "logarithmic".to_owned(),
            chart: costs(dots),
        }]));
    }
    blocks.push(Block::table(Table::plain(columns, rows)));
    blocks.push(Block::note(TERMINAL_NOTE).on(TERMINAL));
    blocks
}

fn costs(rows: Vec<Dot>) -> Chart {
    let label = "Seconds of an unlock and core-seconds of a guess";
    let about = "One row per derivation. The dot is the time of an unlock, with its 95 % interval \
                 or the range of fewer than six rounds. The diamond is the core-seconds of a \
                 guess.";
    Chart::new(label, about, Plot::Dots(Dots::of(Scale::Seconds, "", rows)))
}
