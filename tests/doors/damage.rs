//! Ways to damage a volume.

use crate::parts_maker as parts;

/// A way to change the bytes of a volume.
#[derive(Clone, Copy)]
pub struct Damage {
    pub name: &'static str,
    /// Whether every volume is damaged so, or one of each kind.
    pub for_every_volume: bool,
    /// Whether volumes that are damaged so are changed as well, and not only opened.
    pub is_for_changes: bool,
    pub apply: fn(&mut Vec<u8>),
}

/// The volume stays as it is.
pub const NONE: Damage = Damage {
    name: "whole",
    for_every_volume: false,
    is_for_changes: false,
    apply: |_| {},
};

const fn of_one(name: &'static str, apply: fn(&mut Vec<u8>)) -> Damage {
    Damage {
        name,
        for_every_volume: false,
        is_for_changes: false,
        apply,
    }
}

const fn of_every(name: &'static str, apply: fn(&mut Vec<u8>)) -> Damage {
    Damage {
        name,
        for_every_volume: true,
        is_for_changes: true,
        apply,
    }
}

const fn of_changed(name: &'static str, apply: fn(&mut Vec<u8>)) -> Damage {
    Damage {
        is_for_changes: true,
        ..of_one(name, apply)
    }
}

/// All ways.
pub const ALL: &[Damage] = &[
    of_changed("first sector zeroed", |image| put(image, 0, &[0; 512])),
    of_every("cut to half", |image| image.truncate(image.len() / 2)),
    of_one("first 4 KiB zeroed", |image| put(image, 0, &[0; 4096])),
    of_changed("first 64 KiB zeroed", |image| put(image, 0, &[0; 65536])),
    of_changed("bit flipped at 6", |image| flip(image, 6)),
    of_one("bit flipped at 100", |image| flip(image, 100)),
    of_one("bit flipped at 300", |image| flip(image, 300)),
    of_changed("bit flipped at 448", |image| flip(image, 448)),
    of_one("bit flipped at 4200", |image| flip(image, 4200)),
    of_one("bit flipped at 16448", |image| flip(image, 16 << 10 | 64)),
    of_changed("second header stale", |image| {
        // LUKS2 counts the changes of its header here.
        for copy in [16 << 10, 32 << 10] {
            put(image, copy + 16, &[0; 8]);
        }
    }),
    of_one("second header zeroed", |image| {
        put(image, 16 << 10, &[0; 16 << 10])
    }),
    of_changed("key slots zeroed", |image| put(image, 4096, &[0; 28 << 10])),
    of_changed("last sector zeroed", |image| {
        let last = image.len().saturating_sub(512);
        put(image, last, &[0; 512]);
    }),
    of_one("last 128 KiB zeroed", |image| {
        let last = image.len().saturating_sub(128 << 10);
        put(image, last, &[0; 128 << 10]);
    }),
    of_one("cut by a sector", |image| image.truncate(image.len() - 512)),
    of_one("cut by 100 bytes", |image| {
        image.truncate(image.len() - 100)
    }),
    of_one("cut to 64 KiB", |image| image.truncate(64 << 10)),
    of_changed("cut to a sector", |image| image.truncate(512)),
    of_one("cut to 100 bytes", |image| image.truncate(100)),
    of_changed("followed by noise", |image| {
        image.extend(testkit::noise(1 << 20, 4));
    }),
    of_one("followed by a sector", |image| image.extend([0; 512])),
    of_one("followed by 100 bytes", |image| image.extend([b'x'; 100])),
    of_one("behind a sector", |image| {
        image.splice(..0, [0; 512]);
    }),
    of_changed("under an MBR", |image| {
        put(image, 440, &parts::mbr()[440..512])
    }),
    of_changed("under a GPT", |image| {
        put(image, 440, &parts::gpt()[440..34 * 512])
    }),
    of_changed("under ext4", |image| put(image, 1024, &ext4())),
    of_one("under LVM", |image| {
        put(image, 512, &parts::lvm()[512..1024])
    }),
    of_changed("under a RAID", |image| {
        put(image, 4096, &parts::raid()[4096..8192])
    }),
    of_changed("swap", |image| put(image, 4086, b"SWAPSPACE2")),
    of_one("under a text", |image| {
        let text = b"a letter to a friend\n".repeat(100);
        put(image, 0, &text);
    }),
    of_one("turned over", |image| image.reverse()),
];

/// The superblock of an ext4 file system.
pub fn ext4() -> Vec<u8> {
    let mut block = vec![0; 1024];
    for (at, bytes) in [
        (0, &[0, 1, 0, 0][..]),
        (4, &[0, 4, 0, 0]),
        (24, &[0, 0, 0, 0]),
        (32, &[0, 32, 0, 0]),
        (40, &[0, 1, 0, 0]),
        (56, b"\x53\xef\x01\0\x01\0"),
        (76, &[1, 0, 0, 0]),
        (88, &[0, 1]),
        (92, &[0x3c, 0, 0, 0]),
        (96, &[0x42, 2, 0, 0]),
        (100, &[0x7b, 0, 0, 0]),
        (104, &[0x5a; 16]),
    ] {
        put(&mut block, at, bytes);
    }
    block
}

fn flip(image: &mut [u8], at: usize) {
    if let Some(byte) = image.get_mut(at) {
        *byte ^= 0x10;
    }
}

/// Overwrites what there is of `at`.
fn put(image: &mut [u8], at: usize, bytes: &[u8]) {
    let room = image.len().saturating_sub(at).min(bytes.len());
    if room > 0 {
        image[at..][..room].copy_from_slice(&bytes[..room]);
    }
}
