//! `cryptmark volume reencrypt`: another cipher or key for the data where it is.

use super::arguments::VolumeArguments;
use super::disk::Names;
use super::keyslot::{KdfArguments, KeptArguments};
use super::open::Search;
use super::secrets::SecretArguments;
use crate::cli::progress::Progress;
use crate::cli::{Failure, print, stop_on_signal};
use block::BlockDevice;
use cipher::Key;
use clap::Args;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use volume::luks2::Header;
use volume::operate::{self, Caller, Change, Reencrypted};
use volume::{Format, Hash, Kdf, Secret, VolumeError};

/// Options of `cryptmark volume reencrypt`.
///
/// --cipher, --key-size, --sector-size and --hash give the new values. With --type
/// veracrypt or tcrypt, a file beside the volume (or the file of --header) holds the
/// journal and both keys until all is done.
#[derive(Debug, Args)]
#[command(
    mut_arg("cipher", |arg| arg.help("The new cipher in dm-crypt notation; for VeraCrypt, e.g. serpent-aes [default: unchanged]")),
    mut_arg("key_size", |arg| arg.help("The new key size in bits as in cryptsetup, e.g. 512 for AES-256 in XTS")),
    mut_arg("sector_size", |arg| arg.help("The new encryption sector size in bytes: 512, 1024, 2048 or 4096 [default: unchanged]")),
    mut_arg("hash", |arg| arg.help("The new hash: of the passphrase for TrueCrypt and VeraCrypt, else of PBKDF2"))
)]
pub struct ReencryptOptions {
    #[command(flatten)]
    volume: VolumeArguments,
    #[command(flatten)]
    secret: SecretArguments,
    #[command(flatten)]
    kdf: KdfArguments,
    #[command(flatten)]
    kept: KeptArguments,
    /// Encrypt a file or device that is not encrypted
    #[arg(long, conflicts_with = "decrypt")]
    encrypt: bool,
    /// With --encrypt: allow an empty passphrase
    #[arg(long, requires = "encrypt", conflicts_with_all = ["decrypt", "passphrase_files", "key_files"])]
    allow_empty_passphrase: bool,
    /// Decrypt the volume permanently
    #[arg(long)]
    decrypt: bool,
    /// Confirm the loss of key slots whose passphrases are not given, of a hidden volume, or of another volume that begins there; and accept a weak cipher
    #[arg(long)]
    yes: bool,
    /// Show no progress
    #[arg(long)]
    no_progress: bool,
}

/// Runs the command; what it says comes when all is done.
pub fn run(options: &ReencryptOptions, names: &Names) -> Result<(), Failure> {
    let volume = &options.volume.with(names);
    let change = match (options.encrypt, options.decrypt) {
        (true, _) => Change::Encrypt,
        (_, true) => Change::Decrypt,
        _ => Change::Anew,
    };
    let mut wanted = volume.options(options.yes)?;
    wanted.format = volume.named_format();
    let asked = Asked {
        options,
        shown: Mutex::default(),
    };
    let done = operate::reencrypt(&volume.site(), change, &wanted, &asked);
    // Its bar goes before anything is said.
    drop(asked);
    match done.map_err(|error| volume.at(error))? {
        Reencrypted::Done => print("done\n"),
        Reencrypted::PutBack => {
            print("the header is back in its place; no reencryption had begun\n")
        }
    }
}

/// The user, who is asked for secrets, and sees how far it is.
struct Asked<'a> {
    options: &'a ReencryptOptions,
    shown: Mutex<Shown>,
}

/// What the user sees meanwhile, and what ends it.
#[derive(Default)]
enum Shown {
    #[default]
    Nothing,
    Search(Search),
    Work(Progress, Arc<AtomicBool>),
}

impl Asked<'_> {
    fn shown(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Caller for Asked<'_> {
    fn secret(&self, format: Format) -> Result<Secret, VolumeError> {
        let image = self.options.volume.image();
        Ok(self.options.secret.secret(format, image)?)
    }

    fn new_secret(&self) -> Result<Key, VolumeError> {
        let (image, may_be_empty) = (
            self.options.volume.image(),
            self.options.allow_empty_passphrase,
        );
        Ok(self.options.secret.first_secret(image, may_be_empty)?)
    }

    fn kept(
        &self,
        header: &Header,
        device: &dyn BlockDevice,
        first: (u32, Key),
    ) -> Result<Vec<(u32, Key)>, VolumeError> {
        let ask = !self.options.yes;
        Ok(self.options.kept.keyslots(header, device, first, ask)?)
    }

    fn others(&self) -> usize {
        self.options.kept.count()
    }

    fn chooses_cost(&self) -> bool {
        self.options.kdf.given().is_some()
    }

    fn derivation(&self, hash: Option<Hash>) -> Result<Kdf, VolumeError> {
        *self.shown() = Shown::Nothing;
        Ok(self.options.kdf.kdf(Format::Luks2, hash)?)
    }

    fn warn(&self, what: &str) {
        eprintln!("warning: {what}");
    }

    fn begin(&self) -> Result<(), VolumeError> {
        let mut shown = self.shown();
        if !matches!(*shown, Shown::Work(..)) {
            let stop = stop_on_signal()?;
            *shown = Shown::Work(Progress::bytes(self.options.no_progress, 0), stop);
        }
        Ok(())
    }

    fn search(&self, done: u64, total: u64) -> ControlFlow<()> {
        let mut shown = self.shown();
        if !matches!(*shown, Shown::Search(_)) {
            match Search::start() {
                Ok(search) => *shown = Shown::Search(search),
                Err(_) => return ControlFlow::Break(()),
            }
        }
        match &*shown {
            Shown::Search(search) => search.watch(done, total),
            _ => ControlFlow::Continue(()),
        }
    }

    fn report(&self, done: u64, total: u64) -> ControlFlow<()> {
        match &*self.shown() {
            Shown::Work(progress, stop) => {
                progress.counted(done, total);
                match stop.load(Ordering::Relaxed) {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                }
            }
            _ => ControlFlow::Continue(()),
        }
    }
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        if let Shown::Work(progress, _) = &*self.shown() {
            progress.finish();
        }
    }
}
