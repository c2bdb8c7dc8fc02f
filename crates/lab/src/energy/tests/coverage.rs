//! Whole runs on simulated machines: what was planted lies in the intervals as often as they say.

use super::{Machine, RANGE};
use crate::energy::{Metering, Spent};
use crate::record::{Energy, EnergyVerdict, Interval};
use crate::summary::{self, EnergyReference};
use crate::trial::{Sample, Samples};
use hdrhistogram::Histogram;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::cell::RefCell;

/// Watts of the machine at rest.
const IDLE: f64 = 4.0;

/// Watts above that of a plain visit, and of an encrypted one.
const PLAIN: f64 = 6.0;
const ENCRYPTED: f64 = 9.0;

/// Seconds and bytes of a visit.
const SECONDS: f64 = 0.1;
const BYTES: u64 = 60_000_000;

fn normal(dice: &mut Xoshiro256PlusPlus) -> f64 {
    let mut uniform = || (dice.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
    (0..12).map(|_| uniform()).sum::<f64>() - 6.0
}

/// How much powers vary from one stretch to the next, watts.
#[derive(Clone, Copy)]
struct Noise {
    at_rest: f64,
    at_work: f64,
}

/// A machine in a run of ten rounds; the energy of plain again, and of the encrypted system.
fn run(seed: u64, noise: Noise, encrypted: f64) -> [Energy; 2] {
    let mut dice = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut machine = Machine::new();
    // The counter wraps in some runs.
    let range = RANGE as f64 / 1e6;
    let start = range - 100.0 * (seed % 7) as f64;
    machine.zone("intel-rapl:0", "package-0", RANGE, start);
    let meter = machine.meter("package");
    let state = RefCell::new((&mut machine, &mut dice));
    let rest = |time: std::time::Duration| {
        let (machine, dice) = &mut *state.borrow_mut();
        let watts = IDLE + noise.at_rest * normal(dice);
        machine.passes(time.as_secs_f64(), &[watts]);
    };
    let metering = Metering::begin(meter, rest).unwrap();
    let mut cells: [Samples; 3] = std::array::from_fn(|_| [].into_iter().collect());
    for round in 0..10 {
        let mut order = [(0, PLAIN), (1, encrypted), (2, PLAIN)];
        if round % 2 == 1 {
            order.reverse();
        }
        for (cell, above) in order {
            let from = metering.mark();
            let (machine, dice) = &mut *state.borrow_mut();
            let idle = IDLE + noise.at_rest * normal(dice);
            let watts = idle + above + noise.at_work * normal(dice);
            machine.passes(SECONDS, &[watts]);
            let energy: Option<Spent> = metering.spent(from, SECONDS);
            assert!(energy.is_some(), "{:?}", metering.warnings());
            cells[cell].push(Sample {
                wall: SECONDS,
                bytes: BYTES,
                requests: 1000,
                energy,
                latency: Histogram::new(1).unwrap(),
                ..Sample::default()
            });
        }
    }
    let idle = metering.idle_watts();
    let floor = summary::energy_floor(idle, &cells[0], &cells[2]);
    [2, 1].map(|cell| {
        let reference = EnergyReference {
            system: "none",
            samples: &cells[0],
            floor,
        };
        let source = metering.source();
        summary::energy(source, idle, &cells[cell], Some(reference)).unwrap()
    })
}

const NOISES: [Noise; 3] = [
    Noise {
        at_rest: 0.3,
        at_work: 0.05,
    },
    Noise {
        at_rest: 0.02,
        at_work: 0.6,
    },
    Noise {
        at_rest: 0.2,
        at_work: 0.2,
    },
];

#[test]
fn intervals_cover_what_was_planted() {
    const RUNS: u64 = 200;
    let joules = |watts: f64| watts * SECONDS / (BYTES as f64 / 1e9);
    for noise in NOISES {
        let mut covered = [0_u64; 5];
        for seed in 0..RUNS {
            let [_, energy] = run(seed, noise, ENCRYPTED);
            let cost = energy.against.unwrap();
            let holds = |interval: Interval, planted: f64| {
                u64::from(interval.low <= planted && planted <= interval.high)
            };
            covered[0] += holds(energy.idle_w, IDLE);
            covered[1] += holds(energy.j_per_gb.unwrap(), joules(ENCRYPTED));
            let mj = ENCRYPTED * SECONDS / 1000.0 * 1e3;
            covered[2] += holds(energy.mj_per_operation.unwrap(), mj);
            covered[3] += holds(cost.ratio.unwrap(), ENCRYPTED / PLAIN);
            let more = joules(ENCRYPTED - PLAIN);
            covered[4] += holds(cost.more_j_per_gb.unwrap(), more);
        }
        for covered in covered {
            let share = covered as f64 / RUNS as f64;
            assert!(share >= 0.95, "{covered} of {RUNS}");
        }
    }
}

#[test]
fn the_same_target_twice_takes_the_same() {
    for noise in NOISES {
        let quiet = (0..40).filter(|&seed| {
            let [again, _] = run(seed, noise, ENCRYPTED);
            again.against.unwrap().verdict == EnergyVerdict::NotDistinguishable
        });
        assert!(quiet.count() >= 38);
    }
}

#[test]
fn half_as_much_again_is_found() {
    for noise in NOISES {
        let found = (0..40).filter(|&seed| {
            let [_, energy] = run(seed, noise, ENCRYPTED);
            energy.against.unwrap().verdict == EnergyVerdict::More
        });
        assert!(found.count() >= 38);
    }
}

/// Without noise, the figure is the planted one within a per cent.
#[test]
fn planted_joules_come_back() {
    let quiet = Noise {
        at_rest: 0.0,
        at_work: 0.0,
    };
    let [_, energy] = run(3, quiet, ENCRYPTED);
    let near = |interval: Interval, planted: f64| {
        let off = (interval.median / planted - 1.0).abs();
        assert!(off < 0.01, "{interval:?} {planted}");
    };
    near(energy.idle_w, IDLE);
    near(energy.j_per_gb.unwrap(), 15.0);
    near(energy.mj_per_operation.unwrap(), 0.9);
    let cost = energy.against.unwrap();
    near(cost.ratio.unwrap(), 1.5);
    near(cost.more_j_per_gb.unwrap(), 5.0);
    assert_eq!(energy.samples_j.len(), 10);
}

/// A visit that is mostly preparation has no figure, and the run says so once.
#[test]
fn preparation_is_not_a_visit() {
    let mut machine = Machine::laptop();
    let meter = machine.meter("package");
    let state = RefCell::new(&mut machine);
    let rest = |time: std::time::Duration| {
        state.borrow_mut().passes(time.as_secs_f64(), &[IDLE]);
    };
    let metering = Metering::begin(meter, rest).unwrap();
    for _ in 0..2 {
        let from = metering.mark();
        state.borrow_mut().passes(1.0, &[IDLE + PLAIN]);
        assert_eq!(metering.spent(from, 0.5), None);
    }
    assert_eq!(
        metering.warnings(),
        ["energy: 2 visits have no figure, because most of a visit was preparation"]
    );
}
