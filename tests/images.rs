//! Volumes inside disk images that are not raw, as QEMU makes them.

use std::fs;
use testkit::{Running, Sandbox, have, noise, wait_until};

const CHEAP: &str = "--pbkdf pbkdf2 --pbkdf-force-iterations 1000";

/// QEMU's names of the formats, and the ends of their files.
const FORMATS: [&str; 5] = ["qcow2", "vdi", "vmdk", "vhdx", "vpc"];

/// A disk `raw` with a LUKS2 volume in its second partition, and what the volume holds.
fn disk(sandbox: &Sandbox) -> Vec<u8> {
    sandbox.write_zeros("raw", 48 << 20);
    let parts = "--new=1:0:+4M --new=2:0:+24M --change-name=2:data raw";
    sandbox.tool("sgdisk", parts);
    sandbox.ok(&format!(
        "volume create raw --partition data --passphrase-file secret {CHEAP}"
    ));
    let plaintext = noise(8 << 20, 1);
    sandbox.write("plain", &plaintext);
    sandbox.ok("volume import raw --partition data --yes --input plain --passphrase-file secret");
    plaintext
}

fn sandbox() -> Option<Sandbox> {
    have(&["qemu-img", "qemu-nbd", "sgdisk"]).then(|| {
        Sandbox::new(env!("CARGO_BIN_EXE_cryptmark")).with_file("secret", "a passphrase\n")
    })
}

fn convert(sandbox: &Sandbox, from: &str, format: &str, to: &str) {
    sandbox.tool("qemu-img", &["convert", "-O", format, from, to]);
}

/// Whether a `qemu-nbd` has a file of `sandbox`.
fn is_served(sandbox: &Sandbox) -> bool {
    let folder = sandbox.directory().to_str().unwrap();
    std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .any(|process| {
            let command = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
            let command = String::from_utf8_lossy(&command);
            command.contains("qemu-nbd\0") && command.contains(folder)
        })
}

#[test]
fn every_image_is_read_and_written() {
    let Some(sandbox) = sandbox() else { return };
    let plaintext = disk(&sandbox);
    let other = noise(8 << 20, 2);
    sandbox.write("other", &other);
    for format in FORMATS {
        let image = format!("image.{format}");
        convert(&sandbox, "raw", format, &image);
        let found = sandbox.json(&format!("volume find {image} --json"));
        let data = &found.as_array().unwrap()[2];
        assert_eq!(data["label"], "data", "{format}: {found}");

        let volume = format!("{image} --partition data --passphrase-file secret");
        let told = sandbox.ok(&format!("volume open {volume}"));
        assert!(told.contains("aes-xts-plain64"), "{format}: {told}");
        sandbox.ok(&format!("volume export {volume} --yes --output read"));
        assert!(sandbox.read("read") == plaintext, "{format}");

        sandbox.ok(&format!("volume import {volume} --yes --input other"));
        assert!(!is_served(&sandbox), "{format}");
        if format == "qcow2" {
            sandbox.tool("qemu-img", &["check", "-q", &image]);
        }
        convert(&sandbox, &image, "raw", "back");
        sandbox
            .ok("volume export back --partition data --passphrase-file secret --yes --output read");
        assert!(sandbox.read("read") == other, "{format}");
    }
}

#[test]
fn an_image_that_names_another_file_is_refused() {
    let Some(sandbox) = sandbox() else { return };
    disk(&sandbox);
    let create = |arguments: &str| sandbox.tool("qemu-img", &format!("create -q {arguments}"));
    convert(&sandbox, "raw", "qcow2", "base.qcow2");
    create("-f qcow2 -F qcow2 -b base.qcow2 backed.qcow2");
    create("-f qcow2 -o data_file=apart,data_file_raw=on apart.qcow2 8M");
    convert(&sandbox, "raw", "vmdk", "base.vmdk");
    create("-f vmdk -F vmdk -b base.vmdk backed.vmdk");
    for image in ["backed.qcow2", "apart.qcow2", "backed.vmdk"] {
        let refused = sandbox.fails(2, &format!("volume find {image}"));
        assert!(refused.contains("in another file"), "{image}: {refused}");
    }
    // What QEMU does not make: the images are changed until they name another file.
    sandbox.write("secret", vec![7; 8 << 20]);
    let secret = sandbox.path("secret").display().to_string();
    convert(&sandbox, "raw", "vpc", "base.vhd");
    type Change<'a> = &'a dyn Fn(&mut Vec<u8>);
    let flat = format!("RW 16384 FLAT \"{secret}\" 0\n");
    let changes: [(&str, &str, Change<'_>); 7] = [
        ("base.vmdk", "flat.vmdk", &|image| {
            image[12..20].fill(0);
            let at = image.windows(3).position(|part| part == b"RW ").unwrap();
            image[at..at + flat.len()].copy_from_slice(flat.as_bytes());
        }),
        ("base.vmdk", "empty.vmdk", &|image| image[12..20].fill(0)),
        ("base.vmdk", "kind.vmdk", &|image| {
            let at = image
                .windows(16)
                .position(|part| part == b"monolithicSparse");
            image[at.unwrap()..][..16].copy_from_slice(b"monolithicFlat\"\n");
        }),
        ("base.vhd", "differencing.vhd", &|image| image[63] = 4),
        ("base.vhd", "fixed.vhd", &|image| image[63] = 2),
        ("base.vhd", "parent.vhd", &|image| image[512 + 40] = 1),
        ("base.vhd", "locator.vhd", &|image| image[512 + 576] = b'W'),
    ];
    for (base, name, change) in changes {
        let mut image = sandbox.read(base);
        change(&mut image);
        sandbox.write(name, &image);
        for command in ["find", "info", "export -o out"] {
            let refused = sandbox.fails(2, &format!("volume {command} {name}"));
            assert!(refused.contains("in another file"), "{name}: {refused}");
        }
        assert!(sandbox.read(name) == image, "{name} was written");
        assert!(sandbox.read("secret").iter().all(|&byte| byte == 7));
    }
    create("-f vmdk -o subformat=monolithicFlat flat.vmdk 8M");
    let refused = sandbox.fails(2, "volume find flat.vmdk");
    assert!(refused.contains("description of a VMware"), "{refused}");
}

#[test]
fn a_damaged_image_is_told_in_the_words_of_qemu() {
    let Some(sandbox) = sandbox() else { return };
    let mut bytes = b"QFI\xfb\0\0\0\x03".to_vec();
    bytes.resize(1 << 20, 0);
    sandbox.write("image.qcow2", &bytes);
    let refused = sandbox.fails(2, "volume find image.qcow2");
    assert!(
        refused.contains("qemu-nbd cannot open image.qcow2: Failed to"),
        "{refused}"
    );
    assert!(sandbox.read("image.qcow2") == bytes);
}

/// QEMU's locks keep two writers apart, whoever came first, and a killed command
/// leaves neither a server nor a lock.
#[test]
fn an_image_is_held_by_one_writer() {
    let Some(sandbox) = sandbox() else { return };
    disk(&sandbox);
    convert(&sandbox, "raw", "qcow2", "image.qcow2");
    let secret = "--partition data --passphrase-file secret";
    let serve = format!("volume serve image.qcow2 {secret} --nbd socket");
    let server = Running::start(&mut sandbox.cryptmark(&serve));
    wait_until("no server", || sandbox.path("socket").exists());
    let import = format!("volume import image.qcow2 {secret} --yes --input plain");
    let refused = sandbox.fails(4, &import);
    assert!(refused.contains("in use by qemu-nbd"), "{refused}");
    assert!(is_served(&sandbox));

    server.signal("-KILL");
    drop(server);
    wait_until("qemu-nbd is left", || !is_served(&sandbox));
    sandbox.ok(&import);
    sandbox.tool("qemu-img", &["check", "-q", "image.qcow2"]);
}

/// A fixed VHD image is a raw one with a footer, which QEMU and others need.
#[test]
fn the_footer_of_a_fixed_vhd_image_stays() {
    let Some(sandbox) = sandbox() else { return };
    let secret = format!("--passphrase-file secret {CHEAP}");
    for kind in [
        "luks2 --sector-size 512",
        "luks2 --sector-size 4096",
        "luks1",
    ] {
        for name in ["raw", "fixed.vhd"] {
            let _ = fs::remove_file(sandbox.path(name));
        }
        sandbox.volume(&format!("create raw --size 20MiB --type {kind} {secret}"));
        let options = "convert -O vpc -o subformat=fixed,force_size=on";
        sandbox.tool("qemu-img", &format!("{options} -f raw raw fixed.vhd"));
        let whole = sandbox.read("fixed.vhd");
        let disk = whole.len() - 512;
        assert!(whole[disk..].starts_with(b"conectix"));
        sandbox.write("full", vec![9; 30 << 20]);
        for command in [
            "import V --input full --yes",
            "resize V --to 30MiB --yes",
            "resize V --to 18MiB --yes",
            "reencrypt V --decrypt --yes",
            "reencrypt V --yes",
            "convert V --type luks2",
            "create V --type veracrypt --quick --yes",
            "create V --wipe --yes",
        ] {
            sandbox.write("fixed.vhd", &whole);
            let takes = !["resize", "convert"]
                .iter()
                .any(|name| command.starts_with(name));
            let mut line = command.replace('V', "fixed.vhd");
            if takes {
                line += " --passphrase-file secret";
            }
            let _ = sandbox.volume_command(&line).output().unwrap();
            let now = sandbox.read("fixed.vhd");
            assert!(
                now.len() == whole.len() && now[disk..] == whole[disk..],
                "{kind}: {line}"
            );
        }
    }
}
