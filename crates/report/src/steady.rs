//! Rounds until a steady state: how many each test took, and whether what it
//! tracks became steady.

use crate::chart::curves::{Curve, Curves};
use crate::chart::{Axis, Chart, Label, Plot, palette};
use crate::document::{Block, Figure, MARKDOWN, PAGE, TERMINAL};
use crate::figure;
use crate::group::Names;
use lab::record::{Conditioning, Run, Trial};
use lab::stats::{STEADY_ROUNDS, Steady};

/// The tests, with a picture each; empty if a run was not prepared.
pub(crate) fn section(run: &Run) -> Vec<Block> {
    let Some(conditioning) = &run.conditioning else {
        return Vec::new();
    };
    let names = Names::of(&run.trials);
    let prepared = prepared(conditioning);
    let figures = tests(run, conditioning).filter_map(|(name, tracked)| {
        let chart = rounds(&names, &format!("{name}, round by round"), &tracked)?;
        Some(Figure {
            title: name.to_owned(),
            note: "MB/s by round".to_owned(),
            chart,
        })
    });
    let mut blocks = vec![
        Block::text(format!("Steady state: {prepared}")).on(TERMINAL),
        Block::heading(3, "Steady state").on(MARKDOWN | PAGE),
        Block::note(figure::capitalised(&prepared)).on(MARKDOWN | PAGE),
        Block::charts(figures.collect()),
    ];
    blocks.extend(tests(run, conditioning).map(|(name, tracked)| {
        Block::titled(
            name,
            tracked.into_iter().map(|trial| outcome(&names, trial)),
        )
    }));
    blocks
}

/// The rates of each cell, round by round, with a band on the last, by which it is judged; `None`
/// if fewer than two were measured.
fn rounds(names: &Names, label: &str, tracked: &[&Trial]) -> Option<Chart> {
    let rates = || tracked.iter().flat_map(|trial| &trial.samples_mb_s);
    let last = tracked.iter().map(|trial| trial.samples_mb_s.len()).max()?;
    let highest = rates().fold(0.0, |highest: f64, rate| highest.max(*rate)) * 1.05;
    if last < 2 || highest <= 0.0 || !rates().all(|rate| rate.is_finite()) {
        return None;
    }
    let curves = tracked.iter().enumerate().map(|(number, trial)| {
        let rates = &trial.samples_mb_s;
        let values: Vec<String> = rates.iter().map(|rate| figure::number(*rate)).collect();
        let tip = format!(
            "{}, MB/s by round: {}",
            cell(names, trial),
            values.join(", ")
        );
        let points: Vec<(f64, f64)> = (1..).map(f64::from).zip(rates.iter().copied()).collect();
        Curve {
            label: Label::of(trial, cell(names, trial), "", tip),
            colour: palette::of(trial),
            marks: points.clone(),
            number: Some(number),
            points,
        }
    });
    let named = (1..=last)
        .step_by(last.div_ceil(6))
        .map(|round| (round as f64, round.to_string()));
    let about = "One curve per cell: its rate in MB/s, round by round. The band marks the last \
                 rounds, which decide the verdict.";
    let plot = Plot::Curves(Curves {
        x: Axis::linear(1.0, last as f64, 1, |_| String::new()).named(named),
        y: Axis::linear(0.0, highest, 4, figure::number),
        band: Some((last - STEADY_ROUNDS.min(last) + 1) as f64),
        curves: curves.collect(),
    });
    Some(Chart::new(label, about, plot))
}

fn cell(names: &Names, trial: &Trial) -> String {
    format!("{}, {}", trial.workload, names.cell(trial))
}

fn prepared(conditioning: &Conditioning) -> String {
    let purged = match conditioning.purged {
        Some(true) => "everything was discarded",
        Some(false) => "the device was not purged (it does not support discards)",
        None => "nothing was prepared yet",
    };
    format!(
        "before each test {purged}, and the extent was written sequentially {} times. Rounds \
         continued until the last {STEADY_ROUNDS} tracked values lay within 20 % of their mean and \
         drifted by at most 10 % (SNIA PTS).",
        conditioning.precondition
    )
}

/// Each test with the cells that decide it.
fn tests<'a>(
    run: &'a Run,
    conditioning: &'a Conditioning,
) -> impl Iterator<Item = (&'a str, Vec<&'a Trial>)> {
    conditioning.tests.iter().map(|test| {
        let decides = |trial: &&Trial| test.tracked.contains(&trial.workload);
        let tracked = run.trials.iter().filter(decides).collect();
        (test.name.as_str(), tracked)
    })
}

/// `iops-4k-write, plain: steady in the last 5 of 9 rounds (within 4 %, drift 1 %)`.
fn outcome(names: &Names, trial: &Trial) -> String {
    let rates = &trial.samples_mb_s;
    let rounds = rates.len();
    let cell = cell(names, trial);
    let Some(steady) = Steady::of(rates) else {
        return format!("{cell}: not judged after {rounds} rounds");
    };
    let state = match steady.reached() {
        true => "steady",
        false => "NOT steady",
    };
    let mean = |rates: &[f64]| rates.iter().sum::<f64>() / rates.len().max(1) as f64;
    let last = &rates[rounds.saturating_sub(STEADY_ROUNDS)..];
    format!(
        "{cell}: {state} in the last {STEADY_ROUNDS} of {rounds} rounds (within {:.0} %, drift {:.0} %), {} MB/s; the first round {}",
        steady.range * 100.0,
        steady.drift * 100.0,
        figure::number(mean(last)),
        figure::number(rates[0])
    )
}
