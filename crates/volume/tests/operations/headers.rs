//! Headers saved, put back and mended.

use super::{
    Bench, KIB, OFFSET, ONE, TWO, mbr, mended, new, opened, options, outcome, place, secret, spoil,
};
use block::RamDevice;
use block::layer::{Effect, Fault, Rule, Trigger};
use block::{BlockDevice, BlockError, ByteRange, Geometry, OperationKind, Queue, QueueOptions};
use cryptmark_volume::judge::{State, Use};
use cryptmark_volume::operate::{
    KeyOptions, Options, TCRYPT_HEADERS, add_key, backup_header, bounded, change_key, convert,
    read, remove_key, repair_header, restore_header, save_header, unwatched,
};
use cryptmark_volume::{Format, Place, Secret, VolumeError};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

const UUID: &str = "11111111-2222-3333-4444-555555555555";

const SECOND: usize = 16 * KIB;
const KEY_SLOTS: usize = 32 * KIB;

/// What is said, and its word in the tables.
const WORDS: &str = "
good | both copies of the header are good;
again | changed: both copies of the header are good again;
sealed | changed: the header is rebuilt from the copy at byte 0, which had lost only its magic number; its checksum is right;
second | changed: the header is rebuilt from the copy at byte 16384, which had lost only its magic number; its checksum is right;
newer | changed: the header is rebuilt from the newer copy at byte 0, which had lost only its magic number; its checksum is right;
likely | changed: the header is rebuilt from the metadata of the copy at byte 0, which are plausible; no checksum confirms them;
renamed | its UUID and labels are lost: the UUID is 11111111-2222-3333-4444-555555555555 now;
only | the header is good; LUKS1 has one only, and no copy of it;
magic | changed: the LUKS1 header has its magic again;
opens | key slot 0 opens with what was given;
gone | warning: the key material of key slot 0 is gone;
none | this is not a LUKS2 volume
no | no keyslot opens with this passphrase or key file
unproved | unproved: has a header that can be rebuilt, but nothing proves that it is right
stale | stale-header: holds an MBR partition table in the place of its header, and what is left of that header is older
other | stale-header: holds data without a name in the place of its header, and what is left of that header is older
replaced | replaced: would lose the copy of the header at byte 0, which is newer than the good one or of another volume
";

fn in_words(names: &str) -> String {
    let said = |name| {
        let mut lines = WORDS.lines().filter_map(|line| line.split_once(" | "));
        lines.find(|(word, _)| *word == name).unwrap().1
    };
    let said = names
        .split(' ')
        .map(|name| match said(name).strip_suffix(';') {
            Some(line) => format!("{line}\n"),
            None => said(name).to_owned(),
        });
    said.collect()
}

/// What is done to a header of each format, what a repair says if all losses are accepted, and what
/// it says without a secret, with the right one, and with a wrong one.
const DAMAGES: &str = "
luks2 | nothing | good | same opens no
luks2 | noise 0 4096 | again | other other other
luks2 | flip 448 | again | same opens no
luks2 | zero 16384 16384 | again | same opens no
luks2 | zero 0 6, zero 16384 6 | sealed | same opens no
luks2 | noise 0 4096, noise 16384 4096 | likely renamed | unproved opens no
luks2 | flip 448, flip 16832 | likely | unproved opens no
luks2 | mbr | again | stale stale stale
luks2 | zero 16384 6, mbr | second | stale stale no
luks2 | noise 0 32768 | none | same same same
luks2 | zero 32768 65536 | good gone | same no no
luks2 | zero 0 4096, zero 32768 65536 | again gone | same no no
luks2 | old, zero 0 6 | newer | same opens no
luks2 | old, flip 5000 | again | replaced replaced replaced
luks1 | nothing | only | same same same
luks1 | zero 0 6 | magic | unproved opens no
luks1 | noise 0 592 | none | same same same
luks1 | zero 4096 65536 | only gone | same same same
luks1 | mbr beside | only | stale stale stale
";

/// Does this to an image, whose second header was `old` before.
fn damage(image: &mut [u8], words: &str, old: &[u8]) {
    for one in words.split(", ") {
        let words: Vec<&str> = one.split(' ').collect();
        let number = |nth: usize| words[nth].parse::<usize>().unwrap();
        match words[0] {
            "noise" => spoil(&mut image[number(1)..][..number(2)]),
            "zero" => image[number(1)..][..number(2)].fill(0),
            "flip" => image[number(1)] ^= 1,
            "old" => image[SECOND..KEY_SLOTS].copy_from_slice(&old[SECOND..KEY_SLOTS]),
            "xfs" => {
                image[..KEY_SLOTS].fill(0);
                image[..4].copy_from_slice(b"XFSB");
                image[4..8].copy_from_slice(&4096_u32.to_be_bytes());
                image[108..110].copy_from_slice(&512_u16.to_be_bytes());
            }
            "mbr" => {
                let start: [u8; 446] = image[..446].try_into().unwrap();
                mbr(image);
                if words.len() > 1 {
                    image[..446].copy_from_slice(&start);
                }
            }
            _ => {}
        }
    }
}

/// Repairs `v`, or the header apart from it.
fn repair(
    bench: &Bench,
    header: Option<&str>,
    with: Option<&Secret>,
    accepted: &[State],
) -> String {
    let header = header.map(|name| bench.path(name));
    let options = options(Format::Luks2, accepted);
    match Place::open(&bench.path("v"), header.as_deref(), Use::MendHeader) {
        Ok(place) => mended(repair_header(
            &place,
            with,
            Some(UUID),
            &options,
            &unwatched,
        )),
        refused => outcome(refused),
    }
}

#[test]
fn what_is_damaged_is_mended_or_left() {
    let [one, wrong] = [ONE, "wrong"].map(secret);
    for row in DAMAGES.lines().skip(1) {
        let cells: Vec<&str> = row.split(" | ").collect();
        let format = Format::named(cells[0]).unwrap();
        let bench = Bench::volume(format);
        let old = bench.read("v");
        if cells[1].starts_with("old") {
            add(&bench);
        }
        let sound = bench.read("v");
        let mut damaged = sound.clone();
        damage(&mut damaged, cells[1], &old);
        let said: Vec<&str> = cells[3].split(' ').collect();
        for (with, accepted, said) in [
            (None, &[][..], said[0]),
            (Some(&one), &[], said[1]),
            (Some(&wrong), &[], said[2]),
            (None, &State::ALL, "same"),
        ] {
            let wanted = match said {
                "same" => in_words(cells[2]),
                "opens" => in_words(&format!("{} opens", cells[2])),
                other => in_words(other),
            };
            bench.write("v", &damaged);
            let changes = wanted.starts_with("changed: ");
            bench.ends(row, &wanted, changes, || {
                repair(&bench, None, with, accepted)
            });
            if changes && !wanted.contains("gone") {
                bench.holds(format, ONE, row);
            }
            let now = bench.read("v");
            assert!(now[OFFSET as usize..] == sound[OFFSET as usize..], "{row}");
            if changes && format == Format::Luks2 {
                assert!(
                    now.starts_with(b"LUKS") && now[SECOND..].starts_with(b"SKUL"),
                    "{row}"
                );
            }
            // Whatever is judged of a header that is apart is said to be in its place.
            bench.write("h", &damaged);
            let mut wanted = wanted;
            for state in ["unproved", "stale-header", "replaced"] {
                wanted = wanted.replacen(
                    &format!("{state}: "),
                    &format!("{state} of the header: "),
                    1,
                );
            }
            assert_eq!(repair(&bench, Some("h"), with, accepted), wanted, "{row}");
            fs::remove_file(bench.path("h")).unwrap();
        }
    }
}

const BACK: &str = "what opened key slot 0 at that time opens the volume again\n";

fn add(bench: &Bench) {
    let place = place(&bench.path("v"), Use::ChangeHeader);
    add_key(&place, &secret(ONE), &new(TWO), &KeyOptions::default()).unwrap();
}

fn change(bench: &Bench) {
    let place = place(&bench.path("v"), Use::ChangeHeader);
    change_key(&place, &secret(ONE), &new(TWO), &KeyOptions::default()).unwrap();
}

/// What happens to a volume of each format after its backup, and what a restoration would lose.
const AFTERWARDS: &str = "
luks1 | nothing |
luks2 | nothing |
luks1 | add | keyslot 1, which the backup does not have
luks2 | add | keyslot 1, which the backup does not have
luks1 | change | keyslot 1, which the backup does not have
luks2 | change | keyslot 0, which the backup does not have
luks2 | noise 0 4096 | data without a name, which is in the place of the header
luks2 | zero 0 4096 |
luks2 | mbr | an MBR partition table, which is in the place of the header
luks2 | noise 0 32768 | what it holds: no header that can be read and compared with the backup
luks2 | xfs | an XFS file system
luks1 | convert |
luks2 | another | the header of another volume
luks1 | flip 5000 | the key material of its key slots, which is not that of the backup
luks2 | flip 33768 | the key material of its key slots, which is not that of the backup
luks1 | flip 260000 | the key material of its key slots, which is not that of the backup
luks1 | zero 4096 65536 |
luks2 | zero 32768 65536 |
";

fn restore(bench: &Bench, header: Option<&str>, accepted: &[State]) -> String {
    let header = header.map(|name| bench.path(name));
    let saved = opened(&bench.path("saved"));
    let options = options(Format::Luks2, accepted);
    match Place::open(&bench.path("v"), header.as_deref(), Use::MendHeader) {
        Ok(place) => mended(restore_header(&place, &*saved, None, &options, &unwatched)),
        refused => outcome(refused),
    }
}

#[test]
fn a_backup_goes_back_and_what_is_lost_is_said() {
    for row in AFTERWARDS.lines().skip(1) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [format, name, lost] = cells[..] else {
            panic!("{row}")
        };
        let format = Format::named(format).unwrap();
        let bench = Bench::volume(format);
        let sound = bench.read("v");
        let place = place(&bench.path("v"), Use::Read);
        let path = bench.path("saved");
        let of = save_header(&place, &path, &options(format, &[])).unwrap();
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        assert!(save_header(&place, &path, &options(format, &[])).is_err());
        drop(place);
        let saved = bench.read("saved");
        // All eight key slots of LUKS1, which have less room than there is before the data.
        let length = if format == Format::Luks1 {
            2_068_480
        } else {
            2 << 20
        };
        assert!(saved == sound[..length], "{name}");
        match name {
            "add" => add(&bench),
            "change" => change(&bench),
            "convert" => {
                let place = super::place(&bench.path("v"), Use::ChangeLayout);
                assert!(convert(&place, Format::Luks2).unwrap());
            }
            "another" => {
                fs::remove_file(bench.path("v")).unwrap();
                bench.make("v", format);
            }
            damages => {
                let mut image = sound.clone();
                damage(&mut image, damages, &sound);
                bench.write("v", image);
            }
        }
        let changed = bench.read("v");
        bench.write("h", &changed);
        for header in [None, Some("h")] {
            let image = header.unwrap_or("v");
            let restored = format!("restored {length} bytes of {of}\n");
            let mut accepted: &[State] = &[];
            let mut wanted = format!("changed: {restored}");
            if !lost.is_empty() {
                let said = restore(&bench, header, &[]);
                assert!(
                    said.contains(" the header: ") == header.is_some(),
                    "{name}: {said}"
                );
                let says = said.starts_with("stale") || said.contains(lost);
                assert!(says, "{name}: {said}");
                let asked = restore(&bench, header, &[State::StaleHeader]);
                assert!(
                    asked.contains(lost) && asked.starts_with("replaced"),
                    "{name}: {asked}"
                );
                assert!(bench.read(image) == changed, "{name}");
                accepted = &[State::StaleHeader, State::Replaced];
                wanted = format!("changed: lost: {restored}");
            }
            if ["change", "another"].contains(&name) {
                wanted += BACK;
            }
            assert_eq!(restore(&bench, header, accepted), wanted, "{name}");
            let now = bench.read(image);
            assert!(now.starts_with(&saved), "{name}");
            assert!(now[length..] == changed[length..], "{name}");
        }
        if name != "another" {
            bench.holds(format, ONE, name);
        }
        bench.write("saved", &saved[..length - 512]);
        let cut = "the backup ends before its key slots do";
        bench.ends(name, cut, false, || restore(&bench, None, &State::ALL));
        bench.write("saved", &saved);
        bench.write("v", &saved);
        let exact = restore(&bench, None, &State::ALL);
        assert!(exact.starts_with("changed: restored"), "{exact}");
        bench.write("v", &sound[..length - 512]);
        let small = "the volume is smaller than the backup";
        bench.ends(name, small, false, || restore(&bench, None, &State::ALL));
    }
}

/// Who was locked out comes in again, which is said.
#[test]
fn a_key_that_comes_back_is_said() {
    for format in [Format::Luks1, Format::Luks2] {
        let bench = Bench::volume(format);
        add(&bench);
        let path = bench.path("v");
        save_header(
            &place(&path, Use::Read),
            &bench.path("saved"),
            &options(format, &[]),
        )
        .unwrap();
        let first = KeyOptions {
            slot: Some(0),
            ..KeyOptions::default()
        };
        remove_key(&place(&path, Use::ChangeHeader), &secret(TWO), &first).unwrap();
        assert!(!bench.opens(format, ONE));
        let said = restore(&bench, None, &State::ALL);
        assert!(
            said.ends_with(BACK) && said.starts_with("changed: restored"),
            "{said}"
        );
        bench.holds(format, ONE, "again");
    }
}

/// A device of which some places cannot be read, and one that changes as often as it is read.
#[test]
fn a_backup_is_of_one_moment_and_has_what_can_be_read() {
    let bench = Bench::volume(Format::Luks2);
    let image = bench.read("v");
    let device = || {
        let device = RamDevice::new(image.len() as u64);
        device.write_at(0, &image).unwrap();
        device
    };
    let bad = |area| {
        Rule::on(
            OperationKind::Read,
            Trigger::Touching(area),
            Effect::Fail(5),
        )
    };
    let areas = [
        ByteRange::new(100 << 10, 512),
        ByteRange::new((200 << 10) + 4000, 200),
    ];
    let place = Place::of(Arc::new(Fault::new(device(), areas.map(bad))), None);
    let backup = backup_header(&place, &Options::default()).unwrap();
    assert_eq!((backup.unread, backup.is_passing), (3 * 4096, false));
    let mut expected = image[..2 << 20].to_vec();
    expected[100 << 10..][..4096].fill(0);
    expected[200 << 10..][..8192].fill(0);
    assert!(backup.bytes == expected);
    // Any range of bytes, as far as there are.
    for (offset, length, there) in [
        (5, 10, 10),
        (4000, 200, 200),
        (4 << 20, 1, 0),
        ((4 << 20) - 5, 50, 5),
    ] {
        let mut bytes = Vec::new();
        let unread = read(&device(), ByteRange::new(offset, length), &mut bytes).unwrap();
        assert_eq!(unread, 0);
        assert!(bytes == image[offset as usize..][..there], "{offset}");
    }
    let changing = |times| Changing {
        device: device(),
        left: AtomicU8::new(times),
    };
    let saved = |times| {
        backup_header(
            &Place::of(Arc::new(changing(times)), None),
            &Options::default(),
        )
    };
    assert!(saved(3).is_ok());
    assert!(matches!(saved(250), Err(VolumeError::HeaderChanged { .. })));
    assert!(matches!(
        saved(251),
        Err(VolumeError::Block(BlockError::ReadOnly))
    ));
    // A backup that cannot be read goes over nothing.
    let bad = Fault::new(device(), [bad(areas[0])]);
    let place = super::place(&bench.path("v"), Use::MendHeader);
    let all = options(Format::Luks2, &State::ALL);
    let restored = restore_header(&place, &bad, None, &all, &unwatched);
    assert_eq!(mended(restored), "the backup ends before its key slots do");
    // What no program writes is not kept.
    assert_eq!(bounded(256 << 20).unwrap(), 256 << 20);
    let said = bounded((256 << 20) + 1).unwrap_err().to_string();
    assert_eq!(
        said,
        "the header says that it takes 268435457 bytes with its key slots"
    );
    for format in [Format::Tcrypt, Format::Veracrypt] {
        for (length, is_enough) in [(TCRYPT_HEADERS - 512, false), (TCRYPT_HEADERS, true)] {
            let place = Place::of(Arc::new(RamDevice::new(length)), None);
            assert_eq!(
                backup_header(&place, &options(format, &[])).is_ok(),
                is_enough
            );
        }
    }
}

/// A device on which the key material differs at each reading.
struct Changing {
    device: RamDevice,
    left: AtomicU8,
}

impl BlockDevice for Changing {
    fn geometry(&self) -> Geometry {
        self.device.geometry()
    }
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), BlockError> {
        self.device.read_at(offset, into)?;
        if self.left.load(Ordering::Relaxed) > 250 {
            return Err(BlockError::ReadOnly);
        }
        if offset == 64 << 10 {
            let less = |left: u8| left.checked_sub(1);
            let left = self
                .left
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
            into[0] ^= left.unwrap_or(0);
        }
        Ok(())
    }
    fn write_at(&self, offset: u64, data: &[u8]) -> Result<(), BlockError> {
        self.device.write_at(offset, data)
    }
    fn flush(&self) -> Result<(), BlockError> {
        self.device.flush()
    }
    fn discard(&self, range: ByteRange) -> Result<(), BlockError> {
        self.device.discard(range)
    }
    fn queue(&self, options: QueueOptions) -> Result<Box<dyn Queue + '_>, BlockError> {
        self.device.queue(options)
    }
}
