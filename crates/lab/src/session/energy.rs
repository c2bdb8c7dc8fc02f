//! The energy of visits, if a sensor is read.

use super::cell::Cell;
use super::subject::Once;
use super::{Session, SessionError};
use crate::clock::unix_time;
use crate::energy::Metering;
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
    ) -> Result<Sample, SessionError> {
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
