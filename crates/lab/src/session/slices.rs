//! Slices are visits of tens of milliseconds in a random order, until every pair is decided.
//!
//! A disturbance of seconds, such as another guest's work, affects all systems of a round alike if
//! the round is shorter. A slice is therefore as short as the queue allows. Its rate counts only
//! the time in which the queue was full, which must be most of the slice. Every second round
//! reverses the order of the round before it, so every system is as often early as it is late.
//!
//! A cell is done when its ratio is known to the plan's precision and its verdict is certain.
//! Uncertain cells get the time of the others. The interval stays valid however often it is looked
//! at ([`stats::sequence`](crate::stats::sequence)).

use super::rounds::Turn;
use super::subject::Once;
use super::{Observer, Session};
use crate::clock::Clock;
use crate::error::LabError;
use crate::experiment::Until;
use crate::record::{Interval, Verdict};
use crate::stats;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Seconds of a slice: least and most.
const LEAST: f64 = 0.03;
const MOST: f64 = 1.0;

/// Number of turns of a slice: the answers to all requests in flight count as one turn. The first
/// turn fills the queue and is not counted. If time is short, the second number applies.
const TURNS: f64 = 3.0;
const FEWEST_TURNS: f64 = 2.5;

/// Rounds for which the time must suffice; an interval needs eight.
const ROUNDS: f64 = 12.0;

/// A workload that is measured until all its cells are decided.
struct Open {
    /// Place of the workload in the plan.
    workload: usize,
    /// Duration of its slices, seconds.
    seconds: f64,
    /// The undecided cells, without the reference cell.
    cells: Vec<usize>,
    /// The order of the previous round, for going back through it.
    order: Vec<usize>,
}

impl Session<'_> {
    /// Measures until every cell is decided or the time is spent.
    pub(super) fn slices(
        &mut self,
        until: &Until,
        stop: &AtomicBool,
        observer: &mut dyn Observer,
    ) -> Result<(), LabError> {
        let clock = Clock::get();
        let begun = clock.now();
        // The time of a pause is not measuring time.
        let spent = |paused: u64| clock.seconds(clock.now() - begun - paused);
        let mut dice = Xoshiro256PlusPlus::seed_from_u64(self.run.seed);
        let mut open = Vec::new();
        let plan = Arc::clone(&self.plan);
        let workloads = &plan.workloads;
        let a_round: usize = workloads.iter().map(|w| self.cells_of(w).len()).sum();
        let share = until.seconds / (ROUNDS * a_round as f64);
        for workload in 0..workloads.len() {
            open.extend(self.begin(workload, share, stop)?);
        }
        for round in 0.. {
            for open in &mut open {
                // One round is always whole, so that each workload has a figure.
                if round > 0 && spent(self.paused) >= until.seconds {
                    let all = self.stages().into_iter().next();
                    let turns = all.map(|all| self.turns(&all, 0).concat());
                    self.end(turns.unwrap_or_default(), until);
                    return Ok(());
                }
                let tenths = (10.0 * spent(self.paused)) as u64;
                let first = self.cells_of(&self.plan.workloads[open.workload])[0];
                let order = open.next_order(first, round, &mut dice).into_iter();
                let turn = Turn {
                    round,
                    order: order.map(|cell| (open.workload, cell)).collect(),
                    slice: Some(open.seconds),
                    visits: tenths..(10.0 * until.seconds) as u64,
                };
                self.round(turn, stop, observer)?;
                self.hand_over_in_time(observer)?;
            }
            // A cell stays away once it is decided: its pairs are those of the first rounds.
            for open in &mut open {
                let workload = open.workload;
                open.cells
                    .retain(|&cell| !self.is_decided(workload, cell, until));
            }
            open.retain(|open| !open.cells.is_empty());
            if open.is_empty() {
                break;
            }
        }
        Ok(())
    }

    /// Visits every cell of a workload once for nothing, and finds how long its slices are, if
    /// each of them may take `share` seconds.
    fn begin(
        &self,
        workload: usize,
        share: f64,
        stop: &AtomicBool,
    ) -> Result<Option<Open>, LabError> {
        let plan = &self.plan;
        let asked = &plan.workloads[workload];
        let cells = self.cells_of(asked);
        let in_flight = f64::from(asked.queue_depth * asked.threads);
        let mut turn: f64 = 0.0;
        for &cell in &cells {
            if stop.load(Ordering::Relaxed) {
                return Err(LabError::session_interrupted());
            }
            let once = Once {
                number: 0,
                seed: self.seed(0),
                slice: true,
                stop,
            };
            let sample = self.cells[cell].warm_up(asked, once)?;
            turn = turn.max(sample.map_or(0.0, |sample| in_flight / sample.iops()));
        }
        let Some((_, others)) = cells.split_first() else {
            return Ok(None);
        };
        Ok(Some(Open {
            workload,
            seconds: (TURNS * turn)
                .min(share.max(FEWEST_TURNS * turn))
                .clamp(LEAST, MOST),
            cells: others.to_vec(),
            order: Vec::new(),
        }))
    }

    /// Whether more slices would say nothing more that is asked for.
    pub(super) fn is_decided(&self, workload: usize, cell: usize, until: &Until) -> bool {
        let mut cells = self.cells_of(&self.plan.workloads[workload]);
        cells.retain(|&other| self.cells[other].place == self.cells[cell].place);
        let Some(reference) = self.reference(workload, cell, &cells) else {
            return true;
        };
        let [rates, others] =
            [cell, reference].map(|cell| self.cells[cell].samples[workload].rates());
        let ratio = stats::sequence(&stats::ratios(&rates, &others));
        let floor = self.floor(workload, &cells);
        ratio.is_some_and(|ratio| says_enough(ratio, floor, until.precision / 100.0))
    }
}

/// Whether a ratio is known to `precision`, and either differs from 1 for certain or not by
/// more than that.
fn says_enough(ratio: Interval, floor: f64, precision: f64) -> bool {
    let known = ratio.high - ratio.low <= 2.0 * precision;
    let nothing = ratio.low >= 1.0 - 2.0 * precision && ratio.high <= 1.0 + 2.0 * precision;
    known && (nothing || stats::verdict(ratio, floor) != Verdict::NotDistinguishable)
}

impl Open {
    /// `first` and all that are not decided, in a new order, or back through the last one.
    fn next_order(
        &mut self,
        first: usize,
        round: u32,
        dice: &mut Xoshiro256PlusPlus,
    ) -> Vec<usize> {
        let wanted = |cell: &usize| *cell == first || self.cells.contains(cell);
        if round % 2 == 1 {
            let back = self.order.iter().rev().copied();
            return back.filter(wanted).collect();
        }
        let mut order = vec![first];
        order.extend(&self.cells);
        for last in (1..order.len()).rev() {
            order.swap(last, (dice.next_u64() % (last as u64 + 1)) as usize);
        }
        self.order.clone_from(&order);
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn between(low: f64, high: f64) -> Interval {
        Interval {
            median: (low + high) / 2.0,
            low,
            high,
            n: 50,
        }
    }

    #[test]
    fn enough_is_known_and_certain() {
        for (ratio, floor, enough) in [
            (between(0.80, 0.83), 0.01, true),
            // Not known well enough.
            (between(0.80, 0.85), 0.01, false),
            // No difference that users would notice.
            (between(0.99, 1.01), 0.02, true),
            // Perhaps a difference, perhaps none.
            (between(0.955, 0.99), 0.05, false),
            (between(0.955, 0.99), 0.01, true),
        ] {
            assert_eq!(says_enough(ratio, floor, 0.02), enough, "{ratio:?} {floor}");
        }
    }

    /// In two rounds every cell is as early as it is late.
    #[test]
    fn orders_are_drawn_and_gone_back_through() {
        let mut dice = Xoshiro256PlusPlus::seed_from_u64(1);
        let mut open = Open {
            workload: 0,
            seconds: 0.03,
            cells: vec![2, 4, 5, 7],
            order: Vec::new(),
        };
        let mut firsts = [0; 8];
        for round in 0..400 {
            let order = open.next_order(0, round, &mut dice);
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 2, 4, 5, 7]);
            if round % 2 == 0 {
                firsts[order[0]] += 1;
                let mut back = open.next_order(0, round + 1, &mut dice);
                back.reverse();
                assert_eq!(order, back);
            }
        }
        assert!(
            [0, 2, 4, 5, 7].iter().all(|&cell| firsts[cell] > 20),
            "{firsts:?}"
        );
        open.cells = vec![4];
        assert_eq!(open.next_order(0, 401, &mut dice).len(), 2);
    }
}
