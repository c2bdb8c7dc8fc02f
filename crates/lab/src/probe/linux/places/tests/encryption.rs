//! The encryption of a place.

use super::{Simulated, paths};
use crate::probe::SiteKind;

#[test]
fn luks_below_lvm_is_found_with_the_disk_below() {
    let mut machine = Simulated::new();
    machine.partition("sda", "sda3", "8:3");
    let uuid = "CRYPT-LUKS2-0123456789abcdef0123456789abcdef-sda3_crypt";
    machine.mapped("dm-0", "253:0", "sda3_crypt", uuid, &["sda3"]);
    machine.mapped("dm-1", "253:1", "vg-home", "LVM-abcdef", &["dm-0"]);
    machine.link("dev/mapper/vg-home", "dev/dm-1");
    machine.mount("253:1", "/", "/home", "ext4 /dev/mapper/vg-home");
    let sites = machine.directories();
    assert_eq!(paths(&sites), ["/", "/home"]);
    assert_eq!(sites[0].encrypted_by, [""; 0]);
    let home = &sites[1];
    assert_eq!(home.encrypted_by, ["dm-crypt (LUKS2)"]);
    assert_eq!(home.device.as_deref(), Some("Samsung SSD 980 (sda)"));
    assert_eq!(home.filesystem.as_deref(), Some("ext4"));
    assert_eq!(home.medium, "ssd");
    assert_eq!(
        (home.kind, home.in_use.as_deref()),
        (SiteKind::Directory, None)
    );
    assert!(home.writable && home.size > 0 && home.free.is_some());

    let disk = machine.disk_at("/dev/mapper/vg-home");
    assert_eq!(disk.in_use.as_deref(), Some("mounted at /home"));
    assert_eq!(disk.encrypted_by, ["dm-crypt (LUKS2)"]);
    assert_eq!(disk.filesystem.as_deref(), Some("ext4"));
    assert_eq!((disk.size, disk.free), (1 << 30, None));
    let in_use = machine.disk_at("/dev/dm-0").in_use;
    assert_eq!(in_use.as_deref(), Some("part of vg-home (dm-1)"));
    let in_use = machine.disk_at("/dev/sda3").in_use;
    assert_eq!(in_use.as_deref(), Some("part of sda3_crypt (dm-0)"));
}

#[test]
fn types_of_mappings_are_named() {
    let machine = Simulated::new();
    machine.disk("sdb", "8:16", "");
    let cases = [
        ("CRYPT-LUKS1-00-x", "x", &["dm-crypt (LUKS1)"][..]),
        ("CRYPT-LUKS2-OPAL-00-x", "x", &["Opal drive (LUKS2)"]),
        ("CRYPT-PLAIN-x", "x", &["dm-crypt (plain)"]),
        ("CRYPT-LOOPAES-x", "x", &["dm-crypt (loop-AES)"]),
        (
            "CRYPT-TCRYPT-x",
            "x",
            &["dm-crypt (TrueCrypt or VeraCrypt)"],
        ),
        ("CRYPT-BITLK-00-x", "x", &["dm-crypt (BitLocker)"]),
        ("CRYPT-FVAULT2-00-x", "x", &["dm-crypt (FileVault)"]),
        ("CRYPT-INTEGRITY-x", "x", &[]),
        ("CRYPT-VERITY-x", "x", &[]),
        ("CRYPT-SUBDEV-00-x", "x", &[]),
        ("CRYPT-TEMP-temporary", "x", &[]),
        ("CRYPT-", "x", &[]),
        ("LVM-CRYPT-LUKS1", "veracrypt1", &[]),
        ("", "veracrypt1", &["VeraCrypt"]),
        ("", "truecrypt1_0", &["TrueCrypt"]),
        ("", "other", &[]),
    ];
    for (number, (uuid, label, expected)) in cases.into_iter().enumerate() {
        let name = format!("dm-{number}");
        machine.mapped(&name, &format!("253:{number}"), label, uuid, &["sdb"]);
        let found = machine.disk_at(&format!("/dev/{name}")).encrypted_by;
        assert_eq!(found, expected, "{uuid} {label}");
    }
}

#[test]
fn a_cascade_counts_once_and_luks_in_luks_twice() {
    let machine = Simulated::new();
    machine.disk("sdb", "8:16", "");
    machine.mapped("dm-0", "253:0", "veracrypt1_0", "", &["sdb"]);
    machine.mapped("dm-1", "253:1", "veracrypt1", "", &["dm-0"]);
    machine.mapped("dm-2", "253:2", "inner", "CRYPT-LUKS2-00-inner", &["dm-1"]);
    machine.mapped(
        "dm-3",
        "253:3",
        "innermost",
        "CRYPT-LUKS2-01-innermost",
        &["dm-2"],
    );
    let found = machine.disk_at("/dev/dm-3").encrypted_by;
    assert_eq!(found, ["VeraCrypt", "dm-crypt (LUKS2)", "dm-crypt (LUKS2)"]);
}

#[test]
fn stacked_file_systems_follow_their_source() {
    let mut machine = Simulated::new();
    machine.mapped("dm-0", "253:0", "crypt", "CRYPT-LUKS2-00-crypt", &["sda1"]);
    machine.mount("253:0", "/", "/home", "ext4 /dev/dm-0");
    machine.mount("0:50", "/", "/home/a", "fuse.gocryptfs /home/.a");
    machine.mount("0:51", "/", "/home/b", "ecryptfs /home/.b");
    machine.mount("0:52", "/", "/home/c", "fuse.cryfs cryfs@/home/.c");
    machine.mount("0:53", "/", "/home/d", "fuse.encfs encfs");
    machine.mount("0:54", "/", "/home/e", "fuse.securefs securefs");
    // Its source is itself.
    machine.mount("0:55", "/", "/home/f", "fuse.gocryptfs /home/f");
    let sites = machine.directories();
    let found: Vec<_> = sites
        .iter()
        .skip(2)
        .map(|site| site.encrypted_by.join(" "))
        .collect();
    let expected = [
        "dm-crypt (LUKS2) gocryptfs",
        "dm-crypt (LUKS2) eCryptfs",
        "dm-crypt (LUKS2) CryFS",
        "EncFS",
        "securefs",
        "gocryptfs",
    ];
    assert_eq!(found, expected);
}

#[test]
fn volumes_in_files_have_the_layers_of_their_container() {
    let mut machine = Simulated::new();
    machine.mapped("dm-0", "253:0", "crypt", "CRYPT-LUKS2-00-crypt", &["sda1"]);
    machine.mount("253:0", "/", "/home", "ext4 /dev/dm-0");
    machine.disk("loop0", "7:0", "");
    machine.file(
        "sys/devices/loop0/loop/backing_file",
        "/home/me/volume.hc\n",
    );
    machine.mapped("dm-1", "253:1", "veracrypt1", "", &["loop0"]);
    machine.mount("253:1", "/", "/mnt/vc", "vfat /dev/dm-1");
    machine.mount(
        "0:60",
        "/",
        "/tmp/.veracrypt_aux_mnt2",
        "fuse.veracrypt veracrypt",
    );
    machine.disk("loop1", "7:1", "");
    let aux = "/tmp/.veracrypt_aux_mnt2/volume\n";
    machine.file("sys/devices/loop1/loop/backing_file", aux);
    machine.mount("7:1", "/", "/mnt/vc2", "vfat /dev/loop1");
    machine.mount("0:61", "/", "/run/cm", "fuse cryptmark:1:2");
    machine.disk("loop2", "7:2", "");
    machine.file("sys/devices/loop2/loop/backing_file", "/run/cm/volume\n");
    machine.mount("7:2", "/", "/mnt/cm", "ext4 /dev/loop2");
    let sites = machine.directories();
    assert_eq!(
        paths(&sites),
        ["/", "/home", "/mnt/vc", "/mnt/vc2", "/mnt/cm"]
    );
    assert_eq!(sites[2].encrypted_by, ["dm-crypt (LUKS2)", "VeraCrypt"]);
    assert_eq!(sites[2].device.as_deref(), Some("loop device (loop0)"));
    assert_eq!(sites[3].encrypted_by, ["VeraCrypt"]);
    assert_eq!(sites[4].encrypted_by, ["cryptmark"]);
}
