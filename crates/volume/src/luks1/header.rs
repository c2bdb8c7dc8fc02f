//! The header: 592 bytes, numbers big endian.
//!
//! ```text
//!   0  magic 6        6  version 2     8  cipher name 32    40  cipher mode 32
//!  72  hash 32      104  payload offset 4    108  key bytes 4
//! 112  digest 20    132  digest salt 32      164  digest iterations 4
//! 168  UUID 40      208  8 keyslots of 48:
//!        state 4   iterations 4   salt 32   material sector 4   stripes 4
//! ```

use crate::fields::{Fields, HeaderText};
use crate::keyslot::{KeyMaterial, SECTOR};
use crate::luks::{MAGIC, MOST_KEY_BYTES};
use crate::{Damage, Format, Hash, VolumeError, unaligned};
use block::{BlockDevice, ByteRange};
use cipher::{Algorithm, CipherSpec};

/// Length of the header, bytes.
pub(super) const HEADER_BYTES: u64 = 592;

pub(super) const KEYSLOTS: usize = 8;
pub(super) const KEYSLOTS_AT: usize = 208;
pub(super) const KEYSLOT_BYTES: usize = 48;
const ACTIVE: u32 = 0x00AC_71F3;
const DISABLED: u32 = 0x0000_DEAD;

/// The stripes of every keyslot that cryptsetup reads or writes.
pub(super) const STRIPES: u32 = 4000;

/// cryptsetup writes 4000; there are bounds so that a header cannot ask for
/// any amount of memory.
const MOST_STRIPES: u32 = 16_384;

/// The first key material begins behind it, and so does the data.
const FIRST_PAGE: u64 = 4096;

/// The last place at which a free keyslot's key material can begin: keyslots of
/// the longest keys end well before it.
const FARTHEST: u64 = 64 << 20;

/// A header that can be used. All of its fields were checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Cipher, mode and IV generator of the data and of the key material.
    pub spec: CipherSpec,
    /// Hash of the key derivations and of the splitter.
    pub hash: Hash,
    /// First byte of the data; 0 in a detached header says that the data has
    /// a device for itself.
    pub payload_offset: u64,
    /// Length of the volume key, bytes.
    pub key_bytes: usize,
    /// The UUID as it stands there.
    pub uuid: HeaderText,
    /// The keyslots by number.
    pub keyslots: [Keyslot; KEYSLOTS],
    pub(crate) digest: [u8; 20],
    pub(crate) digest_salt: [u8; 32],
    pub(crate) digest_iterations: u32,
    /// The header as it was read, with what is not known here.
    pub(super) raw: [u8; HEADER_BYTES as usize],
}

/// A keyslot, in use or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keyslot {
    /// Whether it holds a key that can be tried; nothing else of one that does
    /// not was checked.
    pub active: bool,
    /// The damage of a key slot that is neither usable nor free.
    pub unusable: Option<Box<Damage>>,
    /// Iterations of PBKDF2.
    pub iterations: u32,
    /// First byte of the key material.
    pub offset: u64,
    /// Stripes of the key material.
    pub stripes: u32,
    pub(crate) salt: [u8; 32],
}

impl Header {
    /// Reads the header at the start of `device`.
    ///
    /// # Errors
    /// [`VolumeError::NotThis`] if there is none, [`VolumeError::Header`]
    /// if it cannot be used, [`VolumeError::Cipher`] if its cipher is
    /// not known, [`VolumeError::Block`].
    pub fn read(device: &dyn BlockDevice) -> Result<Self, VolumeError> {
        let bytes = unaligned::read_up_to(device, 0, HEADER_BYTES)?;
        let header = Self::parse(&bytes)?;
        header.check_device(device.geometry().size)?;
        Ok(header)
    }

    /// Key material ends where the header's device of `size` bytes does, or before.
    pub(super) fn check_device(&self, size: u64) -> Result<(), VolumeError> {
        let ends = self.areas().map(|(_, area)| area.end());
        let needed = ends.map(|end| end.unwrap_or(u64::MAX)).max();
        match needed {
            Some(needed) if needed > size => Err(damaged(Damage::Short { needed, got: size })),
            _ => Ok(()),
        }
    }

    /// The header in `bytes`, which begin with it.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn parse(bytes: &[u8]) -> Result<Self, VolumeError> {
        let bytes = whole(bytes)?;
        let fields = Fields(bytes);
        let texts = Texts::of(&fields);
        let spec = texts.notation().parse()?;
        let hash = Hash::in_header("hash-spec", &texts.hash.lossy()).map_err(damaged)?;
        let header = Self {
            spec,
            hash,
            payload_offset: u64::from(fields.be32(104)) * SECTOR,
            key_bytes: fields.be32(108) as usize,
            uuid: texts.uuid,
            keyslots: keyslots(&fields),
            digest: fields.array(112),
            digest_salt: fields.array(132),
            digest_iterations: fields.be32(164),
            raw: *bytes,
        };
        header.check()?;
        Ok(header)
    }

    /// Bytes from the start of the device that header and keyslots take.
    ///
    /// The places of free keyslots count as far as they are possible ones.
    pub fn bytes_with_keyslots(&self) -> u64 {
        bytes_with(&self.keyslots, self.key_bytes, self.payload_offset)
    }

    /// The 592 bytes: those that were read, with what is known here over them.
    pub(super) fn bytes(&self) -> [u8; HEADER_BYTES as usize] {
        let mut bytes = self.raw;
        let mut put = |at: usize, value: &[u8]| bytes[at..][..value.len()].copy_from_slice(value);
        let sectors = |bytes: u64| ((bytes / SECTOR) as u32).to_be_bytes();
        put(104, &sectors(self.payload_offset));
        put(108, &(self.key_bytes as u32).to_be_bytes());
        put(112, &self.digest);
        put(132, &self.digest_salt);
        put(164, &self.digest_iterations.to_be_bytes());
        put(168, &[0; 40]);
        put(168, self.uuid.as_bytes());
        for (slot, keyslot) in self.keyslots.iter().enumerate() {
            if keyslot.unusable.is_some() {
                continue;
            }
            let at = KEYSLOTS_AT + slot * KEYSLOT_BYTES;
            let state = if keyslot.active { ACTIVE } else { DISABLED };
            put(at, &state.to_be_bytes());
            put(at + 4, &keyslot.iterations.to_be_bytes());
            put(at + 8, &keyslot.salt);
            put(at + 40, &sectors(keyslot.offset));
            put(at + 44, &keyslot.stripes.to_be_bytes());
        }
        bytes
    }

    /// The initial content of [`bytes`](Self::bytes) for a new volume.
    pub(super) fn blank(spec: CipherSpec, hash: Hash) -> [u8; HEADER_BYTES as usize] {
        let mut bytes = [0; HEADER_BYTES as usize];
        let mut put = |at: usize, value: &[u8]| bytes[at..][..value.len()].copy_from_slice(value);
        let spec = spec.to_string();
        let (cipher, mode) = spec.split_once('-').expect("the notation has a mode");
        put(0, MAGIC);
        put(6, &1_u16.to_be_bytes());
        put(8, cipher.as_bytes());
        put(40, mode.as_bytes());
        put(72, hash.name().as_bytes());
        bytes
    }

    /// Refuses a header that cryptsetup would not read: it asks of free keyslots
    /// what it asks of those in use.
    pub(super) fn check_to_write(&self) -> Result<(), VolumeError> {
        let usable = |(slot, keyslot): (usize, &Keyslot)| match keyslot.stripes {
            STRIPES => Ok((slot, self.material(keyslot).range())),
            other => {
                let field = format!("key-slot-{slot}.stripes");
                Err(Damage::number(field, other, "must be 4000"))
            }
        };
        self.check_areas(self.keyslots.iter().enumerate().map(usable))
            .map_err(|damage| VolumeError::Unwritable {
                format: Format::Luks1,
                damage,
            })
    }

    /// Refuses key material that lies upon the header, the data or other key material.
    fn check_areas(
        &self,
        areas: impl Iterator<Item = Result<(usize, ByteRange), Damage>>,
    ) -> Result<(), Damage> {
        let named = |slot: usize| format!("the key material of keyslot {slot}");
        let mut before: Vec<(usize, ByteRange)> = Vec::new();
        for area in areas {
            let (slot, area) = area?;
            if area.offset < HEADER_BYTES {
                return Err(Damage::overlap(named(slot), "the header"));
            }
            if self.payload_offset != 0 && area.end().is_none_or(|end| end > self.payload_offset) {
                return Err(Damage::overlap(named(slot), "the data"));
            }
            if let Some((other, _)) = before.iter().find(|(_, other)| area.overlaps(*other)) {
                return Err(Damage::overlap(named(*other), named(slot)));
            }
            before.push((slot, area));
        }
        Ok(())
    }

    pub(super) fn check(&self) -> Result<(), VolumeError> {
        let possible = self.spec.key_sizes();
        let null = self.spec.algorithms() == [Algorithm::Null] && self.key_bytes > 0;
        if !(null || possible.contains(&self.key_bytes)) || self.key_bytes > MOST_KEY_BYTES {
            let rule = format!("{} takes {possible:?}", self.spec);
            return Err(damaged(Damage::number(
                "key-bytes",
                self.key_bytes as u64,
                rule,
            )));
        }
        if self.digest_iterations == 0 {
            return Err(damaged(Damage::number(
                "mk-digest-iter",
                0_u64,
                "must be at least 1",
            )));
        }
        self.check_areas(self.areas().map(Ok)).map_err(damaged)?;
        if (1..FIRST_PAGE).contains(&self.payload_offset) {
            return Err(damaged(Damage::overlap("the data", "the header")));
        }
        Ok(())
    }

    /// The keyslots in use and where their material lies.
    fn areas(&self) -> impl Iterator<Item = (usize, ByteRange)> {
        let keyslots = self.keyslots.iter().enumerate();
        let active = keyslots.filter(|(_, keyslot)| keyslot.active);
        active.map(|(slot, keyslot)| (slot, self.material(keyslot).range()))
    }

    pub(crate) fn material(&self, keyslot: &Keyslot) -> KeyMaterial {
        KeyMaterial {
            spec: self.spec,
            offset: keyslot.offset,
            key_bytes: self.key_bytes,
            stripes: keyslot.stripes as usize,
            hash: self.hash,
        }
    }
}

/// Bytes from the start of the device that a header and these keyslots take.
fn bytes_with(keyslots: &[Keyslot], key_bytes: usize, payload_offset: u64) -> u64 {
    let possible = |keyslot: &&Keyslot| keyslot.active || keyslot.stripes <= MOST_STRIPES;
    let ends = keyslots.iter().filter(possible).map(|keyslot| {
        let material = (key_bytes as u64).saturating_mul(keyslot.stripes.into());
        match keyslot.active || keyslot.offset <= FARTHEST {
            true => keyslot.offset.saturating_add(material),
            false => 0,
        }
    });
    let end = ends.max().unwrap_or(0).max(FIRST_PAGE);
    let end = end.checked_next_multiple_of(FIRST_PAGE).unwrap_or(u64::MAX);
    match payload_offset {
        0 => end,
        data => data.min(end),
    }
}

fn keyslots(header: &Fields) -> [Keyslot; KEYSLOTS] {
    std::array::from_fn(|slot| {
        let at = KEYSLOTS_AT + slot * KEYSLOT_BYTES;
        let number = |field: &str, value: u32, rule: &str| {
            let field = format!("key-slot-{slot}.{field}");
            Some(Box::new(Damage::number(field, value, rule)))
        };
        let (state, iterations) = (header.be32(at), header.be32(at + 4));
        let stripes = header.be32(at + 44);
        let unusable = match state {
            DISABLED => None,
            ACTIVE if iterations == 0 => number("iterations", 0, "must be at least 1"),
            ACTIVE if !(1..=MOST_STRIPES).contains(&stripes) => {
                number("stripes", stripes, "must be 1 to 16384")
            }
            ACTIVE => None,
            state => number("active", state, "must be 11301363 or 57005"),
        };
        Keyslot {
            active: state == ACTIVE && unusable.is_none(),
            unusable,
            iterations,
            salt: header.array(at + 8),
            offset: u64::from(header.be32(at + 40)) * SECTOR,
            stripes,
        }
    })
}

/// The texts in a header, whether this program knows their values or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Texts {
    /// The cipher.
    pub cipher: HeaderText,
    /// Mode and IV generator.
    pub mode: HeaderText,
    /// The hash.
    pub hash: HeaderText,
    /// The UUID.
    pub uuid: HeaderText,
}

impl Texts {
    fn of(fields: &Fields) -> Self {
        Self {
            cipher: fields.text(8, 32),
            mode: fields.text(40, 32),
            hash: fields.text(72, 32),
            uuid: fields.text(168, 40),
        }
    }

    /// Cipher and mode in dm-crypt's notation.
    pub fn notation(&self) -> String {
        format!("{}-{}", self.cipher, self.mode)
    }
}

/// The readable fields of a header that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outline {
    /// Its texts.
    pub texts: Texts,
    /// First byte of the data.
    pub payload_offset: u64,
    /// Length of the volume key, bytes.
    pub key_bytes: usize,
    /// The keyslots by number.
    pub keyslots: [Keyslot; KEYSLOTS],
}

impl Outline {
    /// Bytes from the start of the device that header and keyslots take, as far as they
    /// say so.
    pub fn bytes_with_keyslots(&self) -> u64 {
        bytes_with(&self.keyslots, self.key_bytes, self.payload_offset)
    }

    /// Reads the header at the start of `device`, and checks nothing of it.
    ///
    /// # Errors
    /// [`VolumeError::NotThis`], [`VolumeError::Cut`] and [`VolumeError::Block`].
    pub fn read(device: &dyn BlockDevice) -> Result<Self, VolumeError> {
        let bytes = unaligned::read_up_to(device, 0, HEADER_BYTES)?;
        let fields = Fields(whole(&bytes)?);
        Ok(Self {
            texts: Texts::of(&fields),
            payload_offset: u64::from(fields.be32(104)) * SECTOR,
            key_bytes: fields.be32(108) as usize,
            keyslots: keyslots(&fields),
        })
    }
}

/// The header that `bytes` begin with.
fn whole(bytes: &[u8]) -> Result<&[u8; HEADER_BYTES as usize], VolumeError> {
    if !bytes.starts_with(MAGIC) || bytes.get(6..8) != Some(&[0, 1]) {
        return Err(VolumeError::NotThis {
            format: Format::Luks1,
        });
    }
    bytes.first_chunk().ok_or_else(|| {
        damaged(Damage::Short {
            needed: HEADER_BYTES,
            got: bytes.len() as u64,
        })
    })
}

fn damaged(damage: Damage) -> VolumeError {
    VolumeError::damaged(Format::Luks1, damage)
}
