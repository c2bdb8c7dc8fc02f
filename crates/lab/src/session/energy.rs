//! The energy of visits, if a sensor is read.

use super::Session;
use super::cell::Cell;
use super::subject::Once;
use crate::clock::unix_time;
use crate::energy::Metering;
use crate::error::LabError;
use crate::record::Energy;
use crate::stats;
use crate::summary::{self, EnergyReference};
use crate::trial::Sample;
use crate::workload::Workload;

impl Session<'_> {
    /// Reads the sensor of `metering` before and after every visit. Without it, records have no
    /// energy.
    pub fn metered_by(mut self, metering: Option<Metering>) -> Self {
        self.metering = metering;
        self
    }

    /// One repetition, with its energy if that is known.
    pub(super) fn metered(
        &self,
        cell: &Cell,
        workload: &Workload,
        once: Once<'_>,
    ) -> Result<Sample, LabError> {
        let metering = self.metering.as_ref();
        let Some(metering) = metering.filter(|_| cell.subject.is_metered()) else {
            return cell.visit(workload, once);
        };
        let from = metering.mark();
        let sample = cell.visit(workload, once)?;
        let energy = match cell.subject.timed_elsewhere(workload) {
            Some((begun, seconds)) => {
                let ago = unix_time() - (begun + seconds);
                metering.spent_over(ago, seconds)
            }
            None => metering.spent(from, sample.wall),
        };
        Ok(Sample { energy, ..sample })
    }

    /// The energy of `cell`, which is compared with the cell `reference`; `cells` are those of the
    /// workload.
    pub(super) fn energy(
        &self,
        workload: usize,
        cell: usize,
        reference: Option<usize>,
        cells: &[usize],
    ) -> Option<Energy> {
        let metering = self.metering.as_ref()?;
        let idle = metering.idle_watts();
        let samples = |cell: usize| &self.cells[cell].samples[workload];
        let floor = self
            .twice(cells)
            .map_or(stats::noise_floor(None), |(first, again)| {
                summary::energy_floor(idle, samples(first), samples(again))
            });
        let reference = reference.map(|other| EnergyReference {
            system: &self.cells[other].identity.system,
            samples: samples(other),
            floor,
        });
        summary::energy(metering.source(), idle, samples(cell), reference)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::energy::tests::Machine;
    use crate::experiment::Schedule;
    use crate::record::{EnergyVerdict, Run, Trial};
    use crate::session::subject::Subject;
    use crate::session::{Session, Unwatched};
    use crate::workload::{Mix, Pattern};
    use bytesize::ByteSize;
    use std::cell::RefCell;
    use std::rc::Rc;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;
    use std::time::Duration;

    /// Watts of the machine at rest.
    const IDLE: f64 = 5.0;

    /// A system that takes watts for a second, on a simulated machine.
    struct Consumer {
        machine: Rc<RefCell<Machine>>,
        watts: f64,
        is_elsewhere: bool,
        is_metered: bool,
    }

    impl Subject for Consumer {
        fn takes(&self, _: &Workload) -> bool {
            true
        }

        fn visit(&self, workload: &Workload, _: Once<'_>) -> Result<Sample, LabError> {
            let mut machine = self.machine.borrow_mut();
            machine.passes(1.0, &[IDLE + self.watts]);
            Ok(Sample::timed_elsewhere(workload.block_bytes(), 1.0))
        }

        fn is_metered(&self) -> bool {
            self.is_metered
        }

        fn timed_elsewhere(&self, _: &Workload) -> Option<(f64, f64)> {
            // It ends when it is heard of, so that no reading is missed.
            self.is_elsewhere.then(|| (unix_time() + 60.0, 1.0))
        }
    }

    /// A run of plain, an encrypted system and plain again, of half a gigabyte each.
    fn run(is_elsewhere: bool, is_metered: bool, has_sensor: bool) -> Run {
        let machine = Machine::laptop();
        let meter = machine.meter("package");
        let machine = Rc::new(RefCell::new(machine));
        let rest = |time: Duration| machine.borrow_mut().passes(time.as_secs_f64(), &[IDLE]);
        let metering = Metering::begin(meter, rest).unwrap();
        let block = ByteSize::mb(500);
        let plan = Schedule {
            repetitions: 6,
            workloads: vec![Workload::new("r", Pattern::Random, Mix::Read, block)],
            ..Schedule::default()
        };
        let cell = |system: &str, watts: f64| {
            let consumer = Consumer {
                machine: Rc::clone(&machine),
                watts,
                is_elsewhere,
                is_metered,
            };
            let identity = Trial {
                system: system.to_owned(),
                ..Trial::default()
            };
            Cell::new(Box::new(consumer), system.to_owned(), identity, &plan)
        };
        let cells = vec![
            cell("none", 10.0),
            cell("builtin", 12.0),
            cell("none", 10.0),
        ];
        let session =
            Session::of(Arc::new(plan), 1, "id".to_owned(), Vec::new(), |_| cells).unwrap();
        let session = session.metered_by(has_sensor.then_some(metering));
        let (run, outcome) = session.measure(&AtomicBool::new(false), &mut Unwatched);
        outcome.unwrap();
        run
    }

    #[test]
    fn every_trial_has_its_energy_and_the_cost_of_encryption() {
        for is_elsewhere in [false, true] {
            let run = run(is_elsewhere, true, true);
            let energies: Vec<&Energy> = run
                .trials
                .iter()
                .map(|t| t.energy.as_deref().unwrap())
                .collect();
            let near = |value: f64, planted: f64| (value / planted - 1.0).abs() < 0.01;
            let [plain, cell, again] = energies[..] else {
                panic!("{energies:?}");
            };
            assert_eq!(plain.against, None);
            assert!(near(plain.j_per_gb.unwrap().median, 20.0), "{plain:?}");
            let cost = cell.against.as_ref().unwrap();
            assert_eq!(
                (cost.system.as_str(), cost.verdict),
                ("none", EnergyVerdict::More)
            );
            assert!(near(cost.ratio.unwrap().median, 1.2), "{cost:?}");
            assert!(near(cost.more_j_per_gb.unwrap().median, 4.0), "{cost:?}");
            let cost = again.against.as_ref().unwrap();
            assert_eq!(cost.verdict, EnergyVerdict::NotDistinguishable);
            assert!(near(cell.idle_w.median, IDLE) && cell.samples_j.len() == 6);
            // A record is the same after it was stored.
            let text = serde_json::to_string(&run).unwrap();
            assert_eq!(serde_json::from_str::<Run>(&text).unwrap(), run);
        }
    }

    /// Records of machines without sensors have no member more than before.
    #[test]
    fn without_a_sensor_a_record_does_not_mention_energy() {
        for run in [run(false, true, false), run(false, false, true)] {
            let text = serde_json::to_string(&run).unwrap();
            assert!(!text.contains("energy"), "{text}");
            assert!(run.trials.iter().all(|trial| trial.energy.is_none()));
        }
    }
}
