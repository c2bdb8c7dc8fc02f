//! Which volume, and how to open it: cryptsetup's options.

mod devices;

pub use devices::{Devices, Volume};

use super::{losses, recognise};
use crate::cli::{Failure, limits};
use block::plain::word;
use clap::Args;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use volume::judge::State;
use volume::operate::Options;
use volume::recall::Pims;
use volume::tcrypt::{Family, Keyfiles};
use volume::{Format, Parameters, VolumeError, tcrypt};

/// cryptsetup's unit of places and lengths.
const SECTOR: u64 = 512;

/// The options that say which volume and how to open it.
#[derive(Clone, Debug, Default, Args)]
pub struct VolumeArguments {
    /// The volume: a file, a block device, or nbd+unix:///EXPORT?socket=PATH, nbd://HOST:PORT/EXPORT
    image: PathBuf,
    /// Type of the volume: luks1, luks2, luks, plain, tcrypt, veracrypt, cryptoloop, loopaes, bestcrypt, bitlk or fvault2 [default: found by its signature]
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<String>,
    /// Cipher in dm-crypt notation, if no header gives it
    #[arg(long, short = 'c', value_name = "SPEC")]
    cipher: Option<String>,
    /// Key size in bits as in cryptsetup, if no header gives it
    #[arg(long, short = 's', value_name = "BITS")]
    key_size: Option<usize>,
    /// Hash of the passphrase, if no header gives it: sha256, ripemd160, sha256:16, plain, …
    #[arg(long, value_name = "HASH")]
    hash: Option<String>,
    /// Start of the data, if no header gives it: in 512-byte sectors, or with a unit: 1M or 1MiB (2^20), 1MB (10^6)
    #[arg(long, value_name = "SECTORS")]
    offset: Option<Extent>,
    /// IV number of the first sector, in 512-byte sectors
    #[arg(long, short = 'p', value_name = "SECTORS")]
    skip: Option<u64>,
    /// Length of the data, if no header gives it: in 512-byte sectors, or with a unit: 1G or 1GiB (2^30), 1GB (10^9)
    #[arg(long, short = 'b', value_name = "SECTORS")]
    size: Option<Extent>,
    /// Encryption sector size in bytes, if no header gives it: 512, 1024, 2048 or 4096
    #[arg(long, value_name = "BYTES")]
    sector_size: Option<u32>,
    /// IVs count encryption sectors, not 512-byte units
    #[arg(long)]
    iv_large_sectors: bool,
    /// The file or device with the header, if it is not the volume itself
    #[arg(long, value_name = "FILE")]
    header: Option<PathBuf>,
    /// The key slot to open [default: any]
    #[arg(long, short = 'S', value_name = "N")]
    key_slot: Option<u32>,
    /// Open the hidden volume
    #[arg(long)]
    tcrypt_hidden: bool,
    /// Open with the copy of the header near the end
    #[arg(long)]
    tcrypt_backup: bool,
    /// Open an encrypted system partition with the header on its disk
    #[arg(long, conflicts_with_all = ["tcrypt_hidden", "tcrypt_backup"])]
    tcrypt_system: bool,
    /// VeraCrypt's Personal Iterations Multiplier (PIM)
    #[arg(long, value_name = "PIM")]
    veracrypt_pim: Option<Pims>,
    /// TrueCrypt or VeraCrypt key file, or a folder of them, used with the passphrase; can be repeated
    #[arg(long = "keyfile", value_name = "FILE")]
    keyfiles: Vec<PathBuf>,
    /// Read a BestCrypt container with a guessed numbering of its sectors
    #[arg(long)]
    experimental: bool,
    /// Key derivation of cryptoloop: util-linux, debian-rmd160 or hashalot-HASH
    #[arg(long, value_name = "HOW")]
    key_derivation: Option<String>,
}

/// A place or length, as cryptsetup takes it: a bare number counts sectors of 512
/// bytes, `M` and `MiB` are 2²⁰, `MB` is 10⁶.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// The same in bytes.
    pub bytes: u64,
}

impl FromStr for Extent {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
        let number: u64 = digits.parse().map_err(
            |_| "give a whole number of sectors, or a size such as 16M, 16MiB (2^20) or 16MB (10^6)",
        )?;
        let suffix = text[digits.len()..].to_ascii_lowercase();
        let (letter, base) = match suffix.as_bytes() {
            [] => (b's', 0),
            [letter] => (*letter, 1024),
            [letter, b'i', b'b'] => (*letter, 1024),
            [letter, b'b'] => (*letter, 1000),
            _ => (0, 0),
        };
        let power = match letter {
            b's' if base != 1000 => 0,
            b'k' => 1,
            b'm' => 2,
            b'g' => 3,
            b't' => 4,
            b'p' => 5,
            _ => return Err("give one of the units K, M, G, T and P, alone or with iB or B"),
        };
        let unit = match letter {
            b's' => SECTOR,
            _ => u64::pow(base, power),
        };
        match number.checked_mul(unit) {
            Some(bytes) => Ok(Self { bytes }),
            None => Err("more bytes than any device has"),
        }
    }
}

impl VolumeArguments {
    /// The volume at `image`, with a header of its own or in another file.
    pub fn at_place(image: &Path, header: Option<&Path>) -> Self {
        Self {
            image: image.to_owned(),
            header: header.map(Path::to_owned),
            ..Self::default()
        }
    }

    /// The volume's path.
    pub fn image(&self) -> &Path {
        &self.image
    }

    /// The keyslot that the user named.
    pub fn key_slot(&self) -> Option<u32> {
        self.key_slot
    }

    /// The file with the header that the user has named.
    pub fn named_header(&self) -> Option<&Path> {
        self.header.as_deref()
    }

    /// What a change of the volume needs besides a secret; `yes` accepts every loss.
    pub fn options(&self, yes: bool) -> Result<Options, Failure> {
        Ok(Options {
            format: self.family().map(Family::format),
            parameters: self.parameters()?,
            accepted: losses::accepted(yes).to_vec(),
            limits: limits()?,
        })
    }

    /// What is said of the volume if it has this error.
    pub fn at(&self, error: VolumeError) -> Failure {
        let is_contradicted =
            matches!(&error, VolumeError::Judged(it) if it.state == State::OtherHeader);
        let header = match &error {
            VolumeError::Judged(finding) if finding.in_header => self.header.as_deref(),
            VolumeError::NoSignature { .. } | VolumeError::StartLost => self.header.as_deref(),
            _ => None,
        };
        let place = header.unwrap_or(&self.image);
        let failure = losses::at(place, recognise::with_text(place, error));
        match &self.header {
            Some(named) if is_contradicted => failure.with_remedy(format!(
                "Nothing was changed. Compare what `volume export` reads by each of both. Omit \
                 --header, or put {} into the volume if it is the right one: `cryptmark volume \
                 header restore {} --input {0}`.",
                word(named),
                word(&self.image)
            )),
            _ => failure,
        }
    }

    /// The options as the engine wants them.
    fn parameters(&self) -> Result<Parameters, Failure> {
        let keyfiles = match self.keyfiles.is_empty() {
            true => None,
            false => Some(Keyfiles::read(&self.keyfiles)?),
        };
        Ok(Parameters {
            veracrypt_pim: self.pim()?,
            keyfiles,
            ..self.plain_parameters()
        })
    }

    /// The same without what has to be read or checked first.
    pub fn plain_parameters(&self) -> Parameters {
        Parameters {
            cipher: self.cipher.clone(),
            key_size: self.key_size,
            hash: self.hash.clone(),
            offset: self.offset.map(|offset| offset.bytes),
            skip: self.skip,
            size: self.size.map(|size| size.bytes),
            sector_size: self.sector_size,
            iv_large_sectors: self.iv_large_sectors,
            key_slot: self.key_slot,
            tcrypt_hidden: self.tcrypt_hidden,
            tcrypt_backup: self.tcrypt_backup,
            tcrypt_system: self.tcrypt_system,
            veracrypt_pim: self.veracrypt_pim.map(Pims::first),
            keyfiles: (!self.keyfiles.is_empty()).then(Keyfiles::none),
            experimental: self.experimental,
            key_derivation: self.key_derivation.clone(),
        }
    }

    /// Whether the user takes a guess for the data.
    pub fn is_experimental(&self) -> bool {
        self.experimental
    }

    /// The format that the user named.
    pub fn named_format(&self) -> Option<Format> {
        self.kind.as_deref().and_then(Format::named)
    }

    /// TrueCrypt or VeraCrypt, if the user says so.
    pub fn family(&self) -> Option<Family> {
        self.named_format()?.family()
    }

    /// Whether the user means the hidden volume.
    pub fn is_hidden(&self) -> bool {
        self.tcrypt_hidden
    }

    /// Whether the user says that the volume has no header.
    pub fn is_headless(&self) -> bool {
        matches!(
            self.named_format(),
            Some(Format::Plain | Format::Cryptoloop | Format::LoopAes)
        )
    }

    /// The PIM that the user named.
    ///
    /// # Errors
    /// Exit code 2 for a range.
    fn pim(&self) -> Result<Option<u32>, Failure> {
        let only = |pims: Pims| {
            pims.only().ok_or_else(|| {
                Failure::new(
                    2,
                    "--veracrypt-pim is a range, and a volume has one PIM",
                    "Give one number; `cryptmark volume recall` finds it in a range.",
                )
            })
        };
        self.veracrypt_pim.map(only).transpose()
    }

    /// The PIMs that the user named, and the same options with the first of them alone.
    pub fn with_first_pim(&self) -> (Option<Pims>, Self) {
        let first = |pims: Pims| Pims::from(pims.first());
        let one = Self {
            veracrypt_pim: self.veracrypt_pim.map(first),
            ..self.clone()
        };
        (self.veracrypt_pim, one)
    }

    /// The options for opening a TrueCrypt or VeraCrypt volume.
    pub fn tcrypt(&self, family: Family) -> Result<tcrypt::Opening, Failure> {
        Ok(self.parameters()?.tcrypt(family)?)
    }
}
