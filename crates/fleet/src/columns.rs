//! The table of trials: its columns, and records as rows of it.
//!
//! A row is a trial: a cell of a plan with all its repetitions. Columns have the
//! names that `cryptmark report -o FILE.csv` gives them. Whole numbers are signed
//! and of 64 bits, because Spark and Trino have no others; what nobody measured is
//! null. The day of the run and its plan are no columns of a file but parts of its
//! path ([`crate::export`]).

use arrow_array::builder::{Float64Builder, ListBuilder, StringBuilder};
use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray,
    TimestampMicrosecondArray,
};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef, TimeUnit};
use lab::record::{FileOperation, Interval, Life, Moved, Run, Trial};
use serde::Serialize;
use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

/// Version of the table. New columns do not change it; a reader refuses any that is
/// newer than what it knows.
pub const SCHEMA_VERSION: u64 = 1;

/// Rows of a batch, at most: what is in memory twice, as records and as columns.
const BATCH: usize = 1024;

/// A trial in its place.
#[derive(Clone, Copy)]
struct Row<'a> {
    run: &'a Run,
    ordinal: usize,
    trial: &'a Trial,
}

/// A column.
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// Its unit; empty where it has none.
    pub unit: &'static str,
    /// What it says.
    pub about: &'static str,
    value: Value,
}

/// How a column's value is found, and of which type it is.
enum Value {
    Text(for<'a> fn(Row<'a>) -> Option<Cow<'a, str>>),
    Texts(for<'a> fn(Row<'a>) -> &'a [String]),
    Flag(fn(Row<'_>) -> Option<bool>),
    Whole(fn(Row<'_>) -> Option<u64>),
    Number(fn(Row<'_>) -> Option<f64>),
    Numbers(for<'a> fn(Row<'a>) -> &'a [f64]),
    /// Microseconds since 1970, UTC.
    Moment(fn(Row<'_>) -> Option<i64>),
}

impl Column {
    /// Its type in SQL, as DuckDB, Spark and Trino show it.
    pub fn sql_type(&self) -> &'static str {
        match self.value {
            Value::Text(_) => "VARCHAR",
            Value::Texts(_) => "LIST of VARCHAR",
            Value::Flag(_) => "BOOLEAN",
            Value::Whole(_) => "BIGINT",
            Value::Number(_) => "DOUBLE",
            Value::Numbers(_) => "LIST of DOUBLE",
            Value::Moment(_) => "TIMESTAMP WITH TIME ZONE",
        }
    }

    fn field(&self) -> Field {
        let data_type = match self.value {
            Value::Text(_) => DataType::Utf8,
            Value::Texts(_) => DataType::List(element(DataType::Utf8)),
            Value::Flag(_) => DataType::Boolean,
            Value::Whole(_) => DataType::Int64,
            Value::Number(_) => DataType::Float64,
            Value::Numbers(_) => DataType::List(element(DataType::Float64)),
            Value::Moment(_) => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        };
        Field::new(self.name, data_type, true)
    }

    fn array(&self, rows: &[Row<'_>]) -> ArrayRef {
        match self.value {
            Value::Text(of) => Arc::new(rows.iter().map(|row| of(*row)).collect::<StringArray>()),
            Value::Texts(of) => {
                let builder = ListBuilder::new(StringBuilder::new());
                let mut builder = builder.with_field(element(DataType::Utf8));
                for row in rows {
                    builder.append_value(of(*row).iter().map(Some));
                }
                Arc::new(builder.finish())
            }
            Value::Flag(of) => Arc::new(rows.iter().map(|row| of(*row)).collect::<BooleanArray>()),
            Value::Whole(of) => {
                let whole = |number| i64::try_from(number).unwrap_or(i64::MAX);
                let numbers = rows.iter().map(|row| of(*row).map(whole));
                Arc::new(numbers.collect::<Int64Array>())
            }
            Value::Number(of) => {
                let numbers = rows.iter().map(|row| of(*row).filter(|n| n.is_finite()));
                Arc::new(numbers.collect::<Float64Array>())
            }
            Value::Numbers(of) => {
                let builder = ListBuilder::new(Float64Builder::new());
                let mut builder = builder.with_field(element(DataType::Float64));
                for row in rows {
                    builder.append_value(of(*row).iter().map(|number| Some(*number)));
                }
                Arc::new(builder.finish())
            }
            Value::Moment(of) => {
                let moments = rows.iter().map(|row| of(*row));
                Arc::new(
                    moments
                        .collect::<TimestampMicrosecondArray>()
                        .with_timezone("UTC"),
                )
            }
        }
    }
}

/// What a list is made of, by the name that Parquet's specification gives it.
fn element(data_type: DataType) -> Arc<Field> {
    Arc::new(Field::new("element", data_type, true))
}

/// The columns of every file, in order.
pub fn schema() -> SchemaRef {
    static SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
        Arc::new(Schema::new(
            COLUMNS.iter().map(Column::field).collect::<Vec<_>>(),
        ))
    });
    Arc::clone(&SCHEMA)
}

/// The trials of a run as batches of at most 1024 rows.
///
/// # Errors
/// None that a record could cause: the types of the columns are fixed.
pub fn batches(run: &Run) -> impl Iterator<Item = Result<RecordBatch, ArrowError>> {
    run.trials
        .chunks(BATCH)
        .enumerate()
        .map(move |(number, trials)| {
            let rows: Vec<Row<'_>> = (number * BATCH..)
                .zip(trials)
                .map(|(ordinal, trial)| Row {
                    run,
                    ordinal,
                    trial,
                })
                .collect();
            let arrays = COLUMNS.iter().map(|column| column.array(&rows));
            RecordBatch::try_new(schema(), arrays.collect())
        })
}

/// When a run began; `None` where its record says no time.
pub fn started(run: &Run) -> Option<jiff::Timestamp> {
    run.started.parse().ok()
}

fn text(text: &str) -> Option<Cow<'_, str>> {
    Some(text.into())
}

fn maybe(text: Option<&String>) -> Option<Cow<'_, str>> {
    text.map(|text| text.as_str().into())
}

/// The word that JSON has for a value of an enumeration.
fn word(value: impl Serialize) -> Option<Cow<'static, str>> {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => Some(word.into()),
        _ => None,
    }
}

fn ratio(row: Row<'_>) -> Option<Interval> {
    row.trial.overhead.as_ref().map(|overhead| overhead.ratio)
}

fn operation(row: Row<'_>) -> Option<&FileOperation> {
    row.trial.operation()
}

fn moved(row: Row<'_>) -> Option<Moved> {
    operation(row)?.moved
}

fn life(row: Row<'_>) -> Option<&Life> {
    row.trial.life()
}

macro_rules! columns {
    ($($name:literal, $unit:literal, $about:literal, $kind:ident, |$row:ident| $value:expr;)*) => {
        &[$(Column { name: $name, unit: $unit, about: $about, value: Value::$kind(|$row| $value) }),*]
    };
}

/// All columns; new ones are only ever added at the end.
#[rustfmt::skip] // A column a line.
pub const COLUMNS: &[Column] = columns! {
    "schema_version", "", "version of this table", Whole, |_row| Some(SCHEMA_VERSION);
    "run", "", "id of the run", Text, |row| text(&row.run.run);
    "ordinal", "", "position of the trial in its run, from 0", Whole, |row| Some(row.ordinal as u64);
    "started", "", "start of the run", Moment, |row| started(row.run).map(jiff::Timestamp::as_microsecond);
    "partial", "", "the run was interrupted, failed or is under way", Flag, |row| Some(row.run.partial);
    "seed", "", "of offsets and data", Whole, |row| Some(row.run.seed);
    "experiment", "", "of which the run is a shard", Text, |row| row.run.shard.as_ref().and_then(|shard| text(&shard.experiment));
    "shard", "", "number of the shard, from 1", Whole, |row| row.run.shard.as_ref().map(|shard| shard.index.into());
    "shards", "", "of the experiment", Whole, |row| row.run.shard.as_ref().map(|shard| shard.of.into());
    "program_version", "", "of cryptmark, with its commit", Text, |row| maybe(row.run.host.versions.get("cryptmark"));
    "cpu", "", "model of the processor", Text, |row| text(&row.run.host.cpu);
    "cpu_features", "", "instructions that matter to ciphers", Texts, |row| &row.run.host.features;
    "cores", "", "logical processors that the program could use", Whole, |row| Some(row.run.host.cores.into());
    "clock_hz", "Hz", "core clock under load", Number, |row| row.run.host.clock_hz;
    "governor", "", "of the CPU's frequency", Text, |row| maybe(row.run.host.governor.as_ref());
    "hypervisor", "", "where the processor tells of one", Text, |row| maybe(row.run.host.hypervisor.as_ref());
    "memory_bytes", "B", "of the machine", Whole, |row| Some(row.run.host.memory);
    "kernel", "", "name and release", Text, |row| text(&row.run.host.kernel);
    "os", "", "distribution or system", Text, |row| text(&row.run.host.os);
    "load_average", "", "of one minute, before the run", Number, |row| row.run.host.load_average;
    "steal", "0…1", "CPU time that the hypervisor took", Number, |row| row.run.host.steal;
    "noise", "", "quiet, noisy or unknown: what A/A pairs say", Text, |row| word(row.run.noise.verdict);
    "aa_ratio", "ratio", "the plain system ÷ itself, median", Number, |row| row.run.noise.aa_ratio.map(|aa| aa.median);
    "aa_low", "ratio", "its 95 % interval", Number, |row| row.run.noise.aa_ratio.map(|aa| aa.low);
    "aa_high", "ratio", "", Number, |row| row.run.noise.aa_ratio.map(|aa| aa.high);
    "tier", "", "cipher, block or fs", Text, |row| word(row.trial.tier);
    "system", "", "none (plain), builtin, dm-crypt, …", Text, |row| text(&row.trial.system);
    "system_version", "", "", Text, |row| text(&row.trial.system_version);
    "backend", "", "of the built-in engine", Text, |row| maybe(row.trial.backend.as_ref());
    "cipher", "", "dm-crypt's notation; null for plain", Text, |row| maybe(row.trial.cipher.as_ref());
    "key_bits", "bit", "as cryptsetup counts", Whole, |row| row.trial.key_bits.map(u64::from);
    "sector_bytes", "B", "of encryption", Whole, |row| row.trial.sector_bytes.map(u64::from);
    "format", "", "luks2, …; null for a bare mapping", Text, |row| maybe(row.trial.format.as_ref());
    "device_kind", "", "disk, ssd, hdd, ram, null, simulated, unknown", Text, |row| text(&row.trial.device.kind);
    "device_model", "", "as the kernel names it", Text, |row| maybe(row.trial.device.model.as_ref());
    "device_path_kind", "", "file, block-device, memory", Text, |row| text(&row.trial.device.path_kind);
    "device_filesystem", "", "that holds the test file", Text, |row| maybe(row.trial.device.filesystem.as_ref());
    "device_in_use", "0…1", "share of it that is full", Number, |row| row.trial.device.in_use;
    "device_cache", "", "direct or buffered", Text, |row| text(&row.trial.device.cache);
    "device_write_cache", "", "the device's own", Text, |row| maybe(row.trial.device.write_cache.as_ref());
    "device_engine", "", "io_uring, threads, pread, memory", Text, |row| text(&row.trial.device.engine);
    "device_scheduler", "", "", Text, |row| maybe(row.trial.device.scheduler.as_ref());
    "device_driver", "", "that encrypts before a simulated drive", Text, |row| maybe(row.trial.device.driver.as_ref());
    "device_size", "B", "of the test extent", Whole, |row| Some(row.trial.device.size);
    "fs", "", "file system under test", Text, |row| row.trial.fs().and_then(text);
    "workload", "", "its name in the plan", Text, |row| text(&row.trial.workload);
    "op", "", "read, write, mixed, encrypt, mkfs, copy, …", Text, |row| text(&row.trial.op);
    "block_bytes", "B", "of a request", Whole, |row| Some(row.trial.block_bytes);
    "queue_depth", "", "requests in flight a thread", Whole, |row| Some(row.trial.queue_depth.into());
    "threads", "", "that drive", Whole, |row| Some(row.trial.threads.into());
    "cold", "", "each repetition in a fresh process", Flag, |row| Some(row.trial.cold);
    "repetitions", "", "that the row sums up", Whole, |row| Some(row.trial.repetitions.into());
    "bytes", "B", "moved in all repetitions", Whole, |row| Some(row.trial.bytes);
    "requests", "", "in all repetitions", Whole, |row| Some(row.trial.requests);
    "moved_read_bytes", "B", "read from the device below a file system", Whole, |row| moved(row).map(|moved| moved.read_bytes);
    "moved_written_bytes", "B", "written to it", Whole, |row| moved(row).map(|moved| moved.written_bytes);
    "moved_reads", "", "requests", Whole, |row| moved(row).map(|moved| moved.reads);
    "moved_writes", "", "requests", Whole, |row| moved(row).map(|moved| moved.writes);
    "throughput_mb_s", "10⁶ B/s", "median of the repetitions", Number, |row| Some(row.trial.throughput_mb_s.median);
    "throughput_mb_s_low", "10⁶ B/s", "its 95 % interval", Number, |row| Some(row.trial.throughput_mb_s.low);
    "throughput_mb_s_high", "10⁶ B/s", "", Number, |row| Some(row.trial.throughput_mb_s.high);
    "iops", "1/s", "requests, median of the repetitions", Number, |row| Some(row.trial.iops.median);
    "iops_low", "1/s", "its 95 % interval", Number, |row| Some(row.trial.iops.low);
    "iops_high", "1/s", "", Number, |row| Some(row.trial.iops.high);
    "cycles_per_byte", "", "of encryption", Number, |row| row.trial.cycles_per_byte.map(|cycles| cycles.median);
    "cycles_per_byte_low", "", "its 95 % interval", Number, |row| row.trial.cycles_per_byte.map(|cycles| cycles.low);
    "cycles_per_byte_high", "", "", Number, |row| row.trial.cycles_per_byte.map(|cycles| cycles.high);
    "latency_p50_us", "µs", "from submission to completion", Number, |row| Some(row.trial.latency_us.p50);
    "latency_p90_us", "µs", "", Number, |row| Some(row.trial.latency_us.p90);
    "latency_p99_us", "µs", "", Number, |row| Some(row.trial.latency_us.p99);
    "latency_p99_9_us", "µs", "", Number, |row| Some(row.trial.latency_us.p99_9);
    "latency_max_us", "µs", "", Number, |row| Some(row.trial.latency_us.max);
    "latency_queue_us", "µs", "mean part of a latency: waiting for a thread", Number, |row| row.trial.latency_split_us.map(|split| split.queue);
    "latency_crypto_us", "µs", "encryption", Number, |row| row.trial.latency_split_us.map(|split| split.crypto);
    "latency_device_us", "µs", "the device", Number, |row| row.trial.latency_split_us.map(|split| split.device);
    "wall_s", "s", "all repetitions", Number, |row| Some(row.trial.time_s.wall);
    "user_s", "s", "CPU time of the process", Number, |row| row.trial.time_s.user;
    "sys_s", "s", "CPU time of the kernel for it", Number, |row| row.trial.time_s.sys;
    "cpu_s", "s", "both together", Number, |row| row.trial.time_s.cpu;
    "workers_s", "s", "CPU time of the kernel's own threads meanwhile", Number, |row| row.trial.time_s.workers;
    "crypto_s", "s", "encrypting and decrypting", Number, |row| row.trial.time_s.crypto;
    "copy_s", "s", "copying between buffers", Number, |row| row.trial.time_s.copy;
    "submit_s", "s", "handing requests to the kernel", Number, |row| row.trial.time_s.submit;
    "wait_s", "s", "nothing to do until the device answers", Number, |row| row.trial.time_s.wait;
    "other_s", "s", "the rest of the driving threads", Number, |row| row.trial.time_s.other;
    "against", "", "the system that the ratio is to; none is plain", Text, |row| row.trial.overhead.as_ref().and_then(|overhead| text(&overhead.against));
    "overhead_ratio", "ratio", "this rate ÷ that one's, pair by pair, median: below 1 is slower", Number, |row| ratio(row).map(|ratio| ratio.median);
    "overhead_low", "ratio", "its 95 % interval", Number, |row| ratio(row).map(|ratio| ratio.low);
    "overhead_high", "ratio", "", Number, |row| ratio(row).map(|ratio| ratio.high);
    "overhead_n", "", "pairs", Whole, |row| ratio(row).map(|ratio| ratio.n.into());
    "verdict", "", "slower, faster, not distinguishable, too few", Text, |row| row.trial.overhead.as_ref().and_then(|overhead| word(overhead.verdict));
    "bottleneck", "", "cipher, device, copy, syscall, unknown", Text, |row| word(row.trial.bottleneck);
    "steady_state", "", "by SNIA's rule", Flag, |row| row.trial.steady_state;
    "constant_time", "", "the backend has no secret-dependent load or branch", Flag, |row| row.trial.constant_time;
    "kdf", "", "pbkdf2, argon2i, argon2id; of unlocking", Text, |row| row.trial.kdf().and_then(|kdf| text(&kdf.name));
    "kdf_hash", "", "of PBKDF2", Text, |row| row.trial.kdf().and_then(|kdf| maybe(kdf.hash.as_ref()));
    "kdf_iterations", "", "or passes of Argon2", Whole, |row| row.trial.kdf().map(|kdf| kdf.iterations.into());
    "kdf_memory_kib", "KiB", "of Argon2", Whole, |row| row.trial.kdf().map(|kdf| kdf.memory_kib.into());
    "kdf_lanes", "", "of Argon2", Whole, |row| row.trial.kdf().map(|kdf| kdf.lanes.into());
    "kdf_calibrated_ms", "ms", "what its costs were chosen for", Whole, |row| row.trial.kdf().and_then(|kdf| kdf.calibrated_ms).map(u64::from);
    "samples_mb_s", "10⁶ B/s", "throughput of every repetition in order", Numbers, |row| &row.trial.samples_mb_s;
    "samples_s", "s", "time of every repetition, of operations on file systems", Numbers, |row| row.trial.samples_s();
    "samples_crypto_s", "s", "encryption in every repetition", Numbers, |row| operation(row).map_or(&[], |of| &of.samples_crypto_s);
    "samples_sys_s", "s", "system time of every repetition", Numbers, |row| operation(row).map_or(&[], |of| &of.samples_sys_s);
    "warnings", "", "remarks on the trial", Texts, |row| &row.trial.warnings;
    "trim_policy", "", "plain, pass, block, filled, unpartitioned; this and what follows: of lives of simulated SSDs, of which a repetition is one", Text, |row| life(row).and_then(|life| word(life.policy));
    "over_provisioning", "0…", "pages beyond those that the host can write", Number, |row| life(row).map(|life| life.over_provisioning);
    "gc", "", "which block the drive cleans next", Text, |row| life(row).and_then(|life| text(&life.gc));
    "fill", "0…1", "share of the file system that holds files", Number, |row| life(row).map(|life| life.fill);
    "overwrites", "0…1", "share of the writes that goes to pages within files", Number, |row| life(row).map(|life| life.overwrites);
    "unpartitioned", "0…1", "share of the drive that the policy `unpartitioned` leaves", Number, |row| life(row).map(|life| life.unpartitioned);
    "daily_bytes", "B", "that the host writes a day", Whole, |row| life(row).map(|life| life.daily_bytes);
    "years", "a", "that were looked at", Number, |row| life(row).map(|life| life.years);
    "first_seed", "", "the others follow it", Whole, |row| life(row).map(|life| life.first_seed);
    "write_amplification", "ratio", "flash writes ÷ host writes over all the years, median of the lives", Number, |row| life(row).map(|life| life.write_amplification.median);
    "write_amplification_low", "ratio", "its 95 % interval", Number, |row| life(row).map(|life| life.write_amplification.low);
    "write_amplification_high", "ratio", "", Number, |row| life(row).map(|life| life.write_amplification.high);
    "lifetime_years", "a", "until the blocks have had their erases, median of the lives", Number, |row| life(row).map(|life| life.lifetime_years.median);
    "lifetime_years_low", "a", "its 95 % interval", Number, |row| life(row).map(|life| life.lifetime_years.low);
    "lifetime_years_high", "a", "", Number, |row| life(row).map(|life| life.lifetime_years.high);
    "terabytes_written", "10¹² B", "that the host has written by then, median of the lives", Number, |row| life(row).map(|life| life.terabytes_written.median);
    "terabytes_written_low", "10¹² B", "its 95 % interval", Number, |row| life(row).map(|life| life.terabytes_written.low);
    "terabytes_written_high", "10¹² B", "", Number, |row| life(row).map(|life| life.terabytes_written.high);
    "samples_write_amplification", "ratio", "of every life, by seed", Numbers, |row| life(row).map_or(&[], |life| &life.samples_write_amplification);
    "samples_lifetime_years", "a", "of every life, by seed", Numbers, |row| life(row).map_or(&[], |life| &life.samples_lifetime_years);
    "samples_pace", "ratio", "pace of the core in every repetition, of operations on file systems", Numbers, |row| operation(row).map_or(&[], |of| &of.samples_pace);
    "smallest_difference", "0…", "loss of the rate that would have been told from none", Number, |row| row.trial.overhead.as_ref().and_then(|overhead| overhead.smallest);
};

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_page_has_every_column_as_it_is() {
        let page = include_str!("../../../docs/PARQUET.md");
        for column in COLUMNS {
            let row = format!(
                "| `{}` | {} | {} | {} |",
                column.name,
                column.sql_type(),
                column.unit,
                column.about
            );
            assert!(page.contains(&row), "docs/PARQUET.md lacks\n{row}");
        }
        // Places to export to stand in a table of their own.
        let rows = page
            .lines()
            .filter(|line| line.starts_with("| `") && !line.contains("://"));
        assert_eq!(rows.count(), COLUMNS.len() + 2, "with `date` and `plan`");
    }

    #[test]
    fn names_are_words_that_no_engine_changes() {
        let names: BTreeSet<&str> = COLUMNS.iter().map(|column| column.name).collect();
        assert_eq!(names.len(), COLUMNS.len());
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        assert!(names.iter().all(|name| name.chars().all(plain)));
        assert!(!names.contains("date") && !names.contains("plan"));
    }
}
