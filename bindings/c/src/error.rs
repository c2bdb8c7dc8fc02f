//! Errors: a code, a message and a remedy.

use crate::text::text;
use ::volume::judge::Ruling;
use ::volume::{Verdict, VolumeError};
use std::any::Any;
use std::error::Error;
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
    code: cryptmark_code,
    message: CString,
    remedy: CString,
    question: Option<CString>,
}

/// What a call fails with here.
pub(crate) struct Fault {
    pub(crate) code: cryptmark_code,
    pub(crate) message: String,
    pub(crate) remedy: String,
    /// The name of the loss that a caller can allow.
    pub(crate) question: Option<&'static str>,
}

impl Fault {
    pub(crate) fn input(message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            code: CRYPTMARK_BAD_INPUT,
            message: message.into(),
            remedy: remedy.into(),
            question: None,
        }
    }

    /// A null pointer for the argument of that name.
    pub(crate) fn null(name: &str) -> Self {
        Self::input(format!("`{name}` is NULL"), "Give a pointer.")
    }

    fn of_panic(panic: &(dyn Any + Send)) -> Self {
        let said = panic.downcast_ref::<String>().map(String::as_str);
        let said = said.or_else(|| panic.downcast_ref::<&str>().copied());
        Self {
            code: CRYPTMARK_FAILED,
            message: format!("a fault in cryptmark: {}", said.unwrap_or("unknown")),
            remedy: "Report this.".to_owned(),
            question: None,
        }
    }
}

impl From<VolumeError> for Fault {
    fn from(error: VolumeError) -> Self {
        let mut message = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            let said = cause.to_string();
            // Some texts name their cause themselves.
            if !message.ends_with(&said) {
                message = format!("{message}: {said}");
            }
            source = cause.source();
        }
        Self {
            code: match error.verdict() {
                Verdict::Failed => CRYPTMARK_FAILED,
                Verdict::Interrupted => CRYPTMARK_INTERRUPTED,
                Verdict::BadInput => CRYPTMARK_BAD_INPUT,
                Verdict::WrongSecret => CRYPTMARK_WRONG_SECRET,
                Verdict::Protected => CRYPTMARK_PROTECTED,
            },
            message,
            remedy: error.remedy(),
            question: match &error {
                VolumeError::Judged(finding) if finding.ruling() == Ruling::Ask => {
                    Some(finding.state.name())
                }
                _ => None,
            },
        }
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
    let outcome = outcome.unwrap_or_else(|panic| Err(Fault::of_panic(&*panic)));
    let Err(fault) = outcome else {
        return CRYPTMARK_OK;
    };
    let code = fault.code;
    if !error.is_null() {
        let told = Box::new(cryptmark_error {
            code,
            message: text(&fault.message),
            remedy: text(&fault.remedy),
            question: fault.question.map(text),
        });
        // SAFETY: it may be written, as the caller promises.
        unsafe { error.write(Box::into_raw(told)) };
    }
    code
}

/// The code of an error.
///
/// `error` is one that a call has given, and not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cryptmark_error_code(error: *const cryptmark_error) -> cryptmark_code {
    // SAFETY: null or an error, as the caller promises.
    unsafe { error.as_ref() }.map_or(CRYPTMARK_OK, |error| error.code)
}

/// What happened, as a sentence without a full stop in UTF-8. It lives as long as the error.
///
/// `error` is one that a call has given, and not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cryptmark_error_message(error: *const cryptmark_error) -> *const c_char {
    // SAFETY: null or an error, as the caller promises.
    unsafe { error.as_ref() }.map_or(c"no error".as_ptr(), |error| error.message.as_ptr())
}

/// What to do about it, as sentences in UTF-8. It lives as long as the error.
///
/// `error` is one that a call has given, and not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cryptmark_error_remedy(error: *const cryptmark_error) -> *const c_char {
    // SAFETY: null or an error, as the caller promises.
    unsafe { error.as_ref() }.map_or(c"".as_ptr(), |error| error.remedy.as_ptr())
}

/// The name of the loss that the option "allow" accepts, or NULL if there is none. It lives as long
/// as the error.
///
/// `error` is one that a call has given, and not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cryptmark_error_question(error: *const cryptmark_error) -> *const c_char {
    // SAFETY: null or an error, as the caller promises.
    let error = unsafe { error.as_ref() };
    let question = error.and_then(|error| error.question.as_ref());
    question.map_or(null(), |question| question.as_ptr())
}

/// Frees an error. NULL is allowed.
///
/// `error` is one that a call has given, and not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cryptmark_error_free(error: *mut cryptmark_error) {
    if !error.is_null() {
        // SAFETY: it came from `Box::into_raw`, and is given back once, as the caller promises.
        drop(unsafe { Box::from_raw(error) });
    }
}
