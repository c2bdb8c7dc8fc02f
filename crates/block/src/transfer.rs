//! Whole devices out to files and pipes, and back in: by every core, each with
//! requests under way that its cache has room for.

mod work;

use crate::positioned::{read_exact_at, write_all_at};
use crate::{BlockDevice, BlockError};
use std::fs::File;
use std::io::{self, Read, Write};
use std::ops::ControlFlow;
use std::sync::{Condvar, Mutex, PoisonError};
use work::{Work, lock};

/// The unit of holes in a file, bytes: a unit of zeros is not written.
const HOLE: usize = 4096;

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
    #[error("the input is longer than the volume of {size} bytes")]
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
    let work = Work::of(device.geometry().size, report);
    work.on_every_core(|| {
        work.read(device, |offset, bytes| {
            for run in runs(bytes, sparse) {
                let at = offset + run.start as u64;
                write_all_at(file, &bytes[run], at).map_err(TransferError::Output)?;
            }
            Ok(())
        })
    })
}

/// Writes all of `device` to a pipe, in order.
///
/// # Errors
/// [`TransferError::Block`], [`TransferError::Output`], [`TransferError::Stopped`].
pub fn to_writer(
    device: &dyn BlockDevice,
    to: &mut (dyn Write + Send),
    report: Report,
) -> Result<(), TransferError> {
    let work = Work::of(device.geometry().size, report);
    let writer = Mutex::new((0, to));
    let turned = Condvar::new();
    work.on_every_core(|| {
        // Every core has its pieces in order, so the one whose turn it is does not wait.
        let outcome = work.read(device, |offset, bytes| {
            let mut writer = lock(&writer);
            while writer.0 != offset {
                if work.has_failed() {
                    return Err(TransferError::Stopped);
                }
                writer = turned.wait(writer).unwrap_or_else(PoisonError::into_inner);
            }
            writer.1.write_all(bytes).map_err(TransferError::Output)?;
            writer.0 += bytes.len() as u64;
            turned.notify_all();
            Ok(())
        });
        if let Err(error) = outcome {
            work.fail(error);
            let _writer = lock(&writer);
            turned.notify_all();
        }
        Ok(())
    })?;
    lock(&writer).1.flush().map_err(TransferError::Output)
}

/// Writes the first `length` bytes of `file` to the start of `device` and flushes
/// it. The rest of the last sector keeps what it held.
///
/// # Errors
/// Any [`TransferError`].
pub fn from_file(
    device: &dyn BlockDevice,
    file: &File,
    length: u64,
    report: Report,
) -> Result<(), TransferError> {
    from_places(device, length, report, |offset, into| {
        read_exact_at(file, into, offset).map_err(TransferError::Input)
    })
}

/// Fills `device` with zeros and flushes it.
///
/// # Errors
/// [`TransferError::Block`], [`TransferError::Stopped`].
pub fn zero(device: &dyn BlockDevice, report: Report) -> Result<(), TransferError> {
    from_places(device, device.geometry().size, report, |_, into| {
        into.fill(0);
        Ok(())
    })
}

/// Writes `length` bytes that `read` finds at their offsets.
fn from_places(
    device: &dyn BlockDevice,
    length: u64,
    report: Report,
    read: impl Fn(u64, &mut [u8]) -> Result<(), TransferError> + Sync,
) -> Result<(), TransferError> {
    let size = device.geometry().size;
    if length > size {
        return Err(TransferError::TooLong { size });
    }
    let work = Work::of(length, report);
    work.on_every_core(|| {
        work.write(device, |buffer| {
            let Some(piece) = work.next() else {
                return Ok(None);
            };
            buffer.set_len((piece.end - piece.start) as usize);
            read(piece.start, buffer)?;
            Ok(Some(piece.start))
        })
    })?;
    Ok(device.flush()?)
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
    let work = Work::of(size, report);
    // Without a place (`None`), the input has ended.
    let reader = Mutex::new((Some(0), 0, from));
    work.on_every_core(|| {
        work.write(device, |buffer| {
            let mut reader = lock(&reader);
            let (place, total, from) = &mut *reader;
            let Some(offset) = place.take().filter(|_| !work.has_failed()) else {
                return Ok(None);
            };
            let length = fill(*from, buffer).map_err(TransferError::Input)?;
            *total = offset + length as u64;
            if *total > size {
                return Err(TransferError::TooLong { size });
            }
            *place = (length == buffer.len()).then_some(*total);
            buffer.set_len(length);
            Ok((length > 0).then_some(offset))
        })
    })?;
    device.flush()?;
    let reader = lock(&reader);
    Ok(reader.1)
}

/// Reads until `buffer` is full or nothing comes any more; how much there was.
fn fill(from: &mut dyn Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut length = 0;
    while length < buffer.len() {
        match from.read(&mut buffer[length..]) {
            Ok(0) => break,
            Ok(read) => length += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(length)
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
    use super::work::PIECE;
    use super::*;
    use crate::layer::{Effect, Fault, Rule, Trigger};
    use crate::{ByteRange, OperationKind, RamDevice};

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
    fn files_and_zeros_go_in() {
        let (device, mut bytes) = filled();
        let file = tempfile::tempfile().unwrap();
        let new = vec![7; (PIECE + 700) as usize];
        write_all_at(&file, &new, 0).unwrap();
        from_file(&device, &file, new.len() as u64, &go_on).unwrap();
        bytes[..new.len()].copy_from_slice(&new);
        let mut read = vec![0; SIZE as usize];
        device.read_at(0, &mut read).unwrap();
        assert!(read == bytes);
        let short = from_file(&device, &file, SIZE, &go_on);
        assert!(matches!(short, Err(TransferError::Input(_))));
        let long = from_file(&device, &file, SIZE + 1, &go_on);
        assert!(matches!(long, Err(TransferError::TooLong { size: SIZE })));

        zero(&device, &go_on).unwrap();
        device.read_at(0, &mut read).unwrap();
        assert!(read.iter().all(|&byte| byte == 0));
    }

    /// A core that waits for its turn learns that its turn does not come.
    #[test]
    fn a_failure_anywhere_ends_a_pipe() {
        let (device, _) = filled();
        for piece in 0..4 {
            let bad = Trigger::Touching(ByteRange::new(piece * PIECE, 512));
            let rule = Rule::on(OperationKind::Read, bad, Effect::Fail(5));
            let outcome = to_writer(&Fault::new(&device, [rule]), &mut io::sink(), &go_on);
            assert!(matches!(outcome, Err(TransferError::Block(_))), "{piece}");
        }
        let mut full: &mut [u8] = &mut [0; 1000];
        let outcome = to_writer(&device, &mut full, &go_on);
        assert!(matches!(outcome, Err(TransferError::Output(_))));
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
