//! [`Turn`]: one thread at a time uses a volume that reads file objects.

use crate::errors::exception;
use pyo3::prelude::*;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

/// Who uses the volume. A file object has one position, so its volume has one user. Python's lock
/// lets Ctrl-C end a wait. Alone it would not notice a file object that uses its own volume.
pub struct Turn {
    lock: Py<PyAny>,
    user: Mutex<Option<ThreadId>>,
}

/// The turn of this thread, until it is dropped.
pub struct Taken<'a>(&'a Turn);

impl Turn {
    pub fn new(py: Python<'_>) -> PyResult<Self> {
        let lock = py.import("threading")?.call_method0("Lock")?;
        Ok(Self {
            lock: lock.unbind(),
            user: Mutex::default(),
        })
    }

    fn user(&self) -> MutexGuard<'_, Option<ThreadId>> {
        self.user.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no other thread uses the volume.
    pub fn take(&self, py: Python<'_>) -> PyResult<Taken<'_>> {
        let own = Some(thread::current().id());
        if *self.user() == own {
            let message = "a file object has used the volume that reads it";
            let remedy = "Let the methods of the file object use other volumes only.";
            return Err(exception(py, "Failed", message, remedy, None));
        }
        self.lock.call_method0(py, "acquire")?;
        *self.user() = own;
        Ok(Taken(self))
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        *self.0.user() = None;
        // It fails only for a lock that nobody has.
        let _ = Python::attach(|py| self.0.lock.call_method0(py, "release"));
    }
}
