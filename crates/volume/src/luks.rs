//! Constants and functions that both versions of LUKS share.

use crate::error::{impossible, no_such_keyslot};
use crate::{Hash, Kdf, Limits, VolumeError};
use cipher::{CipherError, Key};
use uuid::{Builder, Uuid};

/// The first bytes of every header; its version follows.
pub(crate) const MAGIC: &[u8] = b"LUKS\xBA\xBE";

/// What cryptsetup-reencrypt writes in its place while it works.
pub(crate) const MAGIC_OF_REENCRYPTION: &[u8] = b"LUKS\xDE\xAD";

/// The longest volume key that a header may ask for: cryptsetup's limit.
pub(crate) const MOST_KEY_BYTES: usize = 512;

/// Iterations of the digest of a volume key: cryptsetup's minimum. The key is random, and guessing
/// it is as hard as attacking the cipher, so slowness adds nothing.
pub(crate) const DIGEST_ITERATIONS: u32 = 1000;

/// What a digest of LUKS2 that is made here keeps of `key`: PBKDF2 with SHA-256.
pub(crate) fn digest_of(key: &Key, salt: &[u8]) -> Result<Key, VolumeError> {
    let hash = Hash::Sha256;
    let kdf = Kdf::Pbkdf2 {
        hash,
        iterations: DIGEST_ITERATIONS,
    };
    let length = hash.digest_bytes();
    kdf.derive(key.as_bytes(), salt, length, &Limits::default())
}

/// Refuses a key for a new volume that has another length than its header will say.
pub(crate) fn check_new_key(key: &Key, bytes: usize) -> Result<(), VolumeError> {
    match key.len() == bytes {
        true => Ok(()),
        false => Err(VolumeError::SecretLength {
            what: "volume key",
            got: key.len() as u64,
            rule: format!("{bytes} are needed").into(),
        }),
    }
}

/// The keyslot to fill of so many `slots`: the `wanted` one, or the first that is not used.
pub(crate) fn free_slot(
    wanted: Option<u32>,
    slots: u32,
    is_used: impl Fn(&u32) -> bool,
) -> Result<u32, VolumeError> {
    match wanted {
        None => {
            let free = (0..slots).find(|slot| !is_used(slot));
            free.ok_or(VolumeError::NoFreeKeyslot)
        }
        Some(slot) if is_used(&slot) => Err(VolumeError::KeyslotInUse { slot }),
        Some(slot) if slot < slots => Ok(slot),
        Some(slot) => Err(no_such_keyslot(slot, slots - 1)),
    }
}

/// A random UUID (RFC 9562, version 4) as text.
fn new_uuid() -> Result<String, VolumeError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(CipherError::from)?;
    Ok(Builder::from_random_bytes(bytes).into_uuid().to_string())
}

/// The UUID that the user gave, as it is written, or a new one.
///
/// # Errors
/// [`VolumeError::Impossible`] for what is none: 36 characters, as uuid_parse(3) takes them.
pub fn checked_uuid(uuid: Option<&str>) -> Result<String, VolumeError> {
    let Some(text) = uuid else { return new_uuid() };
    match Uuid::try_parse(text) {
        Ok(uuid) if text.len() == 36 => Ok(uuid.to_string()),
        _ => Err(impossible(
            format!("`{text}` is not a UUID"),
            "Give a UUID such as 123e4567-e89b-42d3-a456-426614174000, or omit it for a random one.",
        )),
    }
}

/// A text that fits into `room` bytes with the zero that ends it.
pub(crate) fn checked_text(
    what: &'static str,
    text: &str,
    room: usize,
) -> Result<String, VolumeError> {
    if text.len() >= room || text.contains('\0') {
        let (got, room) = (text.len(), room - 1);
        return Err(impossible(
            format!("the {what} has {got} bytes, and there is room for {room}"),
            "Give a shorter text.",
        ));
    }
    Ok(text.to_owned())
}
