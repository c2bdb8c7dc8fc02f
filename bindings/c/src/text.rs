//! Texts, in both directions.

use crate::error::Fault;
use std::ffi::{CStr, CString, c_char};

/// The version of the library, such as "0.2.0".
#[unsafe(no_mangle)]
pub extern "C" fn cryptmark_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}

/// Frees a text that a call has given. NULL is allowed.
///
/// `text` is one that was given to be freed with this, and not freed.
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
        true => Err(Fault::null(name)),
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
    let bytes = unsafe { bytes_of(pointer, name) }?;
    std::str::from_utf8(bytes)
        .map_err(|_| Fault::input(format!("`{name}` is not UTF-8"), "Give UTF-8."))
}

/// The path at `pointer`.
///
/// # Safety
/// That of [`bytes_of`].
#[cfg(unix)]
pub(crate) unsafe fn path_of<'a>(
    pointer: *const c_char,
    name: &str,
) -> Result<&'a std::path::Path, Fault> {
    use std::os::unix::ffi::OsStrExt;
    // SAFETY: as the caller promises.
    let bytes = unsafe { bytes_of(pointer, name) }?;
    Ok(std::ffi::OsStr::from_bytes(bytes).as_ref())
}

/// The path at `pointer`, in UTF-8.
///
/// # Safety
/// That of [`bytes_of`].
#[cfg(not(unix))]
pub(crate) unsafe fn path_of<'a>(
    pointer: *const c_char,
    name: &str,
) -> Result<&'a std::path::Path, Fault> {
    // SAFETY: as the caller promises.
    Ok(unsafe { str_of(pointer, name) }?.as_ref())
}
