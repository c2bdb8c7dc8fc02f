//! The contents of the decrypted metadata.

use super::context::{Context, User, document, value};
use super::metadata::{BLOCK_BYTES, HEAD_BYTES, Physical};
use super::{damaged, unsupported};
use crate::fields::Fields;
use crate::{Damage, VolumeError};
use block::{BlockDevice, ByteRange};
use uuid::Uuid;

/// Kinds of blocks.
const CONTEXT: u16 = 0x19;
const LOGICAL_VOLUME: u16 = 0x1a;
const EXTENTS: u16 = 0x305;

/// Length of an extent's entry, bytes.
const EXTENT_BYTES: usize = 40;

/// The checked metadata of a volume.
#[derive(Clone, Debug)]
pub struct Header {
    /// Identifier of the physical volume.
    pub physical: Uuid,
    /// Identifier of the logical volume family.
    pub family: Uuid,
    /// The logical volume's name.
    pub name: Option<String>,
    /// Size of the logical volume, bytes.
    pub size: u64,
    /// Its extents, in order and without gaps.
    pub extents: Vec<Extent>,
    /// The users and recovery keys that can open it.
    pub users: Vec<User>,
    /// The conversion status: `Complete`, or another while the volume is converted.
    pub conversion: Option<String>,
    pub(super) volume_keys: Vec<[u8; super::context::WRAPPED_BYTES]>,
}

/// A part of a logical volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Offset in the logical volume, bytes.
    pub start: u64,
    /// Its place on the device.
    pub place: ByteRange,
}

/// The metadata found so far, each with its transaction number.
#[derive(Default)]
struct Found {
    context: Option<(u64, Context)>,
    volume: Option<(u64, LogicalVolume)>,
    extents: Option<(u64, Vec<Extent>)>,
}

struct LogicalVolume {
    family: Uuid,
    identifier: Option<String>,
    name: Option<String>,
    size: u64,
}

/// Whether `known` is not newer than `transaction`.
fn is_older<T>(known: &Option<(u64, T)>, transaction: u64) -> bool {
    known
        .as_ref()
        .is_none_or(|(number, _)| *number <= transaction)
}

impl Header {
    /// Reads the metadata of the volume on `device`.
    ///
    /// # Errors
    /// [`VolumeError::NotThis`], [`VolumeError::Header`]; [`VolumeError::Unsupported`] for several
    /// physical or logical volumes; [`VolumeError::Block`].
    pub fn read(device: &dyn BlockDevice) -> Result<Self, VolumeError> {
        let physical = Physical::read(device)?;
        let mut found = Found::default();
        physical.blocks(device, |kind, transaction, block| {
            match kind {
                CONTEXT if is_older(&found.context, transaction) => {
                    // A volume of a system has none.
                    if let Some(xml) = list(block, 112)? {
                        found.context = Some((transaction, Context::parse(xml)?));
                    }
                }
                LOGICAL_VOLUME => {
                    let Some(xml) = list(block, 128)? else {
                        return Ok(());
                    };
                    let volume = LogicalVolume::parse(xml)?;
                    if let Some((_, known)) = &found.volume
                        && known.identifier != volume.identifier
                    {
                        return Err(unsupported("several logical volumes"));
                    }
                    if is_older(&found.volume, transaction) {
                        found.volume = Some((transaction, volume));
                    }
                }
                EXTENTS if is_older(&found.extents, transaction) => {
                    let extents = extents(block, physical.block_bytes)?;
                    found.extents = Some((transaction, extents));
                }
                _ => {}
            }
            Ok(())
        })?;
        let missing = |field: &str| damaged(Damage::missing(field));
        let (_, volume) = found.volume.ok_or_else(|| missing("logical volume"))?;
        let (_, extents) = found.extents.ok_or_else(|| missing("extents"))?;
        let context = found
            .context
            .map_or_else(Context::default, |(_, context)| context);
        Ok(Self {
            physical: physical.identifier,
            family: volume.family,
            name: volume.name,
            size: volume.size,
            extents: whole(extents, volume.size)?,
            users: context.users,
            conversion: context.conversion,
            volume_keys: context.volume_keys,
        })
    }
}

/// The property list of a block. Its offset and its size are stored at `at`. `None` if the size is
/// 0.
fn list(block: &[u8], at: usize) -> Result<Option<&str>, VolumeError> {
    let fields = Fields(block);
    let (place, bytes) = (fields.le32(at) as usize, fields.le32(at + 4) as usize);
    if bytes == 0 {
        return Ok(None);
    }
    let text = block.get(place..).and_then(|rest| rest.get(..bytes));
    let Some(text) = text else {
        let rule = format!("must lie in a block of {BLOCK_BYTES} bytes");
        return Err(damaged(Damage::number("property list", place as u64, rule)));
    };
    let text = text.split(|&byte| byte == 0).next().unwrap_or_default();
    match std::str::from_utf8(text) {
        Ok(text) if text.trim_start().starts_with('<') => Ok(Some(text)),
        _ => Err(unsupported("a compressed property list")),
    }
}

impl LogicalVolume {
    fn parse(xml: &str) -> Result<Self, VolumeError> {
        let document = document(xml)?;
        let dict = document.root_element();
        let text = |name: &str| value(dict, &format!("com.apple.corestorage.lv.{name}"))?.text();
        let size = text("size").and_then(|size| {
            let hex = size.strip_prefix("0x");
            hex.map_or_else(
                || size.parse().ok(),
                |hex| u64::from_str_radix(hex, 16).ok(),
            )
        });
        let family = text("familyUUID").and_then(|family| Uuid::parse_str(family).ok());
        let missing = |field: &str| damaged(Damage::missing(field));
        Ok(Self {
            family: family.ok_or_else(|| missing("com.apple.corestorage.lv.familyUUID"))?,
            size: size.ok_or_else(|| missing("com.apple.corestorage.lv.size"))?,
            identifier: text("uuid").map(str::to_owned),
            name: text("name").map(str::to_owned),
        })
    }
}

/// Parses a block of extents.
fn extents(block: &[u8], unit: u64) -> Result<Vec<Extent>, VolumeError> {
    let count = Fields(block).le32(HEAD_BYTES) as usize;
    let entries = block[HEAD_BYTES + 8..].chunks_exact(EXTENT_BYTES);
    if count > entries.len() {
        let rule = format!("must be at most {}", entries.len());
        return Err(damaged(Damage::number("extents", count as u64, rule)));
    }
    let extent = |entry: &[u8]| {
        let fields = Fields(entry);
        if fields.le16(38) != 0 {
            return Err(unsupported("several physical volumes"));
        }
        let place = fields.le64(32) & 0xffff_ffff_ffff;
        let bytes = |blocks: u64| {
            blocks.checked_mul(unit).ok_or_else(|| {
                let rule = "must lie in a volume";
                damaged(Damage::number("extent", blocks, rule))
            })
        };
        Ok(Extent {
            start: bytes(fields.le64(8))?,
            place: ByteRange::new(bytes(place)?, bytes(fields.le32(16).into())?),
        })
    };
    entries.take(count).map(extent).collect()
}

/// Sorts `extents` and checks that they cover a volume of `size` bytes.
fn whole(mut extents: Vec<Extent>, size: u64) -> Result<Vec<Extent>, VolumeError> {
    if size == 0 {
        return Err(damaged(Damage::number(
            "size of the logical volume",
            size,
            "must not be 0",
        )));
    }
    extents.sort_by_key(|extent| extent.start);
    let mut next = 0;
    for extent in &mut extents {
        if extent.start != next {
            let rule = format!("the one before it ends at {next}");
            return Err(damaged(Damage::number(
                "start of an extent",
                extent.start,
                rule,
            )));
        }
        extent.place.length = extent.place.length.min(size - next);
        next += extent.place.length;
    }
    extents.retain(|extent| extent.place.length > 0);
    match next == size {
        true => Ok(extents),
        false => {
            let rule = format!("its extents have {next} bytes");
            Err(damaged(Damage::number(
                "size of the logical volume",
                size,
                rule,
            )))
        }
    }
}
