//! The header: 1024 bytes, numbers little endian.
//!
//! ```text
//!    0  jump 3       3  signature 8    11  container id 4      43  label 11
//!   54  generator 2  56  its version 2  58  iterations 4       62  description 42
//!  104  sparse position 8   112  data start 8   120  data length 8
//!  128  cipher 4   132  mode 4   136  hash 4
//!  140  64 keyslot descriptors of 8: size 2  type 2  parameter 4
//!  656  digest 64  720  IV 16
//! 1024  pool 512   1536  keyslots of 256
//! ```

use crate::fields::{Fields, utf16};
use crate::{Damage, Format, Hash, VolumeError, unaligned};
use block::BlockDevice;
use cipher::Mode;

const SIGNATURE: &[u8] = b"LOCOS94 ";
const LABEL: &[u8] = b"BC_KeyGenID";

const HEADER_BYTES: usize = 1024;
const KEYSLOTS_AT: u64 = 1536;
pub(super) const KEYSLOT_BYTES: usize = 256;
const DESCRIPTORS_AT: usize = 140;
const DESCRIPTORS: usize = 64;

/// The one with the key derivation that is known.
const GENERATOR: u16 = 5;

/// Salt in a keyslot of its own.
const SALT_KIND: i16 = 5;

/// Whether `start` begins as a container does.
pub(crate) fn has_signature(start: &[u8]) -> bool {
    start
        .get(3..)
        .is_some_and(|rest| rest.starts_with(SIGNATURE))
}

/// A header that can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Number of the key generator.
    pub generator: u16,
    /// Version of the key generator.
    pub generator_version: u16,
    /// Iterations of the key derivation.
    pub iterations: u32,
    /// The user's name for the volume.
    pub description: String,
    /// First byte of the data.
    pub data_start: u64,
    /// Bytes of data.
    pub data_length: u64,
    /// The mode of the data and of the keyslots; the cipher is AES with 256 bits.
    pub mode: Mode,
    /// The hash of the key derivation and of the keyslots.
    pub hash: Hash,
    /// The keyslots in use, by number.
    pub keyslots: Vec<Keyslot>,
    pub(super) salt: Vec<u8>,
}

/// A keyslot in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keyslot {
    /// Its number.
    pub number: u32,
    /// The kind of secret that opens it.
    pub kind: KeyslotKind,
}

/// The kind of secret that opens a key slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyslotKind {
    /// A passphrase.
    Passphrase,
    /// Part of a larger keyslot.
    Part,
    /// Several passphrases, of which some suffice.
    SecretSharing,
    /// A private key.
    PublicKey,
    /// Something that is not known.
    Other(i16),
}

impl KeyslotKind {
    /// Its name for people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Passphrase => "passphrase",
            Self::Part => "part of another",
            Self::SecretSharing => "secret sharing",
            Self::PublicKey => "public key",
            Self::Other(_) => "unknown",
        }
    }
}

impl Header {
    /// Reads the header at the start of `device`.
    ///
    /// # Errors
    /// [`VolumeError::NotThis`] if there is none, or it is encrypted itself;
    /// [`VolumeError::Header`]; [`VolumeError::Unsupported`] for other ciphers
    /// and older key generators; [`VolumeError::Block`].
    pub fn read(device: &dyn BlockDevice) -> Result<Self, VolumeError> {
        let area = KEYSLOTS_AT + KEYSLOT_BYTES as u64;
        let bytes = unaligned::read_up_to(device, 0, area)?;
        Self::parse(&bytes)
    }

    /// The header in `bytes`, which begin with it and reach to the end of the
    /// first keyslot, the salt's.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn parse(bytes: &[u8]) -> Result<Self, VolumeError> {
        if !has_signature(bytes) {
            return Err(VolumeError::NotThis {
                format: Format::Bestcrypt,
            });
        }
        let needed = KEYSLOTS_AT as usize + KEYSLOT_BYTES;
        if bytes.len() < needed {
            return Err(damaged(Damage::Short {
                needed: needed as u64,
                got: bytes.len() as u64,
            }));
        }
        let fields = Fields(&bytes[..HEADER_BYTES]);
        if fields.array::<{ LABEL.len() }>(43) != *LABEL {
            return Err(damaged(Damage::kind("label", "`BC_KeyGenID`")));
        }
        let generator = fields.le16(54);
        if generator != GENERATOR {
            return Err(unsupported(format!("key generator {generator}")));
        }
        let iterations = fields.le32(58);
        if iterations == 0 {
            return Err(damaged(Damage::number(
                "iterations",
                0_u64,
                "must be at least 1",
            )));
        }
        if fields.le32(128) != 240 {
            return Err(unsupported(format!("cipher {}", fields.le32(128))));
        }
        let hash = hash(fields.le32(136))?;
        let salt = bytes[KEYSLOTS_AT as usize..][..hash.digest_bytes()].to_vec();
        let header = Self {
            generator,
            generator_version: fields.le16(56),
            iterations,
            description: utf16(&fields.array::<42>(62)),
            data_start: fields.le64(112),
            data_length: fields.le64(120),
            mode: mode(fields.le32(132))?,
            hash,
            keyslots: keyslots(&fields),
            salt,
        };
        if header.data_start.checked_add(header.data_length).is_none() {
            let rule = format!("the data start at {}", header.data_start);
            return Err(damaged(Damage::number(
                "data length",
                header.data_length,
                rule,
            )));
        }
        Ok(header)
    }

    /// Where a keyslot stands on the device.
    pub(super) const fn offset(number: u32) -> u64 {
        KEYSLOTS_AT + number as u64 * KEYSLOT_BYTES as u64
    }
}

fn keyslots(fields: &Fields) -> Vec<Keyslot> {
    (0..DESCRIPTORS)
        .filter_map(|number| {
            let kind = fields.le16(DESCRIPTORS_AT + 8 * number + 2) as i16;
            let kind = match kind {
                0 | SALT_KIND => return None,
                -1 => KeyslotKind::Part,
                1 => KeyslotKind::Passphrase,
                2 => KeyslotKind::SecretSharing,
                3 => KeyslotKind::PublicKey,
                other => KeyslotKind::Other(other),
            };
            Some(Keyslot {
                number: number as u32,
                kind,
            })
        })
        .collect()
}

fn mode(id: u32) -> Result<Mode, VolumeError> {
    match id {
        0xBC00_0001 => Ok(Mode::Lrw),
        0xBC00_0002 => Ok(Mode::Cbc),
        0xBC00_0004 => Ok(Mode::Xts),
        0xBC00_0008 => Ok(Mode::Ecb),
        other => Err(unsupported(format!("mode {other:#x}"))),
    }
}

fn hash(id: u32) -> Result<Hash, VolumeError> {
    match id {
        8 | 0x80 => Ok(Hash::Sha256),
        10 => Ok(Hash::Sha512),
        0x81 => Ok(Hash::Whirlpool),
        0x82 => Ok(Hash::Sha3_512),
        0x83 => Ok(Hash::Skein512),
        other => Err(unsupported(format!("hash {other:#x}"))),
    }
}

pub(super) fn unsupported(feature: impl Into<Box<str>>) -> VolumeError {
    VolumeError::unsupported(Format::Bestcrypt, feature)
}

fn damaged(damage: Damage) -> VolumeError {
    VolumeError::damaged(Format::Bestcrypt, damage)
}
