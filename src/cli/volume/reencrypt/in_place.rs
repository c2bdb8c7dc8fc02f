//! Encryption of what is not encrypted, and decryption for good.
//!
//! Without a detached header the data moves: up by the header's size, to make room for it, or
//! down over it. While neither the old start of the volume nor the new one is whole, a file
//! beside the volume has the header.

use super::{ReencryptOptions, cannot_write, draft, keyslot, publish, sync_name, work};
use crate::cli::volume::arguments::side_header;
use crate::cli::volume::beside;
use crate::cli::volume::create::HEADER_FILE;
use crate::cli::volume::disk::{self, Disk};
use crate::cli::volume::losses::{accepted, at};
use crate::cli::{Failure, stop_on_signal};
use block::{BlockDevice, ByteRange};
use cipher::Key;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;
use std::sync::atomic::Ordering;
use volume::judge::{self, State, Use};
use volume::luks2::{Creation, DataCipher, Header, Keys, Segment, SegmentKind, SegmentSize};
use volume::{Format, Limits, VolumeError, operate};

/// The distance by which the data moves to make room for a header, bytes. As much again is left
/// free behind it, until the start of the data is encrypted last.
const SHIFT: u64 = HEADER_FILE;

/// Encrypts a file or device that is not encrypted. Its header stays in a file of its own if the
/// user named one; otherwise it goes before the data.
pub fn encrypt(options: &ReencryptOptions) -> Result<(), Failure> {
    let image = options.volume.image();
    // Held until it has begun, so that no other program begins the same meanwhile.
    let mut data = Disk::open(image, Use::Encrypt)?;
    check_unencrypted(&data, image)?;
    let detached = options.volume.header_path();
    if let Some(header) = detached.as_deref().filter(|header| header.is_file()) {
        check_no_header(header, image)?;
    }
    let is_file = data.is_resizable();
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
    let warnings = operate::check_cipher(Use::Encrypt, spec, size, accepted(options.yes))
        .map_err(|error| at(image, error))?;
    for warning in warnings {
        eprintln!("warning: {warning}");
    }
    let sector_size = match options.volume.named_sector_size()? {
        Some(size) => size,
        None => operate::natural_sector_size(&data),
    };
    // A file ends where it ends; a sector of it is encrypted as a whole.
    let there = data.length()?;
    let length = there.next_multiple_of(sector_size.bytes() as u64);
    if length == 0 {
        return Err(Failure::new(
            2,
            format!("{} is empty: there is nothing to encrypt", image.display()),
            "Make a volume with `cryptmark volume create`.",
        ));
    }
    if !is_file && length != size {
        return Err(Failure::new(
            2,
            format!(
                "the {size} bytes are not a multiple of {}-byte sectors",
                sector_size.bytes()
            ),
            "Give a smaller --sector-size, 512 for instance; nothing was changed.",
        ));
    }
    let passphrase = options.secret.first_secret(image, options.empty())?;
    let key_bytes = options.volume.key_bytes()?;
    let key_bytes = key_bytes.unwrap_or_else(|| operate::usual_key_bytes(&spec));
    let key = Key::random(key_bytes).map_err(VolumeError::Cipher)?;
    let shift = if detached.is_some() { 0 } else { SHIFT };
    let creation = Creation {
        cipher: DataCipher::Plain(spec),
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
    // From here on the user ends it between two steps only.
    let stop = stop_on_signal()?;
    let (draft, device) = draft(path, image, |file| file.set_len(HEADER_FILE))?;
    // Not every program asks who holds the file.
    check_unencrypted(&data, image)?;
    if data.length()? != there {
        return Err(Failure::new(
            4,
            format!("{} has another length than before", image.display()),
            "Another program writes to it. End that, and run this again; nothing was changed.",
        ));
    }
    let longer = detached.is_some() && is_file && length != there;
    let begin = || -> Result<Header, Failure> {
        if longer {
            // A sector is encrypted as a whole.
            data.set_len(length)?;
        }
        let header =
            Header::begin_encryption(&device, &data, &creation, length, &key, &passphrase)?;
        if stop.load(Ordering::Relaxed) {
            return Err(VolumeError::Stopped.into());
        }
        publish(draft, path)?;
        Ok(header)
    };
    let mut header = match begin() {
        Ok(header) => header,
        Err(error) => {
            if longer && data.length()? == length {
                data.set_len(there)?;
            }
            return Err(error);
        }
    };
    let keys = Keys {
        old: Key::from_slice(&[]),
        new: key,
    };
    if detached.is_some() {
        work(options, &mut header, (&device, &data), &keys, Some(path))?;
        return match data.length()? > length {
            true => Err(added(image, length)),
            false => Ok(()),
        };
    }
    drop((data, device));
    settle(image)?;
    let device = Disk::open(image, Use::Reencrypt)?;
    let mut header = Header::read(&device)?;
    work(options, &mut header, (&device, &device), &keys, None)?;
    drop(device);
    finish(image, &header, Some(length + shift))
}

/// Refuses what is a volume.
fn check_unencrypted(data: &Disk, image: &Path) -> Result<(), Failure> {
    match Format::detect(data)? {
        None => Ok(()),
        Some(format) => Err(Failure::new(
            4,
            format!("{} is a {} volume already", image.display(), format.title()),
            "Omit --encrypt to change its cipher or key.",
        )),
    }
}

/// Refuses to begin with a file that is a header.
fn check_no_header(header: &Path, image: &Path) -> Result<(), Failure> {
    let device = Disk::open(header, Use::Read)?;
    if Format::detect(&device)?.is_none() {
        return Ok(());
    }
    let decrypted = Header::read(&device).is_ok_and(|header| header.is_decrypted());
    let (what, remedy) = match decrypted {
        true => (
            "of data that were decrypted",
            "Name another file for the header, or move this one away.".to_owned(),
        ),
        false => (
            "of a volume already",
            format!(
                "If it is that of {}, all is encrypted, and nothing is left to do.",
                image.display()
            ),
        ),
    };
    Err(Failure::new(
        4,
        format!("{} is the header {what}", header.display()),
        remedy,
    ))
}

/// The error if another program has lengthened the file during the encryption.
pub fn added(image: &Path, length: u64) -> Failure {
    Failure::new(
        4,
        format!(
            "{} is encrypted up to byte {length}, and was made longer meanwhile",
            image.display()
        ),
        "The data behind that byte are unchanged. Copy them, and cut the file.",
    )
}

/// Decrypts a volume with its header at its start. The data will move over that header, so the
/// header goes into a file beside the volume.
pub fn decrypt(options: &ReencryptOptions) -> Result<(), Failure> {
    let image = options.volume.image();
    let data = Disk::open(image, Use::Reencrypt)?;
    if disk::is_remote(image) {
        return Err(Failure::new(
            2,
            "a header cannot be kept beside an NBD export",
            "Copy the plaintext out with `volume export`.",
        ));
    }
    if !data.is_resizable() {
        return Err(Failure::new(
            2,
            "a header beside a device would not be safe from a power cut",
            "Copy the plaintext out with `volume export`.",
        ));
    }
    let original = Header::read(&data)?;
    let secret = options.secret.secret(Format::Luks2, image)?;
    let slot = options.volume.key_slot();
    let unlocked = original.unlock(&data, &secret, slot, &Limits::default())?;
    let key = Key::from_slice(unlocked.key.as_bytes());
    let there = original.mapping(key, &data)?.data;
    let (offset, end) = (there.offset, there.offset + there.length);
    let length = data.length()?;
    if end < length && !operate::is_blank(&data, end, length)? {
        let found = format!("{} bytes from byte {end} on", length - end);
        judge::check(Use::Reencrypt, State::Behind, found, accepted(options.yes))
            .map_err(|error| at(image, error))?;
    }
    let side = side_header(image);
    let (draft, device) = draft(&side, image, |mut file| {
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
    if let Err(error) = header.begin_decryption(&device, &data, &keys, true, &State::ALL) {
        drop((data, device));
        settle(image)?;
        return Err(error.into());
    }
    work(options, &mut header, (&device, &data), &keys, Some(&side))?;
    drop((data, device));
    settle(image).map(drop)
}

/// The outcome for the header file beside a volume.
pub enum Settled {
    /// The reencryption that it records continues.
    Begun,
    /// All is decrypted.
    Decrypted,
    /// No reencryption had begun, and the volume has its header again.
    PutBack,
}

/// Whether a header stands beside the volume that belongs to it, and not to another format's.
pub fn is_beside(image: &Path) -> Result<bool, Failure> {
    let header = header_beside(image)?;
    Ok(header.is_some_and(|header| !header.is_for_another()))
}

/// The header in the file beside the volume, if there is one.
pub fn header_beside(image: &Path) -> Result<Option<Header>, Failure> {
    let side = side_header(image);
    if !side.exists() {
        return Ok(None);
    }
    beside::check(image)?;
    match Header::read(&Disk::open(&side, Use::Read)?) {
        Ok(header) => Ok(Some(header)),
        Err(VolumeError::NotThis { .. }) => Err(Failure::new(
            2,
            format!("{} isn't the header of a reencryption", side.display()),
            "Move it away: nothing but such a header may have this name.",
        )),
        Err(error) => Err(error.into()),
    }
}

/// Ends the work that no longer needs the file beside the volume. A header that belongs before the
/// data goes there, and the header of decrypted data is removed.
pub fn settle(image: &Path) -> Result<Settled, Failure> {
    let side = side_header(image);
    let device = Disk::open(&side, Use::ChangeHeader)?;
    let header = Header::read(&device)?;
    // A run that was killed may have left it in a cache, and nowhere else.
    device.flush().map_err(VolumeError::Block)?;
    sync_name(&side)?;
    let begun = header.is_reencrypting();
    let segments = &header.metadata.segments;
    let is_final = |segment: &&Segment| segment.flags.iter().any(|flag| flag == "backup-final");
    let last = segments.values().find(is_final);
    let Some(last) = last.or(segments.get(&0)) else {
        return Err(operate::several_segments().into());
    };
    let settled = match (&last.kind, begun) {
        (SegmentKind::Other { .. }, _) => return Err(operate::several_segments().into()),
        (SegmentKind::Linear, true) => return Ok(Settled::Begun),
        (SegmentKind::Linear, false) => {
            let mut data = Disk::open(image, Use::Encrypt)?;
            if header.has_decrypted(&data)? == Some(false) {
                return Err(VolumeError::OtherData.into());
            }
            match last.size {
                SegmentSize::Fixed(length) if data.length()? > length => data.set_len(length)?,
                _ => {}
            }
            Settled::Decrypted
        }
        (SegmentKind::Crypt { .. }, begun) => {
            // The rest of the file is room that the header does not speak of.
            if last.offset < header.bytes_with_keyslots() {
                return Err(operate::several_segments().into());
            }
            match begun {
                true => put_before(image, &header, &device)?,
                false => header.put_back(&device, &Disk::open(image, Use::MendHeader)?)?,
            }
            if begun {
                Settled::Begun
            } else {
                Settled::PutBack
            }
        }
    };
    drop(device);
    fs::remove_file(&side).map_err(|error| cannot_write(&side, &error))?;
    sync_name(image)?;
    Ok(settled)
}

/// Makes room before data that are going to be encrypted. Then it puts `header`, which is on
/// `side`, there. If there is no room on the disk, the file stays as it was, and `side` is removed.
fn put_before(image: &Path, header: &Header, side: &Disk) -> Result<(), Failure> {
    let mut data = Disk::open(image, Use::Encrypt)?;
    let room = header.room(side, &data)?;
    let there = data.length()?;
    let mut make = || -> Result<(), Failure> {
        data.set_len(room.needed)?;
        operate::reserve(&data, ByteRange::new(0, room.needed))?;
        Ok(header.put_before(side, &data)?)
    };
    let Err(error) = make() else {
        return Ok(());
    };
    // A disk that fails now may have begun to write the header.
    if room.untouched
        && there < room.needed
        && header.room(side, &data).is_ok_and(|room| room.untouched)
    {
        data.set_len(there)?;
        let side = side_header(image);
        fs::remove_file(&side).map_err(|error| cannot_write(&side, &error))?;
    }
    Err(error)
}

/// Cleans up after a reencryption that `header` records as done. It removes a header beside the
/// volume. If data were moved in a file, it also removes the room behind them: the file then has
/// this `length`.
pub fn finish(image: &Path, header: &Header, length: Option<u64>) -> Result<(), Failure> {
    if is_beside(image)? {
        settle(image)?;
    }
    let Some(length) = length.filter(|_| image.is_file()) else {
        return Ok(());
    };
    let mut device = Disk::open(image, Use::Reencrypt)?;
    let there = Header::read(&device);
    let mut there = match there {
        Ok(there) if there.json == header.json => there,
        // The file that was worked on was moved away.
        _ => {
            return Err(Failure::new(
                4,
                format!("{} is not the same file as before", image.display()),
                format!(
                    "The file that was encrypted has another name now, and free room behind byte \
                     {length}. This one was not changed."
                ),
            ));
        }
    };
    let segment = there.metadata.segments.get(&0);
    let room = segment.map_or(0, |segment| segment.offset);
    match device.length()? {
        now if now <= length => {}
        now if now == length + room => device.set_len(length)?,
        _ => return Err(added(image, length)),
    }
    Ok(there.fill_device(&device)?)
}
