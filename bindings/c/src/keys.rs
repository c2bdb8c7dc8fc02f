//! Key slots of LUKS volumes.

use crate::error::{Fault, cryptmark_code, cryptmark_error, guarded};
use crate::options::{cryptmark_options, key_of};
use crate::text::path_of;
use ::volume::judge::Use;
use ::volume::operate::{self, KeyOptions, NewKey, PasswordChange};
use ::volume::{Format, Place, Secret, VolumeError};
use std::ffi::c_char;

/// Adds a key slot of the LUKS volume at `path`, which opens with the `length` bytes at `secret`.
/// `*slot` is set to its number.
///
/// `options` have the secret that opens the volume now. The options "pbkdf" and "iter_time" say how
/// long opening takes with the new one, and "new_key_slot" where it is kept.
///
/// `path` is a text. `options` are from cryptmark_options_new. `slot` is NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cryptmark_key_add(
    path: *const c_char,
    options: *const cryptmark_options,
    secret: *const u8,
    length: usize,
    slot: *mut u32,
    error: *mut *mut cryptmark_error,
) -> cryptmark_code {
    let add = || {
        // SAFETY: as the caller promises.
        let new = unsafe { key_of(secret, length) }?;
        // SAFETY: as the caller promises.
        unsafe {
            changed(path, options, slot, |place, secret, said| {
                operate::add_key(place, secret, &said.new_key(new), &said.keys)
            })
        }
    };
    // SAFETY: null or writable, as the caller promises.
    unsafe { guarded(error, add) }
}

/// Gives the key slot that the secret of `options` opens the `length` bytes at `secret` instead.
/// `*slot` is set to its number, which LUKS1 changes. The old secret opens until the new one does. A
/// TrueCrypt or VeraCrypt volume, which the option "format" names, has one passphrase, and no slots.
///
/// `path` is a text. `options` are from cryptmark_options_new. `slot` is NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cryptmark_key_change(
    path: *const c_char,
    options: *const cryptmark_options,
    secret: *const u8,
    length: usize,
    slot: *mut u32,
    error: *mut *mut cryptmark_error,
) -> cryptmark_code {
    let change = || {
        // SAFETY: as the caller promises.
        let new = unsafe { key_of(secret, length) }?;
        // SAFETY: as the caller promises.
        unsafe {
            changed(path, options, slot, |place, secret, said| {
                let wanted = said.options.wanted();
                match wanted.format {
                    Some(Format::Tcrypt | Format::Veracrypt) => {
                        let change =
                            PasswordChange::begin(place, secret, &wanted, &operate::unwatched)?;
                        change.finish(&said.new_key(new), &operate::unwatched)?;
                        Ok(0)
                    }
                    _ => operate::change_key(place, secret, &said.new_key(new), &said.keys),
                }
            })
        }
    };
    // SAFETY: null or writable, as the caller promises.
    unsafe { guarded(error, change) }
}

/// Removes the key slot that the option "key_slot" names, or the one that the secret of `options`
/// opens. `*slot` is set to its number. The last one of the data is removed only with the option
/// "last_key"; the data are lost then.
///
/// `path` is a text. `options` are from cryptmark_options_new. `slot` is NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cryptmark_key_remove(
    path: *const c_char,
    options: *const cryptmark_options,
    slot: *mut u32,
    error: *mut *mut cryptmark_error,
) -> cryptmark_code {
    let remove = || {
        // SAFETY: as the caller promises.
        unsafe {
            changed(path, options, slot, |place, secret, said| {
                operate::remove_key(place, secret, &said.keys)
            })
        }
    };
    // SAFETY: null or writable, as the caller promises.
    unsafe { guarded(error, remove) }
}

/// What options say of a change of keys.
struct Said<'a> {
    options: &'a cryptmark_options,
    keys: KeyOptions,
}

impl Said<'_> {
    fn new_key(&self, secret: cipher::Key) -> NewKey {
        NewKey {
            secret,
            cost: self.options.cost(),
            allow_empty: self.options.allow_empty,
        }
    }
}

/// Opens the volume for a change of its header, and writes the number that `change` gives to `slot`.
///
/// # Safety
/// `path` is null or a text, `options` null or options, `slot` null or writable.
unsafe fn changed(
    path: *const c_char,
    options: *const cryptmark_options,
    slot: *mut u32,
    change: impl FnOnce(&Place, &Secret, &Said<'_>) -> Result<u32, VolumeError>,
) -> Result<(), Fault> {
    // SAFETY: as the caller promises.
    let path = unsafe { path_of(path, "path") }?;
    // SAFETY: as the caller promises.
    let options = unsafe { options.as_ref() }.ok_or_else(|| Fault::null("options"))?;
    let secret = options.secret.as_ref().ok_or_else(|| {
        Fault::input(
            "the options have no secret",
            "Set the one that opens the volume now, with cryptmark_options_secret.",
        )
    })?;
    let said = Said {
        options,
        keys: KeyOptions {
            slot: options.parameters.key_slot,
            ..options.keys
        },
    };
    let place = Place::open(path, options.header.as_deref(), Use::ChangeHeader)?;
    let number = change(&place, secret, &said)?;
    if !slot.is_null() {
        // SAFETY: not null and writable, as the caller promises.
        unsafe { slot.write(number) };
    }
    Ok(())
}
