//! The system's file below a file object, if there is one.

use crate::errors::Fault;
use crate::object::is_of_object;
use block::hold::{self, Hold};
use block::{BlockError, PathKind};
use pyo3::intern;
use pyo3::prelude::*;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use volume::VolumeError;

/// A name of the file or device, by the descriptor of the object.
pub fn path(file: &Bound<'_, PyAny>) -> PyResult<Option<PathBuf>> {
    let py = file.py();
    let number = match file.call_method0(intern!(py, "fileno")) {
        Ok(number) => number.extract::<i32>().ok(),
        Err(error) if is_of_object(py, &error) => None,
        Err(error) => return Err(error),
    };
    let path = number.map(|number| PathBuf::from(format!("/proc/self/fd/{number}")));
    let is_device = |path: &PathBuf| fs::metadata(path).is_ok_and(|it| PathKind::of(&it).is_some());
    Ok(path.filter(is_device))
}

/// Holds the file for writing, as one that is opened by its path is held.
pub fn hold(path: &Path) -> Result<Option<File>, Fault> {
    match hold::open(path, true, Hold::Usual) {
        Ok(held) => Ok(Some(held)),
        Err(
            error @ (BlockError::InUse { .. }
            | BlockError::Mounted { .. }
            | BlockError::Swap { .. }),
        ) => Err(VolumeError::Block(error).into()),
        // The object may write to what this process may not open again.
        Err(_) => Ok(None),
    }
}
