//! Advice that the figures support, for a user who has to choose a set-up.

use crate::ciphers;
use crate::energy;
use crate::figure;
use crate::file_systems;
use crate::group::{self, Names};
use crate::kdf;
use crate::sweep;
use lab::record::{self, Bottleneck, Interval, Overhead, Run, Trial, Verdict};
use std::collections::BTreeMap;

/// The system of which is advised first.
const ENGINE: &str = "builtin";

/// One line that a person can act on: what costs least here, by how much at
/// worst, and whether the figures say anything about a faster device.
pub fn sentence(run: &Run) -> String {
    let mut text = verdict(run);
    if let Some(energy) = energy::sentence(run) {
        text = format!("{text} {energy}");
    }
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
    let mut systems = systems(run).into_iter();
    let Some((setups, shared)) = systems.next().map(apart) else {
        return "No encrypted system was compared with plain: add one with --system and --cipher."
            .to_owned();
    };
    let others: Vec<Vec<Setup<'_>>> = systems.collect();
    let all = || setups.iter().chain(&shared).chain(others.iter().flatten());
    if all().all(Setup::is_early) {
        return format!(
            "Too few repetitions to say what encryption costs: {}.",
            longer(run)
        );
    }
    format!(
        "{}{}{}{}{}{}",
        costs(&setups),
        choice(&setups),
        on_all_cores(&shared),
        by_others(&others),
        undecided(run, all()),
        limit(run, &setups[0])
    )
}

/// The largest cost that users do not notice, as a share of the rate. An interval wider than this
/// each way leaves the question open.
const NOTICED: f64 = 0.05;

/// Requests from this size on are large transfers.
const LARGE: u64 = 64 << 10;

/// One encrypted set-up under all its workloads.
pub(crate) struct Setup<'a> {
    pub(crate) cells: Vec<&'a Trial>,
    /// The name that distinguishes it from every other set-up of the run.
    pub(crate) name: String,
}

impl<'a> Setup<'a> {
    pub(crate) fn overheads(&self) -> Vec<&'a Overhead> {
        let cells = self.cells.iter();
        cells.filter_map(|cell| cell.overhead.as_ref()).collect()
    }

    /// The cost under large transfers or under small ones, in words.
    fn cost(&self, is_large: bool) -> Option<String> {
        let cells = self.cells.iter();
        let cells = cells.filter(|cell| cell.block_bytes.is_some_and(|b| (b >= LARGE) == is_large));
        let overheads: Vec<&Overhead> = cells.filter_map(|cell| cell.overhead.as_ref()).collect();
        cost(&overheads)
    }

    /// The workload in which it costs most, with its ratio.
    pub(crate) fn worst(&self) -> (&'a Trial, Interval) {
        let cells = self.cells.iter().copied();
        let ratios = cells.filter_map(|cell| Some((cell, cell.overhead.as_ref()?.ratio)));
        let worst = ratios.min_by(|(_, a), (_, b)| a.median.total_cmp(&b.median));
        worst.expect("a set-up has a cell that was compared")
    }

    /// Whether it has pairs of which nothing can be said yet.
    pub(crate) fn is_early(&self) -> bool {
        is_early(&self.overheads())
    }

    /// Whether `self` may cost no more than `best`, which seems to cost least.
    pub(crate) fn may_be_as_good_as(&self, best: &Self) -> bool {
        let both_nothing = is_nothing(&self.overheads()) && is_nothing(&best.overheads());
        both_nothing || self.worst().1.high >= best.worst().1.low
    }

    /// Whether `self` may cost hardly more than `best`, so that other reasons than speed decide.
    pub(crate) fn may_cost_hardly_more_than(&self, best: &Self) -> bool {
        self.worst().1.high >= best.worst().1.low * (1.0 - NOTICED)
    }

    /// Whether it costs hardly anything under any workload, for certain.
    pub(crate) fn keeps_up(&self) -> bool {
        keeps_up(&self.overheads())
    }

    /// Whether it costs more than that under one of them, for certain.
    pub(crate) fn is_noticed(&self) -> bool {
        self.overheads().into_iter().any(is_noticed)
    }

    fn cores(&self) -> u32 {
        self.cells[0].cores()
    }
}

/// Every encrypted set-up, cheapest in its worst workload first, those of each system for
/// themselves, the engine's before all others. One that was measured under fewer workloads than
/// others comes after them.
///
/// Systems are apart because between them more differs than the cipher: a server, a format,
/// another program.
fn systems(run: &Run) -> Vec<Vec<Setup<'_>>> {
    let mut systems: Vec<Vec<Setup<'_>>> = Vec::new();
    for setup in setups(run) {
        let system = |known: &Setup<'_>| known.cells[0].system == setup.cells[0].system;
        match systems.iter_mut().find(|known| system(&known[0])) {
            Some(known) => known.push(setup),
            None => systems.push(vec![setup]),
        }
    }
    systems.sort_by_key(|setups| {
        let system = &setups[0].cells[0].system;
        let place = run.trials.iter().position(|trial| trial.system == *system);
        (system != ENGINE, place)
    });
    systems
}

/// Every encrypted set-up that was compared with plain, cheapest in its worst workload first.
pub(crate) fn setups(run: &Run) -> Vec<Setup<'_>> {
    let finite = |overhead: &Overhead| figure::finite(overhead.ratio);
    let compared =
        |trial: &&Trial| !group::is_again(trial) && trial.overhead.as_ref().is_some_and(finite);
    let names = Names::of(&run.trials);
    let mut places: BTreeMap<record::Setup, usize> = BTreeMap::new();
    let mut setups: Vec<Setup<'_>> = Vec::new();
    for trial in run.trials.iter().filter(compared) {
        let at = *places.entry(trial.setup()).or_insert_with(|| {
            setups.push(Setup {
                name: names.setup(trial),
                cells: Vec::new(),
            });
            setups.len() - 1
        });
        setups[at].cells.push(trial);
    }
    // The name of this program's own engine is left out.
    for setup in &mut setups {
        if setup.cells[0].system == ENGINE {
            setup.name = setup.name.replacen(&format!(", {ENGINE}"), "", 1);
        }
    }
    setups.sort_by(|a, b| {
        let (few, many) = (a.cells.len(), b.cells.len());
        let cheaper = b.worst().1.median.total_cmp(&a.worst().1.median);
        many.cmp(&few).then(cheaper)
    });
    setups
}

/// The set-up as if it ran on one core, which is the same for any number of sharing cores.
fn on_one_core(trial: &Trial) -> record::Setup {
    record::Setup {
        cores: 1,
        ..trial.setup()
    }
}

/// Splits the set-ups into those to choose from, and those that are one of them on more cores.
fn apart(setups: Vec<Setup<'_>>) -> (Vec<Setup<'_>>, Vec<Setup<'_>>) {
    let fewer: Vec<bool> = setups
        .iter()
        .map(|setup| {
            let first = setup.cells[0];
            let alike = |other: &Setup<'_>| on_one_core(first) == on_one_core(other.cells[0]);
            let fewer = |other: &Setup<'_>| other.cores() < setup.cores() && alike(other);
            setups.iter().any(fewer)
        })
        .collect();
    let (mut alone, mut shared) = (Vec::new(), Vec::new());
    for (setup, fewer) in setups.into_iter().zip(fewer) {
        match fewer {
            true => shared.push(setup),
            false => alone.push(setup),
        }
    }
    (alone, shared)
}

/// The cost of large transfers if all cores encrypt them.
fn on_all_cores(shared: &[Setup<'_>]) -> String {
    let Some(first) = shared.first() else {
        return String::new();
    };
    let cores = format!(", {} cores", first.cores());
    let cost = |setup: &Setup<'_>| {
        let name = setup.name.replacen(&cores, "", 1);
        Some(format!("{} with {name}", setup.cost(true)?))
    };
    let costs: Vec<String> = shared.iter().filter_map(cost).collect();
    format!(
        " If {} cores encrypt them, large transfers cost {}.",
        first.cores(),
        costs.join(", ")
    )
}

/// The cost of the cheapest set-up of each further system.
fn by_others(systems: &[Vec<Setup<'_>>]) -> String {
    let cheapest = systems.iter().filter_map(|setups| setups.first());
    let cost = |setup: &Setup<'_>| {
        Some(format!(
            " {} costs {}.",
            setup.name,
            cost(&setup.overheads())?
        ))
    };
    cheapest.filter_map(cost).collect()
}

/// The cost of each set-up so far, a line each, for progress output.
pub fn so_far(run: &Run) -> Vec<String> {
    let setups = setups(run);
    let width = setups.iter().map(|setup| setup.name.chars().count()).max();
    let width = width.unwrap_or(0);
    let line = |setup: &Setup<'_>| {
        let of = |is_large: bool, what: &str| {
            let cost = setup.cost(is_large)?;
            Some(match setup.is_early() {
                true => format!("{what} not known yet"),
                false => format!("{what} {cost}"),
            })
        };
        let costs = [of(true, "large transfers"), of(false, "small ones")];
        let costs: Vec<String> = costs.into_iter().flatten().collect();
        figure::one_line(&format!("{:<width$}   {}", setup.name, costs.join("; ")))
    };
    setups.iter().map(line).collect()
}

/// The costs of all set-ups. The cheapest has its cost by transfer size, the others their maximum.
fn costs(setups: &[Setup<'_>]) -> String {
    let (best, others) = setups.split_first().expect("there is a set-up");
    let name = &best.name;
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
        .filter_map(|setup| {
            Some(format!(
                "{} costs {}",
                setup.name,
                cost(&setup.overheads())?
            ))
        })
        .collect();
    if !others.is_empty() {
        text += &format!(" {}.", others.join(", "));
    }
    text
}

/// Whether nothing can be said of one of them yet.
fn is_early(overheads: &[&Overhead]) -> bool {
    let few = |overhead: &&Overhead| overhead.verdict == Verdict::TooFew;
    overheads.iter().any(few)
}

/// Whether every ratio shows a cost that users would not notice.
fn keeps_up(overheads: &[&Overhead]) -> bool {
    let low = |overhead: &&Overhead| overhead.ratio.low >= 1.0 - NOTICED;
    !is_early(overheads) && overheads.iter().all(low)
}

/// Whether all ratios keep up, and none shows a cost.
pub(crate) fn is_nothing(overheads: &[&Overhead]) -> bool {
    let slower = |overhead: &&Overhead| overhead.verdict == Verdict::Slower;
    keeps_up(overheads) && !overheads.iter().any(slower)
}

fn is_noticed(overhead: &Overhead) -> bool {
    overhead.verdict == Verdict::Slower && overhead.ratio.high < 1.0 - NOTICED
}

/// `9 to 17 %`, `up to 3 %`, `nothing measurable (at most 1.2 %)`; nothing of no cell.
pub(crate) fn cost(overheads: &[&Overhead]) -> Option<String> {
    let most = overheads.iter().map(|overhead| 1.0 - overhead.ratio.low);
    let most = most.max_by(f64::total_cmp)?;
    let with = |verdict: Verdict| {
        let verdicts = overheads.iter().map(|overhead| &overhead.verdict);
        verdicts.filter(|known| **known == verdict).count()
    };
    let least = overheads.iter().map(|overhead| 1.0 - overhead.ratio.high);
    let least = percent(least.min_by(f64::total_cmp)?);
    let all = |count: usize| count == overheads.len();
    let at_most = match most > 0.0 {
        true => percent(most),
        false => "0".to_owned(),
    };
    Some(match with(Verdict::Slower) {
        _ if is_early(overheads) => "an amount that needs more repetitions to measure".to_owned(),
        slower if all(slower) && least != at_most && least != "0.0" => {
            format!("{least} to {at_most} %")
        }
        1.. => format!("up to {at_most} %"),
        0 if all(with(Verdict::Faster)) => "nothing: it is faster".to_owned(),
        0 if is_nothing(overheads) => format!("nothing measurable (at most {at_most} %)"),
        0 => format!("at most {at_most} %"),
    })
}

/// A share in per cent, as exactly as people need it: nothing is all of it but all of it.
fn percent(share: f64) -> String {
    match share * 100.0 {
        few if few.abs() < 9.95 => format!("{few:.1}"),
        most if most > 99.0 => format!("{:.2}", most.min(99.99)),
        many => format!("{many:.0}"),
    }
}

/// The set-up to choose, if there is a choice.
fn choice(setups: &[Setup<'_>]) -> String {
    let (best, others) = setups.split_first().expect("there is a set-up");
    if others.is_empty() || setups.iter().any(Setup::is_early) {
        return String::new();
    }
    let names: Vec<&str> = others
        .iter()
        .filter(|other| other.cells.len() == best.cells.len() && other.may_be_as_good_as(best))
        .map(|other| other.name.as_str())
        .collect();
    match names.as_slice() {
        [] => format!(" Choose {}.", best.name),
        names => format!(
            " Choose {} or {}: their costs here are too close to say which is better.",
            best.name,
            names.join(" or ")
        ),
    }
}

/// The user's means to get a decision.
fn longer(run: &Run) -> &'static str {
    let drive = |trial: &Trial| trial.system.starts_with("drive:");
    match run.conditioning.is_some() || run.trials.iter().any(drive) {
        true => "repeat more often with --repeat",
        false => "measure longer with --time, or when the machine is less busy",
    }
}

/// A note on the undecided costs, with the means to decide them.
fn undecided<'a>(run: &Run, setups: impl Iterator<Item = &'a Setup<'a>>) -> String {
    let open = |overhead: &&&Overhead| {
        let arm = (overhead.ratio.high - overhead.ratio.low) / 2.0;
        overhead.verdict == Verdict::NotDistinguishable && arm > NOTICED
            || overhead.verdict == Verdict::TooFew
    };
    let all: Vec<&Overhead> = setups.flat_map(Setup::overheads).collect();
    match all.iter().filter(open).count() {
        0 => String::new(),
        count => format!(
            " {count} of {} costs are not decided: {}.",
            all.len(),
            longer(run)
        ),
    }
}

/// Says when the cipher of `setup` was never the limit: the overhead seen is
/// then not the cipher's.
fn limit(run: &Run, setup: &Setup<'_>) -> &'static str {
    let measured = setup.cells[0].setup();
    let mut limits = run
        .trials
        .iter()
        .filter(|trial| trial.setup() == measured)
        .map(|trial| trial.bottleneck);
    let never = limits.all(|limit| limit == Bottleneck::Device);
    match never && !setup.is_noticed() {
        true => {
            " The device, not this cipher, was the limit in every workload: \
             its overhead here says nothing about a faster device."
        }
        false => "",
    }
}
