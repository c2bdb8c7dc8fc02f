//! Volumes made and changed, and their key slots.

use crate::error::{Fault, cryptmark_code, cryptmark_error, guarded};
use crate::options::{cryptmark_options, key_of};
use crate::text::{given, path_of, text};
use ::volume::judge::Finding;
use ::volume::operate::Change;
use ::volume::request::{self, Request};
use ::volume::{Format, VolumeError};
use std::ffi::{c_char, c_int, c_void};
use std::ops::ControlFlow;
use std::path::Path;
use std::ptr::{null, null_mut};
use std::sync::{Mutex, PoisonError};

/// What a long call asks and tells. Each function may be NULL.
#[repr(C)]
pub struct cryptmark_calls {
    /// What the functions are called with.
    pub user: *mut c_void,
    /// Whether a loss is accepted: not 0 for yes. `loss` is its name, as the option "allow" has it,
    /// and `found` says in UTF-8 what was found. All questions come before anything is written, on
    /// the calling thread. NULL accepts nothing.
    pub ask: Option<
        unsafe extern "C" fn(user: *mut c_void, loss: *const c_char, found: *const c_char) -> c_int,
    >,
    /// How many bytes are done, of how many. Not 0 stops, and the call gives CRYPTMARK_INTERRUPTED.
    /// It is called on any thread, by one at a time.
    pub progress: Option<unsafe extern "C" fn(user: *mut c_void, done: u64, total: u64) -> c_int>,
}

/// The calls of one caller, for any thread.
struct Calls(Mutex<cryptmark_calls>);

// SAFETY: the pointer to the caller's data is only handed on, and by one thread at a time, as
// `cryptmark_calls` says.
unsafe impl Send for Calls {}
// SAFETY: as above, by the mutex.
unsafe impl Sync for Calls {}

impl Calls {
    /// # Safety
    /// `calls` is null, or calls whose functions may be called until the end of the work.
    unsafe fn of(calls: *const cryptmark_calls) -> Self {
        // SAFETY: as the caller promises.
        let calls = match unsafe { calls.as_ref() } {
            Some(calls) => cryptmark_calls { ..*calls },
            None => cryptmark_calls {
                user: null_mut(),
                ask: None,
                progress: None,
            },
        };
        Self(Mutex::new(calls))
    }
}

impl request::Calls for Calls {
    fn ask(&self, finding: &Finding) -> bool {
        let calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (loss, found) = (text(finding.state.name()), text(&finding.to_string()));
        // SAFETY: as the caller of the work has promised; the texts live through the call.
        calls
            .ask
            .is_some_and(|ask| unsafe { ask(calls.user, loss.as_ptr(), found.as_ptr()) != 0 })
    }

    fn report(&self, done: u64, total: u64) -> ControlFlow<()> {
        let calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match calls.progress {
            // SAFETY: as the caller of the work has promised.
            Some(progress) if unsafe { progress(calls.user, done, total) } != 0 => {
                ControlFlow::Break(())
            }
            _ => ControlFlow::Continue(()),
        }
    }
}

/// Adds a key slot of the LUKS volume at `path`, which opens with the `length` bytes at `secret`.
/// `*slot` is set to its number.
///
/// `options` have the secret that opens the volume now. The options "pbkdf" and "iter_time" say how
/// long opening takes with the new one, and "new_key_slot" where it is kept.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cryptmark_key_add(
    path: *const c_char,
    options: *const cryptmark_options,
    secret: *const u8,
    length: usize,
    slot: *mut u32,
    error: *mut *mut cryptmark_error,
) -> cryptmark_code {
    let add = |path: &Path, said: &Request, _: &Calls| {
        // SAFETY: as the caller promises.
        let new = unsafe { key_of(secret, length) }?;
        Ok(said.add_key(path, new)?)
    };
    // SAFETY: as the caller promises.
    unsafe { worked((path, options, null()), slot, error, add) }
}

/// Gives the key slot that the secret of `options` opens the `length` bytes at `secret` instead.
/// `*slot` is set to its number, which LUKS1 changes. The old secret opens until the new one does. A
/// TrueCrypt or VeraCrypt volume, which the option "format" names, has one passphrase, and no slots.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cryptmark_key_change(
    path: *const c_char,
    options: *const cryptmark_options,
    secret: *const u8,
    length: usize,
    slot: *mut u32,
    error: *mut *mut cryptmark_error,
) -> cryptmark_code {
    let change = |path: &Path, said: &Request, calls: &Calls| {
        // SAFETY: as the caller promises.
        let new = unsafe { key_of(secret, length) }?;
        Ok(match said.format {
            Some(Format::Tcrypt | Format::Veracrypt) => {
                said.change_password(path, new, calls)?;
                0
            }
            _ => said.change_key(path, new)?,
        })
    };
    // SAFETY: as the caller promises.
    unsafe { worked((path, options, null()), slot, error, change) }
}

/// Removes the key slot that the option "key_slot" names, or the one that the secret of `options`
/// opens. `*slot` is set to its number. The last one of the data is removed only with the option
/// "last_key"; the data are lost then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cryptmark_key_remove(
    path: *const c_char,
    options: *const cryptmark_options,
    slot: *mut u32,
    error: *mut *mut cryptmark_error,
) -> cryptmark_code {
    let remove = |path: &Path, said: &Request, _: &Calls| Ok(said.remove_key(path)?);
    // SAFETY: as the caller promises.
    unsafe { worked((path, options, null()), slot, error, remove) }
}

/// Makes a volume in the file or on the block device at `path`: of the option "format", or LUKS2. A
/// file that does not exist is made, `bytes` long; for others, `bytes` is not used. The secret of the
/// options opens the volume then; "pbkdf" and "iter_time" say how long that takes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cryptmark_create(
    path: *const c_char,
    options: *const cryptmark_options,
    bytes: u64,
    calls: *const cryptmark_calls,
    error: *mut *mut cryptmark_error,
) -> cryptmark_code {
    let create =
        |path: &Path, said: &Request, calls: &Calls| Ok(said.create(path, Some(bytes), calls)?);
    // SAFETY: as the caller promises.
    unsafe { worked((path, options, calls), null_mut(), error, create) }
}

/// Makes a hidden volume of `bytes` bytes at the end of the TrueCrypt or VeraCrypt volume at `path`,
/// which the secret of `outer` opens. The hidden volume gets the secret, cipher, hash, PIM and key
/// files of `hidden`. What the outer volume has there is lost, and so is another hidden volume.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cryptmark_create_hidden(
    path: *const c_char,
    outer: *const cryptmark_options,
    hidden: *const cryptmark_options,
    bytes: u64,
    calls: *const cryptmark_calls,
    error: *mut *mut cryptmark_error,
) -> cryptmark_code {
    let create = |path: &Path, said: &Request, calls: &Calls| {
        // SAFETY: as the caller promises.
        let cryptmark_options(hidden) = unsafe { given(hidden, "hidden") }?;
        Ok(said.create_hidden(path, hidden, bytes, calls)?)
    };
    // SAFETY: as the caller promises.
    unsafe { worked((path, outer, calls), null_mut(), error, create) }
}

/// Gives the data of the LUKS2, TrueCrypt or VeraCrypt volume at `path` another key, and the cipher,
/// key_size, sector_size and hash of the options. The secret of the options stays, and those of
/// cryptmark_options_keep. A change that was stopped is continued. The volume opens at any time, with
/// the file PATH.cryptmark-header if there is one meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cryptmark_reencrypt(
    path: *const c_char,
    options: *const cryptmark_options,
    calls: *const cryptmark_calls,
    error: *mut *mut cryptmark_error,
) -> cryptmark_code {
    // SAFETY: as the caller promises.
    unsafe { changed(Change::Anew, (path, options, calls), error) }
}

/// Encrypts the data at `path` where they are, as a LUKS2 volume that the secret of the options opens.
/// A file gets room for the header; a device needs the option "header". Call it again to continue.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cryptmark_encrypt(
    path: *const c_char,
    options: *const cryptmark_options,
    calls: *const cryptmark_calls,
    error: *mut *mut cryptmark_error,
) -> cryptmark_code {
    // SAFETY: as the caller promises.
    unsafe { changed(Change::Encrypt, (path, options, calls), error) }
}

/// Decrypts the LUKS2 volume at `path` where it is, for good. Call it again to continue.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cryptmark_decrypt(
    path: *const c_char,
    options: *const cryptmark_options,
    calls: *const cryptmark_calls,
    error: *mut *mut cryptmark_error,
) -> cryptmark_code {
    // SAFETY: as the caller promises.
    unsafe { changed(Change::Decrypt, (path, options, calls), error) }
}

/// # Safety
/// That of [`worked`].
unsafe fn changed(
    change: Change,
    given: Given,
    error: *mut *mut cryptmark_error,
) -> cryptmark_code {
    let reencrypt =
        |path: &Path, said: &Request, calls: &Calls| Ok(said.reencrypt(path, change, calls)?);
    // SAFETY: as the caller promises.
    unsafe { worked(given, null_mut(), error, reencrypt) }
}

/// Makes the LUKS volume at `path` one of the option "format", luks1 or luks2. Its key slots and data
/// stay.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cryptmark_convert(
    path: *const c_char,
    options: *const cryptmark_options,
    error: *mut *mut cryptmark_error,
) -> cryptmark_code {
    let convert = |path: &Path, said: &Request, _: &Calls| {
        let format = said.format.ok_or_else(|| {
            cryptmark_error::input(
                "the options have no format",
                "Set it to luks1 or luks2, with cryptmark_options_set.",
            )
        })?;
        Ok(said.convert(path, format)?)
    };
    // SAFETY: as the caller promises.
    unsafe { worked((path, options, null()), null_mut(), error, convert) }
}

/// Gives the volume at `path`, with its header, the length `bytes`. A TrueCrypt or VeraCrypt volume
/// needs its format and secret in the options, and can only become larger.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cryptmark_resize(
    path: *const c_char,
    options: *const cryptmark_options,
    bytes: u64,
    calls: *const cryptmark_calls,
    error: *mut *mut cryptmark_error,
) -> cryptmark_code {
    let resize = |path: &Path, said: &Request, calls: &Calls| Ok(said.resize(path, bytes, calls)?);
    // SAFETY: as the caller promises.
    unsafe { worked((path, options, calls), null_mut(), error, resize) }
}

/// Copies the header and key slots of the volume at `path` to the new file `output`, which only this
/// user may read. Keep it as secret as the volume. TrueCrypt and VeraCrypt need the option "format".
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cryptmark_header_backup(
    path: *const c_char,
    options: *const cryptmark_options,
    output: *const c_char,
    error: *mut *mut cryptmark_error,
) -> cryptmark_code {
    let backup = |path: &Path, said: &Request, _: &Calls| {
        // SAFETY: as the caller promises.
        Ok(said.backup_header(path, unsafe { path_of(output, "output") }?)?)
    };
    // SAFETY: as the caller promises.
    unsafe { worked((path, options, null()), null_mut(), error, backup) }
}

/// Puts the header and key slots in the file `input` back to the volume at `path`. TrueCrypt and
/// VeraCrypt need the option "format", and the secret that opens the header in the file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cryptmark_header_restore(
    path: *const c_char,
    options: *const cryptmark_options,
    input: *const c_char,
    calls: *const cryptmark_calls,
    error: *mut *mut cryptmark_error,
) -> cryptmark_code {
    let restore = |path: &Path, said: &Request, calls: &Calls| {
        // SAFETY: as the caller promises.
        Ok(said.restore_header(path, unsafe { path_of(input, "input") }?, calls)?)
    };
    // SAFETY: as the caller promises.
    unsafe { worked((path, options, calls), null_mut(), error, restore) }
}

/// Mends the header of the volume at `path` from its other copy, or from the remains of both. A
/// secret in the options proves that a LUKS header is right; TrueCrypt and VeraCrypt need it, and the
/// option "format".
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cryptmark_header_repair(
    path: *const c_char,
    options: *const cryptmark_options,
    calls: *const cryptmark_calls,
    error: *mut *mut cryptmark_error,
) -> cryptmark_code {
    let repair = |path: &Path, said: &Request, calls: &Calls| Ok(said.repair_header(path, calls)?);
    // SAFETY: as the caller promises.
    unsafe { worked((path, options, calls), null_mut(), error, repair) }
}

/// A path, options and calls, as they come from C.
type Given = (
    *const c_char,
    *const cryptmark_options,
    *const cryptmark_calls,
);

/// Does `work` with what the pointers lead to, and writes its result to `to`, unless that is null.
///
/// # Safety
/// The path is null or a text, the options null or options, the calls null or calls. `to` and `error`
/// are null or may be written.
unsafe fn worked<T>(
    (path, options, calls): Given,
    to: *mut T,
    error: *mut *mut cryptmark_error,
    work: impl FnOnce(&Path, &Request, &Calls) -> Result<T, Fault>,
) -> cryptmark_code {
    let work = || {
        // SAFETY: as the caller promises.
        let path = unsafe { path_of(path, "path") }?;
        // SAFETY: as the caller promises.
        let cryptmark_options(said) = unsafe { given(options, "options") }?;
        if said.secret.as_ref().is_some_and(|secret| !secret.is_here()) {
            return Err(VolumeError::Forked { what: "the secret" }.into());
        }
        // SAFETY: as the caller promises.
        let done = work(path, said, &unsafe { Calls::of(calls) })?;
        if !to.is_null() {
            // SAFETY: not null and writable, as the caller promises.
            unsafe { to.write(done) };
        }
        Ok(())
    };
    // SAFETY: as the caller promises.
    unsafe { guarded(error, work) }
}
