//! The cost of opening a new key slot, its secret, and the choice of old key slots that stay when
//! the volume key changes.

use super::secrets;
use crate::cli::Failure;
use crate::cli::progress::Progress;
use block::BlockDevice;
use cipher::Key;
use clap::Args;
use std::path::{Path, PathBuf};
use std::time::Duration;
use volume::luks2::Header;
use volume::operate::{self, KeySlotCost};
use volume::{Format, Hash, Kdf, KdfKind, Limits, VolumeError};

/// The options that say how a passphrase becomes the key of a keyslot.
#[derive(Debug, Args)]
pub struct KdfArguments {
    /// Key derivation [default: argon2id; for LUKS1 pbkdf2]
    #[arg(long, value_parser = ["pbkdf2", "argon2i", "argon2id"])]
    pbkdf: Option<String>,
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
        self.found(|cost| cost.kdf(format, hash))
    }

    /// What `find` finds for what is said. The user sees that this takes its time.
    pub fn found(
        &self,
        find: impl FnOnce(KeySlotCost) -> Result<Kdf, VolumeError>,
    ) -> Result<Kdf, Failure> {
        let cost = KeySlotCost {
            kind: self.pbkdf.as_deref().and_then(KdfKind::named),
            time: self.iter_time.map(Duration::from_millis),
            iterations: self.pbkdf_force_iterations,
            memory_kib: self.pbkdf_memory,
            lanes: self.pbkdf_parallel,
        };
        let waiting = Progress::waiting("calibrating the key derivation for this machine");
        let found = find(cost);
        waiting.finish();
        Ok(found?)
    }
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
    pub allow_empty_passphrase: bool,
}

impl NewSecretArguments {
    /// Whether an option says where the secret is.
    pub fn is_given(&self) -> bool {
        self.new_passphrase_file.is_some() || self.new_key_file.is_some()
    }

    /// The new secret: asked for twice if no option says.
    pub fn secret(&self, image: &Path) -> Result<Key, Failure> {
        self.secret_beside(image, false)
    }

    /// The same, for a volume that may open with key files alone.
    pub fn secret_beside(&self, image: &Path, keyfiles: bool) -> Result<Key, Failure> {
        let may_be_empty = self.allow_empty_passphrase || keyfiles;
        match (&self.new_passphrase_file, &self.new_key_file) {
            (Some(path), _) => secrets::checked(secrets::passphrase_in(path)?, may_be_empty),
            (None, Some(path)) => secrets::key_in(path).inspect(secrets::warn_of_equal_bytes),
            (None, None) => secrets::ask_twice(image, may_be_empty),
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
        let limits = Limits::default();
        let left = |kept: &[(u32, Key)]| operate::left(header, kept, &limits);
        let mut kept = vec![first];
        let lines = self
            .passphrase_files
            .iter()
            .map(|path| secrets::passphrase_in(path));
        let wholes = self.key_files.iter().map(|path| secrets::key_in(path));
        for secret in lines.chain(wholes) {
            let secret = secret?;
            let slot = operate::opened(header, device, &left(&kept)?, &secret, &limits)?;
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
                match operate::opened(header, device, &[slot], &secret, &limits) {
                    Ok(slot) => {
                        kept.push((slot, secret));
                        break;
                    }
                    Err(VolumeError::NoKeyslotFits { .. }) if nth < TRIES => {
                        question = format!("That does not open key slot {slot}. Try again: ");
                    }
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(kept)
    }
}
