//! Requests of the driver, carried out on an export.

use super::layout::{DESCRIPTOR_BYTES, SECTOR};
use crate::{Lane, Zeros};
use block::{BlockError, ByteRange};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// The write is to be durable when it is answered.
const FUA: u32 = 1 << 13;

const EIO: i32 = 5;
const EOPNOTSUPP: i32 = 95;

/// A request of the driver: `struct ublksrv_io_desc`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Descriptor {
    /// The operation in the low 8 bits, flags above.
    pub(super) operation: u32,
    pub(super) sectors: u32,
    pub(super) first: u64,
}

/// Why a request failed.
enum Failure {
    Device(BlockError),
    /// Data did not come from or go to the driver.
    Copy(io::Error),
    Unknown,
}

impl From<BlockError> for Failure {
    fn from(error: BlockError) -> Self {
        Self::Device(error)
    }
}

impl Descriptor {
    pub(super) fn from_bytes(bytes: &[u8; DESCRIPTOR_BYTES]) -> Self {
        let half = |at: usize| {
            let half = bytes[at..].first_chunk().copied();
            u32::from_ne_bytes(half.unwrap_or_default())
        };
        let first = bytes[8..].first_chunk().copied();
        Self {
            operation: half(0),
            sectors: half(4),
            first: u64::from_ne_bytes(first.unwrap_or_default()),
        }
    }

    /// Carries the request out; its data are in `data` from `at` on. Gives what
    /// the driver wants to hear: bytes that were read or written, or a negative
    /// error number.
    pub(super) fn serve(&self, lane: &mut Lane, data: &File, at: u64) -> i32 {
        match self.carry_out(lane, data, at) {
            Ok(()) if self.has_data() => (u64::from(self.sectors) * SECTOR) as i32,
            Ok(()) => 0,
            Err(Failure::Device(error)) => -error.errno(),
            Err(Failure::Copy(error)) => -error.raw_os_error().unwrap_or(EIO),
            Err(Failure::Unknown) => -EOPNOTSUPP,
        }
    }

    fn has_data(&self) -> bool {
        matches!(self.operation & 0xff, 0 | 1)
    }

    fn carry_out(&self, lane: &mut Lane, data: &File, at: u64) -> Result<(), Failure> {
        // A number of sectors that does not fit as a number of bytes is out of range, too.
        let range = ByteRange::new(
            self.first.saturating_mul(SECTOR),
            u64::from(self.sectors) * SECTOR,
        );
        match self.operation & 0xff {
            0 => {
                for (from, length) in pieces(range.length, lane.piece()) {
                    let bytes = lane.read(range.offset.saturating_add(from), length)?;
                    data.write_all_at(bytes, at + from).map_err(Failure::Copy)?;
                }
            }
            1 => {
                for (from, length) in pieces(range.length, lane.piece()) {
                    let space = lane.space(length);
                    data.read_exact_at(space, at + from)
                        .map_err(Failure::Copy)?;
                    lane.write(range.offset.saturating_add(from))?;
                }
                if self.operation & FUA != 0 {
                    lane.flush()?;
                }
            }
            2 => lane.flush()?,
            3 => lane.trim(range)?,
            5 => {
                // Zeros are data. A hole is noise to other programs that decrypt the device.
                lane.zero(range, Zeros::Written)?;
                if self.operation & FUA != 0 {
                    lane.flush()?;
                }
            }
            _ => return Err(Failure::Unknown),
        }
        Ok(())
    }
}

/// Where the pieces of `length` bytes begin, and how long they are.
fn pieces(length: u64, most: usize) -> impl Iterator<Item = (u64, usize)> {
    (0..length)
        .step_by(most.max(1))
        .map(move |from| (from, most.min((length - from) as usize)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Access, Export};
    use block::layer::{Count, Effect, Fault, Rule, Trigger, Trim, TrimPolicy};
    use block::{BlockDevice, OperationKind, RamDevice};
    use std::sync::Arc;

    const SIZE: u64 = 1 << 20;
    const AT: u64 = 8192;

    const READ: u32 = 0;
    const WRITE: u32 = 1;
    const FLUSH: u32 = 2;
    const DISCARD: u32 = 3;
    const WRITE_SAME: u32 = 4;
    const WRITE_ZEROES: u32 = 5;

    fn descriptor(operation: u32, first: u64, sectors: u32) -> Descriptor {
        Descriptor {
            operation,
            sectors,
            first,
        }
    }

    /// Serves one request, whose data stand in a file as they would in the
    /// driver; gives the answer, and the file.
    fn serve(export: &Export, request: Descriptor, data: &[u8]) -> (i32, File) {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(data, AT).unwrap();
        let mut lane = export.lane(4096).unwrap();
        (request.serve(&mut lane, &file, AT), file)
    }

    #[test]
    fn descriptors_are_read_as_the_driver_writes_them() {
        let mut bytes = [0; DESCRIPTOR_BYTES];
        bytes[..4].copy_from_slice(&(WRITE | FUA).to_ne_bytes());
        bytes[4..8].copy_from_slice(&16_u32.to_ne_bytes());
        bytes[8..16].copy_from_slice(&(1_u64 << 40).to_ne_bytes());
        assert_eq!(
            Descriptor::from_bytes(&bytes),
            descriptor(WRITE | FUA, 1 << 40, 16)
        );
    }

    #[test]
    fn every_operation_does_what_it_says() {
        let device = Arc::new(Count::new(RamDevice::new(SIZE)));
        let export = Export::new(device.clone(), Access::Write);
        let of = |kind| device.of(kind).operations;
        let data: Vec<u8> = (0..10_240_u32).map(|at| (at % 251) as u8).collect();

        // Longer than a piece, and not a number of pieces.
        let (answer, _) = serve(&export, descriptor(WRITE, 3, 20), &data);
        assert_eq!(answer, 10_240);
        let mut stored = vec![0; 10_240];
        device.read_at(3 * 512, &mut stored).unwrap();
        assert!(stored == data);
        assert_eq!(of(OperationKind::Flush), 0);

        let (answer, file) = serve(&export, descriptor(READ, 3, 20), &[]);
        assert_eq!(answer, 10_240);
        let mut read = vec![0; 10_240];
        file.read_exact_at(&mut read, AT).unwrap();
        assert!(read == data);

        let (answer, _) = serve(&export, descriptor(WRITE | FUA, 100, 1), &data);
        assert_eq!((answer, of(OperationKind::Flush)), (512, 1));
        let (answer, _) = serve(&export, descriptor(FLUSH, 0, 0), &[]);
        assert_eq!((answer, of(OperationKind::Flush)), (0, 2));

        for (operation, first, discards, writes) in [(DISCARD, 3, 1, 0), (WRITE_ZEROES, 4, 0, 1)] {
            let before = (of(OperationKind::Discard), of(OperationKind::Write));
            let (answer, _) = serve(&export, descriptor(operation, first, 1), &[]);
            let after = (of(OperationKind::Discard), of(OperationKind::Write));
            assert_eq!(answer, 0);
            assert_eq!(after, (before.0 + discards, before.1 + writes));
            let mut sector = [1; 512];
            device.read_at(first * 512, &mut sector).unwrap();
            assert_eq!(sector, [0; 512]);
        }
        let mut next = [0; 512];
        device.read_at(6 * 512, &mut next).unwrap();
        assert_eq!(next[..], data[3 * 512..4 * 512]);
    }

    #[test]
    fn refusals_are_negative_error_numbers() {
        let writable = Export::new(Arc::new(RamDevice::new(SIZE)), Access::Write);
        let read_only = Export::new(Arc::new(RamDevice::new(SIZE)), Access::Read);
        let trim = Trim::new(RamDevice::new(SIZE), TrimPolicy::Block);
        let without_discards = Export::new(Arc::new(trim), Access::Write);
        let end = SIZE / 512;
        for (export, request, answer) in [
            (&writable, descriptor(READ, end, 1), -22),
            (&writable, descriptor(WRITE, end - 1, 2), -22),
            (&writable, descriptor(READ, u64::MAX, 1), -22),
            (&writable, descriptor(DISCARD, u64::MAX, u32::MAX), -22),
            (&writable, descriptor(WRITE_SAME, 0, 1), -95),
            (&writable, descriptor(200, 0, 1), -95),
            (&read_only, descriptor(WRITE, 0, 1), -30),
            (&read_only, descriptor(WRITE_ZEROES, 0, 1), -30),
            (&read_only, descriptor(DISCARD, 0, 1), -30),
            (&read_only, descriptor(READ, 0, 1), 512),
            (&without_discards, descriptor(DISCARD, 0, 1), -95),
            (&without_discards, descriptor(WRITE_ZEROES, 0, 1), 0),
        ] {
            let (found, _) = serve(export, request, &[0; 1024]);
            assert_eq!(found, answer, "{request:?}");
        }
        // The driver has less to give than it says.
        let (found, _) = serve(&writable, descriptor(WRITE, 0, 8), &[0; 512]);
        assert_eq!(found, -EIO);
    }

    #[test]
    fn a_failed_flush_is_not_followed_by_one_that_succeeds() {
        let rule = Rule::on(OperationKind::Flush, Trigger::Nth(1), Effect::Fail(28));
        let device = Arc::new(Fault::new(RamDevice::new(SIZE), [rule]));
        let export = Export::new(device, Access::Write);
        for (request, answer) in [
            (descriptor(FLUSH, 0, 0), -28),
            (descriptor(FLUSH, 0, 0), -28),
            (descriptor(WRITE | FUA, 0, 1), -28),
            (descriptor(WRITE, 0, 1), 512),
        ] {
            let (found, _) = serve(&export, request, &[0; 512]);
            assert_eq!(found, answer, "{request:?}");
        }
    }

    #[test]
    fn errors_from_below_keep_their_numbers() {
        for (kind, request) in [
            (OperationKind::Read, descriptor(READ, 0, 1)),
            (OperationKind::Write, descriptor(WRITE, 0, 1)),
            (OperationKind::Flush, descriptor(WRITE | FUA, 0, 1)),
            (OperationKind::Flush, descriptor(FLUSH, 0, 0)),
            (OperationKind::Discard, descriptor(DISCARD, 0, 1)),
        ] {
            for errno in [5, 28] {
                let rule = Rule::on(kind, Trigger::From(1), Effect::Fail(errno));
                let device = Arc::new(Fault::new(RamDevice::new(SIZE), [rule]));
                let export = Export::new(device, Access::Write);
                let (answer, _) = serve(&export, request, &[0; 512]);
                assert_eq!(answer, -errno, "{request:?}");
            }
        }
    }
}
