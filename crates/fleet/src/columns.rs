//! The table of trials as Arrow has it.
//!
//! Columns have the names that `cryptmark report -o FILE.csv` gives them. Whole numbers are signed
//! 64-bit integers, because Spark and Trino have no others. Unmeasured values are null. The day of
//! the run and its plan are not columns of a file but parts of its path ([`crate::export`]).

use ::report::columns::{self as table, COLUMNS, Column, Row, Value};
use arrow_array::builder::{Float64Builder, ListBuilder, StringBuilder};
use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray,
    TimestampMicrosecondArray,
};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef, TimeUnit};
use lab::record::Run;
use std::sync::{Arc, LazyLock};

pub use ::report::columns::SCHEMA_VERSION;

/// Rows of a batch, at most: what is in memory twice, as records and as columns.
const BATCH: usize = 1024;

/// The columns of a file.
pub fn stored() -> impl Iterator<Item = &'static Column> {
    COLUMNS.iter().filter(|column| column.name != "plan")
}

/// Type of a column in SQL, as DuckDB, Spark and Trino show it.
pub fn sql_type(column: &Column) -> &'static str {
    match column.value {
        Value::Text(_) => "VARCHAR",
        Value::Texts(_) => "LIST of VARCHAR",
        Value::Flag(_) => "BOOLEAN",
        Value::Whole(_) => "BIGINT",
        Value::Number(_) => "DOUBLE",
        Value::Numbers(_) => "LIST of DOUBLE",
        Value::Moment(_) => "TIMESTAMP WITH TIME ZONE",
    }
}

fn field(column: &Column) -> Field {
    let data_type = match column.value {
        Value::Text(_) => DataType::Utf8,
        Value::Texts(_) => DataType::List(element(DataType::Utf8)),
        Value::Flag(_) => DataType::Boolean,
        Value::Whole(_) => DataType::Int64,
        Value::Number(_) => DataType::Float64,
        Value::Numbers(_) => DataType::List(element(DataType::Float64)),
        Value::Moment(_) => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
    };
    Field::new(column.name, data_type, true)
}

fn array(column: &Column, rows: &[Row<'_>]) -> ArrayRef {
    let rows = rows.iter().copied();
    match column.value {
        Value::Text(of) => Arc::new(rows.map(of).collect::<StringArray>()),
        Value::Texts(of) => {
            let builder = ListBuilder::new(StringBuilder::new());
            let mut builder = builder.with_field(element(DataType::Utf8));
            for row in rows {
                builder.append_value(of(row).iter().map(Some));
            }
            Arc::new(builder.finish())
        }
        Value::Flag(of) => Arc::new(rows.map(of).collect::<BooleanArray>()),
        Value::Whole(of) => {
            let whole = |number| i64::try_from(number).unwrap_or(i64::MAX);
            Arc::new(rows.map(|row| of(row).map(whole)).collect::<Int64Array>())
        }
        Value::Number(of) => {
            let numbers = rows.map(|row| of(row).filter(|n| n.is_finite()));
            Arc::new(numbers.collect::<Float64Array>())
        }
        Value::Numbers(of) => {
            let builder = ListBuilder::new(Float64Builder::new());
            let mut builder = builder.with_field(element(DataType::Float64));
            for row in rows {
                builder.append_value(of(row).iter().map(|number| Some(*number)));
            }
            Arc::new(builder.finish())
        }
        Value::Moment(of) => {
            let moments = rows.map(|row| moment(of(row)).map(jiff::Timestamp::as_microsecond));
            let moments = moments.collect::<TimestampMicrosecondArray>();
            Arc::new(moments.with_timezone("UTC"))
        }
    }
}

/// The element field of a list, by the name that Parquet's specification gives it.
fn element(data_type: DataType) -> Arc<Field> {
    Arc::new(Field::new("element", data_type, true))
}

/// The columns of every file, in order.
pub fn schema() -> SchemaRef {
    static SCHEMA: LazyLock<SchemaRef> =
        LazyLock::new(|| Arc::new(Schema::new(stored().map(field).collect::<Vec<_>>())));
    Arc::clone(&SCHEMA)
}

/// The trials of a run as batches of at most 1024 rows.
///
/// # Errors
/// None that a record could cause: the types of the columns are fixed.
pub fn batches(run: &Run) -> impl Iterator<Item = Result<RecordBatch, ArrowError>> {
    let rows: Vec<Row<'_>> = table::rows(run).collect();
    let starts = (0..rows.len()).step_by(BATCH);
    starts.map(move |start| {
        let rows = &rows[start..rows.len().min(start + BATCH)];
        let arrays = stored().map(|column| array(column, rows));
        RecordBatch::try_new(schema(), arrays.collect())
    })
}

/// When a run began; `None` where its record says no time.
pub fn started(run: &Run) -> Option<jiff::Timestamp> {
    moment(&run.started)
}

fn moment(text: &str) -> Option<jiff::Timestamp> {
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_every_column_as_it_is() {
        let page = include_str!("../../../docs/PARQUET.md");
        for column in stored() {
            let row = format!(
                "| `{}` | {} | {} | {} |",
                column.name,
                sql_type(column),
                column.unit,
                column.about
            );
            assert!(page.contains(&row), "docs/PARQUET.md lacks\n{row}");
        }
        // Places to export to stand in a table of their own.
        let rows = page
            .lines()
            .filter(|line| line.starts_with("| `") && !line.contains("://"));
        assert_eq!(rows.count(), stored().count() + 2, "with `date` and `plan`");
    }
}
