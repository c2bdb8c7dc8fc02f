//! Volumes as a format lays them out: header, offset, sector size, IV numbers.

use super::{Encryption, Target};
use crate::error::LabError;
use block::BlockDevice;
use cipher::{Key, SectorSize};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use volume::luks2::{self, KeyslotOptions};
use volume::tcrypt::{self, Family, Prf, Sealing};
use volume::{Format, Hash, Kdf, Limits, Mapping};

/// The passphrase of a volume that lives as long as a measurement.
pub(super) const PASSPHRASE: &[u8] = b"measured and thrown away";

/// Unlocking is not what is measured: the least that LUKS2 takes, and the least PIM.
const ITERATIONS: u32 = 1000;
pub(super) const PIM: u32 = 1;

/// A format in which volumes are made to be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum VolumeFormat {
    /// LUKS2, with the plan's sector size.
    Luks2,
    /// TrueCrypt: XTS, 512-byte sectors.
    Tcrypt,
    /// VeraCrypt: the same under another header.
    Veracrypt,
}

impl VolumeFormat {
    /// The contract's word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Luks2 => Format::Luks2.name(),
            Self::Tcrypt => Format::Tcrypt.name(),
            Self::Veracrypt => Format::Veracrypt.name(),
        }
    }
}

impl Target {
    /// The built-in engine over a new volume of all of `storage`, whose header areas are
    /// overwritten.
    ///
    /// # Errors
    /// [`LabError`] if the format lacks the cipher or has too little room.
    pub fn volume(
        storage: Arc<dyn BlockDevice>,
        encryption: Encryption,
        format: VolumeFormat,
    ) -> Result<Self, LabError> {
        let family = match format {
            VolumeFormat::Luks2 => None,
            VolumeFormat::Tcrypt => Some(Family::TrueCrypt),
            VolumeFormat::Veracrypt => Some(Family::VeraCrypt),
        };
        let passphrase = Key::from_slice(PASSPHRASE);
        let (encryption, mapping) = match family {
            None => {
                let key = Key::random(encryption.key_bits as usize / 8)?;
                let creation = luks2::Creation {
                    cipher: luks2::DataCipher::Plain(encryption.spec),
                    key_bytes: key.len(),
                    sector_size: encryption.sector_size,
                    keyslot: KeyslotOptions::new(Kdf::Pbkdf2 {
                        hash: Hash::Sha256,
                        iterations: ITERATIONS,
                    }),
                    data_offset: None,
                    detached: false,
                    label: String::new(),
                    subsystem: String::new(),
                    uuid: None,
                };
                let header = luks2::Header::create(&*storage, &creation, &key, &passphrase)?;
                (encryption, header.mapping(key, &*storage)?)
            }
            Some(family) => tcrypt_volume(&*storage, family, encryption, &passphrase)?,
        };
        storage.flush()?;
        Ok(Self {
            format: Some(format),
            ..Self::mapped(storage, encryption, mapping)?
        })
    }
}

/// Makes a volume of TrueCrypt's family on all of `storage`. Returns its encryption and the place
/// of its data.
///
/// # Errors
/// [`LabError`] if the family lacks the cipher or there is too little room.
pub(super) fn tcrypt_volume(
    storage: &dyn BlockDevice,
    family: Family,
    encryption: Encryption,
    passphrase: &Key,
) -> Result<(Encryption, Mapping), LabError> {
    let creation = tcrypt::Creation {
        family,
        algorithms: encryption.spec.algorithms().to_vec(),
        sealing: Sealing {
            pim: (family == Family::VeraCrypt).then_some(PIM),
            ..Sealing::new(Prf::Pbkdf2(Hash::Sha512))
        },
    };
    let made = creation.create(storage, passphrase, &Limits::default())?;
    let mapping = made.mapping(storage)?;
    let encryption = Encryption {
        spec: mapping.spec,
        key_bits: mapping.key.len() as u32 * 8,
        sector_size: SectorSize::B512,
        ..encryption
    };
    Ok((encryption, mapping))
}
