//! [`FileSystems`]: an experiment on file systems as data, one TOML file
//! each, with `tier = "fs"`.

use super::error::{empty, too_small};
use super::{Changes, MOST_CELLS, Schedule, Setting, Until, distinct, from_toml, one, ten, within};
use crate::error::LabError;
use crate::file_system::{
    Backing, DmOption, Encrypter, FileSystem, Job, Kernel, Operation, OperationKind, Subject,
};
use crate::published::repeats::Repeats;
use crate::system::{Encryption, SystemId, notation};
use bytesize::ByteSize;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::path::Path;

/// Rounds of a plan, at most.
const MOST_ROUNDS: u32 = 1000;

/// File systems × systems × ciphers × operations, repeated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileSystems {
    /// File stem or embedded name; not part of the TOML.
    #[serde(skip)]
    pub name: String,
    /// One line for the list of plans.
    pub title: String,
    /// Always `fs`.
    tier: String,
    /// Bytes of the device.
    pub size: ByteSize,
    /// Repetitions of every cell, 1 to 1000.
    #[serde(default = "ten")]
    pub repetitions: u32,
    /// Rounds until every cell is decided, instead of a fixed number of repetitions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Until>,
    /// The file systems that are made on every system.
    pub file_systems: Vec<FileSystem>,
    /// Systems in addition to `none`, or to `lab:none` if the lab kernel takes part.
    pub systems: Vec<SystemId>,
    /// dm-crypt notation.
    pub ciphers: Vec<String>,
    /// Key size in bits as cryptsetup counts; the cipher's default when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_size: Option<u32>,
    /// Encryption sector size, bytes.
    #[serde(default = "sector")]
    pub sector_size: u32,
    /// Rows of dm-crypt: the options of each.
    #[serde(default = "no_options", skip_serializing_if = "is_plain")]
    pub dm_crypt_options: Vec<Vec<DmOption>>,
    /// The place of the bytes: at `--at`, or in memory.
    #[serde(default)]
    pub backing: BackingKind,
    /// Whether everything is taken down and forgotten before an operation.
    #[serde(default)]
    pub cache: Cache,
    /// How many do each operation at the same time, 1 to 256.
    #[serde(default = "one")]
    pub jobs: u32,
    /// Size of the erase blocks under jffs2, a power of two.
    #[serde(default = "erase_size")]
    pub erase_size: ByteSize,
    /// The plan that `--quick` measures as a first look, if this one takes too long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quick: Option<String>,
    /// The published figures that it repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<Repeats>,
    /// Whether this kernel's part is measured in a directory, as a user other than root.
    #[serde(skip)]
    pub in_directory: bool,
    /// The operations that are timed.
    #[serde(rename = "operation")]
    pub operations: Vec<Operation>,
}

/// The place of the bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BackingKind {
    /// At the place that the user names: a file there, or the device itself.
    #[default]
    File,
    /// In memory.
    Ram,
}

/// The state of the cache before an operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cache {
    /// The cache is empty.
    #[default]
    Cold,
    /// The cache holds the data that was used last.
    Warm,
}

fn sector() -> u32 {
    512
}

fn erase_size() -> ByteSize {
    ByteSize::kib(128)
}

fn no_options() -> Vec<Vec<DmOption>> {
    vec![Vec::new()]
}

fn is_plain(options: &[Vec<DmOption>]) -> bool {
    options == no_options()
}

/// Jobs that run in one kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Leg {
    /// The kernel.
    pub kernel: Kernel,
    /// One for each file system and size of device.
    pub jobs: Vec<Job>,
}

/// What does not apply to any file system.
fn refuses(setting: Setting) -> Option<&'static str> {
    use Setting as S;
    let never = [
        S::TrialSeconds,
        S::InMemory,
        S::Threads,
        S::Cores,
        S::Cpu,
        S::Driver,
        S::Backend,
    ];
    never.contains(&setting).then_some("file systems")
}

impl FileSystems {
    /// Reads a plan from TOML and checks every value.
    ///
    /// # Errors
    /// [`LabError`] with line and suggestion, or the error of an impossible value.
    pub fn parse(name: &str, text: &str) -> Result<Self, LabError> {
        let mut plan: Self = from_toml(name, text, refuses)?;
        plan.name = name.to_owned();
        plan.validate()?;
        if let Some(published) = &plan.published {
            let names = plan.operations.iter().map(|operation| &*operation.name);
            published.validate(names)?;
        }
        Ok(plan)
    }

    /// Checks every value.
    ///
    /// # Errors
    /// Whatever value is impossible.
    pub fn validate(&self) -> Result<(), LabError> {
        let erase = self.erase_size.as_u64();
        let repetitions = u64::from(self.repetitions);
        within("repetitions", repetitions, 1, u64::from(MOST_ROUNDS))?;
        within("jobs", u64::from(self.jobs), 1, 256)?;
        within("size", self.size.as_u64(), 1 << 20, 1 << 44)?;
        within("erase_size", erase, 4 << 10, 1 << 20)?;
        if !erase.is_power_of_two() {
            return Err(LabError::invalid(
                format!("erase_size = {erase} is not a power of two"),
                "Use 4 KiB, 8 KiB, and so on up to 1 MiB.",
            ));
        }
        let lists = [
            ("file systems", self.file_systems.is_empty()),
            ("operations", self.operations.is_empty()),
            ("dm_crypt_options", self.dm_crypt_options.is_empty()),
        ];
        if let Some((what, _)) = lists.into_iter().find(|(_, empty)| *empty) {
            return Err(empty(what));
        }
        within("operations", self.operations.len() as u64, 1, MOST_CELLS)?;
        distinct(self.operations.iter().map(|operation| &*operation.name))?;
        if let Some(other) = self
            .systems
            .iter()
            .find(|system| system.under_files().is_none())
        {
            return Err(LabError::invalid(
                format!("{} is not measured in the tier fs", other.as_str()),
                "Use one of: none, dm-crypt, cryptoloop, builtin-fuse. The lab kernel has the same \
                 systems with the prefix lab:, such as lab:dm-crypt.",
            ));
        }
        if self.takes_ciphers() && self.ciphers.is_empty() {
            return Err(empty("ciphers"));
        }
        self.encryptions()?;
        self.until.as_ref().map_or(Ok(()), Until::validate)?;
        for operation in &self.operations {
            let name = &operation.name;
            operation.validate()?;
            let size = operation.size.unwrap_or(self.size);
            let copies = if operation.op == OperationKind::Copy {
                2
            } else {
                1
            };
            let bytes = operation.files().bytes().saturating_mul(copies);
            let needed = bytes.saturating_mul(u64::from(self.jobs));
            if needed > size.as_u64() {
                return Err(too_small(name, needed, size));
            }
        }
        Ok(())
    }

    /// Rounds, at most.
    fn rounds(&self) -> u32 {
        match self.until {
            Some(_) => MOST_ROUNDS,
            None => self.repetitions,
        }
    }

    /// How a session measures it.
    pub fn schedule(&self) -> Schedule {
        let workload = |operation: &Operation| operation.workload(self.jobs, self.is_cold());
        Schedule {
            name: self.name.clone(),
            repetitions: self.rounds(),
            until: self.until,
            published: self.published.clone(),
            workloads: self.operations.iter().map(workload).collect(),
            ..Schedule::default()
        }
    }

    pub(super) fn apply(&mut self, changes: &Changes) -> Result<(), LabError> {
        if changes.first_look {
            if let Some(short) = &self.quick {
                let (name, text) = super::read(short)?;
                *self = Self::parse(&name, &text)?;
            }
            self.repetitions = 3;
        }
        if let Some(size) = changes.size {
            self.size = size;
        }
        if let Some(repetitions) = changes.repetitions {
            self.repetitions = repetitions;
            self.until = None;
        }
        self.until = Until::changed(self.until, changes.time_limit, changes.precision);
        if !changes.systems.is_empty() {
            self.systems.clone_from(&changes.systems);
            if !self.takes_ciphers() {
                self.ciphers.clear();
                self.key_size = None;
            }
        }
        if !changes.ciphers.is_empty() {
            self.ciphers = changes.ciphers.iter().map(|name| notation(name)).collect();
            // The plan's key size belongs to the plan's ciphers.
            self.key_size = None;
        }
        if changes.key_size.is_some() {
            self.key_size = changes.key_size;
        }
        match changes.sector_sizes[..] {
            [] => {}
            [size] => self.sector_size = size,
            _ => {
                return Err(LabError::invalid(
                    "file systems are measured with one sector size at a time",
                    "Give one.",
                ));
            }
        }
        if let Some(jobs) = changes.jobs {
            self.jobs = jobs;
        }
        if !changes.commands.is_empty() {
            let commands = changes.commands.iter();
            self.operations = commands.map(|line| Operation::command(line)).collect();
        }
        Ok(())
    }

    pub(super) fn refuses(&self, setting: Setting) -> Option<&'static str> {
        let in_memory =
            self.backing == BackingKind::Ram || self.systems.iter().all(SystemId::is_in_lab);
        match setting {
            Setting::Ciphers | Setting::KeySize | Setting::SectorSizes if !self.takes_ciphers() => {
                Some("systems with ciphers of their own")
            }
            Setting::Place | Setting::Overwrite if in_memory => Some("file systems in memory"),
            setting => refuses(setting),
        }
    }

    /// Whether a system of it encrypts with the plan's ciphers.
    fn takes_ciphers(&self) -> bool {
        let takes = |(encrypter, _): (Encrypter, Kernel)| {
            encrypter != Encrypter::None && !encrypter.encrypts_files()
        };
        self.systems
            .iter()
            .filter_map(SystemId::under_files)
            .any(takes)
    }

    pub(super) fn describe(&self, at: &Path) -> String {
        let file_systems: Vec<&str> = self.file_systems.iter().map(|f| f.name()).collect();
        let systems: Vec<&str> = self.systems.iter().map(SystemId::as_str).collect();
        let mut text = format!(
            "plan {}: {}\n{} on {}",
            self.name,
            self.title,
            file_systems.join(", "),
            self.size.display().iec()
        );
        let _ = match self.refuses(Setting::Place) {
            Some(_) => writeln!(text, " in memory"),
            None => writeln!(text, " at {}, removed afterwards", at.display()),
        };
        for operation in &self.operations {
            let files = operation.files();
            let _ = match files.count {
                0 => writeln!(text, "  {}", operation.name),
                count => writeln!(
                    text,
                    "  {}: {count} file(s), {} in all",
                    operation.name,
                    ByteSize(files.bytes()).display().iec()
                ),
            };
        }
        let _ = write!(text, "on: plain (twice), {}", systems.join(", "));
        if self.takes_ciphers() {
            let ciphers = self.ciphers.join(", ");
            let _ = write!(
                text,
                ", each with {ciphers} in sectors of {}",
                self.sector_size
            );
            if let Some(bits) = self.key_size {
                let _ = write!(text, " with {bits}-bit keys");
            }
        }
        let _ = match self.jobs {
            1 => writeln!(text),
            jobs => writeln!(text, "; {jobs} at the same time"),
        };
        let _ = match &self.until {
            Some(until) => writeln!(text, "{}", until.describe()),
            None => writeln!(text, "{} times", self.repetitions),
        };
        text
    }

    /// Whether a program encrypts files on this kernel, for which a user needs a directory alone.
    pub fn encrypts_files_here(&self) -> bool {
        let here = self.systems.iter().filter_map(SystemId::under_files);
        here.into_iter()
            .any(|(encrypter, kernel)| kernel == Kernel::Here && encrypter.is_program())
    }

    fn is_cold(&self) -> bool {
        self.cache == Cache::Cold
    }

    fn encryptions(&self) -> Result<Vec<Encryption>, LabError> {
        let parse =
            |cipher: &String| Encryption::parse(cipher, self.key_size, self.sector_size, None);
        self.ciphers.iter().map(parse).collect()
    }

    /// The jobs of this plan: on this kernel first, then in the lab kernels. `at` is the place of
    /// its files, `base` the settings that all jobs share.
    ///
    /// # Errors
    /// [`LabError`].
    pub fn legs(&self, at: &Backing, base: &Job) -> Result<Vec<Leg>, LabError> {
        let mut legs = Vec::new();
        for kernel in Kernel::ALL {
            let subjects = self.subjects(kernel)?;
            if subjects.is_empty() {
                continue;
            }
            let mut jobs = Vec::new();
            let file_systems = match self.in_directory && !kernel.is_lab() {
                true => &[FileSystem::Directory][..],
                false => &self.file_systems,
            };
            for &file_system in file_systems {
                for size in self.sizes(file_system) {
                    let of_size = |operation: &&Operation| {
                        let own = operation.size.unwrap_or(self.size).as_u64();
                        own == size && operation.suits(file_system)
                    };
                    let step = match file_system {
                        FileSystem::Jffs2 => self.erase_size.as_u64(),
                        _ => 4096,
                    };
                    jobs.push(Job {
                        id: format!("{}-{}", base.id, jobs.len() + 100 * legs.len()),
                        kernel,
                        file_system,
                        size: size.next_multiple_of(step),
                        // The lab kernel's own disks are neither faster nor steadier than its
                        // memory.
                        backing: match self.backing {
                            BackingKind::File if !kernel.is_lab() => at.clone(),
                            _ => Backing::Ram,
                        },
                        erase_bytes: self.erase_size.as_u64() as u32,
                        subjects: subjects.clone(),
                        operations: self.operations.iter().filter(of_size).cloned().collect(),
                        repetitions: self.rounds(),
                        cold: self.is_cold(),
                        jobs: self.jobs,
                        ..base.clone()
                    });
                }
            }
            jobs.retain(|job| !job.operations.is_empty());
            legs.push(Leg { kernel, jobs });
        }
        Ok(legs)
    }

    /// Sizes of devices that operations on `file_system` ask for.
    fn sizes(&self, file_system: FileSystem) -> Vec<u64> {
        let mut sizes = Vec::new();
        for operation in self.operations.iter().filter(|o| o.suits(file_system)) {
            let size = operation.size.unwrap_or(self.size).as_u64();
            if !sizes.contains(&size) {
                sizes.push(size);
            }
        }
        sizes
    }

    /// The plain system and the requested ones, of one kernel; empty if that kernel takes no part.
    fn subjects(&self, kernel: Kernel) -> Result<Vec<Subject>, LabError> {
        let mut subjects = Vec::new();
        let mut takes_part = false;
        for system in &self.systems {
            let Some((encrypter, _)) = system.under_files().filter(|(_, at)| *at == kernel) else {
                continue;
            };
            takes_part = true;
            if encrypter == Encrypter::None {
                continue;
            }
            subjects.extend(encrypter.file_ciphers().iter().map(|cipher| Subject {
                encrypter,
                cipher: Some(cipher.name.to_owned()),
                key_bits: cipher.key_bits,
                sector_bytes: cipher.unit_bytes,
                options: Vec::new(),
            }));
            if encrypter.encrypts_files() {
                continue;
            }
            for encryption in self.encryptions()? {
                let rows = match encrypter {
                    Encrypter::DmCrypt => self.dm_crypt_options.clone(),
                    _ => no_options(),
                };
                subjects.extend(rows.into_iter().map(|options| Subject {
                    encrypter,
                    cipher: Some(encryption.spec.to_string()),
                    key_bits: encryption.key_bits,
                    sector_bytes: match options.contains(&DmOption::SectorSize4096) {
                        true => 4096,
                        false => self.sector_size,
                    },
                    options,
                }));
            }
        }
        if takes_part {
            subjects.insert(0, Subject::plain());
        }
        Ok(subjects)
    }
}

/// The contract's word for what `encrypter` makes a system.
pub fn system_name(encrypter: Encrypter, kernel: Kernel) -> String {
    format!("{}{}", kernel.prefix(), encrypter.name())
}

/// The settings that all jobs of a run share. The plan determines the others.
pub fn base_job(id: &str, program: &Path, scratch: &Path, seed: u64) -> Job {
    Job {
        id: id.to_owned(),
        program: program.to_owned(),
        kernel: Kernel::Here,
        file_system: FileSystem::Ext2,
        size: 0,
        backing: Backing::Ram,
        erase_bytes: 0,
        subjects: Vec::new(),
        operations: Vec::new(),
        repetitions: 0,
        cold: true,
        jobs: 1,
        seed,
        scratch: scratch.to_owned(),
    }
}
