//! Whole devices out to files and pipes, and back in: by every core, in pieces
//! that stay in its cache.

use crate::positioned::write_all_at;
use crate::{AlignedBuffer, BlockDevice, BlockError};
use std::fs::File;
use std::io::{self, Read, Write};
use std::num::NonZero;
use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

/// Bytes that a core works on at a time: an L2 cache has room for them.
const PIECE: u64 = 1 << 20;

/// What a hole in a file is made of.
const HOLE: usize = 4096;

/// Pieces that wait for the slower side of a pipe, for every core.
const AHEAD: usize = 2;

/// Why a transfer ended early.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// The device failed or refused.
    #[error(transparent)]
    Block(#[from] BlockError),
    /// The other side could not be read.
    #[error("cannot read the input")]
    Input(#[source] io::Error),
    /// The other side could not be written.
    #[error("cannot write the output")]
    Output(#[source] io::Error),
    /// There is more input than the device has room for.
    #[error("the input has more than the {size} bytes of the volume")]
    TooLong {
        /// Bytes of the device.
        size: u64,
    },
    /// The caller said stop.
    #[error("interrupted")]
    Stopped,
}

/// Is told the bytes that are done, from any thread, and says whether to go on.
pub type Report<'a> = &'a (dyn Fn(u64) -> ControlFlow<()> + Sync);

/// Writes all of `device` to the start of `file`.
///
/// With `sparse`, which takes a file that is as long as the device and empty,
/// runs of zeros are left as holes.
///
/// # Errors
/// [`TransferError::Block`], [`TransferError::Output`], [`TransferError::Stopped`].
pub fn to_file(
    device: &dyn BlockDevice,
    file: &File,
    sparse: bool,
    report: Report,
) -> Result<(), TransferError> {
    let pieces = Pieces::of(device, report);
    let copy = |offset, buffer: &mut AlignedBuffer| {
        device.read_at(offset, buffer)?;
        for run in runs(buffer, sparse) {
            let at = offset + run.start as u64;
            let written = write_all_at(file, &buffer[run], at);
            written.map_err(TransferError::Output)?;
        }
        Ok(())
    };
    on_every_core(|| pieces.each(&copy))
}

/// Writes all of `device` to a pipe, in order.
///
/// # Errors
/// [`TransferError::Block`], [`TransferError::Output`], [`TransferError::Stopped`].
pub fn to_writer(
    device: &dyn BlockDevice,
    to: &mut dyn Write,
    report: Report,
) -> Result<(), TransferError> {
    let size = device.geometry().size;
    let cores = cores() as u64;
    thread::scope(|scope| {
        let readers: Vec<_> = (0..cores)
            .map(|core| {
                let (full, filled) = sync_channel(AHEAD);
                scope.spawn(move || read_every(device, core, cores, &full));
                filled
            })
            .collect();
        for (piece, from) in (0..size.div_ceil(PIECE)).zip(readers.iter().cycle()) {
            let buffer = from
                .recv()
                .expect("a reader sends every piece or an error")?;
            to.write_all(&buffer).map_err(TransferError::Output)?;
            go_on(report, (piece * PIECE) + buffer.len() as u64)?;
        }
        to.flush().map_err(TransferError::Output)
    })
}

/// Reads every `step`th piece from `first` on, until nobody wants them.
fn read_every(
    device: &dyn BlockDevice,
    first: u64,
    step: u64,
    full: &SyncSender<Result<AlignedBuffer, BlockError>>,
) {
    let size = device.geometry().size;
    let mut offset = first * PIECE;
    while offset < size {
        let mut buffer = AlignedBuffer::new(PIECE.min(size - offset) as usize);
        let read = device.read_at(offset, &mut buffer);
        let failed = read.is_err();
        if full.send(read.map(|()| buffer)).is_err() || failed {
            break;
        }
        offset += step * PIECE;
    }
}

/// Writes what `from` gives to the start of `device`, flushes it, and says how
/// many bytes there were. The rest of the last sector keeps what it held.
///
/// # Errors
/// Any [`TransferError`].
pub fn from_reader(
    device: &dyn BlockDevice,
    from: &mut (dyn Read + Send),
    report: Report,
) -> Result<u64, TransferError> {
    let size = device.geometry().size;
    let done = AtomicU64::new(0);
    let (full, filled) = sync_channel(AHEAD);
    let filled = Mutex::new(filled);
    let length = thread::scope(|scope| {
        let reader = scope.spawn(move || read_all(from, size, &full));
        let written = on_every_core(|| {
            while let Some((offset, buffer)) = next(&filled) {
                write_piece(device, offset, buffer)?;
                let done = done.fetch_add(PIECE, Ordering::Relaxed) + PIECE;
                go_on(report, done)?;
            }
            Ok(())
        });
        // Nobody takes pieces any more: the reader must not wait for that.
        drop(filled);
        let read = reader.join().expect("the reader does not panic");
        written.and(read)
    })?;
    device.flush()?;
    Ok(length)
}

/// Sends `from` in pieces; how many bytes there were.
fn read_all(
    from: &mut (dyn Read + Send),
    size: u64,
    full: &SyncSender<(u64, Vec<u8>)>,
) -> Result<u64, TransferError> {
    let mut offset = 0;
    loop {
        let mut buffer = Vec::with_capacity(PIECE as usize);
        let read = from.take(PIECE).read_to_end(&mut buffer);
        let length = read.map_err(TransferError::Input)? as u64;
        if length > size - offset {
            return Err(TransferError::TooLong { size });
        }
        if length == 0 || full.send((offset, buffer)).is_err() {
            return Ok(offset);
        }
        offset += length;
    }
}

fn next<T>(from: &Mutex<Receiver<T>>) -> Option<T> {
    from.lock().expect("nobody panics with it").recv().ok()
}

fn write_piece(
    device: &dyn BlockDevice,
    offset: u64,
    mut bytes: Vec<u8>,
) -> Result<(), BlockError> {
    let block = device.geometry().logical_block as usize;
    let given = bytes.len();
    let whole = given.next_multiple_of(block);
    if whole > given {
        let mut last = AlignedBuffer::new(block);
        device.read_at(offset + (whole - block) as u64, &mut last)?;
        bytes.extend_from_slice(&last[block - (whole - given)..]);
    }
    device.write_at(offset, &bytes)
}

/// The pieces of a device, for whoever takes the next.
struct Pieces<'a> {
    size: u64,
    next: AtomicU64,
    done: AtomicU64,
    report: Report<'a>,
}

impl<'a> Pieces<'a> {
    fn of(device: &dyn BlockDevice, report: Report<'a>) -> Self {
        Self {
            size: device.geometry().size,
            next: AtomicU64::new(0),
            done: AtomicU64::new(0),
            report,
        }
    }

    /// Does `work` for pieces until there are none.
    fn each(
        &self,
        work: &(dyn Fn(u64, &mut AlignedBuffer) -> Result<(), TransferError> + Sync),
    ) -> Result<(), TransferError> {
        let mut buffer = AlignedBuffer::new(PIECE.min(self.size) as usize);
        loop {
            let offset = self.next.fetch_add(PIECE, Ordering::Relaxed);
            if offset >= self.size {
                return Ok(());
            }
            let length = PIECE.min(self.size - offset);
            if length < buffer.len() as u64 {
                buffer = AlignedBuffer::new(length as usize);
            }
            if let Err(error) = work(offset, &mut buffer) {
                // The others need not go on.
                self.next.store(self.size, Ordering::Relaxed);
                return Err(error);
            }
            let done = self.done.fetch_add(length, Ordering::Relaxed) + length;
            if let Err(stopped) = go_on(self.report, done) {
                self.next.store(self.size, Ordering::Relaxed);
                return Err(stopped);
            }
        }
    }
}

fn go_on(report: Report, done: u64) -> Result<(), TransferError> {
    match report(done) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(TransferError::Stopped),
    }
}

/// Calls `work` once on every core; the first error counts.
fn on_every_core(work: impl Fn() -> Result<(), TransferError> + Sync) -> Result<(), TransferError> {
    thread::scope(|scope| {
        let others: Vec<_> = (1..cores()).map(|_| scope.spawn(&work)).collect();
        let mut outcome = work();
        for other in others {
            outcome = outcome.and(other.join().expect("the work does not panic"));
        }
        outcome
    })
}

fn cores() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

/// The parts of `bytes` to write: all, or what is left without whole runs of zeros.
fn runs(bytes: &[u8], sparse: bool) -> Vec<std::ops::Range<usize>> {
    if !sparse {
        return std::iter::once(0..bytes.len()).collect();
    }
    let mut runs: Vec<std::ops::Range<usize>> = Vec::new();
    for (at, part) in bytes.chunks(HOLE).enumerate() {
        let part_range = at * HOLE..at * HOLE + part.len();
        if part.iter().all(|&byte| byte == 0) {
            continue;
        }
        match runs.last_mut() {
            Some(last) if last.end == part_range.start => last.end = part_range.end,
            _ => runs.push(part_range),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RamDevice;
    use crate::positioned::read_exact_at;

    const SIZE: u64 = 3 * PIECE + 512 * 3;

    fn go_on(_: u64) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn filled() -> (RamDevice, Vec<u8>) {
        let device = RamDevice::new(SIZE);
        let bytes: Vec<u8> = (0..SIZE).map(|at| (at * 7 / 5) as u8).collect();
        device.write_at(0, &bytes).unwrap();
        (device, bytes)
    }

    #[test]
    fn out_to_a_file_a_pipe_and_back() {
        let (device, bytes) = filled();
        let file = tempfile::tempfile().unwrap();
        to_file(&device, &file, false, &go_on).unwrap();
        let mut read = vec![0; SIZE as usize];
        read_exact_at(&file, &mut read, 0).unwrap();
        assert!(read == bytes);

        let mut piped = Vec::new();
        to_writer(&device, &mut piped, &go_on).unwrap();
        assert!(piped == bytes);

        let other = RamDevice::new(SIZE);
        let length = from_reader(&other, &mut &piped[..], &go_on).unwrap();
        assert_eq!(length, SIZE);
        other.read_at(0, &mut read).unwrap();
        assert!(read == bytes);
    }

    #[test]
    fn zeros_become_holes() {
        let device = RamDevice::new(SIZE);
        device.write_at(2 * PIECE + 512, &[1; 512]).unwrap();
        let file = tempfile::tempfile().unwrap();
        file.set_len(SIZE).unwrap();
        to_file(&device, &file, true, &go_on).unwrap();
        let mut read = vec![0; SIZE as usize];
        read_exact_at(&file, &mut read, 0).unwrap();
        let one = (2 * PIECE + 512) as usize;
        assert_eq!(read.iter().position(|&byte| byte == 1), Some(one));
        assert_eq!(read.iter().filter(|&&byte| byte == 1).count(), 512);
        #[cfg(unix)]
        {
            let metadata = file.metadata().unwrap();
            let blocks = std::os::unix::fs::MetadataExt::blocks(&metadata);
            assert!(blocks * 512 < PIECE);
        }
    }

    #[test]
    fn the_rest_of_the_last_sector_is_kept() {
        let (device, mut bytes) = filled();
        from_reader(&device, &mut &[9_u8; 700][..], &go_on).unwrap();
        bytes[..700].fill(9);
        let mut read = vec![0; SIZE as usize];
        device.read_at(0, &mut read).unwrap();
        assert!(read == bytes);
    }

    #[test]
    fn too_much_input_is_refused() {
        let device = RamDevice::new(4096);
        let input = vec![1; 4097];
        let refused = from_reader(&device, &mut &input[..], &go_on);
        assert!(matches!(
            refused,
            Err(TransferError::TooLong { size: 4096 })
        ));
    }

    #[test]
    fn the_caller_can_stop() {
        let (device, bytes) = filled();
        let stop = |_| ControlFlow::Break(());
        let file = tempfile::tempfile().unwrap();
        for stopped in [
            to_file(&device, &file, false, &stop),
            to_writer(&device, &mut io::sink(), &stop),
            from_reader(&device, &mut &bytes[..], &stop).map(drop),
        ] {
            assert!(matches!(stopped, Err(TransferError::Stopped)));
        }
    }
}
