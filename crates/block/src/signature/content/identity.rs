//! The label and the UUID by which users know a file system, if they have a place of their own.

use super::magics::{BTRFS, EXFAT, F2FS, FAT, NTFS, SWAP, XFS};
use super::view::View;

/// The places of the UUID and the label in one file system.
struct Places {
    /// A part of the file system's name.
    of: &'static str,
    uuid: Option<Uuid>,
    /// Offset and length of the label.
    label: Option<(u64, usize)>,
}

enum Uuid {
    /// Sixteen bytes, as written.
    Whole(u64),
    /// FAT's four bytes, the last first.
    Serial(u64),
    /// NTFS's eight bytes, the last first.
    LongSerial(u64),
}

const PLACES: &[Places] = &[
    Places {
        of: "an ext",
        uuid: Some(Uuid::Whole(1024 + 0x68)),
        label: Some((1024 + 0x78, 16)),
    },
    Places {
        of: XFS,
        uuid: Some(Uuid::Whole(32)),
        label: Some((108, 12)),
    },
    Places {
        of: BTRFS,
        uuid: Some(Uuid::Whole(0x1_0020)),
        label: Some((0x1_012b, 256)),
    },
    Places {
        of: F2FS,
        uuid: Some(Uuid::Whole(1024 + 0x6c)),
        label: None,
    },
    Places {
        of: SWAP,
        uuid: Some(Uuid::Whole(1036)),
        label: Some((1052, 16)),
    },
    Places {
        of: EXFAT,
        uuid: Some(Uuid::Serial(100)),
        label: None,
    },
    Places {
        of: NTFS,
        uuid: Some(Uuid::LongSerial(72)),
        label: None,
    },
];

/// Label and UUID of what `name` names and `view` begins with.
pub(super) fn of(view: &View, name: &str) -> (Option<String>, Option<String>) {
    if name == FAT {
        let wide = view.is(82, b"FAT32   ");
        let (serial, label) = if wide { (67, 71) } else { (39, 43) };
        return (text(view, label, 11), uuid(view, &Uuid::Serial(serial)));
    }
    let Some(places) = PLACES.iter().find(|places| name.starts_with(places.of)) else {
        return (None, None);
    };
    let label = places.label.and_then(|(at, length)| text(view, at, length));
    let uuid = places.uuid.as_ref().and_then(|place| uuid(view, place));
    (label, uuid)
}

fn text(view: &View, offset: u64, length: usize) -> Option<String> {
    let bytes = view.at(offset, length)?;
    let end = bytes.iter().position(|&byte| byte == 0);
    let text = String::from_utf8_lossy(&bytes[..end.unwrap_or(length)]);
    let text = text.trim();
    (!text.is_empty() && text != "NO NAME").then(|| text.to_owned())
}

fn uuid(view: &View, place: &Uuid) -> Option<String> {
    let hex = |bytes: &[u8]| -> String { bytes.iter().map(|byte| format!("{byte:02x}")).collect() };
    match *place {
        Uuid::Whole(offset) => {
            let bytes = view.at(offset, 16)?;
            let parts = [0..4, 4..6, 6..8, 8..10, 10..16].map(|part| hex(&bytes[part]));
            bytes.iter().any(|&byte| byte != 0).then(|| parts.join("-"))
        }
        Uuid::Serial(offset) => {
            let serial = view.le32(offset)?;
            let text = format!("{:04X}-{:04X}", serial >> 16, serial & 0xffff);
            (serial != 0).then_some(text)
        }
        Uuid::LongSerial(offset) => {
            let [low, high] = [view.le32(offset)?, view.le32(offset + 4)?];
            (low != 0 || high != 0).then(|| format!("{high:08X}{low:08X}"))
        }
    }
}
