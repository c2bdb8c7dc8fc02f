//! `header restore`: what a backup would take away is said, and asked for.

use crate::sandbox::{create, cryptsetup, desk, ends, opens, spoil};
use testkit::CHEAP;

/// What happens to a volume after its backup.
struct Case {
    name: &'static str,
    kind: &'static str,
    /// Commands of this program, and of cryptsetup where they begin so.
    commands: &'static [&'static str],
    damage: fn(&mut [u8]),
    /// A word of the question; nothing where there is none.
    asks: Option<&'static str>,
}

const CASES: [Case; 15] = [
    Case {
        name: "nothing",
        kind: "luks2",
        commands: &[],
        damage: |_| (),
        asks: None,
    },
    Case {
        name: "nothing",
        kind: "luks1",
        commands: &[],
        damage: |_| (),
        asks: None,
    },
    Case {
        name: "the passphrase",
        kind: "luks2",
        commands: &["passwd v CHEAP --key-file one --new-key-file two"],
        damage: |_| (),
        asks: Some("keyslot 0"),
    },
    Case {
        name: "the passphrase",
        kind: "luks1",
        commands: &["passwd v CHEAP --key-file one --new-key-file two"],
        damage: |_| (),
        asks: Some("keyslot 1"),
    },
    Case {
        name: "another key",
        kind: "luks2",
        commands: &["key add v CHEAP --key-file one --new-key-file two"],
        damage: |_| (),
        asks: Some("keyslot 1"),
    },
    Case {
        name: "a name",
        kind: "luks2",
        commands: &["header set v --label x"],
        damage: |_| (),
        asks: None,
    },
    Case {
        name: "the UUID",
        kind: "luks2",
        commands: &["header set v --uuid random"],
        damage: |_| (),
        asks: Some("another volume"),
    },
    Case {
        name: "the volume key",
        kind: "luks2",
        commands: &["reencrypt v CHEAP --key-file one --no-progress"],
        damage: |_| (),
        asks: Some("volume key"),
    },
    Case {
        name: "the cipher, by cryptsetup, which has not gone on",
        kind: "luks2",
        commands: &[
            "cryptsetup reencrypt --init-only --force-offline-reencrypt CHEAP --key-file one v",
        ],
        damage: |_| (),
        asks: Some(""),
    },
    Case {
        name: "the first copy",
        kind: "luks2",
        commands: &[],
        damage: |image| spoil(&mut image[..4096]),
        asks: None,
    },
    Case {
        name: "a partition table over the first copy",
        kind: "luks2",
        commands: &[],
        damage: |image| {
            image[..512].fill(0);
            image[446..462].copy_from_slice(&[0, 1, 1, 0, 0x83, 2, 2, 2, 0, 8, 0, 0, 0, 8, 0, 0]);
            image[510..512].copy_from_slice(&[0x55, 0xaa]);
        },
        asks: Some("MBR"),
    },
    Case {
        name: "zeros over both",
        kind: "luks2",
        commands: &[],
        damage: |image| image[..32 << 10].fill(0),
        asks: Some("no header"),
    },
    Case {
        name: "XFS over all",
        kind: "luks2",
        commands: &[],
        damage: |image| {
            image[..1 << 20].fill(0);
            image[..4].copy_from_slice(b"XFSB");
            image[4..8].copy_from_slice(&4096_u32.to_be_bytes());
            image[108..110].copy_from_slice(&512_u16.to_be_bytes());
        },
        asks: Some("XFS"),
    },
    Case {
        name: "LUKS2 of LUKS1",
        kind: "luks1",
        commands: &["convert v --type luks2"],
        damage: |_| (),
        asks: None,
    },
    Case {
        name: "a new volume",
        kind: "luks1",
        commands: &["create v --type luks2 CHEAP --key-file two --yes"],
        damage: |_| (),
        asks: Some("another volume"),
    },
];

#[test]
fn what_is_lost_is_asked_for() {
    for case in CASES {
        let desk = desk();
        create(&desk, "v", case.kind);
        desk.volume("header backup v --output saved");
        for command in case.commands {
            let command = command.replace("CHEAP", CHEAP);
            match command.strip_prefix("cryptsetup ") {
                None => drop(desk.volume(&command)),
                Some(theirs) if cryptsetup(&desk, theirs).is_none() => continue,
                Some(_) => {}
            }
        }
        let mut image = desk.read("v");
        (case.damage)(&mut image);
        desk.write("v", &image);
        let place = format!("{} of {}", case.name, case.kind);
        let restore = "header restore v --input saved";
        let said = match case.asks {
            None => ends(&desk, 0, restore),
            Some(word) => {
                let said = desk.refused(4, "v", restore);
                assert!(said.contains(word), "{place}: {said}");
                ends(&desk, 0, &format!("{restore} --yes"))
            }
        };
        let saved = desk.read("saved");
        assert!(desk.read("v").starts_with(&saved), "{place}");
        assert!(
            desk.read("v")[saved.len()..] == image[saved.len()..],
            "{place}"
        );
        assert!(opens(&desk, "v", "one"), "{place}: {said}");
    }
}

/// Who was locked out comes in again, which is said.
#[test]
fn a_key_that_comes_back_is_said() {
    let desk = desk();
    create(&desk, "v", "luks2");
    desk.volume(&format!(
        "key add v {CHEAP} --key-file one --new-key-file two"
    ));
    desk.volume("header backup v --output saved");
    desk.volume("key kill v --key-file two");
    assert!(!opens(&desk, "v", "two"));
    let said = ends(&desk, 0, "header restore v --input saved");
    assert!(
        said.contains("keyslot 1 then opens the volume again"),
        "{said}"
    );
    assert!(opens(&desk, "v", "two"));
}

/// Headers that no program writes: no panic, and nothing without bound.
#[test]
fn small_and_huge_headers_of_luks1() {
    let desk = desk();
    create(&desk, "v", "luks1");
    let mut tiny = desk.read("v")[..8192].to_vec();
    tiny[104..108].copy_from_slice(&2_u32.to_be_bytes());
    tiny[208..212].copy_from_slice(&0xdead_u32.to_be_bytes());
    desk.write("tiny", &tiny);
    let output = desk
        .volume_command("header restore v --input tiny --yes")
        .output()
        .unwrap();
    assert!(
        [Some(0), Some(2)].contains(&output.status.code()),
        "{output:?}"
    );

    let mut huge = tiny;
    huge[104..108].fill(0);
    // The last keyslot, which is not in use.
    huge[208 + 7 * 48 + 40..][..4].copy_from_slice(&u32::MAX.to_be_bytes());
    huge[208 + 7 * 48 + 44..][..4].copy_from_slice(&u32::MAX.to_be_bytes());
    desk.write("huge", &huge);
    let output = desk
        .volume_command("header backup huge --output out")
        .output()
        .unwrap();
    assert!(
        [Some(0), Some(2)].contains(&output.status.code()),
        "{output:?}"
    );
}

#[test]
fn a_backup_can_be_tested_alone() {
    let desk = desk();
    for kind in ["luks1", "luks2"] {
        create(&desk, kind, kind);
        desk.volume(&format!("header backup {kind} --output {kind}.saved"));
        let said = ends(&desk, 0, &format!("open {kind}.saved --key-file one"));
        assert!(
            said.contains("sound") && said.contains("without data"),
            "{said}"
        );
        ends(&desk, 3, &format!("open {kind}.saved --key-file two"));
        let mut cut = desk.read(format!("{kind}.saved"));
        cut.truncate(100 << 10);
        desk.write("cut", &cut);
        ends(&desk, 2, "open cut --key-file one");
    }
}
