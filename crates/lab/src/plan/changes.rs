//! [`Changes`]: what a caller changes in a plan before it is measured.

use super::{Plan, PlanError, Sizes, Until};
use crate::record::Tier;
use crate::stats::STEADY_ROUNDS;
use crate::target::simulated::{CipherRate, Driver, whole_size};
use crate::target::{System, notation};
use bytesize::ByteSize;

/// The time limit and the precision of a plan measured in slices that does not set its own.
const UNTIL: Until = Until {
    seconds: 60.0,
    precision: 2.0,
};

/// The time after which a first look is done in any case, seconds, and the largest extent that it
/// fills.
const LOOK_SECONDS: f64 = 8.0;
const LOOK_SIZE: ByteSize = ByteSize::mb(256);

/// The size of a first look at a steady state, which writes all of it more than once.
const LOOK_STEADY_SIZE: ByteSize = ByteSize::mib(256);

/// The target of calibrated key derivations in a first look, ms.
const LOOK_ITER_TIME: u32 = 200;

/// Changes to a plan. The default changes nothing; an empty list leaves the plan's own.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes {
    /// Bytes of the test extent.
    pub size: Option<ByteSize>,
    /// Whether to take a first look: eight seconds, or three repetitions of at most 0.1 s or
    /// 64 MB.
    pub first_look: bool,
    /// Repetitions of every cell, 1 to 1000, whatever the results are.
    pub repetitions: Option<u32>,
    /// Length of one repetition of every workload, seconds, 0.001 to 86,400. A plan that is
    /// measured in slices chooses their length itself.
    pub trial_seconds: Option<f64>,
    /// The most time for the whole plan, seconds, 1 to 86,400. It is measured in slices then.
    pub time_limit: Option<f64>,
    /// Precision required of each cost, percentage points, 0.1 to 50. The plan is measured in
    /// slices then.
    pub precision: Option<f64>,
    /// Systems in addition to `none`.
    pub systems: Vec<System>,
    /// Ciphers, by name (in XTS) or in dm-crypt notation.
    pub ciphers: Vec<String>,
    /// Key size in bits, as cryptsetup counts.
    pub key_size: Option<u32>,
    /// Threads that send requests, 1 to 256. Every workload is measured with each of these numbers.
    pub threads: Vec<u32>,
    /// Cores that encrypt one large request, or for a simulated drive, 1 to 1024.
    pub cores: Option<u32>,
    /// Rates of ciphers on the CPU before simulated drives, by name or notation.
    pub cpu: Vec<(String, CipherRate)>,
    /// The way in which an encrypting driver works before simulated drives.
    pub driver: Option<Driver>,
    /// Encryption sector sizes, bytes.
    pub sector_sizes: Vec<u32>,
    /// What to time: ciphers in memory, or devices.
    pub tier: Option<Tier>,
}

impl Until {
    /// When a plan is done whose own end is `planned`, if `seconds` or `precision` changes that.
    pub fn changed(
        planned: Option<Self>,
        seconds: Option<f64>,
        precision: Option<f64>,
    ) -> Option<Self> {
        seconds.or(precision)?;
        let until = planned.unwrap_or(UNTIL);
        Some(Self {
            seconds: seconds.unwrap_or(until.seconds),
            precision: precision.unwrap_or(until.precision),
        })
    }
}

impl Plan {
    /// The plan with `changes`, checked as a whole.
    ///
    /// # Errors
    /// [`PlanError::NoLimit`] if a time limit or a precision does not apply, [`PlanError::Life`]
    /// for an unknown simulated drive, and those of an impossible value.
    pub fn changed(mut self, changes: &Changes) -> Result<Self, PlanError> {
        if let Some(size) = changes.size {
            self.size = size;
        }
        if changes.first_look {
            self.shorten(changes.size.is_some());
        }
        if let Some(repetitions) = changes.repetitions {
            self.repetitions = repetitions;
            self.slow_repetitions = None;
            self.until = None;
        }
        if let Some(seconds) = changes.trial_seconds {
            for workload in &mut self.workloads {
                (workload.seconds, workload.bytes) = (Some(seconds), None);
            }
        }
        if !changes.systems.is_empty() {
            self.systems.clone_from(&changes.systems);
        }
        if !changes.ciphers.is_empty() {
            self.ciphers = changes.ciphers.iter().map(|name| notation(name)).collect();
            // The plan's key size belongs to the plan's ciphers.
            self.key_size = None;
        }
        if let Some(bits) = changes.key_size {
            match changes.ciphers.is_empty() && self.is_bare() {
                true => self.keep_key_size(bits),
                false => self.key_size = Some(Sizes::One(bits)),
            }
        }
        if !changes.threads.is_empty() {
            self.with_threads(&changes.threads);
        }
        if let Some(cores) = changes.cores {
            self.cores = cores;
            self.all_cores = false;
        }
        let simulated = self.systems.iter().any(|system| system.drive().is_some());
        if simulated {
            // Time that is simulated need not be spared.
            self.until = None;
        }
        if let Some(until) = Until::changed(self.until, changes.time_limit, changes.precision) {
            if simulated || self.is_bare() || self.steady.is_some() {
                return Err(PlanError::NoLimit(self.name));
            }
            self.until = Some(until);
        }
        self.cpu.extend(changes.cpu.iter().cloned());
        if let Some(driver) = changes.driver {
            self.driver = driver;
        }
        if !changes.sector_sizes.is_empty() {
            self.sector_size = Sizes::Several(changes.sector_sizes.clone());
        }
        if let Some(tier) = changes.tier {
            self.tier = tier;
        }
        if self.steady.is_some() && changes.size.is_none() {
            for drive in self.systems.iter().filter_map(System::drive) {
                let size = whole_size(drive, self.size);
                self.size = size.map_err(|error| PlanError::Life(Box::new(error)))?;
            }
        }
        self.validate()?;
        Ok(self)
    }

    /// Takes a first look only. The size stays if it `is_given`.
    fn shorten(&mut self, is_given: bool) {
        self.repetitions = match self.steady {
            Some(_) => STEADY_ROUNDS as u32,
            None => 3,
        };
        if self.steady.is_some() && !is_given {
            self.size = self.size.min(LOOK_STEADY_SIZE);
        }
        if let Some(until) = &mut self.until {
            until.seconds = until.seconds.min(LOOK_SECONDS);
            if !is_given {
                self.size = self.size.min(LOOK_SIZE);
            }
        }
        self.iter_time = self.iter_time.min(LOOK_ITER_TIME);
        for workload in &mut self.workloads {
            workload.seconds = workload.seconds.map(|seconds| seconds.min(0.1));
            let least = workload.block_bytes();
            let short = |bytes: ByteSize| bytes.min(ByteSize::mb(64)).max(ByteSize(least));
            workload.bytes = workload.bytes.map(short);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_changed_unless_it_is_named() {
        for name in ["quick", "ciphers", "snia"] {
            let plan = Plan::load(name).unwrap();
            assert_eq!(plan.clone().changed(&Changes::default()).unwrap(), plan);
        }
    }

    #[test]
    fn a_number_of_repetitions_or_seconds_takes_the_place_of_the_plans_end() {
        let changed = |changes| Plan::load("quick").unwrap().changed(&changes);
        let plan = changed(Changes {
            repetitions: Some(4),
            trial_seconds: Some(0.01),
            ..Changes::default()
        })
        .unwrap();
        assert_eq!((plan.repetitions, plan.until), (4, None));
        let lengths = plan.workloads.iter().map(|workload| workload.seconds);
        assert!(lengths.into_iter().all(|seconds| seconds == Some(0.01)));
        let limited = changed(Changes {
            time_limit: Some(5.0),
            ..Changes::default()
        });
        assert_eq!(limited.unwrap().until.unwrap().seconds, 5.0);
    }

    #[test]
    fn impossible_changes_are_refused() {
        let changed = |name: &str, changes| Plan::load(name).unwrap().changed(&changes);
        let limit = Changes {
            time_limit: Some(5.0),
            ..Changes::default()
        };
        assert!(matches!(
            changed("ciphers", limit),
            Err(PlanError::NoLimit(name)) if name == "ciphers"
        ));
        for seconds in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let changes = Changes {
                trial_seconds: Some(seconds),
                ..Changes::default()
            };
            assert!(matches!(
                changed("quick", changes),
                Err(PlanError::Workload { .. })
            ));
        }
        let none = Changes {
            repetitions: Some(0),
            ..Changes::default()
        };
        assert!(matches!(
            changed("quick", none),
            Err(PlanError::Range { .. })
        ));
    }
}
