//! [`Volume`]: an encrypted volume in a file or on a disk, open like a file.

use crate::error::impossible;
use crate::judge::{State, Use};
use crate::locked::Locked;
use crate::place::{Place, Site};
use crate::{
    Access, Format, Limits, LuksHeader, Parameters, Secret, VolumeError, Warning, info, luks,
    operate, tcrypt, unaligned, unfinished,
};
use block::signature::{self, Wrapped};
use block::{AlignedBuffer, BlockDevice, BlockError};
use serde_json::{Value, json};
use std::fmt;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

/// Bytes that are read at a time, so that they are still in the CPU's cache when they are decrypted.
const PIECE: usize = 256 << 10;

/// How to open a [`Volume`].
#[derive(Clone)]
pub struct OpenOptions<'a> {
    /// The format; `None` finds it by its signature.
    pub format: Option<Format>,
    /// What the header does not say.
    pub parameters: Parameters,
    /// The file or device of the header, if that is not the volume itself.
    pub header: Option<PathBuf>,
    /// Whether the volume is going to be written.
    pub access: Access,
    /// The losses that the user accepts if the volume is written.
    pub accepted: &'a [State],
    /// Bounds of the work that a header may demand.
    pub limits: Limits,
    /// Hears how far the search for TrueCrypt's key derivation is, and may end it.
    pub watch: tcrypt::Watch<'a>,
}

impl Default for OpenOptions<'_> {
    /// Reads a volume of any format that has a signature.
    fn default() -> Self {
        Self {
            format: None,
            parameters: Parameters::default(),
            header: None,
            access: Access::Read,
            accepted: &[],
            limits: Limits::default(),
            watch: &operate::unwatched,
        }
    }
}

/// An open volume.
///
/// It reads and writes any bytes: [`read_at`](Self::read_at) and [`write_at`](Self::write_at) from
/// any number of threads, [`Read`], [`Write`] and [`Seek`] from one. What is written is on the
/// storage after [`flush`](Self::flush), as with a file.
///
/// A volume that is open for writing keeps out other writers, and stops writing if one of them
/// changes the header of a LUKS volume all the same. It belongs to the process that opened it: a
/// forked one cannot use it.
pub struct Volume {
    device: Box<dyn BlockDevice>,
    size: u64,
    unit: usize,
    access: Access,
    info: Value,
    /// Held by a write of parts of sectors, which reads their rest before, and shared by others.
    partial: RwLock<()>,
    position: u64,
    process: u32,
}

impl Volume {
    /// Opens the volume in the file or on the block device at `path`. `secret` may only be missing
    /// for volumes that open without one.
    ///
    /// # Errors
    /// [`VolumeError::NoSignature`] and [`VolumeError::StartLost`] if the format is unknown; those
    /// of [`Parameters::opening`] and [`unlock`](crate::Opening::unlock); [`VolumeError::Block`] with what is
    /// wrong at `path`. For writing also [`VolumeError::RecoveryNeeded`] while the volume is
    /// encrypted or decrypted in place, and [`VolumeError::Judged`]. [`VolumeError::Forked`]
    /// if the secret was given to the process from which this one was forked.
    pub fn open(
        path: &Path,
        secret: Option<&Secret>,
        options: &OpenOptions,
    ) -> Result<Self, VolumeError> {
        check_secret(secret)?;
        let site = Site::new(path, options.header.as_deref());
        if options.header.is_none() {
            site.check_beside()?;
        }
        let use_ = match options.access {
            Access::Read => Use::Read,
            Access::Write => Use::WriteData,
        };
        let place = Place::open(path, options.header.as_deref(), use_)?;
        Self::on(place, secret, options)
    }

    /// Opens the volume in a place that is open already; `options.header` has no effect.
    ///
    /// # Errors
    /// Those of [`open`](Self::open).
    pub fn on(
        place: Place,
        secret: Option<&Secret>,
        options: &OpenOptions,
    ) -> Result<Self, VolumeError> {
        check_secret(secret)?;
        let locked = Locked::find(&place, options)?;
        let (format, access) = (locked.format(), options.access);
        let opened = locked.unlock(secret, options.watch)?;
        let [header, data] = place.devices();
        let mut info = json!({ "format": format.name() });
        info["keyslot"] = json!(opened.slot);
        info["by_copy_of_header"] = json!(opened.by_copy);
        let warnings = opened.warnings.iter().map(Warning::to_json);
        info["warnings"] = warnings.collect();
        info["mappings"] = info::mappings(&opened);
        if let Ok(said) = info::header(format, &*header) {
            info["header"] = said;
        }
        let device = opened.device(header, data)?;
        let geometry = device.geometry();
        info["size"] = json!(geometry.size);
        Ok(Self {
            device,
            size: geometry.size,
            unit: geometry.logical_block as usize,
            access,
            info,
            partial: RwLock::new(()),
            position: 0,
            process: std::process::id(),
        })
    }

    /// Bytes of the volume.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// What is known of the volume: `format`, `size` in bytes, `keyslot`, `by_copy_of_header`,
    /// `mappings` with `cipher`, `key_bits`, `sector_size`, `offset` and `length` in bytes and
    /// `first_iv`, `warnings` as [`Warning::to_json`] has them, and `header` as [`info::header`](crate::info::header) has it.
    pub fn info(&self) -> &Value {
        &self.info
    }

    /// The volume as a block device, for exports of it.
    ///
    /// # Errors
    /// [`VolumeError::Forked`].
    pub fn into_device(self) -> Result<Box<dyn BlockDevice>, VolumeError> {
        self.check_process()?;
        Ok(self.device)
    }

    /// Reads into `into` what there is from byte `offset` on. Returns the number of bytes, which is
    /// less than `into` has only at the end of the volume.
    ///
    /// # Errors
    /// [`VolumeError::Block`] and [`VolumeError::Forked`].
    pub fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize, VolumeError> {
        self.check_process()?;
        let there = self.size.saturating_sub(offset).min(into.len() as u64);
        let into = &mut into[..there as usize];
        let (mut at, mut rest) = (offset, &mut *into);
        while !rest.is_empty() {
            let skip = (at % self.unit as u64) as usize;
            let whole = rest.len() / self.unit * self.unit;
            let length = match skip == 0 && whole > 0 {
                true => whole.min(PIECE),
                false => rest.len().min(self.unit - skip),
            };
            let (piece, behind) = rest.split_at_mut(length);
            if skip == 0 && length.is_multiple_of(self.unit) {
                self.device.read_at(at, piece)?;
            } else {
                let mut sector = AlignedBuffer::new(self.unit);
                self.device.read_at(at - skip as u64, &mut sector)?;
                piece.copy_from_slice(&sector[skip..][..length]);
            }
            rest = behind;
            at += length as u64;
        }
        Ok(into.len())
    }

    /// Writes all of `data` at byte `offset`. What is beside it in its sectors stays.
    ///
    /// # Errors
    /// [`VolumeError::Block`], and before anything is written
    /// [`BlockError::OutOfRange`], [`BlockError::ReadOnly`] and [`VolumeError::Forked`].
    pub fn write_at(&self, offset: u64, data: &[u8]) -> Result<(), VolumeError> {
        self.check_process()?;
        let (length, size) = (data.len() as u64, self.size);
        if self.access == Access::Read {
            return Err(BlockError::ReadOnly.into());
        }
        if offset.checked_add(length).is_none_or(|end| end > size) {
            return Err(BlockError::OutOfRange {
                offset,
                length,
                size,
            }
            .into());
        }
        if data.is_empty() {
            return Ok(());
        }
        let unit = self.unit as u64;
        if offset.is_multiple_of(unit) && length.is_multiple_of(unit) {
            let _shared = self.partial.read().unwrap_or_else(PoisonError::into_inner);
            return Ok(self.device.write_at(offset, data)?);
        }
        let _alone = self.partial.write().unwrap_or_else(PoisonError::into_inner);
        let (mut at, mut rest) = (offset, data);
        while !rest.is_empty() {
            let skip = (at % unit) as usize;
            let whole = rest.len() / self.unit * self.unit;
            let length = match skip == 0 && whole > 0 {
                true => whole,
                false => rest.len().min(self.unit - skip),
            };
            let (piece, behind) = rest.split_at(length);
            if skip == 0 && length.is_multiple_of(self.unit) {
                self.device.write_at(at, piece)?;
            } else {
                let mut sector = AlignedBuffer::new(self.unit);
                self.device.read_at(at - skip as u64, &mut sector)?;
                sector[skip..][..length].copy_from_slice(piece);
                self.device.write_at(at - skip as u64, &sector)?;
            }
            rest = behind;
            at += length as u64;
        }
        Ok(())
    }

    /// Returns when everything written before is on the storage.
    ///
    /// # Errors
    /// [`VolumeError::Block`] and [`VolumeError::Forked`].
    pub fn flush(&self) -> Result<(), VolumeError> {
        self.check_process()?;
        match self.access {
            Access::Read => Ok(()),
            Access::Write => Ok(self.device.flush()?),
        }
    }

    fn check_process(&self) -> Result<(), VolumeError> {
        match self.process == std::process::id() {
            true => Ok(()),
            false => Err(VolumeError::Forked { what: "the volume" }),
        }
    }
}

impl fmt::Debug for Volume {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Volume")
            .field("format", &self.info["format"])
            .field("size", &self.size)
            .field("access", &self.access)
            .finish_non_exhaustive()
    }
}

impl Read for Volume {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.read_at(self.position, into).map_err(io_error)?;
        self.position += read as u64;
        Ok(read)
    }
}

impl Write for Volume {
    /// Writes what there is room for up to the end of the volume.
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let room = self.size.saturating_sub(self.position);
        let length = room.min(data.len() as u64) as usize;
        self.write_at(self.position, &data[..length])
            .map_err(io_error)?;
        self.position += length as u64;
        Ok(length)
    }

    fn flush(&mut self) -> io::Result<()> {
        Self::flush(self).map_err(io_error)
    }
}

impl Seek for Volume {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let position = match to {
            SeekFrom::Start(position) => Some(position),
            SeekFrom::Current(by) => self.position.checked_add_signed(by),
            SeekFrom::End(by) => self.size.checked_add_signed(by),
        };
        let before = || io::Error::new(io::ErrorKind::InvalidInput, "seek before the first byte");
        self.position = position.ok_or_else(before)?;
        Ok(self.position)
    }
}

/// The error with the system's kind, if it has one.
fn io_error(error: VolumeError) -> io::Error {
    let kind = match &error {
        VolumeError::Block(BlockError::Io { source, .. }) => source.kind(),
        VolumeError::Block(BlockError::ReadOnly) => io::ErrorKind::PermissionDenied,
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, error)
}

/// Refuses a secret whose bytes this process does not have.
fn check_secret(secret: Option<&Secret>) -> Result<(), VolumeError> {
    match secret.is_none_or(Secret::is_here) {
        true => Ok(()),
        false => Err(VolumeError::Forked { what: "the secret" }),
    }
}

/// The format by its signature.
///
/// # Errors
/// [`VolumeError::Unfinished`], [`VolumeError::StartLost`], [`VolumeError::NoSignature`] and those of
/// reading it.
pub fn detect(header: &dyn BlockDevice) -> Result<Format, VolumeError> {
    if let Some(format) = Format::detect(header)? {
        return Ok(format);
    }
    if let Some(unfinished) = unfinished(header) {
        return Err(VolumeError::Unfinished(unfinished));
    }
    if LuksHeader::has_remains(header) {
        return Err(VolumeError::StartLost);
    }
    let content = signature::content(header)?;
    let wrapped = wrapped(header).map(Wrapped::name);
    Err(VolumeError::NoSignature {
        holds: wrapped.or_else(|| content.found.first().map(|found| found.name)),
        is_blank: content.is_blank() && header.geometry().size > 0,
    })
}

/// The format in which another program has wrapped an image, if it has.
pub fn wrapped(device: &dyn BlockDevice) -> Option<&'static Wrapped> {
    let start = unaligned::read_up_to(device, 0, 512);
    start.ok().and_then(|start| Wrapped::known(&start))
}

/// Refuses to search for a TrueCrypt or VeraCrypt header, which takes minutes, where a header of
/// LUKS is.
///
/// # Errors
/// [`VolumeError::Impossible`].
pub fn check_searched(
    format: Format,
    parameters: &Parameters,
    header: &dyn BlockDevice,
) -> Result<(), VolumeError> {
    let searched = matches!(format, Format::Tcrypt | Format::Veracrypt);
    if !searched || parameters.tcrypt_backup {
        return Ok(());
    }
    // A second copy of LUKS2's may be left behind a header that is one of these.
    let begins =
        unaligned::read_up_to(header, 0, 512).is_ok_and(|start| start.starts_with(luks::MAGIC));
    match Format::detect(header) {
        Ok(Some(found)) if begins => Err(impossible(
            format!("this is a {} volume, not {}", found.title(), format.title()),
            format!("Omit `format`, or give `format` {found}."),
        )),
        _ => Ok(()),
    }
}
