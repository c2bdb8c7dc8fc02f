//! Key slots of LUKS volumes: added, changed and removed.

use super::impossible;
use crate::place::Place;
use crate::{
    Argon2Variant, Format, Hash, Kdf, KdfKind, Limits, LuksHeader, Machine, Secret, Unlocked,
    VolumeError,
};
use cipher::Key;
use std::time::{Duration, Instant};

/// The time that opening a new key slot takes, as in cryptsetup.
const UNLOCK_TIME: Duration = Duration::from_secs(2);

/// cryptsetup's bounds: iterations of PBKDF2 and passes of Argon2, memory in KiB, lanes.
const LEAST_ITERATIONS: u32 = 1000;
const LEAST_PASSES: u32 = 4;
const LEAST_MEMORY: u32 = 32;
const MOST_MEMORY: u32 = 4 << 20;
const MOST_LANES: u32 = 4;

/// What a secret of a new key slot costs those who try it; what is not said is cryptsetup's default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeySlotCost {
    /// The derivation: without it Argon2id, and for LUKS1 PBKDF2, with the hash of its header.
    pub kind: Option<KdfKind>,
    /// About so much time on this machine.
    pub time: Option<Duration>,
    /// So many iterations of PBKDF2, or passes of Argon2, however long they take.
    pub iterations: Option<u32>,
    /// Memory of Argon2, KiB; with a time, the most of it.
    pub memory_kib: Option<u32>,
    /// Lanes of Argon2.
    pub lanes: Option<u32>,
}

impl KeySlotCost {
    /// The derivation for a key slot of `format`; `hash` is that of PBKDF2. To find one that takes
    /// its time takes seconds.
    ///
    /// # Errors
    /// [`VolumeError::Impossible`] for what no program takes for LUKS, or LUKS1 does not have.
    #[doc(hidden)]
    pub fn kdf(self, format: Format, hash: Option<Hash>) -> Result<Kdf, VolumeError> {
        let pbkdf2 = KdfKind::Pbkdf2(hash.unwrap_or(Hash::Sha256));
        let kind = match (self.kind, format) {
            (Some(KdfKind::Argon2(_)), Format::Luks1) => {
                return Err(impossible(
                    "LUKS1 has no Argon2",
                    "Choose PBKDF2, or LUKS2.",
                ));
            }
            (None, Format::Luks1) | (Some(KdfKind::Pbkdf2(_)), _) => pbkdf2,
            (Some(kind), _) => kind,
            (None, _) => KdfKind::Argon2(Argon2Variant::Id),
        };
        self.check(kind)?;
        let here = Machine::here();
        let machine = Machine {
            memory_kib: self.memory_kib.unwrap_or(here.memory_kib),
            lanes: self.lanes.unwrap_or(here.lanes),
        };
        match (kind, self.iterations) {
            (KdfKind::Pbkdf2(hash), Some(iterations)) => Ok(Kdf::Pbkdf2 { hash, iterations }),
            (KdfKind::Argon2(variant), Some(passes)) => Ok(machine.most_argon2(variant, passes)),
            (kind, None) => {
                let begun = Instant::now();
                let time = self.time.unwrap_or(UNLOCK_TIME);
                kind.calibrated(time, machine, &|| begun.elapsed())
            }
        }
    }

    /// Refuses what no program takes for LUKS.
    fn check(&self, kind: KdfKind) -> Result<(), VolumeError> {
        let is_argon2 = matches!(kind, KdfKind::Argon2(_));
        if !is_argon2 && (self.memory_kib.is_some() || self.lanes.is_some()) {
            return Err(impossible(
                "PBKDF2 has neither memory nor lanes",
                "Say neither.",
            ));
        }
        if self.time.is_some_and(|time| time.is_zero()) {
            return Err(impossible(
                "a key derivation in no time is not possible",
                "Give milliseconds, or a number of iterations.",
            ));
        }
        let least = match is_argon2 {
            true => LEAST_PASSES,
            false => LEAST_ITERATIONS,
        };
        let bounds = [
            ("KiB of memory", self.memory_kib, LEAST_MEMORY..=MOST_MEMORY),
            ("lanes", self.lanes, 1..=MOST_LANES),
            ("iterations", self.iterations, least..=u32::MAX),
        ];
        for (what, value, bounds) in bounds {
            let Some(value) = value.filter(|value| !bounds.contains(value)) else {
                continue;
            };
            let (least, most) = bounds.into_inner();
            return Err(impossible(
                format!("{value} {what} for a key derivation are not possible"),
                match most {
                    u32::MAX => format!("Give at least {least}."),
                    most => format!("Give a number from {least} to {most}."),
                },
            ));
        }
        Ok(())
    }
}

impl From<Kdf> for KeySlotCost {
    /// That of this derivation.
    fn from(kdf: Kdf) -> Self {
        match kdf {
            Kdf::Pbkdf2 { hash, iterations } => Self {
                kind: Some(KdfKind::Pbkdf2(hash)),
                iterations: Some(iterations),
                ..Self::default()
            },
            Kdf::Argon2 {
                variant,
                time,
                memory_kib,
                lanes,
            } => Self {
                kind: Some(KdfKind::Argon2(variant)),
                time: None,
                iterations: Some(time),
                memory_kib: Some(memory_kib),
                lanes: Some(lanes),
            },
        }
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

/// A LUKS volume whose key slots are about to be changed, and the secret that opened it.
///
/// Between the proof and the change its user may ask for a new secret, and others may change the
/// header. The secret then has to open the header that is changed.
#[derive(Debug)]
pub struct KeyChange<'a> {
    secret: &'a Secret,
    /// The key slot that the secret has to open, if one is named.
    named: Option<u32>,
    limits: Limits,
    header: LuksHeader,
    unlocked: Unlocked,
}

impl<'a> KeyChange<'a> {
    /// Opens the header with `secret`, by the key slot `named` if there is one. `place` may be open for
    /// reading.
    ///
    /// # Errors
    /// Those of reading and unlocking a header of LUKS.
    pub fn begin(
        place: &Place,
        secret: &'a Secret,
        named: Option<u32>,
        limits: Limits,
    ) -> Result<Self, VolumeError> {
        if !secret.is_here() {
            return Err(VolumeError::Forked { what: "the secret" });
        }
        let header = LuksHeader::read(place.header())?;
        let unlocked = header.unlock(place.header(), secret, named, &limits)?;
        Ok(Self {
            secret,
            named,
            limits,
            header,
            unlocked,
        })
    }

    /// The key slot that the secret opened, or the one that is named for a volume key.
    ///
    /// # Errors
    /// [`VolumeError::Impossible`] if there is neither.
    pub fn slot(&self) -> Result<u32, VolumeError> {
        let slot = self.unlocked.slot.or(self.named);
        slot.ok_or_else(|| {
            impossible(
                "the volume key does not show which keyslot is meant",
                "Name it with `key_slot`.",
            )
        })
    }

    /// The derivation of a new key slot that costs this. To find it takes seconds.
    ///
    /// # Errors
    /// Those of [`KeySlotCost::kdf`].
    pub fn kdf(&self, cost: KeySlotCost) -> Result<Kdf, VolumeError> {
        cost.kdf(self.header.format(), self.header.hash())
    }

    /// The header as it is now at `place`, which the secret opens.
    fn again(self, place: &Place) -> Result<Self, VolumeError> {
        let header = LuksHeader::read(place.header())?;
        match header == self.header {
            true => Ok(self),
            false => Self::begin(place, self.secret, self.named, self.limits),
        }
    }

    /// Adds a key slot that opens with `new`, the one of this number if there is one. Returns its
    /// number. `place` is open for [`Use::ChangeHeader`](crate::judge::Use::ChangeHeader).
    ///
    /// # Errors
    /// [`VolumeError::EmptyPassphrase`], and those of changing a header of LUKS.
    pub fn add(self, place: &Place, new: &NewKey, to: Option<u32>) -> Result<u32, VolumeError> {
        new.check()?;
        let mut now = self.again(place)?;
        let kdf = now.kdf(new.cost)?;
        let keys = (&now.unlocked.key, &new.secret);
        now.header.add_key(place.header(), keys, kdf, to)
    }

    /// Gives the key slot that the secret opens the secret `new` instead. Returns its number, which
    /// LUKS1 changes. `place` is open as for [`add`](Self::add).
    ///
    /// # Errors
    /// Those of [`slot`](Self::slot) and [`add`](Self::add).
    pub fn change(self, place: &Place, new: &NewKey) -> Result<u32, VolumeError> {
        new.check()?;
        let mut now = self.again(place)?;
        let slot = now.slot()?;
        let kdf = now.kdf(new.cost)?;
        let keys = (&now.unlocked.key, &new.secret);
        now.header.change_key(place.header(), keys, kdf, slot)
    }

    /// Removes the key slot of that number, or the one that the secret opened. Returns its number.
    /// `place` is open as for [`add`](Self::add).
    ///
    /// # Errors
    /// [`VolumeError::LastKeyslot`] unless `last_too`, and those of [`change`](Self::change).
    pub fn remove(
        self,
        place: &Place,
        slot: Option<u32>,
        last_too: bool,
    ) -> Result<u32, VolumeError> {
        let mut now = self.again(place)?;
        let slot = slot.map_or_else(|| now.slot(), Ok)?;
        now.header.kill_key(place.header(), slot, last_too)?;
        Ok(slot)
    }
}

/// Adds a key slot that opens with `new`. Returns its number.
///
/// `place` is open for [`Use::ChangeHeader`](crate::judge::Use::ChangeHeader). If the program stops
/// at any time, the volume has its key slots of before, and perhaps the new one.
///
/// # Errors
/// Those of [`KeyChange::begin`] and [`KeyChange::add`].
pub fn add_key(
    place: &Place,
    secret: &Secret,
    new: &NewKey,
    options: &KeyOptions,
) -> Result<u32, VolumeError> {
    new.check()?;
    KeyChange::begin(place, secret, options.slot, options.limits)?.add(place, new, options.new_slot)
}

/// Gives the key slot that `secret` opens the secret `new` instead. Returns its number, which LUKS1
/// changes.
///
/// The old secret opens until the new one does.
///
/// # Errors
/// Those of [`KeyChange::begin`] and [`KeyChange::change`].
pub fn change_key(
    place: &Place,
    secret: &Secret,
    new: &NewKey,
    options: &KeyOptions,
) -> Result<u32, VolumeError> {
    new.check()?;
    KeyChange::begin(place, secret, options.slot, options.limits)?.change(place, new)
}

/// Removes the key slot that `options` name, or the one that `secret` opens. Returns its number.
///
/// # Errors
/// Those of [`KeyChange::begin`] and [`KeyChange::remove`].
pub fn remove_key(
    place: &Place,
    secret: &Secret,
    options: &KeyOptions,
) -> Result<u32, VolumeError> {
    // Who removes a key has one that stays, or means the one that opens.
    let change = KeyChange::begin(place, secret, None, options.limits)?;
    change.remove(place, options.slot, options.last_too)
}
