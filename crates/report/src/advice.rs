//! What the figures mean for somebody who has to choose.

use crate::ciphers;
use crate::figure;
use crate::file_systems;
use crate::group;
use crate::kdf;
use crate::sweep;
use lab::record::{Bottleneck, Interval, NoiseVerdict, Overhead, Run, Tier, Trial, Verdict};

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
    let setups = setups(run);
    let Some(best) = setups.first() else {
        return fastest_in_memory(run).unwrap_or_else(|| {
            "No encrypted system was compared with plain: add one with --system and --cipher."
                .to_owned()
        });
    };
    if run.noise.verdict == NoiseVerdict::Noisy {
        let by = run
            .noise
            .aa_ratio
            .filter(|aa| figure::finite(*aa))
            .map_or_else(String::new, |aa| {
                format!(" by up to {:.1} %", figure::spread(aa) * 100.0)
            });
        return format!(
            "This machine is too noisy to choose by small differences: plain differs from itself{by}. \
             Stop other load, set the governor to `performance`, raise --repeat, then run again."
        );
    }
    format!("{}{}", cost(best, &setups), limit(run, best.trial))
}

/// One encrypted set-up and the cell in which it costs most.
struct Setup<'a> {
    trial: &'a Trial,
    ratio: Interval,
    verdict: Verdict,
    cells: usize,
}

/// Every encrypted set-up of one system, cheapest in its worst workload first;
/// one that was measured under fewer workloads than others comes after them.
///
/// Of one system, because between systems more differs than the cipher: a
/// server, a format, another program. The engine comes before all others.
fn setups(run: &Run) -> Vec<Setup<'_>> {
    let mut setups: Vec<Setup<'_>> = Vec::new();
    let compared = |trial: &&Trial| {
        let finite = |overhead: &Overhead| figure::finite(overhead.ratio);
        !group::is_again(trial) && trial.overhead.as_ref().is_some_and(finite)
    };
    let mut systems = run
        .trials
        .iter()
        .filter(compared)
        .map(|trial| &trial.system);
    let system = match systems.clone().any(|system| system == ENGINE) {
        true => Some(ENGINE),
        false => systems.next().map(String::as_str),
    };
    for trial in run.trials.iter().filter(compared) {
        let Some(overhead) = trial.overhead.as_ref() else {
            continue;
        };
        if Some(trial.system.as_str()) != system {
            continue;
        }
        let this = Setup {
            trial,
            ratio: overhead.ratio,
            verdict: overhead.verdict,
            cells: 1,
        };
        match setups.iter_mut().find(|setup| same(setup.trial, trial)) {
            None => setups.push(this),
            Some(known) => {
                let cells = known.cells + 1;
                if this.ratio.median < known.ratio.median {
                    *known = this;
                }
                known.cells = cells;
            }
        }
    }
    setups.sort_by(|a, b| {
        b.cells
            .cmp(&a.cells)
            .then(b.ratio.median.total_cmp(&a.ratio.median))
    });
    setups
}

fn same(a: &Trial, b: &Trial) -> bool {
    let key = |trial: &Trial| {
        (
            trial.system.clone(),
            trial.cipher.clone(),
            trial.key_bits,
            trial.sector_bytes,
            trial.format.clone(),
        )
    };
    key(a) == key(b)
}

fn cost(best: &Setup<'_>, setups: &[Setup<'_>]) -> String {
    let measurable = |setup: &&Setup<'_>| setup.verdict != Verdict::NotDistinguishable;
    if setups.iter().find(measurable).is_none() {
        return format!(
            "Encryption cost nothing measurable here: {} in the worst case ({}, {}).",
            figure::difference(best.ratio, best.verdict),
            group::label(best.trial),
            best.trial.workload
        );
    }
    // As good as the best: the intervals of their worst cells overlap.
    let tied: Vec<String> = setups[1..]
        .iter()
        .filter(|other| other.cells == best.cells && other.ratio.high >= best.ratio.low)
        .map(|other| group::label(other.trial))
        .collect();
    let tied = match tied.as_slice() {
        [] => String::new(),
        names => format!(" ({} within the uncertainty)", names.join(" and ")),
    };
    let worst = setups
        .iter()
        .filter(|setup| !std::ptr::eq(*setup, best))
        .min_by(|a, b| a.ratio.median.total_cmp(&b.ratio.median))
        .filter(|worst| worst.verdict == Verdict::Slower && worst.ratio.high < best.ratio.low)
        .map_or_else(String::new, |worst| {
            format!(
                "; {} costs most: {} in {}",
                group::label(worst.trial),
                figure::difference(worst.ratio, worst.verdict),
                worst.trial.workload
            )
        });
    // Nobody has a choice of one.
    let choose = if setups.len() > 1 { "Choose " } else { "" };
    format!(
        "{choose}{}{tied}: in its worst workload, {}, it is {}{worst}.",
        group::label(best.trial),
        best.trial.workload,
        figure::difference(best.ratio, best.verdict)
    )
}

/// Says when the cipher of `setup` was never the limit: the overhead seen is
/// then not the cipher's.
fn limit(run: &Run, setup: &Trial) -> &'static str {
    let mut limits = run
        .trials
        .iter()
        .filter(|trial| trial.tier != Tier::Cipher && same(trial, setup))
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
