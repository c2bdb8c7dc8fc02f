//! [`Opened`]: the cells of a plan.

use super::cell::Cell;
use super::served;
use super::simulated::Processors;
use crate::error::LabError;
use crate::experiment::{Ciphers, Devices, Schedule};
use crate::system::java::{Java, JavaCipher};
use crate::system::peer::Absent;
use crate::system::storage;
use crate::system::{Bare, Encryption, Place, Storage, SystemId, Target};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

/// The cells of a plan, in its order; the last of each place is its first again.
pub(super) struct Opened {
    pub(super) cells: Vec<Cell>,
    /// The requested systems that are absent, with the means to get each.
    pub(super) absent: Vec<String>,
    /// Warnings for the user about the ciphers of volumes.
    pub(super) warnings: Vec<String>,
}

impl Opened {
    /// The plain device, the encrypted systems over it, and the plain device
    /// again; and the same of every simulated drive.
    pub(super) fn over(
        storage: &Storage,
        devices: &Devices,
        plan: &Schedule,
        seed: u64,
        filling: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<Self, LabError> {
        let mut absent = Vec::new();
        let mut warnings: Vec<String> = Vec::new();
        let mut drives = Vec::new();
        let mut targets = vec![Target::plain(Arc::clone(&storage.device))];
        for system in &devices.systems {
            match system {
                SystemId::None => {}
                SystemId::Simulated(_) => drives.push(system),
                SystemId::Builtin => {
                    for encryption in devices.encryptions()? {
                        let encryption = encryption.shared_among(devices.cores)?;
                        warnings.extend(encryption.tell_sharing(devices.cores));
                        let shared = match devices.all_cores {
                            true => encryption.on_all_cores(),
                            false => None,
                        };
                        let device = || Arc::clone(&storage.device);
                        let mut made = Vec::new();
                        for encryption in [encryption].into_iter().chain(shared) {
                            for format in &devices.formats {
                                made.push(Target::volume(device(), encryption, *format)?);
                            }
                            if devices.formats.is_empty() {
                                made.push(Target::builtin(device(), encryption)?);
                            }
                        }
                        for target in made {
                            target.self_check(&*storage.device)?;
                            targets.push(target);
                        }
                    }
                }
                SystemId::BuiltinNbd
                | SystemId::BuiltinFuse
                | SystemId::DmCrypt
                | SystemId::Served(_) => {
                    targets.extend(served::open(system, devices, storage, &mut absent)?);
                }
                SystemId::Path(name) => match mounted(system, devices, seed) {
                    Ok(there) => {
                        warnings.extend(there.warnings.iter().map(|w| format!("{name}: {w}")));
                        targets.push(Target::mounted(name, there));
                    }
                    Err(reason) => absent.push(format!("{name} ({reason})")),
                },
                SystemId::Library(library) => absent.push(format!(
                    "{} (a library is measured by `cryptmark run ciphers`)",
                    library.name()
                )),
                SystemId::Java => {
                    absent.push("java (it is measured by `cryptmark run java-os`)".to_owned());
                }
                SystemId::BuiltinUblk | SystemId::UnderFiles(..) => absent.push(elsewhere(system)),
            }
        }
        if plan.is_simulated || targets.len() == 1 && !absent.is_empty() {
            targets.clear();
        } else {
            targets.push(Target::plain(Arc::clone(&storage.device)));
        }
        let ciphers = match drives.is_empty() {
            true => None,
            false => Some(Processors::of(devices)?),
        };
        let of_targets = targets.iter().flat_map(Target::warnings);
        for warning in of_targets.chain(ciphers.iter().flat_map(Processors::warnings)) {
            // Sizes of sectors and keys do not change it.
            if !warnings.contains(&warning) {
                warnings.push(warning);
            }
        }
        let mut cells: Vec<Cell> = targets
            .into_iter()
            .map(|target| Cell::device(target, devices, plan, storage))
            .collect();
        if let Some(ciphers) = ciphers {
            for (number, system) in drives.into_iter().enumerate() {
                cells.extend(ciphers.before(system, devices, plan, number + 1, seed, filling)?);
            }
        }
        Ok(Self {
            cells,
            absent,
            warnings,
        })
    }

    /// Every cipher by the engine and by the libraries, and the first again.
    pub(super) fn bare(ciphers: &Ciphers, plan: &Schedule) -> Result<Self, LabError> {
        let mut absent = Vec::new();
        let mut libraries = Vec::new();
        let mut java = None;
        for system in &ciphers.systems {
            match system {
                SystemId::Library(library) => libraries.push(*library),
                SystemId::Java => match Java::find() {
                    Ok(found) => java = Some(Arc::new(found)),
                    Err(reason) => absent.push(reason.to_string()),
                },
                SystemId::Builtin => {}
                served if served.is_served() || served.drive().is_some() => absent.push(format!(
                    "{} (it is measured by `cryptmark run`)",
                    system.as_str()
                )),
                SystemId::None => absent.push("none (a bare cipher has no plain side)".to_owned()),
                _ => absent.push(elsewhere(system)),
            }
        }
        let wanted = |system: &SystemId| ciphers.systems.contains(system);
        let mut missing = Missing::default();
        let mut cells = Vec::new();
        // A user who compares all ciphers protects no data with them, so weak ones need no warning.
        let mut warnings = Vec::new();
        for encryption in ciphers.encryptions()? {
            let encryption = encryption.shared_among(ciphers.cores)?;
            warnings.extend(encryption.tell_sharing(ciphers.cores));
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
                    .map(|bare| Cell::bare(Arc::new(bare), ciphers, plan)),
            );
            cells.extend(by_java.map(|java| Cell::java(java, ciphers, plan)));
        }
        let again = visited_again(&cells, plan);
        cells.extend(again);
        absent.extend(missing.sentences());
        Ok(Self {
            cells,
            absent,
            warnings,
        })
    }
}

/// The first cell of every workload once more, to be asked of those workloads. There are several
/// such cells if not every request is of whole sectors of all.
fn visited_again(cells: &[Cell], plan: &Schedule) -> Vec<Cell> {
    let mut firsts: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for workload in &plan.workloads {
        if let Some(first) = cells.iter().position(|cell| cell.subject.takes(workload)) {
            firsts.entry(first).or_default().push(workload.name.clone());
        }
    }
    let again = |(first, workloads): (usize, Vec<String>)| {
        let only = Some(workloads);
        Some(Cell {
            only,
            ..cells[first].again()?
        })
    };
    firsts.into_iter().filter_map(again).collect()
}

/// A test file in the directory of a mounted system, as large as the extent of
/// all others.
fn mounted(system: &SystemId, devices: &Devices, seed: u64) -> Result<Storage, LabError> {
    let at = system.directory().unwrap_or(Path::new(""));
    if !at.is_dir() {
        return Err(storage::examine(at).map_or_else(|error| error, |_| storage::unusable(at)));
    }
    let place = Place {
        at,
        size: devices.extent_bytes(),
        seed,
        overwrite: false,
        engine: None,
    };
    Storage::prepare(place, &mut |_| ControlFlow::Continue(()))
}

/// Where a system is measured that is not opened here.
fn elsewhere(system: &SystemId) -> String {
    let how = match system {
        SystemId::BuiltinUblk => {
            "serve a volume with `volume serve --ublk`, and measure the disk /dev/ublkbN"
        }
        _ => "it is measured in the tier of file systems",
    };
    format!("{} ({how})", system.as_str())
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
