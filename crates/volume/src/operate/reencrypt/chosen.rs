//! [`Chosen`]: what the data become, and whether they belong to their header.

use super::super::create::{check_has_key, usual_key_bytes};
use super::super::wipe::check_cipher;
use super::super::{Options, impossible};
use super::{Caller, several_segments};
use crate::judge::{self, State, Use};
use crate::luks2::{Header, Keys, KeyslotOptions, Target};
use crate::place::Place;
use crate::{Given, Hash, Limits, LuksHeader, Own, Secret, VolumeError};
use block::BlockDevice;
use cipher::{CipherSpec, Key, SectorSize};

/// The key slot that the secret has opened, which stays, and the secret.
///
/// # Errors
/// [`VolumeError::Impossible`] for a volume key.
pub fn first_kept(secret: &Secret, slot: Option<u32>) -> Result<(u32, Key), VolumeError> {
    match (secret, slot) {
        (Secret::Passphrase(words) | Secret::KeyFile(words), Some(slot)) => {
            Ok((slot, Key::from_slice(words.as_bytes())))
        }
        _ => Err(impossible(
            "the new key slot needs a passphrase",
            "Give one that opens the volume, not its volume key.",
        )),
    }
}

/// The key slots of the data that are not `kept` yet. One that no passphrase opens here cannot be
/// kept.
///
/// # Errors
/// Those of [`Header::keyslots_of_data`].
pub fn left(
    header: &Header,
    kept: &[(u32, Key)],
    limits: &Limits,
) -> Result<Vec<u32>, VolumeError> {
    let all = header.keyslots_of_data()?.iter().copied();
    let is_kept = |slot: u32| kept.iter().any(|(other, _)| *other == slot);
    Ok(all
        .filter(|&slot| !is_kept(slot) && header.check_keyslot(slot, limits).is_ok())
        .collect())
}

/// The one of these key slots that `secret` opens.
///
/// # Errors
/// [`VolumeError::NoKeyslotFits`], and those of [`Header::unlock`].
pub fn opened(
    header: &Header,
    device: &dyn BlockDevice,
    slots: &[u32],
    secret: &Key,
    limits: &Limits,
) -> Result<u32, VolumeError> {
    let words = Secret::Passphrase(Key::from_slice(secret.as_bytes()));
    for &slot in slots {
        match header.unlock(device, &words, Some(slot), limits) {
            Ok(_) => return Ok(slot),
            Err(VolumeError::NoKeyslotFits { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Err(VolumeError::NoKeyslotFits {
        given: Given::Other,
    })
}

/// What is chosen for the data, and is possible.
#[derive(Debug)]
pub struct Chosen {
    spec: CipherSpec,
    sector_size: SectorSize,
    key_bytes: usize,
    hash: Option<Hash>,
    /// What is weak about it, in words.
    pub warnings: Vec<String>,
}

impl Chosen {
    /// The choice of the options for the data of `header`.
    ///
    /// # Errors
    /// Those of [`reencrypt`](super::reencrypt).
    pub fn of(
        header: &Header,
        data: &dyn BlockDevice,
        options: &Options,
        caller: &dyn Caller,
    ) -> Result<Self, VolumeError> {
        let mut segments = header.metadata.segments.values();
        let first = segments.next().and_then(|segment| segment.crypt());
        let only = first.filter(|_| segments.next().is_none());
        let crypt = only.ok_or_else(several_segments)?;
        let said = &options.parameters;
        let spec = match said.cipher()? {
            Some(spec) => spec,
            None => crypt.encryption.parse()?,
        };
        let size = data.geometry().size;
        check_has_key(spec)?;
        let usual = usual_key_bytes(&spec);
        let warnings = check_cipher(Use::Reencrypt, spec, size, &options.accepted);
        let warnings = warnings.map_err(|error| {
            let others = header.keyslots_of_data().map_or(0, <[u32]>::len);
            also_lost(error, others.saturating_sub(1 + caller.others()))
        })?;
        Ok(Self {
            spec,
            sector_size: said.sector_size()?.unwrap_or(crypt.sector_size),
            key_bytes: said.key_bytes()?.unwrap_or(usual),
            hash: said.hash()?,
            warnings,
        })
    }

    /// Writes to the header that the reencryption has begun. `old` is the volume key, and the key
    /// slots beside it stay. Returns both keys.
    ///
    /// # Errors
    /// Those of [`Header::begin_reencryption`].
    pub fn begin(
        &self,
        header: &mut Header,
        place: &Place,
        (old, kept): (Key, &[(u32, Key)]),
        options: &Options,
        caller: &dyn Caller,
    ) -> Result<Keys, VolumeError> {
        let kept: Vec<(u32, &Key)> = kept.iter().map(|(slot, key)| (*slot, key)).collect();
        // Before the costs of new key slots are looked for, which takes seconds.
        header.check_kept(&kept, &options.accepted)?;
        let target = Target {
            spec: self.spec,
            sector_size: self.sector_size,
            keyslot: KeyslotOptions {
                af_hash: self.hash.unwrap_or(Hash::Sha256),
                // The secrets are those of before.
                allow_empty: true,
                stop: options.limits.stop,
                ..KeyslotOptions::new(caller.derivation(self.hash)?)
            },
        };
        let new = Key::random(self.key_bytes)?;
        let keys = Keys { old, new };
        let (device, data) = (place.header(), place.data());
        caller.begin()?;
        header.begin_reencryption(device, data, &target, &keys, &kept, &options.accepted)?;
        Ok(keys)
    }
}

/// The question of a weak cipher, with the key slots whose secrets are not there: who accepts one
/// loss may accept all of them.
fn also_lost(error: VolumeError, lost: usize) -> VolumeError {
    match error {
        VolumeError::Judged(mut finding) if lost > 0 => {
            finding.found.push_str(&format!(
                "; and {lost} more of its key slots would be lost, whose secrets were not given"
            ));
            VolumeError::Judged(finding)
        }
        error => error,
    }
}

/// Refuses to change data through a separate header if the data have a header of their own. Through
/// that one they would be read afterwards as if nothing had been done, or be changed a second time.
/// Returns whether the data have such a header, which is out of date.
///
/// # Errors
/// [`VolumeError::Judged`].
pub fn check_apart(
    header: &Header,
    data: &dyn BlockDevice,
    accepted: &[State],
) -> Result<bool, VolumeError> {
    let Ok(own) = LuksHeader::read(data) else {
        return Ok(false);
    };
    // Decrypted data may be a volume themselves, and so may data that are not encrypted yet.
    let has_plaintext = header
        .reencryption_mode()
        .is_some_and(|mode| mode != "reencrypt");
    let header = LuksHeader::Luks2(Box::new(header.clone()));
    let may_be_data = has_plaintext && header.data_offset() == 0;
    match header.own(&own) {
        Own::Erased => Ok(false),
        Own::Other if may_be_data => Ok(false),
        Own::Other => {
            let found = format!("the header of another LUKS volume, {}", own.uuid());
            judge::check(Use::Reencrypt, State::Unencrypted, found, accepted)?;
            Ok(false)
        }
        Own::Older => Ok(true),
        Own::Same => {
            let found = "has a header of its own, which would know nothing of the change";
            judge::check(Use::Reencrypt, State::OtherHeader, found, accepted).map(|()| false)
        }
        contradicts => {
            judge::check_contradiction(Use::Reencrypt, contradicts, accepted).map(|()| false)
        }
    }
}
