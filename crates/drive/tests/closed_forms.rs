//! The simulator against the closed forms: within 1 %.

use drive::analytic;
use drive::ftl::{Layout, Policy, WearLevelling};
use drive::uniform::{Experiment, Outcome};
use drive::workload::Hot;
use std::ops::ControlFlow;

extern crate cryptmark_drive as drive;

const BLOCKS: u32 = 8192;
const PAGES: u32 = 64;

fn experiment(over_provisioning: f64, policy: Policy) -> Experiment {
    Experiment {
        layout: Layout::new(BLOCKS, PAGES, over_provisioning).expect("a layout"),
        policy,
        wear_levelling: WearLevelling::None,
        hot: None,
        separated: false,
        discards: 0.0,
        warmup: 5.0,
        measure: 5.0,
        seed: 1,
    }
}

fn run(experiment: &Experiment) -> Outcome {
    let outcome = experiment.run(&mut |_, _| ControlFlow::Continue(()));
    outcome.expect("it is possible").expect("nobody ends it")
}

/// Within 1 % of what the closed form says.
#[track_caller]
fn check(experiment: &Experiment) -> Outcome {
    let outcome = run(experiment);
    let got = outcome.counts.write_amplification().expect("writes");
    let expected = experiment.expected().expect("a closed form");
    let error = got / expected - 1.0;
    let Experiment {
        policy,
        hot,
        separated,
        discards,
        ..
    } = experiment;
    println!(
        "{:<14} {:>6.2} % spare, {discards:<4} discards, {hot:?} {separated}: {got:>8.4} {expected:>8.4} {:>+6.2} %",
        policy.to_string(),
        (experiment.layout.alpha() - 1.0) * 100.0,
        error * 100.0
    );
    assert!(error.abs() < 0.01, "{experiment:?}: {got} for {expected}");
    outcome
}

#[test]
fn oldest_emptiest_and_random() {
    for policy in [Policy::Fifo, Policy::Greedy, Policy::Random] {
        for spare in [0.0737, 0.10, 0.111, 0.20, 0.28, 0.50, 1.0] {
            check(&experiment(spare, policy));
        }
    }
}

#[test]
fn best_of_several() {
    for choices in [2, 3, 10, 30] {
        for spare in [0.0737, 0.2, 0.5] {
            check(&experiment(spare, Policy::Choices(choices)));
        }
    }
}

#[test]
fn discards() {
    for policy in [
        Policy::Greedy,
        Policy::Fifo,
        Policy::Random,
        Policy::Choices(10),
    ] {
        for discards in [0.05, 0.1, 0.2, 0.3] {
            let experiment = Experiment {
                discards,
                ..experiment(0.111, policy)
            };
            let outcome = check(&experiment);
            let used = f64::from(outcome.in_use) / f64::from(experiment.layout.logical_pages);
            assert!((used - analytic::in_use(discards)).abs() < 0.005, "{used}");
        }
    }
}

#[test]
fn hot_and_cold() {
    for (pages, writes) in [(0.2, 0.8), (0.1, 0.9), (0.5, 0.6), (0.05, 0.5)] {
        for spare in [0.1, 0.2] {
            let one = Experiment {
                hot: Some(Hot { pages, writes }),
                ..experiment(spare, Policy::Fifo)
            };
            check(&one);
            check(&Experiment {
                separated: true,
                ..one
            });
        }
    }
}

/// Other sizes of blocks.
#[test]
fn block_sizes() {
    for pages_per_block in [8, 16, 32, 128, 256] {
        for policy in [Policy::Greedy, Policy::Choices(10)] {
            check(&Experiment {
                layout: Layout::new(BLOCKS, pages_per_block, 0.1).expect("a layout"),
                ..experiment(0.1, policy)
            });
        }
    }
}
