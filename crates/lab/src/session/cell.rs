//! The cells of a session: a system each, with its samples.

use super::{SLOW, SessionError, WARM_UP};
use crate::clock::Clock;
use crate::plan::Plan;
use crate::record::Device;
use crate::summary::Identity;
use crate::target::TargetError;
use crate::target::java::{JavaCipher, JavaError};
use crate::target::simulated::{self, Processor, Simulated, SimulatedDevice};
use crate::target::{Bare, Encryption, Storage, System, Target};
use crate::trial::{self, Options, Sample, Samples, TrialError};
use crate::workload::{Mix, Workload};
use block::{BlockDevice, BlockError, ByteRange, NullDevice};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a cell measures.
pub(super) enum Subject {
    /// A device, plain or encrypted.
    Device(Box<Target>),
    /// A drive that is not here, and what encrypts before it.
    Simulated(OnDrive),
    /// A bare cipher.
    Bare(Arc<Bare>),
    /// A cipher of Java's. It takes so long to start and to warm up that it
    /// serves all repetitions of a workload at once; a round takes the next.
    Java(JavaCipher, RefCell<BTreeMap<String, VecDeque<f64>>>),
}

/// A drive that is not here, and what encrypts before it.
pub(super) struct OnDrive {
    drive: Rc<Simulated>,
    processor: Option<Processor>,
    /// The drive as the last visit has left it, where visits build on each other.
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

    pub(super) fn device(&self) -> SimulatedDevice<NullDevice> {
        self.drive.device(self.processor)
    }

    /// In virtual time, on a drive at rest or as it was left.
    fn run(&self, workload: &Workload, options: Options<'_>) -> Result<Sample, TrialError> {
        let clock = simulated::clock();
        let options = Options {
            clock: &clock,
            ..options
        };
        match &*self.kept.borrow() {
            Some(device) => trial::run(device, workload, options),
            None => trial::run(&self.device(), workload, options),
        }
    }
}

/// One system in a session, with its samples by workload.
pub(super) struct Cell {
    pub(super) subject: Subject,
    /// The system and its cipher, for progress.
    pub(super) label: String,
    pub(super) identity: Identity,
    /// Cells with the same number are on the same extent, and are compared.
    pub(super) place: usize,
    /// By workload.
    pub(super) samples: Vec<Samples>,
}

/// One visit of a cell.
#[derive(Clone, Copy)]
pub(super) struct Once {
    /// Which repetition it is.
    pub(super) number: u32,
    /// The same seed visits the same blocks.
    pub(super) seed: u64,
    /// Whether it is a slice.
    pub(super) slice: bool,
}

/// No samples of the workloads of `plan` yet.
pub(super) fn unmeasured(plan: &Plan) -> Vec<Samples> {
    vec![Samples::new(plan.looks()); plan.workloads.len()]
}

impl Cell {
    pub(super) fn device(target: Target, plan: &Plan, storage: &Storage) -> Self {
        let encryption = target.encryption;
        let label = match &encryption {
            Some(encryption) => match target.format {
                Some(format) => format!(
                    "{} {} {}",
                    target.system.as_str(),
                    format.name(),
                    encryption.spec
                ),
                None => format!("{} {}", target.system.as_str(), encryption.spec),
            },
            None if target.system == System::None => "plain".to_owned(),
            None => target.system.as_str().to_owned(),
        };
        Self {
            label,
            identity: Identity {
                tier: plan.tier,
                system: target.system.as_str().to_owned(),
                system_version: target.version.clone(),
                backend: target.backend.zip(encryption).map(|(b, by)| by.engine(b)),
                cipher: encryption.map(|encryption| encryption.spec.to_string()),
                key_bits: encryption.map(|encryption| encryption.key_bits),
                sector_bytes: encryption.map(|encryption| encryption.sector_size.bytes() as u32),
                format: target.format.map(|format| format.name().to_owned()),
                constant_time: target.constant_time,
                device: target
                    .elsewhere
                    .as_ref()
                    .unwrap_or(&storage.description)
                    .clone(),
                served: target.system.is_served(),
            },
            subject: Subject::Device(Box::new(target)),
            place: 0,
            samples: unmeasured(plan),
        }
    }

    pub(super) fn bare(bare: Arc<Bare>, plan: &Plan) -> Self {
        let identity = Identity {
            system: bare.system.as_str().to_owned(),
            system_version: bare.version.clone(),
            backend: bare.backend.map(|backend| bare.encryption.engine(backend)),
            constant_time: bare.constant_time,
            ..in_memory(&bare.encryption, plan)
        };
        Self::of_cipher(Subject::Bare(bare), identity, plan)
    }

    pub(super) fn java(java: JavaCipher, plan: &Plan) -> Self {
        let identity = Identity {
            system: System::Java.as_str().to_owned(),
            system_version: java.version().to_owned(),
            ..in_memory(&java.encryption, plan)
        };
        Self::of_cipher(Subject::Java(java, RefCell::default()), identity, plan)
    }

    pub(super) fn of_cipher(subject: Subject, identity: Identity, plan: &Plan) -> Self {
        let cipher = identity.cipher.as_deref().unwrap_or_default();
        let sector_bytes = identity.sector_bytes.unwrap_or_default();
        Self {
            label: format!("{} {cipher} {sector_bytes}", identity.system),
            subject,
            identity,
            place: 0,
            samples: unmeasured(plan),
        }
    }

    /// The same bare cipher, to be visited a second time.
    pub(super) fn again(&self) -> Option<Self> {
        let Subject::Bare(bare) = &self.subject else {
            return None;
        };
        Some(Self {
            subject: Subject::Bare(Arc::clone(bare)),
            label: self.label.clone(),
            identity: self.identity.clone(),
            place: self.place,
            samples: self.samples.clone(),
        })
    }

    /// Whether both encrypt the same.
    pub(super) fn encrypts_like(&self, other: &Self) -> bool {
        let what = |cell: &Self| {
            (
                cell.identity.cipher.clone(),
                cell.identity.key_bits,
                cell.identity.sector_bytes,
            )
        };
        what(self) == what(other)
    }

    pub(super) fn is_builtin(&self) -> bool {
        match &self.subject {
            Subject::Device(target) => target.system == System::Builtin,
            Subject::Bare(bare) => bare.system == System::Builtin,
            Subject::Simulated(..) | Subject::Java(..) => false,
        }
    }

    /// Whether its time is virtual: what this machine's clock counts has nothing
    /// to do with it.
    pub(super) fn is_simulated(&self) -> bool {
        matches!(self.subject, Subject::Simulated(..))
    }

    /// Whether `workload` can be asked of it: ciphers take whole sectors, and
    /// only Java's can be cold.
    pub(super) fn takes(&self, workload: &Workload) -> bool {
        let whole = |encryption: &Encryption| {
            let sector = encryption.sector_size.bytes() as u64;
            workload.op.is_bare() && workload.block_bytes().is_multiple_of(sector)
        };
        match &self.subject {
            Subject::Device(_) | Subject::Simulated(..) => !workload.op.is_bare(),
            Subject::Bare(bare) => whole(&bare.encryption) && !workload.cold,
            Subject::Java(java, _) => whole(&java.encryption) && workload.threads == 1,
        }
    }

    /// Whether the plan asks it of this cell: a shard measures some of the
    /// workloads on some of the drives.
    pub(super) fn is_asked(&self, plan: &Plan, workload: &Workload) -> bool {
        let drive = self.identity.device.model.as_deref();
        !self.is_simulated() || drive.is_some_and(|drive| plan.asks(drive, &workload.name))
    }

    /// Whether a slow cell was visited often enough. Earlier rounds stay whole,
    /// so what is compared is still paired.
    pub(super) fn had_its_time(&self, plan: &Plan, workload: &Workload, index: usize) -> bool {
        let (Subject::Bare(_), Some(enough), Some(seconds)) =
            (&self.subject, plan.slow_repetitions, workload.seconds)
        else {
            return false;
        };
        let samples = self.samples[index].each();
        let spent: f64 = samples.iter().map(|sample| sample.wall).sum();
        let given = seconds * f64::from(plan.repetitions);
        samples.len() >= enough as usize && spent > SLOW * given
    }

    /// An uncounted visit: caches, clocks and page tables are ready afterwards. What it was
    /// like, where there was one.
    pub(super) fn warm_up(
        &self,
        plan: &Plan,
        workload: &Workload,
        seed: u64,
        stop: &AtomicBool,
    ) -> Result<Option<Sample>, SessionError> {
        match &self.subject {
            Subject::Device(_) => {}
            // They warm up by themselves in each visit, or must not.
            Subject::Simulated(..) | Subject::Bare(_) | Subject::Java(..) => return Ok(None),
        }
        let short = Workload {
            seconds: Some(WARM_UP),
            bytes: None,
            ..workload.clone()
        };
        let once = Once {
            number: 0,
            seed,
            slice: false,
        };
        self.visit(plan, &short, once, stop).map(Some)
    }

    /// Whether it is the extent itself, which all that are over it share.
    pub(super) fn is_the_extent(&self) -> bool {
        matches!(&self.subject, Subject::Device(target) if target.system == System::None)
    }

    /// Whether it has a device to prepare.
    fn has_a_device(&self) -> bool {
        match &self.subject {
            Subject::Device(target) => self.is_the_extent() || target.system.directory().is_some(),
            Subject::Simulated(..) => true,
            Subject::Bare(_) | Subject::Java(..) => false,
        }
    }

    /// Discards all of the device, where it can, and then does `workload`, whose
    /// figures nobody keeps; whether it could. `None` where it has none of its own.
    pub(super) fn prepare(
        &self,
        plan: &Plan,
        workload: &Workload,
        stop: &AtomicBool,
    ) -> Result<Option<bool>, SessionError> {
        if !self.has_a_device() {
            return Ok(None);
        }
        let purged = match &self.subject {
            Subject::Simulated(drive) => {
                let device = drive.device();
                let purged = purge(&device);
                drive.kept.replace(Some(device));
                purged
            }
            Subject::Device(target) => purge(target.device()),
            Subject::Bare(_) | Subject::Java(..) => Ok(false),
        };
        let purged = purged.map_err(TargetError::from)?;
        let once = Once {
            number: 0,
            seed: 0,
            slice: false,
        };
        self.visit(plan, workload, once, stop)?;
        Ok(Some(purged))
    }

    /// One repetition.
    pub(super) fn visit(
        &self,
        plan: &Plan,
        workload: &Workload,
        once: Once,
        stop: &AtomicBool,
    ) -> Result<Sample, SessionError> {
        let options = Options {
            seed: once.seed,
            metered: true,
            stop,
            clock: Clock::get(),
            slice: once.slice,
        };
        let sample = match &self.subject {
            Subject::Device(target) => trial::run(target.device(), workload, options),
            Subject::Simulated(drive) => drive.run(workload, options),
            Subject::Bare(bare) => {
                trial::bare::run(bare, workload, plan.extent_bytes(), once.number, options)
            }
            Subject::Java(java, ready) => {
                let repetitions = plan.repetitions;
                next_of_java(java, &mut ready.borrow_mut(), workload, repetitions, stop)
            }
        };
        match sample {
            Ok(_) if stop.load(Ordering::Relaxed) => Err(SessionError::Interrupted),
            Ok(sample) => Ok(sample),
            Err(TrialError::Interrupted | TrialError::Java(JavaError::Interrupted)) => {
                Err(SessionError::Interrupted)
            }
            Err(source) => Err(SessionError::Trial {
                workload: workload.name.clone(),
                label: self.label.clone(),
                source: Box::new(source),
            }),
        }
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

/// The next repetition of `workload`; the first call measures all of them.
fn next_of_java(
    java: &JavaCipher,
    ready: &mut BTreeMap<String, VecDeque<f64>>,
    workload: &Workload,
    repetitions: u32,
    stop: &AtomicBool,
) -> Result<Sample, TrialError> {
    let bytes = workload.block_bytes();
    let ready = ready.entry(workload.name.clone()).or_default();
    let seconds = match ready.pop_front() {
        Some(seconds) => seconds,
        None => {
            let encrypts = workload.op == Mix::Encrypt;
            ready.extend(java.measure(encrypts, bytes, workload.cold, repetitions, stop)?);
            ready.pop_front().expect("a plan has a repetition at least")
        }
    };
    Ok(Sample::timed_elsewhere(bytes, seconds))
}

/// What all ciphers of `plan` in memory have in common.
fn in_memory(encryption: &Encryption, plan: &Plan) -> Identity {
    Identity {
        tier: plan.tier,
        system: String::new(),
        system_version: String::new(),
        backend: None,
        cipher: Some(encryption.spec.to_string()),
        key_bits: Some(encryption.key_bits),
        sector_bytes: Some(encryption.sector_size.bytes() as u32),
        format: None,
        constant_time: None,
        served: false,
        device: Device {
            kind: "ram".into(),
            path_kind: "memory".into(),
            engine: "memory".into(),
            size: plan.extent_bytes(),
            ..Device::default()
        },
    }
}
