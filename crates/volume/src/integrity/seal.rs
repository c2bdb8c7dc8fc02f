//! [`Seal`]: what turns sectors into ciphertext and tags, and back only where
//! the tag is right.
//!
//! ```text
//! tag of a sector:   authentication tag │ IV, if it is random
//! associated data:   le64(sector, in units of 512 bytes) │ IV
//! ```
//!
//! Source: Linux, `crypt_convert_block_aead` of dm-crypt, and the `authenc`
//! template, which authenticates the associated data and then the ciphertext.

use super::given::GivenIv;
use crate::damage::printable;
use crate::{Format, VolumeError};
use aes_gcm::{AeadInOut, Aes128Gcm, Aes256Gcm, KeyInit};
use block::{BlockError, OperationKind};
use chacha20poly1305::ChaCha20Poly1305;
use cipher::{
    Algorithm, CipherSpec, IvGenerator, IvSector, Key, KeyedCipher, Mode, SectorCipher,
    SectorLayout, SectorSize,
};
use hmac::Hmac;
use sha1::Sha1;
use sha2::{Sha256, Sha512};
use std::io;
use subtle::ConstantTimeEq;

/// The longest IV.
const MOST_IV_BYTES: usize = 16;

/// Bytes of the associated data in front of the IV.
const NUMBER_BYTES: usize = 8;

/// The longest authentication tag: HMAC with SHA-512.
const MOST_SUM_BYTES: usize = 64;

/// A keyed cipher with authentication.
pub(super) struct Seal {
    method: Method,
    iv: Iv,
    sector_bytes: usize,
    /// Added to the number of a sector for its IV, in units of 512 bytes.
    first: IvSector,
}

/// How IVs come about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Iv {
    /// Drawn for every write, and kept behind the authentication tag.
    Random,
    /// The number of the sector.
    Plain64,
}

enum Method {
    Aes128Gcm(Box<Aes128Gcm>),
    Aes256Gcm(Box<Aes256Gcm>),
    ChaCha20Poly1305(Box<ChaCha20Poly1305>),
    /// A cipher without authentication, and a MAC over what it gives.
    Split {
        cipher: Box<Data>,
        mac: Option<Box<Mac>>,
    },
}

/// A cipher without authentication.
enum Data {
    /// One that makes its IVs of the sector's number.
    Numbered(KeyedCipher),
    /// One that is told its IVs.
    Given(GivenIv),
}

enum Mac {
    Sha1(Hmac<Sha1>),
    Sha256(Hmac<Sha256>),
    Sha512(Hmac<Sha512>),
}

impl Seal {
    /// The cipher that LUKS2 calls `encryption` with integrity `kind`. Of the
    /// key, the last `mac_key_bytes` are the MAC's, if that is not the length
    /// of its digest.
    ///
    /// # Errors
    /// [`VolumeError::Unsupported`], [`VolumeError::Cipher`].
    pub(super) fn new(
        encryption: &str,
        kind: &str,
        key: &Key,
        mac_key_bytes: Option<usize>,
        sector_size: SectorSize,
        first: IvSector,
    ) -> Result<Self, VolumeError> {
        let unsupported = || VolumeError::Unsupported {
            format: Format::Luks2,
            feature: format!(
                "`{}` with integrity `{}`",
                printable(encryption),
                printable(kind)
            )
            .into(),
        };
        let (transform, iv) = encryption.rsplit_once('-').ok_or_else(unsupported)?;
        let iv = match iv {
            "random" => Iv::Random,
            "plain64" => Iv::Plain64,
            _ => return Err(unsupported()),
        };
        let bytes = key.as_bytes();
        let method = match (transform, kind) {
            ("aes-gcm" | "capi:gcm(aes)", "aead") => match bytes.len() {
                16 => Method::Aes128Gcm(keyed(bytes).ok_or_else(unsupported)?),
                32 => Method::Aes256Gcm(keyed(bytes).ok_or_else(unsupported)?),
                _ => return Err(unsupported()),
            },
            ("chacha20", "poly1305") | ("capi:rfc7539(chacha20,poly1305)", "aead" | "poly1305") => {
                Method::ChaCha20Poly1305(keyed(bytes).ok_or_else(unsupported)?)
            }
            _ => {
                let digest_bytes = match kind {
                    "none" if iv == Iv::Random => 0,
                    "hmac(sha1)" => 20,
                    "hmac(sha256)" => 32,
                    "hmac(sha512)" => 64,
                    _ => return Err(unsupported()),
                };
                let mac_bytes = match kind {
                    "none" => 0,
                    _ => mac_key_bytes.unwrap_or(digest_bytes),
                };
                let split = bytes.len().checked_sub(mac_bytes).ok_or_else(unsupported)?;
                let (data_key, mac_key) = bytes.split_at(split);
                Method::Split {
                    cipher: Box::new(match iv {
                        Iv::Random => {
                            let name = transform.strip_suffix("-xts").ok_or_else(unsupported)?;
                            Data::Given(
                                GivenIv::new(name, data_key, sector_size)?
                                    .ok_or_else(unsupported)?,
                            )
                        }
                        Iv::Plain64 => {
                            let spec: CipherSpec = encryption.parse()?;
                            Data::Numbered(
                                numbered(&spec, data_key, sector_size)?.ok_or_else(unsupported)?,
                            )
                        }
                    }),
                    mac: match kind {
                        "none" => None,
                        _ => Some(Box::new(Mac::new(digest_bytes, mac_key))),
                    },
                }
            }
        };
        Ok(Self {
            method,
            iv,
            sector_bytes: sector_size.bytes(),
            first,
        })
    }

    /// Bytes that are kept beside each sector.
    pub(super) fn tag_bytes(&self) -> usize {
        self.sum_bytes()
            + match self.iv {
                Iv::Random => self.iv_bytes(),
                Iv::Plain64 => 0,
            }
    }

    /// Bytes of the authentication tag.
    fn sum_bytes(&self) -> usize {
        match &self.method {
            Method::Split { mac, .. } => mac.as_ref().map_or(0, |mac| mac.bytes()),
            _ => 16,
        }
    }

    fn iv_bytes(&self) -> usize {
        match &self.method {
            Method::Split { .. } => 16,
            _ => 12,
        }
    }

    /// The associated data of the sector with this number, whose random IV, if
    /// it has one, is in its tag.
    fn associated(&self, sector: u64, tag: &[u8]) -> [u8; NUMBER_BYTES + MOST_IV_BYTES] {
        let mut associated = [0; NUMBER_BYTES + MOST_IV_BYTES];
        let (number, iv) = associated.split_at_mut(NUMBER_BYTES);
        number.copy_from_slice(&sector.to_le_bytes());
        match self.iv {
            Iv::Random => iv[..self.iv_bytes()].copy_from_slice(&tag[self.sum_bytes()..]),
            Iv::Plain64 => {
                let number = self.first.get().wrapping_add(sector);
                iv[..8].copy_from_slice(&number.to_le_bytes());
            }
        }
        associated
    }

    /// The sectors of a run, with their numbers.
    fn numbers(&self, first: u64) -> impl Iterator<Item = u64> {
        (first..).step_by(self.sector_bytes / 512)
    }

    /// Encrypts whole sectors in place and makes their tags; `sector` is the
    /// number of the first, in units of 512 bytes.
    ///
    /// # Errors
    /// [`BlockError::Io`] where the system has no randomness for IVs.
    pub(super) fn seal(
        &self,
        sector: u64,
        data: &mut [u8],
        tags: &mut [u8],
    ) -> Result<(), BlockError> {
        let (sum_bytes, tag_bytes) = (self.sum_bytes(), self.tag_bytes());
        if self.iv == Iv::Random {
            let iv_bytes = self.iv_bytes();
            let mut random = vec![0; data.len() / self.sector_bytes * iv_bytes];
            getrandom::fill(&mut random).map_err(|error| BlockError::Io {
                operation: OperationKind::Write,
                offset: sector.saturating_mul(512),
                length: data.len() as u64,
                source: io::Error::other(error),
            })?;
            for (tag, iv) in tags.chunks_mut(tag_bytes).zip(random.chunks(iv_bytes)) {
                tag[sum_bytes..].copy_from_slice(iv);
            }
        }
        if let Method::Split { cipher, .. } = &self.method {
            match &**cipher {
                Data::Numbered(cipher) => cipher.encrypt(self.iv_sector(sector), data),
                Data::Given(cipher) => {
                    cipher.encrypt(data, tags.chunks(tag_bytes).map(|tag| &tag[sum_bytes..]));
                }
            }
        }
        let sectors = data.chunks_mut(self.sector_bytes);
        for ((number, data), tag) in self
            .numbers(sector)
            .zip(sectors)
            .zip(tags.chunks_mut(tag_bytes))
        {
            let associated = self.associated(number, tag);
            let associated = &associated[..NUMBER_BYTES + self.iv_bytes()];
            let sum = &mut tag[..sum_bytes];
            match &self.method {
                Method::Aes128Gcm(aead) => encrypt(&**aead, associated, data, sum),
                Method::Aes256Gcm(aead) => encrypt(&**aead, associated, data, sum),
                Method::ChaCha20Poly1305(aead) => encrypt(&**aead, associated, data, sum),
                Method::Split { mac: None, .. } => {}
                Method::Split { mac: Some(mac), .. } => mac.sum(&[associated, data], sum),
            }
        }
        Ok(())
    }

    /// Decrypts whole sectors in place.
    ///
    /// # Errors
    /// The index of the first sector that its tag does not fit. All of `data`
    /// is zeros then.
    pub(super) fn open(&self, sector: u64, data: &mut [u8], tags: &[u8]) -> Result<(), usize> {
        let opened = self.open_all(sector, data, tags);
        if opened.is_err() {
            data.fill(0);
        }
        opened
    }

    fn open_all(&self, sector: u64, data: &mut [u8], tags: &[u8]) -> Result<(), usize> {
        let (sum_bytes, tag_bytes) = (self.sum_bytes(), self.tag_bytes());
        let sectors = data
            .chunks_mut(self.sector_bytes)
            .zip(tags.chunks(tag_bytes));
        for (index, (number, (data, tag))) in self.numbers(sector).zip(sectors).enumerate() {
            let associated = self.associated(number, tag);
            let associated = &associated[..NUMBER_BYTES + self.iv_bytes()];
            let sum = &tag[..sum_bytes];
            let right = match &self.method {
                Method::Aes128Gcm(aead) => decrypt(&**aead, associated, data, sum),
                Method::Aes256Gcm(aead) => decrypt(&**aead, associated, data, sum),
                Method::ChaCha20Poly1305(aead) => decrypt(&**aead, associated, data, sum),
                Method::Split { mac: None, .. } => true,
                Method::Split { mac: Some(mac), .. } => {
                    let mut expected = [0; MOST_SUM_BYTES];
                    let expected = &mut expected[..sum_bytes];
                    mac.sum(&[associated, data], expected);
                    expected.ct_eq(sum).into()
                }
            };
            if !right {
                return Err(index);
            }
        }
        if let Method::Split { cipher, .. } = &self.method {
            match &**cipher {
                Data::Numbered(cipher) => cipher.decrypt(self.iv_sector(sector), data),
                Data::Given(cipher) => {
                    cipher.decrypt(data, tags.chunks(tag_bytes).map(|tag| &tag[sum_bytes..]));
                }
            }
        }
        Ok(())
    }

    fn iv_sector(&self, sector: u64) -> IvSector {
        IvSector::new(self.first.get().wrapping_add(sector))
    }
}

impl Mac {
    fn new(digest_bytes: usize, key: &[u8]) -> Self {
        const ANY: &str = "HMAC takes keys of any length";
        match digest_bytes {
            20 => Self::Sha1(Hmac::new_from_slice(key).expect(ANY)),
            32 => Self::Sha256(Hmac::new_from_slice(key).expect(ANY)),
            _ => Self::Sha512(Hmac::new_from_slice(key).expect(ANY)),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Sha1(_) => 20,
            Self::Sha256(_) => 32,
            Self::Sha512(_) => 64,
        }
    }

    /// The MAC of `parts`, one after the other.
    fn sum(&self, parts: &[&[u8]], out: &mut [u8]) {
        match self {
            Self::Sha1(keyed) => sum_of(keyed, parts, out),
            Self::Sha256(keyed) => sum_of(keyed, parts, out),
            Self::Sha512(keyed) => sum_of(keyed, parts, out),
        }
    }
}

fn sum_of<M: hmac::Mac + Clone>(keyed: &M, parts: &[&[u8]], out: &mut [u8]) {
    let mut mac = keyed.clone();
    for part in parts {
        mac.update(part);
    }
    out.copy_from_slice(&mac.finalize().into_bytes());
}

/// A cipher of a library under a key, if that has the right length.
fn keyed<A: KeyInit>(key: &[u8]) -> Option<Box<A>> {
    A::new_from_slice(key).ok().map(Box::new)
}

/// The cipher of `spec`, if its IV is as long as the associated data have it.
fn numbered(
    spec: &CipherSpec,
    key: &[u8],
    size: SectorSize,
) -> Result<Option<KeyedCipher>, VolumeError> {
    let known = matches!(spec.mode(), Mode::Xts | Mode::Cbc)
        && spec.iv() == Some(IvGenerator::Plain64)
        && spec.key_count() == 1
        && matches!(spec.algorithms(), [one] if one.block_bytes() == 16 && *one != Algorithm::Null);
    if !known {
        return Ok(None);
    }
    let layout = SectorLayout {
        size,
        large_iv: false,
    };
    let cipher = spec.cipher(&Key::from_slice(key), layout, None)?;
    Ok(Some(cipher))
}

/// The nonce is what the associated data end with.
fn encrypt<A: AeadInOut>(aead: &A, associated: &[u8], data: &mut [u8], sum: &mut [u8]) {
    let nonce = &associated[NUMBER_BYTES..];
    let made = aead.encrypt_inout_detached(
        nonce.try_into().expect("the IV is as long as the nonce"),
        associated,
        data.into(),
    );
    sum.copy_from_slice(&made.expect("a sector is not too long"));
}

/// Whether the tag is right; only then is `data` decrypted.
fn decrypt<A: AeadInOut>(aead: &A, associated: &[u8], data: &mut [u8], sum: &[u8]) -> bool {
    let nonce = &associated[NUMBER_BYTES..];
    let opened = aead.decrypt_inout_detached(
        nonce.try_into().expect("the IV is as long as the nonce"),
        associated,
        data.into(),
        sum.try_into().expect("the tag has its length"),
    );
    opened.is_ok()
}
