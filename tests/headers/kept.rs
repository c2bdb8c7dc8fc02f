//! The header of before is kept by whatever changes one.

use crate::sandbox::{all_kept, create, ends, kept, opens, sandbox, text};
use std::fs;
use testkit::{CHEAP, Expect as _, Sandbox};

const V: &str = "--type veracrypt --veracrypt-pim 1 --hash sha512";

/// A volume, and a command that changes its header.
const CHANGES: [(&str, &str, &str); 16] = [
    (
        "luks2",
        "passwd",
        "passwd v CHEAP --key-file one --new-key-file two",
    ),
    (
        "luks1",
        "passwd",
        "passwd v CHEAP --key-file one --new-key-file two",
    ),
    (
        "luks2",
        "key-add",
        "key add v CHEAP --key-file one --new-key-file two",
    ),
    (
        "luks1",
        "key-add",
        "key add v CHEAP --key-file one --new-key-file two",
    ),
    ("luks2", "key-kill", "key kill v --key-slot 0 --yes"),
    ("luks1", "key-kill", "key kill v --key-slot 0 --yes"),
    ("luks2", "set", "header set v --label x"),
    ("luks1", "set", "header set v --uuid random"),
    ("luks2", "resize", "resize v --to 24MiB"),
    (
        "luks2",
        "reencrypt",
        "reencrypt v CHEAP --key-file one --no-progress",
    ),
    (
        "luks2",
        "reencrypt",
        "reencrypt v --decrypt --key-file one --no-progress",
    ),
    ("luks1", "convert", "convert v --type luks2"),
    ("luks2", "create", "create v CHEAP --key-file two --yes"),
    ("luks1", "create", "create v CHEAP --key-file two --yes"),
    ("luks2", "restore", "header restore v --input other --yes"),
    ("veracrypt", "create", "create v CHEAP --key-file two --yes"),
];

/// Makes `v`, and `other`, a backup of another volume's header.
fn prepare(sandbox: &Sandbox, kind: &str) {
    match kind {
        "veracrypt" => drop(sandbox.volume(&format!(
            "create v {V} --size 20MiB --quick --no-progress --key-file one"
        ))),
        _ => create(sandbox, "v", kind),
    }
    create(sandbox, "other-volume", "luks2");
    sandbox.volume("header backup other-volume --output other");
    assert!(
        all_kept(sandbox).is_empty(),
        "a new file has no header to keep"
    );
}

fn whole(command: &str) -> String {
    command.replace("CHEAP", CHEAP).replace("VERA", V)
}

#[test]
fn each_change_keeps_the_header_and_it_comes_back() {
    for (kind, reason, command) in CHANGES {
        let sandbox = sandbox();
        prepare(&sandbox, kind);
        let command = whole(command);
        sandbox.volume(&command);
        let kept = all_kept(&sandbox);
        assert_eq!(kept.len(), 1, "{kind}: {command}: {kept:?}");
        let name = kept[0].file_name().unwrap().to_str().unwrap();
        assert!(name.contains(&format!("_{reason}.")), "{command}: {name}");
        private(&sandbox);
        let list = ends(&sandbox, 0, "header backups v");
        // What is offered fits the data of now.
        let offered = match command.starts_with("reencrypt")
            && !command.contains("--decrypt")
            && kind == "luks2"
        {
            true => "(another key)",
            false => "header restore v",
        };
        assert!(list.contains(name) && list.contains(offered), "{list}");

        // With it, what opened the volume opens it again.
        if command.contains("--decrypt") {
            continue;
        }
        let (options, opened) = match kind {
            "veracrypt" => (
                format!("{V} --key-file one"),
                format!("open v {V} --key-file one"),
            ),
            _ => (String::new(), "open v --key-file one".to_owned()),
        };
        let saved = kept[0].display();
        sandbox.volume(&format!("header restore v {options} --input {saved} --yes"));
        sandbox.volume(&opened);
    }
}

/// Nobody else may read them.
#[cfg(unix)]
fn private(sandbox: &Sandbox) {
    use std::os::unix::fs::PermissionsExt;
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&kept(sandbox)), 0o700);
    for file in all_kept(sandbox) {
        assert_eq!(mode(&file), 0o600);
    }
}

#[cfg(not(unix))]
fn private(_: &Sandbox) {}

#[test]
fn nothing_is_kept_where_nothing_is_to_be() {
    for (kind, _, command) in CHANGES {
        let sandbox = sandbox();
        prepare(&sandbox, kind);
        sandbox.volume(&format!("{} --no-header-backup", whole(command)));
        assert!(all_kept(&sandbox).is_empty(), "{kind}: {command}");
    }
    let sandbox = sandbox();
    prepare(&sandbox, "luks2");
    for command in [
        "info v",
        "open v --key-file one",
        "header backup v --output saved",
        "header backups v",
        "export v --key-file one --output plain --no-progress",
    ] {
        sandbox.volume(command);
        assert!(all_kept(&sandbox).is_empty(), "{command}");
    }
}

/// Without room for the old header, there is no new one.
#[cfg(unix)]
#[test]
fn what_cannot_be_kept_is_not_changed() {
    for (kind, _, command) in CHANGES {
        let sandbox = sandbox();
        prepare(&sandbox, kind);
        // A file where the folder belongs.
        sandbox.write("state", b"");
        let command = whole(command);
        let said = sandbox.refused(1, "v", &command);
        assert!(said.contains("--no-header-backup"), "{command}: {said}");
        // No home.
        sandbox
            .volume_command(&command)
            .env_remove("XDG_STATE_HOME")
            .env("HOME", "/dev/null/nowhere")
            .ends(1);
    }
}

#[test]
fn the_last_three_of_each_volume_are_left() {
    let sandbox = sandbox();
    create(&sandbox, "v", "luks2");
    create(&sandbox, "w", "luks2");
    sandbox.volume("header set w --label w");
    for label in ["a", "b", "c", "d", "e"] {
        sandbox.volume(&format!("header set v --label {label}"));
    }
    // A change that does not come about keeps nothing.
    for _ in 0..4 {
        ends(&sandbox, 3, "key kill v --key-file two");
    }
    ends(&sandbox, 3, "passwd v --key-file two --new-key-file one");
    let kept = all_kept(&sandbox);
    assert_eq!(kept.len(), 1 + 3, "{kept:?}");
    let list = ends(&sandbox, 0, "header backups v");
    assert_eq!(list.matches(" UTC ").count(), 3, "{list}");
    let labels: Vec<bool> = ["b", "c", "d"]
        .map(|label| {
            let text = |path: &std::path::PathBuf| fs::read(path).unwrap();
            kept.iter()
                .any(|path| text(path)[24..].starts_with(label.as_bytes()))
        })
        .to_vec();
    assert_eq!(labels, [true, true, true]);

    // Where the header is gone, the place tells which they are.
    let mut image = sandbox.read("v");
    image[..1 << 20].fill(0);
    sandbox.write("v", &image);
    assert_eq!(ends(&sandbox, 0, "header backups v"), list);
    let newest = kept.last().unwrap().display();
    sandbox.volume(&format!("header restore v --input {newest} --yes"));
    assert!(opens(&sandbox, "v", "one"));
}

/// A copy of an image has the same header, and its changes are none of the original's.
#[test]
fn a_copy_of_the_image_pushes_no_backup_out() {
    let sandbox = sandbox();
    create(&sandbox, "v", "luks2");
    sandbox.write("w", sandbox.read("v"));
    sandbox.volume("header set w --label w");
    sandbox.volume("header set v --label v");
    let of_both = all_kept(&sandbox);
    assert_eq!(of_both.len(), 2, "{of_both:?}");
    for label in ["a", "b", "c", "d", "e"] {
        sandbox.volume(&format!("header set w --label {label}"));
    }
    let now = all_kept(&sandbox);
    assert_eq!(now.len(), 1 + 3, "{now:?}");
    assert!(now.contains(&of_both[1]), "{now:?}");
}

/// A copy in which only the place of the hidden header differs from the volume would prove that
/// there is a hidden volume.
#[test]
fn nothing_is_kept_of_veracrypt() {
    let sandbox = sandbox();
    prepare(&sandbox, "veracrypt");
    sandbox.volume(&whole("header backup v VERA --output saved"));
    for command in [
        "passwd v VERA --key-file one --new-key-file two",
        "create v --type veracrypt --tcrypt-hidden 2MiB --outer-pim 1 --veracrypt-pim 1 --key-file two \
         --new-key-file three --yes",
        "passwd v VERA --tcrypt-hidden --key-file three --new-key-file one",
        "resize v VERA --key-file two --to 24MiB --yes",
        "header restore v VERA --key-file one --input saved --yes",
        "header repair v VERA --key-file one",
        "create v VERA --quick --no-progress --key-file two --yes",
        "reencrypt v VERA --key-file two --yes --no-progress",
    ] {
        sandbox.volume(&whole(command));
        assert!(all_kept(&sandbox).is_empty(), "{command}");
    }
}

/// A header that was replaced by one with another key may be the only one for the data.
#[test]
fn the_header_that_alone_has_the_key_stays() {
    let sandbox = sandbox();
    create(&sandbox, "v", "luks2");
    sandbox.volume("header backup v --output saved");
    sandbox.volume(&format!("reencrypt v {CHEAP} --key-file one --no-progress"));
    // It may be there already, kept by a command that changed nothing.
    sandbox.volume("header repair v");
    sandbox.volume("header restore v --input saved --yes");
    let kept = all_kept(&sandbox);
    let only = kept.last().unwrap();
    for label in ["a", "b", "c", "d", "e"] {
        sandbox.volume(&format!("header set v --label {label}"));
    }
    let all = all_kept(&sandbox);
    assert!(only.exists(), "{only:?} of {all:?}");
    assert_eq!(all.len(), 1 + 3, "{all:?}");
    sandbox.volume(&format!(
        "header restore v --input {} --yes",
        only.display()
    ));
    assert!(opens(&sandbox, "v", "one"));
    // In its place again, it counts as any other.
    for label in ["f", "g", "h", "i"] {
        sandbox.volume(&format!("header set v --label {label}"));
    }
    assert!(!only.exists());
}

#[test]
fn the_oldest_backup_can_be_restored() {
    for kind in ["luks2", "luks1"] {
        let sandbox = sandbox();
        prepare(&sandbox, kind);
        for (old, new) in [("one", "two"), ("two", "three"), ("three", "two")] {
            sandbox.volume(&format!(
                "passwd v {CHEAP} --key-file {old} --new-key-file {new}"
            ));
        }
        let kept = all_kept(&sandbox);
        assert_eq!(kept.len(), 3, "{kept:?}");
        let oldest = kept[0].display();
        let restore = format!("header restore v --input {oldest}");
        sandbox.refused(4, "v", &restore);
        assert!(kept[0].exists(), "{kind}");
        sandbox.volume(&format!("{restore} --yes"));
        sandbox.volume("open v --key-file one");
        assert!(kept[0].exists(), "{kind}: what was named is not removed");
    }
}

/// Each backup is marked by how it differs from what the volume needs now.
#[test]
fn a_backup_that_does_not_fit_is_marked() {
    let sandbox = sandbox();
    create(&sandbox, "v", "luks2");
    sandbox.volume(&format!(
        "key add v {CHEAP} --key-file one --new-key-file two"
    ));
    let good = all_kept(&sandbox)[0].display().to_string();
    // Damage is kept as well, and not proposed once it is mended.
    let mut image = sandbox.read("v");
    image[..1 << 20].fill(0xa5);
    sandbox.write("v", &image);
    ends(&sandbox, 2, "header repair v");
    sandbox.volume(&format!("header restore v --input {good} --yes"));
    let list = ends(&sandbox, 0, "header backups v");
    assert!(
        list.contains("(no header)") && !list.contains("dd if="),
        "{list}"
    );
    assert!(
        list.ends_with(&format!("header restore v --input {good}\n")),
        "{list}"
    );
    // The volume that was there before is named as such.
    sandbox.volume(&format!("create v {CHEAP} --key-file two --yes"));
    let list = ends(&sandbox, 0, "header backups v");
    assert!(list.contains("(another volume)"), "{list}");
    assert!(
        list.contains("restores the volume that was there before"),
        "{list}"
    );
    // One that was moved and lost its header may be any of them.
    sandbox.write("moved", vec![0; 20 << 20]);
    let list = ends(&sandbox, 0, "header backups moved");
    assert!(
        list.contains("if it was moved") && list.contains(&good),
        "{list}"
    );
}

/// A full disk: no file, whole or in part.
#[cfg(unix)]
#[test]
fn a_full_disk_leaves_nothing_behind() {
    let sandbox = sandbox();
    create(&sandbox, "v", "luks2");
    let before = sandbox.read("v");
    let folder = || {
        let entries = fs::read_dir(sandbox.path("")).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let files = folder();
    for (command, word) in [
        ("header backup v --output saved", "more room"),
        ("header set v --label x", "--no-header-backup"),
        (
            "passwd v --key-file one --new-key-file two",
            "--no-header-backup",
        ),
    ] {
        let program = env!("CARGO_BIN_EXE_cryptmark");
        // A file of more than 16 blocks fails as it does on a full disk.
        let script = format!("trap '' XFSZ; ulimit -f 16; exec {program} volume {command}");
        let output = sandbox.command("sh", "-c").arg(script).output().unwrap();
        let said = text(&output);
        assert_eq!(output.status.code(), Some(1), "{command}: {said}");
        assert!(said.contains(word), "{command}: {said}");
        assert!(sandbox.read("v") == before, "{command}");
        let left = folder();
        let new: Vec<_> = left.iter().filter(|name| !files.contains(name)).collect();
        assert!(
            new.iter().all(|name| *name == "state"),
            "{command}: {new:?}"
        );
        assert!(all_kept(&sandbox).is_empty(), "{command}");
    }
}

#[test]
fn who_removes_a_key_hears_of_the_backup() {
    let sandbox = sandbox();
    create(&sandbox, "v", "luks2");
    sandbox.volume(&format!(
        "key add v {CHEAP} --key-file one --new-key-file two"
    ));
    let said = ends(&sandbox, 0, "key kill v --key-file two");
    assert!(said.contains("still opens the backup"), "{said}");
    let said = ends(
        &sandbox,
        0,
        &format!("passwd v {CHEAP} --key-file one --new-key-file three --no-header-backup"),
    );
    assert!(!said.contains("backup"), "{said}");
}
