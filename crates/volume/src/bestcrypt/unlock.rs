//! From a passphrase to the volume key, and by guess to the data.

use super::header::{Header, KEYSLOT_BYTES, KeyslotKind, unsupported};
use super::pkcs12;
use crate::mapping::data_of_size;
use crate::{
    CryptDevice, Format, Given, Kdf, Limits, Mapping, Secret, Unlocked, VolumeError, unaligned,
};
use block::{BlockDevice, ByteRange};
use cipher::{CipherSpec, IvSector, Key, Mode, SectorCipher, SectorLayout};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// Length of the part of a key slot that its digest covers, bytes: a length, numbers that the
/// header also has, and the key.
const SECRET_BYTES: usize = 90;
const KEY_AT: usize = 26;
const DIGEST_AT: usize = 96;
const IV_BYTES: usize = 16;

impl Header {
    /// Finds the volume key in the first keyslot that the passphrase opens.
    ///
    /// [`VolumeError::NoKeyslotFits`]; [`VolumeError::KdfWork`]; [`VolumeError::SecretKind`]
    /// for a secret other than a passphrase in UTF-8; [`VolumeError::Unsupported`] if no key slot
    /// takes a passphrase, or the mode is neither XTS nor CBC; [`VolumeError::Block`].
    pub fn unlock(
        &self,
        device: &dyn BlockDevice,
        secret: &Secret,
        limits: &Limits,
    ) -> Result<Unlocked, VolumeError> {
        let text = match secret {
            Secret::Passphrase(bytes) | Secret::KeyFile(bytes) => {
                std::str::from_utf8(bytes.as_bytes()).map_err(|_| VolumeError::SecretKind {
                    format: Format::Bestcrypt,
                    got: "a passphrase that is not UTF-8",
                })?
            }
            Secret::VolumeKey(_) => {
                return Err(VolumeError::SecretKind {
                    format: Format::Bestcrypt,
                    got: secret.kind(),
                });
            }
        };
        let (spec, key_bytes): (CipherSpec, _) = match self.mode {
            Mode::Xts => ("aes-xts-plain64".parse()?, 64),
            Mode::Cbc => ("aes-cbc-null".parse()?, 32),
            other => return Err(unsupported(format!("keyslots in {other}"))),
        };
        let slots = self.keyslots.iter();
        let mut slots = slots
            .filter(|slot| slot.kind == KeyslotKind::Passphrase)
            .peekable();
        if slots.peek().is_none() {
            return Err(unsupported("no keyslot with a passphrase"));
        }
        let kdf = Kdf::Pbkdf2 {
            hash: self.hash,
            iterations: self.iterations,
        };
        limits.check(kdf.work(key_bytes))?;
        let (hash, iterations, salt) = (self.hash, self.iterations, self.salt.clone());
        let text = Zeroizing::new(text.to_owned());
        let slot_key = limits
            .stop
            .run(move || Ok(pkcs12::derive(hash, &text, &salt, iterations, key_bytes)))?;
        for slot in slots {
            let range = ByteRange::new(Self::offset(slot.number), KEYSLOT_BYTES as u64);
            let body = unaligned::read(device, range)?;
            if let Some(key) = self.open(spec, &slot_key, &body)? {
                return Ok(Unlocked {
                    key,
                    slot: Some(slot.number),
                });
            }
        }
        Err(VolumeError::NoKeyslotFits {
            given: Given::of(secret),
        })
    }

    /// The key in a keyslot, if `slot_key` opens it.
    fn open(
        &self,
        spec: CipherSpec,
        slot_key: &Key,
        body: &[u8],
    ) -> Result<Option<Key>, VolumeError> {
        let digest_bytes = self.hash.digest_bytes();
        let length = DIGEST_AT + digest_bytes;
        let iv: [u8; 8] = *body[length..][..IV_BYTES]
            .first_chunk()
            .expect("it is longer");
        // The rest of the sector is not ciphertext, and is not used.
        let mut sector = Zeroizing::new([0; 512]);
        sector[..length].copy_from_slice(&body[..length]);
        let cipher = spec.cipher(slot_key, SectorLayout::default(), None)?;
        cipher.decrypt(IvSector::new(u64::from_le_bytes(iv)), &mut sector[..]);
        if self.mode == Mode::Cbc {
            for (byte, iv) in sector.iter_mut().zip(iv.iter().cycle()).take(IV_BYTES) {
                *byte ^= iv;
            }
        }
        let digest = self.hash.digest(&[&sector[..SECRET_BYTES]]);
        if !bool::from(digest.ct_eq(&sector[DIGEST_AT..][..digest_bytes])) {
            return Ok(None);
        }
        let end = usize::from(sector[0]);
        let key = sector[..SECRET_BYTES].get(KEY_AT..end);
        let key = key.ok_or_else(|| unsupported(format!("a key that ends at byte {end}")))?;
        Ok(Some(Key::from_slice(key)))
    }

    /// The data as they may be: XTS with an 8-byte sector number that counts
    /// from the start of the data or of the container. Believed only if a known
    /// signature shows.
    ///
    /// # Errors
    /// [`VolumeError::Unsupported`] if none shows, and in other modes;
    /// [`VolumeError::DataArea`], [`VolumeError::Block`].
    pub fn guessed_mapping(
        &self,
        key: &Key,
        device: &dyn BlockDevice,
    ) -> Result<Mapping, VolumeError> {
        if self.mode != Mode::Xts {
            return Err(unsupported(format!(
                "data in {}, an unpublished format",
                self.mode
            )));
        }
        let layout = SectorLayout::default();
        let data = data_of_size(device, self.data_start, self.data_length, layout)?;
        let spec: CipherSpec = "aes-xts-plain64".parse()?;
        for first in [0, self.data_start / 512] {
            let key = Key::from_slice(key.as_bytes());
            let mapping = Mapping::new(spec, key, layout, data, IvSector::new(first));
            let guess = CryptDevice::new(device, mapping.duplicate())?;
            if !block::signature::names(&guess)?.is_empty() {
                return Ok(mapping);
            }
        }
        Err(unsupported("an unpublished sector numbering"))
    }
}
