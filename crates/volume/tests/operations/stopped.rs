//! A reencryption that ends at any of its writes, as when its process is killed: the same once more
//! brings it to its end, and nothing is lost meanwhile.

use super::{Bench, MIB, OFFSET, ONE, new, options, secret, text};
use block::signature::Content;
use block::{
    BlockDevice, BlockError, ByteRange, Extent, Geometry, InlineQueue, Queue, QueueOptions,
};
use cryptmark_volume::judge::{State, Use};
use cryptmark_volume::operate::{Answers, Change, Options, Reencrypted, reencrypt, unwatched};
use cryptmark_volume::{Files, Format, Opener, Site, VolumeError};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The writes and changes of length that are left to all devices.
#[derive(Clone)]
pub struct Left {
    count: Arc<AtomicU32>,
    /// Whether nothing can be done after them, as when its process is killed. Otherwise files are
    /// still made shorter.
    is_killed: bool,
}

impl Left {
    pub fn new(count: u32) -> Self {
        Self {
            count: Arc::new(AtomicU32::new(count)),
            is_killed: true,
        }
    }

    fn take(&self) -> Result<(), BlockError> {
        let less = |left: u32| left.checked_sub(1);
        let taken = self
            .count
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        taken.map(drop).map_err(|_| BlockError::ReadOnly)
    }

    fn is_over(&self) -> bool {
        self.count.load(Ordering::Relaxed) == 0
    }
}

impl Opener for Left {
    fn open(&self, path: &Path, use_: Use) -> Result<Box<dyn BlockDevice>, VolumeError> {
        if self.is_killed && self.is_over() {
            return Err(BlockError::ReadOnly.into());
        }
        Ok(Box::new(Ending {
            device: Files.open(path, use_)?,
            left: self.clone(),
            is_killed: self.is_killed,
        }))
    }

    fn part(&self, path: &Path) -> Option<String> {
        Files.part(path)
    }
}

/// A device that is written until nothing is left.
pub struct Ending {
    pub device: Box<dyn BlockDevice>,
    pub left: Left,
    /// Whether its length stays as well, in the end.
    pub is_killed: bool,
}

impl BlockDevice for Ending {
    fn geometry(&self) -> Geometry {
        self.device.geometry()
    }
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), BlockError> {
        self.device.read_at(offset, into)
    }
    fn write_at(&self, offset: u64, data: &[u8]) -> Result<(), BlockError> {
        self.left.take()?;
        self.device.write_at(offset, data)
    }
    fn flush(&self) -> Result<(), BlockError> {
        self.device.flush()
    }
    fn discard(&self, range: ByteRange) -> Result<(), BlockError> {
        self.left.take()?;
        self.device.discard(range)
    }
    fn queue(&self, options: QueueOptions) -> Result<Box<dyn Queue + '_>, BlockError> {
        Ok(Box::new(InlineQueue::open(self, options, None)?))
    }
    fn content(&self) -> Result<Content, BlockError> {
        self.device.content()
    }
    fn extents(&self, range: ByteRange) -> Result<Vec<Extent>, BlockError> {
        self.device.extents(range)
    }
    fn length(&self) -> Result<u64, BlockError> {
        self.device.length()
    }
    fn is_resizable(&self) -> bool {
        self.device.is_resizable()
    }
    fn set_len(&mut self, bytes: u64) -> Result<(), BlockError> {
        if self.is_killed {
            self.left.take()?;
        }
        self.device.set_len(bytes)
    }
}

/// Does it with what is left.
pub fn work(
    bench: &Bench,
    (change, header): (Change, bool),
    options: &Options,
    left: &Left,
) -> Result<Reencrypted, VolumeError> {
    let (path, apart) = (bench.path("v"), bench.path("h"));
    let one = secret(ONE);
    let caller = Answers {
        cost: new(ONE).cost,
        ..Answers::new(&one, &unwatched)
    };
    let site = Site::new(&path, header.then_some(&*apart)).opened_by(left);
    reencrypt(&site, change, options, &caller)
}

/// What `v` holds, if it opens as a volume of `format` by the header apart or with it.
fn content(bench: &Bench, header: bool, format: Format) -> Result<Vec<u8>, VolumeError> {
    let volume = bench.open("v", header.then_some("h"), format, false, ONE)?;
    let mut bytes = vec![0; volume.size() as usize];
    volume.read_at(0, &mut bytes)?;
    Ok(bytes)
}

const PLAIN: u64 = 3 * MIB / 2 + 100;

/// Ends it after each count of writes, and once more without an end.
fn goes_on_from_any_write(format: Format, change: Change, header: bool) {
    let bench = match change {
        Change::Encrypt => Bench::new(),
        _ => Bench::volume(format),
    };
    match (change, header) {
        (Change::Encrypt, _) => bench.write("v", text(PLAIN)),
        (_, true) if format == Format::Luks2 => bench.part(),
        _ => {}
    }
    let is_apart = header && format == Format::Luks2;
    let options = options(format, &[State::Hidden]);
    let run = |left| work(&bench, (change, header), &options, &Left::new(left));
    let before = bench.files();
    let (mut ends, mut late) = (0, 0);
    for left in 0.. {
        bench.put_back(&before);
        let done = run(left).is_ok();
        if !done {
            ends += 1;
            // Meanwhile it opens with all of its data, or not at all.
            if let Ok(there) = content(&bench, is_apart, format) {
                let length = there.len().min(PLAIN as usize);
                assert!(there[..length] == text(length as u64), "{left}");
            }
            // All may have been done but for the end.
            if let Err(error) = run(u32::MAX) {
                let said = error.to_string();
                assert!(
                    said.ends_with("is a LUKS2 volume already"),
                    "{left}: {said}"
                );
                late += 1;
            }
        }
        let length = before[&bench.path("v")].len();
        check(&bench, left, change, (is_apart, format), length);
        if done {
            break;
        }
    }
    assert!(ends > 2 && late < 2, "{ends} {late}");
}

#[test]
fn an_encryption_goes_on() {
    goes_on_from_any_write(Format::Luks2, Change::Encrypt, false);
}

#[test]
fn an_encryption_with_its_header_apart_goes_on() {
    goes_on_from_any_write(Format::Luks2, Change::Encrypt, true);
}

#[test]
fn a_decryption_goes_on() {
    goes_on_from_any_write(Format::Luks2, Change::Decrypt, false);
}

#[test]
fn a_decryption_with_its_header_apart_goes_on() {
    goes_on_from_any_write(Format::Luks2, Change::Decrypt, true);
}

#[test]
fn another_key_of_luks2_goes_on() {
    for header in [false, true] {
        goes_on_from_any_write(Format::Luks2, Change::Anew, header);
    }
}

#[test]
fn another_key_of_truecrypt_goes_on() {
    for header in [false, true] {
        goes_on_from_any_write(Format::Tcrypt, Change::Anew, header);
    }
}

/// A disk that fails before anything is encrypted leaves the file as it was.
#[test]
fn a_file_that_cannot_be_written_is_as_long_as_it_was() {
    let bench = Bench::new();
    bench.write("v", text(PLAIN));
    let before = bench.files();
    let run = |count| {
        bench.put_back(&before);
        let left = Left {
            is_killed: false,
            ..Left::new(count)
        };
        let options = options(Format::Luks2, &[]);
        work(&bench, (Change::Encrypt, false), &options, &left).is_err()
    };
    assert!(run(0) && bench.files() == before);
    // Its start may be copied by then, which is behind the room for the header.
    assert!((1..5).all(run));
    let is_whole = bench.read("v").starts_with(&text(PLAIN)[..4096]);
    assert_eq!(is_whole, bench.files() == before);
}

/// All is done, and nothing else is there.
fn check(
    bench: &Bench,
    left: u32,
    change: Change,
    (is_apart, format): (bool, Format),
    before: usize,
) {
    let names: Vec<_> = bench.files().into_keys().collect();
    let expected = if is_apart { &["h", "v"][..] } else { &["v"] };
    let expected: Vec<_> = expected.iter().map(|name| bench.path(name)).collect();
    assert_eq!(names, expected, "{left}");
    let whole = match change {
        Change::Decrypt => bench.read("v"),
        _ => content(bench, is_apart, format).unwrap(),
    };
    let (start, length) = match (change, is_apart) {
        (Change::Encrypt, _) => (0, before.next_multiple_of(4096)),
        (Change::Decrypt, true) => (OFFSET as usize, before),
        (Change::Decrypt, false) => (0, before - OFFSET as usize),
        (Change::Anew, _) => (0, whole.len()),
    };
    assert_eq!(whole.len(), length, "{left}");
    let there = before.min(PLAIN as usize);
    assert!(whole[start..][..there] == text(there as u64), "{left}");
}
