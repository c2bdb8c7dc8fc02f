//! [`Opening`]: all that a user says about a volume, of whatever format.

use crate::{
    Format, Limits, Mapping, Secret, VolumeError, cryptoloop, loopaes, luks1, luks2, plain,
};
use block::BlockDevice;

/// How to open a volume.
#[derive(Clone, Debug)]
pub enum Opening {
    /// LUKS version 1.
    Luks1 {
        /// The keyslot to open; `None` tries all.
        slot: Option<u32>,
    },
    /// LUKS version 2.
    Luks2 {
        /// The keyslot to open; `None` tries all.
        slot: Option<u32>,
    },
    /// Plain dm-crypt.
    Plain(plain::Opening),
    /// cryptoloop.
    Cryptoloop(cryptoloop::Opening),
    /// loop-AES.
    LoopAes(loopaes::Opening),
}

/// An opened volume.
#[derive(Debug)]
pub struct Opened {
    /// What [`CryptDevice`](crate::CryptDevice) executes.
    pub mapping: Mapping,
    /// The keyslot that opened, where the format has keyslots.
    pub slot: Option<u32>,
}

impl Opening {
    /// The format.
    pub const fn format(&self) -> Format {
        match self {
            Self::Luks1 { .. } => Format::Luks1,
            Self::Luks2 { .. } => Format::Luks2,
            Self::Plain(_) => Format::Plain,
            Self::Cryptoloop(_) => Format::Cryptoloop,
            Self::LoopAes(_) => Format::LoopAes,
        }
    }

    /// Opens the volume whose header is on `header`, and whose data is on
    /// `data`: one device, unless the header is detached.
    ///
    /// # Errors
    /// Those of the format's own function.
    pub fn unlock(
        &self,
        header: &dyn BlockDevice,
        data: &dyn BlockDevice,
        secret: &Secret,
        limits: &Limits,
    ) -> Result<Opened, VolumeError> {
        let keyless = |mapping| Opened {
            mapping,
            slot: None,
        };
        match self {
            Self::Luks1 { slot } => {
                let parsed = luks1::Header::read(header)?;
                let unlocked = parsed.unlock(header, secret, *slot, limits)?;
                Ok(Opened {
                    slot: unlocked.slot,
                    mapping: parsed.mapping(unlocked.key, data)?,
                })
            }
            Self::Luks2 { slot } => {
                let parsed = luks2::Header::read(header)?;
                let unlocked = parsed.unlock(header, secret, *slot, limits)?;
                Ok(Opened {
                    slot: unlocked.slot,
                    mapping: parsed.mapping(unlocked.key, data)?,
                })
            }
            Self::Plain(opening) => opening.mapping(secret, data).map(keyless),
            Self::Cryptoloop(opening) => opening.mapping(secret, data).map(keyless),
            Self::LoopAes(opening) => opening.mapping(secret, data).map(keyless),
        }
    }
}
