//! Open volumes.

use crate::error::{Fault, cryptmark_code, cryptmark_error, guarded};
use crate::options::cryptmark_options;
use crate::text::{path_of, str_of, text};
use ::volume::{Access, Format, OpenOptions, Volume, info};
use std::ffi::{CString, c_char};
use std::ptr::null;
use std::slice;

/// An open volume. Close it with cryptmark_close.
///
/// Any number of threads may read and write at a time. It belongs to the process that opened it: a
/// process that was forked from that one gets errors.
pub struct cryptmark_volume {
    pub(crate) volume: Volume,
    pub(crate) write: bool,
    info: CString,
}

/// Opens the volume in the file or on the block device at `path`.
///
/// `options` are from cryptmark_options_new; NULL is for a volume that needs no secret. `*volume`
/// is set if the code is CRYPTMARK_OK.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cryptmark_open(
    path: *const c_char,
    options: *const cryptmark_options,
    volume: *mut *mut cryptmark_volume,
    error: *mut *mut cryptmark_error,
) -> cryptmark_code {
    let open = || {
        if volume.is_null() {
            return Err(Fault::null("volume"));
        }
        // SAFETY: null or a text, as the caller promises.
        let path = unsafe { path_of(path, "path") }?;
        let none = cryptmark_options::default();
        // SAFETY: null or options, as the caller promises.
        let options = unsafe { options.as_ref() }.unwrap_or(&none);
        let how = OpenOptions {
            format: options.format,
            parameters: options.parameters.clone(),
            header: options.header.clone(),
            access: match options.write {
                true => Access::Write,
                false => Access::Read,
            },
            accepted: &options.accepted,
            ..OpenOptions::default()
        };
        let opened = Volume::open(path, options.secret.as_ref(), &how)?;
        let opened = Box::new(cryptmark_volume {
            info: text(&opened.info().to_string()),
            volume: opened,
            write: options.write,
        });
        // SAFETY: not null and writable, as the caller promises.
        unsafe { volume.write(Box::into_raw(opened)) };
        Ok(())
    };
    // SAFETY: null or writable, as the caller promises.
    unsafe { guarded(error, open) }
}

/// Closes a volume. What was written since the last cryptmark_flush is as safe as with a file. NULL
/// is allowed.
///
/// `volume` is from cryptmark_open, and not closed; no other thread uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cryptmark_close(volume: *mut cryptmark_volume) {
    if !volume.is_null() {
        // SAFETY: it came from `Box::into_raw`, and is given back once, as the caller promises.
        drop(unsafe { Box::from_raw(volume) });
    }
}

/// Bytes of the volume.
///
/// `volume` is from cryptmark_open, and not closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cryptmark_size(volume: *const cryptmark_volume) -> u64 {
    // SAFETY: null or a volume, as the caller promises.
    unsafe { volume.as_ref() }.map_or(0, |volume| volume.volume.size())
}

/// What is known of the volume, as JSON in UTF-8. It lives as long as the volume.
///
/// `volume` is from cryptmark_open, and not closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cryptmark_info(volume: *const cryptmark_volume) -> *const c_char {
    // SAFETY: null or a volume, as the caller promises.
    unsafe { volume.as_ref() }.map_or(null(), |volume| volume.info.as_ptr())
}

/// Reads `length` bytes from byte `offset` on, or what there is of them before the end of the
/// volume. `*done` is set to their number.
///
/// `volume` is from cryptmark_open, and not closed. `buffer` has `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cryptmark_read(
    volume: *const cryptmark_volume,
    offset: u64,
    buffer: *mut u8,
    length: usize,
    done: *mut usize,
    error: *mut *mut cryptmark_error,
) -> cryptmark_code {
    let read = || {
        // SAFETY: null or a volume, as the caller promises.
        let volume = unsafe { volume_of(volume) }?;
        check_length(length)?;
        let into = match (buffer.is_null(), length) {
            (_, 0) => &mut [][..],
            (true, _) => return Err(Fault::null("buffer")),
            // SAFETY: not null, and so many bytes that nothing else uses, as the caller promises.
            (false, _) => unsafe { slice::from_raw_parts_mut(buffer, length) },
        };
        let read = volume.volume.read_at(offset, into)?;
        if !done.is_null() {
            // SAFETY: not null and writable, as the caller promises.
            unsafe { done.write(read) };
        }
        Ok(())
    };
    // SAFETY: null or writable, as the caller promises.
    unsafe { guarded(error, read) }
}

/// Writes all `length` bytes at byte `offset`. Nothing is written beyond the end of the volume, and
/// then nothing at all.
///
/// `volume` is from cryptmark_open, and not closed. `data` has `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cryptmark_write(
    volume: *const cryptmark_volume,
    offset: u64,
    data: *const u8,
    length: usize,
    error: *mut *mut cryptmark_error,
) -> cryptmark_code {
    let write = || {
        // SAFETY: null or a volume, as the caller promises.
        let volume = unsafe { volume_of(volume) }?;
        check_length(length)?;
        let data = match (data.is_null(), length) {
            (_, 0) => &[][..],
            (true, _) => return Err(Fault::null("data")),
            // SAFETY: not null, and so many bytes, as the caller promises.
            (false, _) => unsafe { slice::from_raw_parts(data, length) },
        };
        Ok(volume.volume.write_at(offset, data)?)
    };
    // SAFETY: null or writable, as the caller promises.
    unsafe { guarded(error, write) }
}

/// Returns when everything that was written is on the storage.
///
/// `volume` is from cryptmark_open, and not closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cryptmark_flush(
    volume: *const cryptmark_volume,
    error: *mut *mut cryptmark_error,
) -> cryptmark_code {
    // SAFETY: null or a volume, as the caller promises.
    let flush = || Ok(unsafe { volume_of(volume) }?.volume.flush()?);
    // SAFETY: null or writable, as the caller promises.
    unsafe { guarded(error, flush) }
}

/// What the header of the volume at `path` says without any secret, as JSON in UTF-8. `format` is
/// NULL if the signature tells. Free `*json` with cryptmark_text_free.
///
/// `path` and `format` are texts.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cryptmark_header(
    path: *const c_char,
    format_name: *const c_char,
    json: *mut *mut c_char,
    error: *mut *mut cryptmark_error,
) -> cryptmark_code {
    let read = || {
        if json.is_null() {
            return Err(Fault::null("json"));
        }
        // SAFETY: null or a text, as the caller promises.
        let path = unsafe { path_of(path, "path") }?;
        let format = match format_name.is_null() {
            // SAFETY: a text, as the caller promises.
            false => Some(Format::parse(unsafe { str_of(format_name, "format") }?)?),
            true => None,
        };
        let said = text(&info::at(path, format)?.to_string());
        // SAFETY: not null and writable, as the caller promises.
        unsafe { json.write(said.into_raw()) };
        Ok(())
    };
    // SAFETY: null or writable, as the caller promises.
    unsafe { guarded(error, read) }
}

/// # Safety
/// `volume` is null, or a volume that lives for `'a`.
unsafe fn volume_of<'a>(volume: *const cryptmark_volume) -> Result<&'a cryptmark_volume, Fault> {
    // SAFETY: as the caller promises.
    unsafe { volume.as_ref() }.ok_or_else(|| Fault::null("volume"))
}

/// No buffer is longer than half of the address space.
fn check_length(length: usize) -> Result<(), Fault> {
    match isize::try_from(length) {
        Ok(_) => Ok(()),
        Err(_) => Err(Fault::input(
            format!("there is no buffer of {length} bytes"),
            "Check the length: it may have been negative.",
        )),
    }
}
