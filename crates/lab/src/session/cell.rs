//! The cells of a session: a system each, with its samples.

use super::simulated::Ciphers;
use super::{SLOW, SessionError, WARM_UP, served};
use crate::clock::Clock;
use crate::plan::Plan;
use crate::record::Device;
use crate::summary::Identity;
use crate::target::TargetError;
use crate::target::java::{Java, JavaCipher, JavaError};
use crate::target::peer::Absent;
use crate::target::simulated::{self, Processor, Simulated, SimulatedDevice};
use crate::target::{Backend, Bare, Encryption, Place, Storage, StorageError, System, Target};
use crate::trial::{self, Options, Sample, TrialError};
use crate::workload::{Mix, Workload};
use block::{BlockDevice, BlockError, ByteRange, NullDevice};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::ops::ControlFlow;
use std::path::Path;
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

    fn device(&self) -> SimulatedDevice<NullDevice> {
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
    pub(super) samples: Vec<Vec<Sample>>,
}

/// The cells of a plan, in its order; the last of each place is its first again.
pub(super) struct Opened {
    pub(super) cells: Vec<Cell>,
    /// What was asked for and is not there, with what would bring it.
    pub(super) absent: Vec<String>,
    /// What a user should know about the ciphers of volumes.
    pub(super) warnings: Vec<String>,
}

impl Opened {
    /// The plain device, the encrypted systems over it, and the plain device
    /// again; and the same of every simulated drive.
    pub(super) fn over(
        storage: &Storage,
        plan: &Plan,
        backend: Option<Backend>,
        seed: u64,
        filling: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<Self, SessionError> {
        let mut absent = Vec::new();
        let mut warnings: Vec<String> = Vec::new();
        let mut drives = Vec::new();
        let mut targets = vec![Target::plain(Arc::clone(&storage.device))];
        for system in &plan.systems {
            match system {
                System::None => {}
                System::Simulated(_) => drives.push(system),
                System::Builtin => {
                    for encryption in plan.encryptions(backend)? {
                        let encryption = encryption.shared_among(plan.cores)?;
                        warnings.extend(encryption.tell_sharing(plan.cores));
                        let device = || Arc::clone(&storage.device);
                        let mut made = Vec::new();
                        for format in &plan.formats {
                            made.push(Target::volume(device(), encryption, *format)?);
                        }
                        if made.is_empty() {
                            made.push(Target::builtin(device(), encryption)?);
                        }
                        for target in made {
                            target.self_check(&*storage.device)?;
                            targets.push(target);
                        }
                    }
                }
                System::BuiltinNbd | System::BuiltinFuse | System::DmCrypt | System::Served(_) => {
                    targets.extend(served::open(system, plan, storage, backend, &mut absent)?);
                }
                System::Path(name) => match mounted(system, plan, seed) {
                    Ok(there) => {
                        warnings.extend(there.warnings.iter().map(|w| format!("{name}: {w}")));
                        targets.push(Target::mounted(name, there));
                    }
                    Err(reason) => absent.push(format!("{name} ({reason})")),
                },
                System::Library(library) => absent.push(format!(
                    "{} (a library is measured by `cryptmark run ciphers`)",
                    library.name()
                )),
                System::Java => {
                    absent.push("java (it is measured by `cryptmark run java-os`)".to_owned());
                }
                System::Absent(_) => absent.push(unsupported(system)),
            }
        }
        if plan.is_simulated() || targets.len() == 1 && !absent.is_empty() {
            targets.clear();
        } else {
            targets.push(Target::plain(Arc::clone(&storage.device)));
        }
        let ciphers = match drives.is_empty() {
            true => None,
            false => Some(Ciphers::of(plan, backend)?),
        };
        let of_targets = targets.iter().flat_map(Target::warnings);
        for warning in of_targets.chain(ciphers.iter().flat_map(Ciphers::warnings)) {
            // Sizes of sectors and keys do not change it.
            if !warnings.contains(&warning) {
                warnings.push(warning);
            }
        }
        let mut cells: Vec<Cell> = targets
            .into_iter()
            .map(|target| Cell::device(target, plan, storage))
            .collect();
        if let Some(ciphers) = ciphers {
            for (number, system) in drives.into_iter().enumerate() {
                cells.extend(ciphers.before(system, plan, number + 1, seed, filling)?);
            }
        }
        Ok(Self {
            cells,
            absent,
            warnings,
        })
    }

    /// Every cipher by the engine and by the libraries, and the first again.
    pub(super) fn bare(plan: &Plan, backend: Option<Backend>) -> Result<Self, SessionError> {
        let mut absent = Vec::new();
        let mut libraries = Vec::new();
        let mut java = None;
        for system in &plan.systems {
            match system {
                System::Library(library) => libraries.push(*library),
                System::Java => match Java::find() {
                    Ok(found) => java = Some(Arc::new(found)),
                    Err(reason) => absent.push(reason.to_string()),
                },
                System::Builtin => {}
                served if served.is_served() || served.drive().is_some() => absent.push(format!(
                    "{} (it is measured by `cryptmark run`)",
                    system.as_str()
                )),
                System::None => absent.push("none (a bare cipher has no plain side)".to_owned()),
                _ => absent.push(unsupported(system)),
            }
        }
        let wanted = |system: &System| plan.systems.contains(system);
        let mut missing = Missing::default();
        let mut cells = Vec::new();
        // Who lists all ciphers beside each other protects nothing by them: no
        // warning of weak ones.
        let mut warnings = Vec::new();
        for encryption in plan.encryptions(backend)? {
            let encryption = encryption.shared_among(plan.cores)?;
            warnings.extend(encryption.tell_sharing(plan.cores));
            let (systems, without) = Bare::open(encryption, &libraries)?;
            missing.add(without, &encryption);
            let by_java = java
                .as_ref()
                .and_then(|java| JavaCipher::new(java, encryption));
            if java.is_some() && by_java.is_none() {
                missing.add_cipher("java", &encryption);
            }
            cells.extend(
                systems
                    .into_iter()
                    .filter(|bare| wanted(&bare.system))
                    .map(|bare| Cell::bare(Arc::new(bare), plan)),
            );
            cells.extend(by_java.map(|java| Cell::java(java, plan)));
        }
        let again = cells.iter().find_map(Cell::again);
        cells.extend(again);
        absent.extend(missing.sentences());
        Ok(Self {
            cells,
            absent,
            warnings,
        })
    }
}

/// A test file in the directory of a mounted system, as large as the extent of
/// all others.
fn mounted(system: &System, plan: &Plan, seed: u64) -> Result<Storage, StorageError> {
    let at = system.directory().unwrap_or(Path::new(""));
    if !at.is_dir() {
        let path = at.to_owned();
        return Err(match at.exists() {
            true => StorageError::Kind { path },
            false => StorageError::Missing { path },
        });
    }
    let place = Place {
        at,
        size: plan.extent_bytes(),
        seed,
        overwrite: false,
        engine: None,
    };
    Storage::prepare(place, &mut |_| ControlFlow::Continue(()))
}

fn unsupported(system: &System) -> String {
    format!(
        "{} (this version has no support for {})",
        system.as_str(),
        system.needs().unwrap_or("it")
    )
}

/// Libraries that are not there, and ciphers that those which are lack.
#[derive(Default)]
struct Missing {
    libraries: Vec<String>,
    ciphers: BTreeMap<&'static str, Vec<String>>,
}

impl Missing {
    fn add(&mut self, absent: Vec<Absent>, encryption: &Encryption) {
        for reason in absent {
            match &reason {
                Absent::NoCipher { library, .. } => self.add_cipher(library, encryption),
                _ => {
                    let sentence = reason.to_string();
                    if !self.libraries.contains(&sentence) {
                        self.libraries.push(sentence);
                    }
                }
            }
        }
    }

    fn add_cipher(&mut self, library: &'static str, encryption: &Encryption) {
        let ciphers = self.ciphers.entry(library).or_default();
        let cipher = encryption.spec.to_string();
        if !ciphers.contains(&cipher) {
            ciphers.push(cipher);
        }
    }

    fn sentences(self) -> impl Iterator<Item = String> {
        let ciphers = self
            .ciphers
            .into_iter()
            .map(|(library, ciphers)| format!("{library} has no {}", ciphers.join(", ")));
        self.libraries.into_iter().chain(ciphers)
    }
}

impl Cell {
    fn device(target: Target, plan: &Plan, storage: &Storage) -> Self {
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
            samples: plan.workloads.iter().map(|_| Vec::new()).collect(),
        }
    }

    fn bare(bare: Arc<Bare>, plan: &Plan) -> Self {
        let identity = Identity {
            system: bare.system.as_str().to_owned(),
            system_version: bare.version.clone(),
            backend: bare.backend.map(|backend| bare.encryption.engine(backend)),
            constant_time: bare.constant_time,
            ..in_memory(&bare.encryption, plan)
        };
        Self::of_cipher(Subject::Bare(bare), identity, plan)
    }

    fn java(java: JavaCipher, plan: &Plan) -> Self {
        let identity = Identity {
            system: System::Java.as_str().to_owned(),
            system_version: java.version().to_owned(),
            ..in_memory(&java.encryption, plan)
        };
        Self::of_cipher(Subject::Java(java, RefCell::default()), identity, plan)
    }

    fn of_cipher(subject: Subject, identity: Identity, plan: &Plan) -> Self {
        let cipher = identity.cipher.as_deref().unwrap_or_default();
        let sector_bytes = identity.sector_bytes.unwrap_or_default();
        Self {
            label: format!("{} {cipher} {sector_bytes}", identity.system),
            subject,
            identity,
            place: 0,
            samples: plan.workloads.iter().map(|_| Vec::new()).collect(),
        }
    }

    /// The same bare cipher, to be visited a second time.
    fn again(&self) -> Option<Self> {
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
        let samples = &self.samples[index];
        let spent: f64 = samples.iter().map(|sample| sample.wall).sum();
        let given = seconds * f64::from(plan.repetitions);
        samples.len() >= enough as usize && spent > SLOW * given
    }

    /// An uncounted visit: caches, clocks and page tables are ready afterwards.
    pub(super) fn warm_up(
        &self,
        plan: &Plan,
        workload: &Workload,
        seed: u64,
        stop: &AtomicBool,
    ) -> Result<(), SessionError> {
        match &self.subject {
            Subject::Device(_) => {}
            // They warm up by themselves in each visit, or must not.
            Subject::Simulated(..) | Subject::Bare(_) | Subject::Java(..) => return Ok(()),
        }
        let short = Workload {
            seconds: Some(WARM_UP),
            bytes: None,
            ..workload.clone()
        };
        self.visit(plan, &short, 0, seed, stop).map(|_| ())
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
        self.visit(plan, workload, 0, 0, stop)?;
        Ok(Some(purged))
    }

    /// One repetition.
    pub(super) fn visit(
        &self,
        plan: &Plan,
        workload: &Workload,
        repetition: u32,
        seed: u64,
        stop: &AtomicBool,
    ) -> Result<Sample, SessionError> {
        let options = Options {
            seed,
            metered: true,
            stop,
            clock: Clock::get(),
        };
        let sample = match &self.subject {
            Subject::Device(target) => trial::run(target.device(), workload, options),
            Subject::Simulated(drive) => drive.run(workload, options),
            Subject::Bare(bare) => {
                trial::bare::run(bare, workload, plan.extent_bytes(), repetition, options)
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
