//! Plans of the lab, measured for Python.

use crate::arguments::Arguments;
use crate::errors::exception;
use crate::signals::Signals;
use bytesize::ByteSize;
use lab::Verdict;
use lab::experiment::Changes;
use lab::record;
use lab::run::{Request, RunError};
use lab::system::SystemId;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use report::columns::{self, COLUMNS, Column, Row, Value};
use volume::request::with_causes;

/// Measures a plan. Returns the record as JSON, and its table. `cryptmark.run` documents it.
#[pyfunction]
pub fn run(py: Python<'_>, given: Arguments<'_>) -> PyResult<(String, Py<PyList>)> {
    let plan: String = given.take("plan")?;
    let systems = given.names("systems")?.into_iter().map(|name| {
        let remedy = "`cryptmark doctor` lists the systems.";
        let unknown = |error| exception(py, "BadInput", &with_causes(&error), remedy, None);
        name.parse::<SystemId>().map_err(unknown)
    });
    let changes = Changes {
        size: given.take::<Option<u64>>("size")?.map(ByteSize::b),
        repetitions: given.take("repetitions")?,
        trial_seconds: given.take("trial_seconds")?,
        systems: systems.collect::<PyResult<_>>()?,
        ciphers: given.names("ciphers")?,
        at: given.take("at")?,
        seed: given.take("seed")?,
        ..Changes::default()
    };
    let signals = Signals::new(given.take("progress")?);
    let measured = py.detach(|| {
        Request::load(&plan)?
            .changed(&changes)?
            .measure(&mut |step| {
                signals.listen(|| {
                    let (done, total) = step.counts();
                    (step.to_string(), done, total)
                })
            })
    });
    signals.raised()?;
    let run = measured.map_err(|error| raised(py, &error))?;
    let json = report::json::render(std::slice::from_ref(&run));
    let json = json.map_err(|error| exception(py, "Failed", &with_causes(&error), "", None))?;
    Ok((json, table(py, &run)?))
}

/// `error` as an exception.
fn raised(py: Python<'_>, error: &RunError) -> PyErr {
    let kind = match error {
        RunError::Refused(refused) if refused.verdict() == Verdict::BadInput => "BadInput",
        RunError::Stopped => return PyKeyboardInterrupt::new_err(()),
        RunError::Refused(_) | RunError::Failed { .. } => "Failed",
    };
    exception(py, kind, &with_causes(error), error.remedy(), None)
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
