//! Records that no measurement gives.

use super::ImportError;
use serde_json::Value;

/// Refuses a run, as JSON, that nobody has measured: one with a number below zero, an interval that
/// does not hold its median, a cell without repetitions, or an id that is none.
pub(super) fn check(run: &Value) -> Result<(), ImportError> {
    let id = run.get("run").and_then(Value::as_str).unwrap_or_default();
    let is_id = id.starts_with(|c: char| c.is_ascii_digit())
        && id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    if !is_id {
        return Err(impossible(format!("its id is {id:?}")));
    }
    let trials = run.get("trials").and_then(Value::as_array);
    for (number, trial) in (1..).zip(trials.into_iter().flatten()) {
        if trial.get("repetitions").and_then(Value::as_u64) == Some(0) {
            return Err(impossible(format!("cell {number} has no repetition")));
        }
        if let Some(what) = impossible_in(trial, "") {
            return Err(impossible(format!("{what} in cell {number}")));
        }
    }
    Ok(())
}

/// The first impossible number in `value`, which stands at `place`.
fn impossible_in(value: &Value, place: &str) -> Option<String> {
    match value {
        Value::Number(number) if number.as_f64().is_some_and(|number| number < 0.0) => {
            Some(format!("{place} is {number}"))
        }
        Value::Array(values) => values.iter().find_map(|value| impossible_in(value, place)),
        Value::Object(fields) => {
            let end = |name: &str| fields.get(name).and_then(Value::as_f64);
            let ends = [end("low"), end("median"), end("high")];
            if ends.iter().all(Option::is_some) && !ends.is_sorted() {
                return Some(format!("{place} is outside its own interval"));
            }
            let within = |(name, value): (&String, &Value)| match name.as_str() {
                // The figures of documents are theirs.
                "published" => None,
                name if place.is_empty() => impossible_in(value, name),
                name => impossible_in(value, &format!("{place}.{name}")),
            };
            fields.iter().find_map(within)
        }
        Value::Null | Value::Bool(_) | Value::String(_) | Value::Number(_) => None,
    }
}

fn impossible(what: String) -> ImportError {
    ImportError::Impossible { what }
}
