//! LVM2 and Linux software RAID: what the kernel's tools make inside a disk image is found, and
//! what is written into a logical volume is read by the kernel.

use crate::sandbox::{sandbox, succeed};
use testkit::{Sandbox, have, noise};

const MIB: u64 = 1 << 20;

/// LVM without udev and without the host's configuration.
const LVM: &str = "devices { use_devicesfile = 0 filter = [ \"a|^/dev/loop|\", \"r|.*|\" ] }
global { locking_dir = \"/tmp/lvm\" }
activation { udev_sync = 0 udev_rules = 0 }
backup { backup = 0 archive = 0 }
";

/// Partition 1 has a volume group, in which `root` lies in two pieces; the others have one disk
/// of a mirror each, with every version of superblock.
const MAKE: &str = "set -e
mkdir -p /tmp/lvm
export LVM_SYSTEM_DIR=$PWD/out/lvm LVM_SUPPRESS_FD_WARNINGS=1
part() { losetup --find --show --offset $(($1 << 20)) --sizelimit $(($2 << 20)) /dev/ubda; }
pv=$(part 1 48)
pvcreate -q $pv
vgcreate -q -s 1M vg $pv
lvcreate -q -y -Wn -Zn -L 20M -n root vg
lvcreate -q -y -Wn -Zn -L 4M -n home vg
lvextend -q -L +4M vg/root
lvcreate -q -y -Wn -Zn -i 1 -L 4M -pr -n fixed vg
cryptsetup luksFormat -q --key-file out/key --pbkdf pbkdf2 --pbkdf-force-iterations 1000 /dev/mapper/vg-root
cryptsetup open --key-file out/key /dev/mapper/vg-root c
dd if=out/plain of=/dev/mapper/c bs=1M conv=fsync
cryptsetup close c
vgchange -q -an vg
losetup -d $pv
at=49
for version in 1.2 1.1 1.0 0.90; do
  disk=$(part $at 8)
  mdadm --create /dev/md0 --run --force --metadata=$version --level=1 --raid-devices=2 $disk missing
  dd if=out/mirrored of=/dev/md0 bs=64k conv=fsync
  mdadm --stop /dev/md0
  losetup -d $disk
  at=$((at + 8))
done >&2
";

const READ: &str = "set -e
mkdir -p /tmp/lvm
export LVM_SYSTEM_DIR=$PWD/out/lvm LVM_SUPPRESS_FD_WARNINGS=1
losetup --find --offset $((1 << 20)) --sizelimit $((48 << 20)) /dev/ubda
vgchange -q -ay vg >&2
cryptsetup open --readonly --key-file out/key /dev/mapper/vg-root c
cat /dev/mapper/c > out/read
cryptsetup close c
vgchange -q -an vg >&2
";

fn in_kernel(sandbox: &Sandbox, script: &str) -> String {
    let image = sandbox.path("out/d.img");
    let image = image.to_str().unwrap();
    succeed(sandbox, &["--disk", image, "--memory", "512MiB"], script)
}

#[test]
fn logical_volumes_and_mirrors() {
    let Some(sandbox) = sandbox() else { return };
    if !have(&["cryptsetup", "lvcreate", "mdadm", "sgdisk"]) {
        return;
    }
    let sandbox = sandbox.with_directory("out/lvm");
    sandbox.write("out/lvm/lvm.conf", LVM);
    sandbox.write("out/key", "a passphrase");
    sandbox.write("secret", "a passphrase\n");
    let plaintext = noise(8 << 20, 1);
    let mirrored = noise(1 << 20, 2);
    sandbox.write("out/plain", &plaintext);
    sandbox.write("out/mirrored", &mirrored);
    sandbox.write_zeros("out/d.img", 96 * MIB);
    let mut parts = vec!["--clear".to_owned(), "--set-alignment=2048".to_owned()];
    parts.push("--new=1:2048:+48M".to_owned());
    parts.extend((2..=5).map(|number| format!("--new={number}:0:+8M")));
    parts.push("out/d.img".to_owned());
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    sandbox.tool("sgdisk", &parts[..]);
    in_kernel(&sandbox, MAKE);

    let all = sandbox.json("volume find out/d.img --json");
    let all = &all.as_array().unwrap()[1..];
    let part = |name: &str| {
        let found = all.iter().find(|part| part["name"] == name);
        found.unwrap_or_else(|| panic!("{name}: {all:#?}"))
    };
    let root = part("1/vg/root");
    assert_eq!(root["size"], 24 * MIB);
    assert_eq!(root["type"], "luks2");
    assert_eq!(root["ranges"].as_array().unwrap().len(), 2, "{root}");
    assert_eq!(part("1/vg/home")["size"], 4 * MIB);
    assert_eq!(part("1/vg/fixed")["read_only"], "LVM marks it as read-only");
    for number in 2..=5 {
        let raid = part(&format!("{number}/raid"));
        let said = raid["read_only"].as_str().unwrap();
        assert!(said.contains("one of 2 disks of a mirror"), "{raid}");
        let range = &raid["ranges"][0];
        let start = range["offset"].as_u64().unwrap() as usize;
        let image = sandbox.read("out/d.img");
        assert!(image[start..][..mirrored.len()] == mirrored, "{number}");
    }

    sandbox.ok("volume export out/d.img --partition vg/root --output got --passphrase-file secret");
    assert!(sandbox.read("got").starts_with(&plaintext));
    let written = noise(sandbox.read("got").len(), 3);
    sandbox.write("written", &written);
    sandbox.ok(
        "volume import out/d.img --partition 1/vg/root --yes --input written --passphrase-file secret",
    );
    in_kernel(&sandbox, READ);
    assert!(sandbox.read("out/read") == written);

    // A mirror's other disk would differ.
    let before = sandbox.read("out/d.img");
    let said = sandbox.fails(
        2,
        "volume create out/d.img --partition 2/raid --yes --passphrase-file secret",
    );
    assert!(
        said.contains("cannot be written: it is one of 2 disks"),
        "{said}"
    );
    assert!(sandbox.read("out/d.img") == before);
}
