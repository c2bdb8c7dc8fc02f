//! [`Unfinished`]: the work of another program on a volume, which that program must finish.

use crate::damage::printable;
use crate::fields::Fields;
use crate::luks::MAGIC_OF_REENCRYPTION;
use crate::{Format, VolumeError, bitlk, fvault2, luks2, unaligned};
use block::BlockDevice;
use std::fmt;

/// A volume in a state that another program marks as its own. What is written to it now may be
/// lost, or may spoil the rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unfinished {
    /// cryptsetup-reencrypt of LUKS. A part of the data has another key, which is in files beside.
    CryptsetupReencrypt {
        /// The UUID of the volume, which is in the names of the files.
        uuid: String,
    },
    /// An encryption or decryption by BitLocker.
    Bitlk {
        /// Its state.
        state: &'static str,
    },
    /// An encryption or decryption by FileVault.
    Fvault2 {
        /// Its state, as macOS writes it.
        state: String,
    },
}

impl fmt::Display for Unfinished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CryptsetupReencrypt { uuid } => {
                let uuid = printable(uuid);
                write!(
                    f,
                    "cryptsetup-reencrypt has begun to reencrypt this LUKS volume and has not \
                     finished: LUKS-{uuid}.log, LUKS-{uuid}.org and LUKS-{uuid}.new have its state"
                )
            }
            Self::Bitlk { state } => write!(f, "Windows has not finished: {state}"),
            Self::Fvault2 { state } => write!(
                f,
                "macOS has not finished the encryption or decryption of this volume ({})",
                printable(state)
            ),
        }
    }
}

impl Unfinished {
    /// What finishes it.
    pub fn remedy(&self) -> String {
        match self {
            Self::CryptsetupReencrypt { .. } => {
                "Nothing was changed. Run `cryptsetup reencrypt` on the volume in the folder with \
                 these files. Only with them can the data be read."
                    .to_owned()
            }
            Self::Bitlk { .. } => {
                "Open the volume for reading only. Let Windows finish: `manage-bde -status` shows \
                 how far it is."
                    .to_owned()
            }
            Self::Fvault2 { .. } => {
                "Let macOS finish: `diskutil cs list` shows how far it is.".to_owned()
            }
        }
    }
}

/// The unfinished work of another program on the volume that begins `device`. A header that cannot
/// be read tells nothing.
pub fn unfinished(device: &dyn BlockDevice) -> Option<Unfinished> {
    if let Ok(Some(uuid)) = in_cryptsetups_hands(device) {
        return Some(Unfinished::CryptsetupReencrypt { uuid });
    }
    match Format::detect(device).ok().flatten() {
        Some(Format::Luks2) => luks2::Header::read(device).ok().and_then(|header| {
            let uuid = header.binary.uuid.to_string();
            let offline = header.is_reencrypted_offline();
            offline.then_some(Unfinished::CryptsetupReencrypt { uuid })
        }),
        Some(Format::Bitlk) => bitlk::Header::read(device).ok().and_then(|header| {
            let conversion = header.conversion;
            let state = conversion.state.name();
            conversion
                .is_under_way()
                .then_some(Unfinished::Bitlk { state })
        }),
        Some(Format::Fvault2) => fvault2::Header::read(device).ok().and_then(|header| {
            let state = header.conversion.filter(|state| state != "Complete")?;
            Some(Unfinished::Fvault2 { state })
        }),
        _ => None,
    }
}

/// The UUID of a LUKS1 volume whose magic cryptsetup-reencrypt has replaced while it works.
pub(crate) fn in_cryptsetups_hands(
    device: &dyn BlockDevice,
) -> Result<Option<String>, VolumeError> {
    const UUID_AT: usize = 168;
    const UUID_BYTES: usize = 40;
    let start = unaligned::read_up_to(device, 0, 512)?;
    let is_marked = start.starts_with(MAGIC_OF_REENCRYPTION) && start.len() > UUID_AT + UUID_BYTES;
    Ok(is_marked.then(|| Fields(&start).text(UUID_AT, UUID_BYTES).to_string()))
}
