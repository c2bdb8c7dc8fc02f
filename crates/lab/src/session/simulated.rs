//! Cells of drives that are not here, and what encrypts before them.

use super::cell::Cell;
use super::failed_trial;
use super::subject::OnDrive;
use crate::clock::Clock;
use crate::error::LabError;
use crate::experiment::{Devices, Lives, Schedule};
use crate::record::{Device, Interval, Tier, Trial, Verdict};
use crate::stats;
use crate::system::simulated::{self, CipherRate, Driver, Processor, Simulated};
use crate::system::{Bare, Encryption, SystemId};
use crate::trial::{self, Options};
use crate::workload::{Mix, Pattern, Workload};
use bytesize::ByteSize;
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::atomic::AtomicBool;

/// Repetitions of each direction, and their length in seconds. Of two in turns so many pairs.
const REPETITIONS: u32 = 9;
const PAIRS: u64 = 15;
const SECONDS: f64 = 0.02;

/// The ciphers of a plan, each on a processor of its own.
pub(super) struct Processors {
    driver: Driver,
    cores: NonZeroU32,
    ciphers: Vec<Encrypting>,
}

/// A cipher on its processor.
pub(super) struct Encrypting {
    encryption: Encryption,
    processor: Processor,
    /// 10⁶ bytes a second on one core.
    mb_s: f64,
    given: bool,
}

impl Processors {
    /// Those of `devices`, at the rates that it gives, or at this machine's.
    pub(super) fn of(devices: &Devices) -> Result<Self, LabError> {
        let encryptions = devices.encryptions()?;
        Self::at_rates(encryptions, &devices.cpu, devices.driver, devices.cores)
    }

    /// Those of `lives`, all of which have a rate.
    pub(super) fn of_lives(lives: &Lives) -> Result<Self, LabError> {
        Self::at_rates(lives.encryptions()?, &lives.cpu, lives.driver, lives.cores)
    }

    fn at_rates(
        encryptions: Vec<Encryption>,
        rates: &BTreeMap<String, CipherRate>,
        driver: Driver,
        cores: u32,
    ) -> Result<Self, LabError> {
        let cores = NonZeroU32::new(cores).unwrap_or(NonZeroU32::MIN);
        let mut ciphers = Vec::new();
        for encryption in encryptions {
            let given = simulated::rate_of(&encryption, rates);
            let mb_s = match given {
                Some((_, given)) => given.0,
                None => rate(encryption)?.median,
            };
            ciphers.push(Encrypting {
                encryption,
                processor: simulated::processor(driver, cores, mb_s)?,
                mb_s,
                given: given.is_some(),
            });
        }
        Ok(Self {
            driver,
            cores,
            ciphers,
        })
    }

    /// Warnings for the user about the ciphers.
    pub(super) fn warnings(&self) -> Vec<String> {
        let cores = match self.cores.get() {
            1 => "one core".to_owned(),
            cores => format!("each of {cores} cores"),
        };
        let mut warnings = Vec::new();
        for cipher in &self.ciphers {
            let spec = cipher.encryption.spec;
            let weak = spec.weaknesses().into_iter();
            warnings.extend(weak.map(|weak| format!("{spec}: {weak}")));
            let takes = match self.driver {
                Driver::Queue => "simulated drives encrypt at that rate",
                Driver::InTurn => "simulated drives wait during encryption (driver in-turn)",
                Driver::TrueCrypt => {
                    "simulated drives get threads like those of TrueCrypt (driver truecrypt)"
                }
            };
            warnings.push(format!(
                "{spec}, {}-byte sectors: {:.0} MB/s on {cores}, {}; {takes}",
                cipher.encryption.sector_size.bytes(),
                cipher.mb_s,
                match cipher.given {
                    true => "as given",
                    false => "measured here",
                }
            ));
        }
        warnings
    }

    /// A simulated drive plain, with each cipher, and plain again.
    pub(super) fn before(
        &self,
        system: &SystemId,
        devices: &Devices,
        plan: &Schedule,
        place: usize,
        seed: u64,
        filling: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<Vec<Cell>, LabError> {
        let name = system.drive().unwrap_or_default();
        let size = devices.extent_bytes();
        let drive = Rc::new(match plan.steady {
            Some(_) => Simulated::whole(name, size, seed, filling)?,
            None => Simulated::open(name, size, seed, filling)?,
        });
        let cell = |cipher: Option<&Encrypting>| {
            let identity = self.identity(system, cipher, drive.description());
            let label = match &identity.cipher {
                Some(cipher) => format!("{} {cipher}", identity.system),
                None => format!("plain {name}"),
            };
            let processor = cipher.map(|cipher| cipher.processor);
            let subject = OnDrive::new(Rc::clone(&drive), processor);
            Cell {
                place,
                ..Cell::new(Box::new(subject), label, identity, plan)
            }
        };
        let mut cells = vec![cell(None)];
        cells.extend(self.all().map(|cipher| cell(Some(cipher))));
        cells.push(cell(None));
        Ok(cells)
    }

    /// The ciphers, in the plan's order.
    pub(super) fn all(&self) -> impl Iterator<Item = &Encrypting> {
        self.ciphers.iter()
    }

    /// The record fields that identify a drive behind a cipher, or an
    /// unencrypted drive.
    pub(super) fn identity(
        &self,
        system: &SystemId,
        cipher: Option<&Encrypting>,
        device: Device,
    ) -> Trial {
        let encryption = cipher.map(|cipher| cipher.encryption);
        Trial {
            tier: Tier::Block,
            system: cipher
                .map_or(&SystemId::None, |_| system)
                .as_str()
                .to_owned(),
            system_version: env!("CARGO_PKG_VERSION").to_owned(),
            cipher: encryption.map(|encryption| encryption.spec.to_string()),
            key_bits: encryption.map(|encryption| encryption.key_bits),
            sector_bytes: encryption.map(|by| by.sector_size.bytes() as u32),
            device: Device {
                driver: cipher.map(|_| self.driver.to_string()),
                ..device
            },
            ..Trial::default()
        }
    }
}

impl Encrypting {
    /// The processor that encrypts.
    pub(super) fn processor(&self) -> Processor {
        self.processor
    }
}

/// The rate at which one core of this machine encrypts requests of 1 MiB, in the slower direction,
/// 10⁶ bytes a second, with its 95 % interval.
///
/// # Errors
/// [`LabError`] if the cipher cannot be built, or fails its
/// self-check.
pub fn rate(encryption: Encryption) -> Result<Interval, LabError> {
    let engine = OneCore::of(encryption)?;
    let rates: Result<Vec<f64>, _> = (0..REPETITIONS).map(|number| engine.rate(number)).collect();
    Ok(stats::interval(&rates?).unwrap_or_default())
}

/// How much faster one core encrypts with `other`, as the ratio of its rate to that of
/// `encryption`, and its verdict. They are measured in turns. The interval is wider by what
/// `encryption` differs from itself.
///
/// # Errors
/// Those of [`rate`].
pub fn in_turns(
    encryption: Encryption,
    other: Encryption,
) -> Result<(Interval, Verdict), LabError> {
    let (engine, other) = (OneCore::of(encryption)?, OneCore::of(other)?);
    let ratio = |subject: &OneCore| {
        let turn = |is_subject, pair: u64| {
            let whose = if is_subject { subject } else { &engine };
            whose.rate(pair as u32)
        };
        stats::in_turns(PAIRS, turn)
    };
    let floor = stats::noise_floor(ratio(&engine)?);
    let ratio = ratio(&other)?.unwrap_or_default();
    let wider = Interval {
        low: ratio.low / (1.0 + floor),
        high: ratio.high * (1.0 + floor),
        ..ratio
    };
    Ok((wider, stats::verdict(wider, floor)))
}

/// The engine with one cipher, over a request of 1 MiB.
struct OneCore {
    engine: Bare,
    encryption: Encryption,
}

impl OneCore {
    fn of(encryption: Encryption) -> Result<Self, LabError> {
        let (systems, _) = Bare::open(encryption, &[])?;
        let engine = systems.into_iter().next().expect("the engine is there");
        Ok(Self { engine, encryption })
    }

    /// 10⁶ bytes a second of the slower direction.
    fn rate(&self, number: u32) -> Result<f64, LabError> {
        let stop = AtomicBool::new(false);
        let options = Options {
            seed: 1,
            metered: true,
            slice: false,
            stop: &stop,
            clock: Clock::get(),
        };
        let mut slower = f64::INFINITY;
        for op in [Mix::Encrypt, Mix::Decrypt] {
            let workload = Workload {
                seconds: Some(SECONDS),
                ..Workload::new(op.as_str(), Pattern::Sequential, op, ByteSize::mib(1))
            };
            let extent = workload.block_bytes();
            let sample = trial::bare::run(&self.engine, &workload, extent, number, options);
            let sample = sample.map_err(|source| {
                failed_trial(&workload, &self.encryption.spec.to_string(), source)
            })?;
            slower = slower.min(sample.mb_s());
        }
        Ok(slower)
    }
}
