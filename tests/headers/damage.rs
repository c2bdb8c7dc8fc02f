//! Each way to damage a header, and what each command makes of it.

use crate::sandbox::{create, cryptsetup, ends, opens, sandbox, spoil, text};
use testkit::CHEAP;

const KIB: usize = 1 << 10;

/// What commands end with.
struct Case {
    name: &'static str,
    damage: fn(&mut [u8]),
    open: i32,
    passwd: i32,
    /// `header repair` without anything, with what opens the volume, with what
    /// does not, and with `--yes`.
    repair: [i32; 4],
}

/// The magic of an MBR with one partition.
fn mbr(sector: &mut [u8]) {
    sector[446..510].fill(0);
    sector[446..462].copy_from_slice(&[0, 1, 1, 0, 0x83, 2, 2, 2, 0, 8, 0, 0, 0, 8, 0, 0]);
    sector[510..512].copy_from_slice(&[0x55, 0xaa]);
}

const LUKS2: [Case; 17] = [
    Case {
        name: "nothing",
        damage: |_| (),
        open: 0,
        passwd: 0,
        repair: [0, 0, 3, 0],
    },
    Case {
        // It may be another volume: then the second copy is what is left of this one.
        name: "noise over the first binary header",
        damage: |image| spoil(&mut image[..4 * KIB]),
        open: 0,
        passwd: 4,
        repair: [4, 4, 4, 0],
    },
    Case {
        name: "noise in the first binary header, behind its magic number",
        damage: |image| spoil(&mut image[8..4 * KIB]),
        open: 0,
        passwd: 0,
        repair: [0, 0, 3, 0],
    },
    Case {
        name: "zeros over the first copy",
        damage: |image| image[..16 * KIB].fill(0),
        open: 0,
        passwd: 0,
        repair: [0, 0, 3, 0],
    },
    Case {
        name: "noise over the second copy",
        damage: |image| spoil(&mut image[16 * KIB..32 * KIB]),
        open: 0,
        passwd: 0,
        repair: [0, 0, 3, 0],
    },
    Case {
        name: "one bit of the first copy",
        damage: |image| image[5000] ^= 4,
        open: 0,
        passwd: 0,
        repair: [0, 0, 3, 0],
    },
    Case {
        name: "both magics",
        damage: |image| {
            image[..6].fill(0);
            image[16 * KIB..][..6].fill(0);
        },
        open: 2,
        passwd: 2,
        repair: [0, 0, 3, 0],
    },
    Case {
        name: "noise over both binary headers",
        damage: |image| {
            spoil(&mut image[..4 * KIB]);
            spoil(&mut image[16 * KIB..20 * KIB]);
        },
        open: 2,
        passwd: 2,
        repair: [4, 0, 3, 0],
    },
    Case {
        name: "the first binary header and the whole second copy",
        damage: |image| {
            image[..4 * KIB].fill(0);
            image[16 * KIB..32 * KIB].fill(0);
        },
        open: 2,
        passwd: 2,
        repair: [4, 0, 3, 0],
    },
    Case {
        name: "the whole first copy and the second binary header",
        damage: |image| {
            image[..16 * KIB].fill(0);
            spoil(&mut image[16 * KIB..20 * KIB]);
        },
        open: 2,
        passwd: 2,
        repair: [4, 0, 3, 0],
    },
    Case {
        name: "both checksums",
        damage: |image| {
            image[448] ^= 1;
            image[16 * KIB + 448] ^= 1;
        },
        open: 2,
        passwd: 2,
        repair: [4, 0, 3, 0],
    },
    Case {
        name: "an MBR over the first sector",
        damage: |image| {
            image[..512].fill(0);
            mbr(image);
        },
        open: 0,
        passwd: 4,
        repair: [4, 4, 4, 0],
    },
    Case {
        name: "a GPT over both binary headers",
        damage: |image| {
            image[..17 * KIB].fill(0);
            mbr(image);
            image[446 + 4] = 0xee;
            image[512..520].copy_from_slice(b"EFI PART");
        },
        open: 2,
        passwd: 2,
        repair: [4, 4, 3, 0],
    },
    Case {
        name: "an LVM label in the first copy",
        damage: |image| {
            image[..4 * KIB].fill(0);
            image[512..520].copy_from_slice(b"LABELONE");
            image[536..544].copy_from_slice(b"LVM2 001");
        },
        open: 0,
        passwd: 4,
        repair: [4, 4, 4, 0],
    },
    Case {
        name: "an ext2 over the first copy",
        damage: |image| {
            image[..16 * KIB].fill(0);
            // Blocks, inodes, magic, state.
            image[1024..1032].copy_from_slice(&[0, 5, 0, 0, 0, 0x50, 0, 0]);
            image[1080..1084].copy_from_slice(&[0x53, 0xef, 1, 0]);
        },
        open: 0,
        passwd: 4,
        repair: [4, 4, 4, 0],
    },
    Case {
        name: "noise over both copies",
        damage: |image| spoil(&mut image[..32 * KIB]),
        open: 2,
        passwd: 2,
        repair: [2, 2, 2, 2],
    },
    Case {
        name: "zeros over both copies",
        damage: |image| image[..32 * KIB].fill(0),
        open: 2,
        passwd: 2,
        repair: [2, 2, 2, 2],
    },
];

const LUKS1: [Case; 4] = [
    Case {
        name: "nothing",
        damage: |_| (),
        open: 0,
        passwd: 0,
        repair: [0, 0, 0, 0],
    },
    Case {
        name: "the magic",
        damage: |image| image[..6].fill(0),
        open: 2,
        passwd: 2,
        repair: [4, 0, 3, 0],
    },
    Case {
        name: "noise over the header",
        damage: |image| spoil(&mut image[..592]),
        open: 2,
        passwd: 2,
        repair: [2, 2, 2, 2],
    },
    Case {
        name: "the hash",
        damage: |image| image[72..104].fill(b'x'),
        open: 2,
        passwd: 2,
        repair: [2, 2, 2, 2],
    },
];

#[test]
fn luks2() {
    run("luks2", &LUKS2);
}

#[test]
fn luks1() {
    run("luks1", &LUKS1);
}

fn run(kind: &str, cases: &[Case]) {
    let sandbox = sandbox();
    create(&sandbox, "sound", kind);
    let sound = sandbox.read("sound");
    let mut wrong = Vec::new();
    for case in cases {
        let mut damaged = sound.clone();
        (case.damage)(&mut damaged);
        let passwd = format!("passwd v {CHEAP} --key-file one --new-key-file two");
        let [plain, proved, disproved, insisted] = case.repair;
        let commands = [
            ("open v --key-file one", case.open),
            (&passwd, case.passwd),
            ("header repair v", plain),
            ("header repair v --key-file one", proved),
            ("header repair v --key-file two", disproved),
            ("header repair v --yes", insisted),
        ];
        for (command, code) in commands {
            sandbox.write("v", &damaged);
            let output = sandbox.volume_command(command).output().unwrap();
            let said = text(&output);
            let place = format!("{kind}: {}: {command}: {said}", case.name);
            if output.status.code() != Some(code) {
                wrong.push(format!("not {code}: {place}"));
                continue;
            }
            let after = sandbox.read("v");
            if code != 0 || command.starts_with("open") {
                assert!(after == damaged, "changed: {place}");
                continue;
            }
            // The data are as they were, and the secret that should opens it.
            assert!(after[16 << 20..] == sound[16 << 20..], "{place}");
            let secret = if command.starts_with("passwd") {
                "two"
            } else {
                "one"
            };
            assert!(opens(&sandbox, "v", secret), "{place}");
            assert!(
                cryptsetup(&sandbox, "luksDump v").is_none_or(|well| well),
                "{place}"
            );
            if kind == "luks2" {
                let info = ends(&sandbox, 0, "info v");
                assert!(info.contains("both"), "{place}{info}");
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Where a first copy was, there is ext4; a stray second copy makes no LUKS volume
/// of that.
#[test]
fn a_stray_second_copy_is_no_reason_to_write() {
    let sandbox = sandbox();
    if !testkit::have(&["mkfs.ext4"]) {
        return;
    }
    create(&sandbox, "luks", "luks2");
    sandbox.write("fs", vec![0; 24 << 20]);
    let made = sandbox.command("mkfs.ext4", "-q fs").status().unwrap();
    assert!(made.success());
    let mut image = sandbox.read("fs");
    image[16 * KIB..32 * KIB].copy_from_slice(&sandbox.read("luks")[16 * KIB..32 * KIB]);
    sandbox.write("fs", &image);
    for command in [
        "header repair fs",
        "header set fs --label x",
        "header restore fs --input luks",
    ] {
        let said = sandbox.refused(4, "fs", command);
        assert!(said.contains("ext"), "{said}");
    }
}

/// What `wipefs` leaves is told from what never was a header.
#[test]
fn what_can_be_mended_is_said() {
    let sandbox = sandbox();
    for kind in ["luks1", "luks2"] {
        create(&sandbox, kind, kind);
        let mut image = sandbox.read(kind);
        image[..6].fill(0);
        image[16 * KIB..][..6].fill(0);
        sandbox.write(kind, &image);
        let said = sandbox.refused(2, kind, &format!("info {kind}"));
        assert!(said.contains("header repair"), "{said}");
    }
    sandbox.write("noise", vec![0x5a; 1 << 20]);
    let said = sandbox.refused(2, "noise", "info noise");
    assert!(!said.contains("header repair"), "{said}");
}

/// A rebuilt header says what is lost for good.
#[test]
fn what_is_lost_is_said() {
    let sandbox = sandbox();
    create(&sandbox, "v", "luks2");
    sandbox.volume(&format!(
        "key add v {CHEAP} --key-file one --new-key-file two"
    ));
    let mut image = sandbox.read("v");
    spoil(&mut image[..4 * KIB]);
    spoil(&mut image[16 * KIB..20 * KIB]);
    image[32 * KIB + 1024..][..512].fill(0);
    sandbox.write("v", &image);
    let uuid = "11111111-2222-3333-4444-555555555555";
    let said = ends(
        &sandbox,
        0,
        &format!("header repair v --key-file two --uuid {uuid}"),
    );
    assert!(said.contains("key slot 0 is gone"), "{said}");
    assert!(said.contains("key slot 1 opens"), "{said}");
    assert!(said.contains(uuid), "{said}");
    assert!(ends(&sandbox, 0, "info v").contains(uuid));
    assert!(opens(&sandbox, "v", "two"));
}
