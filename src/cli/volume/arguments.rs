//! Which volume, and how to open it: cryptsetup's options.

use crate::cli::Failure;
use block::{BlockDevice, FileDevice, FileOptions};
use bytesize::ByteSize;
use cipher::{CipherSpec, SectorLayout, SectorSize};
use clap::Args;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use volume::cryptoloop::{Derivation, LoopCipher};
use volume::plain::{Hashing, Place};
use volume::{Format, Hash, Opening, VolumeError, cryptoloop, loopaes, plain};

/// cryptsetup's defaults since 2.7.
const PLAIN_CIPHER: &str = "aes-xts-plain64";
const PLAIN_HASH: &str = "sha256";
const LOOP_CIPHER: &str = "aes";

/// cryptsetup's unit of places and lengths.
const SECTOR: u64 = 512;

/// The options that say which volume and how to open it.
#[derive(Debug, Args)]
pub struct VolumeArguments {
    /// The volume: a file or a block device
    image: PathBuf,
    /// luks1, luks2, luks, plain, tcrypt, veracrypt, cryptoloop, loopaes or bestcrypt [default: what its signature says]
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<String>,
    /// Cipher in dm-crypt notation, where no header tells
    #[arg(long, short = 'c', value_name = "SPEC")]
    cipher: Option<String>,
    /// Key size in bits, counted as cryptsetup counts, where no header tells
    #[arg(long, short = 's', value_name = "BITS")]
    key_size: Option<usize>,
    /// Hash of the passphrase, where no header tells: sha256, ripemd160, sha256:16, plain, …
    #[arg(long, value_name = "HASH")]
    hash: Option<String>,
    /// Start of the data, where no header tells: 512-byte sectors, or as in 1MiB
    #[arg(long, value_name = "SECTORS")]
    offset: Option<Extent>,
    /// IV number of the first sector, in 512-byte sectors
    #[arg(long, short = 'p', value_name = "SECTORS")]
    skip: Option<u64>,
    /// Length of the data, where no header tells: 512-byte sectors, or as in 1GiB
    #[arg(long, short = 'b', value_name = "SECTORS")]
    size: Option<Extent>,
    /// Encryption sector size in bytes, where no header tells: 512, 1024, 2048 or 4096
    #[arg(long, value_name = "BYTES")]
    sector_size: Option<u32>,
    /// IVs count encryption sectors, not 512-byte units
    #[arg(long)]
    iv_large_sectors: bool,
    /// The file or device with the header, if it is not the volume itself
    #[arg(long, value_name = "FILE")]
    header: Option<PathBuf>,
    /// The keyslot to open [default: any]
    #[arg(long, short = 'S', value_name = "N")]
    key_slot: Option<u32>,
    /// How cryptoloop made the key: util-linux, debian-rmd160 or hashalot-HASH
    #[arg(long, value_name = "HOW")]
    key_derivation: Option<String>,
}

/// A place or length: a bare number counts sectors of 512 bytes.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// The same in bytes.
    pub bytes: u64,
}

impl FromStr for Extent {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bytes = match text.parse::<u64>() {
            Ok(sectors) => sectors
                .checked_mul(SECTOR)
                .ok_or("more sectors than any device has")?,
            Err(_) => text.parse::<ByteSize>()?.as_u64(),
        };
        Ok(Self { bytes })
    }
}

/// The devices of a volume.
pub struct Devices {
    /// The volume.
    pub data: FileDevice,
    header: Option<FileDevice>,
}

impl Devices {
    /// Where the header is.
    pub fn header(&self) -> &FileDevice {
        self.header.as_ref().unwrap_or(&self.data)
    }
}

/// Through the page cache: headers are small, and files mostly fresh.
fn open(path: &Path, write: bool) -> Result<FileDevice, VolumeError> {
    let options = FileOptions {
        write,
        direct: false,
        exclusive: write,
        ..FileOptions::default()
    };
    Ok(FileDevice::open(path, &options)?)
}

impl VolumeArguments {
    /// The volume's path.
    pub fn image(&self) -> &Path {
        &self.image
    }

    /// The keyslot that the user named.
    pub fn key_slot(&self) -> Option<u32> {
        self.key_slot
    }

    /// Opens the volume, for writing if `write`, and its detached header.
    pub fn devices(&self, write: bool) -> Result<Devices, Failure> {
        let header = self.header.as_deref().map(|path| open(path, false));
        Ok(Devices {
            data: open(&self.image, write)?,
            header: header.transpose()?,
        })
    }

    /// Opens the volume, and for writing the device that its header is on.
    pub fn devices_for_header(&self) -> Result<Devices, Failure> {
        let header = self.header.as_deref().map(|path| open(path, true));
        Ok(Devices {
            data: open(&self.image, header.is_none())?,
            header: header.transpose()?,
        })
    }

    /// The format: what the user says, or the signature.
    pub fn format(&self, header: &dyn BlockDevice) -> Result<Format, Failure> {
        let detected = match self.kind.as_deref() {
            None | Some("luks") => Format::detect(header)?,
            Some(name) => {
                let known = || {
                    let names = Format::ALL.map(Format::name);
                    Failure::new(
                        2,
                        format!("unknown volume type `{name}`"),
                        format!("Known are luks, {}.", names.join(", ")),
                    )
                };
                return Format::named(name).ok_or_else(known);
            }
        };
        detected.ok_or_else(|| {
            let path = self.header.as_ref().unwrap_or(&self.image);
            Failure::new(
                2,
                format!("{} has no signature of a volume", path.display()),
                "Name its --type (plain, tcrypt, veracrypt, cryptoloop and loopaes volumes have \
                 no signature), or the file with its --header.",
            )
        })
    }

    /// Format and options as the engine wants them.
    pub fn opening(&self, format: Format) -> Result<Opening, Failure> {
        self.refuse_foreign_options(format)?;
        Ok(match format {
            Format::Luks1 => Opening::Luks1 {
                slot: self.key_slot,
            },
            Format::Luks2 => Opening::Luks2 {
                slot: self.key_slot,
            },
            Format::Plain => Opening::Plain(self.plain()?),
            Format::Cryptoloop => Opening::Cryptoloop(self.cryptoloop()?),
            Format::LoopAes => Opening::LoopAes(self.loopaes()?),
            Format::Tcrypt | Format::Veracrypt | Format::Bestcrypt => {
                return Err(Failure::new(
                    2,
                    format!("volumes of type {format} cannot be opened yet"),
                    "Open it with the program that made it.",
                ));
            }
        })
    }

    /// An option that the format has no use for is a mistake, and not silently
    /// left aside.
    pub fn refuse_foreign_options(&self, format: Format) -> Result<(), Failure> {
        use Format::{Cryptoloop, LoopAes, Luks1, Luks2, Plain};
        const HEADLESS: &[Format] = &[Plain, Cryptoloop, LoopAes];
        let given = [
            ("--cipher", self.cipher.is_some(), HEADLESS),
            ("--key-size", self.key_size.is_some(), HEADLESS),
            ("--hash", self.hash.is_some(), &[Plain, LoopAes]),
            ("--offset", self.offset.is_some(), HEADLESS),
            ("--skip", self.skip.is_some(), HEADLESS),
            ("--size", self.size.is_some(), HEADLESS),
            ("--sector-size", self.sector_size.is_some(), &[Plain]),
            ("--iv-large-sectors", self.iv_large_sectors, &[Plain]),
            ("--header", self.header.is_some(), &[Luks1, Luks2]),
            ("--key-slot", self.key_slot.is_some(), &[Luks1, Luks2]),
            (
                "--key-derivation",
                self.key_derivation.is_some(),
                &[Cryptoloop],
            ),
        ];
        match given
            .iter()
            .find(|(_, given, formats)| *given && !formats.contains(&format))
        {
            None => Ok(()),
            Some((option, _, formats)) => {
                let names: Vec<_> = formats.iter().map(|format| format.name()).collect();
                Err(Failure::new(
                    2,
                    format!("{option} has no meaning for a {format} volume"),
                    format!("Leave it away; it is for {}.", names.join(", ")),
                ))
            }
        }
    }

    fn plain(&self) -> Result<plain::Opening, Failure> {
        let notation = self.cipher.as_deref().unwrap_or(PLAIN_CIPHER);
        let spec: CipherSpec = notation.parse().map_err(VolumeError::Cipher)?;
        let hash = self.hash.as_deref().unwrap_or(PLAIN_HASH);
        Ok(plain::Opening {
            spec,
            key_bytes: self.key_bytes()?,
            hashing: hash.parse::<Hashing>()?,
            place: Place {
                offset: self.offset.map_or(0, |offset| offset.bytes),
                skip: self.skip.unwrap_or(0),
                size: self.size.map(|size| size.bytes),
            },
            layout: SectorLayout {
                size: self.sector_size()?,
                large_iv: self.iv_large_sectors,
            },
        })
    }

    fn cryptoloop(&self) -> Result<cryptoloop::Opening, Failure> {
        let notation = self.cipher.as_deref().unwrap_or(LOOP_CIPHER);
        let derivation = self.key_derivation.as_deref().map(str::parse::<Derivation>);
        Ok(cryptoloop::Opening {
            cipher: notation
                .parse::<LoopCipher>()
                .map_err(VolumeError::Cipher)?,
            key_bytes: self.key_bytes()?,
            derivation: derivation.transpose()?.unwrap_or_default(),
            offset: self.offset.map_or(0, |offset| offset.bytes),
            skip: self.skip,
            size: self.size.map(|size| size.bytes),
        })
    }

    fn loopaes(&self) -> Result<loopaes::Opening, Failure> {
        let notation = self.cipher.as_deref().unwrap_or(LOOP_CIPHER);
        let spec: CipherSpec = notation.parse().map_err(VolumeError::Cipher)?;
        let hash = match &self.hash {
            None => None,
            Some(name) => {
                Some(Hash::named(name).ok_or_else(|| plain::UnknownHash { text: name.clone() })?)
            }
        };
        Ok(loopaes::Opening {
            cipher: spec.algorithms()[0],
            key_bytes: self.key_bytes()?.unwrap_or(32),
            hash,
            offset: self.offset.map_or(0, |offset| offset.bytes),
            skip: self.skip,
            size: self.size.map(|size| size.bytes),
        })
    }

    fn key_bytes(&self) -> Result<Option<usize>, Failure> {
        match self.key_size {
            Some(bits) if bits == 0 || !bits.is_multiple_of(8) || bits > 65_536 => {
                Err(Failure::new(
                    2,
                    format!("a key of {bits} bits is not possible"),
                    "Give a multiple of 8, as in --key-size 256.",
                ))
            }
            bits => Ok(bits.map(|bits| bits / 8)),
        }
    }

    fn sector_size(&self) -> Result<SectorSize, Failure> {
        sector_size(self.sector_size.unwrap_or(512))
    }
}

/// The encryption sector size of so many bytes.
pub fn sector_size(bytes: u32) -> Result<SectorSize, Failure> {
    SectorSize::from_bytes(bytes).ok_or_else(|| {
        Failure::new(
            2,
            format!("encryption sectors of {bytes} bytes are not possible"),
            "Give a --sector-size of 512, 1024, 2048 or 4096.",
        )
    })
}
