//! Encryption of what is not encrypted, and decryption for good.
//!
//! Without a detached header the data moves: up by the header's size, to make room for it, or
//! down over it. While neither the old start of the volume nor the new one is whole, a file
//! beside the volume has the header.

use super::{ReencryptOptions, cannot_write, draft, keyslot, publish, sync_folder, work};
use crate::cli::Failure;
use crate::cli::volume::arguments::side_header;
use crate::cli::volume::create::{HEADER_FILE, natural, usual_key_bytes, warn};
use crate::cli::volume::disk::{self, Disk};
use block::BlockDevice;
use cipher::Key;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;
use volume::luks2::{Creation, Header, Keys, Segment, SegmentKind, SegmentSize};
use volume::{Format, Limits, VolumeError};

/// What the data moves by when it makes room for a header. As much again is left free behind
/// it, until its start is encrypted at last.
const SHIFT: u64 = HEADER_FILE;

/// Encrypts a file or device that is not encrypted: with a header of its own file for good if
/// the user named one, or with one before the data.
pub fn encrypt(options: &ReencryptOptions) -> Result<(), Failure> {
    let image = options.volume.image();
    let data = Disk::open(image, true)?;
    if let Some(format) = Format::detect(&data)? {
        return Err(Failure::new(
            4,
            format!("{} is a {} volume already", image.display(), format.title()),
            "Omit --encrypt to change its cipher or key.",
        ));
    }
    let detached = options.volume.header_path();
    let is_file = data.is_file();
    if detached.is_none() && !is_file {
        return Err(Failure::new(
            2,
            format!("{} has no room for a header", image.display()),
            "Name a file for it with --header.",
        ));
    }
    let spec = options
        .volume
        .cipher()?
        .unwrap_or("aes-xts-plain64".parse().map_err(VolumeError::Cipher)?);
    let size = data.geometry().size;
    warn(spec, size, options.yes)?;
    let sector_size = match options.volume.named_sector_size()? {
        Some(size) => size,
        None => natural(&data),
    };
    drop(data);
    // A file ends where it ends; a sector of it is encrypted as a whole.
    let there = if is_file { file_length(image)? } else { size };
    let length = there.next_multiple_of(sector_size.bytes() as u64);
    if !is_file && length != size {
        return Err(Failure::new(
            2,
            format!(
                "the {size} bytes are not made of {}-byte sectors",
                sector_size.bytes()
            ),
            "Give a smaller --sector-size, 512 for instance; nothing was changed.",
        ));
    }
    let passphrase = options.secret.first_secret(image, options.empty())?;
    let key_bytes = options.volume.key_bytes()?;
    let key_bytes = key_bytes.unwrap_or_else(|| usual_key_bytes(&spec));
    let key = Key::random(key_bytes).map_err(VolumeError::Cipher)?;
    let shift = if detached.is_some() { 0 } else { SHIFT };
    let creation = Creation {
        spec,
        key_bytes,
        sector_size,
        keyslot: keyslot(options)?,
        data_offset: Some(shift),
        detached: true,
        label: String::new(),
        subsystem: String::new(),
        uuid: None,
    };
    let side = side_header(image);
    let path = detached.as_deref().unwrap_or(&side);
    let (draft, device) = draft(path, |file| file.set_len(HEADER_FILE))?;
    let room = length + 2 * shift;
    if is_file && room != there {
        // Stopped before the header has its name, the file is as it was, and longer.
        set_length(image, room)?;
    }
    let data = Disk::open(image, true)?;
    let begun = Header::begin_encryption(&device, &data, &creation, length, &key, &passphrase);
    let mut header = match begun {
        Ok(header) => header,
        Err(error) => {
            drop(data);
            if is_file {
                set_length(image, there)?;
            }
            return Err(error.into());
        }
    };
    publish(draft, path)?;
    let keys = Keys {
        old: Key::from_slice(&[]),
        new: key,
    };
    if detached.is_some() {
        return work(options, &mut header, (&device, &data), &keys);
    }
    drop((data, device));
    settle(image)?;
    let device = Disk::open(image, true)?;
    let mut header = Header::read(&device)?;
    work(options, &mut header, (&device, &device), &keys)?;
    drop(device);
    finish(image, Some(length + shift))
}

/// Decrypts a volume with its header at its start: the header goes into a file
/// beside it, for the data is going to move over it.
pub fn decrypt(options: &ReencryptOptions) -> Result<(), Failure> {
    let image = options.volume.image();
    let data = Disk::open(image, true)?;
    if disk::is_remote(image) {
        return Err(Failure::new(
            2,
            "beside an NBD export there is no place for a header",
            "Copy the plaintext out with `volume export`.",
        ));
    }
    if !data.is_file() {
        return Err(Failure::new(
            2,
            "beside a device there is no place for a header that is there after a power cut",
            "Copy the plaintext out with `volume export`.",
        ));
    }
    let original = Header::read(&data)?;
    let secret = options.secret.secret(Format::Luks2, image)?;
    let slot = options.volume.key_slot();
    let unlocked = original.unlock(&data, &secret, slot, &Limits::default())?;
    let mut segments = original.metadata.segments.values();
    let offset = segments.next().map_or(0, |segment| segment.offset);
    let side = side_header(image);
    let (draft, device) = draft(&side, |mut file| {
        let start = File::open(image)?;
        io::copy(&mut start.take(offset), &mut file).map(drop)
    })?;
    let mut header = Header::read(&device)?;
    // From here on the volume's own header may go: the one beside it is whole.
    publish(draft, &side)?;
    let keys = Keys {
        old: unlocked.key,
        new: Key::from_slice(&[]),
    };
    if let Err(error) = header.begin_decryption(&device, &data, &keys, true) {
        drop((data, device));
        settle(image)?;
        return Err(error.into());
    }
    work(options, &mut header, (&device, &data), &keys)?;
    drop((data, device));
    settle(image).map(drop)
}

/// What has become of the file beside a volume.
pub enum Settled {
    /// The reencryption that it tells of goes on.
    Begun,
    /// All is decrypted.
    Decrypted,
    /// No reencryption had begun, and the volume has its header again.
    PutBack,
}

/// Whether a header stands beside the volume that belongs to it, and not to another format's.
pub fn is_beside(image: &Path) -> Result<bool, Failure> {
    let side = side_header(image);
    if !side.exists() {
        return Ok(false);
    }
    Ok(!Header::read(&Disk::open(&side, false)?)?.is_for_another())
}

/// Ends what does not need the file beside the volume any more: a header that belongs before
/// the data goes there, and one of data that is decrypted just goes.
pub fn settle(image: &Path) -> Result<Settled, Failure> {
    let side = side_header(image);
    let device = Disk::open(&side, true)?;
    let header = Header::read(&device)?;
    let begun = header.is_reencrypting();
    let segments = &header.metadata.segments;
    let is_final = |segment: &&Segment| segment.flags.iter().any(|flag| flag == "backup-final");
    let last = segments.values().find(is_final);
    let Some(last) = last.or(segments.get(&0)) else {
        return Err(super::several_segments());
    };
    let settled = match (&last.kind, begun) {
        (SegmentKind::Other { .. }, _) => return Err(super::several_segments()),
        (SegmentKind::Linear, true) => return Ok(Settled::Begun),
        (SegmentKind::Linear, false) => {
            match last.size {
                SegmentSize::Fixed(length) if file_length(image)? > length => {
                    set_length(image, length)?;
                }
                _ => {}
            }
            Settled::Decrypted
        }
        (SegmentKind::Crypt { .. }, begun) => {
            // The rest of the file is room that the header does not speak of.
            if last.offset < header.bytes_with_keyslots() {
                return Err(super::several_segments());
            }
            let unwritable = |error| cannot_write(image, &error);
            // Nobody else writes to it meanwhile.
            let _held = Disk::open(image, true)?;
            let from = File::open(&side).map_err(|error| cannot_write(&side, &error))?;
            let to = File::options().write(true).open(image);
            let mut to = to.map_err(unwritable)?;
            io::copy(&mut from.take(last.offset), &mut to)
                .and_then(|_| to.sync_all())
                .map_err(unwritable)?;
            if begun {
                Settled::Begun
            } else {
                Settled::PutBack
            }
        }
    };
    fs::remove_file(&side).map_err(|error| cannot_write(&side, &error))?;
    sync_folder(image)?;
    Ok(settled)
}

/// What is left to do when the data is done: a header beside the volume goes, and so does
/// the room behind data of this `length`.
pub fn finish(image: &Path, length: Option<u64>) -> Result<(), Failure> {
    if is_beside(image)? {
        settle(image)?;
    }
    match length {
        Some(length) if image.is_file() && file_length(image)? > length => {
            set_length(image, length)?;
            let device = Disk::open(image, true)?;
            Ok(Header::read(&device)?.fill_device(&device)?)
        }
        _ => Ok(()),
    }
}

fn file_length(image: &Path) -> Result<u64, Failure> {
    let metadata = fs::metadata(image);
    let metadata = metadata.map_err(|error| cannot_write(image, &error))?;
    Ok(metadata.len())
}

fn set_length(image: &Path, length: u64) -> Result<(), Failure> {
    let mut disk = Disk::open(image, true)?;
    disk.set_len(length)?;
    Ok(disk.flush().map_err(VolumeError::Block)?)
}
