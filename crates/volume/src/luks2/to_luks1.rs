//! A LUKS2 header made one of LUKS1, for boot loaders that read no other: the
//! same keyslots, the same data.
//!
//! Key material stays where it is, as LUKS1 takes any place before the data. The
//! second sector of LUKS1's header lies on padding of LUKS2's first copy. It is
//! written first, and from then on LUKS2's second copy counts. The first sector
//! makes a LUKS1 volume of it, at once. Last, LUKS2's copies are wiped.

use super::binary::{BINARY_BYTES, HEADER_SIZES, SECOND_MAGIC, UUID_AT};
use super::keyslots::STRIPES;
use super::metadata::{Keyslot, PassphraseKeyslot};
use super::read::Header;
use crate::keyslot::{SECTOR, wipe};
use crate::{Format, Hash, Instead, Kdf, VolumeError, luks1, unaligned};
use block::{BlockDevice, ByteRange};
use cipher::{Algorithm, CipherSpec, SectorSize};

#[doc(hidden)]
impl Header {
    /// Makes the LUKS2 volume on `device`, whose header this is, one of LUKS1.
    /// Keyslots keep their numbers and open with what they opened with. No data is
    /// touched. A cut leaves a volume of one kind or the other, and
    /// [`wipe_copies`] finishes it.
    ///
    /// # Errors
    /// Before anything is written [`VolumeError::Lacks`] if LUKS1 cannot say what this
    /// header says, and [`VolumeError::Unsupported`]; later those of writing.
    pub fn into_luks1(self, device: &dyn BlockDevice) -> Result<luks1::Header, VolumeError> {
        self.check_unchanged(device)?;
        // The first copy is going to be damaged: the second must be whole.
        let header = self.as_luks1()?;
        let mut two = self;
        two.repair(device, false)?;
        header.write_over_luks2(device)?;
        wipe_copies(device, &header)?;
        Ok(header)
    }

    /// The header of LUKS1 that says the same.
    fn as_luks1(&self) -> Result<luks1::Header, VolumeError> {
        self.check_extras()?;
        let (spec, payload_offset) = self.data_of_luks1()?;
        let digest = &self.metadata.digests[&self.digest_of_data()?];
        let verifier = digest.verifier()?;
        let (hash, digest_iterations) = pbkdf2(&verifier.kdf, "a digest")?;
        let mut keyslots = [const { None }; 8];
        let mut key_bytes = None;
        for (&number, keyslot) in &self.metadata.keyslots {
            let Keyslot::Luks2(keyslot) = keyslot else {
                return Err(lacks(format!("keyslot of the kind of {number}")));
            };
            if !digest.keyslots.contains(&number) {
                return Err(lacks(format!(
                    "keyslot such as {number}, which has another key than the data"
                )));
            }
            let Some(place) = keyslots.get_mut(number as usize) else {
                return Err(lacks(format!("keyslot {number}")));
            };
            if *key_bytes.get_or_insert(keyslot.key_bytes) != keyslot.key_bytes {
                return Err(lacks("keys of several lengths"));
            }
            *place = Some(in_luks1(number, keyslot, hash, spec)?);
        }
        let key_bytes = key_bytes.ok_or_else(|| lacks("volume without a keyslot"))?;
        let uuid = self.binary.uuid.clone();
        let mut header = luks1::Header::draft(spec, hash, key_bytes, payload_offset, uuid);
        // A shorter digest of PBKDF2 is the start of a longer one.
        let digest = verifier.digest.first_chunk();
        header.digest = *digest.ok_or_else(|| lacks("digest so short"))?;
        header.digest_salt = salt(&verifier.salt)?;
        header.digest_iterations = digest_iterations;
        header.with_keyslots(keyslots)
    }

    /// Refuses what would be lost.
    fn check_extras(&self) -> Result<(), VolumeError> {
        let metadata = &self.metadata;
        let texts = [
            (&self.binary.label, "label"),
            (&self.binary.subsystem, "subsystem"),
        ];
        for (text, name) in texts {
            if !text.as_bytes().is_empty() {
                return Err(lacks(format!("{name}, and this volume has one")));
            }
        }
        if let Some(kind) = metadata.tokens.values().next() {
            return Err(lacks(format!("tokens such as `{}`", kind.escape_debug())));
        }
        if let Some(flag) = metadata.config.flags.first() {
            return Err(lacks(format!("flags such as `{}`", flag.escape_debug())));
        }
        Ok(())
    }

    /// The data's cipher and first byte.
    fn data_of_luks1(&self) -> Result<(CipherSpec, u64), VolumeError> {
        let (_, segment) = self.data_segment()?;
        let not_encrypted = || lacks("data that are not encrypted");
        let crypt = segment.crypt().ok_or_else(not_encrypted)?;
        if crypt.sector_size != SectorSize::B512 {
            let bytes = crypt.sector_size.bytes();
            return Err(lacks(format!("sectors of {bytes} bytes")));
        }
        if crypt.integrity.is_some() {
            return Err(lacks("integrity tags"));
        }
        if crypt.iv_tweak != 0 || segment.size.is_some() {
            return Err(lacks("data of a fixed size or with an IV offset"));
        }
        if !segment.offset.is_multiple_of(SECTOR) || segment.offset / SECTOR > u32::MAX.into() {
            return Err(lacks(format!("data from byte {} on", segment.offset)));
        }
        let spec: CipherSpec = crypt.encryption.parse()?;
        match spec.algorithms() == [Algorithm::Null] {
            true => Err(not_encrypted()),
            false => Ok((spec, segment.offset)),
        }
    }
}

/// Where second copies of a LUKS2 header are that became the LUKS1 header `now`, or that it was about
/// to become: what a conversion that was killed has left.
///
/// # Errors
/// Those of reading.
pub fn own_copies(
    device: &dyn BlockDevice,
    now: &luks1::Header,
) -> Result<Vec<ByteRange>, VolumeError> {
    let mut own = Vec::new();
    for offset in HEADER_SIZES {
        let binary = unaligned::read_up_to(device, offset, BINARY_BYTES as u64)?;
        let uuid = binary.get(UUID_AT).unwrap_or_default();
        let uuid = uuid.split(|byte| *byte == 0).next().unwrap_or_default();
        let is_own = uuid.eq_ignore_ascii_case(now.uuid.to_string().as_bytes());
        if binary.starts_with(SECOND_MAGIC) && is_own {
            own.push(ByteRange::new(offset, BINARY_BYTES as u64));
        }
    }
    Ok(own)
}

/// Wipes what is left of LUKS2's header on the LUKS1 volume on `device`, whose header is
/// `now`.
///
/// # Errors
/// Those of reading and writing.
pub fn wipe_copies(device: &dyn BlockDevice, now: &luks1::Header) -> Result<(), VolumeError> {
    let active = now.keyslots.iter().filter(|keyslot| keyslot.active);
    let mut kept: Vec<ByteRange> = active.map(|keyslot| now.area(keyslot)).collect();
    if now.payload_offset > 0 {
        kept.push(ByteRange::new(now.payload_offset, u64::MAX >> 1));
    }
    let is_free = |area: &ByteRange| !kept.iter().any(|other| area.overlaps(*other));
    for size in HEADER_SIZES {
        let magic = unaligned::read_up_to(device, size, SECOND_MAGIC.len() as u64)?;
        if *magic != *SECOND_MAGIC {
            continue;
        }
        // Both texts, and at last what a second copy is known by.
        let binary = BINARY_BYTES as u64;
        for area in [
            ByteRange::new(binary, size - binary),
            ByteRange::new(size + binary, size - binary),
            ByteRange::new(size, binary),
        ] {
            if is_free(&area) {
                wipe(device, area)?;
            }
        }
    }
    Ok(())
}

/// A keyslot as LUKS1 has it, if it can.
fn in_luks1(
    number: u32,
    keyslot: &PassphraseKeyslot,
    hash: Hash,
    spec: CipherSpec,
) -> Result<luks1::Keyslot, VolumeError> {
    let (own_hash, iterations) = pbkdf2(&keyslot.kdf, &format!("keyslot such as {number}"))?;
    let same = own_hash == hash
        && keyslot.af.hash == hash
        && keyslot.af.stripes == STRIPES
        && keyslot.area_key_bytes == keyslot.key_bytes
        && keyslot
            .encryption
            .parse()
            .is_ok_and(|own: CipherSpec| own == spec);
    if !same {
        return Err(lacks(format!(
            "keyslot such as {number}, with another cipher or hash than the data and the digest"
        )));
    }
    if !keyslot.area.offset.is_multiple_of(SECTOR) {
        return Err(lacks(format!("place such as that of keyslot {number}")));
    }
    Ok(luks1::Keyslot {
        active: true,
        unusable: None,
        iterations,
        offset: keyslot.area.offset,
        stripes: STRIPES,
        salt: salt(&keyslot.salt)?,
    })
}

/// Hash and iterations of PBKDF2.
fn pbkdf2(kdf: &Kdf, whose: &str) -> Result<(Hash, u32), VolumeError> {
    match kdf {
        Kdf::Pbkdf2 { hash, iterations } => Ok((*hash, *iterations)),
        _ => Err(VolumeError::Lacks {
            format: Format::Luks1,
            what: format!("{whose} with Argon2").into(),
            instead: Instead::Pbkdf2,
        }),
    }
}

/// A salt of the length that LUKS1 has.
fn salt(bytes: &[u8]) -> Result<[u8; 32], VolumeError> {
    let length = bytes.len();
    let salt = bytes.try_into();
    salt.map_err(|_| lacks(format!("salt of {length} bytes")))
}

fn lacks(what: impl Into<Box<str>>) -> VolumeError {
    VolumeError::Lacks {
        format: Format::Luks1,
        what: what.into(),
        instead: Instead::Copy(Format::Luks1),
    }
}
