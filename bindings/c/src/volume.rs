//! Open volumes.

use crate::error::{cryptmark_code, cryptmark_error, guarded};
use crate::options::cryptmark_options;
use crate::text::{free, given, path_of, slice_of, slice_to, str_of, text};
use ::volume::{Format, Volume, info};
use std::ffi::{CString, c_char};
use std::ptr::null;

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
/// `options` may be NULL for a volume that needs no secret. `*volume` is set if the code is
/// CRYPTMARK_OK.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cryptmark_open(
    path: *const c_char,
    options: *const cryptmark_options,
    volume: *mut *mut cryptmark_volume,
    error: *mut *mut cryptmark_error,
) -> cryptmark_code {
    let open = || {
        if volume.is_null() {
            return Err(cryptmark_error::null("volume"));
        }
        // SAFETY: null or a text, as the caller promises.
        let path = unsafe { path_of(path, "path") }?;
        let none = cryptmark_options::default();
        // SAFETY: null or options, as the caller promises.
        let cryptmark_options(request) = unsafe { options.as_ref() }.unwrap_or(&none);
        let opened = Volume::open(path, request.secret.as_ref(), &request.open_options())?;
        let opened = Box::new(cryptmark_volume {
            info: text(&opened.info().to_string()),
            volume: opened,
            write: request.write,
        });
        // SAFETY: not null and writable, as the caller promises.
        unsafe { volume.write(Box::into_raw(opened)) };
        Ok(())
    };
    // SAFETY: null or writable, as the caller promises.
    unsafe { guarded(error, open) }
}

/// Closes a volume. What was written since the last cryptmark_flush is as safe as with a file. No
/// other thread may use the volume. NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cryptmark_close(volume: *mut cryptmark_volume) {
    // SAFETY: as the caller promises.
    unsafe { free(volume) }
}

/// Bytes of the volume.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cryptmark_size(volume: *const cryptmark_volume) -> u64 {
    // SAFETY: null or a volume, as the caller promises.
    unsafe { volume.as_ref() }.map_or(0, |volume| volume.volume.size())
}

/// What is known of the volume, as JSON in UTF-8. It lives as long as the volume.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cryptmark_info(volume: *const cryptmark_volume) -> *const c_char {
    // SAFETY: null or a volume, as the caller promises.
    unsafe { volume.as_ref() }.map_or(null(), |volume| volume.info.as_ptr())
}

/// Reads `length` bytes from byte `offset` on, or what there is of them before the end of the
/// volume. `*done` is set to their number.
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
        let volume = unsafe { given(volume, "volume") }?;
        // SAFETY: null, or so many bytes that nothing else uses, as the caller promises.
        let into = unsafe { slice_to(buffer, length, "buffer") }?;
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
        let volume = unsafe { given(volume, "volume") }?;
        // SAFETY: null or so many bytes, as the caller promises.
        let data = unsafe { slice_of(data, length, "data") }?;
        Ok(volume.volume.write_at(offset, data)?)
    };
    // SAFETY: null or writable, as the caller promises.
    unsafe { guarded(error, write) }
}

/// Returns when everything that was written is on the storage.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cryptmark_flush(
    volume: *const cryptmark_volume,
    error: *mut *mut cryptmark_error,
) -> cryptmark_code {
    // SAFETY: null or a volume, as the caller promises.
    let flush = || Ok(unsafe { given(volume, "volume") }?.volume.flush()?);
    // SAFETY: null or writable, as the caller promises.
    unsafe { guarded(error, flush) }
}

/// What the header of the volume at `path` says without any secret, as JSON in UTF-8. `format` is
/// NULL if the signature tells. Free `*json` with cryptmark_text_free.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cryptmark_header(
    path: *const c_char,
    format_name: *const c_char,
    json: *mut *mut c_char,
    error: *mut *mut cryptmark_error,
) -> cryptmark_code {
    let read = || {
        if json.is_null() {
            return Err(cryptmark_error::null("json"));
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
