//! [`Source`]: what a volume or a header is read from.

use crate::errors::caused;
use crate::object::{Object, Use, is_of_object};
use block::{BlockDevice, BlockError, FileDevice, FileOptions};
use pyo3::prelude::*;
use pyo3::types::PyString;
use std::path::PathBuf;
use std::sync::Arc;

/// A path, or a file object.
pub enum Source {
    Path(PathBuf),
    File(Arc<Object>),
}

impl Source {
    /// What `cryptmark._source.of` returns: a str for a path, else a file object.
    pub fn new(given: &Bound<'_, PyAny>, write: bool) -> PyResult<Self> {
        if given.is_instance_of::<PyString>() {
            return Ok(Self::Path(given.extract()?));
        }
        let py = given.py();
        match Object::new(given, Use::of(given, write)?, write) {
            Ok(object) => Ok(Self::File(Arc::new(object))),
            Err(error) if is_of_object(py, &error) => {
                let message = format!("the size of the file object cannot be found: {error}");
                Err(caused(py, "Failed", &message, &error))
            }
            Err(error) => Err(error),
        }
    }

    /// The file object, if it is one.
    pub fn object(&self) -> Option<Arc<Object>> {
        match self {
            Self::Path(_) => None,
            Self::File(object) => Some(Arc::clone(object)),
        }
    }

    /// The device that has the bytes.
    pub fn device(&self, write: bool) -> Result<Arc<dyn BlockDevice>, BlockError> {
        Ok(match self {
            Self::Path(path) => {
                let options = FileOptions {
                    write,
                    direct: false,
                    ..FileOptions::default()
                };
                Arc::new(FileDevice::open(path, &options)?)
            }
            Self::File(object) => Arc::clone(object) as Arc<dyn BlockDevice>,
        })
    }

    /// The exception that ended a call of the file object, if one has.
    pub fn raised(&self) -> PyResult<()> {
        self.object().map_or(Ok(()), |object| object.raised())
    }
}
