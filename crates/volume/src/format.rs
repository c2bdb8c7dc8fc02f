//! [`Format`]: the kinds of volumes, by cryptsetup's names.

use crate::error::impossible;
use crate::tcrypt::Family;
use crate::unaligned::read_up_to;
use crate::{VolumeError, bestcrypt, bitlk, fvault2, luks2};
use block::BlockDevice;
use std::fmt;

named! {
    /// A kind of encrypted volume.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Format {
        /// LUKS version 1.
        Luks1 = "luks1",
        /// LUKS version 2.
        Luks2 = "luks2",
        /// No header: cipher and key come from the user.
        Plain = "plain",
        /// TrueCrypt.
        Tcrypt = "tcrypt",
        /// VeraCrypt.
        Veracrypt = "veracrypt",
        /// The kernel's cryptoloop (`losetup -e`).
        Cryptoloop = "cryptoloop",
        /// loop-AES with a key file of 1, 64 or 65 lines.
        LoopAes = "loopaes",
        /// BestCrypt version 8 and 9 containers.
        Bestcrypt = "bestcrypt",
        /// BitLocker, and BitLocker To Go.
        Bitlk = "bitlk",
        /// FileVault 2 on Core Storage.
        Fvault2 = "fvault2",
    }
}

/// Names of formats that other programs and people use.
const OTHER_NAMES: [(&str, &str); 18] = [
    ("luks-1", "luks1"),
    ("luks-2", "luks2"),
    ("crypto_luks", "luks2"),
    ("truecrypt", "tcrypt"),
    ("tc", "tcrypt"),
    ("tcrypt-veracrypt", "veracrypt"),
    ("vera", "veracrypt"),
    ("vc", "veracrypt"),
    ("dm-crypt", "plain"),
    ("dmcrypt", "plain"),
    ("loop-aes", "loopaes"),
    ("best-crypt", "bestcrypt"),
    ("bitlocker", "bitlk"),
    ("filevault", "fvault2"),
    ("filevault2", "fvault2"),
    ("corestorage", "fvault2"),
    ("bde", "bitlk"),
    ("fve", "bitlk"),
];

/// Formats that are known and not opened: names, what signatures call them, titles.
const UNSUPPORTED: [(&str, &str, &str); 2] = [
    ("apfs", "an APFS container", "APFS"),
    ("geli", "a GELI volume", "GELI"),
];

/// Whether this is the content of a format that is known and not opened.
#[doc(hidden)]
pub fn is_unsupported(what: &str) -> bool {
    UNSUPPORTED.iter().any(|(_, known, _)| *known == what)
}

/// The title of a format that is known and not opened.
fn unsupported(name: &str) -> Option<&'static str> {
    let name = name.to_lowercase();
    let known = UNSUPPORTED.iter().find(|(known, ..)| *known == name);
    known.map(|(.., title)| *title)
}

/// What is said of the name of no format.
pub(crate) fn unknown(name: &str) -> String {
    match unsupported(name) {
        Some(title) => format!("{title} volumes are not supported"),
        None => format!("unknown volume type `{name}`"),
    }
}

/// What to do about it.
pub(crate) fn unknown_remedy(name: &str) -> String {
    if unsupported(name).is_some() {
        return "Open it with the system that made it.".to_owned();
    }
    let small = name.to_lowercase();
    let names = Format::ALL.map(Format::name);
    let others = OTHER_NAMES.into_iter();
    let mut known = names.iter().map(|name| (*name, *name)).chain(others);
    let names = names.join(", ");
    match known.find(|(other, _)| *other == small) {
        Some((_, meant)) => format!("Did you mean {meant}? Otherwise use one of: {names}."),
        None => format!("Use one of: {names}."),
    }
}

impl Format {
    /// The format of that name.
    ///
    /// # Errors
    /// [`VolumeError::Impossible`].
    pub fn parse(name: &str) -> Result<Self, VolumeError> {
        Self::named(name).ok_or_else(|| impossible(unknown(name), unknown_remedy(name)))
    }

    /// Whose format it is, if it is TrueCrypt's or VeraCrypt's.
    pub const fn family(self) -> Option<Family> {
        match self {
            Self::Tcrypt => Some(Family::TrueCrypt),
            Self::Veracrypt => Some(Family::VeraCrypt),
            _ => None,
        }
    }

    /// The name in a sentence.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Luks1 => "LUKS1",
            Self::Luks2 => "LUKS2",
            Self::Plain => "plain",
            Self::Tcrypt => "TrueCrypt",
            Self::Veracrypt => "VeraCrypt",
            Self::Cryptoloop => "cryptoloop",
            Self::LoopAes => "loop-AES",
            Self::Bestcrypt => "BestCrypt",
            Self::Bitlk => "BitLocker",
            Self::Fvault2 => "FileVault 2",
        }
    }

    /// The volume in a sentence, with its article.
    #[doc(hidden)]
    pub fn article(self) -> String {
        format!("a {} volume", self.title())
    }

    /// The secrets that open such a volume, as a sentence.
    pub(crate) const fn secrets(self) -> &'static str {
        match self {
            Self::Luks1 | Self::Luks2 => "Give a passphrase, a `key_file` or the `volume_key`.",
            Self::Plain => "Give a passphrase, a `key_file` or a `volume_key`.",
            Self::Tcrypt | Self::Veracrypt => "Give a passphrase, a `keyfile`, or both.",
            Self::Cryptoloop => "Give a passphrase or a `volume_key`.",
            Self::LoopAes => "Give a `key_file` of 1, 64 or 65 lines.",
            Self::Bestcrypt => "Give a passphrase.",
            Self::Fvault2 => "Give a passphrase, the recovery key, or the `volume_key`.",
            Self::Bitlk => {
                "Give a passphrase or the recovery password, a `key_file` with a startup key, or \
                 the `volume_key`."
            }
        }
    }

    /// The format whose signature `device` begins with; those of TrueCrypt's
    /// kind, and those without a header, have none.
    ///
    /// A LUKS2 header whose first copy is destroyed counts: the second is
    /// looked for where it may stand.
    ///
    /// # Errors
    /// [`VolumeError::Impossible`] for another version of LUKS, and [`VolumeError::Block`].
    pub fn detect(device: &dyn BlockDevice) -> Result<Option<Self>, VolumeError> {
        let (start, unread) = match read_up_to(device, 0, 512) {
            // A second copy may stand in a place that the device can read.
            Err(error) if error.is_of_place() => (Default::default(), Some(error)),
            start => (start?, None),
        };
        let version = start
            .strip_prefix(crate::luks::MAGIC)
            .and_then(<[u8]>::first_chunk)
            .map(|version| u16::from_be_bytes(*version));
        match version {
            Some(1) => return Ok(Some(Self::Luks1)),
            Some(2) => return Ok(Some(Self::Luks2)),
            Some(version) if !luks2::has_second_copy(device)? => {
                return Err(impossible(
                    format!("this is a LUKS volume of version {version}, which is not supported"),
                    "Nothing was changed. Open the volume with a program that supports this version.",
                ));
            }
            _ => {}
        }
        if bestcrypt::has_signature(&start) {
            return Ok(Some(Self::Bestcrypt));
        }
        if bitlk::has_signature(&start) {
            return Ok(Some(Self::Bitlk));
        }
        if fvault2::has_signature(&start) {
            return Ok(Some(Self::Fvault2));
        }
        match (luks2::has_second_copy(device)?, unread) {
            (true, _) => Ok(Some(Self::Luks2)),
            (false, Some(error)) => Err(error),
            (false, None) => Ok(None),
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
