//! Whether the values of a plan go together.

use super::{MOST_CELLS, MOST_ENCRYPTIONS, Plan, PlanError};
use crate::record::Tier;
use crate::stats::STEADY_ROUNDS;
use crate::target::System;
use crate::target::simulated::{Driver, rate_of};
use bytesize::ByteSize;
use std::collections::BTreeSet;

impl Plan {
    /// Checks every value; called again after a command line changed some.
    ///
    /// # Errors
    /// Whatever value is impossible.
    pub fn validate(&self) -> Result<(), PlanError> {
        if self.workloads.is_empty() {
            return Err(PlanError::Empty("workloads"));
        }
        if !(1..=1000).contains(&self.repetitions) {
            return Err(PlanError::Range {
                key: "repetitions",
                value: u64::from(self.repetitions),
                low: 1,
                high: 1000,
            });
        }
        if let Some(slow) = self.slow_repetitions
            && !(1..=1000).contains(&slow)
        {
            return Err(PlanError::Range {
                key: "slow_repetitions",
                value: u64::from(slow),
                low: 1,
                high: 1000,
            });
        }
        if !(1..=1024).contains(&self.cores) {
            return Err(PlanError::Range {
                key: "cores",
                value: u64::from(self.cores),
                low: 1,
                high: 1024,
            });
        }
        if self.sector_size.all().is_empty() {
            return Err(PlanError::Empty("sector sizes"));
        }
        if self.key_size.as_ref().is_some_and(|s| s.all().is_empty()) {
            return Err(PlanError::Empty("key sizes"));
        }
        let count = |list: Option<usize>| list.unwrap_or(1) as u64;
        let encryptions = count(Some(self.ciphers.len()))
            .saturating_mul(count(self.key_size.as_ref().map(|s| s.all().len())))
            .saturating_mul(count(Some(self.sector_size.all().len())));
        for (key, value, high) in [
            (
                "ciphers, times key sizes and sector sizes,",
                encryptions,
                MOST_ENCRYPTIONS,
            ),
            ("workloads", self.workloads.len() as u64, MOST_CELLS),
        ] {
            if value > high {
                return Err(PlanError::Range {
                    key,
                    value,
                    low: 0,
                    high,
                });
            }
        }
        self.check_steady()?;
        self.check_until()?;
        if !self.recipes()?.is_empty() && !self.is_bare() {
            return Err(PlanError::DerivationsNotBare);
        }
        if !(1..=60_000).contains(&self.iter_time) {
            return Err(PlanError::Range {
                key: "iter_time",
                value: u64::from(self.iter_time),
                low: 1,
                high: 60_000,
            });
        }
        if self.systems.iter().any(System::takes_ciphers) && self.ciphers.is_empty() {
            return Err(PlanError::Empty("ciphers"));
        }
        let encryptions = self.encryptions(None)?;
        let simulated = self.systems.iter().any(|system| system.drive().is_some());
        let used: BTreeSet<&str> = encryptions
            .iter()
            .filter(|_| simulated)
            .filter_map(|encryption| Some(rate_of(encryption, &self.cpu)?.0))
            .collect();
        if let Some(unused) = self.cpu.keys().find(|name| !used.contains(name.as_str())) {
            return Err(PlanError::UnusedRate(unused.clone()));
        }
        if !self.driver.is_queue() && !simulated {
            return Err(PlanError::UnusedDriver(self.driver));
        }
        if self.driver == Driver::InTurn && self.cores > 1 {
            return Err(PlanError::DriverCores {
                driver: self.driver,
                cores: self.cores,
            });
        }
        for (index, workload) in self.workloads.iter().enumerate() {
            workload.validate().map_err(|source| PlanError::Workload {
                workload: workload.name.clone(),
                source,
            })?;
            if self.workloads[..index]
                .iter()
                .any(|other| other.name == workload.name)
            {
                return Err(PlanError::DuplicateWorkload(workload.name.clone()));
            }
            if workload.op.is_bare() {
                if self.tier != Tier::Cipher || !self.is_bare() {
                    return Err(PlanError::NotBare(workload.name.clone()));
                }
                // Sectors that a request does not hold are left out.
                continue;
            }
            let torn = |sector: &&u32| !workload.block_bytes().is_multiple_of(u64::from(**sector));
            if let Some(sector) = self.sector_size.all().iter().find(torn)
                && !self.ciphers.is_empty()
            {
                return Err(PlanError::BlockSector {
                    workload: workload.name.clone(),
                    sector: *sector,
                });
            }
            let needed = workload.buffer_bytes();
            if self.extent_bytes() < needed {
                return Err(PlanError::TooSmall {
                    workload: workload.name.clone(),
                    needed: ByteSize(needed),
                    size: self.size,
                });
            }
        }
        Ok(())
    }

    /// Slices are of devices that are here.
    fn check_until(&self) -> Result<(), PlanError> {
        let Some(until) = &self.until else {
            return Ok(());
        };
        let simulated = self.systems.iter().any(|system| system.drive().is_some());
        match until.is_possible() && !self.is_bare() && !simulated && self.steady.is_none() {
            true => Ok(()),
            false => Err(PlanError::Until),
        }
    }

    /// Every workload is in one test, whose tracked ones are its own.
    fn check_steady(&self) -> Result<(), PlanError> {
        let Some(steady) = &self.steady else {
            return Ok(());
        };
        if self.is_bare() {
            return Err(PlanError::NotBare(self.workloads[0].name.clone()));
        }
        let needed = STEADY_ROUNDS as u32;
        if self.repetitions < needed {
            let rounds = self.repetitions;
            return Err(PlanError::SteadyRounds { needed, rounds });
        }
        if !(1..=16).contains(&steady.precondition) {
            return Err(PlanError::Range {
                key: "precondition",
                value: u64::from(steady.precondition),
                low: 1,
                high: 16,
            });
        }
        let wrong = |name: &String| PlanError::SteadyWorkload(name.clone());
        for test in &steady.tests {
            let is_own = |name: &&String| test.workloads.contains(name);
            if test.tracked.is_empty() {
                return Err(wrong(&test.name));
            }
            if let Some(foreign) = test.tracked.iter().find(|name| !is_own(name)) {
                return Err(wrong(foreign));
            }
            let known = |name: &&String| self.workloads.iter().any(|w| w.name == **name);
            if let Some(unknown) = test.workloads.iter().find(|name| !known(name)) {
                return Err(wrong(unknown));
            }
        }
        for workload in &self.workloads {
            let tests = steady.tests.iter().flat_map(|test| &test.workloads);
            if tests.filter(|name| **name == workload.name).count() != 1 {
                return Err(wrong(&workload.name));
            }
        }
        Ok(())
    }
}
