//! [`Changes`]: what a caller chooses for an experiment before it is measured.

use super::Setting;
use crate::energy::Choice;
use crate::system::simulated::{CipherRate, Driver};
use crate::system::{Backend, SystemId};
use bytesize::ByteSize;
use std::path::PathBuf;

/// What is chosen. The default changes nothing; an empty list leaves the plan's own.
///
/// Energy, seed, place and overwriting are not of the experiment but of the run. They stand here
/// because an experiment that has no use for one refuses it.
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
    /// Whether devices are memory, so that nothing but the cipher takes time.
    pub in_memory: bool,
    /// Systems in addition to `none`.
    pub systems: Vec<SystemId>,
    /// Ciphers, by name (in XTS) or in dm-crypt notation.
    pub ciphers: Vec<String>,
    /// Key size in bits, as cryptsetup counts.
    pub key_size: Option<u32>,
    /// Encryption sector sizes, bytes.
    pub sector_sizes: Vec<u32>,
    /// Threads that send requests, 1 to 256. Every workload is measured with each of these numbers.
    pub threads: Vec<u32>,
    /// Cores that encrypt one large request, or for a simulated drive, 1 to 1024.
    pub cores: Option<u32>,
    /// Rates of ciphers on the CPU before simulated drives, by name or notation.
    pub cpu: Vec<(String, CipherRate)>,
    /// The way in which an encrypting driver works before simulated drives.
    pub driver: Option<Driver>,
    /// The backend of the engine.
    pub backend: Option<Backend>,
    /// Shell commands that are timed in the mounted directory.
    pub commands: Vec<String>,
    /// How many jobs do each operation at the same time, 1 to 256.
    pub jobs: Option<u32>,
    /// The energy sensor that is read.
    pub energy: Option<Choice>,
    /// The seed of offsets and data.
    pub seed: Option<u64>,
    /// The storage.
    pub at: Option<PathBuf>,
    /// Whether the contents of the file or device `at` may be overwritten.
    pub overwrite: bool,
}

impl Changes {
    /// The target of calibrated key derivations in a first look, ms.
    pub(super) const LOOK_ITER_TIME: u32 = 200;

    /// What is chosen.
    pub fn given(&self) -> Vec<Setting> {
        use Setting as S;
        let given = [
            (S::Size, self.size.is_some()),
            (S::FirstLook, self.first_look),
            (S::Repetitions, self.repetitions.is_some()),
            (S::TrialSeconds, self.trial_seconds.is_some()),
            (S::TimeLimit, self.time_limit.is_some()),
            (S::Precision, self.precision.is_some()),
            (S::InMemory, self.in_memory),
            (S::Systems, !self.systems.is_empty()),
            (S::Ciphers, !self.ciphers.is_empty()),
            (S::KeySize, self.key_size.is_some()),
            (S::SectorSizes, !self.sector_sizes.is_empty()),
            (S::Threads, !self.threads.is_empty()),
            (S::Cores, self.cores.is_some()),
            (S::Cpu, !self.cpu.is_empty()),
            (S::Driver, self.driver.is_some()),
            (S::Backend, self.backend.is_some()),
            (S::Commands, !self.commands.is_empty()),
            (S::Jobs, self.jobs.is_some()),
            (S::Energy, self.energy.is_some()),
            (S::Seed, self.seed.is_some()),
            (S::Place, self.at.is_some()),
            (S::Overwrite, self.overwrite),
        ];
        let given = given.into_iter().filter(|(_, given)| *given);
        given.map(|(setting, _)| setting).collect()
    }
}
