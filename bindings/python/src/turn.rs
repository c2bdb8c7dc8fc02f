//! [`Turn`]: one thread at a time uses a volume that reads file objects.

use crate::errors::exception;
use crate::signals::EVERY;
use pyo3::prelude::*;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

/// Who uses the volume. A file object has one position, so its volume has one user. A lock of the
/// standard library would not notice a file object that uses its own volume, nor Ctrl-C.
#[derive(Default)]
pub struct Turn {
    user: Mutex<Option<ThreadId>>,
    free: Condvar,
}

/// The turn of this thread, until it is dropped.
pub struct Taken<'a>(&'a Turn);

impl Turn {
    fn user(&self) -> MutexGuard<'_, Option<ThreadId>> {
        self.user.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no other thread uses the volume.
    pub fn take(&self, py: Python<'_>) -> PyResult<Taken<'_>> {
        let own = thread::current().id();
        loop {
            let taken = py.detach(|| {
                let mut user = self.user();
                if user.is_some_and(|user| user != own) {
                    let waited = self.free.wait_timeout(user, EVERY);
                    user = waited.unwrap_or_else(PoisonError::into_inner).0;
                }
                match *user {
                    None => {
                        *user = Some(own);
                        Some(true)
                    }
                    Some(user) if user == own => Some(false),
                    Some(_) => None,
                }
            });
            match taken {
                Some(true) => return Ok(Taken(self)),
                Some(false) => {
                    let message = "a file object has used the volume that reads it";
                    let remedy = "Let the methods of the file object use other volumes only.";
                    return Err(exception(py, "Failed", message, remedy, None));
                }
                None => py.check_signals()?,
            }
        }
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        *self.0.user() = None;
        self.0.free.notify_one();
    }
}
