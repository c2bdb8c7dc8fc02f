//! Files that are not the volume that was meant.

use crate::{Refuses as _, sandbox, start};
use std::process::Stdio;

const RESTORE: &str =
    "Nothing was changed. Try `cryptmark volume header repair`, then a backup of the header.";

#[test]
fn files_that_are_no_such_volume() {
    sandbox().refuses(&[
        ("open luks1 --type luks2 --passphrase-file pass", 2, "this is not a LUKS2 volume", "Give \
                                                                                             the \
                                                                                             right \
                                                                                             --type, \
                                                                                             or \
                                                                                             name \
                                                                                             the \
                                                                                             file \
                                                                                             that \
                                                                                             holds \
                                                                                             the \
                                                                                             header \
                                                                                             with \
                                                                                             --header."),
        ("open luks2 --type luks1 --passphrase-file pass", 2, "this is not a LUKS1 volume", "Give \
                                                                                             the \
                                                                                             right \
                                                                                             --type, \
                                                                                             or \
                                                                                             name \
                                                                                             the \
                                                                                             file \
                                                                                             that \
                                                                                             holds \
                                                                                             the \
                                                                                             header \
                                                                                             with \
                                                                                             --header."),
        ("open noise --type luks2 --passphrase-file pass", 2, "this is not a LUKS2 volume", "Give \
                                                                                             the \
                                                                                             right \
                                                                                             --type, \
                                                                                             or \
                                                                                             name \
                                                                                             the \
                                                                                             file \
                                                                                             that \
                                                                                             holds \
                                                                                             the \
                                                                                             header \
                                                                                             with \
                                                                                             --header."),
        ("open noise --passphrase-file pass", 2, "noise has no signature of a volume", "Name its --type (plain, tcrypt, veracrypt, cryptoloop and loopaes volumes have no signature), or the file with its --header. An interrupted encryption or decryption needs its file IMAGE.cryptmark-header beside the volume."),
        ("open noise --type luks --passphrase-file pass", 2, "noise has no signature of a volume", "Name its --type (plain, tcrypt, veracrypt, cryptoloop and loopaes volumes have no signature), or the file with its --header. An interrupted encryption or decryption needs its file IMAGE.cryptmark-header beside the volume."),
        ("open short --passphrase-file pass", 2, "short has no signature of a volume", "Name its --type (plain, tcrypt, veracrypt, cryptoloop and loopaes volumes have no signature), or the file with its --header. An interrupted encryption or decryption needs its file IMAGE.cryptmark-header beside the volume."),
        ("open nothing --passphrase-file pass", 2, "nothing has no signature of a volume", "Name its --type (plain, tcrypt, veracrypt, cryptoloop and loopaes volumes have no signature), or the file with its --header. An interrupted encryption or decryption needs its file IMAGE.cryptmark-header beside the volume."),
        ("open nothing --type plain --passphrase-file pass", 2, "the data area (512 bytes from \
                                                                 byte 0) does not fit into the \
                                                                 device of 0 bytes", "Check that \
                                                                                      it is the \
                                                                                      right file, \
                                                                                      that it is \
                                                                                      complete, \
                                                                                      and that the \
                                                                                      offset and \
                                                                                      size you \
                                                                                      gave are \
                                                                                      right."),
        ("open short --type plain --passphrase-file pass", 2, "the data area (512 bytes from byte \
                                                               0) does not fit into the device of \
                                                               0 bytes", "Check that it is the \
                                                                          right file, that it is \
                                                                          complete, and that the \
                                                                          offset and size you gave \
                                                                          are right."),
        ("open missing --passphrase-file pass", 2, "cannot open missing: No such file or directory (os error 2)", "Check the path."),
        ("open folder --passphrase-file pass", 2, "folder is neither a regular file nor a block device", "Name a file or a block device."),
        ("open luks2-cut-early --passphrase-file pass", 2, "this is not a LUKS2 volume", "Give the \
                                                                                          right \
                                                                                          --type, \
                                                                                          or name \
                                                                                          the file \
                                                                                          that \
                                                                                          holds \
                                                                                          the \
                                                                                          header \
                                                                                          with \
                                                                                          --header."),
        ("open luks2-cut --passphrase-file pass", 2, "this LUKS2 volume is cut off: it needs \
                                                      290816 bytes, and the file or device has \
                                                      19968", "Nothing was changed. Check that \
                                                               this is the right file and that it \
                                                               is complete."),
        ("export luks2-without-data --passphrase-file pass --output out", 2, "the data area (4096 \
                                                                              bytes from byte \
                                                                              16777216) does not \
                                                                              fit into the device \
                                                                              of 16777216 bytes", "Check \
                                                                                                   that \
                                                                                                   it \
                                                                                                   is \
                                                                                                   the \
                                                                                                   right \
                                                                                                   file, \
                                                                                                   that \
                                                                                                   it \
                                                                                                   is \
                                                                                                   complete, \
                                                                                                   and \
                                                                                                   that \
                                                                                                   the \
                                                                                                   offset \
                                                                                                   and \
                                                                                                   size \
                                                                                                   you \
                                                                                                   gave \
                                                                                                   are \
                                                                                                   right."),
        ("open luks1-cut --passphrase-file pass", 2, "this LUKS1 volume is cut off: it needs \
                                                      260096 bytes, and the file or device has \
                                                      4608", "Nothing was changed. Check that this \
                                                              is the right file and that it is \
                                                              complete."),
        ("open luks2-spoilt --passphrase-file pass", 2, "the header of this LUKS2 volume is damaged: the checksum of the header is wrong", RESTORE),
        ("info luks2-spoilt", 2, "the header of this LUKS2 volume is damaged: the checksum of the header is wrong", RESTORE),
        ("info noise", 2, "noise has no signature of a volume", "Name its --type (plain, tcrypt, veracrypt, cryptoloop and loopaes volumes have no signature), or the file with its --header. An interrupted encryption or decryption needs its file IMAGE.cryptmark-header beside the volume."),
        ("info missing", 2, "cannot open missing: No such file or directory (os error 2)", "Check the path."),
        ("key add luks2-spoilt --passphrase-file pass --new-passphrase-file wrong", 2, "the header of this LUKS2 volume is damaged: the checksum of the header is wrong", RESTORE),
        ("export luks1-cut --passphrase-file pass --output out", 2, "this LUKS1 volume is cut off: \
                                                                     it needs 260096 bytes, and \
                                                                     the file or device has 4608", "Nothing \
                                                                                                    was \
                                                                                                    changed. \
                                                                                                    Check \
                                                                                                    that \
                                                                                                    this \
                                                                                                    is \
                                                                                                    the \
                                                                                                    right \
                                                                                                    file \
                                                                                                    and \
                                                                                                    that \
                                                                                                    it \
                                                                                                    is \
                                                                                                    complete."),
    ]);
}

/// What a file holds instead, and what was meant.
#[test]
fn files_and_types_of_other_names() {
    const INSTEAD: &str = "Name the right file; if it is encrypted all the same, its --type, or the file with its --header.";
    const OTHER_SYSTEM: &str = "Open it with the system that made it.";
    const UNPACK: &str = "Unpack it, and name the unpacked file.";
    const RAW: &str = "Convert it with `qemu-img convert -O raw`, or serve it with `qemu-nbd` and give the URI of the export.";
    const KNOWN: &str = "Otherwise use one of: luks1, luks2, plain, tcrypt, veracrypt, cryptoloop, loopaes, bestcrypt, bitlk, fvault2.";
    let sandbox = sandbox();
    let put = |name: &str, at: usize, bytes: &[u8]| {
        let mut file = vec![0x5a; 1 << 20];
        file[at..at + bytes.len()].copy_from_slice(bytes);
        sandbox.write(name, file);
    };
    put("vmdk", 0, b"# Disk DescriptorFile\nversion=1\n");
    put("apfs", 32, b"NXSB");
    put("gz", 0, b"\x1f\x8b\x08");
    // Blocks, the magic, and extents among the features.
    let mut superblock = [0; 1024];
    for (at, byte) in [(4, 1), (56, 0x53), (57, 0xef), (0x60, 0x40)] {
        superblock[at] = byte;
    }
    put("ext4", 1024, &superblock);
    let mut table = vec![0; 1024];
    table[510..520].copy_from_slice(b"\x55\xaaEFI PART");
    put("gpt", 0, &table);
    put("luks3", 0, b"LUKS\xba\xbe\0\x03");
    sandbox.refuses(&[
        (
            "info vmdk",
            2,
            "vmdk holds the description of a VMware image (VMDK), and no signature of a volume",
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
            "info gpt",
            2,
            "gpt holds a GPT partition table, and no signature of a volume",
            "List its parts with `cryptmark volume find`, and name one with --partition.",
        ),
        (
            "info apfs",
            2,
            "apfs holds an APFS container, which is not supported",
            OTHER_SYSTEM,
        ),
        (
            "open luks2 --type geli --passphrase-file pass",
            2,
            "GELI volumes are not supported",
            OTHER_SYSTEM,
        ),
        (
            "info luks3",
            2,
            "this is a LUKS volume of version 3, which is not supported",
            "Nothing was changed. Open the volume with a program that supports this version.",
        ),
        (
            "open luks2 --type veracrypt --passphrase-file pass",
            2,
            "this is a LUKS2 volume, not VeraCrypt",
            "Omit --type, or give --type luks2.",
        ),
        (
            "open luks1 --type tcrypt --passphrase-file pass",
            2,
            "this is a LUKS1 volume, not TrueCrypt",
            "Omit --type, or give --type luks1.",
        ),
        (
            "open luks2 --type LUKS2 --passphrase-file pass",
            2,
            "unknown volume type `LUKS2`",
            &format!("Did you mean luks2? {KNOWN}"),
        ),
        (
            "open luks2 --type truecrypt --passphrase-file pass",
            2,
            "unknown volume type `truecrypt`",
            &format!("Did you mean tcrypt? {KNOWN}"),
        ),
    ]);
}

#[test]
fn headers_of_other_data() {
    sandbox().refuses(&[
        // The data are shorter than the header says.
        ("open short --header luks2 --passphrase-file pass", 2, "the data area (4096 bytes from \
                                                                 byte 16777216) does not fit into \
                                                                 the device of 0 bytes", "Check \
                                                                                          that it \
                                                                                          is the \
                                                                                          right \
                                                                                          file, \
                                                                                          that it \
                                                                                          is \
                                                                                          complete, \
                                                                                          and that \
                                                                                          the \
                                                                                          offset \
                                                                                          and size \
                                                                                          you gave \
                                                                                          are \
                                                                                          right."),
        ("open noise --header luks1 --passphrase-file pass", 2, "the data area (512 bytes from \
                                                                 byte 2097152) does not fit into \
                                                                 the device of 1048576 bytes", "Check \
                                                                                                that \
                                                                                                it \
                                                                                                is \
                                                                                                the \
                                                                                                right \
                                                                                                file, \
                                                                                                that \
                                                                                                it \
                                                                                                is \
                                                                                                complete, \
                                                                                                and \
                                                                                                that \
                                                                                                the \
                                                                                                offset \
                                                                                                and \
                                                                                                size \
                                                                                                you \
                                                                                                gave \
                                                                                                are \
                                                                                                right."),
        // The header is opened as if it were the volume.
        ("open header1 --passphrase-file pass", 2, "the data of this LUKS1 volume would overlap \
                                                    its own header", "If this is a detached \
                                                                      header, name the file with \
                                                                      the data as the volume, and \
                                                                      this file with --header."),
        ("open header2 --passphrase-file pass", 2, "the data of this LUKS2 volume would overlap \
                                                    its own header", "If this is a detached \
                                                                      header, name the file with \
                                                                      the data as the volume, and \
                                                                      this file with --header."),
        ("open detached1 --passphrase-file pass", 2, "detached1 is blank, and has no signature of a volume", "Name its --type (plain, tcrypt, veracrypt, cryptoloop and loopaes volumes have no signature), or the file with its --header. An interrupted encryption or decryption needs its file IMAGE.cryptmark-header beside the volume."),
        ("open detached1 --header detached2 --passphrase-file pass", 2, "detached2 is blank, and has no signature of a volume", "Name its --type (plain, tcrypt, veracrypt, cryptoloop and loopaes volumes have no signature), or the file with its --header. An interrupted encryption or decryption needs its file IMAGE.cryptmark-header beside the volume."),
        ("open detached1 --header missing --passphrase-file pass", 2, "cannot open missing: No such file or directory (os error 2)", "Check the path."),
        ("open detached1 --header folder --passphrase-file pass", 2, "folder is neither a regular file nor a block device", "Name a file or a block device."),
    ]);
}

/// No keyslot is left, or one that cannot be used: the passphrase is not to blame.
#[test]
fn keyslots_that_are_not_there() {
    const GONE: &str =
        "Give the --volume-key-file, or restore a header backup that still has keyslots.";
    let sandbox = sandbox();
    for name in ["luks1", "luks2"] {
        let (code, said) = start(&sandbox, &["key", "kill", name, "--key-slot", "0", "--yes"]);
        assert_eq!(code, Some(0), "{said}");
    }
    sandbox.refuses(&[
        (
            "open luks1 --passphrase-file pass",
            3,
            "this LUKS1 volume has no keyslot left for its data",
            GONE,
        ),
        (
            "open luks2 --passphrase-file pass",
            3,
            "this LUKS2 volume has no keyslot left for its data",
            GONE,
        ),
    ]);
}

/// A header with an unknown hash says what it can.
#[test]
fn what_can_be_told_of_an_unknown_header() {
    let sandbox = sandbox();
    let mut bytes = sandbox.read("luks1");
    bytes[72..92].copy_from_slice(b"whirlpool_gcryptbug\0");
    sandbox.write("luks1", bytes);
    let text = sandbox.ok("volume info luks1");
    for told in [
        "aes-xts-plain64",
        "whirlpool_gcryptbug",
        "unusable",
        "not supported",
        "iterations",
    ] {
        assert!(text.contains(told), "{told}\n{text}");
    }
    // To copy it, the hash need not be known.
    let (code, said) = start(
        &sandbox,
        &["header", "backup", "luks1", "--output", "saved"],
    );
    assert_eq!(code, Some(0), "{said}");
    let saved = sandbox.read("saved");
    let whole = sandbox.read("luks1");
    assert!(saved.len() >= 1 << 20 && whole.starts_with(&saved));
    sandbox.refuses(&[(
        "open luks1 --passphrase-file pass",
        2,
        "this LUKS1 volume uses `whirlpool_gcryptbug` as its `hash-spec`, which is not supported",
        "Nothing was changed. Open the volume with the program that made it.",
    )]);
}

/// Whoever reads the plaintext may have failed, and its exit code may be lost in a pipeline.
#[test]
fn an_export_that_nobody_has_read_is_no_success() {
    let sandbox = sandbox();
    let export = "export luks2 --no-progress --passphrase-file pass --output -";
    let mut child = sandbox
        .volume_command(export)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("ended before all was written"), "{said}");
}
