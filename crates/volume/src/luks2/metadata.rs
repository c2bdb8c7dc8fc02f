//! The JSON metadata as values that can be relied on.

use super::json::Node;
use crate::luks::MOST_KEY_BYTES;
use crate::{Argon2Variant, Damage, Hash, Kdf};
use block::ByteRange;
use cipher::SectorSize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Numbers of keyslots, tokens, segments and digests go up to 31.
const MOST_OBJECTS: u32 = 31;

const MOST_STRIPES: u32 = 16_384;
const MOST_KEYSLOTS_SIZE: u64 = 128 << 20;
const MOST_SALT_BYTES: usize = 1024;

/// The length of a digest that was LUKS1's before; any other is as long as its
/// hash. A shorter one would take wrong keys for the right one.
const LUKS1_DIGEST_BYTES: usize = 20;

/// What a header says, checked for being possible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// Keyslots by number.
    pub keyslots: BTreeMap<u32, Keyslot>,
    /// Segments by number.
    pub segments: BTreeMap<u32, Segment>,
    /// Digests by number.
    pub digests: BTreeMap<u32, Digest>,
    /// The types of the tokens by number; nothing else of them is looked at.
    pub tokens: BTreeMap<u32, String>,
    /// Sizes and flags.
    pub config: Config,
}

/// `config`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Length of the JSON area, bytes.
    pub json_size: u64,
    /// Length of the area of key material behind both headers, bytes.
    pub keyslots_size: u64,
    /// Flags for opening, such as `allow-discards`; unknown ones are allowed.
    pub flags: Vec<String>,
    /// What a program must know to use the volume.
    pub requirements: Vec<String>,
}

/// A keyslot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Keyslot {
    /// One that a passphrase opens: type `luks2`.
    Luks2(Box<PassphraseKeyslot>),
    /// One of another type, which is left alone.
    Other {
        /// Its type.
        kind: String,
        /// Where it keeps what it keeps.
        area: Option<ByteRange>,
    },
}

/// A keyslot of type `luks2`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassphraseKeyslot {
    /// Length of the key in it, bytes.
    pub key_bytes: usize,
    /// Where the key material lies on the header's device.
    pub area: ByteRange,
    /// The cipher of the key material, in dm-crypt's notation.
    pub encryption: String,
    /// Length of the key material's key, bytes.
    pub area_key_bytes: usize,
    /// The anti-forensic splitter.
    pub af: Af,
    /// The key derivation.
    pub kdf: Kdf,
    /// The key derivation's salt.
    pub salt: Vec<u8>,
    /// Whether it is tried, and when.
    pub priority: Priority,
}

/// The anti-forensic splitter of a keyslot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Af {
    /// Stripes that the key is split into.
    pub stripes: u32,
    /// The hash that diffuses it.
    pub hash: Hash,
}

/// `priority` of a keyslot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// Tried only if it is named.
    Ignore,
    /// Tried.
    Normal,
    /// Tried before the others.
    Prefer,
}

/// A run of data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Its first byte on the data's device.
    pub offset: u64,
    /// Its length.
    pub size: SegmentSize,
    /// What it holds.
    pub kind: SegmentKind,
    /// `backup-final` and others, while the volume is reencrypted.
    pub flags: Vec<String>,
}

/// What a segment holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SegmentKind {
    /// Encrypted data.
    Crypt {
        /// Cipher, mode and IV generator in dm-crypt's notation.
        encryption: String,
        /// Encryption sector size.
        sector_size: SectorSize,
        /// IV number of its first sector, in units of 512 bytes.
        iv_tweak: u64,
        /// Tags beside the data.
        integrity: Option<Integrity>,
    },
    /// Data as it is.
    Linear,
}

/// `integrity` of a segment: its data go through dm-integrity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Integrity {
    /// `hmac(sha256)`, `aead` and others.
    pub kind: String,
    /// Length of the MAC's key, if that is not the length of its digest.
    pub key_bytes: Option<usize>,
    /// The journal's cipher, or `none`.
    pub journal_encryption: String,
    /// The journal's integrity algorithm, or `none`.
    pub journal_integrity: String,
}

/// Length of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentSize {
    /// To the end of the device.
    Dynamic,
    /// So many bytes.
    Fixed(u64),
}

/// What says whether a key is the right one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Digest {
    /// The keyslots with the key.
    pub keyslots: Vec<u32>,
    /// The segments that it encrypts.
    pub segments: Vec<u32>,
    /// The key derivation, applied to the key.
    pub kdf: Kdf,
    /// Its salt.
    pub salt: Vec<u8>,
    /// What it must give.
    pub digest: Vec<u8>,
}

impl Metadata {
    /// Reads and checks `json`, the metadata of a header of `header_size`
    /// bytes, binary and JSON.
    pub(super) fn parse(json: &Map<String, Value>, header_size: u64) -> Result<Self, Damage> {
        let config = config(&Node::root(json, "config")?, header_size)?;
        let metadata = Self {
            keyslots: objects(json, "keyslots", keyslot)?,
            segments: objects(json, "segments", segment)?,
            digests: objects(json, "digests", digest)?,
            tokens: objects(json, "tokens", token)?,
            config,
        };
        metadata.check_areas(header_size)?;
        metadata.check_segments()?;
        metadata.check_digests()?;
        Ok(metadata)
    }

    /// Key material lies behind both copies of the header, in the space that
    /// the header says, and not upon other key material.
    fn check_areas(&self, header_size: u64) -> Result<(), Damage> {
        let space = ByteRange {
            offset: 2 * header_size,
            length: self.config.keyslots_size,
        };
        let mut before: Vec<(u32, ByteRange)> = Vec::new();
        for (&number, keyslot) in &self.keyslots {
            let Some(area) = keyslot.area() else { continue };
            if !area.within(space) {
                let rule = format!(
                    "the area's {} bytes must lie within {} bytes from {}",
                    area.length, space.length, space.offset
                );
                let field = format!("keyslots.{number}.area.offset");
                return Err(Damage::number(field, area.offset, rule));
            }
            if let Some((other, _)) = before.iter().find(|(_, other)| area.overlaps(*other)) {
                return Err(Damage::Overlap {
                    first: format!("the areas of keyslots {other}").into(),
                    second: number.to_string().into(),
                });
            }
            before.push((number, area));
        }
        Ok(())
    }

    /// Key material ends where the header's device of `size` bytes does, or before.
    pub(super) fn check_device(&self, size: u64) -> Result<(), Damage> {
        for (number, keyslot) in &self.keyslots {
            let outside = |area: &ByteRange| area.end().is_none_or(|end| end > size);
            if let Some(area) = keyslot.area().filter(outside) {
                let field = format!("keyslots.{number}.area.offset");
                let rule = format!("its area ends behind the {size} bytes that there are");
                return Err(Damage::number(field, area.offset, rule));
            }
        }
        Ok(())
    }

    /// Segments that are in use follow one another without gaps in their
    /// numbers, and none but the last may go to the end of the device.
    fn check_segments(&self) -> Result<(), Damage> {
        let mut used: Vec<_> = self
            .segments
            .iter()
            .filter(|(_, s)| !s.is_backup())
            .collect();
        if used.is_empty() {
            return Err(Damage::Missing {
                field: "segments.0".into(),
            });
        }
        used.sort_by_key(|(_, segment)| segment.offset);
        for pair in used.windows(2) {
            let ((first, a), (second, b)) = (pair[0], pair[1]);
            let apart = match a.size {
                SegmentSize::Dynamic => false,
                SegmentSize::Fixed(size) => a
                    .offset
                    .checked_add(size)
                    .is_some_and(|end| end <= b.offset),
            };
            if !apart {
                return Err(Damage::Overlap {
                    first: format!("segments {first}").into(),
                    second: second.to_string().into(),
                });
            }
        }
        Ok(())
    }

    fn check_digests(&self) -> Result<(), Damage> {
        for (number, digest) in &self.digests {
            for (name, listed, known) in [
                (
                    "keyslots",
                    &digest.keyslots,
                    self.keyslots.keys().collect::<Vec<_>>(),
                ),
                ("segments", &digest.segments, self.segments.keys().collect()),
            ] {
                if let Some(&stray) = listed.iter().find(|listed| !known.contains(listed)) {
                    let field = format!("digests.{number}.{name}");
                    return Err(Damage::number(field, stray, "there is none of that number"));
                }
            }
        }
        Ok(())
    }
}

impl Keyslot {
    /// Where it keeps what it keeps, if that is on the header's device.
    pub fn area(&self) -> Option<ByteRange> {
        match self {
            Self::Luks2(keyslot) => Some(keyslot.area),
            Self::Other { area, .. } => *area,
        }
    }
}

impl Segment {
    /// Whether it describes the volume before or after a reencryption, and not now.
    pub fn is_backup(&self) -> bool {
        self.flags.iter().any(|flag| flag.starts_with("backup-"))
    }
}

/// The numbered members of the member `name`.
fn objects<T>(
    json: &Map<String, Value>,
    name: &str,
    parse: impl Fn(&Node) -> Result<T, Damage>,
) -> Result<BTreeMap<u32, T>, Damage> {
    let members = Node::root(json, name)?.numbered(MOST_OBJECTS)?;
    let parsed = members
        .iter()
        .map(|(number, node)| Ok((*number, parse(node)?)));
    parsed.collect()
}

fn config(node: &Node, header_size: u64) -> Result<Config, Damage> {
    let json_size = node.get("json_size")?;
    let bytes = json_size.big_number()?;
    let expected = header_size - super::binary::BINARY_BYTES as u64;
    if bytes != expected {
        return Err(json_size.refuse(bytes, format!("must be {expected}")));
    }
    let keyslots_size = node.get("keyslots_size")?;
    let space = keyslots_size.big_number()?;
    if space > MOST_KEYSLOTS_SIZE || !space.is_multiple_of(4096) {
        let rule = "must be a multiple of 4096 up to 128 MiB";
        return Err(keyslots_size.refuse(space, rule));
    }
    let requirements = match node.find("requirements")? {
        Some(requirements) => match requirements.find("mandatory")? {
            Some(mandatory) => texts(&mandatory)?,
            None => Vec::new(),
        },
        None => Vec::new(),
    };
    let flags = match node.find("flags")? {
        Some(flags) => texts(&flags)?,
        None => Vec::new(),
    };
    Ok(Config {
        json_size: bytes,
        keyslots_size: space,
        flags,
        requirements,
    })
}

fn texts(node: &Node) -> Result<Vec<String>, Damage> {
    let texts = node.list()?;
    texts
        .iter()
        .map(|node| Ok(node.text()?.to_owned()))
        .collect()
}

fn token(node: &Node) -> Result<String, Damage> {
    for keyslot in node.get("keyslots")?.list()? {
        keyslot.text()?;
    }
    Ok(node.get("type")?.text()?.to_owned())
}

fn keyslot(node: &Node) -> Result<Keyslot, Damage> {
    let kind = node.get("type")?.text()?;
    let area = node.get("area")?;
    let range = match (area.find("offset")?, area.find("size")?) {
        (Some(offset), Some(size)) => Some(ByteRange {
            offset: offset.big_number()?,
            length: size.big_number()?,
        }),
        _ => None,
    };
    if kind != "luks2" {
        return Ok(Keyslot::Other {
            kind: kind.to_owned(),
            area: range,
        });
    }
    let range = range.ok_or_else(|| Damage::Missing {
        field: format!("{}.offset", area.path()).into(),
    })?;
    let area_kind = area.get("type")?;
    match area_kind.text()? {
        "raw" => {}
        other => return Err(area_kind.unknown(other)),
    }
    let key_bytes = key_size(&node.get("key_size")?)?;
    let af = af(&node.get("af")?)?;
    let stripes = (key_bytes as u64 * u64::from(af.stripes)).next_multiple_of(512);
    if range.length < stripes {
        let rule = format!("the key material needs {stripes}");
        return Err(area.get("size")?.refuse(range.length, rule));
    }
    let kdf_node = node.get("kdf")?;
    Ok(Keyslot::Luks2(Box::new(PassphraseKeyslot {
        key_bytes,
        area: range,
        encryption: area.get("encryption")?.text()?.to_owned(),
        area_key_bytes: key_size(&area.get("key_size")?)?,
        af,
        kdf: kdf(&kdf_node)?,
        salt: salt(&kdf_node.get("salt")?)?,
        priority: match node.find("priority")? {
            None => Priority::Normal,
            Some(priority) => match priority.number()? {
                0 => Priority::Ignore,
                1 => Priority::Normal,
                2 => Priority::Prefer,
                other => return Err(priority.refuse(other.into(), "must be 0, 1 or 2")),
            },
        },
    })))
}

fn key_size(node: &Node) -> Result<usize, Damage> {
    match node.number()? as usize {
        bytes @ 1..=MOST_KEY_BYTES => Ok(bytes),
        bytes => Err(node.refuse(bytes as u64, format!("must be 1 to {MOST_KEY_BYTES}"))),
    }
}

fn af(node: &Node) -> Result<Af, Damage> {
    let kind = node.get("type")?;
    match kind.text()? {
        "luks1" => {}
        other => return Err(kind.unknown(other)),
    }
    let stripes = node.get("stripes")?;
    let hash = hash(&node.get("hash")?)?;
    match stripes.number()? {
        count @ 1..=MOST_STRIPES => Ok(Af {
            stripes: count,
            hash,
        }),
        count => Err(stripes.refuse(count.into(), format!("must be 1 to {MOST_STRIPES}"))),
    }
}

fn hash(node: &Node) -> Result<Hash, Damage> {
    let name = node.text()?;
    Hash::named(name).ok_or_else(|| node.unknown(name))
}

fn salt(node: &Node) -> Result<Vec<u8>, Damage> {
    let salt = node.bytes()?;
    match salt.len() {
        0..=MOST_SALT_BYTES => Ok(salt),
        bytes => Err(node.refuse_length(bytes, format!("must be {MOST_SALT_BYTES} at most"))),
    }
}

fn kdf(node: &Node) -> Result<Kdf, Damage> {
    let kind = node.get("type")?;
    let variant = match kind.text()? {
        "pbkdf2" => {
            return Ok(Kdf::Pbkdf2 {
                hash: hash(&node.get("hash")?)?,
                iterations: node.get("iterations")?.number()?,
            });
        }
        "argon2i" => Argon2Variant::I,
        "argon2id" => Argon2Variant::Id,
        other => return Err(kind.unknown(other)),
    };
    Ok(Kdf::Argon2 {
        variant,
        time: node.get("time")?.number()?,
        memory_kib: node.get("memory")?.number()?,
        lanes: node.get("cpus")?.number()?,
    })
}

fn segment(node: &Node) -> Result<Segment, Damage> {
    let size = node.get("size")?;
    let size = match size.text()? {
        "dynamic" => SegmentSize::Dynamic,
        _ => match size.big_number()? {
            0 => return Err(size.refuse(0, "must be more")),
            bytes => SegmentSize::Fixed(bytes),
        },
    };
    let kind = node.get("type")?;
    let kind = match kind.text()? {
        "linear" => SegmentKind::Linear,
        "crypt" => {
            let sector_size = node.get("sector_size")?;
            let bytes = sector_size.number()?;
            SegmentKind::Crypt {
                encryption: node.get("encryption")?.text()?.to_owned(),
                sector_size: SectorSize::from_bytes(bytes).ok_or_else(|| {
                    sector_size.refuse(bytes.into(), "must be 512, 1024, 2048 or 4096")
                })?,
                iv_tweak: node.get("iv_tweak")?.big_number()?,
                integrity: match node.find("integrity")? {
                    None => None,
                    Some(integrity) => Some(Integrity {
                        kind: integrity.get("type")?.text()?.to_owned(),
                        key_bytes: match integrity.find("key_size")? {
                            None => None,
                            Some(bytes) => Some(key_size(&bytes)?),
                        },
                        journal_encryption: integrity.get("journal_encryption")?.text()?.to_owned(),
                        journal_integrity: integrity.get("journal_integrity")?.text()?.to_owned(),
                    }),
                },
            }
        }
        other => return Err(kind.unknown(other)),
    };
    Ok(Segment {
        offset: node.get("offset")?.big_number()?,
        size,
        kind,
        flags: match node.find("flags")? {
            Some(flags) => texts(&flags)?,
            None => Vec::new(),
        },
    })
}

fn digest(node: &Node) -> Result<Digest, Damage> {
    let kind = node.get("type")?;
    match kind.text()? {
        "pbkdf2" => {}
        other => return Err(kind.unknown(other)),
    }
    let hash_node = node.get("hash")?;
    let hash = hash(&hash_node)?;
    let digest = node.get("digest")?;
    let bytes = digest.bytes()?;
    if ![LUKS1_DIGEST_BYTES, hash.digest_bytes()].contains(&bytes.len()) {
        let rule = format!("{hash} gives {}", hash.digest_bytes());
        return Err(digest.refuse_length(bytes.len(), rule));
    }
    Ok(Digest {
        keyslots: numbers(&node.get("keyslots")?)?,
        segments: numbers(&node.get("segments")?)?,
        kdf: Kdf::Pbkdf2 {
            hash,
            iterations: node.get("iterations")?.number()?,
        },
        salt: salt(&node.get("salt")?)?,
        digest: bytes,
    })
}

/// Numbers, each in quotes.
fn numbers(node: &Node) -> Result<Vec<u32>, Damage> {
    let number = |node: &Node| {
        let number = node.big_number()?;
        u32::try_from(number).map_err(|_| node.refuse(number, "is no possible number"))
    };
    node.list()?.iter().map(number).collect()
}
