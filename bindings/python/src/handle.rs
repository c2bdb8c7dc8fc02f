//! [`Handle`]: an open volume, and how it is opened.

use crate::errors::{Raised, exception};
use crate::secret::Given;
use crate::signals::Signals;
use crate::values;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::PyBytes;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use volume::tcrypt::Keyfiles;
use volume::{Access, Format, OpenOptions, Parameters, Volume, VolumeError};

/// Opens the volume at `path`. `cryptmark.open` documents the rest.
#[pyfunction]
#[pyo3(signature = (
    path, secret, write, format, header, *, cipher, key_size, hash, offset, skip, size, sector_size,
    iv_large_sectors, key_slot, tcrypt_hidden, tcrypt_backup, tcrypt_system, veracrypt_pim, keyfiles,
    key_derivation, experimental
))]
#[expect(
    clippy::too_many_arguments,
    reason = "each is an argument in Python, so that a wrong one is named"
)]
pub fn open(
    py: Python<'_>,
    path: PathBuf,
    secret: Option<Given<'_>>,
    write: bool,
    format: Option<&str>,
    header: Option<PathBuf>,
    cipher: Option<String>,
    key_size: Option<usize>,
    hash: Option<String>,
    offset: Option<u64>,
    skip: Option<u64>,
    size: Option<u64>,
    sector_size: Option<u32>,
    iv_large_sectors: bool,
    key_slot: Option<u32>,
    tcrypt_hidden: bool,
    tcrypt_backup: bool,
    tcrypt_system: bool,
    veracrypt_pim: Option<u32>,
    keyfiles: Option<Vec<PathBuf>>,
    key_derivation: Option<String>,
    experimental: bool,
) -> PyResult<Handle> {
    let format = format.map(format_named).transpose()?;
    let secret = secret.map(|given| given.secret(py)).transpose()?;
    let keyfiles = py
        .detach(|| keyfiles.map(|paths| Keyfiles::read(&paths)).transpose())
        .raised(py)?;
    let watch = Signals::new();
    let listen = |_| watch.listen(|_| Ok(()));
    let options = OpenOptions {
        format,
        parameters: Parameters {
            cipher,
            key_size,
            hash,
            offset,
            skip,
            size,
            sector_size,
            iv_large_sectors,
            key_slot,
            tcrypt_hidden,
            tcrypt_backup,
            tcrypt_system,
            veracrypt_pim,
            keyfiles,
            experimental,
            key_derivation,
        },
        header,
        access: if write { Access::Write } else { Access::Read },
        watch: &listen,
        ..OpenOptions::default()
    };
    let opened = py.detach(|| Volume::open(&path, secret.as_ref(), &options));
    watch.raised()?;
    let volume = opened.raised(py)?;
    Ok(Handle {
        size: volume.size(),
        process: std::process::id(),
        volume: Mutex::new(Some(Arc::new(volume))),
        position: Mutex::new(0),
    })
}

/// The format of that name.
pub fn format_named(name: &str) -> PyResult<Format> {
    Format::named(name).ok_or_else(|| {
        let names: Vec<_> = Format::ALL.into_iter().map(Format::name).collect();
        let remedy = format!("Use one of: {}.", names.join(", "));
        Python::attach(|py| {
            let message = format!("unknown format `{name}`");
            exception(py, "BadInput", &message, &remedy, None)
        })
    })
}

/// An open volume, used from any number of threads.
#[pyclass(frozen, module = "cryptmark._native")]
pub struct Handle {
    size: u64,
    process: u32,
    /// Locked only while Python's lock is held, for as long as it takes to copy the pointer. So no
    /// thread holds it during a fork.
    volume: Mutex<Option<Arc<Volume>>>,
    /// Locked while bytes are read or written there, as the position of a file is.
    position: Mutex<u64>,
}

impl Handle {
    fn volume(&self) -> PyResult<Arc<Volume>> {
        let volume = self.volume.lock().unwrap_or_else(PoisonError::into_inner);
        let closed = || PyValueError::new_err("I/O operation on closed volume");
        volume.clone().ok_or_else(closed)
    }

    /// Refuses in a forked process, where another thread of the parent may have had the position.
    fn own(&self, py: Python<'_>) -> PyResult<Arc<Volume>> {
        let volume = self.volume()?;
        match self.process == std::process::id() {
            true => Ok(volume),
            false => Err(VolumeError::Forked { what: "the volume" }).raised(py),
        }
    }

    /// At most `n` bytes from `offset` on.
    fn bytes<'py>(
        &self,
        py: Python<'py>,
        volume: &Volume,
        n: u64,
        offset: u64,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let length = self.size.saturating_sub(offset).min(n) as usize;
        // No other code sees the new object before it is full, so Python may go on meanwhile.
        PyBytes::new_with(py, length, |into| {
            py.detach(|| volume.read_at(offset, into)).raised(py)?;
            Ok(())
        })
    }
}

#[pymethods]
impl Handle {
    #[getter]
    fn size(&self) -> u64 {
        self.size
    }

    #[getter]
    fn info(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        values::object(py, self.volume()?.info())
    }

    fn pread<'py>(&self, py: Python<'py>, n: u64, offset: u64) -> PyResult<Bound<'py, PyBytes>> {
        let volume = self.own(py)?;
        self.bytes(py, &volume, n, offset)
    }

    fn pwrite(&self, py: Python<'_>, data: &Bound<'_, PyBytes>, offset: u64) -> PyResult<()> {
        let volume = self.own(py)?;
        let data = data.as_bytes();
        py.detach(|| volume.write_at(offset, data)).raised(py)
    }

    fn read<'py>(&self, py: Python<'py>, n: u64) -> PyResult<Bound<'py, PyBytes>> {
        let volume = self.own(py)?;
        let mut position = self
            .position
            .lock_py_attached(py)
            .unwrap_or_else(PoisonError::into_inner);
        let bytes = self.bytes(py, &volume, n, *position)?;
        *position += bytes.as_bytes().len() as u64;
        Ok(bytes)
    }

    /// Writes what there is room for. Python's buffered files would try forever if that were
    /// nothing, so that fails.
    fn write(&self, py: Python<'_>, data: &Bound<'_, PyBytes>) -> PyResult<usize> {
        let volume = self.own(py)?;
        let data = data.as_bytes();
        let mut position = self
            .position
            .lock_py_attached(py)
            .unwrap_or_else(PoisonError::into_inner);
        let offset = *position;
        let room = self.size.saturating_sub(offset).min(data.len() as u64) as usize;
        if room == 0 && !data.is_empty() {
            let (message, remedy) = (
                "the end of the volume is reached",
                "Write less, or to a larger volume.",
            );
            return Err(exception(py, "Failed", message, remedy, Some(28)));
        }
        py.detach(|| volume.write_at(offset, &data[..room]))
            .raised(py)?;
        *position += room as u64;
        Ok(room)
    }

    fn seek(&self, py: Python<'_>, offset: i64, whence: u8) -> PyResult<u64> {
        self.own(py)?;
        let mut position = self
            .position
            .lock_py_attached(py)
            .unwrap_or_else(PoisonError::into_inner);
        let from = match whence {
            0 => 0,
            1 => *position,
            2 => self.size,
            _ => return Err(PyValueError::new_err("whence must be 0, 1 or 2")),
        };
        let to = from.checked_add_signed(offset);
        let to = to.filter(|to| i64::try_from(*to).is_ok());
        *position = to.ok_or_else(|| PyValueError::new_err("no volume has such a position"))?;
        Ok(*position)
    }

    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        let volume = self.own(py)?;
        py.detach(|| volume.flush()).raised(py)
    }

    /// Closes it. What other threads are reading or writing comes to its end first.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let volume = {
            let mut volume = self.volume.lock().unwrap_or_else(PoisonError::into_inner);
            volume.take()
        };
        py.detach(|| drop(volume));
        Ok(())
    }
}
