//! The cost of opening a new key slot, its secret, and the choice of old key slots that stay when
//! the volume key changes.

use super::secrets::{self, Empty};
use crate::cli::Failure;
use crate::cli::progress::Progress;
use block::BlockDevice;
use cipher::Key;
use clap::{Args, ValueEnum};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use volume::luks2::Header;
use volume::{
    Argon2Variant, Format, Given, Hash, Kdf, KdfKind, Limits, Machine, Secret, VolumeError, operate,
};

/// cryptsetup's defaults: the duration of an unlock, ms, and LUKS's hash.
const ITER_TIME_MS: u64 = 2000;
const HASH: Hash = Hash::Sha256;

/// cryptsetup's bounds: iterations of PBKDF2 and passes of Argon2, memory in KiB,
/// lanes.
const LEAST_ITERATIONS: u32 = 1000;
const LEAST_PASSES: u32 = 4;
const LEAST_MEMORY: u32 = 32;
const MOST_MEMORY: u32 = 4 << 20;
const MOST_LANES: u32 = 4;

/// Something that was to open a keyslot opens none.
const NONE_FITS: VolumeError = VolumeError::NoKeyslotFits {
    given: Given::Other,
};

/// The options that say how a passphrase becomes the key of a keyslot.
#[derive(Debug, Args)]
pub struct KdfArguments {
    /// Key derivation [default: argon2id; for LUKS1 pbkdf2]
    #[arg(long, value_enum)]
    pbkdf: Option<KdfName>,
    /// Time that opening takes on this machine, in milliseconds [default: 2000]
    #[arg(long, short = 'i', value_name = "MS")]
    iter_time: Option<u64>,
    /// PBKDF2 iterations or Argon2 passes, instead of those found by --iter-time
    #[arg(long, value_name = "N", conflicts_with = "iter_time")]
    pbkdf_force_iterations: Option<u32>,
    /// Memory of Argon2 in KiB; with --iter-time, its maximum [default: 1 GiB, or half of the machine's]
    #[arg(long, value_name = "KIB")]
    pbkdf_memory: Option<u32>,
    /// Parallel lanes of Argon2 [default: the number of cores, at most 4]
    #[arg(long, value_name = "N")]
    pbkdf_parallel: Option<u32>,
}

/// cryptsetup's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum KdfName {
    Pbkdf2,
    Argon2i,
    Argon2id,
}

impl KdfArguments {
    /// The option that says anything of it.
    pub fn given(&self) -> Option<&'static str> {
        let options = [
            ("--pbkdf", self.pbkdf.is_some()),
            ("--iter-time", self.iter_time.is_some()),
            (
                "--pbkdf-force-iterations",
                self.pbkdf_force_iterations.is_some(),
            ),
            ("--pbkdf-memory", self.pbkdf_memory.is_some()),
            ("--pbkdf-parallel", self.pbkdf_parallel.is_some()),
        ];
        let given = options.into_iter().find(|(_, given)| *given);
        given.map(|(option, _)| option)
    }

    /// The derivation for a keyslot of `format`; `hash` is that of PBKDF2.
    pub fn kdf(&self, format: Format, hash: Option<Hash>) -> Result<Kdf, Failure> {
        let pbkdf2 = || KdfKind::Pbkdf2(hash.unwrap_or(HASH));
        let kind = match (self.pbkdf, format) {
            (None | Some(KdfName::Pbkdf2), Format::Luks1) | (Some(KdfName::Pbkdf2), _) => pbkdf2(),
            (Some(_), Format::Luks1) => {
                return Err(Failure::new(
                    2,
                    "LUKS1 has no Argon2",
                    "Omit --pbkdf, or take --type luks2.",
                ));
            }
            (None | Some(KdfName::Argon2id), _) => KdfKind::Argon2(Argon2Variant::Id),
            (Some(KdfName::Argon2i), _) => KdfKind::Argon2(Argon2Variant::I),
        };
        let argon2 = matches!(kind, KdfKind::Argon2(_));
        if !argon2 && (self.pbkdf_memory.is_some() || self.pbkdf_parallel.is_some()) {
            return Err(Failure::new(
                2,
                "PBKDF2 has neither memory nor lanes",
                "Omit --pbkdf-memory and --pbkdf-parallel.",
            ));
        }
        check(
            "--pbkdf-memory",
            self.pbkdf_memory,
            LEAST_MEMORY,
            MOST_MEMORY,
        )?;
        check("--pbkdf-parallel", self.pbkdf_parallel, 1, MOST_LANES)?;
        if self.iter_time == Some(0) {
            return Err(Failure::new(
                2,
                "an --iter-time of 0 is not possible",
                "Give milliseconds, or --pbkdf-force-iterations.",
            ));
        }
        let mut machine = machine();
        machine.memory_kib = self.pbkdf_memory.unwrap_or(machine.memory_kib);
        machine.lanes = self.pbkdf_parallel.unwrap_or(machine.lanes);
        match self.pbkdf_force_iterations {
            Some(iterations) => forced(kind, iterations, machine),
            None => calibrated(kind, self.iter_time.unwrap_or(ITER_TIME_MS), machine),
        }
    }
}

/// Refuses what no program takes for LUKS.
fn check(option: &str, value: Option<u32>, least: u32, most: u32) -> Result<(), Failure> {
    match value {
        Some(value) if !(least..=most).contains(&value) => Err(Failure::new(
            2,
            format!("{option} {value} is not possible"),
            format!("Give a number from {least} to {most}."),
        )),
        _ => Ok(()),
    }
}

/// With so many iterations or passes, and the machine's bounds for all else.
fn forced(kind: KdfKind, iterations: u32, machine: Machine) -> Result<Kdf, Failure> {
    match kind {
        KdfKind::Pbkdf2(_) if iterations < LEAST_ITERATIONS => Err(Failure::new(
            2,
            format!("{iterations} iterations are too few"),
            format!("Give at least {LEAST_ITERATIONS}."),
        )),
        KdfKind::Pbkdf2(hash) => Ok(Kdf::Pbkdf2 { hash, iterations }),
        KdfKind::Argon2(_) if iterations < LEAST_PASSES => Err(Failure::new(
            2,
            format!("{iterations} passes of Argon2 are too few"),
            format!("Give at least {LEAST_PASSES}."),
        )),
        KdfKind::Argon2(variant) => Ok(machine.most_argon2(variant, iterations)),
    }
}

fn calibrated(kind: KdfKind, iter_time: u64, machine: Machine) -> Result<Kdf, Failure> {
    let waiting = Progress::waiting("calibrating the key derivation for this machine");
    let start = Instant::now();
    let now = || start.elapsed();
    let found = kind.calibrated(Duration::from_millis(iter_time), machine, &now);
    waiting.finish();
    Ok(found?)
}

fn machine() -> Machine {
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32);
    Machine::new(cores, lab::probe::total_memory().unwrap_or(1 << 30))
}

/// The options for the secret of a new key slot.
#[derive(Debug, Args)]
pub struct NewSecretArguments {
    /// File with the new passphrase in its first line; - is standard input
    #[arg(long, value_name = "FILE|-", conflicts_with = "new_key_file")]
    new_passphrase_file: Option<PathBuf>,
    /// New key file, used whole
    #[arg(long, value_name = "FILE|-")]
    new_key_file: Option<PathBuf>,
    /// Allow an empty new passphrase; anyone can open the volume then
    #[arg(long)]
    allow_empty_passphrase: bool,
}

impl NewSecretArguments {
    /// Whether an option says where the secret is.
    pub fn is_given(&self) -> bool {
        self.new_passphrase_file.is_some() || self.new_key_file.is_some()
    }

    /// The files that options name.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        let options = [
            ("--new-passphrase-file", &self.new_passphrase_file),
            ("--new-key-file", &self.new_key_file),
        ];
        let named = options.into_iter();
        named.filter_map(|(option, path)| Some((option, path.as_deref()?)))
    }

    /// Whether the user insists on an empty passphrase.
    pub fn empty(&self) -> Empty {
        Empty::if_allowed(self.allow_empty_passphrase)
    }

    /// The new secret: asked for twice if no option says.
    pub fn secret(&self, image: &Path) -> Result<Key, Failure> {
        self.secret_beside(image, false)
    }

    /// The same, for a volume that may open with key files alone.
    pub fn secret_beside(&self, image: &Path, keyfiles: bool) -> Result<Key, Failure> {
        let empty = Empty::if_allowed(self.allow_empty_passphrase || keyfiles);
        match (&self.new_passphrase_file, &self.new_key_file) {
            (Some(path), _) => empty.checked(secrets::passphrase_in(path)?),
            (None, Some(path)) => secrets::key_in(path),
            (None, None) => secrets::ask_twice(image, empty),
        }
    }
}

/// How often a passphrase is asked for, as cryptsetup does.
const TRIES: u32 = 3;

/// The options for the key slots that stay when the volume key changes. Only slots whose secrets
/// are given can stay.
#[derive(Debug, Args)]
pub struct KeptArguments {
    /// File with the passphrase of another key slot to keep, in its first line; can be repeated
    #[arg(long = "keep-passphrase-file", value_name = "FILE|-", conflicts_with_all = ["encrypt", "decrypt"])]
    passphrase_files: Vec<PathBuf>,
    /// Key file of another key slot to keep, used whole; can be repeated
    #[arg(long = "keep-key-file", value_name = "FILE|-", conflicts_with_all = ["encrypt", "decrypt"])]
    key_files: Vec<PathBuf>,
}

impl KeptArguments {
    /// How many secrets options name.
    pub fn count(&self) -> usize {
        self.passphrase_files.len() + self.key_files.len()
    }

    /// The key slots of the data that stay, each with the secret that opens it. They are `first`,
    /// those that the options open, and, if `ask` and at a terminal, those that the user opens.
    pub fn keyslots(
        &self,
        header: &Header,
        device: &dyn BlockDevice,
        first: (u32, Key),
        ask: bool,
    ) -> Result<Vec<(u32, Key)>, Failure> {
        let mut kept = vec![first];
        let left = |kept: &[(u32, Key)]| -> Result<Vec<u32>, Failure> {
            let all = header.keyslots_of_data()?.iter().copied();
            let is_kept = |slot: &u32| kept.iter().any(|(other, _)| other == slot);
            // A slot that no passphrase opens here cannot be kept.
            let opens = |slot: &u32| header.check_keyslot(*slot, &Limits::default()).is_ok();
            Ok(all.filter(|slot| !is_kept(slot) && opens(slot)).collect())
        };
        let opens = |slot: u32, secret: Key| -> Result<Option<(u32, Key)>, Failure> {
            let copy = Secret::Passphrase(Key::from_slice(secret.as_bytes()));
            match header.unlock(device, &copy, Some(slot), &Limits::default()) {
                Ok(_) => Ok(Some((slot, secret))),
                Err(VolumeError::NoKeyslotFits { .. }) => Ok(None),
                Err(error) => Err(error.into()),
            }
        };
        let lines = self
            .passphrase_files
            .iter()
            .map(|path| secrets::passphrase_in(path));
        let wholes = self.key_files.iter().map(|path| secrets::key_in(path));
        for secret in lines.chain(wholes) {
            let secret = secret?;
            let slot = operate::opened(header, device, &kept, &secret, &Limits::default())?;
            kept.push((slot, secret));
        }
        if !ask || !secrets::can_ask() {
            return Ok(kept);
        }
        for slot in left(&kept)? {
            let mut question = format!("Passphrase for key slot {slot}, to keep it: ");
            for nth in 1.. {
                let secret = secrets::ask(&question)?;
                if secret.as_bytes().is_empty() {
                    break;
                }
                match opens(slot, secret)? {
                    Some(found) => {
                        kept.push(found);
                        break;
                    }
                    None if nth == TRIES => return Err(NONE_FITS.into()),
                    None => question = format!("That does not open key slot {slot}. Try again: "),
                }
            }
        }
        Ok(kept)
    }
}
