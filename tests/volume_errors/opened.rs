//! What is said of volumes that open, rightly or not.

use crate::sandbox;
use testkit::{Expect as _, Sandbox};

/// Standard output and standard error of `cryptmark volume`, which succeeds.
fn done(sandbox: &Sandbox, arguments: &str) -> (String, String) {
    let output = sandbox.volume_command(arguments).succeeds();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr))
}

/// Blocks, the magic, and extents among the features: the superblock of ext4 at 1024.
fn ext4() -> Vec<u8> {
    let mut bytes = vec![0; 1 << 20];
    for (at, byte) in [(4, 1), (56, 0x53), (57, 0xef), (0x60, 0x40)] {
        bytes[1024 + at] = byte;
    }
    bytes
}

/// Whether passphrase, cipher and hash were right shows in what there is, since no
/// header says so.
#[test]
fn what_a_volume_holds_is_said() {
    let sandbox = sandbox();
    sandbox.write("content", ext4());
    let plain = "--type plain --passphrase-file pass";
    done(
        &sandbox,
        &format!("import noise {plain} --input content --yes"),
    );
    done(
        &sandbox,
        "import luks2 --passphrase-file pass --input content",
    );
    let nothing = "check the passphrase, cipher and hash";
    let defaults = "aes-cbc-essiv:sha256";
    for (arguments, holds, warned) in [
        (
            format!("open noise {plain}"),
            "an ext4 file system",
            [false; 2],
        ),
        (
            format!("open noise {plain} --hash sha512"),
            "unknown data",
            [true; 2],
        ),
        (
            "open noise --type cryptoloop --passphrase-file pass".into(),
            "unknown data",
            [true, false],
        ),
        (
            "open luks2 --passphrase-file pass".into(),
            "an ext4 file system",
            [false; 2],
        ),
    ] {
        let (told, said) = done(&sandbox, &arguments);
        assert!(
            told.contains(&format!("holds       {holds}")),
            "{arguments}\n{told}"
        );
        let is_noise = said.contains("decrypt to noise");
        assert_eq!(
            [said.contains(nothing) || is_noise, said.contains(defaults)],
            warned,
            "{arguments}\n{said}"
        );
    }
    // What has a header is right if it opens; nothing need be in it.
    let (told, said) = done(&sandbox, "open luks1 --passphrase-file pass");
    assert!(!told.contains("holds") && said.is_empty(), "{told}{said}");
}
