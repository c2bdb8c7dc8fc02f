//! `cryptmark volume create`: a new volume in a file or on a device.

use super::arguments::{Extent, VolumeArguments};
use super::create_tcrypt;
use super::disk::{self, Names};
use super::keyslot::{KdfArguments, NewSecretArguments};
use super::losses::accepted;
use super::secrets::SecretArguments;
use crate::cli::progress::Progress;
use crate::cli::{Failure, limits, print_done, stop_on_signal};
use block::BlockDevice;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use volume::judge::Use;
use volume::operate::{self, Created, Creation, KeySlotCost, NewKey};
use volume::tcrypt::{Family, Keyfiles};
use volume::{Format, HEADER_FILE, NewFile, Parameters, Place, VolumeError};

/// Options of `cryptmark volume create`.
#[derive(Debug, Args)]
pub struct CreateOptions {
    /// The volume: a block device, an NBD export (nbd+unix://, nbd://), or a file, which is created if it does not exist
    pub image: PathBuf,
    /// Format of the volume
    #[arg(long = "type", value_parser = made(), default_value = "luks2")]
    kind: Format,
    /// Size of the new file, header included: in 512-byte sectors, or with a unit: 1G or 1GiB (2^30), 1GB (10^9)
    #[arg(long, short = 'b')]
    pub size: Option<Extent>,
    /// Cipher of the data in dm-crypt notation; for VeraCrypt, e.g. aes-twofish-serpent
    /// [default: aes-xts-plain64]
    #[arg(long, short = 'c', value_name = "SPEC")]
    cipher: Option<String>,
    /// Key size in bits [default: 512 for XTS, else 256 or the cipher's longest]
    #[arg(long, short = 's', value_name = "BITS")]
    key_size: Option<usize>,
    /// Hash of the anti-forensic splitter and of PBKDF2 [default: sha256; for VeraCrypt sha512]
    #[arg(long, value_name = "HASH")]
    hash: Option<String>,
    /// Encryption sector size in bytes; LUKS2 only [default: 4096 if the device's blocks are that large, else 512]
    #[arg(long, value_name = "BYTES")]
    sector_size: Option<u32>,
    /// Authenticate the data with a tag for each sector; LUKS2 only: aead (with -c aes-gcm-random or
    /// aegis128-random), poly1305 (chacha20-random), hmac-sha256, hmac-sha512, hmac-sha1, or none
    #[arg(long, value_name = "ALG")]
    integrity: Option<String>,
    /// Do not write all sectors first; a sector cannot be read before it is written
    #[arg(long, requires = "integrity")]
    integrity_no_wipe: bool,
    /// Start of the data: in 512-byte sectors, or with a unit: 16M or 16MiB (2^20), 16MB (10^6)
    #[arg(long, value_name = "SECTORS")]
    offset: Option<Extent>,
    /// Write the header to this file instead
    #[arg(long, value_name = "FILE")]
    header: Option<PathBuf>,
    /// Label of the volume; LUKS2 only
    #[arg(long, default_value = "", hide_default_value = true)]
    label: String,
    /// Subsystem label of the volume; LUKS2 only
    #[arg(long, default_value = "", hide_default_value = true)]
    subsystem: String,
    /// UUID [default: a random one]
    #[arg(long)]
    uuid: Option<String>,
    #[command(flatten)]
    kdf: KdfArguments,
    /// Make a hidden volume of this size in an existing VeraCrypt volume: the passphrase is the
    /// outer volume's, the new one the hidden volume's. An existing hidden volume is destroyed
    #[arg(long, value_name = "SIZE")]
    tcrypt_hidden: Option<Extent>,
    /// VeraCrypt's Personal Iterations Multiplier (PIM)
    #[arg(long, value_name = "PIM")]
    pub veracrypt_pim: Option<u32>,
    /// TrueCrypt or VeraCrypt key file, or a folder of them, used with the passphrase; can be repeated
    #[arg(long = "keyfile", value_name = "FILE")]
    pub keyfiles: Vec<PathBuf>,
    /// PIM of the outer volume
    #[arg(long, value_name = "PIM", requires = "tcrypt_hidden")]
    pub outer_pim: Option<u32>,
    /// Key file of the outer volume; can be repeated
    #[arg(
        long = "outer-keyfile",
        value_name = "FILE",
        requires = "tcrypt_hidden"
    )]
    pub outer_keyfiles: Vec<PathBuf>,
    /// Overwrite all old data of the file or device; otherwise they stay readable until the volume is
    /// written there
    #[arg(long)]
    wipe: bool,
    /// Do not fill a VeraCrypt volume with noise; its unused space can then be recognised
    #[arg(long)]
    pub quick: bool,
    #[command(flatten)]
    pub secret: SecretArguments,
    #[command(flatten)]
    pub new: NewSecretArguments,
    /// Show no progress
    #[arg(long)]
    pub no_progress: bool,
    /// Overwrite the contents of the file or device, or a hidden volume that may be there, and accept
    /// a weak cipher or PIM
    #[arg(long)]
    pub yes: bool,
}

impl CreateOptions {
    /// Whose volume it will be, if it is one of TrueCrypt or VeraCrypt.
    pub const fn family(&self) -> Option<Family> {
        self.kind.family()
    }
}

/// The formats that are made here.
fn made() -> impl TypedValueParser<Value = Format> {
    let names = [
        "luks1",
        "luks2",
        "tcrypt",
        "veracrypt",
        "plain",
        "cryptoloop",
    ];
    PossibleValuesParser::new(names).try_map(|name| Format::parse(&name))
}

/// Runs the command.
pub fn run(options: &CreateOptions, names: &Names) -> Result<(), Failure> {
    options.refuse_foreign_options()?;
    match (options.family(), options.tcrypt_hidden) {
        (Some(family), Some(size)) => create_tcrypt::hidden(options, family, size.bytes, names),
        _ => whole(options, names),
    }
}

/// A volume of all of a file or device.
fn whole(options: &CreateOptions, names: &Names) -> Result<(), Failure> {
    let mut creation = options.creation()?;
    creation.check()?;
    let mut place = options.place(names)?;
    for warning in operate::check_create(&place, &creation).map_err(|error| options.said(error))? {
        eprintln!("warning: {warning}");
    }
    let new = match creation.format {
        Format::Plain | Format::Cryptoloop => None,
        format => Some(NewKey {
            secret: options.first_secret(&creation)?,
            cost: match options.family() {
                Some(_) => KeySlotCost::default(),
                None => options.kdf.kdf(format, creation.parameters.hash()?)?.into(),
            },
            allow_empty: options.new.allow_empty_passphrase,
        }),
    };
    creation.volume_key = options.secret.volume_key()?;
    let created = watched(options.no_progress, |report| {
        operate::create(&mut place, new.as_ref(), &creation, report)
    })?;
    let created = created.map_err(|error| options.unfinished(error, names))?;
    if created.leaves_old_data {
        eprintln!(
            "warning: the old data of {} stay readable until the volume is written there: --wipe \
             overwrites them now",
            options.image.display()
        );
    }
    print_done(&told(creation.format, &created));
    Ok(())
}

/// What was made, in a line.
fn told(format: Format, created: &Created) -> String {
    let Created {
        cipher, derivation, ..
    } = created;
    let (bytes, from) = (created.data.length, created.data.offset);
    match (&created.uuid, cipher.is_empty()) {
        (Some(uuid), _) => format!(
            "{format} volume {uuid}: {cipher}, {} bits, {derivation}\n",
            created.key_bits
        ),
        (None, true) => format!(
            "{bytes} bytes of noise; give the cipher and the passphrase whenever you open it\n"
        ),
        (None, false) => {
            format!("{format} volume: {cipher}, {derivation}, {bytes} bytes of data from {from}\n")
        }
    }
}

/// Does `work` with a bar that shows how far it is, until the user ends it.
pub fn watched<T>(silent: bool, work: impl FnOnce(operate::Report<'_>) -> T) -> Result<T, Failure> {
    let stop = stop_on_signal()?;
    let progress = Progress::bytes(silent, 0);
    let done = work(&|done, total| {
        progress.counted(done, total);
        match stop.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    });
    progress.finish();
    Ok(done)
}

impl CreateOptions {
    /// Takes what is at `path`, if it may be overwritten, or makes a file of this size.
    fn ground(
        &self,
        path: &Path,
        bytes: Option<u64>,
        names: &Names,
    ) -> Result<(Arc<dyn BlockDevice>, Option<NewFile>), Failure> {
        if disk::is_remote(path) || path.exists() {
            let is_other = |bytes| path.metadata().is_ok_and(|it| it.len() != bytes);
            if path == self.image && bytes.is_some_and(is_other) {
                eprintln!(
                    "warning: --size is for a new file: {} is there, and keeps its size",
                    path.display()
                );
            }
            return Ok((names.take_over(path, self.yes)?.device, None));
        }
        let made = Place::new_file(path, bytes)?;
        Ok((names.open(path, Use::Overwrite)?.device, made))
    }

    /// Takes the place of the volume, and of its header.
    fn place(&self, names: &Names) -> Result<Place, Failure> {
        if let Some(header) = &self.header {
            disk::check_distinct("--header", header, &self.image)?;
        }
        let bytes = self.size.map(|size| size.bytes);
        let Some(path) = &self.header else {
            let (data, made) = self.ground(&self.image, bytes, names)?;
            return Ok(Place::of(data, None).made(None, made));
        };
        let (header, made_header) = self.ground(path, Some(HEADER_FILE), names)?;
        let (data, made) = self.ground(&self.image, bytes, names)?;
        if let Some(warning) = block::warn_of_memory(path, &self.image) {
            eprintln!("warning: {warning}");
        }
        Ok(Place::of(data, Some(header)).made(made_header, made))
    }

    /// The options as the engine wants them.
    ///
    /// # Errors
    /// Those of reading key files.
    pub fn creation(&self) -> Result<Creation, Failure> {
        let keyfiles = match self.keyfiles.is_empty() {
            true => None,
            false => Some(Keyfiles::read(&self.keyfiles)?),
        };
        Ok(Creation {
            parameters: Parameters {
                cipher: self.cipher.clone(),
                key_size: self.key_size,
                hash: self.hash.clone(),
                sector_size: self.sector_size,
                offset: self.offset.map(|offset| offset.bytes),
                veracrypt_pim: self.veracrypt_pim,
                keyfiles,
                ..Parameters::default()
            },
            integrity: self.integrity.clone(),
            label: self.label.clone(),
            subsystem: self.subsystem.clone(),
            uuid: self.uuid.clone(),
            wipe: self.wipe,
            quick: self.quick || self.integrity_no_wipe,
            accepted: accepted(self.yes).to_vec(),
            stop: limits()?.stop,
            ..Creation::new(self.kind)
        })
    }

    /// The secret that the volume will open with. With key files, the passphrase may be empty, and
    /// is not asked for.
    fn first_secret(&self, creation: &Creation) -> Result<cipher::Key, Failure> {
        let has_keyfiles = creation.parameters.keyfiles.is_some();
        if has_keyfiles && !self.secret.is_given() {
            return Ok(cipher::Key::from_slice(&[]));
        }
        let may_be_empty = has_keyfiles || self.new.allow_empty_passphrase;
        self.secret.first_secret(&self.image, may_be_empty)
    }

    /// What is said of the volume, or of the file of its header, if it has this error.
    fn said(&self, error: VolumeError) -> Failure {
        VolumeArguments::at_place(&self.image, self.header.as_deref()).at(error)
    }

    /// Says of a volume that was not finished what is left of the data that were there.
    fn unfinished(&self, error: VolumeError, names: &Names) -> Failure {
        let error = match error {
            VolumeError::Overwritten { error } => error,
            error @ VolumeError::Stopped => {
                return self.said(error).with_remedy("Nothing was made.".to_owned());
            }
            error => return self.said(error),
        };
        let kept = match names.backups.kept() {
            Some(path) => format!(" The header that was there is kept in {}.", path.display()),
            None => String::new(),
        };
        let header = match &self.header {
            Some(header) => format!(" or its header {}", header.display()),
            None => String::new(),
        };
        Failure::from(*error).after(
            format!(
                "{}{header} is overwritten in part, and holds no finished volume",
                self.image.display()
            ),
            format!("Run the command again with --yes to make the volume.{kept}"),
        )
    }

    /// Refuses what only the program has options for, and this kind of volume no use; the engine
    /// refuses all else.
    fn refuse_foreign_options(&self) -> Result<(), Failure> {
        let is_luks = matches!(self.kind, Format::Luks1 | Format::Luks2);
        let is_tcrypt = self.family().is_some();
        let secret = self.secret.given();
        let kdf = self.kdf.given();
        let given = [
            ("--header", self.header.is_some(), is_luks),
            (kdf.unwrap_or_default(), kdf.is_some(), is_luks),
            ("--quick", self.quick, is_tcrypt),
            ("--tcrypt-hidden", self.tcrypt_hidden.is_some(), is_tcrypt),
            (
                secret.unwrap_or_default(),
                secret.is_some(),
                is_luks || is_tcrypt,
            ),
        ];
        if self.new.is_given() && self.tcrypt_hidden.is_none() {
            return Err(Failure::new(
                2,
                "--new-passphrase-file and --new-key-file are for the hidden volume in another one",
                "Give --passphrase-file or --key-file, or --tcrypt-hidden.",
            ));
        }
        match given.iter().find(|(_, given, fits)| *given && !fits) {
            None => Ok(()),
            Some((option, ..)) => Err(Failure::new(
                2,
                format!("{option} has no meaning for {}", self.kind.article()),
                "Omit it, or choose another --type.",
            )),
        }
    }
}
