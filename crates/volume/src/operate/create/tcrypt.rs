//! New volumes of TrueCrypt and VeraCrypt.

use super::encryption::plain_cipher;
use super::{Created, Creation, NewKey, begin, overwritten};
use crate::judge::{self, State, Use};
use crate::operate::wipe::{fill, reserve, shred_header};
use crate::operate::{Report, impossible};
use crate::place::Place;
use crate::tcrypt::{self, Family, HEADERS_BYTES, Prf, Sealing};
use crate::{Draft, Hash, Limits, VolumeError};
use block::{BlockDevice, ByteRange};
use cipher::Key;

/// The PIM that stands for VeraCrypt's usual iterations, and the length of a
/// passphrase from which on it takes smaller ones.
const USUAL_PIM: u32 = 485;
const LONG_PASSPHRASE: usize = 20;

/// Refuses what no place makes possible.
pub(super) fn check(creation: &Creation) -> Result<(), VolumeError> {
    let family = creation.format.family().unwrap_or(Family::VeraCrypt);
    creation.tcrypt(family).map(drop)
}

impl Creation {
    /// The ciphers and the derivation for a volume of `family`.
    ///
    /// # Errors
    /// [`VolumeError::Cipher`], [`VolumeError::Impossible`].
    #[doc(hidden)]
    pub fn tcrypt(&self, family: Family) -> Result<tcrypt::Creation, VolumeError> {
        let said = &self.parameters;
        let prf = said.hash.as_deref().map(|name| Prf::of(family, name));
        Ok(tcrypt::Creation {
            family,
            algorithms: plain_cipher(self)?.algorithms().to_vec(),
            sealing: Sealing {
                prf: prf.transpose()?.unwrap_or(Prf::Pbkdf2(Hash::Sha512)),
                pim: said.veracrypt_pim,
                keyfiles: said.keyfiles.clone().unwrap_or_default(),
            },
        })
    }
}

pub(super) fn create(
    place: &mut Place,
    new: &NewKey,
    creation: &Creation,
    report: Report<'_>,
) -> Result<Created, VolumeError> {
    let family = creation.format.family().unwrap_or(Family::VeraCrypt);
    let tcrypt = creation.tcrypt(family)?;
    let sealing = &tcrypt.sealing;
    let [device, _] = place.devices();
    let size = device.geometry().size;
    // A file that was there may have a tail.
    if place.is_new()[1] {
        check_whole(device.length()?)?;
    }
    // Key files are a secret themselves.
    if sealing.keyfiles.count() == 0 {
        new.check()?;
    }
    check_pim(family, sealing, &new.secret, &creation.accepted)?;
    // An impossible request fails here, while the old volume is still there.
    let draft = Draft::new(&device);
    let unlocked = tcrypt.create(&draft, &new.secret, &Limits::default())?;
    for at in [0, size.saturating_sub(HEADERS_BYTES)] {
        let range = match creation.quick {
            true => ByteRange::new(at, HEADERS_BYTES.min(size)),
            false => ByteRange::new(0, size),
        };
        reserve(&device, range)?;
    }
    let mapping = unlocked.mapping(&device)?;
    begin(place, creation)?;
    let write = || -> Result<(), VolumeError> {
        if creation.accepted.contains(&State::Data) {
            shred_header(&device)?;
        }
        draft.write()?;
        match creation.quick {
            true => Ok(()),
            // Unused space must look like used space.
            false => fill(&device, mapping.data, report),
        }
    };
    write().map_err(|error| overwritten(place, error))?;
    Ok(Created {
        uuid: None,
        cipher: unlocked.spec.to_string(),
        key_bits: mapping.key.len() * 8,
        derivation: unlocked.prf.to_string(),
        data: mapping.data,
        leaves_old_data: false,
    })
}

/// Refuses a size that is not a multiple of 512. With such a size, other programs look for the copy
/// of a TrueCrypt or VeraCrypt header in another place than this one.
pub(in crate::operate) fn check_whole(size: u64) -> Result<(), VolumeError> {
    match size.is_multiple_of(512) {
        true => Ok(()),
        false => Err(impossible(
            format!("{size} bytes are not whole sectors of 512"),
            format!(
                "Give {}, or another multiple of 512.",
                size.next_multiple_of(512)
            ),
        )),
    }
}

/// VeraCrypt's rule: fewer iterations than usual only with a long passphrase.
///
/// # Errors
/// [`VolumeError::Judged`].
pub fn check_pim(
    family: Family,
    sealing: &Sealing,
    passphrase: &Key,
    accepted: &[State],
) -> Result<(), VolumeError> {
    let few = matches!(sealing.pim, Some(1..USUAL_PIM));
    if family != Family::VeraCrypt || !few || passphrase.len() >= LONG_PASSPHRASE {
        return Ok(());
    }
    let found = format!(
        "a PIM below {USUAL_PIM} makes passphrases cheap to guess, and this one has fewer than \
         {LONG_PASSPHRASE} bytes"
    );
    judge::check(Use::Overwrite, State::Weak, found, accepted)
}
