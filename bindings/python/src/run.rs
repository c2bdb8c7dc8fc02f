//! Plans of the lab, measured for Python.

use crate::errors::{chain, exception};
use crate::signals::Signals;
use bytesize::ByteSize;
use lab::experiment::Changes;
use lab::record;
use lab::run::{Request, RunError};
use lab::system::{StorageError, SystemId};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use report::columns::{self, COLUMNS, Column, Row, Value};
use std::path::PathBuf;

/// Measures a plan. Returns the record as JSON, and its table. `cryptmark.run` documents it.
#[pyfunction]
#[pyo3(signature = (plan, *, at, size, repetitions, trial_seconds, systems, ciphers, seed, progress))]
#[expect(
    clippy::too_many_arguments,
    reason = "each is an argument in Python, so that a wrong one is named"
)]
pub fn run(
    py: Python<'_>,
    plan: String,
    at: Option<PathBuf>,
    size: Option<u64>,
    repetitions: Option<u32>,
    trial_seconds: Option<f64>,
    systems: Vec<String>,
    ciphers: Vec<String>,
    seed: Option<u64>,
    progress: Option<Py<PyAny>>,
) -> PyResult<(String, Py<PyList>)> {
    let systems = systems.iter().map(|name| {
        let unknown = |error| {
            let message = chain(&error);
            exception(
                py,
                "BadInput",
                &message,
                "`cryptmark doctor` lists the systems.",
                None,
            )
        };
        name.parse::<SystemId>().map_err(unknown)
    });
    let changes = Changes {
        size: size.map(ByteSize::b),
        repetitions,
        trial_seconds,
        systems: systems.collect::<PyResult<_>>()?,
        ciphers,
        at,
        seed,
        ..Changes::default()
    };
    let signals = Signals::new();
    let measured = py.detach(|| {
        Request::load(&plan)?
            .changed(&changes)?
            .measure(&mut |step| {
                signals.listen(|py| {
                    let (done, total) = step.counts();
                    match &progress {
                        Some(progress) => progress
                            .call1(py, (step.to_string(), done, total))
                            .map(drop),
                        None => Ok(()),
                    }
                })
            })
    });
    signals.raised()?;
    let run = measured.map_err(|error| raised(py, &error))?;
    let json = report::json::render(std::slice::from_ref(&run));
    let json = json.map_err(|error| exception(py, "Failed", &chain(&error), "", None))?;
    Ok((json, table(py, &run)?))
}

/// `error` as an exception.
fn raised(py: Python<'_>, error: &RunError) -> PyErr {
    let kind = match error {
        RunError::Plan(_)
        | RunError::FileSystems { .. }
        | RunError::OnlyTheProgram
        | RunError::Storage(StorageError::NotADirectory { .. }) => "BadInput",
        RunError::Stopped => return PyKeyboardInterrupt::new_err(()),
        RunError::Storage(_) | RunError::Session(_) | RunError::Failed { .. } => "Failed",
    };
    exception(py, kind, &chain(error), &error.remedy(), None)
}

/// One dictionary a trial, with the columns of the CSV and of Parquet.
fn table(py: Python<'_>, run: &record::Run) -> PyResult<Py<PyList>> {
    let table = PyList::empty(py);
    for row in columns::rows(run) {
        let cells = PyDict::new(py);
        for column in COLUMNS {
            set(&cells, column, row)?;
        }
        table.append(cells)?;
    }
    Ok(table.unbind())
}

fn set(cells: &Bound<'_, PyDict>, column: &Column, row: Row<'_>) -> PyResult<()> {
    let name = column.name;
    match column.value {
        Value::Text(of) => cells.set_item(name, of(row)),
        Value::Texts(of) => cells.set_item(name, of(row).to_vec()),
        Value::Flag(of) => cells.set_item(name, of(row)),
        Value::Whole(of) => cells.set_item(name, of(row)),
        Value::Number(of) => cells.set_item(name, of(row)),
        Value::Numbers(of) => cells.set_item(name, of(row).to_vec()),
        Value::Moment(of) => cells.set_item(name, of(row)),
    }
}
