//! What the figures mean for somebody who has to choose.

use crate::ciphers;
use crate::figure;
use crate::file_systems;
use crate::group;
use crate::kdf;
use crate::sweep;
use lab::record::{Bottleneck, Interval, Overhead, Run, Tier, Trial, Verdict};

/// The system of which is advised first.
const ENGINE: &str = "builtin";

/// One line that a person can act on: what costs least here, by how much at
/// worst, and whether the figures say anything about a faster device.
pub fn sentence(run: &Run) -> String {
    let mut text = verdict(run);
    if run.partial {
        text = format!("This run is partial. {text}");
    }
    figure::one_line(&text)
}

fn verdict(run: &Run) -> String {
    if run.trials.is_empty() {
        return "Nothing was measured yet: start with `cryptmark run --quick`.".to_owned();
    }
    if ciphers::is_bare(run) {
        return ciphers::sentence(run);
    }
    if kdf::is_kdf(run) {
        return kdf::sentence(run);
    }
    if file_systems::is_fs(run) {
        return file_systems::sentence(run);
    }
    if sweep::is_sweep(run) {
        return sweep::sentence(run);
    }
    let (setups, shared) = apart(setups(run));
    let Some(best) = setups.first() else {
        return fastest_in_memory(run).unwrap_or_else(|| {
            "No encrypted system was compared with plain: add one with --system and --cipher."
                .to_owned()
        });
    };
    format!(
        "{}{}{}{}{}",
        costs(&setups),
        choice(&setups),
        on_all_cores(&shared),
        undecided(setups.iter().chain(&shared)),
        limit(run, best.cells[0])
    )
}

/// Fewest pairs from which anything is said.
const FEWEST: u32 = 3;

/// The largest cost that nobody notices; an interval that is wider each way leaves open what
/// people ask.
const NOTICED: f64 = 0.05;

/// Requests from this size on are large transfers.
const LARGE: u64 = 64 << 10;

/// One encrypted set-up under all its workloads.
struct Setup<'a> {
    cells: Vec<&'a Trial>,
}

impl<'a> Setup<'a> {
    fn overheads(&self) -> impl Iterator<Item = &'a Overhead> {
        self.cells
            .iter()
            .filter_map(|trial| trial.overhead.as_ref())
    }

    /// What it costs under large transfers or small ones, in words.
    fn cost(&self, is_large: bool) -> Option<String> {
        let cells = self.cells.iter();
        let cells = cells.filter(|cell| (cell.block_bytes >= LARGE) == is_large);
        let overheads: Vec<&Overhead> = cells.filter_map(|cell| cell.overhead.as_ref()).collect();
        cost(&overheads)
    }

    /// The ratio of the workload in which it costs most.
    fn worst(&self) -> Interval {
        let ratios = self.overheads().map(|overhead| overhead.ratio);
        let worst = ratios.min_by(|a, b| a.median.total_cmp(&b.median));
        worst.expect("a set-up has a cell that was compared")
    }

    fn name(&self) -> String {
        let name = group::label(self.cells[0]);
        match self.cells[0].system == ENGINE {
            // Nobody need be told whose it is.
            true => name.replacen(&format!(", {ENGINE}"), "", 1),
            false => name,
        }
    }

    fn cores(&self) -> u32 {
        self.cells[0].cores()
    }
}

/// Every encrypted set-up of one system, cheapest in its worst workload first;
/// one that was measured under fewer workloads than others comes after them.
///
/// Of one system, because between systems more differs than the cipher: a
/// server, a format, another program. The engine comes before all others.
fn setups(run: &Run) -> Vec<Setup<'_>> {
    let mut setups: Vec<Setup<'_>> = Vec::new();
    let finite = |overhead: &Overhead| figure::finite(overhead.ratio);
    let compared =
        |trial: &&Trial| !group::is_again(trial) && trial.overhead.as_ref().is_some_and(finite);
    let trials = run.trials.iter().filter(compared);
    let mut systems = trials.clone().map(|trial| trial.system.as_str());
    let system = match systems.clone().any(|system| system == ENGINE) {
        true => Some(ENGINE),
        false => systems.next(),
    };
    for trial in trials.filter(|trial| Some(trial.system.as_str()) == system) {
        match setups
            .iter_mut()
            .find(|setup| group::is_same_setup(setup.cells[0], trial))
        {
            None => setups.push(Setup { cells: vec![trial] }),
            Some(known) => known.cells.push(trial),
        }
    }
    setups.sort_by(|a, b| {
        let (few, many) = (a.cells.len(), b.cells.len());
        let cheaper = b.worst().median.total_cmp(&a.worst().median);
        many.cmp(&few).then(cheaper)
    });
    setups
}

/// The set-ups to choose from, and those that are the same on more cores.
fn apart(setups: Vec<Setup<'_>>) -> (Vec<Setup<'_>>, Vec<Setup<'_>>) {
    let least = setups.iter().map(Setup::cores).min();
    setups
        .into_iter()
        .partition(|setup| Some(setup.cores()) == least)
}

/// What large transfers cost where all cores encrypt them.
fn on_all_cores(shared: &[Setup<'_>]) -> String {
    let Some(first) = shared.first() else {
        return String::new();
    };
    let cores = format!(", {} cores", first.cores());
    let cost = |setup: &Setup<'_>| {
        let name = setup.name().replacen(&cores, "", 1);
        Some(format!("{} with {name}", setup.cost(true)?))
    };
    let costs: Vec<String> = shared.iter().filter_map(cost).collect();
    format!(
        " Where {} cores encrypt them, large transfers cost {}.",
        first.cores(),
        costs.join(", ")
    )
}

/// What each set-up costs as far as that is known, a line each, for who watches.
pub fn so_far(run: &Run) -> Vec<String> {
    let setups = setups(run);
    let names: Vec<String> = setups.iter().map(Setup::name).collect();
    let width = names.iter().map(|name| name.chars().count()).max();
    let width = width.unwrap_or(0);
    let line = |(setup, name): (&Setup<'_>, &String)| {
        let early = setup.overheads().any(|overhead| overhead.ratio.n < FEWEST);
        let of = |is_large: bool, what: &str| {
            let cost = setup.cost(is_large)?;
            Some(match early {
                true => format!("{what} not known yet"),
                false => format!("{what} {cost}"),
            })
        };
        let costs = [of(true, "large transfers"), of(false, "small ones")];
        let costs: Vec<String> = costs.into_iter().flatten().collect();
        figure::one_line(&format!("{name:<width$}   {}", costs.join("; ")))
    };
    setups.iter().zip(&names).map(line).collect()
}

/// What every set-up costs: of the cheapest by the size of transfers, of the others at most.
fn costs(setups: &[Setup<'_>]) -> String {
    let (best, others) = setups.split_first().expect("there is a set-up");
    let name = best.name();
    let mut text = match (best.cost(true), best.cost(false)) {
        (Some(large), Some(small)) if large == small => {
            format!("{name} costs {large}, on large transfers and on small ones.")
        }
        (Some(large), Some(small)) => {
            format!("{name} costs {large} on large transfers and {small} on small ones.")
        }
        (one, other) => format!("{name} costs {}.", one.or(other).unwrap_or_default()),
    };
    let others: Vec<String> = others
        .iter()
        .map(|setup| {
            let overheads: Vec<&Overhead> = setup.overheads().collect();
            let name = setup.name();
            match (is_nothing(&overheads), percent(1.0 - setup.worst().low)) {
                (true, _) => format!("{name} costs nothing measurable"),
                (false, most) => format!("{name} costs up to {most} %"),
            }
        })
        .collect();
    if !others.is_empty() {
        text += &format!(" {}.", others.join(", "));
    }
    text
}

/// Whether every ratio says that nobody would notice.
fn is_nothing(overheads: &[&Overhead]) -> bool {
    overheads.iter().all(|overhead| {
        overhead.ratio.n >= FEWEST
            && overhead.verdict != Verdict::Slower
            && overhead.ratio.low >= 1.0 - NOTICED
    })
}

/// `9 to 17 %`, `up to 3 %`, `nothing measurable (at most 1.2 %)`; nothing of no cell.
fn cost(overheads: &[&Overhead]) -> Option<String> {
    let most = overheads.iter().map(|overhead| 1.0 - overhead.ratio.low);
    let most = most.max_by(f64::total_cmp)?;
    let slower = |overhead: &&&Overhead| overhead.verdict == Verdict::Slower;
    let least = overheads
        .iter()
        .filter(slower)
        .map(|overhead| 1.0 - overhead.ratio.high);
    let all = overheads.iter().filter(slower).count() == overheads.len();
    Some(match least.min_by(f64::total_cmp) {
        _ if overheads.iter().any(|overhead| overhead.ratio.n < FEWEST) => {
            "what too few repetitions do not tell".to_owned()
        }
        Some(least) if all && percent(least) != percent(most) => {
            format!("{} to {} %", percent(least), percent(most))
        }
        Some(_) => format!("up to {} %", percent(most)),
        None if most <= 0.0 => "nothing: it is faster".to_owned(),
        None if is_nothing(overheads) => {
            format!("nothing measurable (at most {} %)", percent(most))
        }
        None => format!("at most {} %", percent(most)),
    })
}

/// A share in per cent, as exactly as people need it.
fn percent(share: f64) -> String {
    match share * 100.0 {
        few if few.abs() < 9.95 => format!("{few:.1}"),
        many => format!("{many:.0}"),
    }
}

/// What to choose, where there is a choice.
fn choice(setups: &[Setup<'_>]) -> String {
    let (best, others) = setups.split_first().expect("there is a set-up");
    // Those whose worst may be no worse.
    let tied: Vec<String> = others
        .iter()
        .filter(|other| other.cells.len() == best.cells.len())
        .filter(|other| other.worst().high >= best.worst().low)
        .map(Setup::name)
        .collect();
    match (others, tied.as_slice()) {
        ([], _) => String::new(),
        (_, []) => format!(" Choose {}.", best.name()),
        (_, names) => format!(
            " Choose {} or {}: nothing that was measured tells which is faster.",
            best.name(),
            names.join(" or ")
        ),
    }
}

/// What longer measuring would tell, once.
fn undecided<'a>(setups: impl Iterator<Item = &'a Setup<'a>>) -> String {
    let all = setups.flat_map(Setup::overheads);
    let open = |overhead: &&Overhead| {
        let arm = (overhead.ratio.high - overhead.ratio.low) / 2.0;
        overhead.verdict == Verdict::NotDistinguishable && arm > NOTICED
            || overhead.ratio.n < FEWEST
    };
    let all: Vec<&Overhead> = all.collect();
    match all.iter().filter(|overhead| open(overhead)).count() {
        0 => String::new(),
        count => format!(
            " {count} of {} costs are not decided: measure longer, with --time, or when the machine \
             has less to do.",
            all.len()
        ),
    }
}

/// Says when the cipher of `setup` was never the limit: the overhead seen is
/// then not the cipher's.
fn limit(run: &Run, setup: &Trial) -> &'static str {
    let mut limits = run
        .trials
        .iter()
        .filter(|trial| trial.tier != Tier::Cipher && group::is_same_setup(trial, setup))
        .map(|trial| trial.bottleneck)
        .peekable();
    if limits.peek().is_some() && limits.all(|limit| limit == Bottleneck::Device) {
        " The device, not this cipher, was the limit in every workload: \
         its overhead here says nothing about a faster device."
    } else {
        ""
    }
}

fn fastest_in_memory(run: &Run) -> Option<String> {
    let fastest = run
        .trials
        .iter()
        .filter(|trial| {
            trial.tier == Tier::Cipher
                && trial.cipher.is_some()
                && trial.throughput_mb_s.median.is_finite()
        })
        .max_by(|a, b| {
            a.throughput_mb_s
                .median
                .total_cmp(&b.throughput_mb_s.median)
        })?;
    Some(format!(
        "{} is the fastest in memory here: {} MB/s ({}, {} thread{}); \
         what that costs on a disk, `cryptmark run` measures.",
        group::label(fastest),
        figure::interval(fastest.throughput_mb_s),
        fastest.op,
        fastest.threads,
        if fastest.threads == 1 { "" } else { "s" }
    ))
}
