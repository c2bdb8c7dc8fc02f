//! Rounds: every workload on every system, repeated until the plan has enough of them.

use super::subject::Once;
use super::{Observer, Session, Visit};
use crate::clock::Clock;
use crate::error::LabError;
use crate::record::SteadyTest;
use crate::stats::Steady;
use crate::workload::{Mix, Pattern, Workload};
use bytesize::ByteSize;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The preparation of a device according to SNIA's specification: sequential requests of 128 KiB,
/// with this queue depth.
const PRECONDITION_BLOCK: ByteSize = ByteSize::kib(128);
const PRECONDITION_DEPTH: u32 = 8;

/// The workloads that are measured together, in rounds.
pub(super) struct Stage {
    /// Places of workloads in the plan.
    pub(super) workloads: Vec<usize>,
    /// The only place that is visited, if each place has its own time. All its workloads then
    /// follow each other.
    pub(super) place: Option<usize>,
    /// The test that begins with a prepared device and ends when that is steady.
    pub(super) test: Option<SteadyTest>,
    /// Clock readings at its beginning and at its latest end, if the stage ends when all cells are
    /// decided.
    pub(super) time: Option<Range<u64>>,
}

/// Some cells, once each, and what is asked of them.
pub(super) struct Turn {
    /// From 0.
    pub(super) round: u32,
    /// By workload and cell.
    pub(super) order: Vec<(usize, usize)>,
    /// Duration of a slice, seconds, if it is not a whole repetition.
    pub(super) slice: Option<f64>,
    /// Visits done so far and in all, for progress output.
    pub(super) visits: Range<u64>,
}

impl<'a> Session<'a> {
    pub(super) fn rounds(
        &mut self,
        stop: &AtomicBool,
        observer: &mut dyn Observer,
    ) -> Result<(), LabError> {
        let plan = Arc::clone(&self.plan);
        let a_round: usize = plan.workloads.iter().map(|w| self.cells_of(w).len()).sum();
        let visits = u64::from(plan.repetitions) * a_round as u64;
        let mut done = 0;
        for stage in self.stages() {
            if stage.test.is_some() {
                self.prepare(&stage, stop, observer)?;
            }
            done = self.stage(&stage, done..visits, stop, observer)?;
        }
        Ok(())
    }

    /// Rounds until there is enough of them; the visits done by then.
    pub(super) fn stage(
        &mut self,
        stage: &Stage,
        visits: Range<u64>,
        stop: &AtomicBool,
        observer: &mut dyn Observer,
    ) -> Result<u64, LabError> {
        let clock = Clock::get();
        let mut done = visits.start;
        let paused = self.paused;
        for round in 0..self.plan.repetitions {
            let begun = clock.now() - (self.paused - paused);
            for order in self.turns(stage, round) {
                let turn = Turn {
                    round,
                    order,
                    slice: None,
                    visits: done..visits.end,
                };
                done = self.round(turn, stop, observer)?;
                self.hand_over_in_time(observer)?;
            }
            // The time of a pause is not measuring time.
            let now = clock.now() - (self.paused - paused);
            let enough = match (&stage.test, &stage.time) {
                (Some(test), _) => self.is_steady(test),
                (None, Some(time)) => {
                    let tenths = (10.0 * clock.seconds(now - time.start)) as u64;
                    done = (visits.start + tenths).min(visits.end);
                    let decided = self.is_whole_decided(stage);
                    let late = now + (now - begun) > time.end;
                    if let Some(until) = self.plan.until.filter(|_| late && !decided) {
                        self.end(self.turns(stage, 0).concat(), &until);
                    }
                    decided || late
                }
                (None, None) => false,
            };
            if enough {
                break;
            }
        }
        Ok(done)
    }

    /// The visits of a round: the cells of each workload in turn, or all workloads of each cell of
    /// a place.
    pub(super) fn turns(&self, stage: &Stage, round: u32) -> Vec<Vec<(usize, usize)>> {
        let of = |index: usize| {
            self.in_turns(index, round)
                .into_iter()
                .map(move |cell| (index, cell))
        };
        let Some(place) = stage.place else {
            return stage
                .workloads
                .iter()
                .map(|&index| of(index).collect())
                .collect();
        };
        let all = stage.workloads.iter().flat_map(|&index| of(index));
        let mut order: Vec<_> = all
            .filter(|(_, cell)| self.cells[*cell].place == place)
            .collect();
        order.sort_by_key(|&(_, cell)| match round % 2 {
            0 => cell,
            _ => usize::MAX - cell,
        });
        vec![order]
    }

    /// Whether more rounds of a place would say nothing more that is asked for.
    pub(super) fn is_whole_decided(&mut self, stage: &Stage) -> bool {
        self.renew();
        let Some(until) = self.plan.until else {
            return false;
        };
        let mut visited = self.turns(stage, 0).into_iter().flatten();
        visited.all(|(workload, cell)| self.is_decided(workload, cell, &until))
    }

    /// All workloads at once, or those of each test.
    pub(super) fn stages(&self) -> Vec<Stage> {
        let plan = &self.plan;
        let Some((steady, _)) = &plan.steady else {
            return vec![Stage {
                workloads: (0..plan.workloads.len()).collect(),
                place: None,
                test: None,
                time: None,
            }];
        };
        let stage = |test: &SteadyTest| Stage {
            workloads: (0..plan.workloads.len())
                .filter(|&index| test.workloads.contains(&plan.workloads[index].name))
                .collect(),
            place: None,
            test: Some(test.clone()),
            time: None,
        };
        steady.tests.iter().map(stage).collect()
    }

    /// Purges every device that supports it, and writes all of it in order.
    pub(super) fn prepare(
        &mut self,
        stage: &Stage,
        stop: &AtomicBool,
        observer: &mut dyn Observer,
    ) -> Result<(), LabError> {
        let (Some(conditioning), Some((_, size))) = (&mut self.run.conditioning, &self.plan.steady)
        else {
            return Ok(());
        };
        let test = stage.test.as_ref().map_or("", |test| test.name.as_str());
        let workload = Workload {
            queue_depth: PRECONDITION_DEPTH,
            bytes: Some(*size * u64::from(conditioning.precondition)),
            ..Workload::new(
                &format!("preconditioning for {test}"),
                Pattern::Sequential,
                Mix::Write,
                PRECONDITION_BLOCK,
            )
        };
        // Plain is there twice, and is one extent.
        let mut extents = 0;
        for (done, cell) in self.cells.iter().enumerate() {
            extents += u32::from(cell.subject.is_the_extent());
            if cell.subject.is_the_extent() && extents > 1 {
                continue;
            }
            observer.visiting(&Visit {
                workload: &workload.name,
                label: &cell.label,
                round: 1,
                rounds: Some(1),
                done: done as u64,
                visits: self.cells.len() as u64,
            });
            let purged = cell.prepare(&workload, stop)?;
            // All of them, or it is not said.
            conditioning.purged = match (conditioning.purged, purged) {
                (Some(before), Some(now)) => Some(before && now),
                (before, now) => now.or(before),
            };
        }
        Ok(())
    }

    /// Whether the rates of all that a test tracks are steady, on every system.
    pub(super) fn is_steady(&self, test: &SteadyTest) -> bool {
        let workloads = self.plan.workloads.iter().enumerate();
        let mut tracked = workloads.filter(|(_, workload)| test.tracked.contains(&workload.name));
        tracked.all(|(index, workload)| {
            self.cells_of(workload).into_iter().all(|cell| {
                let rates = self.cells[cell].samples[index].rates();
                Steady::of(&rates).is_some_and(Steady::reached)
            })
        })
    }

    /// The cells of a workload; in every second round the other way round.
    pub(super) fn in_turns(&self, index: usize, round: u32) -> Vec<usize> {
        let mut order = self.cells_of(&self.plan.workloads[index]);
        if round % 2 == 1 {
            order.reverse();
        }
        order
    }

    /// The same blocks for every system of a round, others in the next.
    pub(super) fn seed(&self, round: u32) -> u64 {
        self.run.seed.wrapping_add(u64::from(round) << 20)
    }

    /// The systems whose turn it is; the visits done by then.
    pub(super) fn round(
        &mut self,
        turn: Turn,
        stop: &AtomicBool,
        observer: &mut dyn Observer,
    ) -> Result<u64, LabError> {
        let plan = Arc::clone(&self.plan);
        let Turn { round, visits, .. } = turn;
        let mut done = visits.start;
        let once = Once {
            number: round,
            seed: self.seed(round),
            slice: turn.slice.is_some(),
            stop,
        };
        let mut samples = Vec::with_capacity(turn.order.len());
        for (index, cell) in turn.order {
            let mut workload = plan.workloads[index].clone();
            if let Some(seconds) = turn.slice {
                (workload.seconds, workload.bytes) = (Some(seconds), None);
            }
            let subject = &self.cells[cell];
            if subject.had_its_time(&plan, &workload, index) {
                done += 1;
                continue;
            }
            let before = Clock::get().now();
            observer.visiting(&Visit {
                workload: &subject.subject.calls(&workload),
                label: &subject.label,
                round: round + 1,
                rounds: plan.until.is_none().then_some(plan.repetitions),
                done,
                visits: visits.end,
            });
            self.paused += Clock::get().now() - before;
            // The observer may have stopped it, and preparations take long.
            if stop.load(Ordering::Relaxed) {
                return Err(LabError::session_interrupted());
            }
            if round == 0 && !once.slice {
                subject.warm_up(&workload, once)?;
            }
            let sample = self.metered(&self.cells[cell], &workload, once)?;
            done += 1;
            self.fresh.insert(index);
            if subject.subject.is_visited_whole() {
                self.cells[cell].samples[index].push(sample);
                self.hand_over_in_time(observer)?;
                continue;
            }
            samples.push((index, cell, sample));
        }
        // Whole rounds only: what is compared was measured in turns.
        for (index, cell, sample) in samples {
            self.cells[cell].samples[index].push(sample);
        }
        Ok(done)
    }
}
