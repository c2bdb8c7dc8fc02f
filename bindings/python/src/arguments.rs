//! [`Arguments`]: what a function of Python was called with, by names.

use crate::errors::Fault;
use crate::signals::Signals;
use cipher::Key;
use pyo3::conversion::FromPyObjectOwned;
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyString};
use std::ops::ControlFlow;
use std::path::PathBuf;
use volume::judge::Finding;
use volume::request::{self, Request, Value};
use volume::{Secret, VolumeError};

/// The arguments of a call. Those that were not taken are options for the engine.
#[derive(FromPyObject)]
#[pyo3(transparent)]
pub struct Arguments<'py>(Bound<'py, PyDict>);

impl<'py> Arguments<'py> {
    /// Takes an argument as it is; None if it was not given.
    pub fn object(&self, name: &str) -> PyResult<Bound<'py, PyAny>> {
        self.0.call_method1("pop", (name, self.0.py().None()))
    }

    /// Takes an argument of a type. It is None if it was not given.
    pub fn take<T: FromPyObjectOwned<'py>>(&self, name: &str) -> PyResult<T> {
        let value = self.object(name)?;
        Argument { name, value }.extract()
    }

    /// Takes the path of a file.
    pub fn path(&self, name: &str) -> PyResult<PathBuf> {
        path(&self.object(name)?)
    }

    /// Takes a list of names.
    pub fn names(&self, name: &str) -> PyResult<Vec<String>> {
        let names = list(name, &self.object(name)?)?.into_iter();
        names
            .map(|value| Argument { name, value }.extract())
            .collect()
    }

    /// Takes a secret.
    pub fn secret(&self, name: &str) -> Result<Option<Secret>, Fault> {
        let given: Option<Given<'_>> = self.take(name)?;
        given.map(|given| given.secret(self.0.py())).transpose()
    }

    /// All that is left.
    pub fn request(&self) -> Result<Request, Fault> {
        let py = self.0.py();
        let mut request = Request::default();
        for given in self
            .take::<Option<Vec<Given<'_>>>>("kept")?
            .unwrap_or_default()
        {
            request.kept.push(given.secret(py)?.into_words());
        }
        request.secret = self.secret("secret")?;
        request.volume_key = self.secret("data_key")?.map(Secret::into_words);
        for (name, value) in &self.0 {
            let name: String = name.extract()?;
            let (option, values) = match &*name {
                "allow" => ("allow", list(&name, &value)?),
                "keyfiles" if value.is_none() => continue,
                "keyfiles" => {
                    request.keyfiles = Some(Vec::new());
                    ("keyfile", list(&name, &value)?)
                }
                "allow_empty" => ("empty_passphrase", vec![value]),
                "last_too" => ("last_key", vec![value]),
                option => (option, vec![value]),
            };
            for value in values {
                let name = &name;
                if !request.set(option, &Argument { name, value })? {
                    return Err(PyTypeError::new_err(format!("unknown argument '{name}'")).into());
                }
            }
        }
        // A key file may be a pipe that another thread fills.
        py.detach(|| request.read_keyfiles())?;
        Ok(request)
    }

    /// Does `work` with all that is left, without Python's lock.
    pub fn work<T: Send>(
        &self,
        work: impl FnOnce(&Request, &Calls) -> Result<T, VolumeError> + Send,
    ) -> Result<T, Fault> {
        let calls = Calls {
            ask: self.take("ask")?,
            signals: Signals::new(self.take("progress")?),
        };
        let request = self.request()?;
        let done = self.0.py().detach(|| work(&request, &calls));
        calls.signals.raised()?;
        Ok(done?)
    }
}

/// What Python is asked and told during an operation.
pub struct Calls {
    ask: Option<Py<PyAny>>,
    signals: Signals,
}

impl request::Calls for Calls {
    fn ask(&self, finding: &Finding) -> bool {
        let Some(ask) = &self.ask else {
            return false;
        };
        let asked = (finding.state.name(), finding.to_string());
        let answer = Python::attach(|py| ask.call1(py, asked)?.is_truthy(py));
        answer.unwrap_or_else(|raised| {
            self.signals.end(raised);
            false
        })
    }

    fn report(&self, done: u64, total: u64) -> ControlFlow<()> {
        self.signals.listen(|| (done, total))
    }
}

/// One argument, which errors name.
struct Argument<'a, 'py> {
    name: &'a str,
    value: Bound<'py, PyAny>,
}

impl<'py> Argument<'_, 'py> {
    fn extract<T: FromPyObjectOwned<'py>>(&self) -> PyResult<T> {
        let py = self.value.py();
        self.value.extract::<T>().map_err(|error| {
            let error: PyErr = error.into();
            match error.is_instance_of::<PyTypeError>(py) {
                true => {
                    let said = format!("argument '{}': {}", self.name, error.value(py));
                    PyTypeError::new_err(said)
                }
                false => error,
            }
        })
    }
}

impl Value for Argument<'_, '_> {
    type Error = Fault;

    fn flag(&self) -> Result<bool, Fault> {
        Ok(self.extract()?)
    }

    fn number<T: TryFrom<u64>>(&self) -> Result<Option<T>, Fault> {
        let number: Option<u64> = self.extract()?;
        let number = number.map(|number| {
            let large = |_| PyOverflowError::new_err(format!("{} is too large", self.name));
            T::try_from(number).map_err(large)
        });
        Ok(number.transpose()?)
    }

    fn text(&self) -> Result<Option<String>, Fault> {
        Ok(self.extract()?)
    }

    fn path(&self) -> Result<Option<PathBuf>, Fault> {
        match self.value.is_none() {
            true => Ok(None),
            false => Ok(Some(path(&self.value)?)),
        }
    }
}

/// A path, as Python's own functions take one.
fn path(value: &Bound<'_, PyAny>) -> PyResult<PathBuf> {
    let decoded = value
        .py()
        .import("os")?
        .call_method1("fsdecode", (value,))?;
    decoded.extract()
}

/// The items of a list, which a text or a path is not.
fn list<'py>(name: &str, value: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let is_one = value.is_instance_of::<PyString>() || value.is_instance_of::<PyBytes>();
    if is_one || value.hasattr("__fspath__")? {
        return Err(PyTypeError::new_err(format!("{name} must be a list")));
    }
    value.try_iter()?.collect()
}

/// A secret as `cryptmark._call` passes it on, which has checked that there is only one.
#[derive(FromPyObject)]
enum Given<'py> {
    /// `(kind, bytes)`; the caller overwrites the bytes afterwards.
    Bytes(String, Bound<'py, PyByteArray>),
    /// A key file, read here so that Python has no copy.
    #[pyo3(transparent)]
    File(PathBuf),
}

impl Given<'_> {
    /// The engine's own copy.
    fn secret(self, py: Python<'_>) -> Result<Secret, Fault> {
        match self {
            Self::Bytes(kind, bytes) => {
                let key = Key::new(bytes.to_vec());
                Ok(match &*kind {
                    "key_file" => Secret::KeyFile(key),
                    "volume_key" => Secret::VolumeKey(key),
                    _ => Secret::Passphrase(key),
                })
            }
            Self::File(path) => Ok(py.detach(|| Secret::read_key_file(&path))?),
        }
    }
}
