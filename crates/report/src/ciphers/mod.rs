//! Runs of bare ciphers as people compare them. There is one line per cipher with the engine and
//! the fastest library, for each direction. The curve over request sizes follows.

mod section;

pub(crate) use section::section;

use crate::{figure, group};
use lab::record::{Interval, Load, Run, Trial, Verdict};

/// The request size of the main table, if it was measured. It has enough sectors for every kernel,
/// and still fits into the second-level cache.
const MAIN_BYTES: u64 = 1 << 20;

/// Whether a run measured bare ciphers and nothing else but key derivations.
pub(crate) fn is_bare(run: &Run) -> bool {
    let bare = |trial: &Trial| matches!(trial.op.as_str(), "encrypt" | "decrypt");
    let mut ciphers = run.trials.iter().filter(|trial| trial.kdf().is_none());
    ciphers.clone().next().is_some() && ciphers.all(bare)
}

/// `encrypt, 1 MiB requests, 1 thread`.
pub(crate) fn title(load: &Load) -> String {
    let cold = match load.cold {
        true => ", first operation of a fresh process",
        false => "",
    };
    format!(
        "{}, {} requests, {}{cold}",
        load.op,
        figure::size(load.block_bytes),
        threads(load.threads)
    )
}

/// `1 thread`, `2 threads`.
pub(crate) fn threads(count: Option<u32>) -> String {
    match count {
        None => "unknown threads".to_owned(),
        Some(1) => "1 thread".to_owned(),
        Some(count) => format!("{count} threads"),
    }
}

/// One cipher under one load.
pub(crate) struct Line<'a> {
    /// `AES-256 XTS`.
    pub(crate) name: String,
    /// The engine's cell, or that of the fastest library if the engine was not measured.
    pub(crate) trial: &'a Trial,
    /// The libraries, the fastest first.
    pub(crate) peers: Vec<&'a Trial>,
    /// Over all sizes on as many threads: the smallest ratio to the fastest
    /// library, and the size of requests.
    pub(crate) weakest: Option<(Interval, u64)>,
}

/// The remark behind a ratio of too few pairs.
fn few(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::TooFew => " (too few)",
        _ => "",
    }
}

impl Line<'_> {
    /// The fastest library and the engine's rate ÷ its rate.
    pub(crate) fn best_peer(&self) -> Option<(&str, Interval, Verdict)> {
        let overhead = self.trial.overhead.as_ref()?;
        figure::finite(overhead.ratio).then_some((
            overhead.against.as_str(),
            overhead.ratio,
            overhead.verdict,
        ))
    }

    /// `2.41 (2.38–2.45) × openssl`, or a dash if no library has the cipher.
    pub(crate) fn against(&self) -> String {
        match self.best_peer() {
            Some((system, ratio, verdict)) => {
                format!("{} × {system}{}", figure::interval(ratio), few(verdict))
            }
            None => figure::UNKNOWN.to_owned(),
        }
    }

    /// The same with the larger arm of the interval: `2.41 ±0.04 × openssl`.
    pub(crate) fn against_in_short(&self) -> String {
        match self.best_peer() {
            Some((system, ratio, verdict @ Verdict::TooFew)) => {
                format!(
                    "{} × {system}{}",
                    figure::number(ratio.median),
                    few(verdict)
                )
            }
            Some((system, ratio, _)) => {
                let arm = (ratio.high - ratio.median).max(ratio.median - ratio.low);
                format!("{} ±{arm:.2} × {system}", figure::number(ratio.median))
            }
            None => figure::UNKNOWN.to_owned(),
        }
    }

    /// `1.02 × at 512 B`.
    pub(crate) fn weakest(&self) -> String {
        match self.weakest {
            Some((ratio, bytes)) => format!(
                "{} × at {}",
                figure::number(ratio.median),
                figure::bytes(bytes)
            ),
            None => figure::UNKNOWN.to_owned(),
        }
    }

    /// Time of a request: the median of all.
    pub(crate) fn time(&self) -> String {
        figure::time(self.trial.median_us())
    }

    /// Whether the code is constant-time; a dash for a library's code, for which this is not
    /// proven.
    pub(crate) fn constant_time(&self) -> &'static str {
        match self.trial.constant_time {
            Some(true) => "yes",
            Some(false) => "no",
            None => figure::UNKNOWN,
        }
    }

    /// Core cycles a byte of one thread.
    pub(crate) fn cycles(&self) -> String {
        self.trial
            .cycles_per_byte
            .filter(|cycles| figure::finite(*cycles))
            .map_or_else(
                || figure::UNKNOWN.to_owned(),
                |cycles| match cycles.median {
                    cycles if cycles < 9.995 => format!("{cycles:.3}"),
                    cycles => figure::number(cycles),
                },
            )
    }
}

/// The loads of the main tables: one for each direction, on the fewest
/// threads, at [`MAIN_BYTES`] or the size next to it.
pub(crate) fn main_loads(run: &Run) -> Vec<Load> {
    let mut loads: Vec<Load> = Vec::new();
    for (cold, op) in [false, true]
        .into_iter()
        .flat_map(|cold| ["encrypt", "decrypt"].map(|op| (cold, op)))
    {
        let of_op = || {
            run.trials
                .iter()
                .filter(move |trial| trial.op == op && trial.cold == cold)
        };
        let fewest = of_op().map(|trial| trial.threads).min();
        let best = of_op()
            .filter(|trial| Some(trial.threads) == fewest)
            .min_by_key(|trial| trial.block_bytes.unwrap_or(0).abs_diff(MAIN_BYTES));
        loads.extend(best.map(Trial::load));
    }
    loads
}

/// The other numbers of threads that were measured at the size of `load`.
pub(crate) fn more_threads(run: &Run, load: &Load) -> Vec<Load> {
    let mut loads: Vec<Load> = Vec::new();
    for trial in &run.trials {
        let other = trial.load();
        let same = Load {
            threads: load.threads,
            workload: load.workload.clone(),
            ..other.clone()
        } == *load;
        if same && other != *load && !loads.contains(&other) {
            loads.push(other);
        }
    }
    loads.sort_by_key(|load| load.threads);
    loads
}

/// Whether two cells differ in the size of requests at most, which has a name of its own.
fn is_same_but_size(a: &Trial, b: &Trial) -> bool {
    let asked = |trial: &Trial| Load {
        block_bytes: None,
        workload: String::new(),
        ..trial.load()
    };
    // The cheap comparisons, in which most cells differ, come first.
    (&a.system, &a.op, a.encryption()) == (&b.system, &b.op, b.encryption())
        && a.setup() == b.setup()
        && asked(a) == asked(b)
}

/// Whether two cells differ in the direction at most.
pub(crate) fn is_same_but_direction(a: &Trial, b: &Trial) -> bool {
    let asked = |trial: &Trial| Load {
        op: String::new(),
        workload: String::new(),
        ..trial.load()
    };
    a.setup() == b.setup() && asked(a) == asked(b)
}

/// The cells of `load`, one line a cipher, the fastest first.
pub(crate) fn lines<'a>(run: &'a Run, load: &Load) -> Vec<Line<'a>> {
    let measured = |trial: &&Trial| !group::is_again(trial);
    let rate = |trial: &Trial| trial.throughput_mb_s.median;
    let mut members: Vec<Vec<&Trial>> = Vec::new();
    for trial in run.trials.iter().filter(measured) {
        if trial.load() != *load {
            continue;
        }
        match members
            .iter_mut()
            .find(|known| known[0].encryption() == trial.encryption())
        {
            Some(known) => known.push(trial),
            None => members.push(vec![trial]),
        }
    }
    let mut lines: Vec<Line<'_>> = members
        .into_iter()
        .map(|mut cells| {
            cells.sort_by(|a, b| rate(b).total_cmp(&rate(a)));
            let engine = cells.iter().position(|trial| trial.system == "builtin");
            let trial = cells.remove(engine.unwrap_or(0));
            let weakest = run
                .trials
                .iter()
                .filter(measured)
                .filter(|other| is_same_but_size(other, trial))
                .filter_map(|other| Some((other.overhead.as_ref()?.ratio, other.block_bytes?)))
                .filter(|(ratio, _)| figure::finite(*ratio))
                .min_by(|a, b| a.0.median.total_cmp(&b.0.median));
            Line {
                name: name(run, trial),
                trial,
                peers: cells,
                weakest: weakest.filter(|_| engine.is_some()),
            }
        })
        .collect();
    lines.sort_by(|a, b| rate(b.trial).total_cmp(&rate(a.trial)));
    lines
}

/// The cipher as people call it: `AES-256 XTS`. If the run has another one of that name, the
/// notation is added: `AES-256 CBC, aes-cbc-plain64`.
fn name(run: &Run, trial: &Trial) -> String {
    let short =
        |trial: &Trial| figure::cipher(trial.cipher.as_deref().unwrap_or_default(), trial.key_bits);
    let name = short(trial);
    let namesake = |other: &Trial| other.cipher != trial.cipher && short(other) == name;
    match &trial.cipher {
        Some(notation) if run.trials.iter().any(namesake) => format!("{name}, {notation}"),
        _ => name,
    }
}

/// A cell's rate over the sizes of requests, ascending.
pub(crate) fn curve<'a>(run: &'a Run, of: &Trial) -> Vec<&'a Trial> {
    let mut points: Vec<&Trial> = run
        .trials
        .iter()
        .filter(|trial| !group::is_again(trial))
        .filter(|trial| is_same_but_size(trial, of))
        .collect();
    points.sort_by_key(|trial| trial.block_bytes);
    points
}

/// The fastest cipher, and whether a library beats the engine anywhere.
pub(crate) fn sentence(run: &Run) -> String {
    let Some(load) = main_loads(run).into_iter().next() else {
        return "No cipher was measured.".to_owned();
    };
    let lines = lines(run, &load);
    let Some(fastest) = lines.first() else {
        return "No cipher was measured.".to_owned();
    };
    let mut text = format!(
        "{} is the fastest here: {} MB/s ({}).",
        fastest.name,
        figure::interval(fastest.trial.throughput_mb_s),
        title(&load)
    );
    let compared = || {
        run.trials
            .iter()
            .filter(|trial| trial.system == "builtin" && !group::is_again(trial))
            .filter(|trial| trial.overhead.is_some())
    };
    let with = |verdict: Verdict| -> Vec<&Trial> {
        let is = |trial: &&Trial| {
            let overhead = trial.overhead.as_ref();
            overhead.is_some_and(|overhead| overhead.verdict == verdict)
        };
        compared().filter(is).collect()
    };
    let beaten = with(Verdict::Slower);
    let all = compared().count();
    if all > 0 {
        text.push_str(&format!(
            " The engine is faster than every library in {} of {all} comparisons, not \
             distinguishable in {}, {}and slower in {}",
            with(Verdict::Faster).len(),
            with(Verdict::NotDistinguishable).len(),
            match with(Verdict::TooFew).len() {
                0 => String::new(),
                count => format!("too few measurements in {count}, "),
            },
            beaten.len()
        ));
        let worst = beaten.iter().min_by(|a, b| {
            let ratio = |trial: &Trial| trial.overhead.as_ref().map_or(1.0, |o| o.ratio.median);
            ratio(a).total_cmp(&ratio(b))
        });
        if let Some(worst) = worst
            && let Some(overhead) = &worst.overhead
        {
            text.push_str(&format!(
                ", most in {}, {}-byte sectors, {}: {} × {}",
                name(run, worst),
                worst.sector_bytes.unwrap_or_default(),
                title(&worst.load()),
                figure::interval(overhead.ratio),
                overhead.against
            ));
        }
        text.push('.');
    }
    text
}
