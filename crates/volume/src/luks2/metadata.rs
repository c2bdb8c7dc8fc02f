//! The JSON metadata as values that can be relied on.

use super::json::Node;
use super::rules;
use crate::luks::MOST_KEY_BYTES;
use crate::{Argon2Variant, Damage, Format, Hash, Kdf, VolumeError};
use block::ByteRange;
use cipher::SectorSize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

const MOST_STRIPES: u32 = 16_384;
const MOST_KEYSLOTS_SIZE: u64 = 128 << 20;
const MOST_SALT_BYTES: usize = 1024;

/// The length of a digest that was LUKS1's before; any other is as long as its
/// hash. A shorter one would take wrong keys for the right one.
const LUKS1_DIGEST_BYTES: usize = 20;

/// The metadata of a header, checked for consistency.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// Keyslots by number.
    pub keyslots: BTreeMap<u32, Keyslot>,
    /// Segments by number.
    pub segments: BTreeMap<u32, Segment>,
    /// Digests by number.
    pub digests: BTreeMap<u32, Digest>,
    /// The types of the tokens by number; the rest of a token isn't read here.
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
    /// The features that a program must support to use the volume.
    pub requirements: Vec<String>,
}

/// A keyslot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Keyslot {
    /// One that a passphrase opens: type `luks2`.
    Luks2(Box<PassphraseKeyslot>),
    /// One that cannot be used here and is left alone. It has another type, or an unknown key
    /// derivation, splitter or value.
    Other {
        /// Its type.
        kind: String,
        /// Its area.
        area: Option<ByteRange>,
        /// Length of the key in it, bytes, as far as it says.
        key_bytes: Option<usize>,
        /// The unknown or wrong part.
        why: Box<Damage>,
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
    /// Its length, bytes; `None` goes to the end of the device.
    pub size: Option<u64>,
    /// The kind of its data.
    pub kind: SegmentKind,
    /// `backup-final` and others, while the volume is reencrypted.
    pub flags: Vec<String>,
}

/// The kind of the data in a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SegmentKind {
    /// Encrypted data.
    Crypt(Crypt),
    /// Data as it is.
    Linear,
    /// Data of another kind, which cannot be used here.
    Other {
        /// Its type, such as `hw-opal`.
        kind: String,
        /// The unknown part.
        why: Box<Damage>,
    },
}

/// How the data of a segment are encrypted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crypt {
    /// Cipher, mode and IV generator in dm-crypt's notation.
    pub encryption: String,
    /// Encryption sector size.
    pub sector_size: SectorSize,
    /// IV number of its first sector, in units of 512 bytes.
    pub iv_tweak: u64,
    /// Tags beside the data.
    pub integrity: Option<Integrity>,
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

/// A digest, which verifies that a key is the right one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Digest {
    /// The keyslots with the key.
    pub keyslots: Vec<u32>,
    /// The segments that it encrypts.
    pub segments: Vec<u32>,
    /// The means of comparing a key, or the reason why it cannot be compared here.
    pub verifier: Result<Verifier, Box<Damage>>,
}

/// How a key is compared with the right one: type `pbkdf2`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verifier {
    /// The key derivation, applied to the key.
    pub kdf: Kdf,
    /// Its salt.
    pub salt: Vec<u8>,
    /// The expected result of the derivation.
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

    /// The same for metadata that is to be written: cryptsetup must read it, too.
    pub(super) fn parse_to_write(
        json: &Map<String, Value>,
        header_size: u64,
    ) -> Result<Self, VolumeError> {
        rules::check(json, header_size)
            .and_then(|()| Self::parse(json, header_size))
            .map_err(|damage| VolumeError::Unwritable {
                format: Format::Luks2,
                damage,
            })
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
            if area.length == 0 {
                let field = format!("keyslots.{number}.area.size");
                return Err(Damage::number(field, 0_u64, "must be more"));
            }
            if !area.within(space) {
                let rule = format!(
                    "the area's {} bytes must lie within {} bytes from {}",
                    area.length, space.length, space.offset
                );
                let field = format!("keyslots.{number}.area.offset");
                return Err(Damage::number(field, area.offset, rule));
            }
            if let Some((other, _)) = before.iter().find(|(_, other)| area.overlaps(*other)) {
                return Err(Damage::overlap(
                    format!("the areas of keyslots {other}"),
                    number.to_string(),
                ));
            }
            before.push((number, area));
        }
        Ok(())
    }

    /// Key material ends where the header's device of `size` bytes does, or before.
    pub(super) fn check_device(&self, size: u64) -> Result<(), Damage> {
        let areas = self.keyslots.values().filter_map(Keyslot::area);
        let ends = areas.map(|area| area.end().unwrap_or(u64::MAX));
        match ends.max() {
            Some(needed) if needed > size => Err(Damage::Short { needed, got: size }),
            _ => Ok(()),
        }
    }

    /// Segments are numbered without gaps, those in use before those of before
    /// and after a reencryption. They do not overlap, and none but the last in
    /// use goes to the end of the device.
    fn check_segments(&self) -> Result<(), Damage> {
        let missing = |number: u32| Damage::missing(format!("segments.{number}"));
        let mut numbers = (0..).zip(self.segments.keys());
        if let Some((expected, _)) = numbers.find(|(expected, number)| expected != *number) {
            return Err(missing(expected));
        }
        let segments = self.segments.iter();
        let used: Vec<_> = segments.take_while(|(_, it)| !it.is_backup()).collect();
        if used.is_empty() {
            return Err(missing(0));
        }
        let behind = self.segments.iter().skip(used.len());
        for (number, segment) in behind {
            if !segment.is_backup() {
                let rule = "a segment in use comes after a segment of a reencryption";
                return Err(Damage::number("segments", *number, rule));
            }
        }
        for (at, (first, a)) in used.iter().enumerate() {
            for (second, b) in &used[at + 1..] {
                let end = |segment: &Segment| segment.offset.checked_add(segment.size?);
                let before = |a: &Segment, b: &Segment| end(a).is_some_and(|end| end <= b.offset);
                // The first of two has an end, wherever the second lies.
                if a.size.is_none() || !(before(a, b) || before(b, a)) {
                    return Err(Damage::overlap(
                        format!("segments {first}"),
                        second.to_string(),
                    ));
                }
            }
        }
        Ok(())
    }

    fn check_digests(&self) -> Result<(), Damage> {
        for (number, digest) in &self.digests {
            let check = |name: &str, listed: &[u32], is_there: &dyn Fn(&u32) -> bool| {
                let rule = "there is none with that number";
                match listed.iter().find(|it| !is_there(it)) {
                    Some(stray) => {
                        let field = format!("digests.{number}.{name}");
                        Err(Damage::number(field, *stray, rule))
                    }
                    None => Ok(()),
                }
            };
            check("keyslots", &digest.keyslots, &|it| {
                self.keyslots.contains_key(it)
            })?;
            check("segments", &digest.segments, &|it| {
                self.segments.contains_key(it)
            })?;
        }
        for (number, segment) in &self.segments {
            let mut digests = self.digests.values();
            let listed = digests.any(|digest| digest.segments.contains(number));
            if !listed && segment.crypt().is_some() {
                return Err(Damage::missing(format!("the digest of segments.{number}")));
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

    /// How its data are encrypted, if they are.
    pub fn crypt(&self) -> Option<&Crypt> {
        match &self.kind {
            SegmentKind::Crypt(crypt) => Some(crypt),
            SegmentKind::Linear | SegmentKind::Other { .. } => None,
        }
    }

    /// Whether the drive encrypts its data (OPAL).
    pub fn is_of_the_drive(&self) -> bool {
        matches!(&self.kind, SegmentKind::Other { kind, .. } if kind.starts_with("hw-opal"))
    }
}

/// The numbered members of the member `name`.
fn objects<T>(
    json: &Map<String, Value>,
    name: &str,
    parse: impl Fn(&Node) -> Result<T, Damage>,
) -> Result<BTreeMap<u32, T>, Damage> {
    let members = Node::root(json, name)?.numbered()?;
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
        Some(requirements) => texts(&requirements, "mandatory")?,
        None => Vec::new(),
    };
    if requirements.iter().filter(|name| is_online(name)).count() > 1 {
        let rule = "only one reencryption is possible at a time";
        return Err(Damage::number("config.requirements.mandatory", 2_u64, rule));
    }
    Ok(Config {
        json_size: bytes,
        keyslots_size: space,
        flags: texts(node, "flags")?,
        requirements,
    })
}

/// Whether a requirement is that of a reencryption of cryptsetup's, of whatever version.
pub(super) fn is_online(requirement: &str) -> bool {
    let version = requirement.strip_prefix("online-reencrypt");
    version.is_some_and(|version| {
        let number = version.strip_prefix("-v");
        let digits = |number: &str| number.bytes().all(|byte| byte.is_ascii_digit());
        version.is_empty() || number.is_some_and(|number| !number.is_empty() && digits(number))
    })
}

/// The texts in the list `name`; none if there is no such member.
fn texts(node: &Node, name: &str) -> Result<Vec<String>, Damage> {
    let list = node.find(name)?.map(|list| list.list()).transpose()?;
    let texts = list.into_iter().flatten();
    texts.map(|node| Ok(node.text()?.to_owned())).collect()
}

fn token(node: &Node) -> Result<String, Damage> {
    for keyslot in node.get("keyslots")?.list()? {
        keyslot.text()?;
    }
    Ok(node.get("type")?.some_text()?.to_owned())
}

/// Parses a key slot. A missing member that cryptsetup demands of every key slot invalidates the
/// header. Other unknown values concern this key slot alone.
fn keyslot(node: &Node) -> Result<Keyslot, Damage> {
    let kind_node = node.get("type")?;
    let kind = kind_node.some_text()?;
    let area = node.get("area")?;
    let range = match (area.find("offset")?, area.find("size")?) {
        (Some(offset), Some(size)) => Some(ByteRange {
            offset: offset.big_number()?,
            length: size.big_number()?,
        }),
        _ => None,
    };
    let other = |why: Damage| Keyslot::Other {
        kind: kind.to_owned(),
        area: range,
        key_bytes: node.get("key_size").and_then(|node| key_size(&node)).ok(),
        why: Box::new(why),
    };
    if kind != "luks2" {
        return Ok(other(kind_node.unknown(kind)));
    }
    rules::passphrase_keyslot(node)?;
    let range = range.ok_or_else(|| Damage::missing(format!("{}.offset", area.path())))?;
    match passphrase_keyslot(node, &area, range) {
        Ok(keyslot) => Ok(Keyslot::Luks2(Box::new(keyslot))),
        Err(why) => Ok(other(why)),
    }
}

fn passphrase_keyslot(
    node: &Node,
    area: &Node,
    range: ByteRange,
) -> Result<PassphraseKeyslot, Damage> {
    area.must_be("type", "raw")?;
    let key_bytes = key_size(&node.get("key_size")?)?;
    let af = af(&node.get("af")?)?;
    let stripes = (key_bytes as u64 * u64::from(af.stripes)).next_multiple_of(512);
    if range.length < stripes {
        let rule = format!("the key material needs {stripes}");
        return Err(area.get("size")?.refuse(range.length, rule));
    }
    let kdf_node = node.get("kdf")?;
    Ok(PassphraseKeyslot {
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
    })
}

fn key_size(node: &Node) -> Result<usize, Damage> {
    match node.number()? as usize {
        bytes @ 1..=MOST_KEY_BYTES => Ok(bytes),
        bytes => Err(node.refuse(bytes as u64, format!("must be 1 to {MOST_KEY_BYTES}"))),
    }
}

fn af(node: &Node) -> Result<Af, Damage> {
    node.must_be("type", "luks1")?;
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
    Hash::in_header(node.path(), node.text()?)
}

fn salt(node: &Node) -> Result<Vec<u8>, Damage> {
    let salt = node.bytes()?;
    match salt.len() {
        0..=MOST_SALT_BYTES => Ok(salt),
        bytes => Err(node.refuse_length(bytes, format!("must be at most {MOST_SALT_BYTES}"))),
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

/// Parses a segment. A missing member that cryptsetup demands of every segment invalidates the
/// header.
fn segment(node: &Node) -> Result<Segment, Damage> {
    let kind_node = node.get("type")?;
    let kind = kind_node.some_text()?;
    let offset_node = node.get("offset")?;
    let offset = offset_node.big_number()?;
    let sectors = "must be a multiple of 512";
    if !offset.is_multiple_of(512) {
        return Err(offset_node.refuse(offset, sectors));
    }
    let size_node = node.get("size")?;
    let size = match size_node.text()? {
        "dynamic" => None,
        _ => match size_node.big_number()? {
            0 => return Err(size_node.refuse(0, "must be more")),
            bytes if !bytes.is_multiple_of(512) => return Err(size_node.refuse(bytes, sectors)),
            bytes => Some(bytes),
        },
    };
    let other = |why: Damage| SegmentKind::Other {
        kind: kind.to_owned(),
        why: Box::new(why),
    };
    let kind = match kind {
        "linear" => SegmentKind::Linear,
        "crypt" => {
            let sector_size = node.get("sector_size")?;
            let bytes = sector_size.number()?;
            if bytes == 0 || !bytes.is_multiple_of(512) {
                return Err(sector_size.refuse(bytes.into(), sectors));
            }
            if let Some(size) = size
                && !size.is_multiple_of(bytes.into())
            {
                let rule = format!("must be made of sectors of {bytes} bytes");
                return Err(size_node.refuse(size, rule));
            }
            let encryption = node.get("encryption")?.some_text()?.to_owned();
            let iv_tweak = node.get("iv_tweak")?.big_number()?;
            let integrity = node.find("integrity")?.map(integrity).transpose()?;
            match (SectorSize::from_bytes(bytes), integrity) {
                (_, Some(Err(why))) => other(why),
                (None, _) => other(sector_size.unknown(&bytes.to_string())),
                (Some(sector_size), integrity) => SegmentKind::Crypt(Crypt {
                    encryption,
                    sector_size,
                    iv_tweak,
                    integrity: integrity.and_then(Result::ok),
                }),
            }
        }
        unknown => other(kind_node.unknown(unknown)),
    };
    Ok(Segment {
        offset,
        size,
        kind,
        flags: texts(node, "flags")?,
    })
}

/// Tags beside the data: the outer error is of the header, the inner one of
/// this segment alone.
fn integrity(node: Node) -> Result<Result<Integrity, Damage>, Damage> {
    let kind = node.get("type")?.some_text()?.to_owned();
    let journal_encryption = node.get("journal_encryption")?.some_text()?.to_owned();
    let journal_integrity = node.get("journal_integrity")?.some_text()?.to_owned();
    let key_bytes = node.find("key_size")?.map(|bytes| key_size(&bytes));
    Ok(key_bytes.transpose().map(|key_bytes| Integrity {
        kind,
        key_bytes,
        journal_encryption,
        journal_integrity,
    }))
}

/// Parses a digest. It must name its key slots and segments; otherwise the header is invalid.
fn digest(node: &Node) -> Result<Digest, Damage> {
    node.get("type")?.some_text()?;
    Ok(Digest {
        keyslots: numbers(&node.get("keyslots")?)?,
        segments: numbers(&node.get("segments")?)?,
        verifier: verifier(node).map_err(Box::new),
    })
}

fn verifier(node: &Node) -> Result<Verifier, Damage> {
    node.must_be("type", "pbkdf2")?;
    let hash = hash(&node.get("hash")?)?;
    let digest = node.get("digest")?;
    let bytes = digest.bytes()?;
    if ![LUKS1_DIGEST_BYTES, hash.digest_bytes()].contains(&bytes.len()) {
        let rule = format!("{hash} gives {}", hash.digest_bytes());
        return Err(digest.refuse_length(bytes.len(), rule));
    }
    Ok(Verifier {
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
    node.list()?.iter().map(Node::reference).collect()
}
