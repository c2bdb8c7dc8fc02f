//! Data encrypted where they are, and decrypted.

use super::journal::{Draft, cannot_write, sync_name};
use super::{Caller, several_segments, standing, work};
use crate::judge::{self, State, Use};
use crate::luks2::{Creation, DataCipher, Header, Keys, KeyslotOptions, Segment, SegmentKind};
use crate::operate::create::{check_has_key, natural_sector_size, usual_key_bytes};
use crate::operate::reencrypt::no_journal;
use crate::operate::resize::is_blank;
use crate::operate::wipe::check_cipher;
use crate::operate::{Options, impossible, reserve};
use crate::place::Site;
use crate::{Format, Hash, VolumeError, unaligned};
use block::plain::word;
use block::signature::Bytes;
use block::{BlockDevice, ByteRange};
use cipher::Key;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

/// A detached header, with room for all key slots, bytes.
pub const HEADER_FILE: u64 = 16 << 20;

/// The distance by which the data moves to make room for a header, bytes. As much again is left
/// free behind it, until the start of the data is encrypted last.
const SHIFT: u64 = HEADER_FILE;

/// Encrypts a file or device that is not encrypted. Its header stays in a file of its own if the
/// caller named one; otherwise it goes before the data.
pub fn encrypt(site: &Site<'_>, options: &Options, caller: &dyn Caller) -> Result<(), VolumeError> {
    let image = site.image();
    // Held until it has begun, so that no other program begins the same meanwhile.
    let mut data = site.open(Use::Encrypt)?;
    check_unencrypted(&*data, image)?;
    let detached = site.apart();
    if let Some(warning) = warn_of_noise(&*data, image)? {
        caller.warn(&warning);
    }
    if let Some(header) = detached.as_deref().filter(|header| header.is_file()) {
        check_no_header(site, header)?;
    }
    let is_file = data.is_resizable();
    if detached.is_none() && !is_file {
        return Err(impossible(
            format!("{} has no room for a header", image.display()),
            "Name a file for the header.",
        ));
    }
    let said = &options.parameters;
    let spec = match said.cipher()? {
        Some(spec) => spec,
        None => "aes-xts-plain64".parse()?,
    };
    let size = data.geometry().size;
    check_has_key(spec)?;
    for warning in check_cipher(Use::Encrypt, spec, size, &options.accepted)? {
        caller.warn(&warning);
    }
    let sector_size = match said.sector_size()? {
        Some(size) => size,
        None => natural_sector_size(&*data),
    };
    // A file ends where it ends; a sector of it is encrypted as a whole.
    let there = data.length()?;
    let length = there.next_multiple_of(sector_size.bytes() as u64);
    if length == 0 {
        return Err(impossible(
            format!("{} is empty: there is nothing to encrypt", image.display()),
            "Create a volume.",
        ));
    }
    if !is_file && length != size {
        return Err(impossible(
            format!(
                "the {size} bytes are not a multiple of {}-byte sectors",
                sector_size.bytes()
            ),
            "Choose a smaller sector size, 512 for instance; nothing was changed.",
        ));
    }
    let passphrase = caller.new_secret()?;
    let key_bytes = said.key_bytes()?;
    let key_bytes = key_bytes.unwrap_or_else(|| usual_key_bytes(&spec));
    let key = Key::random(key_bytes)?;
    let shift = if detached.is_some() { 0 } else { SHIFT };
    let hash = said.hash()?;
    let kdf = caller.derivation(hash)?;
    let creation = Creation {
        cipher: DataCipher::Plain(spec),
        key_bytes,
        sector_size,
        keyslot: KeyslotOptions {
            af_hash: hash.unwrap_or(Hash::Sha256),
            // The caller knows whether it may be.
            allow_empty: true,
            stop: options.limits.stop,
            ..KeyslotOptions::new(kdf)
        },
        data_offset: Some(shift),
        detached: true,
        ..Creation::new(kdf)
    };
    let side = site.side();
    let path = detached.as_deref().unwrap_or(&side);
    // From here on it is stopped between two steps only.
    caller.begin()?;
    let draft = Draft::new(path, |file| file.set_len(HEADER_FILE))?;
    // Not every program asks who holds the file.
    check_unencrypted(&*data, image)?;
    if data.length()? != there {
        return Err(standing(
            format!("{} has another length than before", image.display()),
            "Another program writes to it. End that, and run this again; nothing was changed.",
        ));
    }
    if length != there {
        caller.warn(&format!(
            "{} bytes of the last sector are added to the data, which keep them when they are \
             decrypted",
            length - there
        ));
    }
    let longer = detached.is_some() && is_file && length != there;
    let begin = || -> Result<_, VolumeError> {
        if longer {
            // A sector is encrypted as a whole.
            data.set_len(length)?;
        }
        let header =
            Header::begin_encryption(draft.device(), &data, &creation, length, &key, &passphrase)?;
        match caller.report(0, length).is_break() {
            true => Err(VolumeError::Stopped),
            false => Ok((header, draft.publish()?)),
        }
    };
    let (mut header, device) = match begin() {
        Ok(begun) => begun,
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
        work(
            site,
            &mut header,
            (&device, &data),
            &keys,
            (Some(path), caller),
        )?;
        return match data.length()? > length {
            true => Err(self::longer(site, length)),
            false => Ok(()),
        };
    }
    drop((data, device));
    settle(site)?;
    let device = site.open(Use::Reencrypt)?;
    let mut header = Header::read(&device)?;
    work(site, &mut header, (&device, &device), &keys, (None, caller))?;
    drop(device);
    finish(site, &header, Some(length + shift))
}

/// Refuses what is a volume.
fn check_unencrypted(data: &dyn BlockDevice, image: &Path) -> Result<(), VolumeError> {
    match Format::detect(data)? {
        None => Ok(()),
        Some(format) => Err(standing(
            format!("{} is a {} volume already", image.display(), format.title()),
            "To change its cipher or key, do not ask for data to be encrypted.",
        )),
    }
}

/// A warning of data that begin with noise and have no name: a volume without a header, or one that
/// another header has encrypted.
fn warn_of_noise(data: &dyn BlockDevice, image: &Path) -> Result<Option<String>, VolumeError> {
    if !judge::names(data)?.is_empty() {
        return Ok(None);
    }
    let Some(first) = data.content()?.data.map(|data| data.first & !511) else {
        return Ok(None);
    };
    let sector = unaligned::read_up_to(data, first, 512)?;
    Ok((Bytes::of(&sector) == Bytes::Noise).then(|| {
        format!(
            "the data in {} are noise, from byte {first} on: they may be encrypted already, and are \
             now encrypted once more",
            image.display()
        )
    }))
}

/// Refuses to begin with a file that is a header.
fn check_no_header(site: &Site<'_>, header: &Path) -> Result<(), VolumeError> {
    let device = site.open_at(header, Use::Read)?;
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
                site.image().display()
            ),
        ),
    };
    Err(standing(
        format!("{} is the header {what}", header.display()),
        remedy,
    ))
}

/// The error if another program has lengthened the file during the encryption.
pub fn longer(site: &Site<'_>, end: u64) -> VolumeError {
    standing(
        format!(
            "{} is encrypted up to byte {end}, and was made longer meanwhile",
            site.image().display()
        ),
        "The data behind that byte are unchanged. Copy them, and cut the file.",
    )
}

/// Decrypts a volume with its header at its start. The data will move over that header, so the
/// header goes into a file beside the volume.
pub fn decrypt(site: &Site<'_>, options: &Options, caller: &dyn Caller) -> Result<(), VolumeError> {
    let image = site.image();
    let data = site.open(Use::Reencrypt)?;
    if !data.is_resizable() {
        return Err(impossible(
            "only a file is decrypted in place: a header beside a device or an export would not be \
             safe from a power cut",
            "Copy the decrypted data to another file or device.",
        ));
    }
    let original = Header::read(&data).map_err(|error| match Format::detect(&data) {
        Ok(Some(Format::Luks1)) => no_journal(image),
        _ => error,
    })?;
    let secret = caller.secret(Format::Luks2)?;
    let slot = options.parameters.key_slot;
    let unlocked = original.unlock(&data, &secret, slot, &options.limits)?;
    let key = Key::from_slice(unlocked.key.as_bytes());
    let there = original.mapping(key, &data)?.data;
    let (offset, end) = (there.offset, there.offset + there.length);
    let length = data.length()?;
    if end < length && !is_blank(&data, end, length)? {
        let found = format!("{} bytes from byte {end} on", length - end);
        judge::check(Use::Reencrypt, State::Behind, found, &options.accepted)?;
    }
    original.check_unbound(&options.accepted)?;
    let side = site.side();
    caller.begin()?;
    let draft = Draft::new(&side, |mut file| {
        let start = File::open(image)?;
        io::copy(&mut start.take(offset), &mut file).map(drop)
    })?;
    let mut header = Header::read(draft.device())?;
    // From here on the volume's own header may go: the one beside it is whole.
    let device = draft.publish()?;
    let keys = Keys {
        old: unlocked.key,
        new: Key::from_slice(&[]),
    };
    if let Err(error) = header.begin_decryption(&device, &data, &keys, true, &State::ALL) {
        drop((data, device));
        settle(site)?;
        return Err(error);
    }
    work(
        site,
        &mut header,
        (&device, &data),
        &keys,
        (Some(&side), caller),
    )?;
    drop((data, device));
    settle(site).map(drop)
}

/// What became of a header beside a volume.
pub enum Settled {
    /// The change that it records continues.
    Begun,
    /// All is decrypted.
    Decrypted,
    /// No change had begun, and the volume has its header again.
    PutBack,
    /// All is encrypted, by another program that left the header in the file beside the volume.
    Apart,
}

/// Whether a header stands beside the volume that belongs to it, and not to another format's.
pub fn is_beside(site: &Site<'_>) -> Result<bool, VolumeError> {
    let header = header_beside(site)?;
    Ok(header.is_some_and(|header| !header.is_for_another()))
}

/// The header in the file beside the volume, if there is one.
pub fn header_beside(site: &Site<'_>) -> Result<Option<Header>, VolumeError> {
    let side = site.side();
    if !side.exists() {
        return Ok(None);
    }
    site.check_beside()?;
    Header::read(&site.open_at(&side, Use::Read)?).map(Some)
}

/// Refuses to change the header beside a volume if it records no change of the data. That header
/// goes back to its place, which is recognised by its old content.
///
/// # Errors
/// [`VolumeError::Standing`], and those of [`Site::check_beside`].
pub fn check_in_place(site: &Site<'_>) -> Result<(), VolumeError> {
    let side = site.side();
    if site.named_header().is_some() || !side.exists() {
        return Ok(());
    }
    site.check_beside()?;
    match Header::read(&site.open_at(&side, Use::Read)?) {
        Ok(header) if !header.is_reencrypting() && !header.is_for_another() => {
            let image = site.image();
            Err(standing(
                format!(
                    "{} is a header of {} that an interrupted run left behind",
                    side.display(),
                    image.display()
                ),
                format!(
                    "Run `cryptmark volume reencrypt {}` first: it puts that header where it belongs.",
                    word(image)
                ),
            ))
        }
        // One that is damaged may be mended.
        _ => Ok(()),
    }
}

/// Ends the work that no longer needs the file beside the volume. A header that belongs before the
/// data goes there, and the header of decrypted data is removed.
pub fn settle(site: &Site<'_>) -> Result<Settled, VolumeError> {
    let side = site.side();
    let device = site.open_at(&side, Use::ChangeHeader)?;
    let header = Header::read(&device)?;
    // A run that was killed may have left it in a cache, and nowhere else.
    device.flush()?;
    sync_name(&side)?;
    let begun = header.is_reencrypting();
    let segments = &header.metadata.segments;
    let is_final = |segment: &&Segment| segment.flags.iter().any(|flag| flag == "backup-final");
    let last = segments.values().find(is_final);
    let Some(last) = last.or(segments.get(&0)) else {
        return Err(several_segments());
    };
    let settled = match (&last.kind, begun) {
        (SegmentKind::Other { .. }, _) => return Err(several_segments()),
        (SegmentKind::Linear, true) => return Ok(Settled::Begun),
        (SegmentKind::Linear, false) => {
            let mut data = site.open(Use::Encrypt)?;
            if header.has_decrypted(&data)? == Some(false) {
                return Err(VolumeError::OtherData);
            }
            match last.size {
                Some(length) if data.length()? > length => data.set_len(length)?,
                _ => {}
            }
            Settled::Decrypted
        }
        // The rest of the file is room that the header does not speak of.
        (SegmentKind::Crypt(_), _) if last.offset < header.bytes_with_keyslots() => {
            return Err(several_segments());
        }
        (SegmentKind::Crypt(_), true) => {
            put_before(site, &header, &device)?;
            Settled::Begun
        }
        (SegmentKind::Crypt(_), false) if header.has_moved() => return Ok(Settled::Apart),
        (SegmentKind::Crypt(_), false) => {
            header.put_back(&device, &site.open(Use::MendHeader)?)?;
            Settled::PutBack
        }
    };
    drop(device);
    fs::remove_file(&side).map_err(|error| cannot_write(&side, error))?;
    sync_name(site.image())?;
    Ok(settled)
}

/// Puts the header beside the volume before the data, which another program has encrypted.
pub fn bring_in(
    site: &Site<'_>,
    options: &Options,
    caller: &dyn Caller,
) -> Result<(), VolumeError> {
    let side = site.side();
    let device = site.open_at(&side, Use::ChangeHeader)?;
    let header = Header::read(&device)?;
    let secret = caller.secret(Format::Luks2)?;
    let slot = options.parameters.key_slot;
    let unlocked = header.unlock(&device, &secret, slot, &options.limits)?;
    caller.begin()?;
    let data = site.open(Use::Encrypt)?;
    let brought = header.bring_before(&device, &data, unlocked.key);
    brought.map_err(|error| match error {
        VolumeError::OtherData => standing(
            format!(
                "another program has encrypted {}, and the encrypted data do not begin as the file \
                 does",
                site.image().display()
            ),
            format!(
                "Export the volume, and compare its start with that of {}, which is not encrypted: \
                 only one of both may be whole. Nothing was changed.",
                site.image().display()
            ),
        ),
        error => error,
    })?;
    drop((device, data));
    fs::remove_file(&side).map_err(|error| cannot_write(&side, error))?;
    sync_name(site.image())?;
    end_move(site).map(drop)
}

/// Cuts a file in which all data were moved and encrypted, if a run was killed before. Whether
/// there was such a move.
pub fn end_move(site: &Site<'_>) -> Result<bool, VolumeError> {
    if site.named_header().is_some() || !site.image().is_file() {
        return Ok(false);
    }
    let header = Header::read(&*site.open(Use::Read)?);
    let Ok(header) = header else {
        return Ok(false);
    };
    if !header.has_moved() {
        return Ok(false);
    }
    let mut device = site.open(Use::Reencrypt)?;
    let mut header = Header::read(&device)?;
    let segment = header.metadata.segments.get(&0);
    // One that goes to the end, whatever the size, is cryptsetup's, and may be in use.
    if let Some((room, Some(size))) = segment.map(|it| (it.offset, it.size))
        && device.length()? == size + 2 * room
        && is_blank(&device, size + room, size + 2 * room)?
    {
        device.set_len(size + room)?;
    }
    header.fill_device(&device)?;
    Ok(true)
}

/// Makes room before data that are going to be encrypted. Then it puts `header`, which is on
/// `side`, there. If there is no room on the disk, the file stays as it was, and `side` is removed.
fn put_before(site: &Site<'_>, header: &Header, side: &dyn BlockDevice) -> Result<(), VolumeError> {
    let mut data = site.open(Use::Encrypt)?;
    let room = header.room(side, &data)?;
    let there = data.length()?;
    let mut make = || -> Result<(), VolumeError> {
        data.set_len(room.needed)?;
        reserve(&data, ByteRange::new(0, room.needed))?;
        header.put_before(side, &data)
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
        let side = site.side();
        fs::remove_file(&side).map_err(|error| cannot_write(&side, error))?;
    }
    Err(error)
}

/// Cleans up after a change that `header` records as done. It removes a header beside the
/// volume. If data were moved in a file, it also removes the room behind them: the file then has
/// this `length`.
pub fn finish(site: &Site<'_>, header: &Header, length: Option<u64>) -> Result<(), VolumeError> {
    if is_beside(site)? {
        settle(site)?;
    }
    let image = site.image();
    let Some(length) = length.filter(|_| image.is_file()) else {
        return Ok(());
    };
    let mut device = site.open(Use::Reencrypt)?;
    let there = Header::read(&device);
    let mut there = match there {
        Ok(there) if there.json == header.json => there,
        // The file that was worked on was moved away.
        _ => {
            return Err(standing(
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
        _ => return Err(longer(site, length)),
    }
    there.fill_device(&device)
}
