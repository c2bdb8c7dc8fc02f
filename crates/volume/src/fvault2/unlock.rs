//! From a secret to the volume key.

use super::context::{User, WRAPPED_BYTES};
use super::header::Header;
use super::unsupported;
use crate::key_text;
use crate::mapping::described;
use crate::{Format, Given, Hash, Limits, Mapping, Row, Secret, Storage, Unlocked, VolumeError};
use aes_kw::KwAes128;
use aes_kw::cipher::KeyInit;
use cipher::{IvSector, Key, SectorLayout};
use zeroize::Zeroizing;

/// Length of the volume key, and of the tweak key behind it, bytes.
const KEY_BYTES: usize = 16;

impl Header {
    /// Finds the volume key with a passphrase or the recovery key.
    ///
    /// # Errors
    /// [`VolumeError::NoKeyslotFits`]; [`VolumeError::NoKeyslot`] if the metadata hold no
    /// wrapped keys; [`VolumeError::SecretLength`], [`VolumeError::Impossible`] and those of
    /// [`Kdf::derive`](crate::Kdf::derive).
    pub fn unlock(&self, secret: &Secret, limits: &Limits) -> Result<Unlocked, VolumeError> {
        if let Secret::VolumeKey(key) = secret {
            let key = key_text::key_in(key, |length| length == 2 * KEY_BYTES);
            return match key.len() == 2 * KEY_BYTES {
                true => Ok(Unlocked { key, slot: None }),
                false => Err(VolumeError::SecretLength {
                    what: "volume key",
                    got: key.len() as u64,
                    rule: format!("{} are needed", 2 * KEY_BYTES).into(),
                }),
            };
        }
        if self.users.is_empty() {
            return Err(VolumeError::NoKeyslot {
                format: Format::Fvault2,
            });
        }
        limits.check_all(self.users.iter().map(|user| user.kdf().work(KEY_BYTES)))?;
        for (slot, user) in (0..).zip(&self.users) {
            if let Some(key) = self.by_user(user, secret.bytes(), limits)? {
                return Ok(Unlocked {
                    key,
                    slot: Some(slot),
                });
            }
        }
        Err(VolumeError::NoKeyslotFits {
            given: Given::of(secret),
        })
    }

    fn by_user(
        &self,
        user: &User,
        passphrase: &[u8],
        limits: &Limits,
    ) -> Result<Option<Key>, VolumeError> {
        let derived = user
            .kdf()
            .derive(passphrase, &user.salt, KEY_BYTES, limits)?;
        let Some(kek) = unwrapped(derived.as_bytes(), &user.wrapped_kek) else {
            return Ok(None);
        };
        let mut keys = self.volume_keys.iter();
        let Some(key) = keys.find_map(|wrapped| unwrapped(&kek[..], wrapped)) else {
            return Ok(None);
        };
        let tweak = Zeroizing::new(Hash::Sha256.digest(&[&key[..], self.family.as_bytes()]));
        let whole = Zeroizing::new([&key[..], &tweak[..KEY_BYTES]].concat());
        Ok(Some(Key::from_slice(&whole)))
    }

    /// The rows of the opened volume.
    ///
    /// # Errors
    /// [`VolumeError::DataAlignment`]; [`VolumeError::Unsupported`] while the volume is encrypted or decrypted.
    pub fn rows(&self, key: &Key) -> Result<Vec<Row>, VolumeError> {
        if let Some(status) = self
            .conversion
            .as_deref()
            .filter(|status| *status != "Complete")
        {
            return Err(unsupported(format!(
                "an encryption that has not finished ({})",
                crate::damage::printable(status)
            )));
        }
        let layout = SectorLayout::default();
        let row = |extent: &super::Extent| {
            let spec = "aes-xts-plain64".parse()?;
            let key = Key::from_slice(key.as_bytes());
            let data = described(extent.place.offset, extent.place.length, layout)?;
            let first = IvSector::new(extent.start / 512);
            Ok(Row {
                storage: Storage::Data,
                mapping: Mapping::new(spec, key, layout, data, first),
            })
        };
        self.extents.iter().map(row).collect()
    }
}

/// Unwraps a key; `None` if `kek` is wrong.
fn unwrapped(kek: &[u8], wrapped: &[u8; WRAPPED_BYTES]) -> Option<Zeroizing<[u8; KEY_BYTES]>> {
    let kek: &[u8; KEY_BYTES] = kek.try_into().ok()?;
    let mut key = Zeroizing::new([0; KEY_BYTES]);
    KwAes128::new(kek.into())
        .unwrap_key(wrapped, &mut key[..])
        .ok()?;
    Some(key)
}
