//! [`Opening`]: all that a user says about a volume, of whatever format.

use crate::{
    CryptDevice, Format, Limits, Mapping, SealedDevice, SealedMapping, Secret, VolumeError,
    bestcrypt, cryptoloop, loopaes, luks1, luks2, plain, tcrypt,
};
use block::BlockDevice;
use block::layer::Concat;
use cipher::Key;

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
    /// TrueCrypt or VeraCrypt.
    Tcrypt(Box<tcrypt::Opening>),
    /// BestCrypt, to be read only, and by guess.
    Bestcrypt,
}

/// An opened volume.
#[derive(Debug)]
pub struct Opened {
    /// Its parts in their order: one, but for a volume that is being
    /// reencrypted.
    pub rows: Vec<Row>,
    /// The whole of it, if its sectors have tags; there are no rows then.
    pub sealed: Option<SealedMapping>,
    /// The keyslot that opened, where the format has keyslots.
    pub slot: Option<u32>,
    /// Whether the header of a TrueCrypt or VeraCrypt volume could not be used, and its copy
    /// was.
    pub by_copy: bool,
}

/// A part of an opened volume.
#[derive(Debug)]
pub struct Row {
    /// The device that holds it.
    pub storage: Storage,
    /// What [`CryptDevice`] executes there.
    pub mapping: Mapping,
}

/// Which of a volume's two devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storage {
    /// The one with the data.
    Data,
    /// The one with the header.
    Header,
}

/// What is going to be done with an opened volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It is only read.
    Read,
    /// It is written.
    Write,
}

impl Opened {
    fn new(mapping: Mapping, slot: Option<u32>) -> Self {
        let storage = Storage::Data;
        Self {
            rows: vec![Row { storage, mapping }],
            sealed: None,
            slot,
            by_copy: false,
        }
    }

    /// Lets discards reach the backing device, and takes zeros there for what
    /// was discarded.
    #[must_use]
    pub fn allowing_discards(mut self) -> Self {
        for row in &mut self.rows {
            row.mapping.allow_discards = true;
        }
        self
    }

    /// A second view of the volume, in which what was never written is zeros; `None` where its
    /// sectors have tags, which tell that already.
    pub fn with_blanks(&self) -> Option<Self> {
        let row = |row: &Row| Row {
            storage: row.storage,
            mapping: Mapping {
                key: Key::from_slice(row.mapping.key.as_bytes()),
                ..row.mapping
            },
        };
        let view = Self {
            rows: self.rows.iter().map(row).collect(),
            sealed: None,
            ..*self
        };
        self.sealed.is_none().then(|| view.allowing_discards())
    }

    /// The plaintext view of the volume, over references to the two devices or
    /// over shared ownership of them.
    ///
    /// # Errors
    /// Those of [`CryptDevice::new`] and [`SealedDevice::open`].
    pub fn device<'a, D: BlockDevice + Clone + 'a>(
        self,
        header: D,
        data: D,
    ) -> Result<Box<dyn BlockDevice + 'a>, VolumeError> {
        if let Some(sealed) = self.sealed {
            return Ok(Box::new(SealedDevice::open(data, &sealed)?));
        }
        let mut parts: Vec<Box<dyn BlockDevice + 'a>> = Vec::new();
        for row in self.rows {
            let below = match row.storage {
                Storage::Data => data.clone(),
                Storage::Header => header.clone(),
            };
            parts.push(Box::new(CryptDevice::new(below, row.mapping)?));
        }
        match parts.len() {
            1 => Ok(parts.remove(0)),
            _ => Ok(Box::new(Concat::new(parts)?)),
        }
    }
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
            Self::Tcrypt(opening) => opening.family.format(),
            Self::Bestcrypt => Format::Bestcrypt,
        }
    }

    /// Opens the volume whose header is on `header`, and whose data is on
    /// `data`: one device, unless the header is detached.
    ///
    /// With [`Access::Write`], a volume whose reencryption a crash has stopped is refused: this
    /// writes nothing. `watch` hears how far the
    /// search for TrueCrypt's key derivation is, and may end it.
    ///
    /// # Errors
    /// Those of the format's own function.
    pub fn unlock(
        &self,
        header: &dyn BlockDevice,
        data: &dyn BlockDevice,
        secret: &Secret,
        access: Access,
        limits: &Limits,
        watch: tcrypt::Watch,
    ) -> Result<Opened, VolumeError> {
        let mapping = match self {
            Self::Luks1 { slot } => {
                let parsed = luks1::Header::read(header)?;
                parsed.check_beside(header, data)?;
                let unlocked = parsed.unlock(header, secret, *slot, limits)?;
                let mapping = parsed.mapping(unlocked.key, data)?;
                return Ok(Opened::new(mapping, unlocked.slot));
            }
            Self::Luks2 { slot } => {
                let parsed = luks2::Header::read(header)?;
                parsed.check_beside(header, data)?;
                if parsed.is_reencrypting() {
                    let keys = parsed.unlock_both(header, secret, limits)?;
                    let rows = parsed.rows(header, data, &keys, access)?;
                    return Ok(Opened {
                        rows,
                        sealed: None,
                        slot: None,
                        by_copy: false,
                    });
                }
                let unlocked = parsed.unlock(header, secret, *slot, limits)?;
                if parsed.is_sealed() {
                    return Ok(Opened {
                        rows: Vec::new(),
                        sealed: Some(parsed.sealed_mapping(unlocked.key, access)?),
                        slot: unlocked.slot,
                        by_copy: false,
                    });
                }
                let mapping = parsed.mapping(unlocked.key, data)?;
                return Ok(Opened::new(mapping, unlocked.slot));
            }
            Self::Plain(opening) => opening.mapping(secret, data)?,
            Self::Cryptoloop(opening) => opening.mapping(secret, data)?,
            Self::LoopAes(opening) => opening.mapping(secret, data)?,
            Self::Bestcrypt if access == Access::Write => {
                return Err(VolumeError::Unsupported {
                    format: Format::Bestcrypt,
                    feature: "a mapping of sectors that nobody has published, and writing".into(),
                });
            }
            Self::Bestcrypt => {
                let parsed = bestcrypt::Header::read(header)?;
                let unlocked = parsed.unlock(header, secret, limits)?;
                let mapping = parsed.guessed_mapping(&unlocked.key, data)?;
                return Ok(Opened::new(mapping, unlocked.slot));
            }
            Self::Tcrypt(opening) => {
                let unlocked = opening.unlock(header, secret, limits, watch)?;
                return Ok(Opened {
                    by_copy: unlocked.place != opening.place,
                    ..Opened::new(unlocked.mapping(data)?, None)
                });
            }
        };
        Ok(Opened::new(mapping, None))
    }
}
