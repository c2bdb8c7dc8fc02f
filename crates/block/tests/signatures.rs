//! Our table of signatures beside libblkid's, on what formatting tools write and on
//! headers by hand.

use block::signature::{Found, inspect};
use std::path::Path;
use std::process::{Command, Stdio};

/// The name that blkid gives, and the part of our name that must be there.
const NAMES: &[(&str, &str)] = &[
    ("ext2", "an ext2 file system"),
    ("ext3", "an ext3 file system"),
    ("ext4", "an ext4 file system"),
    ("jbd", "the journal of an ext3 or ext4 file system"),
    ("xfs", "an XFS file system"),
    ("xfs_external_log", "the log of an XFS file system"),
    ("btrfs", "a Btrfs file system"),
    ("f2fs", "an F2FS file system"),
    ("vfat", "a FAT file system"),
    ("exfat", "an exFAT file system"),
    ("ntfs", "an NTFS file system"),
    ("swap", "swap space"),
    ("swsuspend", "a hibernated system"),
    ("nilfs2", "a NILFS2 file system"),
    ("jfs", "a JFS file system"),
    ("reiserfs", "a ReiserFS file system"),
    ("reiser4", "a Reiser4 file system"),
    ("udf", "a UDF file system"),
    ("iso9660", "an ISO 9660 file system"),
    ("squashfs", "a squashfs file system"),
    ("squashfs3", "a squashfs file system"),
    ("cramfs", "a cramfs file system"),
    ("romfs", "a romfs file system"),
    ("erofs", "an EROFS file system"),
    ("hfs", "an HFS file system"),
    ("hfsplus", "an HFS+ file system"),
    ("minix", "a Minix file system"),
    ("ufs", "a UFS file system"),
    ("bfs", "an SCO boot file system"),
    ("befs", "a BeOS file system"),
    ("gfs2", "a GFS2 file system"),
    ("gfs", "a GFS2 file system"),
    ("ocfs2", "an OCFS2 file system"),
    ("ocfs", "an OCFS file system"),
    ("oracleasm", "an Oracle ASM disk"),
    ("bcache", "a bcache or bcachefs device"),
    ("bcachefs", "a bcachefs file system"),
    ("linux_raid_member", "a member of a Linux software RAID"),
    ("LVM2_member", "an LVM physical volume"),
    ("LVM1_member", "an LVM1 physical volume"),
    ("DM_snapshot_cow", "a snapshot of the device mapper"),
    ("DM_verity_hash", "a dm-verity hash device"),
    ("DM_integrity", "a dm-integrity device"),
    ("crypto_LUKS", "a LUKS volume"),
    ("BitLocker", "a BitLocker volume"),
    ("ReFS", "a ReFS file system"),
    ("apfs", "an APFS container"),
    ("hpfs", "an HPFS file system"),
    ("vxfs", "a VxFS file system"),
    ("sysv", "a System V file system"),
    ("xenix", "a Xenix file system"),
    ("nss", "a NetWare file system"),
    ("ubi", "a UBI volume"),
    ("ubifs", "a UBIFS file system"),
    ("VMFS", "a VMFS file system"),
    ("VMFS_volume_member", "a VMFS volume"),
    ("vdo", "a VDO volume"),
    ("stratis", "a member of a Stratis pool"),
    ("zonefs", "a zonefs file system"),
    ("zfs_member", "a member of a ZFS pool"),
    ("ceph_bluestore", "a Ceph BlueStore device"),
    ("mpool", "an mpool device"),
    ("exfs", "an EXFS file system"),
    ("drbd", "a DRBD device"),
    ("drbdmanage_control_volume", "a control volume of DRBD"),
    ("drbdproxy_datalog", "a log of DRBD Proxy"),
    ("adaptec_raid_member", "a member of an Adaptec RAID"),
    ("ddf_raid_member", "a member of a DDF RAID"),
    ("hpt37x_raid_member", "a member of a HighPoint RAID"),
    ("hpt45x_raid_member", "a member of a HighPoint RAID"),
    ("isw_raid_member", "a member of an Intel RAID"),
    ("jmicron_raid_member", "a member of a JMicron RAID"),
    ("lsi_mega_raid_member", "a member of an LSI RAID"),
    ("nvidia_raid_member", "a member of an NVIDIA RAID"),
    (
        "promise_fasttrack_raid_member",
        "a member of a Promise RAID",
    ),
    (
        "silicon_medley_raid_member",
        "a member of a Silicon Image RAID",
    ),
    ("via_raid_member", "a member of a VIA RAID"),
    ("gpt", "a GPT partition table"),
    ("dos", "an MBR partition table"),
    ("mac", "an Apple partition map"),
    ("sun", "a Sun disk label"),
    ("sgi", "an SGI disk label"),
    ("bsd", "a BSD disk label"),
    ("atari", "an Atari partition table"),
    ("aix", "an AIX disk label"),
];

/// A way to make an image: a program and what it takes; `{}` is the image, `[]` a
/// folder with a file.
const TOOLS: &[&[&str]] = &[
    &["mkfs.ext2", "-q", "-F", "{}"],
    &["mkfs.ext3", "-q", "-F", "{}"],
    &["mkfs.ext4", "-q", "-F", "-L", "letters", "{}"],
    &["mke2fs", "-q", "-F", "-O", "journal_dev", "{}"],
    &["mkfs.xfs", "-q", "-f", "{}"],
    &["mkfs.btrfs", "-q", "-f", "{}"],
    &["mkfs.f2fs", "-q", "-f", "{}"],
    &["mkfs.vfat", "-F", "12", "{}", "4096"],
    &["mkfs.vfat", "-F", "16", "{}"],
    &["mkfs.vfat", "-F", "32", "-n", "PHOTOS", "{}"],
    &["mkfs.exfat", "{}"],
    &["mkfs.ntfs", "-q", "-F", "{}"],
    &["mkswap", "-q", "{}"],
    &["mkfs.minix", "-1", "{}"],
    &["mkfs.minix", "-2", "{}"],
    &["mkfs.minix", "-3", "{}"],
    &["mkfs.bfs", "{}"],
    &["mkfs.nilfs2", "-q", "-f", "{}"],
    &["mkfs.jfs", "-q", "{}"],
    &["mkfs.reiserfs", "-q", "-f", "-f", "{}"],
    &["mkfs.reiser4", "-y", "-f", "{}"],
    &["mkfs.udf", "{}"],
    &["mkudffs", "--media-type=cdrw", "--new-file", "{}", "9000"],
    &["hformat", "{}"],
    &["mkfs.gfs2", "-O", "-q", "-p", "lock_nolock", "{}"],
    &[
        "mkfs.ocfs2",
        "-q",
        "-F",
        "-F",
        "-M",
        "local",
        "-x",
        "--fs-feature-level=default",
        "{}",
    ],
    &["make-bcache", "-B", "{}"],
    &["make-bcache", "-C", "{}"],
    &["sgdisk", "-n", "1", "{}"],
    &[
        "cryptsetup",
        "luksFormat",
        "-q",
        "--type",
        "luks1",
        "--pbkdf-force-iterations",
        "1000",
        "{}",
        "Cargo.toml",
    ],
    &[
        "cryptsetup",
        "luksFormat",
        "-q",
        "--type",
        "luks2",
        "--pbkdf",
        "pbkdf2",
        "--pbkdf-force-iterations",
        "1000",
        "{}",
        "Cargo.toml",
    ],
    &["mkfs.cramfs", "[]", "{}"],
    &["mksquashfs", "[]", "{}", "-noappend", "-quiet"],
    &["mkfs.erofs", "--quiet", "{}", "[]"],
    &["mkfs.jffs2", "-r", "[]", "-o", "{}"],
    &["genromfs", "-d", "[]", "-f", "{}"],
    &["genisoimage", "-quiet", "-o", "{}", "[]"],
    &["makefs", "-t", "ffs", "-s", "8m", "{}", "[]"],
    &[
        "makefs",
        "-t",
        "ffs",
        "-o",
        "version=2",
        "-s",
        "8m",
        "{}",
        "[]",
    ],
];

/// Large enough for the greediest of them (XFS); a hole, not space.
const SIZE: u64 = 320 << 20;

/// The names that blkid gives to superblocks and partition tables.
fn blkid(image: &Path) -> Option<Vec<String>> {
    let asked = Command::new("blkid")
        .args(["-p", "-o", "export"])
        .arg(image)
        .output();
    let text = match asked {
        Ok(output) => String::from_utf8_lossy(&output.stdout).into_owned(),
        Err(error) => {
            println!("skipped: blkid: {error}");
            return None;
        }
    };
    let of = |line: &str| {
        let name = line.strip_prefix("TYPE=").or(line.strip_prefix("PTTYPE="));
        name.map(str::to_owned)
    };
    Some(text.lines().filter_map(of).collect())
}

fn ours(image: &Path) -> Vec<Found> {
    let content = inspect(image).unwrap().content;
    assert!(!content.is_blank(), "{}", image.display());
    content.found
}

/// Whether we name all that blkid names.
fn agree(image: &Path, made_by: &str) -> Option<Vec<String>> {
    let theirs = blkid(image)?;
    let found = ours(image);
    // An old blkid takes the boot sector of a file system for a table without entries.
    let is_table = |name: &&String| !(*name == "dos" && theirs.len() > 1);
    for name in theirs.iter().filter(is_table) {
        let row = NAMES.iter().find(|(theirs, _)| theirs == name);
        let (_, wanted) = row.unwrap_or_else(|| panic!("{made_by}: `{name}` has no row"));
        let has = found.iter().any(|found| found.name == *wanted);
        assert!(has, "{made_by}: blkid says {name}, we say {found:?}");
    }
    Some(theirs)
}

#[test]
fn what_every_formatting_tool_writes_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let tree = tempfile::tempdir().unwrap();
    std::fs::write(tree.path().join("file"), [1; 5000]).unwrap();
    let mut named = 0;
    for command in TOOLS {
        let image = folder.path().join("image");
        let _ = std::fs::remove_file(&image);
        if !command.contains(&"[]") {
            std::fs::File::create(&image)
                .unwrap()
                .set_len(SIZE)
                .unwrap();
        }
        let arguments = command[1..].iter().map(|argument| match *argument {
            "{}" => image.as_os_str(),
            "[]" => tree.path().as_os_str(),
            other => other.as_ref(),
        });
        let made = Command::new(command[0])
            .args(arguments)
            .stdin(Stdio::null())
            .output();
        let shown = command.join(" ");
        match made {
            Ok(output) if output.status.success() => {}
            Ok(output) => {
                println!(
                    "skipped: {shown}: {}",
                    String::from_utf8_lossy(&output.stderr)
                );
                continue;
            }
            Err(error) => {
                println!("skipped: {shown}: {error}");
                continue;
            }
        }
        let found = ours(&image);
        assert!(!found.is_empty(), "{shown}: nothing is named");
        println!("{shown}: {found:?}");
        let Some(theirs) = agree(&image, &shown) else {
            continue;
        };
        named += theirs.len();
    }
    println!("{named} names of blkid's");
}

/// Headers by hand for what no tool here makes, as libblkid wants to see them.
#[test]
fn headers_by_hand_are_named_as_blkid_names_them() {
    let mut ufs = [0; 8192 + 1376];
    ufs[8192 + 1372..].copy_from_slice(&0x0001_1954_u32.to_le_bytes());
    let vxfs = [0xf5, 0xfc, 0x01, 0xa5, 4, 0, 0, 0];
    let mut drbd = [0; 84];
    drbd[60..64].copy_from_slice(b"\x83\x74\x02\x6b");
    drbd[80..84].copy_from_slice(&4096_u32.to_be_bytes());
    let end = SIZE as usize;
    let mut sun = [0; 512];
    sun[508..].copy_from_slice(&[0xda, 0xbe, 0xda, 0xbe]);
    let mut lvm1 = [0; 64];
    lvm1[..4].copy_from_slice(b"HM\x01\0");
    let mut lvm2 = [0; 512];
    lvm2[..32].copy_from_slice(b"LABELONE\x01\0\0\0\0\0\0\0\xf0\x46\xc5\x47\x20\0\0\0LVM2 001");
    let mut map = [0; 1024];
    map[..8].copy_from_slice(b"ER\x02\0\0\0\0\x01");
    map[512..520].copy_from_slice(b"PM\0\0\0\0\0\x01");
    let cases: &[(&str, usize, &[u8])] = &[
        ("ufs", 0, &ufs),
        ("vxfs", 1024, &vxfs),
        ("drbd", end - 4096, &drbd),
        (
            "drbdmanage_control_volume",
            0,
            b"$DRBDmgr=q\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
        ),
        ("drbdproxy_datalog", 0, b"DRBDdlh*\x01\0\0\0\0\0\0\0"),
        ("LVM1_member", 0, &lvm1),
        ("LVM2_member", 512, &lvm2),
        ("DM_integrity", 0, b"integrt\0\x01"),
        ("DM_verity_hash", 0, b"verity\0\0\x01\0\0\0"),
        ("ocfs", 8192, b"OracleCFS"),
        ("DM_snapshot_cow", 0, b"SnAp\x01\0\0\0\x01\0\0\0"),
        ("VMFS_volume_member", 0x10_0000, b"\x0d\xd0\x01\xc0"),
        ("VMFS", 0x20_0000, b"\x5e\xf1\xab\x2f"),
        ("ceph_bluestore", 0, b"bluestore block device\n"),
        ("vdo", 0, b"dmvdo001"),
        ("zonefs", 0, b"SFOZ"),
        ("romfs", 0, b"-rom1fs-\0\0\x10\0\0\0\0\0"),
        ("ReFS", 0, b"\0\0\0ReFS\0\0\0\0\0"),
        ("oracleasm", 32, b"ORCLDISKDATA"),
        ("nss", 4096, b"SPB5"),
        ("sysv", 512 + 504, b"\x20\x7e\x18\xfd"),
        ("ubi", 0, b"UBI#\x01"),
        (
            "isw_raid_member",
            end - 1024,
            b"Intel Raid ISM Cfg Sig. 1.1.00",
        ),
        ("lsi_mega_raid_member", end - 512, b"$XIDE$"),
        ("hpt45x_raid_member", end - 11 * 512, b"\xf3\x16\x78\x5a"),
        ("hpt37x_raid_member", 0x1220, b"\xf0\x16\x78\x5a"),
        (
            "promise_fasttrack_raid_member",
            end - 63 * 512,
            b"Promise Technology, Inc.",
        ),
        (
            "promise_fasttrack_raid_member",
            end - 3087 * 512,
            b"Promise Technology, Inc.",
        ),
        ("swsuspend", 4086, b"S1SUSPEND"),
        ("bfs", 0, b"\xce\xfa\xad\x1b"),
        ("sun", 0, &sun),
        ("sgi", 0, b"\x0b\xe5\xa9\x41"),
        ("mac", 0, &map),
    ];
    let image = tempfile::NamedTempFile::new().unwrap();
    for (name, offset, bytes) in cases {
        use std::os::unix::fs::FileExt;
        image.as_file().set_len(0).unwrap();
        image.as_file().set_len(SIZE).unwrap();
        image.as_file().write_all_at(bytes, *offset as u64).unwrap();
        let row = NAMES.iter().find(|(theirs, _)| theirs == name).unwrap();
        let found = ours(image.path());
        assert!(
            found.iter().any(|found| found.name == row.1),
            "{name}: {found:?}"
        );
        if let Some(theirs) = agree(image.path(), name) {
            // An image that blkid rejects has a checksum, or is newer than blkid.
            println!("{name}: blkid says {theirs:?}");
        }
    }
}
