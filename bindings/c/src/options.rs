//! How to open a volume.

use crate::error::{Fault, cryptmark_code, cryptmark_error, guarded};
use crate::text::{as_path, bytes_of, free, slice_of, str_of, utf8};
use ::volume::Secret;
use ::volume::request::{Request, Value};
use cipher::Key;
use std::ffi::{c_char, c_int};
use std::path::PathBuf;

/// The most bytes of a secret, as of a key file.
const MOST_SECRET: usize = 8 << 20;

/// How to open a volume. Free it with cryptmark_options_free.
#[derive(Default)]
pub struct cryptmark_options(pub(crate) Request);

/// The bytes of a passphrase, without a newline.
pub const CRYPTMARK_PASSPHRASE: c_int = 0;
/// The bytes of a key file.
pub const CRYPTMARK_KEY_FILE: c_int = 1;
/// The key that encrypts the data.
pub const CRYPTMARK_VOLUME_KEY: c_int = 2;

/// New options: a volume with a signature, for reading.
#[unsafe(no_mangle)]
pub extern "C" fn cryptmark_options_new() -> *mut cryptmark_options {
    Box::into_raw(Box::default())
}

/// Frees options, and wipes their secret. NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cryptmark_options_free(options: *mut cryptmark_options) {
    // SAFETY: as the caller promises.
    unsafe { free(options) }
}

/// Sets an option by its name; cryptmark(3) lists them. Yes and no are "1" and "0".
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cryptmark_options_set(
    options: *mut cryptmark_options,
    name: *const c_char,
    value: *const c_char,
    error: *mut *mut cryptmark_error,
) -> cryptmark_code {
    let set = |request: &mut Request| {
        // SAFETY: null or a text, as the caller promises.
        let name = unsafe { str_of(name, "name") }?;
        // SAFETY: null or a text, as the caller promises.
        let value = unsafe { bytes_of(value, "value") }?;
        if !request.set(name, &Text { name, value })? {
            let message = format!("there is no option `{name}`");
            return Err(cryptmark_error::input(
                message,
                "cryptmark(3) lists the options.",
            ));
        }
        match name {
            "keyfile" => Ok(request.read_keyfiles()?),
            _ => Ok(()),
        }
    };
    // SAFETY: as the caller promises.
    unsafe { changed(options, error, set) }
}

/// Sets the secret, of the kind CRYPTMARK_PASSPHRASE, CRYPTMARK_KEY_FILE or CRYPTMARK_VOLUME_KEY.
/// Its bytes are copied to memory that is locked, and may be wiped afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cryptmark_options_secret(
    options: *mut cryptmark_options,
    kind: c_int,
    secret: *const u8,
    length: usize,
    error: *mut *mut cryptmark_error,
) -> cryptmark_code {
    let set = |request: &mut Request| {
        // SAFETY: as the caller promises.
        let key = unsafe { key_of(secret, length) }?;
        request.secret = Some(match kind {
            CRYPTMARK_PASSPHRASE => Secret::Passphrase(key),
            CRYPTMARK_KEY_FILE => Secret::KeyFile(key),
            CRYPTMARK_VOLUME_KEY => Secret::VolumeKey(key),
            _ => {
                let message = format!("there is no kind {kind} of secrets");
                let remedy = "Give CRYPTMARK_PASSPHRASE or another kind.";
                return Err(cryptmark_error::input(message, remedy));
            }
        });
        Ok(())
    };
    // SAFETY: as the caller promises.
    unsafe { changed(options, error, set) }
}

/// Adds a secret of another key slot that cryptmark_reencrypt keeps. Its bytes are copied to memory
/// that is locked, and may be wiped afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cryptmark_options_keep(
    options: *mut cryptmark_options,
    secret: *const u8,
    length: usize,
    error: *mut *mut cryptmark_error,
) -> cryptmark_code {
    let keep = |request: &mut Request| {
        // SAFETY: as the caller promises.
        request.kept.push(unsafe { key_of(secret, length) }?);
        Ok(())
    };
    // SAFETY: as the caller promises.
    unsafe { changed(options, error, keep) }
}

/// Changes options.
///
/// # Safety
/// `options` are null, or options that nothing else uses now. `error` is null or may be written.
unsafe fn changed(
    options: *mut cryptmark_options,
    error: *mut *mut cryptmark_error,
    change: impl FnOnce(&mut Request) -> Result<(), Fault>,
) -> cryptmark_code {
    // SAFETY: as the caller promises.
    let options = unsafe { options.as_mut() };
    let change = || change(&mut options.ok_or_else(|| cryptmark_error::null("options"))?.0);
    // SAFETY: as the caller promises.
    unsafe { guarded(error, change) }
}

/// A copy of a secret in locked memory.
///
/// # Safety
/// `secret` is null or has `length` bytes.
pub(crate) unsafe fn key_of(secret: *const u8, length: usize) -> Result<Key, Fault> {
    if length > MOST_SECRET {
        let message = format!("a secret of {length} bytes is too long");
        return Err(cryptmark_error::input(message, "Give 8 MiB at most."));
    }
    // SAFETY: as the caller promises.
    Ok(Key::from_slice(unsafe {
        slice_of(secret, length, "secret")
    }?))
}

/// The value of the option `name`.
struct Text<'a> {
    name: &'a str,
    value: &'a [u8],
}

impl Text<'_> {
    fn parsed<T>(
        &self,
        parse: impl FnOnce(&str) -> Option<T>,
        wrong: &str,
        remedy: &str,
    ) -> Result<T, Fault> {
        let (name, value) = (self.name, utf8(self.value, "value")?);
        parse(value)
            .ok_or_else(|| cryptmark_error::input(format!("`{name}` is `{value}`{wrong}"), remedy))
    }
}

impl Value for Text<'_> {
    type Error = Fault;

    fn flag(&self) -> Result<bool, Fault> {
        let parse = |value: &str| match value {
            "0" => Some(false),
            "1" => Some(true),
            _ => None,
        };
        self.parsed(parse, "", "Give 1 for yes, or 0 for no.")
    }

    fn number<T: TryFrom<u64>>(&self) -> Result<Option<T>, Fault> {
        let parse = |value: &str| T::try_from(value.parse().ok()?).ok();
        let wrong = ", which is no number that it takes";
        let number = self.parsed(parse, wrong, "Give a whole number in digits.")?;
        Ok(Some(number))
    }

    fn text(&self) -> Result<Option<String>, Fault> {
        Ok(Some(utf8(self.value, "value")?.to_owned()))
    }

    fn path(&self) -> Result<Option<PathBuf>, Fault> {
        Ok(Some(as_path(self.value, "value")?.to_owned()))
    }
}
