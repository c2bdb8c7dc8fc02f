//! Errors: a code, a message and a remedy.

use crate::text::{free, text};
use ::volume::judge::Ruling;
use ::volume::request::with_causes;
use ::volume::{Verdict, VolumeError};
use std::any::Any;
use std::ffi::{CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null;

/// What came of a call: one of the codes that follow.
pub type cryptmark_code = c_int;

/// It was done.
pub const CRYPTMARK_OK: cryptmark_code = 0;
/// It was possible, and failed.
pub const CRYPTMARK_FAILED: cryptmark_code = 1;
/// An argument, an option, a header or a file cannot be used.
pub const CRYPTMARK_BAD_INPUT: cryptmark_code = 2;
/// The passphrase or key fits nothing.
pub const CRYPTMARK_WRONG_SECRET: cryptmark_code = 3;
/// It was refused, because data would be lost.
pub const CRYPTMARK_PROTECTED: cryptmark_code = 4;

/// A callback of the caller has stopped it.
pub const CRYPTMARK_INTERRUPTED: cryptmark_code = 130;

/// An error. Free it with cryptmark_error_free.
pub struct cryptmark_error {
    pub(crate) code: cryptmark_code,
    message: CString,
    remedy: CString,
    /// The name of the loss that a caller can allow.
    question: Option<CString>,
}

/// What a call fails with here.
pub(crate) type Fault = Box<cryptmark_error>;

impl cryptmark_error {
    pub(crate) fn new(code: cryptmark_code, message: &str, remedy: &str) -> Fault {
        Box::new(Self {
            code,
            message: text(message),
            remedy: text(remedy),
            question: None,
        })
    }

    pub(crate) fn input(message: impl AsRef<str>, remedy: &str) -> Fault {
        Self::new(CRYPTMARK_BAD_INPUT, message.as_ref(), remedy)
    }

    /// A null pointer for the argument of that name.
    pub(crate) fn null(name: &str) -> Fault {
        Self::input(format!("`{name}` is NULL"), "Give a pointer.")
    }

    fn of_panic(panic: &(dyn Any + Send)) -> Fault {
        let said = panic.downcast_ref::<String>().map(String::as_str);
        let said = said.or_else(|| panic.downcast_ref::<&str>().copied());
        let message = format!("a fault in cryptmark: {}", said.unwrap_or("unknown"));
        Self::new(CRYPTMARK_FAILED, &message, "Report this.")
    }
}

impl From<VolumeError> for Fault {
    fn from(error: VolumeError) -> Self {
        let code = match error.verdict() {
            Verdict::Failed => CRYPTMARK_FAILED,
            Verdict::Interrupted => CRYPTMARK_INTERRUPTED,
            Verdict::BadInput => CRYPTMARK_BAD_INPUT,
            Verdict::WrongSecret => CRYPTMARK_WRONG_SECRET,
            Verdict::Protected => CRYPTMARK_PROTECTED,
        };
        let mut told = cryptmark_error::new(code, &with_causes(&error), &error.remedy());
        if let VolumeError::Judged(finding) = &error
            && finding.ruling() == Ruling::Ask
        {
            told.question = Some(text(finding.state.name()));
        }
        told
    }
}

/// Runs `call`. Gives its code, and its error to `error` if that is not null.
///
/// # Safety
/// `error` is null or may be written.
pub(crate) unsafe fn guarded(
    error: *mut *mut cryptmark_error,
    call: impl FnOnce() -> Result<(), Fault>,
) -> cryptmark_code {
    // After a panic, objects are only freed or refuse what they cannot do.
    let outcome = catch_unwind(AssertUnwindSafe(call));
    let outcome = outcome.unwrap_or_else(|panic| Err(cryptmark_error::of_panic(&*panic)));
    let Err(fault) = outcome else {
        return CRYPTMARK_OK;
    };
    let code = fault.code;
    if !error.is_null() {
        // SAFETY: it may be written, as the caller promises.
        unsafe { error.write(Box::into_raw(fault)) };
    }
    code
}

/// The code of an error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cryptmark_error_code(error: *const cryptmark_error) -> cryptmark_code {
    // SAFETY: null or an error, as the caller promises.
    unsafe { error.as_ref() }.map_or(CRYPTMARK_OK, |error| error.code)
}

/// What happened, as a sentence without a full stop in UTF-8. It lives as long as the error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cryptmark_error_message(error: *const cryptmark_error) -> *const c_char {
    // SAFETY: null or an error, as the caller promises.
    unsafe { error.as_ref() }.map_or(c"no error".as_ptr(), |error| error.message.as_ptr())
}

/// What to do about it, as sentences in UTF-8. It lives as long as the error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cryptmark_error_remedy(error: *const cryptmark_error) -> *const c_char {
    // SAFETY: null or an error, as the caller promises.
    unsafe { error.as_ref() }.map_or(c"".as_ptr(), |error| error.remedy.as_ptr())
}

/// The name of the loss that the option "allow" accepts, or NULL if there is none. It lives as long
/// as the error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cryptmark_error_question(error: *const cryptmark_error) -> *const c_char {
    // SAFETY: null or an error, as the caller promises.
    let error = unsafe { error.as_ref() };
    let question = error.and_then(|error| error.question.as_ref());
    question.map_or(null(), |question| question.as_ptr())
}

/// Frees an error. NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cryptmark_error_free(error: *mut cryptmark_error) {
    // SAFETY: as the caller promises.
    unsafe { free(error) }
}
