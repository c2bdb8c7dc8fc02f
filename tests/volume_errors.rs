//! Volumes and secrets that are not what the user thinks: two lines that say
//! so, the right exit code, and nothing changed.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

const PROGRAM: &str = env!("CARGO_BIN_EXE_cryptmark");

/// A folder with volumes, whose passphrase is in `pass` and whose key file is
/// `key`, and with what is none.
struct Desk {
    folder: tempfile::TempDir,
}

impl Desk {
    fn new() -> Self {
        let desk = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        let files: [(&str, &[u8]); 8] = [
            ("pass", b"a passphrase\n"),
            ("wrong", b"another\n"),
            ("long", &[b'p'; 65_537]),
            ("key", &[7; 64]),
            ("key-cut", &[7; 63]),
            ("nothing", b""),
            ("short", &[0x5a; 100]),
            ("noise", &[0x5a; 1 << 20]),
        ];
        for (name, bytes) in files {
            fs::write(desk.path(name), bytes).unwrap();
        }
        fs::create_dir(desk.path("folder")).unwrap();
        let cheap = ["--pbkdf", "pbkdf2", "--pbkdf-force-iterations", "1000"];
        for (name, more) in [
            ("luks1", ["--type", "luks1"].as_slice()),
            ("luks2", &["--type", "luks2"]),
            ("detached1", &["--type", "luks1", "--header", "header1"]),
            ("detached2", &["--type", "luks2", "--header", "header2"]),
        ] {
            let size = ["--size", "24MiB", "--passphrase-file", "pass"];
            let create = [&["create", name], more, &size, &cheap].concat();
            let (code, said) = desk.start(&create);
            assert_eq!(code, Some(0), "{create:?}\n{said}");
        }
        let luks2 = fs::read(desk.path("luks2")).unwrap();
        fs::write(desk.path("luks2-cut"), &luks2[..20_000]).unwrap();
        fs::write(desk.path("luks2-cut-early"), &luks2[..1000]).unwrap();
        fs::write(desk.path("luks2-without-data"), &luks2[..16 << 20]).unwrap();
        let luks1 = fs::read(desk.path("luks1")).unwrap();
        fs::write(desk.path("luks1-cut"), &luks1[..5000]).unwrap();
        let mut spoilt = luks2;
        spoilt[100] ^= 1;
        spoilt[(16 << 10) + 100] ^= 1;
        fs::write(desk.path("luks2-spoilt"), spoilt).unwrap();
        desk
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Exit code and standard error of `cryptmark volume`.
    fn start(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let output = Command::new(PROGRAM)
            .arg("volume")
            .args(arguments)
            .current_dir(self.folder.path())
            .env("XDG_STATE_HOME", self.folder.path().join("state"))
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        (output.status.code(), said)
    }

    /// All files and what they hold.
    fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let entries = fs::read_dir(self.folder.path()).unwrap();
        let files = entries.map(|entry| entry.unwrap().path());
        files
            .filter(|path| path.is_file())
            .map(|path| (path.clone(), fs::read(path).unwrap()))
            .collect()
    }

    /// Each of `cases` is refused: arguments, exit code, what happened, what
    /// to do.
    fn refuses(&self, cases: &[(&str, i32, &str, &str)]) {
        let before = self.files();
        let mut wrong = Vec::new();
        for (arguments, code, what, remedy) in cases {
            let words: Vec<&str> = arguments.split(' ').collect();
            let expected = format!("error: {what}\n  {remedy}\n");
            let got = self.start(&words);
            if got != (Some(*code), expected) {
                wrong.push(format!("{arguments}\n    {:?}\n    {}", got.0, got.1));
            }
            assert!(self.files() == before, "{arguments} changed a file");
        }
        assert!(wrong.is_empty(), "not as expected:\n{}", wrong.join("\n"));
    }
}

const RESTORE: &str =
    "Try `cryptmark volume header repair`, then a backup of the header; nothing was changed.";
const NO_FIT: &str = "no keyslot opens with this passphrase or key file";
const CHECK: &str =
    "Check the passphrase and its keyboard layout, or give the right --key-file or --key-slot.";

#[test]
fn secrets_that_do_not_fit() {
    Desk::new().refuses(&[
        ("open luks1 --passphrase-file wrong", 3, NO_FIT, CHECK),
        ("open luks2 --passphrase-file wrong", 3, NO_FIT, CHECK),
        (
            "export luks2 --passphrase-file wrong --output out",
            3,
            NO_FIT,
            CHECK,
        ),
        (
            "import luks2 --passphrase-file wrong --input noise --yes",
            3,
            NO_FIT,
            CHECK,
        ),
        (
            "passwd luks2 --passphrase-file wrong --new-passphrase-file pass",
            3,
            NO_FIT,
            CHECK,
        ),
        (
            "key add luks1 --passphrase-file wrong --new-passphrase-file pass",
            3,
            NO_FIT,
            CHECK,
        ),
        ("key kill luks1 --passphrase-file wrong", 3, NO_FIT, CHECK),
        ("reencrypt luks2 --passphrase-file wrong", 3, NO_FIT, CHECK),
        ("open luks2 --key-file key", 3, NO_FIT, CHECK),
        (
            "open luks2 --volume-key-file key",
            3,
            "this is not the volume key of this volume",
            "Give the --volume-key-file of this volume.",
        ),
        (
            "open luks1 --volume-key-file key",
            3,
            "this is not the volume key of this volume",
            "Give the --volume-key-file of this volume.",
        ),
        (
            "open luks2 --passphrase-file pass --key-slot 5",
            2,
            "keyslot 5 holds no key",
            "See `cryptmark volume info` for the keyslots that there are.",
        ),
        (
            "open luks1 --passphrase-file pass --key-slot 9",
            2,
            "keyslot 9 holds no key",
            "See `cryptmark volume info` for the keyslots that there are.",
        ),
        (
            "open luks2 --passphrase-file long",
            2,
            "the passphrase is longer than 65536 bytes",
            "Check that it is the file with the passphrase.",
        ),
        (
            "open luks2 --passphrase-file missing",
            2,
            "cannot read missing: No such file or directory (os error 2)",
            "Check the path and its permissions.",
        ),
        (
            "open luks2 --passphrase-file folder",
            2,
            "cannot read folder: Is a directory (os error 21)",
            "Check the path and its permissions.",
        ),
        (
            "open luks2 --key-file nothing",
            2,
            "nothing is empty",
            "Check that it is the right file.",
        ),
        (
            "open luks2 --key-file missing",
            2,
            "cannot read missing: No such file or directory (os error 2)",
            "Check the path and its permissions.",
        ),
        (
            "open luks2 --key-file key --keyfile-offset 65",
            2,
            "key ends before the bytes that were asked for",
            "Check that it is whole, and --keyfile-offset and --keyfile-size.",
        ),
        (
            "open luks2 --key-file key --keyfile-offset 64",
            2,
            "key is empty",
            "Check that it is the right file.",
        ),
        (
            "open luks2 --key-file key --keyfile-size 65",
            2,
            "key ends before the bytes that were asked for",
            "Check that it is whole, and --keyfile-offset and --keyfile-size.",
        ),
        (
            "open luks2 --key-file key --keyfile-size 18446744073709551615",
            2,
            "key ends before the bytes that were asked for",
            "Check that it is whole, and --keyfile-offset and --keyfile-size.",
        ),
        (
            "open luks2 --key-file key --keyfile-size 0",
            2,
            "key is empty",
            "Check that it is the right file.",
        ),
        (
            "open noise --type plain --key-size 512 --key-file key-cut",
            2,
            "the key file has 63 bytes, and the key needs 64",
            "Check that it is the right file, whole, and its offset and size.",
        ),
        (
            "open noise --type loopaes --key-file key-cut --key-size 24",
            2,
            "aes-cbc-plain64 cannot take a key of 24 bits",
            "Possible are 128, 192, 256 bits.",
        ),
        (
            "open noise --type loopaes --passphrase-file pass",
            2,
            "a loop-AES volume cannot be opened with a passphrase",
            "Give a --key-file of 1, 64 or 65 lines.",
        ),
    ]);
}

#[test]
fn files_that_are_no_such_volume() {
    Desk::new().refuses(&[
        ("open luks1 --type luks2 --passphrase-file pass", 2, "this is not a LUKS2 volume", "Name the right --type, or the file that holds the header with --header."),
        ("open luks2 --type luks1 --passphrase-file pass", 2, "this is not a LUKS1 volume", "Name the right --type, or the file that holds the header with --header."),
        ("open noise --type luks2 --passphrase-file pass", 2, "this is not a LUKS2 volume", "Name the right --type, or the file that holds the header with --header."),
        ("open noise --passphrase-file pass", 2, "noise has no signature of a volume", "Name its --type (plain, tcrypt, veracrypt, cryptoloop and loopaes volumes have no signature), or the file with its --header."),
        ("open noise --type luks --passphrase-file pass", 2, "noise has no signature of a volume", "Name its --type (plain, tcrypt, veracrypt, cryptoloop and loopaes volumes have no signature), or the file with its --header."),
        ("open short --passphrase-file pass", 2, "short has no signature of a volume", "Name its --type (plain, tcrypt, veracrypt, cryptoloop and loopaes volumes have no signature), or the file with its --header."),
        ("open nothing --passphrase-file pass", 2, "nothing has no signature of a volume", "Name its --type (plain, tcrypt, veracrypt, cryptoloop and loopaes volumes have no signature), or the file with its --header."),
        ("open nothing --type plain --passphrase-file pass", 2, "the data area (512 bytes from 0) does not fit the device of 0 bytes", "Check that it is the right file, whole, and the offset and size that were given."),
        ("open short --type plain --passphrase-file pass", 2, "the data area (512 bytes from 0) does not fit the device of 0 bytes", "Check that it is the right file, whole, and the offset and size that were given."),
        ("open missing --passphrase-file pass", 2, "cannot open missing: No such file or directory (os error 2)", "Check the path."),
        ("open folder --passphrase-file pass", 2, "folder is neither a regular file nor a block device", "Name a file or a block device."),
        ("open luks2-cut-early --passphrase-file pass", 2, "this is not a LUKS2 volume", "Name the right --type, or the file that holds the header with --header."),
        ("open luks2-cut --passphrase-file pass", 2, "this LUKS2 volume is cut off: it needs 290816 bytes, and there are 19968", "Check that this is the right file, and the whole of it; nothing was changed."),
        ("export luks2-without-data --passphrase-file pass --output out", 2, "the data area (4096 bytes from 16777216) does not fit the device of 16777216 bytes", "Check that it is the right file, whole, and the offset and size that were given."),
        ("open luks1-cut --passphrase-file pass", 2, "this LUKS1 volume is cut off: it needs 260096 bytes, and there are 4608", "Check that this is the right file, and the whole of it; nothing was changed."),
        ("open luks2-spoilt --passphrase-file pass", 2, "the header of this LUKS2 volume is damaged: the checksum of the header is wrong", RESTORE),
        ("info luks2-spoilt", 2, "the header of this LUKS2 volume is damaged: the checksum of the header is wrong", RESTORE),
        ("info noise", 2, "noise has no signature of a volume", "Name its --type (plain, tcrypt, veracrypt, cryptoloop and loopaes volumes have no signature), or the file with its --header."),
        ("info missing", 2, "cannot open missing: No such file or directory (os error 2)", "Check the path."),
        ("key add luks2-spoilt --passphrase-file pass --new-passphrase-file wrong", 2, "the header of this LUKS2 volume is damaged: the checksum of the header is wrong", RESTORE),
        ("export luks1-cut --passphrase-file pass --output out", 2, "this LUKS1 volume is cut off: it needs 260096 bytes, and there are 4608", "Check that this is the right file, and the whole of it; nothing was changed."),
    ]);
}

/// What a file holds instead, and what was meant.
#[test]
fn files_and_types_of_other_names() {
    const INSTEAD: &str = "Name the right file; if it is encrypted all the same, its --type, or the file with its --header.";
    const UNPACK: &str = "Unpack it, and name what comes out.";
    const RAW: &str = "Give its content as a raw image (`qemu-img convert -O raw`), or serve it with `qemu-nbd` and name the export.";
    const KNOWN: &str =
        "Known are luks, luks1, luks2, plain, tcrypt, veracrypt, cryptoloop, loopaes, bestcrypt.";
    let desk = Desk::new();
    let put = |name: &str, at: usize, bytes: &[u8]| {
        let mut file = vec![0x5a; 1 << 20];
        file[at..at + bytes.len()].copy_from_slice(bytes);
        fs::write(desk.path(name), file).unwrap();
    };
    put("qcow2", 0, b"QFI\xfb\0\0\0\x03");
    put("vdi", 0x40, b"\x7f\x10\xda\xbe");
    put("gz", 0, b"\x1f\x8b\x08");
    // Blocks, the magic, and extents among the features.
    let mut superblock = [0; 1024];
    for (at, byte) in [(4, 1), (56, 0x53), (57, 0xef), (0x60, 0x40)] {
        superblock[at] = byte;
    }
    put("ext4", 1024, &superblock);
    put("luks3", 0, b"LUKS\xba\xbe\0\x03");
    desk.refuses(&[
        (
            "open qcow2 --passphrase-file pass",
            2,
            "qcow2 holds a qcow2 image, and no signature of a volume",
            RAW,
        ),
        (
            "info vdi",
            2,
            "vdi holds a VirtualBox image (VDI), and no signature of a volume",
            RAW,
        ),
        (
            "info gz",
            2,
            "gz holds a gzip archive, and no signature of a volume",
            UNPACK,
        ),
        (
            "info ext4",
            2,
            "ext4 holds an ext4 file system, and no signature of a volume",
            INSTEAD,
        ),
        (
            "info luks3",
            2,
            "this is a LUKS volume of version 3, which is not supported",
            "Open it with a program that knows this version; nothing was changed.",
        ),
        (
            "open luks2 --type veracrypt --passphrase-file pass",
            2,
            "this is a LUKS2 volume, not VeraCrypt",
            "Leave --type out, or say --type luks2.",
        ),
        (
            "open luks1 --type tcrypt --passphrase-file pass",
            2,
            "this is a LUKS1 volume, not TrueCrypt",
            "Leave --type out, or say --type luks1.",
        ),
        (
            "open luks2 --type LUKS2 --passphrase-file pass",
            2,
            "unknown volume type `LUKS2`",
            &format!("Did you mean --type luks2? {KNOWN}"),
        ),
        (
            "open luks2 --type truecrypt --passphrase-file pass",
            2,
            "unknown volume type `truecrypt`",
            &format!("Did you mean --type tcrypt? {KNOWN}"),
        ),
    ]);
}

/// No keyslot is left, or one that cannot be used: the passphrase is not to blame.
#[test]
fn keyslots_that_are_not_there() {
    const GONE: &str =
        "Give the --volume-key-file, or restore a header backup of when it had keyslots.";
    let desk = Desk::new();
    for name in ["luks1", "luks2"] {
        let (code, said) = desk.start(&["key", "kill", name, "--key-slot", "0", "--yes"]);
        assert_eq!(code, Some(0), "{said}");
    }
    desk.refuses(&[
        (
            "open luks1 --passphrase-file pass",
            3,
            "this LUKS1 volume has no keyslot left that opens its data",
            GONE,
        ),
        (
            "open luks2 --passphrase-file pass",
            3,
            "this LUKS2 volume has no keyslot left that opens its data",
            GONE,
        ),
    ]);
}

/// A header with an unknown hash says what it can.
#[test]
fn what_can_be_told_of_an_unknown_header() {
    let desk = Desk::new();
    let mut bytes = fs::read(desk.path("luks1")).unwrap();
    bytes[72..92].copy_from_slice(b"whirlpool_gcryptbug\0");
    fs::write(desk.path("luks1"), bytes).unwrap();
    let output = Command::new(PROGRAM)
        .args(["volume", "info", "luks1"])
        .current_dir(desk.folder.path())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    for told in [
        "aes-xts-plain64",
        "whirlpool_gcryptbug",
        "unusable",
        "not supported",
        "iterations",
    ] {
        assert!(text.contains(told), "{told}\n{text}");
    }
    desk.refuses(&[(
        "open luks1 --passphrase-file pass",
        2,
        "this LUKS1 volume uses `whirlpool_gcryptbug` as its `hash-spec`, which is not supported",
        "Open it with the program that made it; nothing was changed.",
    )]);
}

#[test]
fn headers_of_other_data() {
    Desk::new().refuses(&[
        // The data are shorter than the header says.
        ("open short --header luks2 --passphrase-file pass", 2, "the data area (4096 bytes from 16777216) does not fit the device of 0 bytes", "Check that it is the right file, whole, and the offset and size that were given."),
        ("open noise --header luks1 --passphrase-file pass", 2, "the data area (512 bytes from 2097152) does not fit the device of 1048576 bytes", "Check that it is the right file, whole, and the offset and size that were given."),
        // The header is opened as if it were the volume.
        ("open header1 --passphrase-file pass", 2, "the data of this LUKS1 volume would lie upon its own header", "If this is a detached header, name the data's file, and this one with --header."),
        ("open header2 --passphrase-file pass", 2, "the data of this LUKS2 volume would lie upon its own header", "If this is a detached header, name the data's file, and this one with --header."),
        ("open detached1 --passphrase-file pass", 2, "detached1 is blank, and has no signature of a volume", "Name its --type (plain, tcrypt, veracrypt, cryptoloop and loopaes volumes have no signature), or the file with its --header."),
        ("open detached1 --header detached2 --passphrase-file pass", 2, "detached2 is blank, and has no signature of a volume", "Name its --type (plain, tcrypt, veracrypt, cryptoloop and loopaes volumes have no signature), or the file with its --header."),
        ("open detached1 --header missing --passphrase-file pass", 2, "cannot open missing: No such file or directory (os error 2)", "Check the path."),
        ("open detached1 --header folder --passphrase-file pass", 2, "folder is neither a regular file nor a block device", "Name a file or a block device."),
    ]);
}

#[test]
fn options_that_make_no_sense() {
    Desk::new().refuses(&[
        ("open luks2 --type lusk2 --passphrase-file pass", 2, "unknown volume type `lusk2`", "Known are luks, luks1, luks2, plain, tcrypt, veracrypt, cryptoloop, loopaes, bestcrypt."),
        ("open noise --type plain --cipher rot13-cbc-plain --passphrase-file pass", 2, "unknown cipher `rot13`", "Known are aes, serpent, twofish, camellia, cast6, kuznyechik, sm4, aria, anubis, seed, blowfish, blowfish_le, cast5, des, des3_ede, khazad."),
        ("open noise --type plain --hash crc32 --passphrase-file pass", 2, "unknown hash `crc32`", "Known are sha1, sha224, sha256, sha384, sha512, sha3-224, sha3-256, sha3-384, sha3-512, ripemd160, whirlpool, blake2b-512, blake2s-256, skein-512, sm3, stribog256, stribog512; `plain` hashes nothing."),
        ("open noise --type plain --key-size 100 --passphrase-file pass", 2, "a key of 100 bits is not possible", "Give a multiple of 8, as in --key-size 256."),
        ("open noise --type plain --key-size 200 --passphrase-file pass", 2, "aes-xts-plain64 cannot take a key of 200 bits", "Possible are 256, 384, 512 bits."),
        ("open noise --type plain --sector-size 8192 --passphrase-file pass", 2, "encryption sectors of 8192 bytes are not possible", "Give a --sector-size of 512, 1024, 2048 or 4096."),
        ("open noise --type plain --offset 2048 --passphrase-file pass", 2, "the data area (512 bytes from 1048576) does not fit the device of 1048576 bytes", "Check that it is the right file, whole, and the offset and size that were given."),
        ("open noise --type plain --size 36028797018963967 --passphrase-file pass", 2, "the data area (18446744073709551104 bytes from 0) does not fit the device of 1048576 bytes", "Check that it is the right file, whole, and the offset and size that were given."),
        ("open noise --type cryptoloop --cipher aes-99999999999999999 --passphrase-file pass", 2, "unknown mode `99999999999999999`", "Known are xts, cbc, lrw, ctr, ecb, adiantum, hctr2."),
        ("open noise --type cryptoloop --key-derivation sideways --passphrase-file pass", 2, "unknown key derivation `sideways`", "Known are util-linux, debian-rmd160 and hashalot-HASH, where HASH is ripemd160, rmd160compat, sha256, sha384 or sha512."),
        ("open noise --type loopaes --hash crc32 --key-file key", 2, "unknown hash `crc32`", "Known are sha1, sha224, sha256, sha384, sha512, sha3-224, sha3-256, sha3-384, sha3-512, ripemd160, whirlpool, blake2b-512, blake2s-256, skein-512, sm3, stribog256, stribog512; `plain` hashes nothing."),
        ("open luks2 --cipher aes-xts-plain64 --passphrase-file pass", 2, "--cipher has no meaning for a luks2 volume", "Leave it away; it is for plain, cryptoloop, loopaes, tcrypt, veracrypt."),
        ("open luks1 --offset 8 --passphrase-file pass", 2, "--offset has no meaning for a luks1 volume", "Leave it away; it is for plain, cryptoloop, loopaes."),
        ("open luks2 --key-derivation util-linux --passphrase-file pass", 2, "--key-derivation has no meaning for a luks2 volume", "Leave it away; it is for cryptoloop."),
        ("open noise --type plain --key-slot 0 --passphrase-file pass", 2, "--key-slot has no meaning for a plain volume", "Leave it away; it is for luks1, luks2."),
        ("open noise --type plain --header luks2 --passphrase-file pass", 2, "--header has no meaning for a plain volume", "Leave it away; it is for luks1, luks2."),
        ("open noise --type loopaes --sector-size 512 --key-file key", 2, "--sector-size has no meaning for a loopaes volume", "Leave it away; it is for plain."),
        ("passwd noise --type plain --passphrase-file pass --new-passphrase-file wrong", 2, "a plain volume has no keyslots", "Only LUKS volumes have."),
    ]);
}

#[test]
fn a_file_that_may_not_be_written() {
    let desk = Desk::new();
    let mut permissions = fs::metadata(desk.path("luks2")).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(desk.path("luks2"), permissions).unwrap();
    if fs::File::options()
        .write(true)
        .open(desk.path("luks2"))
        .is_ok()
    {
        println!("skipped: this user may write files that are read-only");
        return;
    }
    let what = "cannot open luks2: Permission denied (os error 13)";
    let remedy = "Run as a user who may access it, or choose another place.";
    desk.refuses(&[
        (
            "passwd luks2 --passphrase-file pass --new-passphrase-file wrong",
            2,
            what,
            remedy,
        ),
        (
            "key add luks2 --passphrase-file pass --new-passphrase-file wrong",
            2,
            what,
            remedy,
        ),
        (
            "import luks2 --passphrase-file pass --input noise --yes",
            2,
            what,
            remedy,
        ),
    ]);
}
