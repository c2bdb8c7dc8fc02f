//! Volumes made, reencrypted, converted and resized.

use crate::error::{Fault, cryptmark_code, cryptmark_error, guarded};
use crate::options::cryptmark_options;
use crate::text::{path_of, text};
use ::volume::judge::{self, State, Use};
use ::volume::operate::{
    self, Answers, Change, Creation, HiddenCreation, KeySlotCost, NewKey, Options,
};
use ::volume::{Format, Place, Secret, Site, VolumeError};
use cipher::Key;
use std::ffi::{c_char, c_int, c_void};
use std::ops::ControlFlow;
use std::path::Path;
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
                user: std::ptr::null_mut(),
                ask: None,
                progress: None,
            },
        };
        Self(Mutex::new(calls))
    }

    fn ask(&self, finding: &judge::Finding) -> bool {
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

/// Makes a volume in the file or on the block device at `path`: of the option "format", or LUKS2. A
/// file that does not exist is made, `bytes` long; for others, `bytes` is not used. The secret of the
/// options opens the volume then; "pbkdf" and "iter_time" say how long that takes.
///
/// `path` is a text. `options` are from cryptmark_options_new. `calls` is NULL or calls.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cryptmark_create(
    path: *const c_char,
    options: *const cryptmark_options,
    bytes: u64,
    calls: *const cryptmark_calls,
    error: *mut *mut cryptmark_error,
) -> cryptmark_code {
    let create = |path: &Path, said: &cryptmark_options, calls: &Calls| {
        let mut creation = Creation {
            parameters: said.parameters.clone(),
            integrity: said.integrity.clone(),
            label: said.label.clone(),
            subsystem: said.subsystem.clone(),
            uuid: said.uuid.clone(),
            wipe: said.wipe,
            quick: said.quick,
            ..Creation::new(said.format.unwrap_or(Format::Luks2))
        };
        creation.check()?;
        let new = match &said.secret {
            None => None,
            Some(secret) => Some(NewKey {
                secret: copy(secret.words(creation.format)?),
                cost: said.cost(),
                allow_empty: said.allow_empty,
            }),
        };
        let mut place = Place::create(path, said.header.as_deref(), Some(bytes))?;
        calls.asking(said, |accepted| {
            creation.accepted = accepted.to_vec();
            operate::create(&mut place, new.as_ref(), &creation, &|done, total| {
                calls.report(done, total)
            })
        })?;
        Ok(())
    };
    // SAFETY: as the caller promises.
    unsafe { guarded(error, || worked(path, options, calls, create)) }
}

/// Makes a hidden volume of `bytes` bytes at the end of the TrueCrypt or VeraCrypt volume at `path`,
/// which the secret of `outer` opens. The hidden volume gets the secret, cipher, hash, PIM and key
/// files of `hidden`. What the outer volume has there is lost, and so is another hidden volume.
///
/// `path` is a text. `outer` and `hidden` are from cryptmark_options_new. `calls` is NULL or calls.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cryptmark_create_hidden(
    path: *const c_char,
    outer: *const cryptmark_options,
    hidden: *const cryptmark_options,
    bytes: u64,
    calls: *const cryptmark_calls,
    error: *mut *mut cryptmark_error,
) -> cryptmark_code {
    // SAFETY: as the caller promises.
    let hidden = unsafe { hidden.as_ref() };
    let create = |path: &Path, said: &cryptmark_options, calls: &Calls| {
        let hidden = hidden.ok_or_else(|| Fault::null("hidden"))?;
        let format = said.format.unwrap_or(Format::Veracrypt);
        let missing = VolumeError::NoSecret { format };
        let (Some(secret), Some(new)) = (&said.secret, &hidden.secret) else {
            return Err(missing.into());
        };
        let creation = Creation {
            parameters: hidden.parameters.clone(),
            ..Creation::new(format)
        };
        let new = NewKey {
            secret: copy(new.words(format)?),
            cost: hidden.cost(),
            allow_empty: hidden.allow_empty,
        };
        let place = Place::open(path, None, Use::WriteData)?;
        let mut wanted = said.wanted();
        wanted.format = Some(format);
        let report = |done, total| calls.report(done, total);
        calls.asking(said, |accepted| {
            wanted.accepted = accepted.to_vec();
            let how = (&creation, bytes);
            HiddenCreation::begin(&place, secret, how, &wanted, &report)?.finish(&new)
        })?;
        Ok(())
    };
    // SAFETY: as the caller promises.
    unsafe { guarded(error, || worked(path, outer, calls, create)) }
}

/// Gives the data of the LUKS2, TrueCrypt or VeraCrypt volume at `path` another key, and the cipher,
/// key_size, sector_size and hash of the options. The secret of the options stays, and those of
/// cryptmark_options_keep. A change that was stopped is continued. The volume opens at any time, with
/// the file PATH.cryptmark-header if there is one meanwhile.
///
/// `path` is a text. `options` are from cryptmark_options_new. `calls` is NULL or calls.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cryptmark_reencrypt(
    path: *const c_char,
    options: *const cryptmark_options,
    calls: *const cryptmark_calls,
    error: *mut *mut cryptmark_error,
) -> cryptmark_code {
    // SAFETY: as the caller promises.
    unsafe { changed(Change::Anew, path, options, calls, error) }
}

/// Encrypts the data at `path` where they are, as a LUKS2 volume that the secret of the options opens.
/// A file gets room for the header; a device needs the option "header". Call it again to continue.
///
/// `path` is a text. `options` are from cryptmark_options_new. `calls` is NULL or calls.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cryptmark_encrypt(
    path: *const c_char,
    options: *const cryptmark_options,
    calls: *const cryptmark_calls,
    error: *mut *mut cryptmark_error,
) -> cryptmark_code {
    // SAFETY: as the caller promises.
    unsafe { changed(Change::Encrypt, path, options, calls, error) }
}

/// Decrypts the LUKS2 volume at `path` where it is, for good. Call it again to continue.
///
/// `path` is a text. `options` are from cryptmark_options_new. `calls` is NULL or calls.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cryptmark_decrypt(
    path: *const c_char,
    options: *const cryptmark_options,
    calls: *const cryptmark_calls,
    error: *mut *mut cryptmark_error,
) -> cryptmark_code {
    // SAFETY: as the caller promises.
    unsafe { changed(Change::Decrypt, path, options, calls, error) }
}

/// # Safety
/// As the callers have it.
unsafe fn changed(
    change: Change,
    path: *const c_char,
    options: *const cryptmark_options,
    calls: *const cryptmark_calls,
    error: *mut *mut cryptmark_error,
) -> cryptmark_code {
    let reencrypt = |path: &Path, said: &cryptmark_options, calls: &Calls| {
        let secret = said.secret.as_ref().ok_or(VolumeError::NoSecret {
            format: said.format.unwrap_or(Format::Luks2),
        })?;
        let report = |done, total| calls.report(done, total);
        let caller = Answers {
            allow_empty: said.allow_empty,
            cost: said.cost(),
            kept: &said.kept,
            ..Answers::new(secret, &report)
        };
        let site = Site::new(path, said.header.as_deref());
        let mut wanted = said.wanted();
        calls.asking(said, |accepted| {
            wanted.accepted = accepted.to_vec();
            operate::reencrypt(&site, change, &wanted, &caller)
        })?;
        Ok(())
    };
    // SAFETY: as the caller promises.
    unsafe { guarded(error, || worked(path, options, calls, reencrypt)) }
}

/// Makes the LUKS volume at `path` one of the option "format", luks1 or luks2. Its key slots and data
/// stay.
///
/// `path` is a text. `options` are from cryptmark_options_new.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cryptmark_convert(
    path: *const c_char,
    options: *const cryptmark_options,
    error: *mut *mut cryptmark_error,
) -> cryptmark_code {
    let convert = |path: &Path, said: &cryptmark_options, _: &Calls| {
        let format = said.format.ok_or_else(|| {
            Fault::input(
                "the options have no format",
                "Set it to luks1 or luks2, with cryptmark_options_set.",
            )
        })?;
        let place = Place::open(path, said.header.as_deref(), Use::ChangeLayout)?;
        operate::convert(&place, format)?;
        Ok(())
    };
    // SAFETY: as the caller promises.
    unsafe { guarded(error, || worked(path, options, std::ptr::null(), convert)) }
}

/// Gives the volume at `path`, with its header, the length `bytes`. A TrueCrypt or VeraCrypt volume
/// needs its format and secret in the options, and can only become larger.
///
/// `path` is a text. `options` are from cryptmark_options_new. `calls` is NULL or calls.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cryptmark_resize(
    path: *const c_char,
    options: *const cryptmark_options,
    bytes: u64,
    calls: *const cryptmark_calls,
    error: *mut *mut cryptmark_error,
) -> cryptmark_code {
    let resize = |path: &Path, said: &cryptmark_options, calls: &Calls| {
        let mut wanted = said.wanted();
        let mut place = Place::open(path, said.header.as_deref(), Use::ChangeLayout)?;
        calls.asking(said, |accepted| {
            wanted.accepted = accepted.to_vec();
            let report = |done, total| calls.report(done, total);
            operate::resize(&mut place, bytes, said.secret.as_ref(), &wanted, &report)
        })?;
        Ok(())
    };
    // SAFETY: as the caller promises.
    unsafe { guarded(error, || worked(path, options, calls, resize)) }
}

/// Copies the header and key slots of the volume at `path` to the new file `output`, which only this
/// user may read. Keep it as secret as the volume. TrueCrypt and VeraCrypt need the option "format".
///
/// `path` and `output` are texts. `options` are from cryptmark_options_new.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cryptmark_header_backup(
    path: *const c_char,
    options: *const cryptmark_options,
    output: *const c_char,
    error: *mut *mut cryptmark_error,
) -> cryptmark_code {
    let backup = |path: &Path, said: &cryptmark_options, _: &Calls| {
        // SAFETY: as the caller promises.
        let output = unsafe { path_of(output, "output") }?;
        let place = Place::open(path, said.header.as_deref(), Use::Read)?;
        Ok(operate::save_header(&place, output, &said.wanted()).map(drop)?)
    };
    // SAFETY: as the caller promises.
    unsafe { guarded(error, || worked(path, options, std::ptr::null(), backup)) }
}

/// Puts the header and key slots in the file `input` back to the volume at `path`. TrueCrypt and
/// VeraCrypt need the option "format", and the secret that opens the header in the file.
///
/// `path` and `input` are texts. `options` are from cryptmark_options_new. `calls` is NULL or calls.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cryptmark_header_restore(
    path: *const c_char,
    options: *const cryptmark_options,
    input: *const c_char,
    calls: *const cryptmark_calls,
    error: *mut *mut cryptmark_error,
) -> cryptmark_code {
    let restore = |path: &Path, said: &cryptmark_options, calls: &Calls| {
        // SAFETY: as the caller promises.
        let input = unsafe { path_of(input, "input") }?;
        let saved = Place::open(input, None, Use::Read)?;
        let mut wanted = said.wanted();
        let place = Place::open(path, said.header.as_deref(), Use::MendHeader)?;
        calls.asking(said, |accepted| {
            wanted.accepted = accepted.to_vec();
            let report = |done, total| calls.report(done, total);
            let secret = said.secret.as_ref();
            operate::restore_header(&place, saved.data(), secret, &wanted, &report)
        })?;
        Ok(())
    };
    // SAFETY: as the caller promises.
    unsafe { guarded(error, || worked(path, options, calls, restore)) }
}

/// Mends the header of the volume at `path` from its other copy, or from the remains of both. A
/// secret in the options proves that a LUKS header is right; TrueCrypt and VeraCrypt need it, and the
/// option "format".
///
/// `path` is a text. `options` are from cryptmark_options_new. `calls` is NULL or calls.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cryptmark_header_repair(
    path: *const c_char,
    options: *const cryptmark_options,
    calls: *const cryptmark_calls,
    error: *mut *mut cryptmark_error,
) -> cryptmark_code {
    let repair = |path: &Path, said: &cryptmark_options, calls: &Calls| {
        let mut wanted = said.wanted();
        let place = Place::open(path, said.header.as_deref(), Use::MendHeader)?;
        calls.asking(said, |accepted| {
            wanted.accepted = accepted.to_vec();
            let report = |done, total| calls.report(done, total);
            let (secret, uuid) = (said.secret.as_ref(), said.uuid.as_deref());
            operate::repair_header(&place, secret, uuid, &wanted, &report)
        })?;
        Ok(())
    };
    // SAFETY: as the caller promises.
    unsafe { guarded(error, || worked(path, options, calls, repair)) }
}

impl Calls {
    fn asking<T>(
        &self,
        said: &cryptmark_options,
        work: impl FnMut(&[State]) -> Result<T, VolumeError>,
    ) -> Result<T, VolumeError> {
        judge::asking(&said.accepted, |finding| self.ask(finding), work)
    }
}

impl cryptmark_options {
    pub(crate) fn cost(&self) -> KeySlotCost {
        KeySlotCost {
            kind: self.pbkdf,
            time: self.iter_time,
            ..KeySlotCost::default()
        }
    }

    /// What a change of the volume needs besides a secret.
    pub(crate) fn wanted(&self) -> Options {
        Options {
            format: self.format,
            parameters: self.parameters.clone(),
            accepted: self.accepted.clone(),
            ..Options::default()
        }
    }
}

fn copy(secret: &Key) -> Key {
    Key::from_slice(secret.as_bytes())
}

/// Does `work` with what the pointers lead to.
///
/// # Safety
/// `path` is null or a text, `options` null or options, `calls` null or calls.
unsafe fn worked(
    path: *const c_char,
    options: *const cryptmark_options,
    calls: *const cryptmark_calls,
    work: impl FnOnce(&Path, &cryptmark_options, &Calls) -> Result<(), Fault>,
) -> Result<(), Fault> {
    // SAFETY: as the caller promises.
    let path = unsafe { path_of(path, "path") }?;
    // SAFETY: as the caller promises.
    let options = unsafe { options.as_ref() }.ok_or_else(|| Fault::null("options"))?;
    let is_here = |secret: &Secret| secret.is_here();
    if !options.secret.as_ref().is_none_or(is_here) {
        return Err(VolumeError::Forked { what: "the secret" }.into());
    }
    // SAFETY: as the caller promises.
    work(path, options, &unsafe { Calls::of(calls) })
}
