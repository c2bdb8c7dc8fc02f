//! [`Opening`]: all that a user says about a volume, of whatever format.

use crate::bitlk::{BitlkDevice, BitlkMapping};
use crate::judge::{self, State, Use};
use crate::mapping::has_equal_halves;
use crate::steady::{Said, Steady};
use crate::{
    CryptDevice, Format, Limits, Mapping, SealedDevice, SealedMapping, Secret, VolumeError,
    Warning, bestcrypt, bitlk, cryptoloop, fvault2, loopaes, luks1, luks2, plain, tcrypt,
};
use block::BlockDevice;
use block::layer::{Concat, Guarded};

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
    /// BitLocker.
    Bitlk,
    /// FileVault 2.
    Fvault2,
}

/// An opened volume.
#[derive(Debug)]
pub struct Opened {
    /// Its parts in their order: one, but for a volume that is being
    /// reencrypted.
    pub rows: Vec<Row>,
    /// The whole of it, if its sectors have tags; there are no rows then.
    pub sealed: Option<SealedMapping>,
    /// The whole of it, if it is one of BitLocker's; there are no rows then.
    pub bitlk: Option<BitlkMapping>,
    /// The keyslot that opened, if the format has keyslots.
    pub slot: Option<u32>,
    /// Whether the header of a TrueCrypt or VeraCrypt volume could not be used, and its copy
    /// was.
    pub by_copy: bool,
    /// What the header says of the data, if it is one of LUKS and the volume is going to be
    /// written.
    pub said: Option<Said>,
    /// What its owner should know.
    pub warnings: Vec<Warning>,
}

/// A part of an opened volume.
#[derive(Debug)]
pub struct Row {
    /// The device that holds it.
    pub storage: Storage,
    /// The mapping that [`CryptDevice`] executes there.
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

/// What an opened volume is for, and what its opening may cost.
#[derive(Clone, Copy)]
pub struct Terms<'a> {
    /// Whether it is going to be written. This writes nothing.
    pub access: Access,
    /// The losses that the user accepts if it is written.
    pub accepted: &'a [State],
    /// Bounds of the work that a header may demand.
    pub limits: &'a Limits,
    /// Hears how far the search for TrueCrypt's key derivation is, and may end it.
    pub watch: tcrypt::Watch<'a>,
}

impl<'a> Terms<'a> {
    /// Those of a volume that is only read.
    pub const fn reading(limits: &'a Limits, watch: tcrypt::Watch<'a>) -> Self {
        Self {
            access: Access::Read,
            accepted: &[],
            limits,
            watch,
        }
    }
}

/// The use that an opened volume is meant for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It is only read.
    Read,
    /// It is written.
    Write,
}

impl Access {
    /// The use that the judge knows.
    const fn use_(self) -> Use {
        match self {
            Self::Read => Use::Read,
            Self::Write => Use::WriteData,
        }
    }
}

impl Opened {
    fn new(mapping: Mapping, slot: Option<u32>) -> Self {
        let storage = Storage::Data;
        Self {
            rows: vec![Row { storage, mapping }],
            ..Self::without_rows(slot)
        }
    }

    /// An opened volume of which nothing else is known yet.
    pub(crate) fn without_rows(slot: Option<u32>) -> Self {
        Self {
            rows: Vec::new(),
            sealed: None,
            bitlk: None,
            slot,
            by_copy: false,
            said: None,
            warnings: Vec::new(),
        }
    }

    /// Lets discards reach the backing device. They read as noise, unless the volume
    /// [reads holes](Self::reading_holes).
    #[must_use]
    pub fn allowing_discards(mut self) -> Self {
        for row in &mut self.rows {
            row.mapping.allow_discards = true;
        }
        if let Some(bitlk) = &mut self.bitlk {
            bitlk.mapping.allow_discards = true;
        }
        self
    }

    /// Takes zeros on the backing device for zeros of the plaintext. Volumes in which discards must
    /// leave zeros have to be read so for ever; see [`luks2::Header::remember_holes`].
    #[must_use]
    pub fn reading_holes(mut self) -> Self {
        for row in &mut self.rows {
            row.mapping.holes = true;
        }
        self
    }

    /// A second view of the volume, in which blocks that were never written are zeros. `None` if
    /// its sectors have tags, which tell that already. `None` also for BitLocker's volumes, in
    /// which Windows leaves no such blocks.
    pub fn with_blanks(&self) -> Option<Self> {
        let row = |row: &Row| Row {
            storage: row.storage,
            mapping: row.mapping.duplicate(),
        };
        let view = Self {
            rows: self.rows.iter().map(row).collect(),
            ..Self::without_rows(self.slot)
        };
        (!self.rows.is_empty()).then(|| view.reading_holes())
    }

    /// The plaintext view of the volume, over references to the two devices or
    /// over shared ownership of them.
    ///
    /// # Errors
    /// Those of [`CryptDevice::new`] and [`SealedDevice::open`].
    pub fn device<'a, D: BlockDevice + Clone + 'a>(
        mut self,
        header: D,
        data: D,
    ) -> Result<Box<dyn BlockDevice + 'a>, VolumeError> {
        if let Some(said) = self.said.take() {
            let volume = self.device(header.clone(), data)?;
            return Ok(Box::new(Guarded::by(volume, Steady::new(header, said))));
        }
        if let Some(sealed) = self.sealed {
            return Ok(Box::new(SealedDevice::open(data, &sealed)?));
        }
        if let Some(bitlk) = self.bitlk {
            return Ok(Box::new(BitlkDevice::new(data, bitlk)?));
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
            Self::Bitlk => Format::Bitlk,
            Self::Fvault2 => Format::Fvault2,
        }
    }

    /// Whether the volume whose header is on `header` opens without any secret.
    ///
    /// # Errors
    /// Those of reading the header.
    pub fn needs_no_secret(&self, header: &dyn BlockDevice) -> Result<bool, VolumeError> {
        match self {
            Self::Bitlk => Ok(bitlk::Header::read(header)?.opens_by_itself()),
            _ => Ok(false),
        }
    }

    /// Opens the volume whose header is on `header`, and whose data is on
    /// `data`: one device, unless the header is detached. An empty passphrase is no secret for a
    /// volume that [needs none](Self::needs_no_secret). Any other one must fit.
    ///
    /// With [`Access::Write`], [`judge`](crate::judge) is asked, and a volume whose reencryption a
    /// crash has stopped is refused: this writes nothing.
    ///
    /// # Errors
    /// [`VolumeError::Judged`], and those of the format's own function. With [`Access::Write`]:
    /// [`VolumeError::Cut`] and [`VolumeError::Standing`] for a
    /// volume of which a part is missing or not encrypted.
    pub fn unlock(
        &self,
        header: &dyn BlockDevice,
        data: &dyn BlockDevice,
        secret: &Secret,
        terms: &Terms,
    ) -> Result<Opened, VolumeError> {
        let (use_, accepted) = (terms.access.use_(), terms.accepted);
        let is_apart = !std::ptr::addr_eq(header, data);
        judge::check_device(use_, header, accepted)?;
        if use_ != Use::Read && matches!(self, Self::Luks2 { .. }) {
            judge::check_first_header(use_, header, accepted)?;
        }
        if is_apart && use_ != Use::Read {
            judge::check_device(use_, data, accepted)?;
        }
        let of_own = match is_apart && use_ != Use::Read {
            true => judge::check_own_header(use_, header, data)?,
            false => None,
        };
        let opened = self.found(header, data, secret, terms)?;
        let mut opened = opened.judged(self.format(), data, terms.access)?;
        opened.warnings.extend(of_own);
        let is_weak = |row: &Row| has_equal_halves(row.mapping.spec, &row.mapping.key);
        if opened.rows.iter().any(is_weak) {
            opened.warnings.push(Warning::EqualHalves);
        }
        let is_headless = matches!(
            self,
            Self::Plain(_) | Self::Cryptoloop(_) | Self::LoopAes(_)
        );
        if use_ == Use::Read {
            if (is_apart || is_headless)
                && let [row] = &opened.rows[..]
                && let Err(VolumeError::Judged(finding)) =
                    row.mapping.check_together(Use::WriteData, data, &[])
            {
                let found = finding.to_string();
                opened.warnings.push(Warning::Unfit { found });
            }
            return Ok(opened);
        }
        if matches!(self, Self::Luks1 { .. } | Self::Luks2 { .. }) {
            opened.said = Said::by(header, is_apart);
        }
        if !is_headless
            && let Some(warning) = opened.warnings.iter().find(|warning| warning.is_exposed())
        {
            let found = format!("is exposed: {warning}");
            judge::check(use_, State::Exposed, found, accepted)?;
        }
        if let Self::Tcrypt(opening) = self
            && opening.place != tcrypt::Place::System
            && let Some(name) = tcrypt::stranger_at_start(data)?
        {
            judge::check(use_, State::StaleHeader, name, accepted)?;
        }
        // Data in the middle of a reencryption are recognised by it, and tags prove their own.
        if (is_apart || is_headless)
            && let [row] = &opened.rows[..]
        {
            row.mapping.check_together(use_, data, accepted)?;
        }
        Ok(opened)
    }

    /// The volume as its header describes it.
    fn found(
        &self,
        header: &dyn BlockDevice,
        data: &dyn BlockDevice,
        secret: &Secret,
        terms: &Terms,
    ) -> Result<Opened, VolumeError> {
        let Terms {
            access,
            limits,
            watch,
            ..
        } = *terms;
        let mapping = match self {
            Self::Luks1 { slot } => {
                let parsed = luks1::Header::read(header)?;
                parsed.check_beside(header, data)?;
                let unlocked = parsed.unlock(header, secret, *slot, limits)?;
                let mapping = parsed.described(unlocked.key, data)?;
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
                        ..Opened::without_rows(None)
                    });
                }
                let unlocked = parsed.unlock(header, secret, *slot, limits)?;
                if parsed.is_sealed() {
                    return Ok(Opened {
                        sealed: Some(parsed.sealed_mapping(unlocked.key, access)?),
                        ..Opened::without_rows(unlocked.slot)
                    });
                }
                let mapping = parsed.described(unlocked.key, data)?;
                return Ok(Opened::new(mapping, unlocked.slot));
            }
            Self::Plain(opening) => opening.mapping(secret, data)?,
            Self::Cryptoloop(opening) => opening.mapping(secret, data)?,
            Self::LoopAes(opening) => opening.mapping(secret, data)?,
            Self::Bestcrypt if access == Access::Write => {
                return Err(VolumeError::unsupported(
                    Format::Bestcrypt,
                    "an unpublished mapping of sectors, and writing",
                ));
            }
            Self::Bestcrypt => {
                let parsed = bestcrypt::Header::read(header)?;
                let unlocked = parsed.unlock(header, secret, limits)?;
                let mapping = parsed.guessed_mapping(&unlocked.key, data)?;
                return Ok(Opened::new(mapping, unlocked.slot));
            }
            Self::Bitlk => {
                let parsed = bitlk::Header::read(data)?;
                let unlocked = parsed.unlock(secret, limits)?;
                let mapping = || parsed.mapping(&unlocked.key, data);
                let by_key_itself = matches!(secret, Secret::VolumeKey(_));
                if by_key_itself && BitlkDevice::new(data, mapping()?)?.refutes_the_key()? {
                    return Err(VolumeError::WrongVolumeKey);
                }
                let mut warnings = Vec::new();
                if parsed.has_clear_key() {
                    warnings.push(Warning::ClearKey);
                }
                return Ok(Opened {
                    bitlk: Some(mapping()?),
                    warnings,
                    ..Opened::without_rows(unlocked.slot)
                });
            }
            Self::Fvault2 => {
                let parsed = fvault2::Header::read(data)?;
                let unlocked = parsed.unlock(secret, limits)?;
                let opened = || -> Result<_, VolumeError> {
                    Ok(Opened {
                        rows: parsed.rows(&unlocked.key)?,
                        ..Opened::without_rows(unlocked.slot)
                    })
                };
                if matches!(secret, Secret::VolumeKey(_)) {
                    let view = opened()?.judged(self.format(), data, Access::Read)?;
                    let view = view.device::<&dyn BlockDevice>(data, data)?;
                    if block::signature::names(&view)?.is_empty() {
                        return Err(VolumeError::WrongVolumeKey);
                    }
                }
                return opened();
            }
            Self::Tcrypt(opening) => {
                let unlocked = opening.unlock(header, secret, limits, watch)?;
                let mapping = match opening.partition {
                    Some(start) => unlocked.in_partition(start, data)?,
                    None => unlocked.described(data)?,
                };
                return Ok(Opened {
                    by_copy: unlocked.place != opening.place,
                    ..Opened::new(mapping, None)
                });
            }
        };
        Ok(Opened::new(mapping, None))
    }
}
