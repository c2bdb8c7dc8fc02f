//! `cryptmark volume create`: a new volume in a file or on a device.

mod encryption;
mod ground;

pub use ground::Ground;

use encryption::{CipherName, Encryption};

use super::arguments::Extent;
use super::copy::tell;
use super::create_tcrypt;
use super::disk::{self, Disk};
use super::keyslot::{KdfArguments, NewSecretArguments, keyslot_options, named_hash};
use super::losses;
use super::secrets::SecretArguments;
use super::volatile;
use crate::cli::progress::Progress;
use crate::cli::{Failure, print_done, standard, stop_on_signal};
use block::hold;
use block::layer::Slice;
use block::{BlockDevice, ByteRange, transfer};
use cipher::{CipherSpec, IvSector, Key, SectorLayout, SectorSize, Weakness};
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use volume::luks2::KeyslotOptions;
use volume::tcrypt::Family;
use volume::{
    Access, CryptDevice, Draft, Format, Mapping, Parameters, SealedDevice, VolumeError, luks1,
    luks2,
};

/// cryptsetup's default: AES in XTS with 512 bits, two keys of 256.
const CIPHER: &str = "aes-xts-plain64";
const XTS_KEY_BYTES: usize = 64;

/// Options of `cryptmark volume create`.
#[derive(Debug, Args)]
pub struct CreateOptions {
    /// The volume: a block device, an NBD export (nbd+unix://, nbd://), or a file, which is created if it does not exist
    pub image: PathBuf,
    /// Format of the volume
    #[arg(long = "type", value_enum, default_value = "luks2")]
    kind: Kind,
    /// Size of the new file, header included: in 512-byte sectors, or with a unit: 1G or 1GiB (2^30), 1GB (10^9)
    #[arg(long, short = 'b')]
    pub size: Option<Extent>,
    /// Cipher of the data in dm-crypt notation; for VeraCrypt, e.g. aes-twofish-serpent
    #[arg(long, short = 'c', value_name = "SPEC", default_value = CIPHER)]
    pub cipher: CipherName,
    /// Key size in bits [default: 512 for XTS, else 256 or the cipher's longest]
    #[arg(long, short = 's', value_name = "BITS")]
    key_size: Option<usize>,
    /// Hash of the anti-forensic splitter and of PBKDF2 [default: sha256; for VeraCrypt sha512]
    #[arg(long, value_name = "HASH")]
    pub hash: Option<String>,
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
    pub fn family(&self) -> Option<Family> {
        match self.kind {
            Kind::Tcrypt => Some(Family::TrueCrypt),
            Kind::Veracrypt => Some(Family::VeraCrypt),
            Kind::Luks1 | Kind::Luks2 | Kind::Plain | Kind::Cryptoloop => None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    Luks1,
    Luks2,
    Tcrypt,
    Veracrypt,
    Plain,
    Cryptoloop,
}

/// Runs the command.
pub fn run(options: &CreateOptions) -> Result<(), Failure> {
    options.refuse_foreign_options()?;
    options.check_secrets()?;
    match (options.family(), options.tcrypt_hidden) {
        (None, _) if matches!(options.kind, Kind::Plain | Kind::Cryptoloop) => headless(options),
        (None, _) => luks(options),
        (Some(family), None) => create_tcrypt::normal(options, family),
        (Some(family), Some(size)) => create_tcrypt::hidden(options, family, size.bytes),
    }
}

/// A volume without a header is noise: whatever opens it later makes it what it is.
fn headless(options: &CreateOptions) -> Result<(), Failure> {
    let ground = Ground::take(&options.image, options.size, options.yes)?;
    let data = ByteRange::new(0, ground.device.geometry().size);
    ground.begin()?;
    ground.device.reserve(data)?;
    fill(&ground.device, data, options.no_progress).map_err(|error| ground.overwritten(error))?;
    ground.keep()?;
    print_done(&format!(
        "{} bytes of noise; give the cipher and the passphrase whenever you open it\n",
        data.length
    ));
    Ok(())
}

/// Fills `data` with noise: zeros that are encrypted under a random key, which is then forgotten.
pub fn fill(device: &Disk, data: ByteRange, silent: bool) -> Result<(), Failure> {
    let spec: CipherSpec = CIPHER.parse().map_err(VolumeError::Cipher)?;
    let mapping = Mapping {
        key: Key::random(spec.default_key_size()).map_err(VolumeError::Cipher)?,
        spec,
        layout: SectorLayout::default(),
        data,
        first: IvSector::new(0),
        backend: None,
        sharing: None,
        allow_discards: false,
        holes: false,
    };
    let noise = CryptDevice::new(device, mapping)?;
    let stop = stop_on_signal()?;
    let progress = Progress::bytes(silent, data.length);
    let report = |done| tell(&progress, &stop, done);
    let outcome = transfer::zero(&noise, &report);
    progress.finish();
    Ok(outcome?)
}

fn luks(options: &CreateOptions) -> Result<(), Failure> {
    let encryption = Encryption::of(options)?;
    let key_bytes = encryption.key_bytes;
    let hash = named_hash(options.hash.as_deref())?;
    volume::checked_uuid(options.uuid.as_deref())?;
    if let Some(header) = &options.header
        && hold::is_same(header, &options.image)
    {
        return Err(Failure::new(
            2,
            format!("{} would be header and data at once", header.display()),
            "Name another file with --header, or omit it.",
        ));
    }

    let data = Ground::take(&options.image, options.size, options.yes)?;
    let header = match &options.header {
        None => None,
        Some(path) => {
            let size = Extent { bytes: HEADER_FILE };
            let ground = Ground::take(path, Some(size), options.yes)?;
            volatile::warn(path, &options.image);
            Some(ground)
        }
    };
    if let Some(spec) = encryption.data {
        warn(spec, data.device.geometry().size, options.yes)?;
    }
    let secret = options
        .secret
        .first_secret(&options.image, options.new.empty())?;
    let volume_key = match options.secret.volume_key()? {
        Some(key) => key,
        None => Key::random(key_bytes).map_err(VolumeError::Cipher)?,
    };
    if encryption.is_halved(&volume_key) {
        return Err(Failure::new(
            2,
            "both halves of the volume key are the same: XTS needs two keys",
            "Give a --volume-key-file of random bytes, or omit it.",
        ));
    }
    let format = match options.kind {
        Kind::Luks1 => Format::Luks1,
        _ => Format::Luks2,
    };
    let kdf = options.kdf.kdf(format, hash)?;
    let device = &header.as_ref().unwrap_or(&data).device;
    // An impossible request fails here, while the old volume is still there.
    let draft = Draft::new(device);
    let mut sealed = None;
    let key = || Key::from_slice(volume_key.as_bytes());
    let (uuid, mapping) = match options.kind {
        Kind::Luks1 => {
            let volume::Kdf::Pbkdf2 { hash, iterations } = kdf else {
                unreachable!("LUKS1 has no other");
            };
            let creation = luks1::Creation {
                spec: options.cipher.plain()?,
                key_bytes,
                hash,
                iterations,
                payload_offset: options.offset.map(|offset| offset.bytes),
                detached: header.is_some(),
                uuid: options.uuid.clone(),
            };
            let header = luks1::Header::create(&draft, &creation, &volume_key, &secret)?;
            let mapping = header.mapping(key(), &data.device)?;
            (header.uuid, Some(mapping))
        }
        _ => {
            let creation = luks2::Creation {
                cipher: encryption.cipher.clone(),
                key_bytes,
                sector_size: options
                    .sector_size()?
                    .unwrap_or_else(|| natural(&data.device)),
                keyslot: KeyslotOptions {
                    af_hash: hash.unwrap_or(volume::Hash::Sha256),
                    ..keyslot_options(kdf)
                },
                data_offset: options.offset.map(|offset| offset.bytes),
                detached: header.is_some(),
                label: options.label.clone(),
                subsystem: options.subsystem.clone(),
                uuid: options.uuid.clone(),
            };
            let header = luks2::Header::create(&draft, &creation, &volume_key, &secret)?;
            let mapping = match header.is_sealed() {
                true => {
                    let mapping = header.sealed_mapping(key(), Access::Write)?;
                    sealed = Some(SealedDevice::fresh(&data.device, &mapping)?);
                    None
                }
                false => Some(header.mapping(key(), &data.device)?),
            };
            (header.binary.uuid, mapping)
        }
    };
    let before_data = options.offset.map_or(HEADER_FILE, |offset| offset.bytes);
    for ground in header.iter().chain([&data]) {
        ground.begin()?;
    }
    device.reserve(ByteRange::new(0, before_data.min(device.geometry().size)))?;
    let write = || -> Result<(), Failure> {
        if options.yes {
            losses::shred_header(device)?;
        }
        if let Some(mapping) = mapping.filter(|_| options.wipe || data.is_full()) {
            take_over(&data.device, mapping, options)?;
        }
        if let Some(sealed) = sealed {
            // Without a header, the half-written data are not taken for a volume.
            data.device
                .reserve(ByteRange::new(0, data.device.geometry().size))?;
            encryption::format(&sealed, options)?;
        }
        Ok(draft.write()?)
    };
    write().map_err(|error| data.overwritten(error))?;
    for ground in header.into_iter().chain([data]) {
        ground.keep()?;
    }
    print_done(&format!(
        "{format} volume {uuid}: {encryption}, {} bits, {kdf}\n",
        key_bytes * 8
    ));
    Ok(())
}

/// Writes zeros into the volume: everywhere, or where a file system, or a table, of before would be
/// found. It shows later that the data belong to their header.
fn take_over(data: &Disk, mapping: Mapping, options: &CreateOptions) -> Result<(), Failure> {
    const EDGE: u64 = 1 << 20;
    let size = mapping.data.length;
    let volume = CryptDevice::new(data, mapping)?;
    let stop = stop_on_signal()?;
    let ranges = match options.wipe {
        true => vec![ByteRange::new(0, size)],
        false => {
            eprintln!(
                "warning: the old data of {} stay readable until the volume is written there: \
                 --wipe overwrites them now",
                options.image.display()
            );
            let edge = EDGE.min(size);
            vec![ByteRange::new(0, edge), ByteRange::new(size - edge, edge)]
        }
    };
    for range in ranges {
        let part = Slice::new(&volume, range).map_err(VolumeError::Block)?;
        let progress = Progress::bytes(options.no_progress, range.length);
        let report = |done| tell(&progress, &stop, done);
        let outcome = transfer::zero(&part, &report);
        progress.finish();
        outcome?;
    }
    Ok(())
}

/// A detached header, with room for all keyslots.
pub const HEADER_FILE: u64 = 16 << 20;

/// The length of a new key if the user names none.
pub fn usual_key_bytes(spec: &CipherSpec) -> usize {
    let possible = spec.key_sizes();
    match spec.mode() == cipher::Mode::Xts && possible.contains(&XTS_KEY_BYTES) {
        true => XTS_KEY_BYTES,
        false => spec.default_key_size(),
    }
}

/// The sector size that the device's own blocks suggest.
pub fn natural(device: &Disk) -> SectorSize {
    let geometry = device.geometry();
    let whole = geometry.size.is_multiple_of(4096);
    match SectorSize::from_bytes(geometry.physical_block) {
        Some(size) if whole => size,
        _ => SectorSize::B512,
    }
}

/// Refuses what hides nothing, unless the user insists, and warns of the rest.
pub fn warn(spec: CipherSpec, size: u64, yes: bool) -> Result<(), Failure> {
    for weakness in spec.weaknesses() {
        let broken = match weakness {
            Weakness::NoEncryption
            | Weakness::ShortKey { .. }
            | Weakness::EqualBlocksShow
            | Weakness::EqualSectorsShow => true,
            Weakness::SmallBlock { limit } | Weakness::RepeatedIvs { limit } => size > limit,
            _ => false,
        };
        if broken && !yes {
            return Err(Failure::new(
                4,
                format!("{spec} does not protect: {weakness}"),
                "Take aes-xts-plain64, or give --yes if that is what you want.",
            ));
        }
        eprintln!("warning: {spec}: {weakness}");
    }
    Ok(())
}

impl CreateOptions {
    fn key_bytes(&self) -> Result<Option<usize>, Failure> {
        match self.key_size {
            Some(bits) if !bits.is_multiple_of(8) => Err(Failure::new(
                2,
                format!("a key of {bits} bits is not possible"),
                "Give a multiple of 8, as in --key-size 256.",
            )),
            bits => Ok(bits.map(|bits| bits / 8)),
        }
    }

    /// Refuses a secret in a file that becomes the volume, because the secret would be lost.
    fn check_secrets(&self) -> Result<(), Failure> {
        let keyfiles = self
            .keyfiles
            .iter()
            .map(|path| ("--keyfile", path.as_path()));
        for (option, path) in self.secret.named().chain(self.new.named()).chain(keyfiles) {
            for written in std::iter::once(&self.image).chain(&self.header) {
                disk::check_distinct(option, standard::input(path), written)?;
            }
        }
        Ok(())
    }

    fn sector_size(&self) -> Result<Option<SectorSize>, Failure> {
        let parameters = Parameters {
            sector_size: self.sector_size,
            ..Parameters::default()
        };
        Ok(parameters.sector_size()?)
    }

    /// An option that the format has no use for is a mistake, and not silently
    /// left aside.
    fn refuse_foreign_options(&self) -> Result<(), Failure> {
        use Kind::{Luks1, Luks2, Tcrypt, Veracrypt};
        const LUKS: &[Kind] = &[Luks1, Luks2];
        const TCRYPT: &[Kind] = &[Tcrypt, Veracrypt];
        const WITH_HEADER: &[Kind] = &[Luks1, Luks2, Tcrypt, Veracrypt];
        let given = [
            ("--sector-size", self.sector_size.is_some(), &[Luks2][..]),
            ("--integrity", self.integrity.is_some(), &[Luks2]),
            ("--label", !self.label.is_empty(), &[Luks2]),
            ("--subsystem", !self.subsystem.is_empty(), &[Luks2]),
            ("--uuid", self.uuid.is_some(), LUKS),
            ("--key-size", self.key_size.is_some(), LUKS),
            ("--offset", self.offset.is_some(), LUKS),
            ("--wipe", self.wipe, LUKS),
            ("--header", self.header.is_some(), LUKS),
            ("--hash", self.hash.is_some(), WITH_HEADER),
            (
                self.secret.given().unwrap_or_default(),
                self.secret.given().is_some(),
                WITH_HEADER,
            ),
            ("--tcrypt-hidden", self.tcrypt_hidden.is_some(), TCRYPT),
            (
                "--veracrypt-pim",
                self.veracrypt_pim.is_some(),
                &[Veracrypt],
            ),
            ("--keyfile", !self.keyfiles.is_empty(), TCRYPT),
            ("--quick", self.quick, TCRYPT),
        ];
        if self.new.is_given() && self.tcrypt_hidden.is_none() {
            return Err(Failure::new(
                2,
                "--new-passphrase-file and --new-key-file are for the hidden volume in another one",
                "Give --passphrase-file or --key-file, or --tcrypt-hidden.",
            ));
        }
        let foreign = given
            .iter()
            .find(|(_, given, kinds)| *given && !kinds.contains(&self.kind));
        match foreign {
            None => Ok(()),
            Some((option, ..)) => Err(Failure::new(
                2,
                format!("{option} has no meaning for {}", self.kind.article()),
                "Omit it, or choose another --type.",
            )),
        }
    }
}

impl Kind {
    /// The volume in a sentence.
    const fn article(self) -> &'static str {
        match self {
            Self::Luks1 => "a LUKS1 volume",
            Self::Luks2 => "a LUKS2 volume",
            Self::Tcrypt => "a TrueCrypt volume",
            Self::Veracrypt => "a VeraCrypt volume",
            Self::Plain => "a volume without a header",
            Self::Cryptoloop => "a cryptoloop volume, which has no header",
        }
    }
}
