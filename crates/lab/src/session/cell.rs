//! The cells of a session: a system each, with its samples.

use super::{SessionError, WARM_UP};
use crate::plan::Plan;
use crate::record::Device;
use crate::summary::Identity;
use crate::target::peer::Absent;
use crate::target::{Backend, Bare, Encryption, Storage, System, Target};
use crate::trial::{self, Options, Sample, TrialError};
use crate::workload::Workload;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a cell measures.
pub(super) enum Subject {
    /// A device, plain or encrypted.
    Device(Box<Target>),
    /// A bare cipher.
    Bare(Arc<Bare>),
}

/// One system in a session, with its samples by workload.
pub(super) struct Cell {
    subject: Subject,
    /// The system and its cipher, for progress.
    pub(super) label: String,
    pub(super) identity: Identity,
    pub(super) samples: Vec<Vec<Sample>>,
}

/// The cells of a plan, in its order; the last is the first again.
pub(super) struct Opened {
    pub(super) cells: Vec<Cell>,
    /// What was asked for and is not there, with what would bring it.
    pub(super) absent: Vec<String>,
}

impl Opened {
    /// The plain device, the encrypted systems over it, and the plain device again.
    pub(super) fn over(
        storage: &Storage,
        plan: &Plan,
        backend: Option<Backend>,
    ) -> Result<Self, SessionError> {
        let mut absent = Vec::new();
        let mut targets = vec![Target::plain(Arc::clone(&storage.device))];
        for system in &plan.systems {
            match system {
                System::None => {}
                System::Builtin => {
                    for encryption in plan.encryptions(backend)? {
                        let target = Target::builtin(Arc::clone(&storage.device), encryption)?;
                        target.self_check(&*storage.device)?;
                        targets.push(target);
                    }
                }
                System::Library(library) => absent.push(format!(
                    "{} (a library is measured by `cryptmark run ciphers`)",
                    library.name()
                )),
                System::Absent(_) => absent.push(unsupported(system)),
            }
        }
        if targets.len() == 1 && !absent.is_empty() {
            targets.clear();
        } else {
            targets.push(Target::plain(Arc::clone(&storage.device)));
        }
        let cells = targets
            .into_iter()
            .map(|target| Cell::device(target, plan, storage))
            .collect();
        Ok(Self { cells, absent })
    }

    /// Every cipher by the engine and by the libraries, and the first again.
    pub(super) fn bare(plan: &Plan, backend: Option<Backend>) -> Result<Self, SessionError> {
        let mut absent = Vec::new();
        let mut libraries = Vec::new();
        for system in &plan.systems {
            match system {
                System::Library(library) => libraries.push(*library),
                System::Builtin => {}
                System::None => absent.push("none (a bare cipher has no plain side)".to_owned()),
                System::Absent(_) => absent.push(unsupported(system)),
            }
        }
        let wanted = |system: &System| plan.systems.contains(system);
        let mut missing = Missing::default();
        let mut cells = Vec::new();
        for encryption in plan.encryptions(backend)? {
            let (systems, without) = Bare::open(encryption, &libraries)?;
            missing.add(without, &encryption);
            cells.extend(
                systems
                    .into_iter()
                    .filter(|bare| wanted(&bare.system))
                    .map(|bare| Cell::bare(Arc::new(bare), plan)),
            );
        }
        if let Some(first) = cells.first() {
            let again = first.again();
            cells.push(again);
        }
        absent.extend(missing.sentences());
        Ok(Self { cells, absent })
    }
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
                Absent::NoCipher { library, .. } => {
                    let ciphers = self.ciphers.entry(library).or_default();
                    let cipher = encryption.spec.to_string();
                    if !ciphers.contains(&cipher) {
                        ciphers.push(cipher);
                    }
                }
                Absent::NotInstalled { .. } | Absent::NotInKernel { .. } => {
                    let sentence = reason.to_string();
                    if !self.libraries.contains(&sentence) {
                        self.libraries.push(sentence);
                    }
                }
            }
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
            Some(encryption) => format!("{} {}", target.system.as_str(), encryption.spec),
            None => "plain".to_owned(),
        };
        Self {
            label,
            identity: Identity {
                tier: plan.tier,
                system: target.system.as_str().to_owned(),
                system_version: target.version.clone(),
                backend: target.backend.map(|backend| backend.to_string()),
                cipher: encryption.map(|encryption| encryption.spec.to_string()),
                key_bits: encryption.map(|encryption| encryption.key_bits),
                sector_bytes: encryption.map(|encryption| encryption.sector_size.bytes() as u32),
                constant_time: target.constant_time,
                device: storage.description.clone(),
            },
            subject: Subject::Device(Box::new(target)),
            samples: plan.workloads.iter().map(|_| Vec::new()).collect(),
        }
    }

    fn bare(bare: Arc<Bare>, plan: &Plan) -> Self {
        let encryption = &bare.encryption;
        let sector_bytes = encryption.sector_size.bytes();
        Self {
            label: format!(
                "{} {} {sector_bytes}",
                bare.system.as_str(),
                encryption.spec
            ),
            identity: Identity {
                tier: plan.tier,
                system: bare.system.as_str().to_owned(),
                system_version: bare.version.clone(),
                backend: bare.backend.map(|backend| backend.to_string()),
                cipher: Some(encryption.spec.to_string()),
                key_bits: Some(encryption.key_bits),
                sector_bytes: Some(sector_bytes as u32),
                constant_time: bare.constant_time,
                device: Device {
                    kind: "ram".into(),
                    path_kind: "memory".into(),
                    engine: "memory".into(),
                    size: plan.extent_bytes(),
                    ..Device::default()
                },
            },
            subject: Subject::Bare(bare),
            samples: plan.workloads.iter().map(|_| Vec::new()).collect(),
        }
    }

    /// The same bare cipher, to be visited a second time.
    fn again(&self) -> Self {
        let Subject::Bare(bare) = &self.subject else {
            unreachable!("devices are opened twice");
        };
        Self {
            subject: Subject::Bare(Arc::clone(bare)),
            label: self.label.clone(),
            identity: self.identity.clone(),
            samples: self.samples.clone(),
        }
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
        }
    }

    /// Whether `workload` can be asked of it: bare ciphers take whole sectors.
    pub(super) fn takes(&self, workload: &Workload) -> bool {
        match &self.subject {
            Subject::Device(_) => !workload.op.is_bare(),
            Subject::Bare(bare) => {
                let sector = bare.encryption.sector_size.bytes() as u64;
                workload.op.is_bare() && workload.block_bytes().is_multiple_of(sector)
            }
        }
    }

    /// An uncounted visit: caches, clocks and page tables are ready afterwards.
    pub(super) fn warm_up(
        &self,
        plan: &Plan,
        workload: &Workload,
        seed: u64,
        stop: &AtomicBool,
    ) -> Result<(), SessionError> {
        let short = Workload {
            seconds: Some(match &self.subject {
                Subject::Device(_) => WARM_UP,
                Subject::Bare(_) => WARM_UP.min(workload.seconds.unwrap_or(WARM_UP)),
            }),
            bytes: None,
            ..workload.clone()
        };
        self.visit(plan, &short, 0, seed, stop).map(|_| ())
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
        };
        let sample = match &self.subject {
            Subject::Device(target) => trial::run(target.device(), workload, options),
            Subject::Bare(bare) => {
                trial::bare::run(bare, workload, plan.extent_bytes(), repetition, options)
            }
        };
        match sample {
            Ok(_) if stop.load(Ordering::Relaxed) => Err(SessionError::Interrupted),
            Ok(sample) => Ok(sample),
            Err(TrialError::Interrupted) => Err(SessionError::Interrupted),
            Err(source) => Err(SessionError::Trial {
                workload: workload.name.clone(),
                label: self.label.clone(),
                source: Box::new(source),
            }),
        }
    }
}
