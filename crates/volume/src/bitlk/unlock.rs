//! From a secret to the key of the data.
//!
//! ```text
//! passphrase         SHA-256(SHA-256(UTF-16)) ─┐
//! recovery password  SHA-256(its 128 bits)    ─┴▶ stretched, 2^20 times SHA-256 ─▶ a key
//! startup key, clear key                                                        ─▶ a key
//! a key opens the volume master key, which opens the digest of the metadata and the data's key
//! ```

use super::bytes::{entries, key_in, kind, role};
use super::conversion::ConversionState;
use super::header::{Header, Method};
use super::protector::{Protector, ProtectorKind};
use super::{damaged, recovery};
use crate::error::impossible;
use crate::fields::Fields;
use crate::key_text;
use crate::{Damage, Format, Given, Hash, Kdf, Limits, Secret, Unlocked, VolumeError};
use cipher::Key;
use sha2::{Digest, Sha256};
use uuid::Uuid;
use zeroize::Zeroizing;

const ROUNDS: u32 = 1 << 20;

/// What is as much work as [`stretched`].
const STRETCHING: Kdf = Kdf::Pbkdf2 {
    hash: Hash::Sha256,
    iterations: ROUNDS,
};

/// Length of the head of a startup key file, bytes.
const KEY_FILE_HEAD: usize = 48;

/// Length of the head of the entry in it, bytes.
const EXTERNAL_KEY_HEAD: usize = 24;

/// The number of SHA-256 in the digest of the metadata.
const SHA_256: [u8; 2] = 0x2005_u16.to_le_bytes();

/// A secret, prepared for one kind of protector.
enum Offer {
    /// A passphrase, hashed twice.
    Passphrase(Key),
    /// The bits of a recovery password, hashed.
    Recovery(Key),
    /// The identifier of the protector that a startup key opens, and the key.
    StartupKey(Uuid, Key),
}

impl Header {
    /// Whether the volume opens without a secret, because it has a clear key or is decrypted.
    pub fn opens_by_itself(&self) -> bool {
        self.conversion.state == ConversionState::Decrypted || self.has_clear_key()
    }

    /// Whether the key of the data can be had without a secret.
    pub(crate) fn has_clear_key(&self) -> bool {
        self.has(ProtectorKind::ClearKey)
    }

    /// Finds the key of the data. It is empty if the volume is decrypted. An empty passphrase is no
    /// secret for a volume that [opens by itself](Self::opens_by_itself). Any other secret must fit.
    ///
    /// # Errors
    /// [`VolumeError::NoProtectorFits`], [`VolumeError::RecoveryPassword`],
    /// [`VolumeError::SecretKind`], [`VolumeError::SecretLength`], [`VolumeError::WrongVolumeKey`];
    /// [`VolumeError::Impossible`]; [`VolumeError::Header`] if the metadata do not
    /// match the encrypted digest.
    pub fn unlock(&self, secret: &Secret, limits: &Limits) -> Result<Unlocked, VolumeError> {
        let is_given = !matches!(secret, Secret::Passphrase(typed) if typed.is_empty());
        let is_decrypted = self.conversion.state == ConversionState::Decrypted;
        let nothing = |slot| Unlocked {
            key: Key::from_slice(&[]),
            slot,
        };
        match (is_given, is_decrypted) {
            (false, true) => Ok(nothing(None)),
            (false, false) => match self.by_clear_key()? {
                Some(found) => Ok(found),
                None => self.by_secret(secret, limits),
            },
            // There is nothing that it encrypts.
            (true, true) if matches!(secret, Secret::VolumeKey(_)) => {
                Err(VolumeError::WrongVolumeKey)
            }
            (true, true) => Ok(nothing(self.by_secret(secret, limits)?.slot)),
            (true, false) => self.by_secret(secret, limits),
        }
    }

    fn by_secret(&self, secret: &Secret, limits: &Limits) -> Result<Unlocked, VolumeError> {
        if let Secret::VolumeKey(key) = secret {
            let fits = |length| self.method.data_key(&vec![0; length]).is_some();
            let given = match self.method.in_file_of_dislocker(key.as_bytes()) {
                Some(key) => key,
                None => key_text::key_in(key, fits),
            };
            let key = self.method.data_key(given.as_bytes());
            return Ok(Unlocked {
                key: key.ok_or_else(|| VolumeError::SecretLength {
                    what: "volume key",
                    got: secret.bytes().len() as u64,
                    rule: format!("{} are needed", self.method.key_bytes()).into(),
                })?,
                slot: None,
            });
        }
        let (offers, mistyped) = offers(secret)?;
        self.check_work(&offers, limits)?;
        for offer in &offers {
            for (slot, protector) in (0..).zip(&self.protectors) {
                let Some(key) = offer.key_for(protector, limits)? else {
                    continue;
                };
                if let Some(found) = self.by_key(slot, protector, &key)? {
                    return Ok(found);
                }
            }
        }
        match mistyped {
            Some(damage) if self.has(ProtectorKind::RecoveryPassword) => {
                Err(VolumeError::RecoveryPassword { damage })
            }
            _ => Err(VolumeError::NoProtectorFits {
                given: Given::of(secret),
                there: self.kinds(),
            }),
        }
    }

    fn has(&self, kind: ProtectorKind) -> bool {
        self.protectors.iter().any(|known| known.kind == kind)
    }

    /// The kinds of protectors, each once.
    fn kinds(&self) -> Vec<&'static str> {
        let mut names = Vec::new();
        for protector in &self.protectors {
            if !names.contains(&protector.kind.name()) {
                names.push(protector.kind.name());
            }
        }
        names
    }

    /// Refuses more key derivations than `limits` allows.
    fn check_work(&self, offers: &[Offer], limits: &Limits) -> Result<(), VolumeError> {
        let stretched = |offer: &Offer| {
            let wanted = match offer {
                Offer::Passphrase(_) => ProtectorKind::Passphrase,
                Offer::Recovery(_) => ProtectorKind::RecoveryPassword,
                Offer::StartupKey(..) => return 0,
            };
            self.protectors
                .iter()
                .filter(|protector| protector.kind == wanted)
                .count()
        };
        let times: usize = offers.iter().map(stretched).sum();
        limits.check_all(std::iter::repeat_n(STRETCHING.work(32), times))
    }

    fn by_clear_key(&self) -> Result<Option<Unlocked>, VolumeError> {
        for (slot, protector) in (0..).zip(&self.protectors) {
            if protector.kind == ProtectorKind::ClearKey
                && let Some(key) = &protector.clear_key
                && let Some(found) = self.by_key(slot, protector, key)?
            {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// The key of the data, if `key` opens `protector`.
    fn by_key(
        &self,
        slot: u32,
        protector: &Protector,
        key: &Key,
    ) -> Result<Option<Unlocked>, VolumeError> {
        let opened = protector.master_key.as_ref().zip(of_256_bits(key));
        let Some(opened) = opened.and_then(|(sealed, key)| sealed.open(key)) else {
            return Ok(None);
        };
        let missing = |field: &str| damaged(Damage::missing(field));
        let master = key_in(&opened).map(|(_, key)| Key::from_slice(key));
        let master = master.ok_or_else(|| missing("volume master key"))?;
        let master = of_256_bits(&master).ok_or_else(|| missing("volume master key"))?;
        self.check_digest(master)?;
        let sealed = self.data_key.as_ref();
        let sealed = sealed.ok_or_else(|| missing("full volume encryption key"))?;
        let opened = sealed
            .open(master)
            .ok_or_else(|| missing("full volume encryption key"))?;
        let (method, key) = key_in(&opened).ok_or_else(|| missing("full volume encryption key"))?;
        if Method::numbered(method) != Some(self.method) {
            return Err(damaged(Damage::number(
                "method of the data's key",
                method,
                "must be that of the metadata",
            )));
        }
        let key = self.method.data_key(key).ok_or_else(|| {
            damaged(Damage::length(
                "full volume encryption key",
                key.len(),
                format!("must have {}", self.method.key_bytes()),
            ))
        })?;
        Ok(Some(Unlocked {
            key,
            slot: Some(slot),
        }))
    }

    /// Compares the metadata with the encrypted digest. Unlike the checksum, it cannot be forged.
    fn check_digest(&self, master: &[u8; 32]) -> Result<(), VolumeError> {
        let Some(sealed) = &self.digest else {
            return match self.version {
                1 => Ok(()),
                _ => Err(damaged(Damage::missing("validation"))),
            };
        };
        let said = sealed.open(master);
        let said = said.as_deref().and_then(|opened| {
            let first = *entries(opened).ok()?.first()?;
            let (method, digest) = first.body.split_first_chunk::<4>()?;
            (first.kind == kind::KEY && method[..2] == SHA_256).then_some(digest)
        });
        match said == Some(&self.sha256[..]) {
            true => Ok(()),
            false => Err(damaged(Damage::checksum(
                "the metadata, which the volume's key confirms,",
            ))),
        }
    }
}

impl Method {
    /// The key in a file of dislocker's: the number of the method, and two keys in 32 bytes each.
    fn in_file_of_dislocker(self, file: &[u8]) -> Option<Key> {
        const FILE_BYTES: usize = 66;
        let (number, keys) = file.split_first_chunk::<2>()?;
        if file.len() != FILE_BYTES || Self::numbered(u16::from_le_bytes(*number)) != Some(self) {
            return None;
        }
        Some(Key::from_slice(match self {
            Self::Elephant128 | Self::Elephant256 => keys,
            _ => &keys[..self.key_bytes()],
        }))
    }

    /// The key for the cipher from the stored key. Two 128-bit keys are stored in 256 bits each.
    fn data_key(self, stored: &[u8]) -> Option<Key> {
        const HALF: usize = 32;
        if self == Self::Elephant128 && stored.len() == 2 * HALF {
            let (data, diffuser) = stored.split_at(HALF);
            let key = Zeroizing::new([&data[..16], &diffuser[..16]].concat());
            return Some(Key::from_slice(&key));
        }
        (stored.len() == self.key_bytes()).then(|| Key::from_slice(stored))
    }
}

impl Offer {
    /// The key to try on `protector`, if the kind fits.
    fn key_for(&self, protector: &Protector, limits: &Limits) -> Result<Option<Key>, VolumeError> {
        Ok(match (self, protector.kind) {
            (Self::Passphrase(hashed), ProtectorKind::Passphrase)
            | (Self::Recovery(hashed), ProtectorKind::RecoveryPassword) => {
                let Some(salt) = protector.salt else {
                    return Ok(None);
                };
                let hashed = Key::from_slice(hashed.as_bytes());
                let work = move || Ok(stretched(&hashed, &salt));
                Some(limits.stop.run(work)?)
            }
            (Self::StartupKey(identifier, key), ProtectorKind::StartupKey)
                if *identifier == protector.identifier =>
            {
                Some(Key::from_slice(key.as_bytes()))
            }
            _ => None,
        })
    }
}

/// The possible meanings of `secret`, and the typing error if it looks like a recovery password.
fn offers(secret: &Secret) -> Result<(Vec<Offer>, Option<recovery::RecoveryDamage>), VolumeError> {
    let bytes = secret.bytes();
    if let Some(startup_key) = startup_key(bytes)? {
        return Ok((vec![startup_key], None));
    }
    let mut offers = Vec::new();
    let saved = matches!(secret, Secret::KeyFile(_)) && recovery::is_recovery_text(bytes);
    let saved = recovery::text_of(bytes).filter(|_| saved);
    let text = match &saved {
        Some(saved) => {
            let keys = recovery::found(saved).into_iter();
            offers.extend(keys.map(|key| Offer::Recovery(hash(key.as_bytes()))));
            // The first line may be a passphrase all the same.
            Ok(saved.lines().next().unwrap_or_default())
        }
        None => std::str::from_utf8(bytes),
    };
    let text = text.map_err(|_| VolumeError::SecretKind {
        format: Format::Bitlk,
        got: match secret {
            Secret::KeyFile(_) => "this key file, which isn't a startup key",
            _ => "a passphrase that is not UTF-8",
        },
    })?;
    let mut mistyped = None;
    if recovery::is_meant(text) {
        match recovery::key(text) {
            Ok(key) => offers.push(Offer::Recovery(hash(key.as_bytes()))),
            Err(damage) => mistyped = Some(damage),
        }
    }
    let mut units = Zeroizing::new(Vec::with_capacity(2 * text.len()));
    units.extend(text.encode_utf16().flat_map(u16::to_le_bytes));
    offers.push(Offer::Passphrase(hash(hash(&units).as_bytes())));
    Ok((offers, mistyped))
}

/// The key in a startup key file; `None` if `file` is something else.
fn startup_key(file: &[u8]) -> Result<Option<Offer>, VolumeError> {
    let Some((head, rest)) = file.split_at_checked(KEY_FILE_HEAD) else {
        return Ok(None);
    };
    let fields = Fields(head);
    if fields.le32(0) as usize != file.len() || fields.le32(4) != 1 || fields.le32(8) != 48 {
        return Ok(None);
    }
    let broken = |damage: Damage| {
        impossible(
            format!("the startup key cannot be used: {damage}"),
            "Check that it is the right file, that its name ends in .BEK, and that it is complete.",
        )
    };
    let missing = || broken(Damage::missing("external key"));
    let found = entries(rest).map_err(broken)?.into_iter();
    let mut found =
        found.filter(|entry| entry.role == role::STARTUP_KEY && entry.kind == kind::EXTERNAL_KEY);
    let external = found.next().ok_or_else(missing)?.body;
    let identifier = external.first_chunk().ok_or_else(missing)?;
    let inner = external.get(EXTERNAL_KEY_HEAD..).ok_or_else(missing)?;
    let inner = entries(inner).map_err(broken)?.into_iter();
    let key = inner.filter(|entry| entry.kind == kind::KEY);
    let key = key.filter_map(|entry| entry.body.get(4..)).next();
    Ok(Some(Offer::StartupKey(
        Uuid::from_bytes_le(*identifier),
        Key::from_slice(key.ok_or_else(missing)?),
    )))
}

/// SHA-256 over the last digest, `hashed`, the salt and a counter, 2^20 times.
fn stretched(hashed: &Key, salt: &[u8; 16]) -> Key {
    let mut block = Zeroizing::new([0; 88]);
    block[32..64].copy_from_slice(hashed.as_bytes());
    block[64..80].copy_from_slice(salt);
    for round in 0..u64::from(ROUNDS) {
        block[80..].copy_from_slice(&round.to_le_bytes());
        let digest = Zeroizing::new(<[u8; 32]>::from(Sha256::digest(&block[..])));
        block[..32].copy_from_slice(&digest[..]);
    }
    Key::from_slice(&block[..32])
}

fn hash(bytes: &[u8]) -> Key {
    Key::from_slice(&Hash::Sha256.digest(&[bytes]))
}

fn of_256_bits(key: &Key) -> Option<&[u8; 32]> {
    key.as_bytes().try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_of_short_keys_are_put_together() {
        let stored: Vec<u8> = (0..64).collect();
        let key = Method::Elephant128.data_key(&stored).unwrap();
        let expected: Vec<u8> = (0..16).chain(32..48).collect();
        assert_eq!(key.as_bytes(), expected);
        let key = Method::Elephant256.data_key(&stored).unwrap();
        assert_eq!(key.as_bytes(), stored);
        assert!(Method::Xts128.data_key(&stored).is_none());
    }

    #[test]
    fn what_is_no_startup_key_may_be_a_passphrase() {
        assert!(startup_key(b"a passphrase").unwrap().is_none());
        assert!(startup_key(&[0; 156]).unwrap().is_none());
        let mut file = vec![0; 156];
        file[..12].copy_from_slice(&[156, 0, 0, 0, 1, 0, 0, 0, 48, 0, 0, 0]);
        assert!(startup_key(&file).is_err());
    }
}
