//! New volumes, of every format that this crate makes.

mod encryption;
mod luks;
mod tcrypt;

pub(super) use encryption::check_has_key;
pub use encryption::usual_key_bytes;
pub use tcrypt::check_pim;
pub(super) use tcrypt::check_whole;

use super::keys::NewKey;
use super::wipe::{check_blank, fill, reserve};
use super::{Report, impossible};
use crate::judge::{Finding, State};
use crate::place::Place;
use crate::{Format, Parameters, Stop, VolumeError};
use block::{BlockDevice, ByteRange, signature};
use cipher::{Key, SectorSize};

/// What kind of volume is made, and how.
///
/// `parameters` have the cipher, key size, hash, sector size, start of the data, PIM and key files.
/// What is not said is as in cryptsetup, and for TrueCrypt and VeraCrypt AES with SHA-512.
#[derive(Debug)]
pub struct Creation {
    /// [`Format::Luks1`], [`Format::Luks2`], [`Format::Tcrypt`] or [`Format::Veracrypt`]; or
    /// [`Format::Plain`] or [`Format::Cryptoloop`], which are noise until they are used.
    pub format: Format,
    /// Its cipher and sizes.
    pub parameters: Parameters,
    /// The algorithm of tags for each sector, of LUKS2: cryptsetup's word for it.
    pub integrity: Option<String>,
    /// The label, of LUKS2.
    pub label: String,
    /// A second label, of LUKS2.
    pub subsystem: String,
    /// The UUID, of LUKS; `None` makes a random one.
    pub uuid: Option<String>,
    /// The key that encrypts the data, of LUKS; `None` makes a random one.
    pub volume_key: Option<Key>,
    /// Whether all old data are overwritten, of LUKS. Otherwise they stay readable until the volume
    /// is written there.
    pub wipe: bool,
    /// Whether what usually is written first is left out: the noise of TrueCrypt and VeraCrypt,
    /// whose unused space can be recognised then, and the sectors with tags, of which none can be
    /// read before it is written.
    pub quick: bool,
    /// What may be lost, or may be weak.
    pub accepted: Vec<State>,
    /// What may end the key derivation.
    pub stop: Stop,
}

impl Creation {
    /// With defaults for all else.
    pub fn new(format: Format) -> Self {
        Self {
            format,
            parameters: Parameters::default(),
            integrity: None,
            label: String::new(),
            subsystem: String::new(),
            uuid: None,
            volume_key: None,
            wipe: false,
            quick: false,
            accepted: Vec::new(),
            stop: Stop::NEVER,
        }
    }

    /// Refuses what is not possible, whatever the place is: a format that is not made here, an option
    /// that the format has no use for, a cipher that is none.
    ///
    /// # Errors
    /// [`VolumeError::Foreign`], [`VolumeError::Impossible`], [`VolumeError::Cipher`], and others
    /// for texts that name nothing.
    pub fn check(&self) -> Result<(), VolumeError> {
        use Format::{Cryptoloop, Luks1, Luks2, Plain, Tcrypt, Veracrypt};
        const LUKS: &[Format] = &[Luks1, Luks2];
        const TCRYPT: &[Format] = &[Tcrypt, Veracrypt];
        const WITH_HEADER: &[Format] = &[Luks1, Luks2, Tcrypt, Veracrypt];
        if !WITH_HEADER.contains(&self.format) && !matches!(self.format, Plain | Cryptoloop) {
            return Err(impossible(
                format!("{} cannot be made here", self.format.article()),
                "Choose luks2, luks1, veracrypt, tcrypt, plain or cryptoloop.".to_owned(),
            ));
        }
        let said = &self.parameters;
        let given = [
            ("cipher", said.cipher.is_some(), WITH_HEADER),
            ("sector_size", said.sector_size.is_some(), &[Luks2][..]),
            ("integrity", self.integrity.is_some(), &[Luks2]),
            ("label", !self.label.is_empty(), &[Luks2]),
            ("subsystem", !self.subsystem.is_empty(), &[Luks2]),
            ("uuid", self.uuid.is_some(), LUKS),
            ("key_size", said.key_size.is_some(), LUKS),
            ("offset", said.offset.is_some(), LUKS),
            ("wipe", self.wipe, LUKS),
            ("volume_key", self.volume_key.is_some(), LUKS),
            ("hash", said.hash.is_some(), WITH_HEADER),
            ("veracrypt_pim", said.veracrypt_pim.is_some(), &[Veracrypt]),
            ("keyfile", said.keyfiles.is_some(), TCRYPT),
            ("quick", self.quick && self.integrity.is_none(), TCRYPT),
            // These say how to open a volume.
            ("skip", said.skip.is_some(), &[]),
            ("size", said.size.is_some(), &[]),
            ("key_slot", said.key_slot.is_some(), &[]),
            ("iv_large_sectors", said.iv_large_sectors, &[]),
            ("tcrypt_hidden", said.tcrypt_hidden, &[]),
            ("tcrypt_backup", said.tcrypt_backup, &[]),
            ("tcrypt_system", said.tcrypt_system, &[]),
            ("experimental", said.experimental, &[]),
            ("key_derivation", said.key_derivation.is_some(), &[]),
        ];
        let mut foreign = given.into_iter().filter(|(_, given, _)| *given);
        if let Some((parameter, _, formats)) =
            foreign.find(|(.., formats)| !formats.contains(&self.format))
        {
            return Err(VolumeError::Foreign {
                parameter,
                format: self.format,
                formats,
            });
        }
        match self.format {
            Luks1 | Luks2 => luks::check(self),
            Tcrypt | Veracrypt => tcrypt::check(self),
            _ => Ok(()),
        }
    }
}

/// A volume that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Created {
    /// Its UUID, of LUKS.
    pub uuid: Option<String>,
    /// The cipher, and the algorithm of the tags, in words; empty without a header.
    pub cipher: String,
    /// The length of the volume key, bits.
    pub key_bits: usize,
    /// The derivation of the key from the secret, in words; empty without a header.
    pub derivation: String,
    /// The place of the data.
    pub data: ByteRange,
    /// Whether old data of the place stay readable until the volume is written there.
    pub leaves_old_data: bool,
}

/// Refuses what [`create`] would refuse, before the caller asks for a secret. Returns what is weak
/// about the cipher, and what was not looked at, in words.
///
/// # Errors
/// Those of [`create`] that do not depend on the secret.
pub fn check_create(place: &Place, creation: &Creation) -> Result<Vec<String>, VolumeError> {
    creation.check()?;
    let had_data = look(place, creation)?;
    let mut warnings = match creation.format {
        Format::Luks1 | Format::Luks2 => luks::weaknesses(place, creation)?,
        _ => Vec::new(),
    };
    if !had_data {
        warnings.extend(unseen(place.data()));
    }
    Ok(warnings)
}

/// What is to be said of a device in which no data were found, if not all of it was read.
fn unseen(device: &dyn BlockDevice) -> Option<String> {
    // Of a file, all that is stored is read.
    if device.is_resizable() {
        return None;
    }
    let size = device.geometry().size & !511;
    let seen: u64 = signature::samples(size).iter().map(|it| it.length).sum();
    (seen < size).then(|| {
        format!(
            "no data were found in the {} MiB that were looked at, of {} MiB: data between them would \
             be overwritten in time",
            seen >> 20,
            size >> 20
        )
    })
}

/// Makes a volume of all of the place, which opens with `new`; a volume without a header has no
/// secret, and is filled with noise.
///
/// `place` is open for [`Use::Overwrite`](crate::judge::Use::Overwrite). A file that was
/// [made](Place::create) for the volume is kept, and goes again after an error.
///
/// # Errors
/// [`VolumeError::Judged`] for what would be lost and is not accepted; those of [`Creation::check`];
/// [`VolumeError::NoSecret`], [`VolumeError::EmptyPassphrase`], [`VolumeError::TooSmall`],
/// [`VolumeError::NoRoom`]; those of the key derivation. Nothing was changed then.
/// [`VolumeError::Overwritten`] if it fails, or is stopped, later.
pub fn create(
    place: &mut Place,
    new: Option<&NewKey>,
    creation: &Creation,
    report: Report<'_>,
) -> Result<Created, VolumeError> {
    creation.check()?;
    let had_data = look(place, creation)?;
    let created = match (creation.format, new) {
        (Format::Luks1 | Format::Luks2, Some(new)) => {
            luks::create(place, new, creation, had_data, report)
        }
        (Format::Tcrypt | Format::Veracrypt, Some(new)) => {
            tcrypt::create(place, new, creation, report)
        }
        (Format::Plain | Format::Cryptoloop, _) => noise(place, creation, report),
        (format, _) => Err(VolumeError::NoSecret { format }),
    }?;
    place.keep()?;
    Ok(created)
}

/// Refuses to overwrite what is there unless that is accepted, which is not said of files that did
/// not exist then. Returns whether the place of the data holds anything.
fn look(place: &Place, creation: &Creation) -> Result<bool, VolumeError> {
    let accepted = place.is_new().map(|is_new| match is_new {
        true => &[][..],
        false => &creation.accepted,
    });
    if place.is_apart() {
        check_blank(place.header(), accepted[0]).map_err(Finding::of_header)?;
    }
    check_blank(place.data(), accepted[1])
}

/// Looks once more, right before the first write: what came between takes seconds, and not every
/// program asks who holds a file. From now on, what is there is the volume's.
fn begin(place: &mut Place, creation: &Creation) -> Result<(), VolumeError> {
    look(place, creation)?;
    place.begin();
    Ok(())
}

/// Adds to an error that the old data are gone in part, unless the file was made for the volume.
fn overwritten(place: &Place, error: VolumeError) -> VolumeError {
    match place.is_new() {
        [_, true] => error,
        _ => VolumeError::Overwritten {
            error: Box::new(error),
        },
    }
}

/// A volume without a header is noise: whatever opens it later makes it what it is.
fn noise(
    place: &mut Place,
    creation: &Creation,
    report: Report<'_>,
) -> Result<Created, VolumeError> {
    let data = ByteRange::new(0, place.data().geometry().size);
    reserve(place.data(), data)?;
    begin(place, creation)?;
    fill(place.data(), data, report).map_err(|error| overwritten(place, error))?;
    Ok(Created {
        uuid: None,
        cipher: String::new(),
        key_bits: 0,
        derivation: String::new(),
        data,
        leaves_old_data: false,
    })
}

/// The sector size that the device's own blocks suggest.
pub fn natural_sector_size(device: &dyn BlockDevice) -> SectorSize {
    let geometry = device.geometry();
    let whole = geometry.size.is_multiple_of(4096);
    match SectorSize::from_bytes(geometry.physical_block) {
        Some(size) if whole => size,
        _ => SectorSize::B512,
    }
}
