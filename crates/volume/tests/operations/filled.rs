//! What a volume holds before its plaintext is overwritten.

use super::{Bench, MIB, OFFSET, ONE, mbr, new, options, outcome, secret, spoil, text};
use block::signature;
use block::{BlockDevice, BlockError, ByteRange, Extent, Geometry, Queue, QueueOptions};
use cryptmark_volume::judge::Use;
use cryptmark_volume::operate::{Creation, Filling, Options, create, unwatched};
use cryptmark_volume::{
    Access, Format, Locked, OpenOptions, Opened, Parameters, Place, VolumeError,
};
use std::ops::ControlFlow;
use std::sync::Mutex;

/// Unlocks `v`, and does `work` with it at its place.
fn unlocked<T>(bench: &Bench, options: &Options, work: impl FnOnce(&Place, Opened) -> T) -> T {
    let place = Place::open(&bench.path("v"), None, Use::WriteData).unwrap();
    let terms = OpenOptions {
        format: options.format,
        parameters: options.parameters.clone(),
        access: Access::Write,
        ..OpenOptions::default()
    };
    let locked = Locked::find(&place, &terms).unwrap();
    let watch = |_, _| ControlFlow::Continue(());
    let opened = locked.unlock(Some(&secret(ONE)), &watch).unwrap();
    work(&place, opened)
}

/// What is said of `v` before it is overwritten, if the device says `stored` of what is stored.
fn said(bench: &Bench, options: &Options, stored: Option<Vec<Extent>>) -> String {
    unlocked(bench, options, |place, opened| {
        let mut filling = Filling::of(&opened);
        let (header, data) = (place.header(), place.data());
        let volume = opened.device(header, data).unwrap();
        let known = Known::of(data, stored);
        let checked = filling.check_blank(&*volume, [header, data], &known);
        outcome(checked)
    })
}

/// A device that says where it stores what, and hears what is reserved.
struct Known<'a> {
    inner: &'a dyn BlockDevice,
    stored: Option<Vec<Extent>>,
    reserved: Mutex<Vec<(u64, u64)>>,
}

impl<'a> Known<'a> {
    fn of(inner: &'a dyn BlockDevice, stored: Option<Vec<Extent>>) -> Self {
        let reserved = Mutex::default();
        Self {
            inner,
            stored,
            reserved,
        }
    }
}

impl BlockDevice for Known<'_> {
    fn geometry(&self) -> Geometry {
        self.inner.geometry()
    }
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), BlockError> {
        self.inner.read_at(offset, into)
    }
    fn write_at(&self, _: u64, _: &[u8]) -> Result<(), BlockError> {
        Err(BlockError::ReadOnly)
    }
    fn flush(&self) -> Result<(), BlockError> {
        Ok(())
    }
    fn discard(&self, _: ByteRange) -> Result<(), BlockError> {
        Err(BlockError::ReadOnly)
    }
    fn queue(&self, options: QueueOptions) -> Result<Box<dyn Queue + '_>, BlockError> {
        self.inner.queue(options)
    }
    fn extents(&self, range: ByteRange) -> Result<Vec<Extent>, BlockError> {
        self.stored
            .clone()
            .map_or_else(|| self.inner.extents(range), Ok)
    }
    fn reserve(&self, range: ByteRange) -> Result<(), BlockError> {
        self.reserved
            .lock()
            .unwrap()
            .push((range.offset, range.length));
        match range.length {
            4242 => Err(BlockError::Injected { errno: 28 }),
            _ => Ok(()),
        }
    }
}

fn hole(offset: u64, length: u64, hole: bool) -> Extent {
    let range = ByteRange::new(offset, length);
    Extent { range, hole }
}

/// A new LUKS2 volume `v`, that holds so many bytes.
fn made(bytes: u64) -> Bench {
    let bench = Bench::new();
    let creation = Creation {
        parameters: Parameters {
            offset: Some(OFFSET),
            sector_size: Some(512),
            ..Parameters::default()
        },
        ..Creation::new(Format::Luks2)
    };
    let mut place = Place::create(&bench.path("v"), None, Some(OFFSET + bytes)).unwrap();
    create(&mut place, Some(&new(ONE)), &creation, &unwatched).unwrap();
    bench
}

/// What is written into a new volume, and what is said before it is overwritten.
#[test]
fn data_in_a_volume_are_found_and_named() {
    let noise = || {
        let mut noise = vec![0; 512];
        spoil(&mut noise);
        noise
    };
    let mut table = vec![0; 512];
    mbr(&mut table);
    let readable = |at| format!("data: holds readable data at byte {at}, with no known signature");
    let random = |at| {
        format!(
            "data: holds data from byte {at} on, with no known signature (encrypted data and \
             media look like this, and so does a new volume that was filled with noise)"
        )
    };
    let last = 2 * MIB - 512;
    for (case, at, bytes, wanted) in [
        ("zeros", 0, vec![0; 2 * MIB as usize], "()".to_owned()),
        ("ones", 4096, vec![255; 4096], "()".to_owned()),
        (
            "table",
            0,
            table,
            "data: holds an MBR partition table".to_owned(),
        ),
        ("first", 0, text(512), readable(0)),
        ("second sector", 512, noise(), random(512)),
        (
            "an odd place",
            MIB + 7 * 4096 + 512,
            text(512),
            readable(MIB + 7 * 4096 + 512),
        ),
        ("the second piece", MIB + 512, noise(), random(MIB + 512)),
        ("last", last, text(512), readable(last)),
    ] {
        let bench = made(2 * MIB);
        let luks = options(Format::Luks2, &[]);
        assert_eq!(said(&bench, &luks, None), "()", "{case}: new");
        let whole = |fill: &[u8], at| {
            unlocked(&bench, &luks, |place, opened| {
                let volume = opened.device(place.header(), place.data()).unwrap();
                volume.write_at(at, fill).unwrap();
                volume.flush().unwrap();
            });
        };
        whole(&bytes, at);
        assert_eq!(
            said(&bench, &luks, None),
            wanted,
            "{case}: the rest is a hole"
        );
        let before = vec![0; at as usize];
        let after = vec![0; (2 * MIB - at) as usize - bytes.len()];
        whole(&[before, bytes, after].concat(), 0);
        assert_eq!(said(&bench, &luks, None), wanted, "{case}: all is stored");
    }
}

/// Only what the device stores is looked at all through; places are those of the volume.
#[test]
fn what_is_stored_is_looked_at() {
    let size = 1 << 30;
    let bench = made(size);
    let luks = options(Format::Luks2, &[]);
    // Samples are looked at in any case.
    let samples = signature::samples(size);
    let around = |at: &u64| ByteRange::new(at - 4096, 8192);
    let unseen = |at: &u64| !samples.iter().any(|sample| sample.overlaps(around(at)));
    let at = (MIB..size - 8192).step_by(4096).find(unseen).unwrap();
    unlocked(&bench, &luks, |place, opened| {
        let volume = opened.device(place.header(), place.data()).unwrap();
        volume.write_at(at, &text(512)).unwrap();
    });
    let wanted = format!("data: holds readable data at byte {at}, with no known signature");
    for (case, stored, wanted) in [
        ("nothing", vec![hole(OFFSET, size, true)], "()"),
        ("elsewhere", vec![hole(OFFSET, at, false)], "()"),
        ("behind", vec![hole(OFFSET + at + 512, 4096, false)], "()"),
        ("there", vec![hole(OFFSET + at, 512, false)], &*wanted),
        (
            "from before the data on",
            vec![hole(0, size, false)],
            &*wanted,
        ),
        (
            "the second",
            vec![
                hole(OFFSET, 4096, false),
                hole(OFFSET + at - 512, 1024, false),
            ],
            &*wanted,
        ),
    ] {
        assert_eq!(said(&bench, &luks, Some(stored)), wanted, "{case}");
    }
}

/// Where the first sector is written, of volumes with tags.
const FIRST: u64 = 8192;

/// A sector that its tag does not fit must not hide all others, and is said if there are no data.
#[test]
fn damaged_sectors_hide_no_data() {
    let luks = options(Format::Luks2, &[]);
    for (case, write, spoiled, wanted) in [
        ("new", None, false, "()"),
        ("zeros", Some(vec![0; 64 << 10]), false, "()"),
        (
            "damaged",
            Some(vec![0; 64 << 10]),
            true,
            "data: holds sectors that cannot be read (the first at byte 8192: its tag does not \
             fit) and others that can",
        ),
        (
            "data behind it",
            Some([vec![0; 60 << 10], text(4096)].concat()),
            true,
            "data: holds readable data at byte 69632, with no known signature",
        ),
    ] {
        let bench = Bench::new();
        let creation = Creation {
            integrity: Some("hmac-sha256".to_owned()),
            quick: write.is_none(),
            ..Creation::new(Format::Luks2)
        };
        let mut place = Place::create(&bench.path("v"), None, Some(24 * MIB)).unwrap();
        create(&mut place, Some(&new(ONE)), &creation, &unwatched).unwrap();
        drop(place);
        unlocked(&bench, &luks, |place, opened| {
            let volume = opened.device(place.header(), place.data()).unwrap();
            let Some(bytes) = &write else { return };
            volume.write_at(FIRST, bytes).unwrap();
            volume.flush().unwrap();
        });
        if spoiled {
            let mut file = bench.read("v");
            file[journalled(&bench)] ^= 1;
            bench.write("v", &file);
        }
        assert_eq!(said(&bench, &luks, None), wanted, "{case}");
    }
}

/// Where the file has the sector that was written first: what another write changes in its journal,
/// from which it is not moved before the volume is opened again.
fn journalled(bench: &Bench) -> usize {
    let luks = options(Format::Luks2, &[]);
    let before = bench.read("v");
    unlocked(bench, &luks, |place, opened| {
        let volume = opened.device(place.header(), place.data()).unwrap();
        volume.write_at(FIRST, &[1; 4096]).unwrap();
        volume.flush().unwrap();
    });
    let after = bench.read("v");
    bench.write("v", &before);
    let differs: Vec<usize> = (0..before.len())
        .filter(|at| before[*at] != after[*at])
        .collect();
    let runs = differs.chunk_by(|one, next| next - one < 64);
    runs.max_by_key(|run| run.len()).unwrap()[1000]
}

/// Where its first bytes are stored, of a volume in one piece and beside a hidden one.
#[test]
fn what_is_overwritten_is_reserved_and_reaches_a_hidden_volume() {
    for (format, start) in [(Format::Luks2, OFFSET), (Format::Veracrypt, 128 << 10)] {
        let bench = Bench::volume(format);
        unlocked(&bench, &options(format, &[]), |place, opened| {
            let filling = Filling::of(&opened);
            let hidden = |offset| ByteRange::new(offset, 4096);
            assert_eq!(filling.before(hidden(start + 8192)), 8192);
            assert_eq!(filling.before(hidden(0)), 0);
            for (length, wanted) in [(8192, false), (8193, true), (0, false), (1 << 40, true)] {
                let reached = filling.reaches(hidden(start + 8192), length);
                assert_eq!(reached, wanted, "{length}");
            }
            let known = Known::of(place.data(), None);
            filling.reserve(&known, 8192).unwrap();
            filling.reserve(&known, 1 << 40).unwrap();
            let full = filling.reserve(&known, 4242).unwrap_err();
            assert!(matches!(full, VolumeError::NoRoom(_)), "{full}");
            let size = opened
                .device(place.header(), place.data())
                .unwrap()
                .geometry()
                .size;
            let wanted = [(start, 8192), (start, size), (start, 4242)];
            assert_eq!(*known.reserved.lock().unwrap(), wanted);
        });
    }
}
