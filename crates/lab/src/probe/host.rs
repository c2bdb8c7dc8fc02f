//! The machine: processor, memory, kernel, versions.

use super::system;
use crate::clock::{self, Clock};
use crate::record::Host;
use std::collections::BTreeMap;

/// The facts that a system reports about its machine.
pub(super) struct Facts {
    pub(super) cpu: Option<String>,
    /// The CPU features that decide how fast a cipher can be, by their names in `/proc/cpuinfo`.
    pub(super) features: Vec<String>,
    /// The system's name and release.
    pub(super) kernel: String,
    pub(super) os: Option<String>,
    pub(super) governor: Option<String>,
    /// Bytes.
    pub(super) memory: Option<u64>,
    pub(super) load_average: Option<f64>,
    pub(super) hypervisor: Option<String>,
}

/// Describes the machine as it is now.
pub fn host() -> Host {
    let clock = Clock::get();
    let facts = system::facts();
    Host {
        cpu: facts
            .cpu
            .unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
        features: facts.features,
        clock_hz: clock::core_hz(),
        tsc_hz: (clock.source == clock::Source::Tsc).then_some(clock.hz),
        clock_resolution_ns: clock.resolution_ns,
        clock_cost_ns: clock.cost_ns,
        cores: std::thread::available_parallelism().map_or(1, |n| n.get() as u32),
        kernel: facts.kernel,
        os: facts.os.unwrap_or_else(|| std::env::consts::OS.to_owned()),
        governor: facts.governor,
        memory: facts.memory.unwrap_or(0),
        load_average: facts.load_average,
        steal: None,
        hypervisor: facts.hypervisor,
        versions: BTreeMap::from([("cryptmark".to_owned(), env!("CARGO_PKG_VERSION").to_owned())]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_names_itself() {
        let host = host();
        assert!(!host.cpu.is_empty() && !host.kernel.is_empty());
        assert!(host.cores >= 1 && host.memory > 1 << 20);
        assert!(host.clock_cost_ns > 0.0);
        assert!(host.key().contains(&host.cpu));
    }
}
