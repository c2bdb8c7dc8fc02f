//! Another cipher or key for the data where they are.

use super::create::usual_key_bytes;
use super::keys::KeySlotCost;
use super::wipe::check_cipher;
use super::{Report, impossible};
use crate::judge::{self, State, Use};
use crate::luks2::{Header, Keys, KeyslotOptions, SegmentKind, Target};
use crate::place::Place;
use crate::{Format, Given, Hash, Limits, LuksHeader, Own, Parameters, Secret, VolumeError};
use block::BlockDevice;
use cipher::{CipherSpec, Key, SectorSize};

/// What the data become.
///
/// `parameters` have the new cipher, key size, sector size and hash; what is not said stays, but for
/// the key. `key_slot` is the slot that the secret opens.
#[derive(Debug)]
pub struct Reencryption {
    /// The new cipher and sizes.
    pub parameters: Parameters,
    /// What a secret costs those who try it.
    pub cost: KeySlotCost,
    /// The secrets of other key slots, which stay. All others are lost.
    pub kept: Vec<Key>,
    /// What may be lost, or may be weak.
    pub accepted: Vec<State>,
    /// Bounds of the work that a header may demand.
    pub limits: Limits,
}

impl Default for Reencryption {
    /// A new key, and nothing else.
    fn default() -> Self {
        Self {
            parameters: Parameters::default(),
            cost: KeySlotCost::default(),
            kept: Vec::new(),
            accepted: Vec::new(),
            limits: Limits::default(),
        }
    }
}

/// Gives the data of a LUKS2 volume another key, and another cipher if that is asked for. A change
/// that was stopped is continued, whatever was asked for then.
///
/// `place` is open for [`Use::Reencrypt`]. The volume opens at any time, also after the program was
/// killed; call this again to continue.
///
/// # Errors
/// [`VolumeError::Judged`] for key slots that would be lost, a cipher that does not protect, and
/// data that do not belong to their header; [`VolumeError::Impossible`] for volumes that are not of
/// LUKS2, and for a volume key without a passphrase; those of unlocking. Nothing was changed then.
/// [`VolumeError::Stopped`] if `report` asks for it, and those of reading and writing.
pub fn reencrypt(
    place: &Place,
    secret: &Secret,
    options: &Reencryption,
    report: Report<'_>,
) -> Result<(), VolumeError> {
    if !secret.is_here() {
        return Err(VolumeError::Forked { what: "the secret" });
    }
    let device = place.header();
    let mut header = match LuksHeader::read(device)? {
        LuksHeader::Luks2(header) => *header,
        LuksHeader::Luks1(_) => return Err(no_journal()),
    };
    if place.is_apart() && !header.is_decrypted() {
        check_apart(&header, place.data(), &options.accepted)?;
    }
    let keys = if header.is_reencrypting() {
        if header.reencryption_mode() != Some("reencrypt") {
            return Err(VolumeError::RecoveryNeeded);
        }
        header.unlock_both(device, secret, &options.limits)?
    } else {
        let chosen = Chosen::of(&header, place.data(), options)?;
        let slot = options.parameters.key_slot;
        let unlocked = header.unlock(device, secret, slot, &options.limits)?;
        let first = first_kept(secret, unlocked.slot)?;
        let kept = kept(&header, device, first, options)?;
        chosen.begin(&mut header, place, (unlocked.key, &kept), options)?
    };
    run(&mut header, (device, place.data()), &keys, report)
}

/// LUKS1 has no reencryption.
pub fn no_journal() -> VolumeError {
    impossible(
        "a LUKS1 volume cannot be reencrypted in place: its header has no room for a journal",
        "Convert it to LUKS2 first.",
    )
}

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

/// The key slots that stay, each with its secret: `first`, and those that the other secrets open.
fn kept(
    header: &Header,
    device: &dyn BlockDevice,
    first: (u32, Key),
    options: &Reencryption,
) -> Result<Vec<(u32, Key)>, VolumeError> {
    let mut kept = vec![first];
    for secret in &options.kept {
        let found = opened(header, device, &kept, secret, &options.limits)?;
        kept.push((found, Key::from_slice(secret.as_bytes())));
    }
    Ok(kept)
}

/// The key slot that `secret` opens, of those that are not `kept` yet.
///
/// # Errors
/// [`VolumeError::NoKeyslotFits`], and those of [`Header::unlock`].
pub fn opened(
    header: &Header,
    device: &dyn BlockDevice,
    kept: &[(u32, Key)],
    secret: &Key,
    limits: &Limits,
) -> Result<u32, VolumeError> {
    let words = Secret::Passphrase(Key::from_slice(secret.as_bytes()));
    for &slot in header.keyslots_of_data()? {
        // A slot that no passphrase opens here cannot be kept.
        if kept.iter().any(|(other, _)| *other == slot)
            || header.check_keyslot(slot, limits).is_err()
        {
            continue;
        }
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
    /// Those of [`reencrypt`].
    pub fn of(
        header: &Header,
        data: &dyn BlockDevice,
        options: &Reencryption,
    ) -> Result<Self, VolumeError> {
        let mut segments = header.metadata.segments.values();
        let only = (segments.next().map(|it| &it.kind), segments.next());
        let (
            Some(SegmentKind::Crypt {
                encryption,
                sector_size,
                ..
            }),
            None,
        ) = only
        else {
            return Err(several_segments());
        };
        let said = &options.parameters;
        let spec = match said.cipher()? {
            Some(spec) => spec,
            None => encryption.parse()?,
        };
        let size = data.geometry().size;
        let usual = usual_key_bytes(&spec);
        Ok(Self {
            spec,
            sector_size: said.sector_size()?.unwrap_or(*sector_size),
            key_bytes: said.key_bytes()?.unwrap_or(usual),
            hash: said.hash()?,
            warnings: check_cipher(Use::Reencrypt, spec, size, &options.accepted)?,
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
        options: &Reencryption,
    ) -> Result<Keys, VolumeError> {
        let kept: Vec<(u32, &Key)> = kept.iter().map(|(slot, key)| (*slot, key)).collect();
        // Before the costs of new key slots are looked for, which takes seconds.
        header.check_kept(&kept, &options.accepted)?;
        let kdf = options.cost.kdf(Format::Luks2, self.hash)?;
        let target = Target {
            spec: self.spec,
            sector_size: self.sector_size,
            keyslot: KeyslotOptions {
                af_hash: self.hash.unwrap_or(Hash::Sha256),
                // The secrets are those of before.
                allow_empty: true,
                ..KeyslotOptions::new(kdf)
            },
        };
        let new = Key::random(self.key_bytes)?;
        let keys = Keys { old, new };
        let (device, data) = (place.header(), place.data());
        header.begin_reencryption(device, data, &target, &keys, &kept, &options.accepted)?;
        Ok(keys)
    }
}

/// Goes through all data, from the start or from where it was stopped.
///
/// # Errors
/// Those of [`Header::reencrypt`].
pub fn run(
    header: &mut Header,
    (device, data): (&dyn BlockDevice, &dyn BlockDevice),
    keys: &Keys,
    report: Report<'_>,
) -> Result<(), VolumeError> {
    #[cfg(target_os = "linux")]
    let _lock = lock(&header.binary.uuid.lossy())?;
    let total = data.geometry().size;
    header.reencrypt(device, data, keys, &|done| report(done, total))
}

/// The lock under which cryptsetup reencrypts the volume of this UUID. If its folder cannot be
/// used, the reencryption goes on without the lock, as cryptsetup's does.
#[cfg(target_os = "linux")]
fn lock(uuid: &str) -> Result<Option<block::hold::MetadataLock>, VolumeError> {
    // The header says what it likes, and this is going to be the name of a file.
    if !uuid
        .bytes()
        .all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
    {
        return Ok(None);
    }
    match block::hold::lock_resource(&format!("LUKS2-reencryption-{uuid}")) {
        Ok(lock) => Ok(Some(lock)),
        Err(block::BlockError::Examine { .. }) => Ok(None),
        Err(error) => Err(error.into()),
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
        Own::Newer | Own::Unclear => {
            let found = judge::CONTRADICTS;
            judge::check(Use::Reencrypt, State::OtherHeader, found, accepted).map(|()| false)
        }
    }
}

/// Some program has made something else of the volume than encrypted data.
pub fn several_segments() -> VolumeError {
    impossible(
        "the volume does not have exactly one segment of encrypted data",
        "Continue with the program that made it so.",
    )
}
