//! [`Filling`]: a volume whose plaintext is overwritten from its start on.

use super::reserve;
use crate::judge::{self, State, Use};
use crate::{Opened, Storage, VolumeError};
use block::signature::{self, Bytes, Content};
use block::{
    AlignedBuffer, BlockDevice, BlockError, ByteRange, Geometry, OperationKind, Queue, QueueOptions,
};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The start of what is stored in one piece that is looked at, bytes, and the most pieces.
const MOST_COMPARED: u64 = 4 << 20;
const MOST_EXTENTS: usize = 4096;

/// What is known of a volume before its plaintext is overwritten.
pub struct Filling {
    rows: Vec<(Storage, ByteRange)>,
    /// The same volume, in which blocks that were never written are zeros.
    blanks: Option<Opened>,
}

impl Filling {
    /// That of a volume which has been unlocked.
    pub fn of(opened: &Opened) -> Self {
        let rows = opened.rows.iter();
        Self {
            rows: rows.map(|row| (row.storage, row.mapping.data)).collect(),
            blanks: opened.with_blanks(),
        }
    }

    /// The bytes of the volume before a hidden one.
    pub fn before(&self, hidden: ByteRange) -> u64 {
        let first = self.rows.first();
        first.map_or(0, |(_, range)| hidden.offset.saturating_sub(range.offset))
    }

    /// Whether its first `length` bytes reach a hidden volume.
    pub fn reaches(&self, hidden: ByteRange, length: u64) -> bool {
        self.touched(length)
            .iter()
            .any(|range| range.overlaps(hidden))
    }

    /// Reserves the room for its first `length` bytes.
    ///
    /// # Errors
    /// Those of [`reserve`].
    pub fn reserve(&self, data: &dyn BlockDevice, length: u64) -> Result<(), VolumeError> {
        let mut touched = self.touched(length).into_iter();
        touched.try_for_each(|range| reserve(data, range))
    }

    /// Refuses to overwrite `volume`, which is open on the devices of its header and its data, if it
    /// holds anything. `stored` is the device that knows where data are stored.
    ///
    /// # Errors
    /// [`VolumeError::Judged`], and those of reading it.
    pub fn check_blank(
        &mut self,
        volume: &dyn BlockDevice,
        [header, data]: [&dyn BlockDevice; 2],
        stored: &dyn BlockDevice,
    ) -> Result<(), VolumeError> {
        let written = self.written(stored)?;
        let blanks = self.blanks.take();
        let blanks = blanks.map(|view| view.device(header, data)).transpose()?;
        match inside(blanks.as_deref().unwrap_or(volume), &written)? {
            Some(words) => judge::check(Use::Overwrite, State::Data, words, &[]),
            None => Ok(()),
        }
    }

    /// Where on the device with the data the first `length` bytes are.
    fn touched(&self, length: u64) -> Vec<ByteRange> {
        let mut left = length;
        let mut touched = Vec::new();
        for (storage, range) in &self.rows {
            if *storage == Storage::Data {
                touched.push(ByteRange::new(range.offset, range.length.min(left)));
            }
            left = left.saturating_sub(range.length);
        }
        touched
    }

    /// Where something is stored, by its places in the volume.
    fn written(&self, data: &dyn BlockDevice) -> Result<Vec<ByteRange>, VolumeError> {
        let mut written = Vec::new();
        let mut start = 0;
        for (storage, range) in &self.rows {
            if *storage == Storage::Data {
                let extents = data.extents(*range)?;
                let stored = extents.into_iter().filter(|extent| !extent.hole);
                written.extend(stored.map(|extent| {
                    let inside = extent.range.offset.saturating_sub(range.offset);
                    ByteRange::new(start + inside, extent.range.length.min(MOST_COMPARED))
                }));
            }
            start += range.length;
        }
        written.truncate(MOST_EXTENTS);
        Ok(written)
    }
}

/// A description of the data in the plaintext of a volume, in which blocks that were never written
/// are zeros; `None` if there are none. `written` is where something is stored, as far as that is
/// known.
///
/// # Errors
/// Those of reading it.
fn inside(volume: &dyn BlockDevice, written: &[ByteRange]) -> Result<Option<String>, VolumeError> {
    let volume = Fitting::of(volume);
    let look = || -> Result<Option<String>, BlockError> {
        let found = signature::names(&volume)?;
        if !found.is_empty() {
            return Ok(Some(Content { found, data: None }.to_string()));
        }
        let samples = signature::samples(volume.geometry().size);
        for range in written.iter().chain(&samples) {
            return Ok(Some(match first_data(&volume, *range)? {
                None => continue,
                Some((place, Bytes::Readable)) => {
                    format!("readable data at byte {place}, with no known signature")
                }
                Some((place, _)) => format!(
                    "data from byte {place} on, with no known signature (encrypted data and media \
                     look like this, and so does a new volume that was filled with noise)"
                ),
            }));
        }
        Ok(volume.damaged().map(|place| {
            format!(
                "sectors that cannot be read (the first at byte {place}: its tag does not fit) and \
                 others that can"
            )
        }))
    };
    Ok(look()?)
}

/// The first sector in `range` with anything but zeros or ones: its place and kind.
fn first_data(
    volume: &dyn BlockDevice,
    range: ByteRange,
) -> Result<Option<(u64, Bytes)>, BlockError> {
    const PIECE: u64 = 1 << 20;
    let geometry = volume.geometry();
    let unit = u64::from(geometry.logical_block);
    let end = range.offset.saturating_add(range.length).min(geometry.size);
    let mut at = range.offset / unit * unit;
    while at < end {
        let length = (end - at).next_multiple_of(unit).min(PIECE);
        let mut bytes = AlignedBuffer::new(length as usize);
        volume.read_at(at, &mut bytes)?;
        let sectors = bytes.chunks_exact(512).map(Bytes::of);
        let mut sectors = (at..).step_by(512).zip(sectors);
        if let Some(found) = sectors.find(|(_, kind)| *kind != Bytes::Blank) {
            return Ok(Some(found));
        }
        at += length;
    }
    Ok(None)
}

/// A view to look at, in which a sector that its tag does not fit is zeros: one damaged
/// sector must not hide all others.
struct Fitting<'a> {
    volume: &'a dyn BlockDevice,
    /// Whether any sector was read that its tag fits.
    fits: AtomicBool,
    /// The first sector of the others.
    first: AtomicU64,
}

impl<'a> Fitting<'a> {
    fn of(volume: &'a dyn BlockDevice) -> Self {
        Self {
            volume,
            fits: AtomicBool::new(false),
            first: AtomicU64::new(u64::MAX),
        }
    }

    /// The first sector that was read and does not match its tag. `None` if no sector matches,
    /// because then none was ever written.
    fn damaged(&self) -> Option<u64> {
        let first = self.first.load(Ordering::Relaxed);
        (first != u64::MAX && self.fits.load(Ordering::Relaxed)).then_some(first)
    }
}

impl BlockDevice for Fitting<'_> {
    fn geometry(&self) -> Geometry {
        self.volume.geometry()
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), BlockError> {
        let whole = self.volume.read_at(offset, into);
        if !matches!(whole, Err(BlockError::Tampered { .. })) {
            self.fits.fetch_or(whole.is_ok(), Ordering::Relaxed);
            return whole;
        }
        let sector = self.geometry().logical_block as usize;
        for (at, into) in (offset..).step_by(sector).zip(into.chunks_mut(sector)) {
            match self.volume.read_at(at, into) {
                Ok(()) => self.fits.store(true, Ordering::Relaxed),
                Err(BlockError::Tampered { .. }) => {
                    into.fill(0);
                    self.first.fetch_min(at, Ordering::Relaxed);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
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

    fn queue(&self, _: QueueOptions) -> Result<Box<dyn Queue + '_>, BlockError> {
        Err(BlockError::Unsupported {
            operation: OperationKind::Read,
        })
    }
}
