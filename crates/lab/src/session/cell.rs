//! The cells of a session: a system each, with its samples.

use super::subject::{InJava, InMemory, Once, Subject};
use super::{SLOW, WARM_UP, failed_trial};
use crate::error::{LabError, Verdict};
use crate::experiment::{Ciphers, Devices, Schedule};
use crate::record::{Device, Tier, Trial};
use crate::system::java::JavaCipher;
use crate::system::{Bare, Encryption, Storage, SystemId, Target};
use crate::trial::{Sample, Samples};
use crate::workload::Workload;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// One system in a session, with its samples by workload.
pub(super) struct Cell {
    pub(super) subject: Box<dyn Subject>,
    /// The system and its cipher, for progress.
    pub(super) label: String,
    /// The part of its records that identifies it.
    pub(super) identity: Trial,
    /// Cells with the same number are on the same extent, and are compared.
    pub(super) place: usize,
    /// Bytes of the smallest request that it is asked for.
    pub(super) least: u64,
    /// The names of the workloads that it is asked for, if not for all.
    pub(super) only: Option<Vec<String>>,
    /// By workload.
    pub(super) samples: Vec<Samples>,
}

/// No samples of the workloads of `plan` yet.
fn unmeasured(plan: &Schedule) -> Vec<Samples> {
    vec![Samples::new(plan.looks()); plan.workloads.len()]
}

impl Cell {
    /// One that is compared with all others of its workloads.
    pub(super) fn new(
        subject: Box<dyn Subject>,
        label: String,
        identity: Trial,
        plan: &Schedule,
    ) -> Self {
        Self {
            subject,
            label,
            identity,
            place: 0,
            least: 0,
            only: None,
            samples: unmeasured(plan),
        }
    }

    pub(super) fn device(
        target: Target,
        devices: &Devices,
        plan: &Schedule,
        storage: &Storage,
    ) -> Self {
        let encryption = target.encryption;
        let sharing = encryption.and_then(|encryption| encryption.shares());
        let mut label = match &encryption {
            Some(encryption) => match target.format {
                Some(format) => format!(
                    "{} {} {}",
                    target.system.as_str(),
                    format.name(),
                    encryption.spec
                ),
                None => format!("{} {}", target.system.as_str(), encryption.spec),
            },
            None if target.system == SystemId::None => "plain".to_owned(),
            None => target.system.as_str().to_owned(),
        };
        if let Some((cores, _)) = sharing {
            label += &format!(" on {cores} cores");
        }
        // Smaller requests are one core's work, which is measured anyway.
        let least = sharing.filter(|_| devices.all_cores);
        let least = least.map_or(0, |(_, smallest)| smallest);
        let identity = Trial {
            tier: devices.tier(),
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
            ..Trial::default()
        };
        Self {
            least,
            ..Self::new(Box::new(target), label, identity, plan)
        }
    }

    pub(super) fn bare(bare: Arc<Bare>, ciphers: &Ciphers, plan: &Schedule) -> Self {
        let identity = Trial {
            system: bare.system.as_str().to_owned(),
            system_version: bare.version.clone(),
            backend: bare.backend.map(|backend| bare.encryption.engine(backend)),
            constant_time: bare.constant_time,
            ..in_memory(&bare.encryption, ciphers)
        };
        let extent = ciphers.extent_bytes();
        Self::of_cipher(Box::new(InMemory { bare, extent }), identity, plan)
    }

    pub(super) fn java(java: JavaCipher, ciphers: &Ciphers, plan: &Schedule) -> Self {
        let identity = Trial {
            system: SystemId::Java.as_str().to_owned(),
            system_version: java.version().to_owned(),
            ..in_memory(&java.encryption, ciphers)
        };
        let subject = InJava::new(java, plan.repetitions);
        Self::of_cipher(Box::new(subject), identity, plan)
    }

    fn of_cipher(subject: Box<dyn Subject>, identity: Trial, plan: &Schedule) -> Self {
        let cipher = identity.cipher.as_deref().unwrap_or_default();
        let sector_bytes = identity.sector_bytes.unwrap_or_default();
        let label = format!("{} {cipher} {sector_bytes}", identity.system);
        Self::new(subject, label, identity, plan)
    }

    /// The same bare cipher, to be visited a second time.
    pub(super) fn again(&self) -> Option<Self> {
        Some(Self {
            subject: self.subject.again()?,
            label: self.label.clone(),
            identity: self.identity.clone(),
            place: self.place,
            least: self.least,
            only: self.only.clone(),
            samples: self.samples.clone(),
        })
    }

    /// Whether both are the same system, one of them to be visited a second time.
    pub(super) fn is_again(&self, other: &Self) -> bool {
        (&self.identity, &self.label) == (&other.identity, &other.label)
    }

    /// Whether both encrypt the same.
    pub(super) fn encrypts_like(&self, other: &Self) -> bool {
        self.identity.encryption() == other.identity.encryption()
    }

    /// Whether the plan asks it of this cell: a shard measures some of the
    /// workloads on some of the drives.
    pub(super) fn is_asked(&self, plan: &Schedule, workload: &Workload) -> bool {
        let only = self.only.as_ref();
        if workload.block_bytes() < self.least
            || only.is_some_and(|of| !of.contains(&workload.name))
        {
            return false;
        }
        let drive = self.identity.device.model.as_deref();
        !self.subject.is_simulated() || drive.is_some_and(|drive| plan.asks(drive, &workload.name))
    }

    /// Whether a slow cell was visited often enough. Earlier rounds stay whole,
    /// so what is compared is still paired.
    pub(super) fn had_its_time(&self, plan: &Schedule, workload: &Workload, index: usize) -> bool {
        let (true, Some(enough), Some(seconds)) = (
            self.subject.may_be_slow(),
            plan.slow_repetitions,
            workload.seconds,
        ) else {
            return false;
        };
        let samples = self.samples[index].each();
        let spent: f64 = samples.iter().map(|sample| sample.wall).sum();
        let given = seconds * f64::from(plan.repetitions);
        samples.len() >= enough as usize && spent > SLOW * given
    }

    /// Runs an uncounted warm-up visit if the subject needs one, and returns its sample.
    pub(super) fn warm_up(
        &self,
        workload: &Workload,
        once: Once<'_>,
    ) -> Result<Option<Sample>, LabError> {
        if !self.subject.warms_up() {
            return Ok(None);
        }
        let short = Workload {
            seconds: Some(WARM_UP),
            bytes: None,
            ..workload.clone()
        };
        self.visit(&short, once).map(Some)
    }

    /// Discards the whole device if it can, then runs `workload` and drops its figures. Returns
    /// whether the device could be discarded; `None` if the subject has no device of its own.
    pub(super) fn prepare(
        &self,
        workload: &Workload,
        stop: &AtomicBool,
    ) -> Result<Option<bool>, LabError> {
        let Some(purged) = self.subject.purge() else {
            return Ok(None);
        };
        let purged = purged?;
        let once = Once {
            number: 0,
            seed: 0,
            slice: false,
            stop,
        };
        self.visit(workload, once)?;
        Ok(Some(purged))
    }

    /// One repetition.
    pub(super) fn visit(&self, workload: &Workload, once: Once<'_>) -> Result<Sample, LabError> {
        match self.subject.visit(workload, once) {
            Ok(_) if once.stop.load(Ordering::Relaxed) => Err(LabError::session_interrupted()),
            Err(error) if error.is_interrupted() => Err(LabError::session_interrupted()),
            Err(error) if error.verdict() == Verdict::Failed && self.subject.is_timed_here() => {
                Err(failed_trial(workload, &self.label, error))
            }
            outcome => outcome,
        }
    }
}

/// The fields that all `ciphers` share.
fn in_memory(encryption: &Encryption, ciphers: &Ciphers) -> Trial {
    Trial {
        tier: Tier::Cipher,
        cipher: Some(encryption.spec.to_string()),
        key_bits: Some(encryption.key_bits),
        sector_bytes: Some(encryption.sector_size.bytes() as u32),
        device: Device {
            kind: "ram".into(),
            path_kind: "memory".into(),
            engine: "memory".into(),
            size: ciphers.extent_bytes(),
            ..Device::default()
        },
        ..Trial::default()
    }
}
