//! `cryptmark volume resize`: more or less data in a file.

use super::arguments::{Extent, VolumeArguments};
use super::create_tcrypt::{passphrase_of, refuse_copy, resealed};
use super::disk::Disk;
use super::open::Search;
use super::secrets::SecretArguments;
use crate::cli::{Failure, print_done};
use block::layer::Slice;
use block::{BlockDevice, ByteRange, signature};
use clap::Args;
use std::path::Path;
use volume::judge::Use;
use volume::luks2::{Header, SegmentSize};
use volume::tcrypt::Family;
use volume::{Format, Limits, VolumeError, luks1};

/// Options of `cryptmark volume resize`.
#[derive(Debug, Args)]
pub struct ResizeOptions {
    #[command(flatten)]
    volume: VolumeArguments,
    /// The new end of the data and of the file, header included: in 512-byte sectors, or with a unit: 2G or 2GiB (2^30), 2GB (10^9)
    #[arg(long, value_name = "SIZE")]
    to: Extent,
    /// What opens a TrueCrypt or VeraCrypt volume, whose headers are written anew
    #[command(flatten)]
    secret: SecretArguments,
    /// Confirm that data are cut off, or that data behind the volume are lost
    #[arg(long)]
    yes: bool,
}

/// Runs the command.
pub fn run(options: &ResizeOptions) -> Result<(), Failure> {
    if let Some(family) = options.volume.family() {
        return grow(options, family);
    }
    let image = options.volume.image();
    let mut devices = options.volume.devices_for_change()?;
    let format = options.volume.format(devices.header())?;
    let (offset, unit, fixed) = match format {
        Format::Luks1 => {
            let header = luks1::Header::read(devices.header())?;
            (header.payload_offset, 512, None)
        }
        Format::Luks2 => {
            let header = Header::read(devices.header())?;
            let (segment, sector) = header.only_segment()?;
            let fixed = match segment.size {
                SegmentSize::Dynamic => None,
                SegmentSize::Fixed(bytes) => Some(bytes),
            };
            (segment.offset, sector, fixed)
        }
        other => {
            return Err(Failure::new(
                2,
                format!("a {} volume is as large as its file", other.title()),
                "Change the size of the file.",
            ));
        }
    };
    let (size, to) = (devices.data().length()?, options.to.bytes);
    let is_device = !devices.data().is_file();
    if is_device && (fixed.is_none() || to > size) {
        return Err(Failure::new(
            2,
            format!("the size of {} cannot be changed", image.display()),
            "The volume takes all of its device. Change the size of the device.",
        ));
    }
    if to < offset + unit || !(to - offset).is_multiple_of(unit) {
        return Err(Failure::new(
            2,
            format!("{to} bytes are not the header's {offset} plus whole sectors of {unit}"),
            "Give a size that fits.",
        ));
    }
    let end = fixed.map_or(size, |bytes| offset.saturating_add(bytes));
    if to < end && !options.yes {
        return Err(Failure::new(
            4,
            format!(
                "the last {} bytes of {} would be cut off, from byte {to} on",
                end - to,
                image.display()
            ),
            "Make the file system in it smaller first, then give --yes.",
        ));
    }
    // A file is cut, also of what is behind the volume.
    let taken = if is_device { to } else { size };
    if !options.yes {
        check_behind(image, devices.data(), end, taken)?;
    }
    // The area that the header describes is there at any time.
    if to > size {
        devices.set_len(to)?;
    }
    if fixed.is_some() {
        let mut header = Header::read(devices.header())?;
        header.set_data_size(devices.header(), to - offset)?;
    }
    if to < size && !is_device {
        devices.set_len(to)?;
    }
    print_done(&format!("{} bytes of data\n", to - offset));
    Ok(())
}

/// Makes a TrueCrypt or VeraCrypt volume as large as its file becomes, or as
/// its device is.
fn grow(options: &ResizeOptions, family: Family) -> Result<(), Failure> {
    let image = options.volume.image();
    options.volume.refuse_foreign_options(family.format())?;
    let opening = options.volume.tcrypt(family)?;
    let secret = options.secret.secret(family.format(), image)?;
    let limits = Limits::default();
    let mut devices = options.volume.devices(Use::ChangeHeader)?;
    let search = Search::start()?;
    let watch = |progress| search.watch(progress);
    let mut unlocked = opening.unlock(devices.data(), &secret, &limits, &watch)?;
    drop(search);
    refuse_copy(&opening, &unlocked)?;
    let (size, to) = (devices.data().length()?, options.to.bytes);
    let is_file = devices.data().is_file();
    if is_file && to < size {
        return Err(Failure::new(
            2,
            format!("a {} volume cannot become smaller", family.format().title()),
            "Make a smaller one, and copy with `volume export` and `volume import`.",
        ));
    }
    if !is_file && to != size {
        return Err(Failure::new(
            2,
            format!("the size of {} cannot be changed", image.display()),
            format!(
                "The volume takes all of its device. Give --to {size}, or change the size of the device."
            ),
        ));
    }
    check_whole(to)?;
    unlocked.check_growth(devices.data())?;
    if !options.yes {
        let end = unlocked.end(devices.data().geometry().size);
        check_behind(image, devices.data(), end, size)?;
    }
    if is_file {
        // Until its header says otherwise, the volume is as large as it was.
        devices.set_len(to)?;
    }
    let sealing = resealed(&opening, &unlocked);
    let before = unlocked.header.volume_size;
    let grown = unlocked.grow(devices.data(), &sealing, passphrase_of(&secret)?, &limits);
    if grown.is_err() && unlocked.header.volume_size == before && is_file {
        // The copy of the header is where it was, at the end.
        devices.set_len(size)?;
    }
    grown?;
    print_done(&format!("{} bytes of data\n", unlocked.header.volume_size));
    Ok(())
}

/// Refuses a size that is not a multiple of 512. With such a size, other programs look for the copy
/// of a TrueCrypt or VeraCrypt header in another place than this one.
pub fn check_whole(size: u64) -> Result<(), Failure> {
    match size.is_multiple_of(512) {
        true => Ok(()),
        false => Err(Failure::new(
            2,
            format!("{size} bytes are not whole sectors of 512"),
            format!(
                "Give {}, or another multiple of 512.",
                size.next_multiple_of(512)
            ),
        )),
    }
}

/// Refuses to take what is stored from `start` to `end`, which lies behind the volume.
fn check_behind(image: &Path, disk: &Disk, start: u64, end: u64) -> Result<(), Failure> {
    if start >= end || is_blank_between(disk, start, end)? {
        return Ok(());
    }
    Err(Failure::new(
        4,
        format!(
            "{} holds data behind the volume, from byte {start} on, which would be lost",
            image.display()
        ),
        "Nothing was changed. If you don't need them, confirm with --yes.",
    ))
}

/// Whether a file stores nothing from `offset` on.
pub fn is_blank(file: &Disk, offset: u64) -> Result<bool, Failure> {
    is_blank_between(file, offset, file.length()?)
}

/// Whether nothing is stored in these bytes; of a device, as far as samples tell.
fn is_blank_between(disk: &Disk, start: u64, end: u64) -> Result<bool, Failure> {
    let failed = VolumeError::Block;
    if end > disk.geometry().size {
        // Behind the last whole block nothing is read, and something is there.
        return Ok(false);
    }
    if !disk.is_file() {
        let block = u64::from(disk.geometry().logical_block);
        let start = start.next_multiple_of(block).min(end);
        let range = ByteRange::new(start, end - start);
        let part = Slice::new(disk, range).map_err(failed)?;
        return Ok(signature::content(&part).map_err(failed)?.is_blank());
    }
    let range = ByteRange::new(start, end.saturating_sub(start));
    let extents = disk.extents(range).map_err(failed)?;
    let mut bytes = vec![0; 1 << 20];
    for extent in extents.iter().filter(|extent| !extent.hole) {
        let (mut at, mut left) = (extent.range.offset, extent.range.length);
        while left > 0 {
            let part = left.min(bytes.len() as u64);
            let bytes = &mut bytes[..part as usize];
            disk.read_at(at, bytes).map_err(failed)?;
            if bytes.iter().any(|&byte| byte != 0) {
                return Ok(false);
            }
            at += part;
            left -= part;
        }
    }
    Ok(true)
}
