//! [`Probe`]: a workload whose figure shows some of a drive's numbers.

use super::ALIGNMENT;
use crate::workload::{Mix, Pattern, Workload};
use block::ByteRange;
use bytesize::ByteSize;
use drive::preset::Preset;

/// Seconds of a probe that is not a burst: a disk serves a hundred requests in one.
const SECONDS: f64 = 1.0;
const SECONDS_OF_A_DISK: f64 = 4.0;

/// Bytes of a probe's part, at least: more than a disk's memory holds.
const LEAST: u64 = 64 << 20;

/// The quantity that a probe's figure measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shows {
    /// 10⁶ bytes a second.
    MegabytesASecond,
    /// Requests a second.
    RequestsASecond,
    /// The range from the latency that a tenth of the requests is below to the one that a tenth is
    /// above, milliseconds. For a disk it is 0.8 revolutions and the spread of the seeks.
    SpreadMs,
}

impl Shows {
    /// The unit.
    pub fn unit(self) -> &'static str {
        match self {
            Self::MegabytesASecond => "MB/s",
            Self::RequestsASecond => "IOPS",
            Self::SpreadMs => "ms",
        }
    }
}

/// A workload on a part of the drive.
#[derive(Clone, Debug)]
pub struct Probe {
    /// Name in tables.
    pub name: &'static str,
    /// The workload of the probe.
    pub workload: Workload,
    /// The quantity that its figure measures.
    pub shows: Shows,
    /// Its range on the device, as shares of the size.
    within: [f64; 2],
}

impl Probe {
    fn new(name: &'static str, pattern: Pattern, op: Mix, kib: u64, queue_depth: u32) -> Self {
        Self {
            name,
            workload: Workload {
                queue_depth,
                seconds: Some(SECONDS),
                ..Workload::new(name, pattern, op, ByteSize::kib(kib))
            },
            shows: match pattern {
                Pattern::Sequential => Shows::MegabytesASecond,
                Pattern::Random => Shows::RequestsASecond,
            },
            within: [0.0, 1.0],
        }
    }

    /// The same, of a part of the drive.
    fn within(mut self, first: f64, end: f64) -> Self {
        self.within = [first, end];
        self
    }

    /// The same probe as a burst of `mib` MiB after a rest.
    fn burst(mut self, mib: u64) -> Self {
        self.workload.seconds = None;
        self.workload.bytes = Some(ByteSize::mib(mib));
        self
    }

    fn spread(self) -> Self {
        Self {
            shows: Shows::SpreadMs,
            ..self
        }
    }

    /// The range of the probe, enlarged to a minimum size if the device has that many bytes.
    pub(super) fn range(&self, all: u64) -> ByteRange {
        let place = |share: f64| (all as f64 * share) as u64 / ALIGNMENT * ALIGNMENT;
        let [first, end] = self.within.map(place);
        let length = (end - first).max(LEAST.min(all / ALIGNMENT * ALIGNMENT));
        ByteRange::new(first.min(all.saturating_sub(length)), length)
    }
}

/// The probes for a drive of this kind, reads first; a flash chip has none. Each of the drive's
/// numbers shows in at least one probe, unless another number hides it.
pub fn probes(kind: &Preset) -> Vec<Probe> {
    use Mix::{Read, Write};
    use Pattern::{Random, Sequential};
    let mut probes = match kind {
        Preset::Ssd(_) => vec![
            Probe::new("seq-256k-q8-read", Sequential, Read, 256, 8),
            Probe::new("rand-4k-read", Random, Read, 4, 1),
            Probe::new("rand-64k-read", Random, Read, 64, 1),
            Probe::new("rand-4k-q32-read", Random, Read, 4, 32),
            Probe::new("rand-4k-write", Random, Write, 4, 1).burst(1),
            Probe::new("seq-4m-burst-write", Sequential, Write, 64, 1).burst(4),
            Probe::new("seq-32m-burst-write", Sequential, Write, 256, 1).burst(32),
            Probe::new("seq-256k-q8-write", Sequential, Write, 256, 8),
        ],
        Preset::Hdd(_) => vec![
            Probe::new("seq-256k-read, outer", Sequential, Read, 256, 4).within(0.0, 0.05),
            Probe::new("seq-256k-read, inner", Sequential, Read, 256, 4).within(0.95, 1.0),
            Probe::new("seq-4k-read", Sequential, Read, 4, 1).within(0.0, 0.05),
            Probe::new("rand-4k-read, 0.2 %", Random, Read, 4, 1).within(0.5, 0.502),
            Probe::new("its latency's spread", Random, Read, 4, 1)
                .within(0.5, 0.502)
                .spread(),
            Probe::new("rand-4k-read, 2 %", Random, Read, 4, 1).within(0.5, 0.52),
            Probe::new("rand-4k-read, 20 %", Random, Read, 4, 1).within(0.4, 0.6),
            Probe::new("rand-4k-read, all", Random, Read, 4, 1),
            Probe::new("rand-4k-q32-read, all", Random, Read, 4, 32),
            Probe::new("rand-4k-write", Random, Write, 4, 1),
            Probe::new("seq-256k-write", Sequential, Write, 256, 4),
        ],
        Preset::Flash(_) => Vec::new(),
    };
    if let Preset::Hdd(_) = kind {
        for probe in &mut probes {
            probe.workload.seconds = Some(SECONDS_OF_A_DISK);
        }
    }
    probes
}
