//! One row a trial, every column but lists of numbers, for spreadsheets and data frames.

use crate::columns::{self, COLUMNS, Column, Row, Value};
use lab::record::Run;
use std::borrow::Cow;

/// The columns that are not lists of numbers.
fn columns() -> impl Iterator<Item = &'static Column> {
    let is_list = |column: &&Column| matches!(column.value, Value::Numbers(_));
    COLUMNS.iter().filter(move |column| !is_list(column))
}

/// The names of the columns.
pub fn header() -> Vec<&'static str> {
    columns().map(|column| column.name).collect()
}

/// The runs as CSV with a [`header`]; unknown values are empty fields, several
/// warnings or published figures are separated by ` | `.
pub fn render(runs: &[Run]) -> String {
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    // Writing to memory has no way to fail.
    writer.write_record(header()).ok();
    for row in runs.iter().flat_map(columns::rows) {
        let cells = columns().map(|column| harmless(value(column, row)));
        writer.write_record(cells.map(Cow::into_owned)).ok();
    }
    let bytes = writer.into_inner().unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The value of a column in a row; empty if it was not measured.
fn value<'a>(column: &Column, row: Row<'a>) -> Cow<'a, str> {
    let known = match column.value {
        Value::Text(of) => of(row),
        Value::Texts(of) => Some(of(row).join(" | ").into()),
        Value::Flag(of) => of(row).map(|flag| flag.to_string().into()),
        Value::Whole(of) => of(row).map(|number| number.to_string().into()),
        Value::Number(of) => {
            let number = of(row).filter(|number| number.is_finite());
            number.map(|number| number.to_string().into())
        }
        Value::Moment(of) => Some(of(row).into()),
        Value::Numbers(_) => None,
    };
    known.unwrap_or_default()
}

/// A cell that no spreadsheet takes for a formula. A cell that begins like one and is not a number
/// gets an apostrophe in front.
fn harmless(cell: Cow<'_, str>) -> Cow<'_, str> {
    let suspect = cell.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let number = || cell.parse::<f64>().is_ok_and(f64::is_finite);
    match suspect && !number() {
        true => format!("'{cell}").into(),
        false => cell,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cell_is_a_formula_and_numbers_stay_numbers() {
        for formula in [
            "=1+1",
            "=HYPERLINK(\"http://evil.example\")",
            "+cmd|' /C calc'!A0",
            "-2+3",
            "@SUM(A1)",
            "\t=1",
            "\r=1",
            "-",
            "-inf",
            "+nan",
        ] {
            assert_eq!(harmless(formula.into()), format!("'{formula}"));
        }
        for plain in [
            "", "-1", "-0.5", "+3", "-1e-7", "1-2", "aes=xts", "'=1", "ext4",
        ] {
            assert_eq!(harmless(plain.into()), plain);
        }
    }
}
