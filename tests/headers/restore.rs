//! `header restore`: what a backup would take away is said, and asked for.

use crate::sandbox::{create, cryptsetup, ends, opens, sandbox, spoil};
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

const CASES: [Case; 16] = [
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
        damage: |image| image[..4096].fill(0),
        asks: None,
    },
    Case {
        name: "something else over the first copy",
        kind: "luks2",
        commands: &[],
        damage: |image| spoil(&mut image[..4096]),
        asks: Some("data without a name"),
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
        let sandbox = sandbox();
        create(&sandbox, "v", case.kind);
        sandbox.volume("header backup v --output saved");
        for command in case.commands {
            let command = command.replace("CHEAP", CHEAP);
            match command.strip_prefix("cryptsetup ") {
                None => drop(sandbox.volume(&command)),
                Some(theirs) if cryptsetup(&sandbox, theirs).is_none() => continue,
                Some(_) => {}
            }
        }
        let mut image = sandbox.read("v");
        (case.damage)(&mut image);
        sandbox.write("v", &image);
        let place = format!("{} of {}", case.name, case.kind);
        let restore = "header restore v --input saved";
        let said = match case.asks {
            None => ends(&sandbox, 0, restore),
            Some(word) => {
                let said = sandbox.refused(4, "v", restore);
                assert!(said.contains(word), "{place}: {said}");
                ends(&sandbox, 0, &format!("{restore} --yes"))
            }
        };
        let saved = sandbox.read("saved");
        assert!(sandbox.read("v").starts_with(&saved), "{place}");
        assert!(
            sandbox.read("v")[saved.len()..] == image[saved.len()..],
            "{place}"
        );
        assert!(opens(&sandbox, "v", "one"), "{place}: {said}");
    }
}

/// Who was locked out comes in again, which is said.
#[test]
fn a_key_that_comes_back_is_said() {
    let sandbox = sandbox();
    create(&sandbox, "v", "luks2");
    sandbox.volume(&format!(
        "key add v {CHEAP} --key-file one --new-key-file two"
    ));
    sandbox.volume("header backup v --output saved");
    sandbox.volume("key kill v --key-file two");
    assert!(!opens(&sandbox, "v", "two"));
    let said = ends(&sandbox, 0, "header restore v --input saved");
    assert!(
        said.contains("key slot 1 at that time opens the volume again"),
        "{said}"
    );
    assert!(opens(&sandbox, "v", "two"));
}

/// Headers that no program writes: no panic, and nothing without bound.
#[test]
fn small_and_huge_headers_of_luks1() {
    let sandbox = sandbox();
    create(&sandbox, "v", "luks1");
    let mut tiny = sandbox.read("v")[..8192].to_vec();
    tiny[104..108].copy_from_slice(&2_u32.to_be_bytes());
    tiny[208..212].copy_from_slice(&0xdead_u32.to_be_bytes());
    sandbox.write("tiny", &tiny);
    let output = sandbox
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
    sandbox.write("huge", &huge);
    let output = sandbox
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
    let sandbox = sandbox();
    for kind in ["luks1", "luks2"] {
        create(&sandbox, kind, kind);
        sandbox.volume(&format!("header backup {kind} --output {kind}.saved"));
        let said = ends(&sandbox, 0, &format!("open {kind}.saved --key-file one"));
        assert!(
            said.contains("sound") && said.contains("without data"),
            "{said}"
        );
        ends(&sandbox, 3, &format!("open {kind}.saved --key-file two"));
        let mut cut = sandbox.read(format!("{kind}.saved"));
        cut.truncate(100 << 10);
        sandbox.write("cut", &cut);
        ends(&sandbox, 2, "open cut --key-file one");
    }
}
