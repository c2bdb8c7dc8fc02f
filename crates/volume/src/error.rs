//! [`VolumeError`]: what can be wrong with a volume.

use cipher::CipherError;
use thiserror::Error;

/// Why a volume could not be opened.
#[derive(Debug, Error)]
pub enum VolumeError {
    /// The cipher cannot be built as the mapping asks.
    #[error(transparent)]
    Cipher(#[from] CipherError),

    /// The data area does not lie within the device.
    #[error(
        "the data area ({length} bytes from {offset}) does not fit the device of {device} bytes"
    )]
    DataArea {
        /// First byte of the data area.
        offset: u64,
        /// Length of the data area, bytes.
        length: u64,
        /// Size of the device, bytes.
        device: u64,
    },

    /// Offset or length of the data area is not a multiple of the sector size.
    #[error("the data area ({length} bytes from {offset}) is not made of {unit}-byte sectors")]
    DataAlignment {
        /// First byte of the data area.
        offset: u64,
        /// Length of the data area, bytes.
        length: u64,
        /// Sector size of the mapping or of the device, whichever is larger, bytes.
        unit: u32,
    },
}

impl VolumeError {
    /// What the user can do about it, one sentence.
    pub fn remedy(&self) -> String {
        match self {
            Self::Cipher(error) => error.remedy(),
            Self::DataArea { .. } => {
                "Give an offset and a size that lie within the device.".to_owned()
            }
            Self::DataAlignment { unit, .. } => {
                format!("Give an offset and a size that are multiples of {unit}.")
            }
        }
    }
}
