//! New headers, and what can be changed in them without a key.

use super::binary::{Binary, HEADER_SIZES};
use super::keyslots::{KeyslotOptions, SALT_BYTES};
use super::metadata::Metadata;
use super::read::{Header, Recovered};
use crate::luks::{DIGEST_ITERATIONS, check_new_key, checked_text, checked_uuid, digest_of};
use crate::{Format, Hash, Kdf, SealedSpec, VolumeError, unaligned};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use block::BlockDevice;
use cipher::{CipherError, CipherSpec, Key, SectorSize};
use serde_json::{Map, Value, json};

/// cryptsetup's sizes: headers of 16 KiB, and data from 16 MiB on.
pub(super) const HEADER_SIZE: u64 = HEADER_SIZES[0];
pub(super) const DATA_OFFSET: u64 = 16 << 20;

/// Room for labels in a header, with the zero that ends them.
const LABEL_BYTES: usize = 48;

/// The options of a new volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Creation {
    /// How the data is encrypted.
    pub cipher: DataCipher,
    /// Length of the volume key, bytes.
    pub key_bytes: usize,
    /// Encryption sector size.
    pub sector_size: SectorSize,
    /// The first keyslot.
    pub keyslot: KeyslotOptions,
    /// First byte of the data; `None` takes 16 MiB, or 0 with a detached header.
    pub data_offset: Option<u64>,
    /// Whether the header has a device for itself.
    pub detached: bool,
    /// The user's name for the volume.
    pub label: String,
    /// A second label.
    pub subsystem: String,
    /// The UUID; `None` makes a random one.
    pub uuid: Option<String>,
}

impl Creation {
    /// With this key derivation, and the defaults of `cryptsetup luksFormat` for all else:
    /// `aes-xts-plain64` with 512 bits in sectors of 512 bytes, from 16 MiB on.
    pub fn new(kdf: Kdf) -> Self {
        Self {
            cipher: DataCipher::Plain("aes-xts-plain64".parse().expect("it is possible")),
            key_bytes: 64,
            sector_size: SectorSize::default(),
            keyslot: KeyslotOptions::new(kdf),
            data_offset: None,
            detached: false,
            label: String::new(),
            subsystem: String::new(),
            uuid: None,
        }
    }
}

/// How the data of a new volume is encrypted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DataCipher {
    /// Sectors as they are: cipher, mode and IV generator.
    Plain(CipherSpec),
    /// Sectors with tags. The data area gets [what it needs](crate::SealedDevice::fresh)
    /// apart from the header.
    #[doc(hidden)]
    Sealed(SealedSpec),
}

impl Header {
    /// Makes a volume: writes a header with one keyslot to the start of
    /// `device`, which the caller knows may be overwritten.
    ///
    /// # Errors
    /// [`VolumeError::EmptyPassphrase`], [`VolumeError::SecretLength`] if the volume key has
    /// another length than `creation` says,
    /// [`VolumeError::TooSmall`], [`VolumeError::Impossible`],
    /// [`VolumeError::Cipher`], those of [`Kdf::derive`] and of writing.
    pub fn create(
        device: &dyn BlockDevice,
        creation: &Creation,
        volume_key: &Key,
        passphrase: &Key,
    ) -> Result<Self, VolumeError> {
        creation.keyslot.check_passphrase(passphrase)?;
        check_new_key(volume_key, creation.key_bytes)?;
        let size = device.geometry().size;
        let default_offset = match creation.detached {
            true => 0,
            false => DATA_OFFSET,
        };
        let data_offset = creation.data_offset.unwrap_or(default_offset);
        // Data that does not begin at 0 is kept clear of, also on a device of its own.
        let keyslots_end = match (creation.detached, data_offset) {
            (true, 0) => size.min(DATA_OFFSET),
            (true, data) => size.min(data).min(DATA_OFFSET),
            (false, data) => data.min(DATA_OFFSET),
        };
        let keyslots_size = keyslots_end.saturating_sub(2 * HEADER_SIZE) / 4096 * 4096;
        let least = match creation.detached {
            true => 2 * HEADER_SIZE,
            false => data_offset + creation.sector_size.bytes() as u64,
        };
        if size < least || keyslots_size == 0 {
            return Err(VolumeError::TooSmall {
                size,
                needed: least.max(2 * HEADER_SIZE + (volume_key.len() as u64 * 4000)),
            });
        }
        let json = document(creation, volume_key, data_offset, keyslots_size)?;
        let label = checked_text("label", &creation.label, LABEL_BYTES)?;
        let mut binary = Binary::new(HEADER_SIZE, checked_uuid(creation.uuid.as_deref())?.into());
        binary.label = label.into();
        binary.subsystem = checked_text("subsystem", &creation.subsystem, LABEL_BYTES)?.into();
        let mut header = Self {
            binary,
            metadata: Metadata::parse(&json, HEADER_SIZE)
                .map_err(|damage| VolumeError::damaged(Format::Luks2, damage))?,
            json,
            recovered: Recovered::Both,
        };
        // Until the new header is there, there is none: an old one would speak
        // of key material that is gone.
        for offset in std::iter::once(0).chain(HEADER_SIZES) {
            if offset + 4096 <= keyslots_end.min(size) {
                unaligned::write(device, offset, &[0; 4096])?;
            }
        }
        device.flush()?;
        header.put_key(device, volume_key, passphrase, &creation.keyslot, None)?;
        Ok(header)
    }

    /// Changes the label and the second one, those that are given.
    ///
    /// # Errors
    /// [`VolumeError::Impossible`], [`VolumeError::Unsupported`] if the volume
    /// requires what is not known here, and those of writing.
    pub fn set_labels(
        &mut self,
        device: &dyn BlockDevice,
        label: Option<&str>,
        subsystem: Option<&str>,
    ) -> Result<(), VolumeError> {
        self.check_requirements()?;
        let mut next = self.clone();
        if let Some(label) = label {
            next.binary.label = checked_text("label", label, LABEL_BYTES)?.into();
        }
        if let Some(subsystem) = subsystem {
            next.binary.subsystem = checked_text("subsystem", subsystem, LABEL_BYTES)?.into();
        }
        next.commit(device, |_| ())?;
        *self = next;
        Ok(())
    }

    /// Whether zeros on the data's device are zeros of the plaintext, as the header remembers.
    #[doc(hidden)]
    pub fn has_holes(&self) -> bool {
        let flags = &self.metadata.config.flags;
        flags.iter().any(|flag| flag == HOLES)
    }

    /// Remembers that discards of this volume leave zeros. Every later opening then reads zeros on
    /// the data's device as zeros of the plaintext. Otherwise a file system would find noise where
    /// it has asked for zeros. Says whether the header remembers it: one of a volume that is being
    /// reencrypted, or whose sectors have tags, does not.
    ///
    /// # Errors
    /// [`VolumeError::Unsupported`] if the volume requires what is not known here, and those of
    /// writing.
    pub fn remember_holes(&mut self, device: &dyn BlockDevice) -> Result<bool, VolumeError> {
        if self.has_holes() || self.is_sealed() || self.is_reencrypting() {
            return Ok(self.has_holes());
        }
        self.check_requirements()?;
        let mut flags = self.metadata.config.flags.clone();
        flags.push(HOLES.to_owned());
        self.commit(device, |json| json["config"]["flags"] = flags.into())?;
        Ok(true)
    }

    /// Changes the UUID; `None` makes a random one.
    ///
    /// # Errors
    /// [`VolumeError::Impossible`], [`VolumeError::Unsupported`] if the volume
    /// requires what is not known here, and those of writing.
    pub fn set_uuid(
        &mut self,
        device: &dyn BlockDevice,
        uuid: Option<&str>,
    ) -> Result<(), VolumeError> {
        self.check_requirements()?;
        let mut next = self.clone();
        next.binary.uuid = checked_uuid(uuid)?.into();
        next.commit(device, |_| ())?;
        *self = next;
        Ok(())
    }

    /// Records that the data has `bytes` bytes, if the header states a length. Otherwise the data
    /// goes to the end of its device, and nothing is written.
    ///
    /// # Errors
    /// [`VolumeError::Unsupported`] as [`only_segment`](Self::only_segment), and
    /// those of writing.
    #[doc(hidden)]
    pub fn set_data_size(
        &mut self,
        device: &dyn BlockDevice,
        bytes: u64,
    ) -> Result<(), VolumeError> {
        let (number, _) = self.data_segment()?;
        let (segment, _) = self.only_segment()?;
        match segment.size {
            None => Ok(()),
            Some(_) => self.commit(device, |json| {
                json["segments"][number.to_string()]["size"] = bytes.to_string().into();
            }),
        }
    }

    /// Writes both copies anew if one of them cannot be used or is older; `over`
    /// what is not the volume's as well.
    ///
    /// # Errors
    /// [`VolumeError::Standing`] and those of writing.
    #[doc(hidden)]
    pub fn repair(&mut self, device: &dyn BlockDevice, over: bool) -> Result<bool, VolumeError> {
        match (self.recovered, over) {
            (Recovered::Both, _) => Ok(false),
            (Recovered::Only(_), false) => self.commit(device, |_| ()).map(|()| true),
            (Recovered::Only(_), true) => self.write_over(device).map(|()| true),
        }
    }
}

/// The flag of a header whose volume has zeros where its data's device has zeros. cryptsetup keeps
/// flags that it does not know, and ignores them.
const HOLES: &str = "cryptmark-holes-are-zeros";

/// The JSON of a volume without keyslots.
fn document(
    creation: &Creation,
    volume_key: &Key,
    data_offset: u64,
    keyslots_size: u64,
) -> Result<Map<String, Value>, VolumeError> {
    let encryption = match &creation.cipher {
        DataCipher::Plain(spec) => spec.to_string(),
        DataCipher::Sealed(spec) => spec.encryption().to_owned(),
    };
    let sector_bytes = creation.sector_size.bytes();
    let mut json = json!({
        "keyslots": {},
        "tokens": {},
        "segments": {
            "0": crypt_json(data_offset, "dynamic".into(), 0, (encryption, sector_bytes)),
        },
        "digests": {
            "0": digest_json(volume_key, &[], &[0])?,
        },
        "config": {
            "json_size": (HEADER_SIZE - 4096).to_string(),
            "keyslots_size": keyslots_size.to_string(),
        },
    });
    if let DataCipher::Sealed(spec) = &creation.cipher {
        json["segments"]["0"]["integrity"] = json!({
            "type": spec.integrity(),
            "journal_encryption": "none",
            "journal_integrity": "none",
        });
    }
    let Value::Object(object) = json else {
        unreachable!("it was written as an object")
    };
    Ok(object)
}

/// A segment of data from byte `offset` on, encrypted by this cipher in sectors of so many bytes.
pub(super) fn crypt_json(
    offset: u64,
    size: Value,
    iv_tweak: u64,
    (encryption, sector_bytes): (String, usize),
) -> Value {
    json!({
        "type": "crypt",
        "offset": offset.to_string(),
        "size": size,
        "iv_tweak": iv_tweak.to_string(),
        "encryption": encryption,
        "sector_size": sector_bytes,
    })
}

/// The digest of a key, for these keyslots and segments.
pub(super) fn digest_json(
    key: &Key,
    keyslots: &[u32],
    segments: &[u32],
) -> Result<Value, VolumeError> {
    let names = |numbers: &[u32]| -> Vec<String> { numbers.iter().map(u32::to_string).collect() };
    let mut salt = [0; SALT_BYTES];
    getrandom::fill(&mut salt).map_err(CipherError::from)?;
    let digest = digest_of(key, &salt)?;
    Ok(json!({
        "type": "pbkdf2",
        "keyslots": names(keyslots),
        "segments": names(segments),
        "hash": Hash::Sha256.name(),
        "iterations": DIGEST_ITERATIONS,
        "salt": STANDARD.encode(salt),
        "digest": STANDARD.encode(digest.as_bytes()),
    }))
}
