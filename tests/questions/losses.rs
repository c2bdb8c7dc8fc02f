//! Every kind of content against every command that would write over it.

use super::states::{ext4, file};
use super::{nothing_wrong, refused, run, sandbox};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use testkit::{CHEAP, Sandbox};

const SIZE: u64 = 24 << 20;
const MIB: u64 = 1 << 20;

/// A kind of content: how it is called here, how the refusal has to name it, and whether
/// it has a signature.
struct Kind {
    name: &'static str,
    words: &'static [&'static str],
    named: bool,
    pieces: Vec<(u64, Vec<u8>)>,
}

fn kinds() -> Vec<Kind> {
    let kind = |name, words, named, pieces: &[(u64, &[u8])]| Kind {
        name,
        words,
        named,
        pieces: pieces
            .iter()
            .map(|(at, bytes)| (*at, bytes.to_vec()))
            .collect(),
    };
    let ext4 = ext4();
    let entry = [0x80, 0, 1, 0, 0x83, 0, 0, 0, 0, 8, 0, 0, 0, 8, 0, 0];
    vec![
        kind(
            "ext4",
            &["an ext4 file system \"letters\""],
            true,
            &[(0, &ext4)],
        ),
        // A GPT that is gone, and the partition behind it.
        kind(
            "zapped-gpt",
            &["an ext4 file system \"letters\" at byte 1048576"],
            true,
            &[(MIB, &ext4)],
        ),
        kind(
            "at-16",
            &["an ext4 file system", "at byte 16777216"],
            true,
            &[(16 * MIB, &ext4)],
        ),
        kind(
            "vmfs",
            &["a VMFS volume"],
            true,
            &[(MIB, b"\x0d\xd0\x01\xc0")],
        ),
        kind(
            "gpt-backup",
            &["the backup of a GPT"],
            true,
            &[(SIZE - 512, b"EFI PART")],
        ),
        kind(
            "mbr",
            &["an MBR partition table"],
            true,
            &[(446, &entry), (510, b"\x55\xaa")],
        ),
        kind(
            "md",
            &["software RAID"],
            true,
            &[(SIZE - 8192, b"\xfc\x4e\x2b\xa9")],
        ),
        kind("vdo", &["a VDO volume"], true, &[(0, b"dmvdo001")]),
        kind(
            "lvm1",
            &["an LVM1 physical volume"],
            true,
            &[(0, b"HM\x01\0")],
        ),
        kind(
            "stratis",
            &["a Stratis pool"],
            true,
            &[(0x204, b"!Stra0tis\x86\xff\x02^\x41rh")],
        ),
        kind(
            "bluestore",
            &["a Ceph BlueStore"],
            true,
            &[(0, b"bluestore block device")],
        ),
        kind(
            "drbd",
            &["a DRBD device"],
            true,
            &[(SIZE - 4036, b"\x83\x74\x02\x6b")],
        ),
        kind("zip", &["a ZIP archive"], true, &[(0, b"PK\x03\x04")]),
        kind("first-byte", &["data from byte 0 on"], false, &[(0, b"x")]),
        kind(
            "middle",
            &["data from byte 9000000 on"],
            false,
            &[(9_000_000, b"x")],
        ),
        kind(
            "from-16",
            &["data from byte 16777216 on"],
            false,
            &[(16 * MIB, &[7; 4096])],
        ),
        kind(
            "last-byte",
            &["data from byte 25165823 on"],
            false,
            &[(SIZE - 1, b"x")],
        ),
    ]
}

fn hold(sandbox: &Sandbox, kind: &Kind) {
    let pieces: Vec<(u64, &[u8])> = kind
        .pieces
        .iter()
        .map(|(at, bytes)| (*at, bytes.as_slice()))
        .collect();
    file(sandbox, "x", SIZE, &pieces);
}

/// Commands that write over all of `x`, whatever it holds.
fn overwriting() -> Vec<String> {
    vec![
        format!("create x --passphrase-file pass {CHEAP}"),
        format!("create x --type luks1 --passphrase-file pass --pbkdf-force-iterations 1000"),
        format!("create fresh --size 24M --header x --passphrase-file pass {CHEAP}"),
        "create x --type veracrypt --veracrypt-pim 1 --quick --hash sha512 --passphrase-file pass"
            .into(),
        "create x --type tcrypt --quick --passphrase-file pass".into(),
        "create x --type plain".into(),
        "export small --passphrase-file pass -o x".into(),
    ]
}

/// Commands that encrypt into `x`, which is noise if it is a volume.
fn encrypting() -> Vec<String> {
    vec![
        "import x --type plain --passphrase-file pass -i letter".into(),
        "import x --type cryptoloop --passphrase-file pass -i letter".into(),
        "import x --type loopaes --key-file key64 -i letter".into(),
        "import x --header detached --passphrase-file pass -i letter".into(),
    ]
}

/// A sandbox with a small volume, a detached header, key files and something to import.
fn prepared() -> Sandbox {
    let sandbox = sandbox();
    sandbox.write("letter", [b'l'; 4096]);
    let lines: String = (0..64).map(|line| format!("{line:032}\n")).collect();
    sandbox.write("key64", lines);
    sandbox.volume(&format!(
        "create small --size 17M --passphrase-file pass {CHEAP}"
    ));
    sandbox.volume(&format!(
        "create away --size 24M --header detached --passphrase-file pass {CHEAP}"
    ));
    sandbox
}

#[test]
fn nothing_is_overwritten_unasked() {
    let sandbox = prepared();
    let mut wrong = Vec::new();
    for kind in kinds() {
        let mut commands = overwriting();
        if kind.named {
            commands.extend(encrypting());
        }
        for command in commands {
            hold(&sandbox, &kind);
            let of = format!("{}: ", kind.name);
            let refused = refused(&sandbox, &command, b"", 4, kind.words);
            wrong.extend(refused.into_iter().map(|wrong| of.clone() + &wrong));
        }
    }
    nothing_wrong(&wrong);
}

#[test]
fn who_confirms_gets_it_done() {
    let sandbox = prepared();
    let mut kinds = kinds();
    kinds.retain(|kind| ["ext4", "from-16"].contains(&kind.name));
    assert_eq!(kinds.len(), 2);
    let mut wrong = Vec::new();
    for command in overwriting().into_iter().chain(encrypting()) {
        for kind in &kinds {
            hold(&sandbox, kind);
            let _ = fs::remove_file(sandbox.path("fresh"));
            let before = sandbox.read("x");
            let answer = run(&sandbox, &format!("{command} --yes"), b"");
            if answer.code != Some(0) || sandbox.read("x") == before {
                wrong.push(format!("{}: {command}: {answer:?}", kind.name));
            }
        }
    }
    nothing_wrong(&wrong);
}

#[test]
fn a_luks_volume_is_told_by_name_and_key_slots() {
    let sandbox = prepared();
    let uuid = "b0a4c2e6-3f5d-4a1b-9c8e-7d6f5a4b3c2d";
    let mut wrong = Vec::new();
    for kind in ["luks1", "luks2"] {
        let _ = fs::remove_file(sandbox.path("x"));
        let label = if kind == "luks2" { "--label home" } else { "" };
        sandbox.volume(&format!(
            "create x --size 24M --type {kind} --uuid {uuid} {label} --passphrase-file pass {CHEAP}"
        ));
        sandbox.volume(&format!(
            "key add x --passphrase-file pass --new-passphrase-file other --new-key-slot 3 {CHEAP}"
        ));
        for command in overwriting().into_iter().chain(encrypting()) {
            wrong.extend(refused(
                &sandbox,
                &command,
                b"",
                4,
                &[uuid, "key slots 0, 3"],
            ));
        }
    }
    nothing_wrong(&wrong);
}

#[test]
fn what_a_volume_holds_inside_is_asked_for() {
    let sandbox = prepared();
    file(&sandbox, "ext4", 64 << 10, &[(0, &ext4())]);
    let mut wrong = Vec::new();
    for (make, open) in [
        (
            format!("create v --size 20M --passphrase-file pass {CHEAP}"),
            "",
        ),
        (
            "create v --size 4M --type veracrypt --veracrypt-pim 1 --quick --passphrase-file pass"
                .into(),
            "--type veracrypt --veracrypt-pim 1 --hash sha512",
        ),
        ("create v --size 4M --type plain".into(), "--type plain"),
    ] {
        let _ = fs::remove_file(sandbox.path("v"));
        sandbox.volume(&make);
        let import = format!("import v {open} --passphrase-file pass -i");
        // The noise of a volume without a header is asked for as well.
        sandbox.volume(&format!("{import} ext4 --yes"));
        let again = format!("{import} letter");
        wrong.extend(refused(
            &sandbox,
            &again,
            b"",
            4,
            &["ext4 file system \"letters\""],
        ));
        sandbox.volume(&format!("{again} --yes"));
    }
    nothing_wrong(&wrong);
}

#[test]
fn what_is_no_noise_is_no_volume_without_a_header() {
    let sandbox = prepared();
    let text = b"Dear reader, this is no noise. ".repeat(200);
    let mut wrong = Vec::new();
    for place in [0, 5 * MIB, 20 * MIB] {
        file(&sandbox, "x", SIZE, &[(place, &text)]);
        let words = format!("x holds readable data at byte {place}, which would not be there");
        for command in encrypting() {
            wrong.extend(refused(&sandbox, &command, b"", 4, &[&words]));
        }
    }
    nothing_wrong(&wrong);
    // What is blank is nobody's.
    for command in encrypting() {
        file(&sandbox, "x", SIZE, &[]);
        sandbox.volume(&command);
        wrong.extend(refused(&sandbox, &command, b"", 4, &["x holds", "--yes"]));
        sandbox.volume(&format!("{command} --yes"));
    }
    nothing_wrong(&wrong);
}

/// Without a header, nothing says whose noise it is.
#[test]
fn noise_is_asked_for_where_no_header_is() {
    let sandbox = prepared();
    let words = &["x holds data from byte ", "encrypted data looks like this"];
    sandbox.volume(
        "create x --size 24M --type veracrypt --veracrypt-pim 1 --quick --passphrase-file other",
    );
    let mut wrong = Vec::new();
    for command in encrypting()
        .iter()
        .filter(|line| !line.contains("--header"))
    {
        wrong.extend(refused(&sandbox, command, b"", 4, words));
    }
    // A volume with a file system in it, under another passphrase.
    let _ = fs::remove_file(sandbox.path("x"));
    file(&sandbox, "ext4", 64 << 10, &[(0, &ext4())]);
    sandbox.volume("create x --size 4M --type plain");
    sandbox.volume("import x --type plain --passphrase-file pass -i ext4 --yes");
    let import = "import x --type plain -i letter --passphrase-file";
    wrong.extend(refused(&sandbox, &format!("{import} other"), b"", 4, words));
    let named = &["ext4 file system \"letters\""];
    wrong.extend(refused(&sandbox, &format!("{import} pass"), b"", 4, named));
    nothing_wrong(&wrong);
}

#[test]
fn what_a_volume_holds_without_a_name_is_asked_for() {
    let sandbox = prepared();
    sandbox.write("diary", b"my diary, day one\n".repeat(20_000));
    let mut wrong = Vec::new();
    for (make, open) in [
        (format!("create v --size 20M {CHEAP}"), ""),
        (format!("create v --size 20M --type luks1 {CHEAP}"), ""),
        // What such a cipher makes of zeros repeats itself, and is no data.
        (
            format!("create v --size 20M --cipher aes-cbc-essiv:sha256 {CHEAP}"),
            "",
        ),
        (
            "create v --size 4M --type veracrypt --veracrypt-pim 1 --quick".into(),
            "--type veracrypt --veracrypt-pim 1 --hash sha512",
        ),
    ] {
        let _ = fs::remove_file(sandbox.path("v"));
        sandbox.volume(&format!("{make} --passphrase-file pass"));
        let import = format!("import v {open} --passphrase-file pass -i");
        sandbox.volume(&format!("{import} diary"));
        let again = format!("{import} letter");
        let words = &["the volume in v holds readable data at byte 0", "--yes"];
        wrong.extend(refused(&sandbox, &again, b"", 4, words));
        sandbox.volume(&format!("{again} --yes"));
    }
    nothing_wrong(&wrong);
}

/// What only shows when the new header is made.
#[test]
fn what_cannot_be_created_leaves_what_was_there() {
    let sandbox = sandbox();
    sandbox.volume(&format!(
        "create x --size 20M --passphrase-file pass {CHEAP}"
    ));
    let long = "n".repeat(60);
    let mut wrong = Vec::new();
    for (code, options) in [
        (2, format!("{CHEAP} --offset 100G")),
        (2, format!("{CHEAP} --offset 1")),
        (2, format!("{CHEAP} --offset 40960")),
        // There is room for headers, and for no key slot.
        (2, format!("{CHEAP} --offset 128")),
        (2, format!("{CHEAP} --label {long}")),
        (2, format!("{CHEAP} --subsystem {long}")),
        (4, format!("{CHEAP} --type luks1 --offset 8")),
        (4, format!("{CHEAP} --type luks1 --offset 1")),
        (2, format!("{CHEAP} --type luks1 --offset 8G")),
        (
            2,
            "--type veracrypt --veracrypt-pim 1 --quick --cipher des".into(),
        ),
        (
            2,
            "--type veracrypt --quick --veracrypt-pim 99999999".into(),
        ),
        (2, "--type tcrypt --quick --cipher camellia".into()),
    ] {
        let line = format!("create x --yes --passphrase-file other {options}");
        wrong.extend(refused(&sandbox, &line, b"", code, &[]));
    }
    nothing_wrong(&wrong);
    sandbox.volume("open x --passphrase-file pass");
}

#[test]
fn shrinking_says_what_is_cut_off() {
    let sandbox = prepared();
    let wanted = &["the last 524288 bytes", "from byte 17301504 on"];
    let wrong = refused(&sandbox, "resize small --to 16896K", b"", 4, wanted);
    nothing_wrong(&wrong);
    let answer = run(&sandbox, "resize small --to 99999999TiB", b"");
    assert_eq!(answer.code, Some(2));
    assert!(
        !answer.said.contains("18446744073709551615"),
        "{}",
        answer.said
    );
    sandbox.volume("resize small --to 16896K --yes");
}

#[test]
fn a_hidden_volume_is_made_only_where_the_user_says_that_there_is_none() {
    let sandbox = prepared();
    sandbox.volume(
        "create v --size 4M --type veracrypt --veracrypt-pim 1 --quick --passphrase-file pass",
    );
    let create = "create v --type veracrypt --veracrypt-pim 1 --outer-pim 1 --tcrypt-hidden 1M --passphrase-file pass \
                  --new-passphrase-file";
    let mut wrong = refused(
        &sandbox,
        &format!("{create} other"),
        b"",
        4,
        &["hidden volume, which would be destroyed"],
    );
    // With what opens the outer one it could never be opened.
    wrong.extend(refused(
        &sandbox,
        &format!("{create} pass --yes"),
        b"",
        2,
        &["outer one"],
    ));
    sandbox.volume(&format!("{create} other --yes"));
    wrong.extend(refused(
        &sandbox,
        &format!("{create} other"),
        b"",
        4,
        &["hidden volume, which would be destroyed"],
    ));
    nothing_wrong(&wrong);
    sandbox.volume("open v --type veracrypt --veracrypt-pim 1 --hash sha512 --tcrypt-hidden --passphrase-file other");
}

#[test]
fn key_material_of_a_replaced_volume_is_gone() {
    let sandbox = sandbox();
    for (old, new) in [
        ("luks2", format!("--type luks2 {CHEAP}")),
        ("luks1", format!("--type luks2 {CHEAP}")),
        ("luks2", "--type luks1 --pbkdf-force-iterations 1000".into()),
        ("luks2", "--type veracrypt --veracrypt-pim 1 --quick".into()),
    ] {
        let _ = fs::remove_file(sandbox.path("x"));
        sandbox.volume(&format!(
            "create x --size 24M --type {old} --passphrase-file pass {CHEAP}"
        ));
        for slot in 1..6 {
            sandbox.volume(&format!(
                "key add x --passphrase-file pass --new-passphrase-file other --new-key-slot {slot} {CHEAP}"
            ));
        }
        let before = sandbox.read("x");
        sandbox.volume(&format!("create x --yes --passphrase-file other {new}"));
        let after = sandbox.read("x");
        let sectors = before.chunks(512).zip(after.chunks(512));
        let kept = sectors
            .filter(|(before, after)| before == after && before.iter().any(|&byte| byte != 0))
            .count();
        assert_eq!(kept, 0, "sectors of {old} under {new}");
    }
}

#[test]
fn new_files_are_their_owners_and_go_again_on_failure() {
    let sandbox = sandbox();
    let created: [(String, &[&str]); 3] = [
        (
            format!("create x --size 24M --header h --passphrase-file pass {CHEAP}"),
            &["x", "h"],
        ),
        (
            "create x --size 4M --type veracrypt --veracrypt-pim 1 --quick --passphrase-file pass"
                .into(),
            &["x"],
        ),
        ("create x --size 4M --type plain".into(), &["x"]),
    ];
    for (command, names) in created {
        sandbox.volume(&command);
        for name in names {
            let mode = fs::metadata(sandbox.path(name))
                .unwrap()
                .permissions()
                .mode();
            assert_eq!(mode & 0o777, 0o600, "{command}: {name}");
            fs::remove_file(sandbox.path(name)).unwrap();
        }
    }
    let failing = [
        (
            2,
            format!("create x --size 24M --header h --passphrase-file missing {CHEAP}"),
        ),
        (
            2,
            format!("create x --size 24M -c cipher_null-ecb --yes --passphrase-file pass {CHEAP}"),
        ),
        (
            2,
            format!("create x --size 24M --uuid hello --passphrase-file pass {CHEAP}"),
        ),
        (
            2,
            format!("create x --size 24M --header x --passphrase-file pass {CHEAP}"),
        ),
        (
            2,
            format!("create x --size 24M --header ./x --passphrase-file pass {CHEAP}"),
        ),
        (
            2,
            "create x --size 24M --pbkdf-memory 16 --passphrase-file pass".into(),
        ),
        (
            2,
            "create x --size 24M --pbkdf-parallel 8 --passphrase-file pass".into(),
        ),
        (
            2,
            "create x --size 24M --type veracrypt --passphrase-file missing".into(),
        ),
        (
            4,
            "create x --size 24M --type veracrypt --veracrypt-pim 5 --passphrase-file short".into(),
        ),
    ];
    sandbox.write("short", "too short for it\n");
    let mut wrong = Vec::new();
    for (code, command) in failing {
        wrong.extend(refused(&sandbox, &command, b"", code, &[]));
    }
    nothing_wrong(&wrong);
}

#[test]
fn input_that_reaches_a_protected_volume_is_refused_before_it_is_written() {
    const BEFORE: usize = 2_879_488;
    let sandbox = sandbox();
    sandbox.volume(
        "create v --size 4M --type veracrypt --veracrypt-pim 1 --quick --passphrase-file pass",
    );
    sandbox.volume(
        "create v --type veracrypt --veracrypt-pim 1 --outer-pim 1 --tcrypt-hidden 1M --passphrase-file pass \
         --new-passphrase-file other --yes",
    );
    let import = "import v --type veracrypt --veracrypt-pim 1 --hash sha512 --passphrase-file pass --yes \
                  --protect-hidden --protection-pim 1 --protection-passphrase-file other -i";
    let input = vec![b'l'; BEFORE + 1];
    sandbox.write("long", &input);
    sandbox.write("fits", &input[..BEFORE]);
    let words = &["would reach the hidden volume in v", "2879488 bytes before"];
    let wrong = refused(&sandbox, &format!("{import} long"), b"", 4, words);
    nothing_wrong(&wrong);
    sandbox.volume(&format!("{import} fits"));
    // How long a pipe is shows too late: what was lost is said.
    let answer = run(&sandbox, &format!("{import} -"), &input);
    assert_eq!(answer.code, Some(4), "{}", answer.said);
    let said = ["reaches the hidden volume in v", "bytes had been written"];
    for words in said {
        assert!(answer.said.contains(words), "{}", answer.said);
    }
    sandbox.volume("open v --type veracrypt --veracrypt-pim 1 --hash sha512 --tcrypt-hidden --passphrase-file other");
}

#[test]
fn a_hidden_volume_is_protected_while_the_outer_one_is_served() {
    let sandbox = sandbox();
    sandbox.volume(
        "create v --size 8M --type veracrypt --veracrypt-pim 1 --quick --passphrase-file pass",
    );
    sandbox.volume(
        "create v --type veracrypt --veracrypt-pim 1 --outer-pim 1 --tcrypt-hidden 1M --passphrase-file pass \
         --new-passphrase-file other --yes",
    );
    let hidden = "v --type veracrypt --veracrypt-pim 1 --hash sha512 --tcrypt-hidden --passphrase-file other";
    file(&sandbox, "secret", 1 << 20, &[(0, &[b's'; 4096])]);
    sandbox.volume(&format!("import {hidden} -i secret"));
    fs::create_dir(sandbox.path("d")).unwrap();
    let serving = "--type veracrypt --veracrypt-pim 1 --hash sha512 --passphrase-file pass \
                   --protect-hidden --protection-pim 1 --protection-passphrase-file other --daemon";
    let fuse = fs::File::options().read(true).write(true).open("/dev/fuse");
    if let Err(error) = fuse {
        println!("skipped: mounts: /dev/fuse: {error}");
        return;
    }
    sandbox.volume(&format!("mount v d --as file {serving}"));
    let written = fs::write(sandbox.path("d/volume"), vec![b'x'; 7 << 20]);
    let ended = run(&sandbox, "umount v", b"");
    sandbox.volume(&format!("export {hidden} -o out"));
    assert!(written.is_err(), "what would destroy it is refused");
    assert!(ended.code.is_some());
    assert_eq!(sandbox.read("out"), sandbox.read("secret"));
    // A protection that cannot be had is no serving without it.
    sandbox.write("wrong", "wrong\n");
    let serving = serving.replace("-file other", "-file wrong");
    for command in ["mount v d --as file", "serve v --fuse seen"] {
        let answer = run(&sandbox, &format!("{command} {serving}"), b"");
        assert_eq!(answer.code, Some(3), "{command}: {}", answer.said);
    }
}

/// What is not written reads as before, to the byte, whether it was ever written or not.
#[test]
fn an_import_changes_no_byte_behind_its_input() {
    let sandbox = sandbox();
    sandbox.volume(&format!(
        "create v --size 24M --sector-size 4096 --passphrase-file pass {CHEAP}"
    ));
    let open = "v --passphrase-file pass";
    sandbox.volume(&format!("export {open} -o before"));
    let mut expected = sandbox.read("before");
    for (how, length) in [
        ("-i input", 4096 * 5 + 100),
        ("-i input --yes", 4096 * 9 + 512),
        ("-i - --yes", 4096 * 3 + 1),
        ("-i - --yes", 4096 * 11 + 7),
    ] {
        let input = vec![b'x'; length];
        sandbox.write("input", &input);
        let line = format!("import {open} {how}");
        let answer = run(&sandbox, &line, &input);
        assert_eq!(answer.code, Some(0), "{line}: {}", answer.said);
        expected[..length].copy_from_slice(&input);
        sandbox.volume(&format!("export {open} -o after --yes"));
        let after = sandbox.read("after");
        let differs = expected.iter().zip(&after).position(|(a, b)| a != b);
        assert_eq!((differs, expected.len()), (None, after.len()), "{line}");
    }
}
