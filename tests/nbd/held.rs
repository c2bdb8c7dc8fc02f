//! A volume on an export is held as one in a file is, whatever the URI is like.

use crate::desk::{Desk, Kind};
use std::fs;

#[test]
fn what_is_served_for_writing_is_in_use() {
    let desk = Desk::new();
    desk.file("disk", 20);
    let _back = Kind::Ours.start(&desk);
    let place = "nbd+unix:///?socket=back";
    desk.create(place);
    fs::write(desk.path("input"), [1; 512]).unwrap();
    fs::create_dir(desk.path("b")).unwrap();
    fs::hard_link(desk.path("back"), desk.path("link")).unwrap();
    let serve = "--passphrase-file line --nbd front";
    desk.run(
        crate::desk::PROGRAM,
        &format!("volume serve {place} {serve} --daemon"),
    );
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
            let output = desk.try_to(&format!("volume {command}"));
            if output.status.code() != Some(4) {
                wrong.push(format!("{command}: {output:?}"));
                let other = desk.path("other");
                desk.try_to(&format!("volume umount {}", other.display()));
            }
        }
    }
    let open = desk.try_to(&format!("volume open {place} --passphrase-file line"));
    desk.run(
        crate::desk::PROGRAM,
        &format!("volume umount {}", desk.path("front").display()),
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(open.status.success(), "{open:?}");
    // Then it is free.
    desk.run(
        crate::desk::PROGRAM,
        &format!("volume import {place} --passphrase-file line --input input --yes"),
    );
}
