//! Texts, bytes and results, in both directions.

use crate::error::{Fault, cryptmark_error};
use std::ffi::{CStr, CString, c_char};
use std::path::Path;
use std::slice;

/// The version of the library, such as "0.2.0".
#[unsafe(no_mangle)]
pub extern "C" fn cryptmark_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}

/// Frees a text that a call has given. NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cryptmark_text_free(text: *mut c_char) {
    if !text.is_null() {
        // SAFETY: it came from `CString::into_raw`, and is given back once, as the caller promises.
        drop(unsafe { CString::from_raw(text) });
    }
}

/// `text` without zero bytes, of which C would see the end in.
pub(crate) fn text(text: &str) -> CString {
    let bytes = text.bytes().filter(|byte| *byte != 0).collect::<Vec<_>>();
    CString::new(bytes).unwrap_or_default()
}

/// The bytes of the text at `pointer`, the argument called `name`.
///
/// # Safety
/// `pointer` is null or a text that ends in a zero byte and lives for `'a`.
pub(crate) unsafe fn bytes_of<'a>(pointer: *const c_char, name: &str) -> Result<&'a [u8], Fault> {
    match pointer.is_null() {
        true => Err(cryptmark_error::null(name)),
        // SAFETY: not null, and a text, as the caller promises.
        false => Ok(unsafe { CStr::from_ptr(pointer) }.to_bytes()),
    }
}

/// The same as UTF-8.
///
/// # Safety
/// That of [`bytes_of`].
pub(crate) unsafe fn str_of<'a>(pointer: *const c_char, name: &str) -> Result<&'a str, Fault> {
    // SAFETY: as the caller promises.
    utf8(unsafe { bytes_of(pointer, name) }?, name)
}

/// The same as a path.
///
/// # Safety
/// That of [`bytes_of`].
pub(crate) unsafe fn path_of<'a>(pointer: *const c_char, name: &str) -> Result<&'a Path, Fault> {
    // SAFETY: as the caller promises.
    as_path(unsafe { bytes_of(pointer, name) }?, name)
}

/// The text in the argument called `name`.
pub(crate) fn utf8<'a>(bytes: &'a [u8], name: &str) -> Result<&'a str, Fault> {
    std::str::from_utf8(bytes)
        .map_err(|_| cryptmark_error::input(format!("`{name}` is not UTF-8"), "Give UTF-8."))
}

/// The path in the argument called `name`.
#[cfg(unix)]
pub(crate) fn as_path<'a>(bytes: &'a [u8], _: &str) -> Result<&'a Path, Fault> {
    use std::os::unix::ffi::OsStrExt;
    Ok(std::ffi::OsStr::from_bytes(bytes).as_ref())
}

/// The path in the argument called `name`, in UTF-8.
#[cfg(not(unix))]
pub(crate) fn as_path<'a>(bytes: &'a [u8], name: &str) -> Result<&'a Path, Fault> {
    Ok(utf8(bytes, name)?.as_ref())
}

/// The `length` bytes at `pointer`, the argument called `name`.
///
/// # Safety
/// `pointer` is null, or has so many bytes, which live for `'a`.
pub(crate) unsafe fn slice_of<'a>(
    pointer: *const u8,
    length: usize,
    name: &str,
) -> Result<&'a [u8], Fault> {
    match is_there(pointer, length, name)? {
        // SAFETY: not null, and so many bytes, as the caller promises.
        true => Ok(unsafe { slice::from_raw_parts(pointer, length) }),
        false => Ok(&[]),
    }
}

/// The same to write to.
///
/// # Safety
/// That of [`slice_of`], and nothing else uses the bytes.
pub(crate) unsafe fn slice_to<'a>(
    pointer: *mut u8,
    length: usize,
    name: &str,
) -> Result<&'a mut [u8], Fault> {
    match is_there(pointer, length, name)? {
        // SAFETY: not null, and so many bytes of its own, as the caller promises.
        true => Ok(unsafe { slice::from_raw_parts_mut(pointer, length) }),
        false => Ok(&mut []),
    }
}

/// Whether there are any bytes. No buffer is longer than half of the address space.
fn is_there(pointer: *const u8, length: usize, name: &str) -> Result<bool, Fault> {
    if isize::try_from(length).is_err() {
        return Err(cryptmark_error::input(
            format!("there is no buffer of {length} bytes"),
            "Check the length: it may have been negative.",
        ));
    }
    match (pointer.is_null(), length) {
        (_, 0) => Ok(false),
        (true, _) => Err(cryptmark_error::null(name)),
        (false, _) => Ok(true),
    }
}

/// What `pointer` leads to, the argument called `name`.
///
/// # Safety
/// `pointer` is null, or leads to what lives for `'a`.
pub(crate) unsafe fn given<'a, T>(pointer: *const T, name: &str) -> Result<&'a T, Fault> {
    // SAFETY: as the caller promises.
    unsafe { pointer.as_ref() }.ok_or_else(|| cryptmark_error::null(name))
}

/// What was given away by `Box::into_raw` is freed, unless it is null.
///
/// # Safety
/// It came from there, and comes back once.
pub(crate) unsafe fn free<T>(pointer: *mut T) {
    if !pointer.is_null() {
        // SAFETY: as the caller promises.
        drop(unsafe { Box::from_raw(pointer) });
    }
}
