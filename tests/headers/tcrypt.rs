//! VeraCrypt: two headers that look like noise, and which of them are mended.

use crate::sandbox::{create, ends, sandbox, spoil};
use testkit::Sandbox;

const V: &str = "--type veracrypt --veracrypt-pim 1 --hash sha512";
const SIZE: usize = 2 << 20;
const COPIES: usize = SIZE - (128 << 10);

/// A volume with a hidden one in it: `one` and `two` open them.
fn volumes() -> Sandbox {
    let sandbox = sandbox();
    sandbox.volume(&format!(
        "create v {V} --size 2MiB --quick --no-progress --key-file one"
    ));
    sandbox.volume(&format!(
        "create v {V} --tcrypt-hidden 512KiB --outer-pim 1 --key-file one --new-key-file two --no-progress --yes"
    ));
    sandbox
}

fn opens(sandbox: &Sandbox, secret: &str) -> [i32; 2] {
    let hidden = if secret == "two" {
        "--tcrypt-hidden"
    } else {
        ""
    };
    ["", "--tcrypt-backup"].map(|copy| {
        let output = sandbox
            .volume_command(&format!("open v {V} {hidden} {copy} --key-file {secret}"))
            .output()
            .unwrap();
        output.status.code().unwrap()
    })
}

#[test]
fn whichever_is_good_mends_the_other() {
    let cases: [(&str, usize, &str); 4] = [
        ("the header", 0, "one"),
        ("its copy", COPIES, "one"),
        ("the hidden header", 64 << 10, "two"),
        ("the hidden copy", COPIES + (64 << 10), "two"),
    ];
    let sandbox = volumes();
    let sound = sandbox.read("v");
    for (name, offset, secret) in cases {
        let mut image = sound.clone();
        spoil(&mut image[offset..][..512]);
        sandbox.write("v", &image);
        let before = opens(&sandbox, secret);
        assert_eq!(before.iter().sum::<i32>(), 3, "{name}: {before:?}");
        sandbox.refused(3, "v", &format!("header repair v {V} --key-file three"));
        let said = ends(
            &sandbox,
            0,
            &format!("header repair v {V} --key-file {secret}"),
        );
        assert!(said.contains("rewritten"), "{name}: {said}");
        assert_eq!(opens(&sandbox, secret), [0, 0], "{name}");
        let after = sandbox.read("v");
        let elsewhere = |image: &[u8]| [&image[..offset], &image[offset + 512..]].concat();
        assert!(elsewhere(&after) == elsewhere(&image), "{name}");
        let said = ends(
            &sandbox,
            0,
            &format!("header repair v {V} --key-file {secret}"),
        );
        assert!(said.contains("good"), "{name}: {said}");
        assert!(
            sandbox.read("v") == after,
            "{name}: nothing is to be mended"
        );
    }
}

/// The keys are the same after a resize, and what is behind the old end has no other loss.
#[test]
fn a_backup_from_before_a_resize_is_told_by_the_size() {
    let sandbox = sandbox();
    sandbox.volume(&format!(
        "create v {V} --size 2MiB --quick --no-progress --key-file one"
    ));
    sandbox.volume("header backup v --type veracrypt --output saved");
    sandbox.volume(&format!("resize v {V} --to 3MiB --key-file one"));
    let restore = format!("header restore v {V} --key-file one --input saved");
    let said = sandbox.refused(4, "v", &restore);
    assert!(!said.contains("keys"), "{said}");
    assert!(
        said.contains("2883584") && said.contains("1835008"),
        "{said}"
    );
}

#[test]
fn what_took_the_place_of_a_header_stays() {
    let sandbox = volumes();
    let mut image = sandbox.read("v");
    image[..512].fill(0);
    image[446..462].copy_from_slice(&[0, 1, 1, 0, 0x83, 2, 2, 2, 0, 8, 0, 0, 0, 8, 0, 0]);
    image[510..512].copy_from_slice(&[0x55, 0xaa]);
    sandbox.write("v", &image);
    for change in [
        "passwd v V --tcrypt-backup --key-file one --new-key-file three",
        "reencrypt v V --tcrypt-backup --key-file one --yes --no-progress",
    ] {
        let said = sandbox.refused(4, "v", &change.replace('V', V));
        assert!(said.contains("MBR"), "{change}: {said}");
    }
    let repair = format!("header repair v {V} --key-file one");
    let said = sandbox.refused(4, "v", &repair);
    assert!(said.contains("MBR"), "{said}");
    sandbox.volume(&format!("{repair} --yes"));
    assert_eq!(opens(&sandbox, "one"), [0, 0]);
}

#[test]
fn a_backup_goes_over_nothing_unasked() {
    let sandbox = volumes();
    sandbox.volume(&format!("header backup v {V} --output saved"));
    sandbox.volume(&format!(
        "create w {V} --size 2MiB --quick --no-progress --key-file one"
    ));
    sandbox.volume(&format!(
        "create x {V} --size 2MiB --quick --no-progress --key-file two"
    ));
    create(&sandbox, "luks", "luks2");
    sandbox.write("empty", vec![0; SIZE]);
    for (image, word) in [
        ("w", "keys of its data"),
        ("x", "no header there opens"),
        ("luks", "LUKS"),
        ("empty", "no header there opens"),
    ] {
        let restore = format!("header restore {image} {V} --input saved --key-file one");
        let said = sandbox.refused(4, image, &restore);
        assert!(said.contains(word), "{image}: {said}");
    }
    // The volume's own.
    let restore = format!("header restore v {V} --input saved --key-file one");
    sandbox.volume(&restore);
    let mut image = sandbox.read("v");
    spoil(&mut image[..512]);
    sandbox.write("v", &image);
    sandbox.volume(&restore);
    assert_eq!(opens(&sandbox, "one"), [0, 0]);
    // Where the passphrase is another one by now, nobody can tell whose header it is.
    sandbox.volume(&format!("passwd v {V} --key-file one --new-key-file three"));
    sandbox.refused(4, "v", &restore);
    sandbox.volume(&format!("{restore} --yes"));
    assert_eq!(opens(&sandbox, "one"), [0, 0]);
    assert_eq!(opens(&sandbox, "two"), [0, 0]);
}
