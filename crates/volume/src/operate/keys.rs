//! Key slots of LUKS volumes: added, changed and removed.

use crate::luks_header::no_argon2;
use crate::place::Place;
use crate::{
    Argon2Variant, Format, Hash, Kdf, KdfKind, Limits, LuksHeader, Machine, Secret, Unlocked,
    VolumeError,
};
use cipher::Key;
use std::time::{Duration, Instant};

/// The time that opening a new key slot takes, as in cryptsetup.
const UNLOCK_TIME: Duration = Duration::from_secs(2);

/// What a passphrase of a new key slot costs those who try it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeySlotCost {
    /// About so much time on this machine. Without a kind, it is Argon2id, and for LUKS1 PBKDF2 with
    /// the hash of its header.
    Time(Option<KdfKind>, Duration),
    /// That of this derivation.
    Fixed(Kdf),
}

impl Default for KeySlotCost {
    /// Two seconds.
    fn default() -> Self {
        Self::timed(None, None)
    }
}

impl KeySlotCost {
    /// About `time` of this kind of derivation; what is not said is the default.
    pub fn timed(kind: Option<KdfKind>, time: Option<Duration>) -> Self {
        Self::Time(kind, time.unwrap_or(UNLOCK_TIME))
    }

    /// The derivation for a key slot of `format`; `hash` is that of PBKDF2.
    #[doc(hidden)]
    pub fn kdf(self, format: Format, hash: Option<Hash>) -> Result<Kdf, VolumeError> {
        let (kind, time) = match self {
            Self::Fixed(kdf) => return Ok(kdf),
            Self::Time(kind, time) => (kind, time),
        };
        let pbkdf2 = KdfKind::Pbkdf2(hash.unwrap_or(Hash::Sha256));
        let kind = match (kind, format) {
            (Some(KdfKind::Argon2(_)), Format::Luks1) => return Err(no_argon2()),
            (None, Format::Luks1) | (Some(KdfKind::Pbkdf2(_)), _) => pbkdf2,
            (Some(kind), _) => kind,
            (None, _) => KdfKind::Argon2(Argon2Variant::Id),
        };
        let begun = Instant::now();
        kind.calibrated(time, Machine::here(), &|| begun.elapsed())
    }
}

/// A secret for a key slot.
#[derive(Debug)]
pub struct NewKey {
    /// A passphrase, or the content of a key file.
    pub secret: Key,
    /// What trying it costs.
    pub cost: KeySlotCost,
    /// Whether it may be empty. Anyone can open the volume then.
    pub allow_empty: bool,
}

impl NewKey {
    pub(super) fn check(&self) -> Result<(), VolumeError> {
        match self.secret.is_empty() && !self.allow_empty {
            true => Err(VolumeError::EmptyPassphrase),
            false => Ok(()),
        }
    }
}

/// Which key slots are meant.
#[derive(Clone, Copy, Debug, Default)]
pub struct KeyOptions {
    /// The key slot that the secret opens, and for [`remove_key`] the one that is removed; `None` is
    /// whichever opens.
    pub slot: Option<u32>,
    /// The key slot that is filled; `None` is the first free one.
    pub new_slot: Option<u32>,
    /// Whether the last key slot may be removed. Without it the data are lost.
    pub last_too: bool,
    /// Bounds of the work that a header may demand.
    pub limits: Limits,
}

/// Adds a key slot that opens with `new`. Returns its number.
///
/// `place` is open for [`Use::ChangeHeader`](crate::judge::Use::ChangeHeader). If the program stops
/// at any time, the volume has its key slots of before, and perhaps the new one.
///
/// # Errors
/// [`VolumeError::EmptyPassphrase`], and those of reading, unlocking and changing a header of LUKS.
pub fn add_key(
    place: &Place,
    secret: &Secret,
    new: &NewKey,
    options: &KeyOptions,
) -> Result<u32, VolumeError> {
    new.check()?;
    let (mut header, unlocked) = unlocked(place, secret, options.slot, options)?;
    let keys = (&unlocked.key, &new.secret);
    let kdf = new.cost.kdf(header.format(), header.hash())?;
    header.add_key(place.header(), keys, kdf, options.new_slot)
}

/// Gives the key slot that `secret` opens the secret `new` instead. Returns its number, which LUKS1
/// changes.
///
/// The old secret opens until the new one does.
///
/// # Errors
/// [`VolumeError::UnnamedKeyslot`] if a volume key is given and no number, and those of [`add_key`].
pub fn change_key(
    place: &Place,
    secret: &Secret,
    new: &NewKey,
    options: &KeyOptions,
) -> Result<u32, VolumeError> {
    new.check()?;
    let (mut header, unlocked) = unlocked(place, secret, options.slot, options)?;
    let slot = unlocked.slot.or(options.slot);
    let slot = slot.ok_or(VolumeError::UnnamedKeyslot)?;
    let keys = (&unlocked.key, &new.secret);
    let kdf = new.cost.kdf(header.format(), header.hash())?;
    header.change_key(place.header(), keys, kdf, slot)
}

/// Removes the key slot that `options` name, or the one that `secret` opens. Returns its number.
///
/// # Errors
/// [`VolumeError::LastKeyslot`], [`VolumeError::UnnamedKeyslot`], and those of reading, unlocking
/// and changing a header of LUKS.
pub fn remove_key(
    place: &Place,
    secret: &Secret,
    options: &KeyOptions,
) -> Result<u32, VolumeError> {
    // Who removes a key has one that stays, or means the one that opens.
    let (mut header, unlocked) = unlocked(place, secret, None, options)?;
    let slot = options.slot.or(unlocked.slot);
    let slot = slot.ok_or(VolumeError::UnnamedKeyslot)?;
    header.kill_key(place.header(), slot, options.last_too)?;
    Ok(slot)
}

fn unlocked(
    place: &Place,
    secret: &Secret,
    slot: Option<u32>,
    options: &KeyOptions,
) -> Result<(LuksHeader, Unlocked), VolumeError> {
    if !secret.is_here() {
        return Err(VolumeError::Forked { what: "the secret" });
    }
    let header = LuksHeader::read(place.header())?;
    let unlocked = header.unlock(place.header(), secret, slot, &options.limits)?;
    Ok((header, unlocked))
}
