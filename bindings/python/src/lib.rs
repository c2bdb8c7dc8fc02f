//! `cryptmark._native`: what the Python package `cryptmark` has from the engine.
//!
//! The Python sources beside it make files of it. Python's objects are touched only while its lock
//! is held; keys are derived, and bytes are encrypted and decrypted, without it.

#![deny(unsafe_code)]

mod below;
mod errors;
mod handle;
mod keys;
mod object;
mod operate;
mod run;
mod secret;
mod signals;
mod source;
mod turn;
mod values;

use pyo3::prelude::*;

/// What the package's Python sources import.
#[pymodule]
mod _native {
    use crate::errors::Raised;
    use crate::source::Source;
    use crate::values;
    use pyo3::prelude::*;
    use volume::{Format, info};

    #[pymodule_export]
    use crate::handle::{Handle, open};
    #[pymodule_export]
    use crate::keys::change_keys;
    #[pymodule_export]
    use crate::operate::{
        backup_header, change_password, convert, create, create_hidden, mend_header, reencrypt,
        resize,
    };
    #[pymodule_export]
    use crate::run::run;

    /// What the header of the volume in `source` says without any secret.
    #[pyfunction]
    #[pyo3(signature = (source, format))]
    fn header(
        py: Python<'_>,
        source: &Bound<'_, PyAny>,
        format: Option<&str>,
    ) -> PyResult<Py<PyAny>> {
        let format = format.map(Format::parse).transpose().raised(py)?;
        let source = Source::new(source, false)?;
        let said = py.detach(|| match &source {
            Source::Path(path) => info::at(path, format),
            Source::File(object) => info::on(&**object, format),
        });
        source.raised()?;
        values::object(py, &said.raised(py)?)
    }

    /// The names of all formats.
    #[pyfunction]
    fn formats() -> Vec<&'static str> {
        Format::ALL.into_iter().map(Format::name).collect()
    }
}
