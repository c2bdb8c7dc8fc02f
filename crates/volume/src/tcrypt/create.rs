//! [`Creation`]: new volumes, laid out as both programs do.

use super::layers;
use super::rewrite::write_both;
use super::seal::{Sealed, Sealing};
use super::{Family, HEADER_BYTES, HEADERS_BYTES, HIDDEN_AT, Header, Place, UNIT, Unlocked};
use crate::error::impossible;
use crate::{Instead, Limits, VolumeError, unaligned};
use block::{BlockDevice, ByteRange};
use cipher::{Algorithm, CipherError, CipherSpec, Key, Mode};
use zeroize::Zeroizing;

/// Keys, and noise behind them.
const KEY_AREA_BYTES: usize = 256;

/// Bytes that a hidden volume leaves free behind it, because file systems write at the end of the
/// outer volume. A hidden volume of 2 MiB or more leaves more.
pub(super) const LEFT_BY_SMALL: u64 = 4096;
pub(super) const LEFT_BY_LARGE: u64 = 65_536;
pub(super) const LARGE: u64 = 2 << 20;

/// The options of a new volume.
#[derive(Clone, Debug)]
pub struct Creation {
    /// The program whose volume is made.
    pub family: Family,
    /// The ciphers, named as in [`specs`](super::specs); the mode is XTS.
    pub algorithms: Vec<Algorithm>,
    /// The key derivation, PIM and key files that it opens with.
    pub sealing: Sealing,
}

impl Creation {
    /// Makes a volume of all of `device`, which the caller knows may be
    /// overwritten: headers and copies among noise at both ends. The data
    /// between them stay as they are; to hide what is written later, fill the
    /// volume first.
    ///
    /// # Errors
    /// [`VolumeError::TooSmall`], [`VolumeError::Lacks`],
    /// [`VolumeError::Impossible`], [`VolumeError::SecretLength`],
    /// [`VolumeError::Unsupported`] for blocks larger than 4096 bytes, those
    /// of [`Kdf::derive`](crate::Kdf::derive) and of writing.
    pub fn create(
        &self,
        device: &dyn BlockDevice,
        passphrase: &Key,
        limits: &Limits,
    ) -> Result<Unlocked, VolumeError> {
        let geometry = device.geometry();
        let sector_size = self.sector_size(device)?;
        let needed = 2 * HEADERS_BYTES + u64::from(sector_size);
        if geometry.size < needed {
            return Err(VolumeError::TooSmall {
                size: geometry.size,
                needed,
            });
        }
        let unlocked = Unlocked {
            place: Place::Normal,
            offset: 0,
            spec: xts_spec(self.family, &self.algorithms)?,
            prf: self.sealing.prf,
            header: self.header(
                sector_size,
                ByteRange::new(HEADERS_BYTES, data_bytes(geometry.size, sector_size)),
            )?,
        };
        let [first, copy] = unlocked.seal(&self.sealing, passphrase, limits)?;
        // The old volume opens until its header goes, which is the last of all.
        let copy_at = geometry.size - HEADERS_BYTES;
        unaligned::write_verified(device, copy_at, &among_noise(&copy)?)?;
        unaligned::write_verified(device, 0, &among_noise(&first)?)?;
        Ok(unlocked)
    }

    /// Makes a hidden volume of `size` bytes at the end of the data of `outer`, the normal volume
    /// of `device`. Any data there are overwritten.
    ///
    /// # Errors
    /// [`VolumeError::Impossible`], [`VolumeError::Unsupported`] if `outer` isn't a normal volume
    /// or is older than version 4, and those of [`create`](Self::create).
    pub fn create_hidden(
        &self,
        device: &dyn BlockDevice,
        outer: &Unlocked,
        size: u64,
        passphrase: &Key,
        limits: &Limits,
    ) -> Result<Unlocked, VolumeError> {
        if outer.place.is_hidden() || outer.place == Place::System || outer.header.has_old_layout()
        {
            return Err(VolumeError::unsupported(
                outer.header.family.format(),
                "a header that leaves no room for a hidden volume",
            ));
        }
        let sector_size = self.sector_size(device)?;
        let room = outer.mapping(device)?.data;
        let left = match size {
            ..LARGE => LEFT_BY_SMALL,
            _ => LEFT_BY_LARGE,
        };
        // The outer volume keeps a sector at least.
        let most = room.length.saturating_sub(left + u64::from(sector_size));
        let unit = u64::from(sector_size);
        if size == 0 || size > most || !size.is_multiple_of(unit) {
            let most = most / unit * unit;
            return Err(impossible(
                format!(
                    "a hidden volume of {size} bytes is not possible: the maximum here is {most}, in \
                     steps of {unit}"
                ),
                "Choose a size that leaves room for the data of the outer volume.",
            ));
        }
        let unlocked = Unlocked {
            place: Place::Hidden,
            offset: HIDDEN_AT,
            spec: xts_spec(self.family, &self.algorithms)?,
            prf: self.sealing.prf,
            header: Header {
                hidden_size: size,
                ..self.header(
                    sector_size,
                    ByteRange::new(room.offset + room.length - left - size, size),
                )?
            },
        };
        let [first, copy] = unlocked.seal(&self.sealing, passphrase, limits)?;
        let copy_at = device.geometry().size - HIDDEN_AT;
        write_both(device, (copy_at, &copy), (HIDDEN_AT, &first))?;
        Ok(unlocked)
    }

    fn sector_size(&self, device: &dyn BlockDevice) -> Result<u32, VolumeError> {
        match device.geometry().logical_block {
            block @ ..=super::header::MOST_SECTOR_BYTES => Ok(block.max(UNIT as u32)),
            block => Err(VolumeError::unsupported(
                self.family.format(),
                format!("blocks of {block} bytes"),
            )),
        }
    }

    /// A header of today with new keys, all of whose data are encrypted.
    fn header(&self, sector_size: u32, data: ByteRange) -> Result<Header, VolumeError> {
        Ok(Header {
            family: self.family,
            version: super::header::NEWEST_VERSION,
            least_program: match self.family {
                Family::TrueCrypt => 0x0700,
                Family::VeraCrypt => 0x010b,
            },
            volume_time: 0,
            header_time: 0,
            hidden_size: 0,
            volume_size: data.length,
            data_offset: data.offset,
            encrypted_bytes: data.length,
            flags: 0,
            sector_size,
            key_area: Key::random(KEY_AREA_BYTES)?,
        })
    }
}

/// The cipher of new headers and data that is made of `algorithms`.
pub(super) fn xts_spec(
    family: Family,
    algorithms: &[Algorithm],
) -> Result<CipherSpec, VolumeError> {
    let mut specs = layers::specs_of(family, algorithms)?.into_iter();
    let xts = specs.find(|spec| spec.mode() == Mode::Xts);
    xts.ok_or_else(|| VolumeError::Lacks {
        format: family.format(),
        what: "XTS with a cipher of 64-bit blocks".into(),
        instead: Instead::WideBlocks,
    })
}

/// The room for data on a device of `size` bytes.
pub(super) fn data_bytes(size: u64, sector_size: u32) -> u64 {
    let sector = u64::from(sector_size);
    size.saturating_sub(2 * HEADERS_BYTES) / sector * sector
}

/// A header at the start of noise that fills what the headers of an end take.
pub(super) fn among_noise(header: &Sealed) -> Result<Zeroizing<Vec<u8>>, VolumeError> {
    let mut area = Zeroizing::new(vec![0; HEADERS_BYTES as usize]);
    getrandom::fill(&mut area).map_err(CipherError::from)?;
    area[..HEADER_BYTES as usize].copy_from_slice(header);
    Ok(area)
}
