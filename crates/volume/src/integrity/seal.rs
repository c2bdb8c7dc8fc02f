//! [`Seal`]: turns sectors into ciphertext and tags, and turns them back only if the tag is right.
//!
//! ```text
//! tag of a sector:   authentication tag │ IV, if it is random
//! associated data:   le64(sector, in units of 512 bytes) │ IV
//! ```
//!
//! Source: Linux, `crypt_convert_block_aead` of dm-crypt, and the `authenc`
//! template, which authenticates the associated data and then the ciphertext.

use super::aegis::{self, Aegis128};
use super::given::{GivenIv, ecb, encrypt_blocks};
use super::mac::{self, Mac};
use crate::damage::printable;
use crate::mapping::sectors_of;
use crate::{Format, Hash, VolumeError};
use aes_gcm::aes::Aes192;
use aes_gcm::{AeadInOut, Aes128Gcm, Aes256Gcm, AesGcm, KeyInit};
use block::{BlockError, OperationKind};
use chacha20poly1305::ChaCha20Poly1305;
use cipher::{
    Algorithm, CipherSpec, IvGenerator, IvSector, Key, KeyedCipher, Mode, SectorCipher, SectorSize,
};
use std::io;
use subtle::ConstantTimeEq;

/// The longest IV.
const MOST_IV_BYTES: usize = 16;

/// Bytes of the associated data in front of the IV.
const NUMBER_BYTES: usize = 8;

/// A keyed cipher with authentication.
pub(super) struct Seal {
    method: Method,
    iv: Iv,
    sector_bytes: usize,
    /// Added to the number of a sector for its IV, in units of 512 bytes.
    first: IvSector,
}

/// How IVs come about.
enum Iv {
    /// Drawn for every write, and kept behind the authentication tag.
    Random,
    /// The number of the sector.
    Plain64,
    /// That number, encrypted under a hash of the whole key.
    Essiv(Box<KeyedCipher>),
}

enum Method {
    Aes128Gcm(Box<Aes128Gcm>),
    Aes192Gcm(Box<AesGcm<Aes192, aes_gcm::aes::cipher::consts::U12>>),
    Aes256Gcm(Box<Aes256Gcm>),
    ChaCha20Poly1305(Box<ChaCha20Poly1305>),
    Aegis128(Box<Aegis128>),
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

impl Seal {
    /// The cipher that LUKS2 calls `encryption` with integrity `kind`. Of the
    /// key, the last `mac_key_bytes` are the MAC's, if that is not the length
    /// of its digest.
    pub(super) fn new(
        encryption: &str,
        kind: &str,
        key: &Key,
        mac_key_bytes: Option<usize>,
        sector_size: SectorSize,
        first: IvSector,
    ) -> Result<Self, VolumeError> {
        let unsupported = || unsupported(encryption, kind);
        let (transform, generator) = encryption.rsplit_once('-').ok_or_else(unsupported)?;
        let bytes = key.as_bytes();
        let iv = match generator.strip_prefix("essiv:") {
            Some(hash) => essiv(transform, hash, bytes)?.ok_or_else(unsupported)?,
            None if generator == "random" => Iv::Random,
            None if generator == "plain64" => Iv::Plain64,
            None => return Err(unsupported()),
        };
        let whole = match (transform, kind) {
            ("aes-gcm" | "capi:gcm(aes)", "aead") => match bytes.len() {
                16 => keyed(bytes).map(Method::Aes128Gcm),
                24 => keyed(bytes).map(Method::Aes192Gcm),
                _ => keyed(bytes).map(Method::Aes256Gcm),
            },
            ("chacha20", "poly1305") | ("capi:rfc7539(chacha20,poly1305)", "aead" | "poly1305") => {
                keyed(bytes).map(Method::ChaCha20Poly1305)
            }
            ("aegis128" | "capi:aegis128", "aead") => {
                Aegis128::new(bytes).map(|aegis| Method::Aegis128(Box::new(aegis)))
            }
            _ => None,
        };
        let method = match whole {
            Some(_) if matches!(iv, Iv::Essiv(_)) => return Err(unsupported()),
            Some(method) => method,
            None => {
                let mac_bytes = Mac::bytes_of(kind);
                let mac_key_bytes = match (kind, mac_bytes, &iv) {
                    ("none", _, Iv::Random) => 0,
                    (_, Some(bytes), _) => mac_key_bytes.unwrap_or(bytes),
                    _ => return Err(unsupported()),
                };
                let split = bytes.len().checked_sub(mac_key_bytes);
                let (data_key, mac_key) = bytes.split_at(split.ok_or_else(unsupported)?);
                let cipher = match iv {
                    // cryptsetup leaves no room for the IVs of other modes.
                    Iv::Random if !transform.ends_with("-xts") => None,
                    Iv::Random | Iv::Essiv(_) => {
                        GivenIv::new(transform, data_key, sector_size)?.map(Data::Given)
                    }
                    Iv::Plain64 => {
                        let spec: CipherSpec = encryption.parse()?;
                        numbered(&spec, data_key, sector_size)?.map(Data::Numbered)
                    }
                };
                Method::Split {
                    cipher: Box::new(cipher.ok_or_else(unsupported)?),
                    mac: mac_bytes.map(|bytes| Box::new(Mac::new(bytes, mac_key))),
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
            + match &self.iv {
                Iv::Random => self.iv_bytes(),
                Iv::Plain64 | Iv::Essiv(_) => 0,
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
            Method::Split { .. } | Method::Aegis128(_) => MOST_IV_BYTES,
            _ => 12,
        }
    }

    /// The IVs of a run of sectors, one behind the other; random ones are in
    /// their tags.
    fn ivs(&self, sector: u64, tags: &[u8]) -> Vec<u8> {
        let iv_bytes = self.iv_bytes();
        let tags = tags.chunks(self.tag_bytes());
        let numbered = || {
            let sectors = self.numbers(self.iv_sector(sector).get());
            let iv = |(number, _): (u64, &[u8])| {
                let mut iv = [0; MOST_IV_BYTES];
                iv[..8].copy_from_slice(&number.to_le_bytes());
                iv.into_iter().take(iv_bytes)
            };
            sectors.zip(tags.clone()).flat_map(iv).collect::<Vec<u8>>()
        };
        match &self.iv {
            Iv::Random => {
                let ivs = tags.clone().flat_map(|tag| &tag[self.sum_bytes()..]);
                ivs.copied().collect()
            }
            Iv::Plain64 => numbered(),
            Iv::Essiv(cipher) => {
                let mut ivs = numbered();
                encrypt_blocks(cipher, &mut ivs);
                ivs
            }
        }
    }

    /// The sectors of a run, with their numbers.
    fn numbers(&self, first: u64) -> impl Iterator<Item = u64> {
        let step = self.sector_bytes as u64 / 512;
        std::iter::successors(Some(first), move |number| Some(number.wrapping_add(step)))
    }

    /// Encrypts whole sectors in place and makes their tags; `sector` is the
    /// number of the first, in units of 512 bytes.
    ///
    /// # Errors
    /// [`BlockError::Io`] if the system has no randomness for IVs.
    pub(super) fn seal(
        &self,
        sector: u64,
        data: &mut [u8],
        tags: &mut [u8],
    ) -> Result<(), BlockError> {
        let (sum_bytes, tag_bytes) = (self.sum_bytes(), self.tag_bytes());
        if matches!(self.iv, Iv::Random) {
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
        let ivs = self.ivs(sector, tags);
        if let Method::Split { cipher, .. } = &self.method {
            match &**cipher {
                Data::Numbered(cipher) => cipher.encrypt(self.iv_sector(sector), data),
                Data::Given(cipher) => cipher.encrypt(data, &ivs),
            }
        }
        let sectors = data.chunks_mut(self.sector_bytes);
        let ivs = ivs.chunks(self.iv_bytes());
        for (((number, data), tag), iv) in self
            .numbers(sector)
            .zip(sectors)
            .zip(tags.chunks_mut(tag_bytes))
            .zip(ivs)
        {
            let associated = associated(number, iv);
            let associated = &associated[..NUMBER_BYTES + iv.len()];
            let sum = &mut tag[..sum_bytes];
            match &self.method {
                Method::Aes128Gcm(aead) => encrypt(&**aead, associated, data, sum),
                Method::Aes192Gcm(aead) => encrypt(&**aead, associated, data, sum),
                Method::Aes256Gcm(aead) => encrypt(&**aead, associated, data, sum),
                Method::ChaCha20Poly1305(aead) => encrypt(&**aead, associated, data, sum),
                Method::Aegis128(aegis) => {
                    sum.copy_from_slice(&aegis.encrypt(block(iv), associated, data));
                }
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
        let ivs = self.ivs(sector, tags);
        let sectors = data
            .chunks_mut(self.sector_bytes)
            .zip(tags.chunks(tag_bytes))
            .zip(ivs.chunks(self.iv_bytes()));
        for (index, (number, ((data, tag), iv))) in self.numbers(sector).zip(sectors).enumerate() {
            let associated = associated(number, iv);
            let associated = &associated[..NUMBER_BYTES + iv.len()];
            let sum = &tag[..sum_bytes];
            let right = match &self.method {
                Method::Aes128Gcm(aead) => decrypt(&**aead, associated, data, sum),
                Method::Aes192Gcm(aead) => decrypt(&**aead, associated, data, sum),
                Method::Aes256Gcm(aead) => decrypt(&**aead, associated, data, sum),
                Method::ChaCha20Poly1305(aead) => decrypt(&**aead, associated, data, sum),
                Method::Aegis128(aegis) => aegis.decrypt(block(iv), associated, data, sum),
                Method::Split { mac: None, .. } => true,
                Method::Split { mac: Some(mac), .. } => {
                    let mut expected = [0; mac::MOST_BYTES];
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
                Data::Given(cipher) => cipher.decrypt(data, &ivs),
            }
        }
        Ok(())
    }

    fn iv_sector(&self, sector: u64) -> IvSector {
        IvSector::new(self.first.get().wrapping_add(sector))
    }
}

/// The error of a cipher that is not supported here.
pub(super) fn unsupported(encryption: &str, kind: &str) -> VolumeError {
    VolumeError::unsupported(
        Format::Luks2,
        format!(
            "`{}` with integrity `{}`",
            printable(encryption),
            printable(kind)
        ),
    )
}

/// The associated data of a sector: its number, then its IV.
fn associated(number: u64, iv: &[u8]) -> [u8; NUMBER_BYTES + MOST_IV_BYTES] {
    let mut associated = [0; NUMBER_BYTES + MOST_IV_BYTES];
    associated[..NUMBER_BYTES].copy_from_slice(&number.to_le_bytes());
    associated[NUMBER_BYTES..][..iv.len()].copy_from_slice(iv);
    associated
}

/// An IV that is as long as a block.
fn block(iv: &[u8]) -> &[u8; aegis::BLOCK] {
    iv.try_into().expect("the IV is as long as a block")
}

/// ESSIV for the cipher of `transform`, whose second key is a hash of all of
/// the first one, that of the MAC included.
fn essiv(transform: &str, hash: &str, key: &[u8]) -> Result<Option<Iv>, VolumeError> {
    let name = transform.strip_suffix("-cbc");
    let (Some(name), Some(hash)) = (name, Hash::named(hash)) else {
        return Ok(None);
    };
    let cipher = ecb(name, &hash.digest(&[key]))?;
    Ok(Some(Iv::Essiv(Box::new(cipher))))
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
    let cipher = spec.cipher(&Key::from_slice(key), sectors_of(size), None)?;
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
