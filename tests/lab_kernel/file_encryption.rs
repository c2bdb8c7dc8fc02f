//! What the encryption of files needs: file systems, and ciphers that compute what the engine's do.

use crate::sandbox::{on_each, succeed};
use testkit::{Expect as _, Sandbox, noise};

const DATA: usize = 256 << 10;

/// Ciphers of fscrypt, as the device mapper and as `--cipher` name them, and bits of their keys.
const CIPHERS: &[(&str, &str, &str)] = &[
    ("aes-xts-plain64", "aes-xts-plain64", "512"),
    (
        "capi:adiantum(xchacha12,aes)-plain64",
        "xchacha12,aes-adiantum-plain64",
        "256",
    ),
    ("capi:hctr2(aes)-plain64", "aes-hctr2-plain64", "256"),
];

#[test]
fn dm_crypt_and_the_engine_read_each_other() {
    on_each(check_ciphers);
}

fn check_ciphers(sandbox: &Sandbox, kernel: &[&str]) {
    // Linux has HCTR2 since 6.0.
    let ciphers = CIPHERS
        .iter()
        .filter(|(name, ..)| !name.contains("hctr2") || kernel[1] != "5.10");
    let data = noise(DATA, 5);
    sandbox.write("out/data", &data);
    for (name, cipher, bits) in ciphers {
        let bytes = bits.parse::<usize>().unwrap() / 8;
        sandbox.write("out/key", noise(bytes, 3));
        sandbox.write("out/ours", vec![0; DATA]);
        sandbox.write("out/theirs", vec![0; DATA]);
        let volume = |command, rest: &[&str]| {
            let mut engine = sandbox.volume_command(&[command, "--cipher", cipher]);
            engine.args(["--type", "plain", "--key-size", bits]);
            engine.args(["--key-file", "out/key"]).args(rest);
            engine.succeeds().stdout
        };
        volume("import", &["out/ours", "--input", "out/data", "--yes"]);
        // Disks, because loop devices have a path of their own through the machine.
        let disks = ["--disk", "out/ours", "--disk", "out/theirs"];
        let script = format!(
            "cd out; key=$(od -An -v -tx1 key | tr -d ' \\n')
             crypt() {{ echo 0 {} crypt '{name}' $key 0 $1 0 | dmsetup create c || exit 1; }}
             crypt /dev/ubda; cmp /dev/mapper/c data || exit 1; dmsetup remove c
             crypt /dev/ubdb; dd if=data of=/dev/mapper/c bs=64k oflag=direct 2>/dev/null; dmsetup remove c",
            DATA / 512
        );
        succeed(sandbox, &[kernel, &disks].concat(), &script);
        let plain = volume("export", &["out/theirs", "--output", "-"]);
        assert!(plain == data, "{name}");
    }
}

#[test]
fn file_systems_can_encrypt_files() {
    on_each(|sandbox, kernel| {
        let script = "cd /sys/fs; cat ext4/features/encryption f2fs/features/encryption
             grep -qw ecryptfs /proc/filesystems && echo ecryptfs
             truncate -s 16M /tmp/image && mke2fs -q -t ext4 -O encrypt /tmp/image &&
             mount -o loop /tmp/image /mnt && echo mounted";
        assert_eq!(
            succeed(sandbox, kernel, script),
            "supported\nsupported\necryptfs\nmounted\n"
        );
    });
}
