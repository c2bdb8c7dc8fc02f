//! Magic bytes at fixed places from the start of a file system, volume or table.
//!
//! Each is strong enough alone: at least four bytes, or at least seven if text could hold them.
//! Formats that need further checks are in [`shapes`](super::shapes).

/// A magic: its place, its bytes, and what has it, with its article.
pub(super) type Magic = (u64, &'static [u8], &'static str);

/// The name of a LUKS volume, of either version.
pub const LUKS: &str = "a LUKS volume";
pub(super) const SWAP: &str = "swap space";
pub(super) const FAT: &str = "a FAT file system";
pub(super) const CRAMFS: &str = "a cramfs file system";
pub(super) const JFFS2: &str = "a JFFS2 file system";
pub(super) const SQUASHFS: &str = "a squashfs file system";
pub(super) const XFS: &str = "an XFS file system";
pub(super) const BTRFS: &str = "a Btrfs file system";
pub(super) const F2FS: &str = "an F2FS file system";
pub(super) const EXFAT: &str = "an exFAT file system";
pub(super) const NTFS: &str = "an NTFS file system";
pub(super) const BITLOCKER: &str = "a BitLocker volume";
pub(super) const UDF: &str = "a UDF file system";
pub(super) const HIBERNATION: &str = "a hibernated system";
pub(super) const GPT: &str = "a GPT partition table";
const ISO: &str = "an ISO 9660 file system";
const LVM: &str = "an LVM physical volume";
const REISERFS: &str = "a ReiserFS file system";
const OCFS2: &str = "an OCFS2 file system";
const STRATIS: &str = "a member of a Stratis pool";
const VXFS: &str = "a VxFS file system";
const BEFS: &str = "a BeOS file system";
pub(super) const BCACHEFS: &str = "a bcachefs file system";
const HIGHPOINT: &str = "a member of a HighPoint RAID";
const BSD: &str = "a BSD disk label";
const XENIX: &str = "a Xenix file system";

const LUKS2_SECOND: &[u8] = b"SKUL\xba\xbe";
pub(super) const BCACHEFS_MAGIC: &[u8] =
    b"\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef";
const STRATIS_MAGIC: &[u8] = b"!Stra0tis\x86\xff\x02^\x41rh";
const DISK_LABEL: &[u8] = b"\x57\x45\x56\x82";

/// All of them. Offsets and bytes are those of the formats' own documentation
/// and of the kernel's headers.
pub(super) const MAGICS: &[Magic] = &[
    // Encryption.
    (0, b"LUKS\xba\xbe", LUKS),
    (0x4000, LUKS2_SECOND, LUKS),
    (0x8000, LUKS2_SECOND, LUKS),
    (0x1_0000, LUKS2_SECOND, LUKS),
    (0x2_0000, LUKS2_SECOND, LUKS),
    (0x4_0000, LUKS2_SECOND, LUKS),
    (0x8_0000, LUKS2_SECOND, LUKS),
    (0x10_0000, LUKS2_SECOND, LUKS),
    (0x20_0000, LUKS2_SECOND, LUKS),
    (0x40_0000, LUKS2_SECOND, LUKS),
    (3, b"-FVE-FS-", BITLOCKER),
    (0, b"\xeb\x58\x90MSWIN4.1", BITLOCKER),
    (3, b"LOCOS94 ", "a BestCrypt container"),
    (0, b"encrcdsa", "an encrypted disk image of macOS"),
    (8192, b"marcCRAM", "a softraid volume of OpenBSD"),
    // File systems of Linux.
    (0, b"XFSB", XFS),
    (0, b"EXFS", "an EXFS file system"),
    (0x1_0040, b"_BHRfS_M", BTRFS),
    (0x1018, BCACHEFS_MAGIC, BCACHEFS),
    (0x20_0018, BCACHEFS_MAGIC, BCACHEFS),
    (1024, b"\x10\x20\xf5\xf2", F2FS),
    (1024, b"\xe2\xe1\xf5\xe0", "an EROFS file system"),
    (0x2034, b"ReIsErFs", REISERFS),
    (0x2014, b"ReIsErFs", REISERFS),
    (0x1_0034, b"ReIsErFs", REISERFS),
    (0x1_0034, b"ReIsEr2Fs", REISERFS),
    (0x1_0034, b"ReIsEr3Fs", REISERFS),
    (0x1_0000, b"ReIsEr4", "a Reiser4 file system"),
    (0x8000, b"JFS1", "a JFS file system"),
    (0x1_0000, b"\x01\x16\x19\x70", "a GFS2 file system"),
    (1024, b"OCFSV2", OCFS2),
    (2048, b"OCFSV2", OCFS2),
    (4096, b"OCFSV2", OCFS2),
    (8192, b"OCFSV2", OCFS2),
    (8192, b"OracleCFS", "an OCFS file system"),
    (32, b"ORCLDISK", "an Oracle ASM disk"),
    (0, b"hsqs", SQUASHFS),
    (0, b"sqsh", SQUASHFS),
    (0, b"\x45\x3d\xcd\x28", CRAMFS),
    (0, b"\x28\xcd\x3d\x45", CRAMFS),
    (512, b"\x45\x3d\xcd\x28", CRAMFS),
    (512, b"\x28\xcd\x3d\x45", CRAMFS),
    (0, b"-rom1fs-", "a romfs file system"),
    (0, b"SFOZ", "a zonefs file system"),
    // A JFFS2 node header: magic and the type of a clean marker, an inode, a
    // directory entry.
    (0, b"\x85\x19\x03\x20", JFFS2),
    (0, b"\x85\x19\x01\xe0", JFFS2),
    (0, b"\x85\x19\x02\xe0", JFFS2),
    (0, b"\x19\x85\x20\x03", JFFS2),
    (0, b"\x19\x85\xe0\x01", JFFS2),
    (0, b"\x19\x85\xe0\x02", JFFS2),
    (0, b"UBI#", "a UBI volume"),
    (0, b"\x31\x18\x10\x06", "a UBIFS file system"),
    (0x1_0004, b"\x8b\x42\x3c\x10", "a ScoutFS file system"),
    // File systems of others.
    (3, b"NTFS    ", NTFS),
    (3, b"EXFAT   ", EXFAT),
    (3, b"ReFS\0", "a ReFS file system"),
    (54, b"FAT12   ", FAT),
    (54, b"FAT16   ", FAT),
    (54, b"FAT     ", FAT),
    (54, b"MSDOS", FAT),
    (82, b"FAT32   ", FAT),
    (82, b"MSWIN", FAT),
    (32, b"NXSB", "an APFS container"),
    (8192, b"\x49\xe8\x95\xf9", "an HPFS file system"),
    (0x8001, b"CD001", ISO),
    (0x8009, b"CDROM", ISO),
    (0x8001, b"BEA01", UDF),
    (0x8001, b"BOOT2", UDF),
    (0x8001, b"CDW02", UDF),
    (0x8001, b"NSR02", UDF),
    (0x8001, b"NSR03", UDF),
    (0x8001, b"TEA01", UDF),
    (1024, b"\xf5\xfc\x01\xa5", VXFS),
    (8192, b"\xa5\x01\xfc\xf5", VXFS),
    (0x20, b"BFS1", BEFS),
    (0x20, b"1SFB", BEFS),
    (0x220, b"BFS1", BEFS),
    (0x220, b"1SFB", BEFS),
    (0, b"\xce\xfa\xad\x1b", "an SCO boot file system"),
    (4096, b"SPB5", "a NetWare file system"),
    (0x7f8, b"\x2b\x55\x44\0", XENIX),
    (0x7f8, b"\0\x44\x55\x2b", XENIX),
    (0x800, b"\x2b\x55\x44\0", XENIX),
    (0x800, b"\x44\x55\x2b\0", XENIX),
    (0x20_0000, b"\x5e\xf1\xab\x2f", "a VMFS file system"),
    (0x10_0000, b"\x0d\xd0\x01\xc0", "a VMFS volume"),
    // Storage on which others stand.
    (0x018, b"LVM2 001", LVM),
    (0x218, b"LVM2 001", LVM),
    (0x418, b"LVM2 001", LVM),
    (0x618, b"LVM2 001", LVM),
    (0, b"SnAp", "a snapshot of the device mapper"),
    (0, b"integrt\0", "a dm-integrity device"),
    (0, b"verity\0\0", "a dm-verity hash device"),
    (0, b"dmvdo001", "a VDO volume"),
    (0x204, STRATIS_MAGIC, STRATIS),
    (0x1204, STRATIS_MAGIC, STRATIS),
    (0, b"bluestore block device", "a Ceph BlueStore device"),
    (0, b"mpoolDev", "an mpool device"),
    (
        0x1018,
        b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81",
        "a bcache or bcachefs device",
    ),
    (0, b"$DRBDmgr=q", "a control volume of DRBD"),
    (0, b"DRBDdlh*", "a log of DRBD Proxy"),
    (0x1220, b"\xf0\x16\x78\x5a", HIGHPOINT),
    (0x1220, b"\xfd\x16\x78\x5a", HIGHPOINT),
    (0, b"\xed\xc3\x02\xe9\x98\x56\xe5\x0c", HIBERNATION),
    // Partition tables.
    (512, b"EFI PART", GPT),
    (4096, b"EFI PART", GPT),
    (512, DISK_LABEL, BSD),
    (64, DISK_LABEL, BSD),
    (128, DISK_LABEL, BSD),
    (0, b"\x0b\xe5\xa9\x41", "an SGI disk label"),
    (0, b"\xc9\xc2\xd4\xc1", "an AIX disk label"),
    (524, b"\xee\xde\x0d\x60", "a Solaris disk label"),
    (14_852, b"\x0d\x60\xe5\xca", "a UnixWare disk label"),
    (16_312, b"\x57\x29\x03\0\x01\0\0\0", "an Ultrix disk label"),
    // Images and archives: files that are more than their bytes.
    (0, b"QFI\xfb", "a QCOW2 image"),
    (0, b"vhdxfile", "a VHDX image"),
    (0, b"conectix", "a VHD image"),
    (0, b"KDMV", "a VMDK image"),
    (0x40, b"\x7f\x10\xda\xbe", "a VDI image"),
    (0, b"QED\0", "a QED image"),
    (0, b"WithoutFreeSpace", "a Parallels image"),
    (0, b"WithouFreSpacExt", "a Parallels image"),
    (257, b"ustar", "a tar archive"),
    (0, b"PK\x03\x04", "a ZIP archive"),
    (0, b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive"),
    (0, b"\xfd7zXZ\0", "an xz archive"),
    (0, b"\x28\xb5\x2f\xfd", "a zstd archive"),
    (0, b"BZh91AY&SY", "a bzip2 archive"),
    (0, b"\x1f\x8b\x08\0", "a gzip archive"),
    (0, b"\x1f\x8b\x08\x08", "a gzip archive"),
    (0, b"Rar!\x1a\x07", "a RAR archive"),
    (0, b"%PDF-", "a PDF document"),
    (0, b"SQLite format 3\0", "an SQLite database"),
    (0, b"\x7fELF", "a program"),
    (0, b"\x89PNG\r\n\x1a\n", "a picture"),
];
