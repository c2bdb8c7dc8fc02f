//! The structures that the driver and this program exchange, byte by byte.
//!
//! Source: Linux, `include/uapi/linux/ublk_cmd.h` of 6.5. All numbers are in the machine's byte
//! order.

use crate::{Access, Export};

/// Bytes of a `struct ublksrv_io_desc`.
pub(super) const DESCRIPTOR_BYTES: usize = 24;

/// Deepest queue; the driver leaves space for so many descriptors of each.
pub(super) const MOST_DEPTH: u16 = 4096;

/// Most bytes of a read or a write.
pub(super) const MOST_BYTES: u32 = 1 << 20;

/// Most bytes of a discard or of zeros: they may have to be written.
const MOST_ZEROS: u32 = 64 << 20;

/// The driver's unit, and its largest block, which is a page; bytes.
pub(super) const SECTOR: u64 = 512;
const LARGEST_BLOCK: u32 = 4096;

/// Commands: direction (both, or out), bytes of the argument, `u`, number.
const fn command(direction: u32, bytes: u32, number: u32) -> u32 {
    direction << 30 | bytes << 16 | (b'u' as u32) << 8 | number
}

const CONTROL_BYTES: u32 = 32;
const IO_BYTES: u32 = 16;

pub(super) const GET_INFORMATION: u32 = command(2, CONTROL_BYTES, 0x02);
pub(super) const ADD_DEVICE: u32 = command(3, CONTROL_BYTES, 0x04);
pub(super) const DELETE_DEVICE: u32 = command(3, CONTROL_BYTES, 0x05);
pub(super) const START_DEVICE: u32 = command(3, CONTROL_BYTES, 0x06);
pub(super) const STOP_DEVICE: u32 = command(3, CONTROL_BYTES, 0x07);
pub(super) const SET_PARAMETERS: u32 = command(3, CONTROL_BYTES, 0x08);
pub(super) const GET_FEATURES: u32 = command(2, CONTROL_BYTES, 0x13);
pub(super) const FETCH: u32 = command(3, IO_BYTES, 0x20);
pub(super) const COMMIT_AND_FETCH: u32 = command(3, IO_BYTES, 0x21);

/// Commands have the numbers above; data are read from and written to the
/// character device, so that the driver touches no memory of this process.
pub(super) const FEATURES: u64 = 1 << 6 | 1 << 7;

/// The number of a device that the driver is to choose.
pub(super) const ANY_DEVICE: u32 = u32::MAX;

/// The argument of a control command: `struct ublksrv_ctrl_cmd`. The address
/// of its buffer follows the first three fields, and is the caller's.
pub(super) struct Control {
    pub(super) device: u32,
    pub(super) data: u64,
}

impl Control {
    /// The argument, with `length` bytes of buffer at `address`.
    pub(super) fn bytes(&self, address: u64, length: u16) -> [u8; 80] {
        let mut bytes = [0; 80];
        let no_queue = u16::MAX;
        bytes[..4].copy_from_slice(&self.device.to_ne_bytes());
        bytes[4..6].copy_from_slice(&no_queue.to_ne_bytes());
        bytes[6..8].copy_from_slice(&length.to_ne_bytes());
        bytes[8..16].copy_from_slice(&address.to_ne_bytes());
        bytes[16..24].copy_from_slice(&self.data.to_ne_bytes());
        bytes
    }
}

/// `struct ublksrv_ctrl_dev_info` of a new device.
pub(super) fn device_information(queues: u16, depth: u16) -> [u8; 64] {
    let mut bytes = [0; 64];
    bytes[..2].copy_from_slice(&queues.to_ne_bytes());
    bytes[2..4].copy_from_slice(&depth.to_ne_bytes());
    bytes[8..12].copy_from_slice(&MOST_BYTES.to_ne_bytes());
    bytes[12..16].copy_from_slice(&ANY_DEVICE.to_ne_bytes());
    bytes[24..32].copy_from_slice(&FEATURES.to_ne_bytes());
    bytes
}

/// Queues, depth and number of the device that the driver has made.
pub(super) fn made_device(information: &[u8; 64]) -> (u16, u16, u32) {
    let [q0, q1, d0, d1, _, _, _, _, _, _, _, _, number @ ..] = information;
    let number = number.first_chunk().copied().unwrap_or_default();
    (
        u16::from_ne_bytes([*q0, *q1]),
        u16::from_ne_bytes([*d0, *d1]),
        u32::from_ne_bytes(number),
    )
}

/// Whether no process serves the device that `information` describes.
pub(super) fn is_dead(information: &[u8; 64]) -> bool {
    information[4..6] == [0, 0]
}

/// `struct ublk_params` for an export: its basic part, and that about discards.
pub(super) fn parameters(export: &Export) -> [u8; 64] {
    const READ_ONLY: u32 = 1;
    const VOLATILE_CACHE: u32 = 1 << 2;
    const FUA: u32 = 1 << 3;
    let geometry = export.geometry();
    // Larger blocks are the export's affair, which takes any range.
    let logical = geometry.logical_block.min(LARGEST_BLOCK);
    let physical = geometry.physical_block.max(logical);
    let writable = export.access() == Access::Write;
    let attributes = VOLATILE_CACHE | FUA | if writable { 0 } else { READ_ONLY };
    let granularity = geometry.discard_granularity.unwrap_or(0).max(logical);
    let zeros = |able: bool| match able {
        true => MOST_ZEROS / SECTOR as u32,
        false => 0,
    };
    let shifts = [
        logical.ilog2() as u8,
        physical.ilog2() as u8,
        0,
        physical.ilog2() as u8,
    ];
    let mut bytes = Vec::with_capacity(64);
    bytes.extend(60_u32.to_ne_bytes());
    bytes.extend(3_u32.to_ne_bytes());
    bytes.extend(attributes.to_ne_bytes());
    bytes.extend(shifts);
    bytes.extend((MOST_BYTES / SECTOR as u32).to_ne_bytes());
    bytes.extend([0; 4]);
    bytes.extend((export.size() / SECTOR).to_ne_bytes());
    bytes.extend([0; 8]);
    bytes.extend([0; 4]);
    bytes.extend(granularity.to_ne_bytes());
    bytes.extend(zeros(export.discards()).to_ne_bytes());
    bytes.extend(zeros(writable).to_ne_bytes());
    bytes.extend(1_u16.to_ne_bytes());
    let mut block = [0; 64];
    block[..bytes.len()].copy_from_slice(&bytes);
    block
}

/// `struct ublksrv_io_cmd`: the answer to a request, and a place for the next.
pub(super) fn io_command(queue: u16, tag: u16, result: i32) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..2].copy_from_slice(&queue.to_ne_bytes());
    bytes[2..4].copy_from_slice(&tag.to_ne_bytes());
    bytes[4..8].copy_from_slice(&result.to_ne_bytes());
    bytes
}

/// Where the descriptors of a queue are in the character device.
pub(super) fn descriptors_at(queue: u16) -> u64 {
    let most = u64::from(MOST_DEPTH) * DESCRIPTOR_BYTES as u64;
    u64::from(queue) * most.next_multiple_of(4096)
}

/// Where the data of a request are in the character device.
pub(super) fn data_at(queue: u16, tag: u16) -> u64 {
    (1 << 31) + (u64::from(queue) << 41 | u64::from(tag) << 25)
}

#[cfg(test)]
mod tests {
    use super::*;
    use block::layer::{Trim, TrimPolicy};
    use block::{BlockDevice, RamDevice};
    use std::sync::Arc;

    /// The numbers of the C header, as its macros give them.
    #[test]
    fn commands_are_those_of_the_header() {
        for (command, number) in [
            (GET_INFORMATION, 0x8020_7502),
            (ADD_DEVICE, 0xc020_7504),
            (DELETE_DEVICE, 0xc020_7505),
            (START_DEVICE, 0xc020_7506),
            (STOP_DEVICE, 0xc020_7507),
            (SET_PARAMETERS, 0xc020_7508),
            (GET_FEATURES, 0x8020_7513),
            (FETCH, 0xc010_7520),
            (COMMIT_AND_FETCH, 0xc010_7521),
        ] {
            assert_eq!(command, number, "{command:#x}");
        }
    }

    #[test]
    fn places_in_the_character_device_do_not_meet() {
        assert_eq!(descriptors_at(3), 3 * 98_304);
        assert_eq!(data_at(0, 0), 0x8000_0000);
        assert_eq!(data_at(0, 1) - data_at(0, 0), 32 << 20);
        assert_eq!(data_at(1, 0) - data_at(0, 0), 1 << 41);
        assert!(u64::from(MOST_BYTES) <= data_at(0, 1) - data_at(0, 0));
        assert!(data_at(0, MOST_DEPTH - 1) < data_at(1, 0));
    }

    #[test]
    fn arguments_have_their_fields_where_the_driver_looks() {
        let control = Control { device: 7, data: 9 };
        let bytes = control.bytes(0x0102_0304_0506_0708, 64);
        assert_eq!(bytes[..8], [7, 0, 0, 0, 0xff, 0xff, 64, 0]);
        assert_eq!(bytes[8..16], 0x0102_0304_0506_0708_u64.to_ne_bytes());
        assert_eq!(bytes[16..24], 9_u64.to_ne_bytes());
        assert_eq!(bytes[24..], [0; 56]);
        assert_eq!(
            io_command(2, 5, -5),
            [2, 0, 5, 0, 0xfb, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0]
        );
        let mut information = device_information(4, 128);
        assert_eq!(made_device(&information), (4, 128, ANY_DEVICE));
        information[12..16].copy_from_slice(&3_u32.to_ne_bytes());
        assert_eq!(made_device(&information), (4, 128, 3));
        assert_eq!(information[24..32], 0xc0_u64.to_ne_bytes());
        assert!(is_dead(&information));
        information[4..6].copy_from_slice(&1_u16.to_ne_bytes());
        assert!(!is_dead(&information));
    }

    fn field(block: &[u8; 64], at: usize) -> u32 {
        u32::from_ne_bytes(block[at..at + 4].try_into().unwrap())
    }

    #[test]
    fn parameters_say_what_the_export_can() {
        for (access, policy, attributes, discards, zeroes) in [
            (Access::Write, TrimPolicy::Pass, 12, 131_072, 131_072),
            (Access::Write, TrimPolicy::Block, 12, 0, 131_072),
            (Access::Read, TrimPolicy::Pass, 13, 0, 0),
        ] {
            let device = Arc::new(Trim::new(RamDevice::new(1 << 20), policy));
            let size = device.geometry().size;
            let block = parameters(&Export::new(device, access));
            assert_eq!((field(&block, 0), field(&block, 4)), (60, 3));
            assert_eq!(field(&block, 8), attributes);
            assert_eq!(block[12..16], [9, 12, 0, 12]);
            assert_eq!(field(&block, 16), 2048);
            assert_eq!(block[24..32], (size / 512).to_ne_bytes());
            assert_eq!((field(&block, 40), field(&block, 44)), (0, 512));
            assert_eq!((field(&block, 48), field(&block, 52)), (discards, zeroes));
            assert_eq!(block[56..], [1, 0, 0, 0, 0, 0, 0, 0]);
        }
    }
}
