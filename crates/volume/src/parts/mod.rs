//! [`Parts`]: what a disk or its image is divided into, so that a volume inside it is found.
//!
//! ```text
//! GPT, MBR             partitions             2
//! LVM2                 logical volumes        vg/root, 2/vg/root inside a partition
//! Linux software RAID  the data of a mirror   3/raid
//! ```
//!
//! Every part is a list of ranges of the whole device, however deep it lies. Nothing here
//! writes.

mod gpt;
mod lvm;
mod lvm_text;
mod mbr;
mod raid;

use crate::VolumeError;
use block::layer::{Concat, Slice};
use block::{BlockDevice, BlockError, ByteRange};
use uuid::Uuid;

/// How deep parts lie in parts that are looked for.
const MOST_DEEP: usize = 5;

/// What is looked at of one device, however its tables lie in one another: tables, their bytes, and
/// the pieces of all parts. Disks have some tens.
const MOST_TABLES: usize = 1024;
const MOST_BYTES: usize = 32 << 20;
const MOST_PIECES: usize = 8 << 10;

/// A part of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// By what it is asked for: `2`, `2/vg/root`, `3/raid`.
    pub name: String,
    /// Its kind.
    pub kind: Kind,
    /// Its own name, if it has one: that of a GPT's partition, and `vg/root`.
    pub label: Option<String>,
    /// Its UUID, as its table has it.
    pub uuid: Option<String>,
    /// Its bytes, by where they are on the device: empty if they are not known.
    pub ranges: Vec<ByteRange>,
    /// The restriction on its use, with the reason.
    pub obstacle: Option<Obstacle>,
}

/// The kind of a part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A partition of a GPT, with the UUID of its type.
    GptPartition {
        /// As text, in capital letters as the UEFI specification prints it.
        type_uuid: String,
    },
    /// A partition of an MBR, with its type.
    MbrPartition {
        /// The byte.
        type_code: u8,
    },
    /// A logical volume of LVM2.
    LogicalVolume,
    /// The data area of a Linux software RAID on one of its disks.
    RaidData,
}

/// A restriction on the use of a part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// It cannot be used, for this reason.
    Unusable(String),
    /// It can be read only, for this reason.
    ReadOnly(String),
}

/// The parts of a device, those inside others behind them.
#[derive(Clone, Debug, Default)]
pub struct Parts {
    /// All of them.
    pub all: Vec<Part>,
    /// Remarks about the tables for the user, mostly about damage.
    pub remarks: Vec<String>,
}

/// Why a part cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PartError {
    /// There are no parts.
    #[error("there is no partition table, no LVM and no RAID")]
    NoParts,
    /// None has that name.
    #[error("there is no partition `{wanted}`: there {}", known(.names))]
    Unknown {
        /// The name that was asked for.
        wanted: String,
        /// Those that there are.
        names: Vec<String>,
    },
    /// Several have that label.
    #[error("`{wanted}` is the label of several partitions: {}", .names.join(", "))]
    Several {
        /// The name that was asked for.
        wanted: String,
        /// Those that have it.
        names: Vec<String>,
    },
    /// It cannot be used so.
    #[error("partition `{name}` cannot be {}: {reason}", if *.writing { "written" } else { "used" })]
    Obstacle {
        /// Its name.
        name: String,
        /// The reason.
        reason: String,
        /// Whether it could be read.
        writing: bool,
    },
}

impl PartError {
    /// The remedy, in one sentence.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Obstacle { writing: true, .. } => "Open it for reading only, or copy it out.",
            Self::Obstacle { .. } => "Name another part.",
            _ => "List the parts, and name one of them.",
        }
    }
}

fn known(names: &[String]) -> String {
    match names {
        [name] => format!("is only {name}"),
        names => format!("are {}", names.join(", ")),
    }
}

/// The parts of one device, before the place of that device is known.
#[derive(Default)]
struct Division {
    parts: Vec<Part>,
    remarks: Vec<String>,
    /// The bytes of the table that was read.
    bytes: usize,
}

impl Division {
    fn remark(&mut self, what: &str) {
        self.remarks.push(what.to_owned());
    }
}

/// What is left of the work that one device is worth.
struct Budget {
    tables: usize,
    bytes: usize,
    pieces: usize,
    /// Something was not looked at.
    is_spent: bool,
}

impl Budget {
    /// Takes `wanted` of what `left` gives; whether there was so much.
    fn take(&mut self, left: impl Fn(&mut Self) -> &mut usize, wanted: usize) -> bool {
        let rest = left(self).checked_sub(wanted);
        *left(self) = rest.unwrap_or(0);
        self.is_spent |= rest.is_none();
        rest.is_some()
    }
}

impl Parts {
    /// Looks for the parts of `device`, and for parts inside those.
    ///
    /// # Errors
    /// [`VolumeError::Block`].
    pub fn find(device: &dyn BlockDevice) -> Result<Self, VolumeError> {
        let mut found = Self::default();
        let mut budget = Budget {
            tables: MOST_TABLES,
            bytes: MOST_BYTES,
            pieces: MOST_PIECES,
            is_spent: false,
        };
        found.look(device, None, 0, &mut budget)?;
        if budget.is_spent {
            found.remarks.push(
                "its tables describe more than any disk has: the rest was not looked at".to_owned(),
            );
        }
        Ok(found)
    }

    /// Looks into the whole device, or into a part of it, as far as the budget goes.
    fn look(
        &mut self,
        device: &dyn BlockDevice,
        outer: Option<&Part>,
        depth: usize,
        budget: &mut Budget,
    ) -> Result<(), VolumeError> {
        if !budget.take(|left| &mut left.tables, 1) {
            return Ok(());
        }
        let division = match outer {
            None => divide(device)?,
            Some(part) => divide(&*part.open(device)?)?,
        };
        let inside = |name: &str| match outer {
            None => name.to_owned(),
            Some(outer) => format!("{}/{name}", outer.name),
        };
        for remark in division.remarks {
            self.remarks.push(match outer {
                None => remark,
                Some(outer) => format!("{}: {remark}", outer.name),
            });
        }
        if !budget.take(|left| &mut left.bytes, division.bytes) {
            return Ok(());
        }
        for mut part in division.parts {
            part.name = inside(&part.name);
            if let Some(outer) = outer {
                let most = budget.pieces + 1;
                part.ranges = placed(&part.ranges, &outer.ranges, most);
                part.obstacle = part.obstacle.or_else(|| outer.obstacle.clone());
            }
            if !budget.take(|left| &mut left.pieces, part.ranges.len().max(1)) {
                return Ok(());
            }
            self.all.push(part.clone());
            if depth < MOST_DEEP && part.is_usable() {
                self.look(device, Some(&part), depth + 1, budget)?;
            }
        }
        Ok(())
    }

    /// The part with this name, or else the only one with this label.
    ///
    /// # Errors
    /// [`PartError`], also if it cannot be used, or only be read and `write` is wanted.
    pub fn choose(&self, wanted: &str, write: bool) -> Result<&Part, PartError> {
        if self.all.is_empty() {
            return Err(PartError::NoParts);
        }
        let names = |parts: &[&Part]| parts.iter().map(|part| part.name.clone()).collect();
        let of = |is: &dyn Fn(&Part) -> bool| -> Vec<&Part> {
            self.all.iter().filter(|part| is(part)).collect()
        };
        let mut fitting = of(&|part| part.name == wanted);
        if fitting.is_empty() {
            fitting = of(&|part| part.label.as_deref() == Some(wanted));
        }
        let wanted = wanted.to_owned();
        let part = match fitting[..] {
            [part] => part,
            [] => {
                let names = names(&of(&|_| true));
                return Err(PartError::Unknown { wanted, names });
            }
            _ => {
                let names = names(&fitting);
                return Err(PartError::Several { wanted, names });
            }
        };
        let reason = match &part.obstacle {
            Some(Obstacle::Unusable(reason)) => Some((reason, false)),
            Some(Obstacle::ReadOnly(reason)) if write => Some((reason, true)),
            _ => None,
        };
        match reason {
            None => Ok(part),
            Some((reason, writing)) => Err(PartError::Obstacle {
                name: part.name.clone(),
                reason: reason.clone(),
                writing,
            }),
        }
    }
}

impl Part {
    fn is_usable(&self) -> bool {
        !matches!(self.obstacle, Some(Obstacle::Unusable(_)))
    }

    /// Its bytes.
    pub fn size(&self) -> u64 {
        self.ranges.iter().map(|range| range.length).sum()
    }

    /// Where `range` of it is on the device.
    pub fn placed(&self, range: ByteRange) -> Vec<ByteRange> {
        placed(&[range], &self.ranges, usize::MAX)
    }

    /// The part as a device.
    ///
    /// # Errors
    /// [`BlockError`] if it does not lie on whole blocks of the device, or is not on it.
    pub fn open<'a, D: BlockDevice + Clone + 'a>(
        &self,
        device: D,
    ) -> Result<Box<dyn BlockDevice + 'a>, BlockError> {
        let mut slices = Vec::new();
        for range in &self.ranges {
            slices.push(Slice::new(device.clone(), *range)?);
        }
        Ok(match slices.len() {
            1 => Box::new(slices.remove(0)),
            _ => Box::new(Concat::new(slices)?),
        })
    }
}

/// The name of the partition table that the first sector of `device` belongs to, if it has one.
pub(crate) fn table(device: &dyn BlockDevice) -> Result<Option<&'static str>, VolumeError> {
    if mbr::is_protective(device)? {
        return Ok(Some("a GPT partition table"));
    }
    let found = mbr::read(device, &mut Division::default())?;
    Ok(found.then_some("an MBR partition table"))
}

/// The parts of `device` itself, without the parts inside them.
fn divide(device: &dyn BlockDevice) -> Result<Division, VolumeError> {
    if let Some(division) = raid::at_fixed_places(device)? {
        return Ok(division);
    }
    if let Some(division) = lvm::read(device)? {
        return Ok(division);
    }
    let mut division = Division::default();
    if gpt::read(device, &mut division)? || mbr::read(device, &mut division)? {
        keep_apart(&mut division.parts);
        return Ok(division);
    }
    // A disk's last partition may end where the disk ends, with what is at its own end.
    Ok(raid::before_end(device)?.unwrap_or(division))
}

/// What is written to one of two partitions that overlap would be lost to the other.
fn keep_apart(parts: &mut [Part]) {
    let mut order: Vec<(ByteRange, usize)> = Vec::new();
    for (at, part) in parts.iter().enumerate() {
        order.extend(part.ranges.first().map(|range| (*range, at)));
    }
    order.sort_by_key(|(range, at)| (range.offset, *at));
    let mut reach: Option<(u64, usize)> = None;
    for (range, at) in order {
        if let Some((_, other)) = reach.filter(|(end, _)| range.offset < *end) {
            for (one, other) in [(at, other), (other, at)] {
                let reason = format!("it overlaps partition {}", parts[other].name);
                let own = &mut parts[one].obstacle;
                *own = own.take().or(Some(Obstacle::ReadOnly(reason)));
            }
        }
        let end = range.offset + range.length;
        if reach.is_none_or(|(farthest, _)| farthest < end) {
            reach = Some((end, at));
        }
    }
}

/// A partition of which the table says where it is: unusable if that is not on the device.
fn partition(name: String, kind: Kind, range: Option<ByteRange>, device: &dyn BlockDevice) -> Part {
    let size = device.geometry().size;
    let inside = |range: &ByteRange| range.length > 0 && range.end().is_some_and(|end| end <= size);
    let reason = match range {
        Some(range) if inside(&range) => None,
        Some(range) if range.offset < size => Some(format!(
            "it ends {} bytes beyond the end of the image: the image is cut off",
            range.end().unwrap_or(u64::MAX).saturating_sub(size)
        )),
        _ => Some("its place is not on this disk".to_owned()),
    };
    Part {
        name,
        kind,
        label: None,
        uuid: None,
        ranges: range.filter(inside).into_iter().collect(),
        obstacle: reason.map(Obstacle::Unusable),
    }
}

/// Where `ranges` of a part are that has `outer`: the first `most` pieces.
fn placed(ranges: &[ByteRange], outer: &[ByteRange], most: usize) -> Vec<ByteRange> {
    let mut start = 0;
    let mut starts = Vec::new();
    for piece in outer {
        starts.push(start);
        start += piece.length;
    }
    let mut found: Vec<ByteRange> = Vec::new();
    for range in ranges {
        let (mut from, end) = (range.offset, range.offset + range.length);
        let first = starts
            .partition_point(|start| *start <= from)
            .saturating_sub(1);
        for (piece, start) in outer.iter().zip(&starts).skip(first) {
            if from >= end || found.len() == most {
                break;
            }
            let length = (start + piece.length).min(end).saturating_sub(from);
            if length > 0 {
                found.push(ByteRange::new(piece.offset + from - start, length));
                from += length;
            }
        }
    }
    found
}

/// A UUID in the byte order of GPT: three little-endian numbers, then bytes.
fn mixed_uuid(bytes: &[u8; 16]) -> String {
    Uuid::from_bytes_le(*bytes).to_string().to_uppercase()
}
