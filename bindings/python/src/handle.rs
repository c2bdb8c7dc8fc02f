//! [`Handle`]: an open volume, and how it is opened.

use crate::arguments::Arguments;
use crate::errors::{Fault, exception};
use crate::object::Object;
use crate::signals::Signals;
use crate::source::Source;
use crate::turn::{Taken, Turn};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::PyBytes;
use pyo3::{PyTraverseError, PyVisit};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use volume::{OpenOptions, Place, Volume, VolumeError, check_beside};

/// Opens the volume in `file`. `cryptmark.open` documents the arguments.
#[pyfunction]
pub fn open(py: Python<'_>, given: Arguments<'_>) -> Result<Handle, Fault> {
    let source = given.object("file")?;
    let header: Option<Bound<'_, PyAny>> = given.take("header")?;
    let request = given.request()?;
    let write = request.write;
    let source = Source::new(&source, write)?;
    // Nothing is written to a header.
    let header = header.map(|header| Source::new(&header, false));
    let header = header.transpose()?;
    let watch = Signals::new(None);
    let listen = |_, _| watch.listen(|| ());
    let options = OpenOptions {
        header: match &header {
            Some(Source::Path(path)) => Some(path.clone()),
            _ => None,
        },
        watch: &listen,
        ..request.open_options()
    };
    let secret = request.secret.as_ref();
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
    let volume = all_raised(&objects, opened)?;
    let turn = (!objects.is_empty()).then(|| Turn::new(py)).transpose()?;
    Ok(Handle {
        size: volume.size(),
        process: std::process::id(),
        turn,
        open: Mutex::new(Some(Arc::new(Open { volume, objects }))),
        position: Mutex::new(0),
    })
}

/// `result`, unless a file object has ended the work by an exception that is not an error.
fn all_raised<T>(objects: &[Arc<Object>], result: Result<T, VolumeError>) -> Result<T, Fault> {
    objects.iter().try_for_each(|object| object.raised())?;
    Ok(result?)
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
    ) -> Result<T, Fault> {
        all_raised(&self.objects, py.detach(|| work(&self.volume)))
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
    fn own(&self, py: Python<'_>) -> Result<(Arc<Open>, Option<Taken<'_>>), Fault> {
        let open = self.open()?;
        if self.process != std::process::id() {
            return Err(VolumeError::Forked { what: "the volume" }.into());
        }
        let turn = self.turn.as_ref().map(|turn| turn.take(py));
        Ok((open, turn.transpose()?))
    }

    fn position(&self, py: Python<'_>) -> MutexGuard<'_, u64> {
        let locked = self.position.lock_py_attached(py);
        locked.unwrap_or_else(PoisonError::into_inner)
    }

    /// At most `n` bytes from `offset` on.
    fn bytes<'py>(
        &self,
        py: Python<'py>,
        open: &Open,
        n: u64,
        offset: u64,
    ) -> Result<Bound<'py, PyBytes>, Fault> {
        let length = self.size.saturating_sub(offset).min(n) as usize;
        // No other code sees the new object before it is full, so Python may go on meanwhile.
        Ok(PyBytes::new_with(py, length, |into| {
            open.work(py, |volume| volume.read_at(offset, into))?;
            Ok(())
        })?)
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
    fn info(&self) -> PyResult<String> {
        Ok(self.open()?.volume.info().to_string())
    }

    fn pread<'py>(
        &self,
        py: Python<'py>,
        n: u64,
        offset: u64,
    ) -> Result<Bound<'py, PyBytes>, Fault> {
        let (open, _turn) = self.own(py)?;
        self.bytes(py, &open, n, offset)
    }

    fn pwrite(&self, py: Python<'_>, data: &Bound<'_, PyBytes>, offset: u64) -> Result<(), Fault> {
        let (open, _turn) = self.own(py)?;
        let data = data.as_bytes();
        open.work(py, |volume| volume.write_at(offset, data))
    }

    fn read<'py>(&self, py: Python<'py>, n: u64) -> Result<Bound<'py, PyBytes>, Fault> {
        let (open, _turn) = self.own(py)?;
        let mut position = self.position(py);
        let bytes = self.bytes(py, &open, n, *position)?;
        *position += bytes.as_bytes().len() as u64;
        Ok(bytes)
    }

    /// Writes what there is room for. Python's buffered files would try forever if that were
    /// nothing, so that fails.
    fn write(&self, py: Python<'_>, data: &Bound<'_, PyBytes>) -> Result<usize, Fault> {
        let (open, _turn) = self.own(py)?;
        let data = data.as_bytes();
        let mut position = self.position(py);
        let offset = *position;
        let room = self.size.saturating_sub(offset).min(data.len() as u64) as usize;
        if room == 0 && !data.is_empty() {
            let (message, remedy) = (
                "the end of the volume is reached",
                "Write less, or to a larger volume.",
            );
            return Err(exception(py, "Failed", message, remedy, Some(28)).into());
        }
        open.work(py, |volume| volume.write_at(offset, &data[..room]))?;
        *position += room as u64;
        Ok(room)
    }

    fn seek(&self, py: Python<'_>, offset: i64, whence: u8) -> Result<u64, Fault> {
        let _own = self.own(py)?;
        let mut position = self.position(py);
        let from = match whence {
            0 => 0,
            1 => *position,
            2 => self.size,
            _ => return Err(PyValueError::new_err("whence must be 0, 1 or 2").into()),
        };
        let to = from.checked_add_signed(offset);
        let to = to.filter(|to| i64::try_from(*to).is_ok());
        *position = to.ok_or_else(|| PyValueError::new_err("no volume has such a position"))?;
        Ok(*position)
    }

    fn flush(&self, py: Python<'_>) -> Result<(), Fault> {
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
