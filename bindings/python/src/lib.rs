//! `cryptmark._native`: what the Python package `cryptmark` has from the engine.
//!
//! The Python sources beside it make files of it. Python's objects are touched only while its lock
//! is held; keys are derived, and bytes are read and written, without it.

#![deny(unsafe_code)]

mod errors;
mod handle;
mod run;
mod secret;
mod signals;
mod values;

use pyo3::prelude::*;

/// What the package's Python sources import.
#[pymodule]
mod _native {
    use crate::errors::Raised;
    use crate::values;
    use pyo3::prelude::*;
    use std::path::PathBuf;
    use volume::{Format, info};

    #[pymodule_export]
    use crate::handle::{Handle, open};
    #[pymodule_export]
    use crate::run::run;

    /// What the header of the volume at `path` says without any secret.
    #[pyfunction]
    #[pyo3(signature = (path, format))]
    fn header(py: Python<'_>, path: PathBuf, format: Option<&str>) -> PyResult<Py<PyAny>> {
        let format = format.map(crate::handle::format_named).transpose()?;
        let said = py.detach(|| info::at(&path, format)).raised(py)?;
        values::object(py, &said)
    }

    /// The names of all formats.
    #[pyfunction]
    fn formats() -> Vec<&'static str> {
        Format::ALL.into_iter().map(Format::name).collect()
    }
}
