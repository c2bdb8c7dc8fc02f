//! Errors of the engine as Python's exceptions, which `cryptmark._errors` defines.

use block::BlockError;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use std::error::Error;
use std::io;
use volume::judge::Ruling;
use volume::request::with_causes;
use volume::{Verdict, VolumeError};

/// What a call fails with: an exception.
pub struct Fault(PyErr);

impl From<PyErr> for Fault {
    fn from(error: PyErr) -> Self {
        Self(error)
    }
}

impl From<Fault> for PyErr {
    fn from(fault: Fault) -> Self {
        fault.0
    }
}

impl From<VolumeError> for Fault {
    fn from(error: VolumeError) -> Self {
        Self(Python::attach(|py| raised(py, &error)))
    }
}

fn raised(py: Python<'_>, error: &VolumeError) -> PyErr {
    let system = system_error(error);
    let kind = match (system.map(io::Error::kind), error.verdict()) {
        (_, Verdict::Interrupted) => return PyKeyboardInterrupt::new_err(()),
        (Some(io::ErrorKind::NotFound), _) => "NotFound",
        (Some(io::ErrorKind::PermissionDenied), _) => "Denied",
        (_, Verdict::BadInput) => "BadInput",
        (_, Verdict::WrongSecret) => "WrongSecret",
        (_, Verdict::Protected) => "Protected",
        (_, Verdict::Failed) => "Failed",
    };
    if let Some(cause) = raised_by_file(error) {
        return caused(py, kind, &with_causes(error), cause);
    }
    let number = system.and_then(io::Error::raw_os_error);
    let raised = exception(py, kind, &with_causes(error), &error.remedy(), number);
    if let VolumeError::Judged(finding) = error
        && finding.ruling() == Ruling::Ask
    {
        let set = raised.value(py).setattr("question", finding.state.name());
        return set.map_or_else(|error| error, |()| raised);
    }
    raised
}

/// An exception of the class `kind` in `cryptmark._errors`.
pub fn exception(
    py: Python<'_>,
    kind: &str,
    message: &str,
    remedy: &str,
    errno: Option<i32>,
) -> PyErr {
    static MAKE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let made = MAKE
        .import(py, "cryptmark._errors", "make")
        .and_then(|make| make.call1((kind, message, remedy, errno)));
    match made {
        Ok(made) => PyErr::from_value(made),
        Err(error) => error,
    }
}

/// An exception as of [`exception`] for `cause`, which a file object has raised.
pub fn caused(py: Python<'_>, kind: &str, message: &str, cause: &PyErr) -> PyErr {
    let remedy = "Look at the exception of the file object, which is the cause of this one.";
    let number = cause.value(py).getattr("errno").and_then(|it| it.extract());
    let raised = exception(py, kind, message, remedy, number.ok());
    raised.set_cause(py, Some(cause.clone_ref(py)));
    raised
}

/// The system's error that is the cause, if there is one.
fn system_error(error: &VolumeError) -> Option<&io::Error> {
    match error {
        VolumeError::Unreadable { source, .. }
        | VolumeError::Block(
            BlockError::Open { source, .. }
            | BlockError::Examine { source, .. }
            | BlockError::Io { source, .. },
        ) => Some(source),
        _ => None,
    }
}

/// The exception of a file object that is the cause, if there is one.
fn raised_by_file(error: &VolumeError) -> Option<&PyErr> {
    let mut next: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = next {
        let inner = error
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref);
        if let Some(raised) = inner.and_then(|inner| inner.downcast_ref()) {
            return Some(raised);
        }
        next = error.source();
    }
    None
}
