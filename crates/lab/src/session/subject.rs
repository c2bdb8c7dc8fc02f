//! [`Subject`]: what a session measures.
//!
//! A new kind of system is an implementation of this trait and what opens it.

use crate::clock::Clock;
use crate::error::LabError;
use crate::record::{Bottleneck, Trial};
use crate::stats::Looks;
use crate::system::java::JavaCipher;
use crate::system::simulated::{self, Processor, Simulated, SimulatedDevice};
use crate::system::{Bare, Encryption, SystemId, Target};
use crate::trial::{self, Options, Sample, Samples};
use crate::workload::{Mix, Workload};
use block::{BlockDevice, BlockError, ByteRange, NullDevice};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// One visit.
#[derive(Clone, Copy)]
pub(super) struct Once<'a> {
    /// Which repetition it is.
    pub(super) number: u32,
    /// The same seed visits the same blocks.
    pub(super) seed: u64,
    /// Whether it is a slice.
    pub(super) slice: bool,
    /// Set from outside to end it early.
    pub(super) stop: &'a AtomicBool,
}

impl<'a> Once<'a> {
    /// How it is measured on this machine's clock.
    fn options(self) -> Options<'a> {
        Options {
            seed: self.seed,
            metered: true,
            stop: self.stop,
            clock: Clock::get(),
            slice: self.slice,
        }
    }
}

/// Something that workloads are asked of.
pub(super) trait Subject {
    /// Whether `workload` can be asked of it.
    fn takes(&self, workload: &Workload) -> bool;

    /// One repetition.
    fn visit(&self, workload: &Workload, once: Once<'_>) -> Result<Sample, LabError>;

    /// The subject's name for a workload, for progress output.
    fn calls(&self, workload: &Workload) -> String {
        workload.name.clone()
    }

    /// Whether all workloads follow each other in one visit, and so share its conditions.
    fn is_visited_whole(&self) -> bool {
        false
    }

    /// The subject's samples of a workload, if it knows more than its visits have returned.
    fn samples(&self, _: &Workload, _: Looks) -> Option<Samples> {
        None
    }

    /// Whether the first visit is not counted. It makes caches, clocks and page tables ready.
    fn warms_up(&self) -> bool {
        false
    }

    /// A second instance, if the first subject of its kind is measured twice.
    fn again(&self) -> Option<Box<dyn Subject>> {
        None
    }

    /// Whether it is the engine.
    fn is_builtin(&self) -> bool {
        false
    }

    /// Whether its time is virtual: what this machine's clock counts has nothing to do with it.
    fn is_simulated(&self) -> bool {
        false
    }

    /// Whether the energy of its visits is that of its samples.
    fn is_metered(&self) -> bool {
        !self.is_simulated()
    }

    /// When the last visit of a workload began, Unix time, and how long it took, seconds, if it
    /// was another process that timed it.
    fn timed_elsewhere(&self, _: &Workload) -> Option<(f64, f64)> {
        None
    }

    /// Whether it is the same from one repetition to the next, and may become steady.
    fn lasts(&self) -> bool {
        true
    }

    /// Whether it is the extent itself, which all that are over it share.
    fn is_the_extent(&self) -> bool {
        false
    }

    /// Whether one of its requests may take far longer than a visit should.
    fn may_be_slow(&self) -> bool {
        false
    }

    /// Discards the whole device of the subject. Returns whether that was possible; `None` if the
    /// subject has no device of its own.
    fn purge(&self) -> Option<Result<bool, BlockError>> {
        None
    }

    /// Whether an error of a visit says nothing of the workload and the system.
    fn is_timed_here(&self) -> bool {
        true
    }

    /// Adds to a record what only it knows.
    fn complete(&self, _: &mut Trial) {}
}

impl Subject for Target {
    fn takes(&self, workload: &Workload) -> bool {
        !workload.op.is_bare()
    }

    fn visit(&self, workload: &Workload, once: Once<'_>) -> Result<Sample, LabError> {
        trial::run(self.device(), workload, once.options())
    }

    fn warms_up(&self) -> bool {
        true
    }

    fn is_builtin(&self) -> bool {
        self.system == SystemId::Builtin
    }

    fn is_the_extent(&self) -> bool {
        self.system == SystemId::None
    }

    fn purge(&self) -> Option<Result<bool, BlockError>> {
        let own = self.is_the_extent() || self.system.directory().is_some();
        own.then(|| purge(self.device()))
    }

    /// A server encrypts outside the client's time measurement.
    fn complete(&self, trial: &mut Trial) {
        if self.system.is_served() {
            trial.time_s.crypto = None;
            trial.latency_split_us = None;
            trial.bottleneck = Bottleneck::Unknown;
        }
    }
}

/// A repetition on a drive that is not here.
pub(super) fn in_virtual_time(
    device: &dyn BlockDevice,
    workload: &Workload,
    once: Once<'_>,
) -> Result<Sample, LabError> {
    let clock = simulated::clock();
    let options = Options {
        clock: &clock,
        ..once.options()
    };
    trial::run(device, workload, options)
}

/// A drive that is not here, and what encrypts before it.
pub(super) struct OnDrive {
    drive: Rc<Simulated>,
    processor: Option<Processor>,
    /// The drive as the last visit has left it, if visits build on each other.
    kept: RefCell<Option<SimulatedDevice<NullDevice>>>,
}

impl OnDrive {
    pub(super) fn new(drive: Rc<Simulated>, processor: Option<Processor>) -> Self {
        Self {
            drive,
            processor,
            kept: RefCell::new(None),
        }
    }

    fn device(&self) -> SimulatedDevice<NullDevice> {
        self.drive.device(self.processor)
    }
}

impl Subject for OnDrive {
    fn takes(&self, workload: &Workload) -> bool {
        !workload.op.is_bare()
    }

    /// On a drive at rest or as it was left.
    fn visit(&self, workload: &Workload, once: Once<'_>) -> Result<Sample, LabError> {
        match &*self.kept.borrow() {
            Some(device) => in_virtual_time(device, workload, once),
            None => in_virtual_time(&self.device(), workload, once),
        }
    }

    fn is_simulated(&self) -> bool {
        true
    }

    fn purge(&self) -> Option<Result<bool, BlockError>> {
        let device = self.device();
        let purged = purge(&device);
        self.kept.replace(Some(device));
        Some(purged)
    }
}

/// Discards all of a device; whether it can.
fn purge(device: &dyn BlockDevice) -> Result<bool, BlockError> {
    let geometry = device.geometry();
    if geometry.discard_granularity.is_none() {
        return Ok(false);
    }
    match device.discard(ByteRange::new(0, geometry.size)) {
        // Some only find out by trying.
        Err(BlockError::Unsupported { .. }) => Ok(false),
        outcome => outcome.map(|()| true),
    }
}

/// Whether the requests of a workload are whole sectors, which ciphers take.
fn is_whole(encryption: &Encryption, workload: &Workload) -> bool {
    let sector = encryption.sector_size.bytes() as u64;
    workload.op.is_bare() && workload.block_bytes().is_multiple_of(sector)
}

/// A bare cipher, over an extent of memory.
pub(super) struct InMemory {
    pub(super) bare: Arc<Bare>,
    pub(super) extent: u64,
}

impl Subject for InMemory {
    fn takes(&self, workload: &Workload) -> bool {
        is_whole(&self.bare.encryption, workload) && !workload.cold
    }

    /// It warms up by itself.
    fn visit(&self, workload: &Workload, once: Once<'_>) -> Result<Sample, LabError> {
        trial::bare::run(
            &self.bare,
            workload,
            self.extent,
            once.number,
            once.options(),
        )
    }

    fn again(&self) -> Option<Box<dyn Subject>> {
        let bare = Arc::clone(&self.bare);
        let extent = self.extent;
        Some(Box::new(Self { bare, extent }))
    }

    fn is_builtin(&self) -> bool {
        self.bare.system == SystemId::Builtin
    }

    fn may_be_slow(&self) -> bool {
        true
    }
}

/// A cipher of Java's. It takes so long to start and to warm up that it serves all repetitions
/// of a workload at once; a round takes the next.
pub(super) struct InJava {
    java: JavaCipher,
    repetitions: u32,
    /// Seconds of those that were not asked for yet.
    ready: RefCell<BTreeMap<String, VecDeque<f64>>>,
}

impl InJava {
    pub(super) fn new(java: JavaCipher, repetitions: u32) -> Self {
        Self {
            java,
            repetitions,
            ready: RefCell::default(),
        }
    }
}

impl Subject for InJava {
    /// Only Java's can be cold.
    fn takes(&self, workload: &Workload) -> bool {
        is_whole(&self.java.encryption, workload) && workload.threads == 1
    }

    fn visit(&self, workload: &Workload, once: Once<'_>) -> Result<Sample, LabError> {
        let bytes = workload.block_bytes();
        let mut all = self.ready.borrow_mut();
        let ready = all.entry(workload.name.clone()).or_default();
        let seconds = match ready.pop_front() {
            Some(seconds) => seconds,
            None => {
                let (encrypts, times) = (workload.op == Mix::Encrypt, self.repetitions);
                let java = &self.java;
                ready.extend(java.measure(encrypts, bytes, workload.cold, times, once.stop)?);
                ready.pop_front().expect("a plan has a repetition at least")
            }
        };
        Ok(Sample::timed_elsewhere(bytes, seconds))
    }

    /// One visit serves all repetitions.
    fn is_metered(&self) -> bool {
        false
    }
}
