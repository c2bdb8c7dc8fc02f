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

    /// PBKDF2 with more iterations than are allowed.
    #[error("the key derivation asks for {iterations} iterations, and the limit is {limit}")]
    KdfIterations {
        /// What was asked for.
        iterations: u32,
        /// What is allowed.
        limit: u32,
    },

    /// Argon2 with more memory than is allowed.
    #[error("the key derivation asks for {memory_kib} KiB of memory, and the limit is {limit_kib}")]
    KdfMemory {
        /// What was asked for, KiB.
        memory_kib: u32,
        /// What is allowed, KiB.
        limit_kib: u32,
    },

    /// Argon2 with more lanes than are allowed.
    #[error("the key derivation asks for {lanes} lanes, and the limit is {limit}")]
    KdfLanes {
        /// What was asked for.
        lanes: u32,
        /// What is allowed.
        limit: u32,
    },

    /// Argon2 with more passes over so much memory than are allowed.
    #[error(
        "the key derivation fills {filled_kib} KiB in all its passes, and the limit is {limit_kib}"
    )]
    KdfFill {
        /// Passes times memory, KiB.
        filled_kib: u64,
        /// What is allowed, KiB.
        limit_kib: u64,
    },

    /// A key derivation that its standard does not have.
    #[error("the key derivation has {got} {what}, and the least is {least}")]
    KdfParameter {
        /// Which parameter.
        what: &'static str,
        /// What was asked for.
        got: u64,
        /// The smallest value.
        least: u64,
    },

    /// There is not as much memory as Argon2 needs.
    #[error("there is no memory left for a key derivation of {memory_kib} KiB")]
    OutOfMemory {
        /// What is needed, KiB.
        memory_kib: u32,
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
            Self::KdfIterations { .. }
            | Self::KdfMemory { .. }
            | Self::KdfLanes { .. }
            | Self::KdfFill { .. } => {
                "Do not open a volume of somebody else's that asks for so much; of your own, \
                 change the keyslot with the program that made it."
                    .to_owned()
            }
            Self::OutOfMemory { memory_kib } => format!(
                "Open it on a machine with more than {} MiB to spare, or change the keyslot there.",
                memory_kib >> 10
            ),
            Self::KdfParameter { what, least, .. } => {
                format!("Give at least {least} {what}; a header that says less is damaged.")
            }
        }
    }
}
