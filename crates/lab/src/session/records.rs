//! Turns samples into records: summaries of samples, each with its reference.

use super::cell::Cell;
use super::{Observer, Session};
use crate::error::LabError;
use crate::experiment::Until;
use crate::stats::{self, Looks};
use crate::summary::{self, Reference};
use std::collections::BTreeMap;

impl Session<'_> {
    /// The cells that `workload` can be asked of, grouped by place.
    pub(super) fn places_of(&self, workload: usize) -> Vec<Vec<usize>> {
        let cells = self.cells_of(&self.plan.workloads[workload]);
        let together = |a: &usize, b: &usize| self.cells[*a].place == self.cells[*b].place;
        cells.chunk_by(together).map(<[usize]>::to_vec).collect()
    }

    /// Makes records of `cells`, which are whole, in place of those before.
    pub(super) fn enter(&mut self, cells: Vec<Cell>) {
        self.places = vec![vec![None; cells.len()]; self.plan.workloads.len()];
        self.cells = cells;
        for workload in 0..self.plan.workloads.len() {
            let changed = self.summarise(workload);
            self.changed.extend(changed);
        }
    }

    /// Brings the records of fresh workloads up to date and tells `observer`.
    pub(super) fn hand_over(&mut self, observer: &mut dyn Observer) -> Result<(), LabError> {
        self.renew();
        for workload in std::mem::take(&mut self.fresh) {
            let changed = self.summarise(workload);
            self.changed.extend(changed);
        }
        if self.changed.is_empty() {
            return Ok(());
        }
        let changed: Vec<usize> = std::mem::take(&mut self.changed).into_iter().collect();
        let pairs = self.all_pairs();
        self.run.noise = stats::noise(&pairs, self.plan.looks());
        observer.keep(&self.run, &changed).map_err(super::not_kept)
    }

    /// Updates the samples of fresh workloads from subjects that know more than their visits have
    /// returned.
    pub(super) fn renew(&mut self) {
        for cell in &mut self.cells {
            for &workload in &self.fresh {
                let looks = cell.samples[workload].looks();
                let asked = &self.plan.workloads[workload];
                if let Some(known) = cell.subject.samples(asked, looks) {
                    cell.samples[workload] = known.with_energy_of(&cell.samples[workload]);
                }
            }
        }
    }

    /// Rates of all second visits divided by those of the first. A subject whose workloads share
    /// one visit has one pair a round, the median over its workloads.
    fn all_pairs(&self) -> Vec<f64> {
        let mut pairs = Vec::new();
        let mut rounds: BTreeMap<(usize, usize), Vec<f64>> = BTreeMap::new();
        for workload in 0..self.plan.workloads.len() {
            for cells in self.places_of(workload) {
                let Some((again, first)) = self.pairs(workload, &cells) else {
                    continue;
                };
                let ratios = again
                    .into_iter()
                    .zip(first)
                    .map(|(again, first)| again / first);
                let cell = &self.cells[cells[0]];
                if !cell.subject.is_visited_whole() {
                    pairs.extend(ratios);
                    continue;
                }
                for (round, ratio) in ratios.enumerate() {
                    rounds.entry((cell.place, round)).or_default().push(ratio);
                }
            }
        }
        pairs.extend(rounds.values().filter_map(|ratios| stats::median(ratios)));
        pairs
    }

    /// Rates of the cell that is visited twice: of its second visits, and its first.
    fn pairs(&self, workload: usize, cells: &[usize]) -> Option<(Vec<f64>, Vec<f64>)> {
        let (first, again) = self.twice(cells)?;
        let rates = |cell: usize| self.cells[cell].samples[workload].rates();
        Some((rates(again), rates(first)))
    }

    /// The cell of `cells` that is visited twice, with its second visits.
    pub(super) fn twice(&self, cells: &[usize]) -> Option<(usize, usize)> {
        let (first, again) = (*cells.first()?, *cells.last()?);
        let same = self.cells[first].is_again(&self.cells[again]);
        (first != again && same).then_some((first, again))
    }

    /// Brings the records of one workload up to date; returns their places.
    fn summarise(&mut self, workload: usize) -> Vec<usize> {
        let places = self.places_of(workload);
        places
            .iter()
            .flat_map(|cells| self.summarise_place(workload, cells))
            .collect()
    }

    fn summarise_place(&mut self, workload: usize, cells: &[usize]) -> Vec<usize> {
        let floor = self.floor(workload, cells);
        let mut changed = Vec::new();
        for &cell in cells {
            let other = self.reference(workload, cell, cells);
            let energy = self.energy(workload, cell, other, cells);
            let reference = other.map(|other| {
                let other = &self.cells[other];
                Reference {
                    against: &other.identity.system,
                    rates: other.samples[workload].rates(),
                    floor,
                }
            });
            let subject = &self.cells[cell];
            let Some(mut trial) = summary::trial(
                &subject.identity,
                &self.plan.workloads[workload],
                &subject.samples[workload],
                reference,
                self.core_hz.filter(|_| !subject.subject.is_simulated()),
            ) else {
                continue;
            };
            if self.plan.looks() == Looks::Once && subject.subject.lasts() {
                summary::judge_steadiness(&mut trial);
            }
            subject.subject.complete(&mut trial);
            self.beside.fill(&mut trial);
            trial.energy = energy.map(Box::new);
            let place = match self.places[workload][cell] {
                Some(place) if self.run.trials[place] == trial => continue,
                Some(place) => {
                    self.run.trials[place] = trial;
                    place
                }
                None => {
                    self.run.trials.push(trial);
                    self.run.trials.len() - 1
                }
            };
            self.places[workload][cell] = Some(place);
            changed.push(place);
        }
        changed
    }

    /// No visit follows in `turns`, by workload and cell, because the time is spent: what is not
    /// decided there is looked at for the last time.
    pub(super) fn end(&mut self, turns: Vec<(usize, usize)>, until: &Until) {
        let is_open = |&(workload, cell): &(usize, usize)| !self.is_decided(workload, cell, until);
        let open: Vec<_> = turns.into_iter().filter(is_open).collect();
        for (workload, cell) in open {
            self.cells[cell].samples[workload].end();
            self.fresh.insert(workload);
        }
    }

    /// By how much the cell that is visited twice differs from itself.
    pub(super) fn floor(&self, workload: usize, cells: &[usize]) -> f64 {
        let pairs = self.pairs(workload, cells);
        let ratio = pairs.and_then(|(again, first)| {
            let looks = &self.cells[*cells.last()?].samples[workload];
            looks.looks().ratio(&stats::ratios(&again, &first))
        });
        stats::noise_floor(ratio)
    }

    /// The cell that `cell` is compared with; `cells` are those of the workload.
    pub(super) fn reference(&self, workload: usize, cell: usize, cells: &[usize]) -> Option<usize> {
        if !self.plan.is_bare {
            return cells.first().copied().filter(|first| *first != cell);
        }
        let (first, again) = self.twice(cells).unzip();
        if Some(cell) == again {
            return first;
        }
        let alike = cells.iter().copied().filter(|&other| {
            Some(other) != again && self.cells[cell].encrypts_like(&self.cells[other])
        });
        let is_builtin = |cell: usize| self.cells[cell].subject.is_builtin();
        if !is_builtin(cell) {
            return alike.into_iter().find(|&other| is_builtin(other));
        }
        let rate =
            |cell: usize| stats::median(&self.cells[cell].samples[workload].rates()).unwrap_or(0.0);
        alike
            .filter(|&other| !is_builtin(other))
            .max_by(|&a, &b| rate(a).total_cmp(&rate(b)))
    }
}
