//! [`Format`]: the kinds of volumes, by cryptsetup's names.

use crate::unaligned::read_up_to;
use crate::{VolumeError, bestcrypt, bitlk, fvault2, luks2};
use block::BlockDevice;
use std::fmt;

/// A kind of encrypted volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// LUKS version 1.
    Luks1,
    /// LUKS version 2.
    Luks2,
    /// No header: cipher and key come from the user.
    Plain,
    /// TrueCrypt.
    Tcrypt,
    /// VeraCrypt.
    Veracrypt,
    /// The kernel's cryptoloop (`losetup -e`).
    Cryptoloop,
    /// loop-AES with a key file of 1, 64 or 65 lines.
    LoopAes,
    /// BestCrypt version 8 and 9 containers.
    Bestcrypt,
    /// BitLocker, and BitLocker To Go.
    Bitlk,
    /// FileVault 2 on Core Storage.
    Fvault2,
}

impl Format {
    /// Every format.
    pub const ALL: [Self; 10] = [
        Self::Luks1,
        Self::Luks2,
        Self::Plain,
        Self::Tcrypt,
        Self::Veracrypt,
        Self::Cryptoloop,
        Self::LoopAes,
        Self::Bestcrypt,
        Self::Bitlk,
        Self::Fvault2,
    ];

    /// The name on the command line and in records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Luks1 => "luks1",
            Self::Luks2 => "luks2",
            Self::Plain => "plain",
            Self::Tcrypt => "tcrypt",
            Self::Veracrypt => "veracrypt",
            Self::Cryptoloop => "cryptoloop",
            Self::LoopAes => "loopaes",
            Self::Bestcrypt => "bestcrypt",
            Self::Bitlk => "bitlk",
            Self::Fvault2 => "fvault2",
        }
    }

    /// The format of that name, if it is known.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
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
            Self::Luks1 | Self::Luks2 => "Give a passphrase, a key file or the volume key.",
            Self::Plain => "Give a passphrase, a key file or a volume key.",
            Self::Tcrypt | Self::Veracrypt => "Give a passphrase, key files, or both.",
            Self::Cryptoloop => "Give a passphrase or a volume key.",
            Self::LoopAes => "Give a key file of 1, 64 or 65 lines.",
            Self::Bestcrypt => "Give a passphrase.",
            Self::Fvault2 => "Give a passphrase, the recovery key, or the volume key.",
            Self::Bitlk => {
                "Give a passphrase or the recovery password, a key file with a startup key, or the \
                 volume key."
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
    /// [`VolumeError::LuksVersion`] and [`VolumeError::Block`].
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
                return Err(VolumeError::LuksVersion { version });
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
