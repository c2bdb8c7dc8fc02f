//! [`Object`]: a file object of Python as a block device.

use crate::below;
use crate::errors::exception;
use block::{
    BlockDevice, BlockError, ByteRange, Geometry, InlineQueue, OperationKind, Queue, QueueOptions,
};
use pyo3::exceptions::{PyException, PyOSError, PyRecursionError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyByteArray, PyBytes};
use pyo3::{PyTraverseError, PyVisit, intern};
use std::cell::Cell;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use volume::side_header;

/// How many file objects may read each other. Each takes some of the thread's stack, of which
/// Python's own limit knows nothing.
const DEEPEST: u32 = 16;

thread_local! {
    /// Calls of file objects that this thread is in.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// The file objects of open volumes, by their addresses.
static USED: Mutex<Vec<usize>> = Mutex::new(Vec::new());

fn used() -> MutexGuard<'static, Vec<usize>> {
    USED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The right to use a file object, until it is dropped. Two volumes would move each other's
/// position.
pub struct Use {
    address: usize,
    /// The system's file below the object.
    path: Option<PathBuf>,
    /// The same while it is written, which keeps out all other programs.
    _held: Option<File>,
}

impl Use {
    pub fn of(file: &Bound<'_, PyAny>, write: bool) -> PyResult<Self> {
        let address = file.as_ptr().addr();
        // No code of Python runs in between.
        if used().contains(&address) {
            let message = "an open volume uses the file object";
            let remedy = "Close that volume first, or give each volume a file object of its own.";
            return Err(exception(file.py(), "Protected", message, remedy, None));
        }
        used().push(address);
        let mut own = Self {
            address,
            path: None,
            _held: None,
        };
        own.path = below::path(file)?;
        if let (true, Some(path)) = (write, &own.path) {
            own._held = below::hold(path)?;
        }
        Ok(own)
    }
}

impl Drop for Use {
    fn drop(&mut self) {
        used().retain(|address| *address != self.address);
    }
}

/// A file object, which stays the caller's: it is never closed.
pub struct Object {
    // Before the object, which keeps its address as long as it is there.
    used: Use,
    file: Py<PyAny>,
    geometry: Geometry,
    /// Without it the object has `readinto` alone.
    has_read: bool,
    write: bool,
    /// Held from a seek to the end of what is done there.
    position: Mutex<()>,
    /// An exception that is not an error of the object, such as KeyboardInterrupt. It ends what the
    /// engine does, which would try another place after an error.
    ending: Mutex<Option<PyErr>>,
}

impl Object {
    /// Finds the size of `file`, which does not change afterwards.
    pub fn new(file: &Bound<'_, PyAny>, used: Use, write: bool) -> PyResult<Self> {
        let _deeper = Deeper::new()?;
        let end = file.call_method1(intern!(file.py(), "seek"), (0, 2))?;
        let size: i64 = file.call_method0(intern!(file.py(), "tell"))?.extract()?;
        let negative = |_| PyValueError::new_err("tell() returned a negative position");
        let size = u64::try_from(size).map_err(negative)?;
        if !end.is_none() && !end.eq(size)? {
            return Err(PyOSError::new_err(
                "seek() and tell() contradict each other",
            ));
        }
        Ok(Self {
            used,
            file: file.clone().unbind(),
            geometry: Geometry {
                size: size & !511,
                logical_block: 512,
                physical_block: 4096,
                discard_granularity: None,
                discard_zeroes: false,
            },
            has_read: file.hasattr(intern!(file.py(), "read"))?,
            write,
            position: Mutex::new(()),
            ending: Mutex::new(None),
        })
    }

    /// The header that a reencryption has put beside the system's file, if there is one.
    pub fn side_header(&self) -> Option<PathBuf> {
        let path = self.path()?;
        Some(side_header(path, None)).filter(|path| path.exists())
    }

    /// The path of the system's file, if there is one.
    pub fn path(&self) -> Option<&Path> {
        self.used.path.as_deref()
    }

    /// The exception that ended the work, if one has.
    pub fn raised(&self) -> PyResult<()> {
        self.ending().take().map_or(Ok(()), Err)
    }

    fn ending(&self) -> MutexGuard<'_, Option<PyErr>> {
        self.ending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows the object to Python's search for garbage.
    pub fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.file)
    }

    /// Calls the object, with Python's lock and as the only thread.
    fn call<T>(
        &self,
        operation: OperationKind,
        range: ByteRange,
        work: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>,
    ) -> Result<T, BlockError> {
        let done = Python::try_attach(|py| {
            let _alone = self
                .position
                .lock_py_attached(py)
                .unwrap_or_else(PoisonError::into_inner);
            if self.ending().is_some() {
                return Err(BlockError::Interrupted);
            }
            let done = Deeper::new().and_then(|_deeper| work(self.file.bind(py)));
            done.map_err(|error| match is_of_object(py, &error) {
                true => BlockError::Io {
                    operation,
                    offset: range.offset,
                    length: range.length,
                    source: io::Error::other(error),
                },
                false => {
                    *self.ending() = Some(error);
                    BlockError::Interrupted
                }
            })
        });
        // There is no interpreter any more.
        done.unwrap_or(Err(BlockError::Interrupted))
    }

    /// At most `n` bytes, none at the end.
    fn some(&self, file: &Bound<'_, PyAny>, n: usize) -> PyResult<Vec<u8>> {
        let py = file.py();
        if self.has_read {
            let read = file.call_method1(intern!(py, "read"), (n,))?;
            let bytes = read.cast::<PyBytes>().map_err(|_| wrong("read()", &read))?;
            let bytes = bytes.as_bytes();
            check_count("read", n, bytes.len())?;
            return Ok(bytes.to_vec());
        }
        let buffer = PyByteArray::new(py, &[]);
        buffer.resize(n)?;
        let read = file.call_method1(intern!(py, "readinto"), (&buffer,))?;
        let length: usize = read.extract().map_err(|_| wrong("readinto()", &read))?;
        let mut bytes = buffer.to_vec();
        // The object may have made the buffer shorter.
        check_count("readinto", n.min(bytes.len()), length)?;
        bytes.truncate(length);
        Ok(bytes)
    }
}

impl BlockDevice for Object {
    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), BlockError> {
        let range = self.geometry.check(offset, into.len() as u64)?;
        let filled = self.call(OperationKind::Read, range, |file| {
            let mut done = 0;
            while done < into.len() {
                seek(file, offset + done as u64)?;
                let bytes = self.some(file, into.len() - done)?;
                if bytes.is_empty() {
                    return Ok(false);
                }
                into[done..][..bytes.len()].copy_from_slice(&bytes);
                done += bytes.len();
            }
            Ok(true)
        })?;
        match filled {
            true => Ok(()),
            false => Err(BlockError::CutOff {
                size: self.geometry.size,
            }),
        }
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<(), BlockError> {
        let range = self.geometry.check(offset, data.len() as u64)?;
        if !self.write {
            return Err(BlockError::ReadOnly);
        }
        self.call(OperationKind::Write, range, |file| {
            let mut done = 0;
            while done < data.len() {
                seek(file, offset + done as u64)?;
                let rest = PyBytes::new(file.py(), &data[done..]);
                let written = file.call_method1(intern!(file.py(), "write"), (rest,))?;
                let written: usize = written.extract().map_err(|_| wrong("write()", &written))?;
                check_count("write", data.len() - done, written)?;
                if written == 0 {
                    return Err(PyOSError::new_err("write() wrote nothing"));
                }
                done += written;
            }
            Ok(())
        })
    }

    fn flush(&self) -> Result<(), BlockError> {
        self.call(OperationKind::Flush, ByteRange::new(0, 0), |file| {
            file.call_method0(intern!(file.py(), "flush")).map(drop)
        })
    }

    fn discard(&self, _: ByteRange) -> Result<(), BlockError> {
        Err(BlockError::Unsupported {
            operation: OperationKind::Discard,
        })
    }

    fn queue(&self, options: QueueOptions) -> Result<Box<dyn Queue + '_>, BlockError> {
        Ok(Box::new(InlineQueue::open(self, options, None)?))
    }
}

/// Whether an exception says that the object has failed. Others pass through as they are.
pub fn is_of_object(py: Python<'_>, error: &PyErr) -> bool {
    error.is_instance_of::<PyException>(py) && !error.is_instance_of::<PyRecursionError>(py)
}

/// Goes to `offset`, and lets Python run what it has for a signal: methods that are written in C do
/// not.
fn seek(file: &Bound<'_, PyAny>, offset: u64) -> PyResult<()> {
    let py = file.py();
    py.check_signals()?;
    let mut at = file.call_method1(intern!(py, "seek"), (offset,))?;
    // Some objects do not say where they are.
    if at.is_none() {
        at = file.call_method0(intern!(py, "tell"))?;
    }
    match at.extract::<u64>() {
        Ok(at) if at == offset => Ok(()),
        Ok(at) => Err(PyOSError::new_err(format!("seek({offset}) went to {at}"))),
        Err(_) => Err(wrong("seek()", &at)),
    }
}

/// The exception for a method that returned a value of a wrong type.
fn wrong(method: &str, value: &Bound<'_, PyAny>) -> PyErr {
    let kind = value.get_type();
    let kind = kind.name().map(|name| name.to_string());
    let kind = kind.unwrap_or_else(|_| "an unknown type".to_owned());
    PyTypeError::new_err(format!("{method} returned {kind}"))
}

/// Refuses a number of bytes that is more than a method was asked for.
fn check_count(method: &str, n: usize, claimed: usize) -> PyResult<()> {
    match claimed <= n {
        true => Ok(()),
        false => Err(PyOSError::new_err(format!(
            "{method}() of {n} bytes returned {claimed}"
        ))),
    }
}

/// A call of a file object, until it is dropped.
struct Deeper;

impl Deeper {
    fn new() -> PyResult<Self> {
        let depth = DEPTH.get();
        if depth >= DEEPEST {
            let message = format!("more than {DEEPEST} file objects read each other");
            return Err(PyRecursionError::new_err(message));
        }
        DEPTH.set(depth + 1);
        Ok(Self)
    }
}

impl Drop for Deeper {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
    }
}
