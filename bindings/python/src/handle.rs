//! [`Handle`]: an open volume, and how it is opened.

use crate::errors::{Raised, exception};
use crate::object::Object;
use crate::secret::Given;
use crate::signals::Signals;
use crate::source::Source;
use crate::turn::{Taken, Turn};
use crate::values;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::PyBytes;
use pyo3::{PyTraverseError, PyVisit};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use volume::judge::State;
use volume::tcrypt::Keyfiles;
use volume::{Access, Format, OpenOptions, Parameters, Place, Volume, VolumeError, check_beside};

/// Opens the volume in `source`. `cryptmark.open` documents the rest.
#[pyfunction]
#[pyo3(signature = (
    source, secret, write, format, header, *, cipher, key_size, hash, offset, skip, size, sector_size,
    iv_large_sectors, key_slot, tcrypt_hidden, tcrypt_backup, tcrypt_system, veracrypt_pim, keyfiles,
    key_derivation, experimental, allow
))]
#[expect(
    clippy::too_many_arguments,
    reason = "each is an argument in Python, so that a wrong one is named"
)]
pub fn open(
    py: Python<'_>,
    source: &Bound<'_, PyAny>,
    secret: Option<Given<'_>>,
    write: bool,
    format: Option<&str>,
    header: Option<&Bound<'_, PyAny>>,
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
    allow: Vec<String>,
) -> PyResult<Handle> {
    let format = format.map(Format::parse).transpose().raised(py)?;
    let accepted = losses_named(py, &allow)?;
    let secret = secret.map(|given| given.secret(py)).transpose()?;
    let source = Source::new(source, write)?;
    // Nothing is written to a header.
    let header = header
        .map(|header| Source::new(header, false))
        .transpose()?;
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
        header: match &header {
            Some(Source::Path(path)) => Some(path.clone()),
            _ => None,
        },
        access: if write { Access::Write } else { Access::Read },
        accepted: &accepted,
        watch: &listen,
        ..OpenOptions::default()
    };
    let secret = secret.as_ref();
    let opened = py.detach(|| match (&source, &header) {
        (Source::Path(path), None | Some(Source::Path(_))) => Volume::open(path, secret, &options),
        _ => {
            let data = source.device(write)?;
            let object = source.object();
            let beside = match (&header, &object) {
                (None, Some(object)) => object.side_header().map(Source::Path),
                _ => None,
            };
            let header = header.as_ref().or(beside.as_ref());
            let header = header.map(|header| header.device(write)).transpose()?;
            if let (Some(Source::Path(side)), Some(header), Some(image)) =
                (&beside, &header, object.as_deref().and_then(Object::path))
            {
                check_beside((side, &**header), (image, &*data))?;
            }
            let place = Place::of(data, header).beside(beside.is_some());
            Volume::on(place, secret, &options)
        }
    });
    watch.raised()?;
    let sources = [Some(&source), header.as_ref()];
    let objects = sources.into_iter().flatten().filter_map(Source::object);
    let objects: Vec<_> = objects.collect();
    let volume = all_raised(py, &objects, opened)?;
    Ok(Handle {
        size: volume.size(),
        process: std::process::id(),
        turn: (!objects.is_empty()).then(Turn::default),
        open: Mutex::new(Some(Arc::new(Open { volume, objects }))),
        position: Mutex::new(0),
    })
}

/// `result`, unless a file object has ended the work by an exception that is not an error.
fn all_raised<T>(
    py: Python<'_>,
    objects: &[Arc<Object>],
    result: Result<T, VolumeError>,
) -> PyResult<T> {
    objects.iter().try_for_each(|object| object.raised())?;
    result.raised(py)
}

/// The losses of these names, which the caller allows.
pub fn losses_named(py: Python<'_>, names: &[String]) -> PyResult<Vec<State>> {
    let named = |name: &String| {
        State::named(name).ok_or_else(|| {
            let message = format!("there is no loss `{name}` to allow");
            let remedy = format!("Use one of: {}.", State::ALL.map(State::name).join(", "));
            exception(py, "BadInput", &message, &remedy, None)
        })
    };
    names.iter().map(named).collect()
}

/// A volume, and the file objects that it reads.
struct Open {
    volume: Volume,
    objects: Vec<Arc<Object>>,
}

impl Open {
    /// Does `work` without Python's lock.
    fn work<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Volume) -> Result<T, VolumeError> + Send,
    ) -> PyResult<T> {
        all_raised(py, &self.objects, py.detach(|| work(&self.volume)))
    }
}

/// An open volume, used from any number of threads.
#[pyclass(frozen, module = "cryptmark._native")]
pub struct Handle {
    size: u64,
    process: u32,
    /// Taken before anything else, by a volume of file objects.
    turn: Option<Turn>,
    /// Locked only while Python's lock is held, for as long as it takes to copy the pointer. So no
    /// thread holds it during a fork.
    open: Mutex<Option<Arc<Open>>>,
    /// Locked while bytes are read or written there, as the position of a file is.
    position: Mutex<u64>,
}

impl Handle {
    fn open(&self) -> PyResult<Arc<Open>> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let closed = || PyValueError::new_err("I/O operation on closed volume");
        open.clone().ok_or_else(closed)
    }

    /// Refuses in a forked process, where another thread of the parent may have had the position.
    fn own(&self, py: Python<'_>) -> PyResult<(Arc<Open>, Option<Taken<'_>>)> {
        let open = self.open()?;
        match self.process == std::process::id() {
            true => Ok((
                open,
                self.turn.as_ref().map(|turn| turn.take(py)).transpose()?,
            )),
            false => Err(VolumeError::Forked { what: "the volume" }).raised(py),
        }
    }

    /// At most `n` bytes from `offset` on.
    fn bytes<'py>(
        &self,
        py: Python<'py>,
        open: &Open,
        n: u64,
        offset: u64,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let length = self.size.saturating_sub(offset).min(n) as usize;
        // No other code sees the new object before it is full, so Python may go on meanwhile.
        PyBytes::new_with(py, length, |into| {
            open.work(py, |volume| volume.read_at(offset, into))
                .map(drop)
        })
    }

    fn take(&self) -> Option<Arc<Open>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.take()
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
        values::object(py, self.open()?.volume.info())
    }

    fn pread<'py>(&self, py: Python<'py>, n: u64, offset: u64) -> PyResult<Bound<'py, PyBytes>> {
        let (open, _turn) = self.own(py)?;
        self.bytes(py, &open, n, offset)
    }

    fn pwrite(&self, py: Python<'_>, data: &Bound<'_, PyBytes>, offset: u64) -> PyResult<()> {
        let (open, _turn) = self.own(py)?;
        let data = data.as_bytes();
        open.work(py, |volume| volume.write_at(offset, data))
    }

    fn read<'py>(&self, py: Python<'py>, n: u64) -> PyResult<Bound<'py, PyBytes>> {
        let (open, _turn) = self.own(py)?;
        let mut position = self
            .position
            .lock_py_attached(py)
            .unwrap_or_else(PoisonError::into_inner);
        let bytes = self.bytes(py, &open, n, *position)?;
        *position += bytes.as_bytes().len() as u64;
        Ok(bytes)
    }

    /// Writes what there is room for. Python's buffered files would try forever if that were
    /// nothing, so that fails.
    fn write(&self, py: Python<'_>, data: &Bound<'_, PyBytes>) -> PyResult<usize> {
        let (open, _turn) = self.own(py)?;
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
        open.work(py, |volume| volume.write_at(offset, &data[..room]))?;
        *position += room as u64;
        Ok(room)
    }

    fn seek(&self, py: Python<'_>, offset: i64, whence: u8) -> PyResult<u64> {
        let _own = self.own(py)?;
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
        let (open, _turn) = self.own(py)?;
        open.work(py, Volume::flush)
    }

    /// Closes it. What other threads are reading or writing comes to its end first.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let open = self.take();
        py.detach(|| drop(open));
        Ok(())
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // A search for garbage may begin anywhere, so it must not wait.
        let Ok(open) = self.open.try_lock() else {
            return Ok(());
        };
        let objects = open.iter().flat_map(|open| &open.objects);
        objects
            .into_iter()
            .try_for_each(|object| object.traverse(&visit))
    }

    fn __clear__(&self) {
        drop(self.take());
    }
}
