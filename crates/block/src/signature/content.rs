//! What a device holds, by its magic bytes.
//!
//! Offsets and bytes are those of the formats' own documentation (most are in
//! util-linux's libblkid documentation and the kernel's headers). Short magics
//! may be wrong about noise; a wrong name still protects.

/// Bytes looked at from the start, and again before the end.
const WINDOW: usize = 1 << 20;

/// Devices are read in units of this, or of a multiple that divides [`WINDOW`].
const SECTOR: usize = 4096;

/// Bytes before the end that have to be blank too: backup headers live there.
const TAIL: usize = 128 << 10;

/// What a device holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// The first MiB and the last 128 KiB are all zeros, or all ones: as
    /// delivered or wiped.
    Blank,
    /// Something with a name, given with its article.
    Known(&'static str),
    /// Neither: data without structure, or encrypted without a header.
    Unknown,
}

impl Content {
    /// Looks at the beginning and the end of `size` bytes that `read` gives
    /// from any place.
    pub(super) fn read<E>(
        size: u64,
        read: impl Fn(u64, &mut [u8]) -> Result<(), E>,
    ) -> Result<Self, E> {
        let window = size.min(WINDOW as u64) as usize;
        let (mut head, mut behind) = (vec![0; window], Vec::new());
        read(0, &mut head)?;
        let tail = if size > window as u64 {
            behind.resize(window, 0);
            read(size - window as u64, &mut behind)?;
            &behind
        } else {
            &head
        };
        let mut content = Self::of(&head, tail, size);
        // The last places of LUKS2's second header are outside the window.
        for offset in [1 << 20, 2 << 20, 4 << 20] {
            let mut sector = vec![0; SECTOR];
            let inside = offset + SECTOR as u64 <= size;
            if inside && !matches!(content, Self::Known(_)) {
                read(offset, &mut sector)?;
                if sector.starts_with(LUKS2_SECOND) {
                    content = Self::Known(LUKS);
                }
            }
        }
        Ok(content)
    }

    /// Judges the first and the last bytes of a device of `size` bytes; both
    /// are as long as the device or 1 MiB.
    fn of(head: &[u8], tail: &[u8], size: u64) -> Self {
        let view = View { head, tail, size };
        if let Some(name) = view.recognise() {
            return Self::Known(name);
        }
        let end = &tail[tail.len().saturating_sub(TAIL)..];
        let blank = |fill: u8| head.iter().chain(end).all(|&byte| byte == fill);
        if blank(0x00) || blank(0xff) {
            Self::Blank
        } else {
            Self::Unknown
        }
    }
}

const LUKS: &str = "a LUKS volume";
const LUKS2_SECOND: &[u8; 6] = b"SKUL\xba\xbe";
const EXT: &str = "an ext2, ext3 or ext4 file system";
const SWAP: &str = "swap space";
const FAT: &str = "a FAT file system";
const CRAMFS: &str = "a cramfs file system";
const JFFS2: &str = "a JFFS2 file system";
const SQUASHFS: &str = "a squashfs file system";
const HFS_PLUS: &str = "an HFS+ file system";
const LVM: &str = "an LVM physical volume";
const UDF: &str = "a UDF file system";

/// Magic bytes at a fixed place from the start, most specific first: many of
/// them also end their first sector as a boot sector does.
const MAGICS: &[(u64, &[u8], &str)] = &[
    (0, b"LUKS\xba\xbe", LUKS),
    (0x4000, LUKS2_SECOND, LUKS),
    (0x8000, LUKS2_SECOND, LUKS),
    (0x1_0000, LUKS2_SECOND, LUKS),
    (0x2_0000, LUKS2_SECOND, LUKS),
    (0x4_0000, LUKS2_SECOND, LUKS),
    (0x8_0000, LUKS2_SECOND, LUKS),
    (3, b"-FVE-FS-", "a BitLocker volume"),
    (3, b"NTFS    ", "an NTFS file system"),
    (3, b"EXFAT   ", "an exFAT file system"),
    (3, b"ReFS\0\0\0\0", "a ReFS file system"),
    (54, b"FAT12   ", FAT),
    (54, b"FAT16   ", FAT),
    (54, b"FAT     ", FAT),
    (82, b"FAT32   ", FAT),
    (0, b"XFSB", "an XFS file system"),
    (0, b"hsqs", SQUASHFS),
    (0, b"sqsh", SQUASHFS),
    (0, b"\x45\x3d\xcd\x28", CRAMFS),
    (0, b"\x28\xcd\x3d\x45", CRAMFS),
    (512, b"\x45\x3d\xcd\x28", CRAMFS),
    (512, b"\x28\xcd\x3d\x45", CRAMFS),
    // A JFFS2 node header: magic and the type of a clean marker, an inode, a
    // directory entry.
    (0, b"\x85\x19\x03\x20", JFFS2),
    (0, b"\x85\x19\x01\xe0", JFFS2),
    (0, b"\x85\x19\x02\xe0", JFFS2),
    (0, b"\x19\x85\x20\x03", JFFS2),
    (0, b"\x19\x85\xe0\x01", JFFS2),
    (0, b"\x19\x85\xe0\x02", JFFS2),
    (0, b"UBI#", "a UBI volume"),
    (0, b"integrt\0", "a dm-integrity device"),
    (0, b"verity\0\0", "a dm-verity hash device"),
    (0, b"QFI\xfb", "a QCOW2 image"),
    (0, b"vhdxfile", "a VHDX image"),
    (32, b"NXSB", "an APFS container"),
    (0x218, b"LVM2 001", LVM),
    (0x18, b"LVM2 001", LVM),
    (0x418, b"LVM2 001", LVM),
    (0x618, b"LVM2 001", LVM),
    (512, b"EFI PART", "a GPT partition table"),
    (4096, b"EFI PART", "a GPT partition table"),
    (
        0x1018,
        b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81",
        "a bcache device",
    ),
    (0x1_0040, b"_BHRfS_M", "a Btrfs file system"),
    (0x1_0034, b"ReIsEr", "a ReiserFS file system"),
    (0x8000, b"JFS1", "a JFS file system"),
    (0x8001, b"CD001", "an ISO 9660 file system"),
    (0x8001, b"BEA01", UDF),
    (0x8001, b"NSR02", UDF),
    (0x8001, b"NSR03", UDF),
    (1024, b"\x10\x20\xf5\xf2", "an F2FS file system"),
    (1024, b"\xe2\xe1\xf5\xe0", "an EROFS file system"),
    (1024, b"H+\0\x04", HFS_PLUS),
    (1024, b"HX\0\x05", HFS_PLUS),
    (1024, b"BD", "an HFS file system"),
    (1024 + 0x38, b"\x53\xef", EXT),
    (1024 + 6, b"\x34\x34", "a NILFS2 file system"),
];

/// The signatures of swap space, at the end of the first page of any size.
const SWAP_MAGICS: [&[u8; 10]; 3] = [b"SWAPSPACE2", b"SWAP-SPACE", b"S1SUSPEND\0"];
const PAGES: [u64; 5] = [4096, 8192, 16384, 32768, 65536];

const MD: &str = "a member of a Linux software RAID";
const MD_MAGICS: [&[u8; 4]; 2] = [b"\xfc\x4e\x2b\xa9", b"\xa9\x2b\x4e\xfc"];

const ZFS_LABEL: u64 = 256 << 10;
const ZFS_MAGICS: [&[u8; 8]; 2] = [b"\x0c\xb1\xba\0\0\0\0\0", b"\0\0\0\0\0\xba\xb1\x0c"];

struct View<'a> {
    head: &'a [u8],
    tail: &'a [u8],
    size: u64,
}

impl View<'_> {
    /// Bytes at an offset of the device, if both are inside what was read.
    fn at(&self, offset: u64, length: usize) -> Option<&[u8]> {
        let inside = |bytes: &'_ [u8], offset: u64| {
            let start = usize::try_from(offset).ok()?;
            Some((start, start.checked_add(length)?)).filter(|&(_, end)| end <= bytes.len())
        };
        if let Some((start, end)) = inside(self.head, offset) {
            return Some(&self.head[start..end]);
        }
        let offset = offset.checked_sub(self.size - self.tail.len() as u64)?;
        let (start, end) = inside(self.tail, offset)?;
        Some(&self.tail[start..end])
    }

    fn is(&self, offset: u64, magic: &[u8]) -> bool {
        self.at(offset, magic.len()) == Some(magic)
    }

    fn before_end(&self, distance: u64) -> Option<u64> {
        self.size.checked_sub(distance)
    }

    fn recognise(&self) -> Option<&'static str> {
        let fixed = MAGICS
            .iter()
            .find(|(offset, magic, _)| self.is(*offset, magic))
            .map(|&(_, _, name)| name);
        fixed
            .or_else(|| self.swap())
            .or_else(|| self.raid())
            .or_else(|| self.zfs())
            .or_else(|| self.backup_gpt())
            .or_else(|| self.boot_sector())
    }

    fn swap(&self) -> Option<&'static str> {
        let found = PAGES
            .iter()
            .any(|page| SWAP_MAGICS.iter().any(|magic| self.is(page - 10, *magic)));
        found.then_some(SWAP)
    }

    /// Versions 1.1 and 1.2 at the start, 1.0 and 0.90 near the end.
    fn raid(&self) -> Option<&'static str> {
        let places = [
            Some(0),
            Some(4096),
            self.before_end(8192).map(|place| place & !4095),
            (self.size & !0xffff).checked_sub(0x1_0000),
        ];
        let found = places
            .into_iter()
            .flatten()
            .any(|place| MD_MAGICS.iter().any(|magic| self.is(place, *magic)));
        found.then_some(MD)
    }

    /// Two labels at each end; the second half of a label is a ring of
    /// überblocks, each at a multiple of 1 KiB.
    fn zfs(&self) -> Option<&'static str> {
        let end = self.size & !(ZFS_LABEL - 1);
        let labels = [
            Some(0),
            Some(ZFS_LABEL),
            end.checked_sub(2 * ZFS_LABEL),
            end.checked_sub(ZFS_LABEL),
        ];
        let found = labels.into_iter().flatten().any(|label| {
            (0..128).any(|index| {
                let place = label + ZFS_LABEL / 2 + index * 1024;
                ZFS_MAGICS.iter().any(|magic| self.is(place, *magic))
            })
        });
        found.then_some("a member of a ZFS pool")
    }

    fn backup_gpt(&self) -> Option<&'static str> {
        let found = [512, 4096]
            .into_iter()
            .filter_map(|sector| self.before_end(sector))
            .any(|place| self.is(place, b"EFI PART"));
        found.then_some("the backup of a GPT partition table")
    }

    /// Four 16-byte entries from byte 446: status, …, type, …
    fn boot_sector(&self) -> Option<&'static str> {
        let sector = self.at(0, 512)?;
        if sector[510..] != [0x55, 0xaa] {
            return None;
        }
        let entries = sector[446..510].chunks_exact(16);
        let valid = entries.clone().all(|entry| entry[0] & 0x7f == 0);
        let used = entries.clone().any(|entry| entry[4] != 0);
        Some(if valid && used {
            "an MBR partition table"
        } else {
            "a boot sector"
        })
    }
}

#[cfg(test)]
mod tests;
