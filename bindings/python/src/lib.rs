//! `cryptmark._native`: what the Python package `cryptmark` has from the engine.
//!
//! The Python sources beside it make files of it. Python's objects are touched only while its lock
//! is held; keys are derived, and bytes are encrypted and decrypted, without it.

#![deny(unsafe_code)]

mod arguments;
mod below;
mod errors;
mod handle;
mod object;
mod operate;
mod run;
mod signals;
mod source;
mod turn;

use pyo3::prelude::*;

/// What the package's Python sources import.
#[pymodule]
mod _native {
    use crate::errors::Fault;
    use crate::source::Source;
    use pyo3::prelude::*;
    use volume::{Format, info};

    #[pymodule_export]
    use crate::handle::{Handle, open};
    #[pymodule_export]
    use crate::operate::{
        add_key, backup_header, change_key, change_password, convert, create, create_hidden,
        reencrypt, remove_key, repair_header, resize, restore_header,
    };
    #[pymodule_export]
    use crate::run::run;

    /// What the header of the volume in `source` says without any secret, as JSON.
    #[pyfunction]
    #[pyo3(signature = (source, format))]
    fn header(
        py: Python<'_>,
        source: &Bound<'_, PyAny>,
        format: Option<&str>,
    ) -> Result<String, Fault> {
        let format = format.map(Format::parse).transpose()?;
        let source = Source::new(source, false)?;
        let said = py.detach(|| match &source {
            Source::Path(path) => info::at(path, format),
            Source::File(object) => info::on(&**object, format),
        });
        source.raised()?;
        Ok(said?.to_string())
    }

    /// The names of all formats.
    #[pyfunction]
    fn formats() -> Vec<&'static str> {
        Format::ALL.into_iter().map(Format::name).collect()
    }
}
