//! A fitted drive as TOML, which every command takes.

use super::Fit;
use toml::{Table, Value};

/// The TOML `base` of the drive with which the search began, with the fitted
/// numbers. `title` is the new title, and `source` is the remark on each fitted
/// number. `capacity` is that of the device, if it is known.
pub fn written(base: &str, fit: &Fit, title: &str, source: &str, capacity: Option<u64>) -> String {
    let mut table: Table = base.parse().expect("it was read before");
    let mut found = Vec::new();
    table.insert("title".to_owned(), title.into());
    for number in fit.numbers.iter().filter(|number| number.seen) {
        let value = match number.key {
            "cache" => Value::Integer(number.after as i64),
            _ => Value::Float(rounded(number.after)),
        };
        table.insert(number.key.to_owned(), value);
        found.push((number.key, source.to_owned()));
    }
    // A capacity that does not fit into a TOML integer cannot be a disk's.
    if let Some(bytes) = capacity.and_then(|bytes| i64::try_from(bytes).ok()) {
        table.insert("capacity".to_owned(), Value::Integer(bytes));
        found.push(("capacity", "the device's own".to_owned()));
    }
    let sources = table.entry("sources").or_insert(Table::new().into());
    if let Some(sources) = sources.as_table_mut() {
        for (key, source) in found {
            sources.insert(key.to_owned(), source.into());
        }
    }
    table.to_string()
}

/// Four digits: more are not measured.
fn rounded(value: f64) -> f64 {
    format!("{value:.3e}").parse().unwrap_or(value)
}
