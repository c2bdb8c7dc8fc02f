//! A volume on an export is held as one in a file is, whatever the URI is like.

use crate::sandbox::{Kind, MIB, create, sandbox, start};
use std::fs;
use std::process::{Child, Stdio};

#[test]
fn what_is_served_for_writing_is_in_use() {
    let sandbox = sandbox();
    sandbox.write_zeros("disk", 20 * MIB);
    let _back = Kind::Ours.start(&sandbox);
    let place = "nbd+unix:///?socket=back";
    create(&sandbox, place);
    sandbox.write("input", [1; 512]);
    fs::create_dir(sandbox.path("b")).unwrap();
    fs::hard_link(sandbox.path("back"), sandbox.path("link")).unwrap();
    let serve = "--passphrase-file line --nbd front";
    sandbox.ok(&format!("volume serve {place} {serve} --daemon"));
    let cheap = "--pbkdf pbkdf2 --pbkdf-force-iterations 1000";
    let mut wrong = Vec::new();
    for socket in ["back", "b/../back", "link"] {
        let place = format!("nbd+unix:///?socket={socket}");
        for command in [
            format!("import {place} --passphrase-file line --input input --yes"),
            format!("export {place} --passphrase-file line --output out"),
            format!("passwd {place} --passphrase-file line --new-passphrase-file line {cheap}"),
            format!("header set {place} --label taken"),
            format!("create {place} --passphrase-file line --yes {cheap}"),
            format!("serve {place} --passphrase-file line --nbd other --daemon"),
            format!("serve {place} --passphrase-file line --nbd other --read-only --daemon"),
        ] {
            let output = sandbox.run(&format!("volume {command}"));
            if output.status.code() != Some(4) {
                wrong.push(format!("{command}: {output:?}"));
                let other = sandbox.path("other");
                sandbox.run(&format!("volume umount {}", other.display()));
            }
        }
    }
    for command in [
        format!("run --at {place} --yes --quick --no-progress"),
        format!("drive fit --at {place} --yes --size 128MB --no-progress"),
    ] {
        let output = sandbox.run(&command);
        let said = String::from_utf8_lossy(&output.stderr);
        if output.status.code() != Some(4) || !said.contains("in use") {
            wrong.push(format!("{command}: {output:?}"));
        }
    }
    let open = sandbox.run(&format!("volume open {place} --passphrase-file line"));
    sandbox.ok(&format!(
        "volume umount {}",
        sandbox.path("front").display()
    ));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(open.status.success(), "{open:?}");
    // Then it is free.
    sandbox.ok(&format!(
        "volume import {place} --passphrase-file line --input input --yes"
    ));
}

/// A server gives its first export, or its only one, without a name as well.
#[test]
fn an_export_is_in_use_by_its_other_name_too() {
    let sandbox = sandbox();
    for name in ["x", "y"] {
        sandbox.write_zeros(name, 20 * MIB);
    }
    let serve = "volume serve x y --type plain --cipher cipher_null-ecb --passphrase-file line";
    let back = sandbox.cryptmark(&format!("{serve} --nbd back"));
    let _back = start(back, &sandbox.path("back"));
    let [nameless, first, second] = ["", "x", "y"].map(|name| {
        let place = format!("nbd+unix:///{name}?socket=back");
        if !name.is_empty() {
            create(&sandbox, &place);
        }
        place
    });
    sandbox.write("input", [1; 512]);
    let write = |place: &str| {
        format!("volume import {place} --passphrase-file line --input input --yes --no-progress")
    };
    let read = |place: &str| {
        format!("volume export {place} --passphrase-file line --output - --no-progress")
    };
    let mut wrong = Vec::new();
    for (served, how, command, code) in [
        (&first, "", write(&nameless), 4),
        (&first, "", read(&nameless), 4),
        (&first, "", write(&second), 0),
        (&first, "--read-only", write(&nameless), 4),
        (&first, "--read-only", read(&nameless), 0),
        (&first, "--read-only", write(&second), 0),
        (&nameless, "", write(&first), 4),
        (&nameless, "", read(&first), 4),
        (&nameless, "--read-only", write(&first), 4),
        (&nameless, "--read-only", read(&first), 0),
    ] {
        let front = format!("{served} {how} --passphrase-file line --nbd front --daemon");
        sandbox.ok(&format!("volume serve {front}"));
        let output = sandbox.run(&command);
        let front = sandbox.path("front");
        sandbox.ok(&format!("volume umount {}", front.display()));
        if output.status.code() != Some(code) {
            let said = String::from_utf8_lossy(&output.stderr);
            wrong.push(format!("{served} {how}: {command}: not {code}: {said}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// As in a file: who changes a header is waited for.
#[test]
fn keys_are_added_to_an_export_at_once() {
    let sandbox = sandbox();
    sandbox.write_zeros("disk", 20 * MIB);
    let _back = Kind::Ours.start(&sandbox);
    let place = "nbd+unix:///?socket=back";
    create(&sandbox, place);
    let add = |key: &str| -> Child {
        sandbox.write(key, key);
        let add = format!(
            "volume key add {place} --passphrase-file line --new-key-file {key} --pbkdf pbkdf2 \
             --pbkdf-force-iterations 3000000"
        );
        let mut command = sandbox.cryptmark(&add);
        command.stderr(Stdio::piped()).spawn().unwrap()
    };
    for child in ["one", "two", "three"].map(add) {
        let ended = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(0), "{said}");
    }
}
