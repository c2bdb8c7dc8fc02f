//! The table of trials: one row per trial, which is a cell of a plan with all its repetitions.
//!
//! CSV has all columns except lists of numbers. Parquet has all except the plan, which is a part of
//! its path. A value that was not measured is `None`.

use crate::beside::printed;
use lab::record::{
    Energy, EnergyCost, FileOperation, Interval, Life, Moved, Published, Run, Trial,
};
use serde::Serialize;
use std::borrow::Cow;

/// Version of the table. New columns do not change it; a reader refuses any that is
/// newer than what it knows.
pub const SCHEMA_VERSION: u64 = 1;

/// A trial in its place.
#[derive(Clone, Copy)]
pub struct Row<'a> {
    /// The run.
    pub run: &'a Run,
    /// Position of the trial in it, from 0.
    pub ordinal: usize,
    /// The trial.
    pub trial: &'a Trial,
}

/// A column.
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// Its unit; empty if it has none.
    pub unit: &'static str,
    /// The description of the column.
    pub about: &'static str,
    /// How its values are found.
    pub value: Value,
}

/// How a column's value is found, and of which type it is.
pub enum Value {
    /// A text.
    Text(for<'a> fn(Row<'a>) -> Option<Cow<'a, str>>),
    /// A list of texts.
    Texts(for<'a> fn(Row<'a>) -> Cow<'a, [String]>),
    /// True or false.
    Flag(fn(Row<'_>) -> Option<bool>),
    /// A number of 64 bits without a sign.
    Whole(fn(Row<'_>) -> Option<u64>),
    /// A number that need not be finite.
    Number(fn(Row<'_>) -> Option<f64>),
    /// A list of numbers.
    Numbers(for<'a> fn(Row<'a>) -> &'a [f64]),
    /// A time as RFC 3339 has it, or what a record has in its place.
    Moment(for<'a> fn(Row<'a>) -> &'a str),
}

/// The trials of a run, in order.
pub fn rows(run: &Run) -> impl Iterator<Item = Row<'_>> {
    let trials = run.trials.iter().enumerate();
    trials.map(move |(ordinal, trial)| Row {
        run,
        ordinal,
        trial,
    })
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

fn energy(row: Row<'_>) -> Option<&Energy> {
    row.trial.energy.as_deref()
}

fn energy_cost(row: Row<'_>) -> Option<&EnergyCost> {
    energy(row)?.against.as_ref()
}

fn life(row: Row<'_>) -> Option<&Life> {
    row.trial.life()
}

macro_rules! columns {
    ($($name:literal, $unit:literal, $about:literal, $kind:ident, |$row:ident| $value:expr;)*) => {
        &[$(Column { name: $name, unit: $unit, about: $about, value: Value::$kind(|$row| $value) }),*]
    };
}

/// `0.47 Mb/s (TrueCrypt, Western Digital HDD, Figure 2)` and so on.
fn published(trial: &Trial) -> Vec<String> {
    let figures = trial.published.iter().map(|published| {
        let Published {
            system,
            device,
            figure,
            ..
        } = published;
        format!("{} ({system}, {device}, {figure})", printed(published))
    });
    figures.collect()
}

/// All columns; new ones are only ever added at the end.
#[rustfmt::skip] // A column a line.
pub const COLUMNS: &[Column] = columns! {
    "run", "", "id of the run", Text, |row| text(&row.run.run);
    "plan", "", "name of the plan", Text, |row| text(&row.run.plan);
    "started", "", "start of the run", Moment, |row| &row.run.started;
    "partial", "", "the run was interrupted, failed or is under way", Flag, |row| Some(row.run.partial);
    "seed", "", "of offsets and data", Whole, |row| Some(row.run.seed);
    "cpu", "", "model of the processor", Text, |row| text(&row.run.host.cpu);
    "cores", "", "logical processors that the program could use", Whole, |row| Some(row.run.host.cores.into());
    "kernel", "", "name and release", Text, |row| text(&row.run.host.kernel);
    "os", "", "distribution or system", Text, |row| text(&row.run.host.os);
    "aa_ratio", "ratio", "the plain system ÷ itself, median", Number, |row| row.run.noise.aa_ratio.map(|aa| aa.median);
    "aa_low", "ratio", "its 95 % interval", Number, |row| row.run.noise.aa_ratio.map(|aa| aa.low);
    "aa_high", "ratio", "", Number, |row| row.run.noise.aa_ratio.map(|aa| aa.high);
    "noise", "", "quiet, noisy or unknown: what A/A pairs say", Text, |row| word(row.run.noise.verdict);
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
    "device_cache", "", "direct or buffered", Text, |row| text(&row.trial.device.cache);
    "device_write_cache", "", "the device's own", Text, |row| maybe(row.trial.device.write_cache.as_ref());
    "device_engine", "", "io_uring, threads, pread, memory", Text, |row| text(&row.trial.device.engine);
    "device_scheduler", "", "", Text, |row| maybe(row.trial.device.scheduler.as_ref());
    "device_size", "B", "of the test extent", Whole, |row| Some(row.trial.device.size);
    "fs", "", "file system under test", Text, |row| row.trial.fs().and_then(text);
    "workload", "", "its name in the plan", Text, |row| text(&row.trial.workload);
    "op", "", "read, write, mixed, encrypt, mkfs, copy, …", Text, |row| text(&row.trial.op);
    "block_bytes", "B", "of a request", Whole, |row| row.trial.block_bytes;
    "queue_depth", "", "requests in flight a thread", Whole, |row| row.trial.queue_depth.map(u64::from);
    "threads", "", "that drive", Whole, |row| row.trial.threads.map(u64::from);
    "repetitions", "", "that the row sums up", Whole, |row| Some(row.trial.repetitions.into());
    "bytes", "B", "transferred in all repetitions", Whole, |row| row.trial.bytes;
    "requests", "", "in all repetitions", Whole, |row| row.trial.requests;
    "throughput_mb_s", "10⁶ B/s", "median of the repetitions", Number, |row| Some(row.trial.throughput_mb_s.median);
    "throughput_mb_s_low", "10⁶ B/s", "its 95 % interval", Number, |row| Some(row.trial.throughput_mb_s.low);
    "throughput_mb_s_high", "10⁶ B/s", "", Number, |row| Some(row.trial.throughput_mb_s.high);
    "throughput_n", "", "number of values in the median", Whole, |row| Some(row.trial.throughput_mb_s.n.into());
    "iops", "1/s", "requests, median of the repetitions", Number, |row| Some(row.trial.iops.median);
    "iops_low", "1/s", "its 95 % interval", Number, |row| Some(row.trial.iops.low);
    "iops_high", "1/s", "", Number, |row| Some(row.trial.iops.high);
    "iops_n", "", "number of values in the median", Whole, |row| Some(row.trial.iops.n.into());
    "cycles_per_byte", "", "of encryption", Number, |row| row.trial.cycles_per_byte.map(|cycles| cycles.median);
    "cycles_per_byte_low", "", "its 95 % interval", Number, |row| row.trial.cycles_per_byte.map(|cycles| cycles.low);
    "cycles_per_byte_high", "", "", Number, |row| row.trial.cycles_per_byte.map(|cycles| cycles.high);
    "cycles_per_byte_n", "", "number of values in the median", Whole, |row| row.trial.cycles_per_byte.map(|cycles| cycles.n.into());
    "latency_p50_us", "µs", "from submission to completion", Number, |row| row.trial.median_us();
    "latency_p90_us", "µs", "", Number, |row| Some(row.trial.latency_us.as_ref()?.p90);
    "latency_p99_us", "µs", "", Number, |row| Some(row.trial.latency_us.as_ref()?.p99);
    "latency_p99_9_us", "µs", "", Number, |row| Some(row.trial.latency_us.as_ref()?.p99_9);
    "latency_max_us", "µs", "", Number, |row| Some(row.trial.latency_us.as_ref()?.max);
    "wall_s", "s", "all repetitions", Number, |row| row.trial.time_s.wall;
    "user_s", "s", "CPU time of the process", Number, |row| row.trial.time_s.user;
    "sys_s", "s", "CPU time of the kernel for it", Number, |row| row.trial.time_s.sys;
    "crypto_s", "s", "encrypting and decrypting", Number, |row| row.trial.time_s.crypto;
    "copy_s", "s", "copying between buffers", Number, |row| row.trial.time_s.copy;
    "submit_s", "s", "handing requests to the kernel", Number, |row| row.trial.time_s.submit;
    "wait_s", "s", "waiting until the device answers", Number, |row| row.trial.time_s.wait;
    "other_s", "s", "the rest of the driving threads", Number, |row| row.trial.time_s.other;
    "latency_queue_us", "µs", "mean part of a latency: waiting for a thread", Number, |row| row.trial.latency_split_us.map(|split| split.queue);
    "latency_crypto_us", "µs", "encryption", Number, |row| row.trial.latency_split_us.map(|split| split.crypto);
    "latency_device_us", "µs", "the device", Number, |row| row.trial.latency_split_us.map(|split| split.device);
    "against", "", "the system that the ratio is to; none is plain", Text, |row| row.trial.overhead.as_ref().and_then(|overhead| text(&overhead.against));
    "overhead_ratio", "ratio", "this rate ÷ that one's, pair by pair, median: below 1 is slower", Number, |row| ratio(row).map(|ratio| ratio.median);
    "overhead_low", "ratio", "its 95 % interval", Number, |row| ratio(row).map(|ratio| ratio.low);
    "overhead_high", "ratio", "", Number, |row| ratio(row).map(|ratio| ratio.high);
    "overhead_n", "", "pairs", Whole, |row| ratio(row).map(|ratio| ratio.n.into());
    "verdict", "", "slower, faster, not distinguishable, too few", Text, |row| row.trial.overhead.as_ref().and_then(|overhead| word(overhead.verdict));
    "bottleneck", "", "cipher, device, copy, syscall, unknown", Text, |row| word(row.trial.bottleneck);
    "steady_state", "", "by SNIA's rule", Flag, |row| row.trial.steady_state;
    "constant_time", "", "the backend has no secret-dependent load or branch", Flag, |row| row.trial.constant_time;
    "clock_hz", "Hz", "core clock under load", Number, |row| row.run.host.clock_hz;
    "governor", "", "of the CPU's frequency", Text, |row| maybe(row.run.host.governor.as_ref());
    "hypervisor", "", "if the processor reports one", Text, |row| maybe(row.run.host.hypervisor.as_ref());
    "warnings", "", "remarks on the trial", Texts, |row| row.trial.warnings.as_slice().into();
    "published", "", "figures of documents that the trial repeats", Texts, |row| published(row.trial).into();
    "trim_policy", "", "plain, pass, block, filled, unpartitioned: for lives of simulated SSDs, \
                        one per repetition", Text, |row| life(row).and_then(|life| word(life.policy));
    "over_provisioning", "0…", "pages beyond those that the host can write", Number, |row| life(row).map(|life| life.over_provisioning);
    "gc", "", "which block the drive cleans next", Text, |row| life(row).and_then(|life| text(&life.gc));
    "fill", "0…1", "share of the file system that holds files", Number, |row| life(row).map(|life| life.fill);
    "daily_bytes", "B", "that the host writes a day", Whole, |row| life(row).map(|life| life.daily_bytes);
    "first_seed", "", "the others follow it", Whole, |row| life(row).map(|life| life.first_seed);
    "write_amplification", "ratio", "flash writes ÷ host writes over all the years, median of the lives", Number, |row| life(row).map(|life| life.write_amplification.median);
    "write_amplification_low", "ratio", "its 95 % interval", Number, |row| life(row).map(|life| life.write_amplification.low);
    "write_amplification_high", "ratio", "", Number, |row| life(row).map(|life| life.write_amplification.high);
    "write_amplification_n", "", "lives", Whole, |row| life(row).map(|life| life.write_amplification.n.into());
    "lifetime_years", "a", "until the blocks have had their erases, median of the lives", Number, |row| life(row).map(|life| life.lifetime_years.median);
    "lifetime_years_low", "a", "its 95 % interval", Number, |row| life(row).map(|life| life.lifetime_years.low);
    "lifetime_years_high", "a", "", Number, |row| life(row).map(|life| life.lifetime_years.high);
    "lifetime_years_n", "", "lives", Whole, |row| life(row).map(|life| life.lifetime_years.n.into());
    "terabytes_written", "10¹² B", "that the host has written by then, median of the lives", Number, |row| life(row).map(|life| life.terabytes_written.median);
    "terabytes_written_low", "10¹² B", "its 95 % interval", Number, |row| life(row).map(|life| life.terabytes_written.low);
    "terabytes_written_high", "10¹² B", "", Number, |row| life(row).map(|life| life.terabytes_written.high);
    "terabytes_written_n", "", "lives", Whole, |row| life(row).map(|life| life.terabytes_written.n.into());
    "smallest_difference", "0…", "smallest loss of the rate that could be detected", Number, |row| row.trial.overhead.as_ref().and_then(|overhead| overhead.smallest);
    "schema_version", "", "version of this table", Whole, |_row| Some(SCHEMA_VERSION);
    "ordinal", "", "position of the trial in its run, from 0", Whole, |row| Some(row.ordinal as u64);
    "experiment", "", "of which the run is a shard", Text, |row| row.run.shard.as_ref().and_then(|shard| text(&shard.experiment));
    "shard", "", "number of the shard, from 1", Whole, |row| row.run.shard.as_ref().map(|shard| shard.index.into());
    "shards", "", "of the experiment", Whole, |row| row.run.shard.as_ref().map(|shard| shard.of.into());
    "program_version", "", "of cryptmark, with its commit", Text, |row| maybe(row.run.host.versions.get("cryptmark"));
    "cpu_features", "", "instructions that matter to ciphers", Texts, |row| row.run.host.features.as_slice().into();
    "memory_bytes", "B", "of the machine", Whole, |row| Some(row.run.host.memory);
    "load_average", "", "of one minute, before the run", Number, |row| row.run.host.load_average;
    "steal", "0…1", "CPU time that the hypervisor took", Number, |row| row.run.host.steal;
    "device_in_use", "0…1", "share of it that is full", Number, |row| row.trial.device.in_use;
    "device_driver", "", "that encrypts before a simulated drive", Text, |row| maybe(row.trial.device.driver.as_ref());
    "cold", "", "each repetition in a fresh process", Flag, |row| Some(row.trial.cold);
    "moved_read_bytes", "B", "read from the device below a file system", Whole, |row| moved(row).map(|moved| moved.read_bytes);
    "moved_written_bytes", "B", "written to it", Whole, |row| moved(row).map(|moved| moved.written_bytes);
    "moved_reads", "", "requests", Whole, |row| moved(row).map(|moved| moved.reads);
    "moved_writes", "", "requests", Whole, |row| moved(row).map(|moved| moved.writes);
    "cpu_s", "s", "user_s and sys_s together", Number, |row| row.trial.time_s.cpu;
    "workers_s", "s", "CPU time of the kernel's own threads meanwhile", Number, |row| row.trial.time_s.workers;
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
    "overwrites", "0…1", "share of the writes that goes to pages within files", Number, |row| life(row).map(|life| life.overwrites);
    "unpartitioned", "0…1", "share of the drive that the policy `unpartitioned` leaves", Number, |row| life(row).map(|life| life.unpartitioned);
    "years", "a", "that were looked at", Number, |row| life(row).map(|life| life.years);
    "samples_write_amplification", "ratio", "of every life, by seed", Numbers, |row| life(row).map_or(&[], |life| &life.samples_write_amplification);
    "samples_lifetime_years", "a", "of every life, by seed", Numbers, |row| life(row).map_or(&[], |life| &life.samples_lifetime_years);
    "samples_pace", "ratio", "pace of the core in every repetition, of operations on file systems", Numbers, |row| operation(row).map_or(&[], |of| &of.samples_pace);
    "trial_cores", "", "that share a large request of the built-in engine", Whole, |row| Some(row.trial.cores().into());
    "energy_source", "", "what was added, and where it was read", Text, |row| energy(row).and_then(|energy| text(&energy.source));
    "energy_j_per_gb", "J/10⁹ B", "above the power at rest, median of the repetitions", Number, |row| energy(row).and_then(|energy| energy.j_per_gb).map(|of| of.median);
    "energy_j_per_gb_low", "J/10⁹ B", "its 95 % interval", Number, |row| energy(row).and_then(|energy| energy.j_per_gb).map(|of| of.low);
    "energy_j_per_gb_high", "J/10⁹ B", "", Number, |row| energy(row).and_then(|energy| energy.j_per_gb).map(|of| of.high);
    "energy_j_per_gb_n", "", "number of values in the median", Whole, |row| energy(row).and_then(|energy| energy.j_per_gb).map(|of| of.n.into());
    "energy_mj_per_operation", "mJ", "of a request or an operation, above the power at rest", Number, |row| energy(row).and_then(|energy| energy.mj_per_operation).map(|of| of.median);
    "energy_mj_per_operation_low", "mJ", "its 95 % interval", Number, |row| energy(row).and_then(|energy| energy.mj_per_operation).map(|of| of.low);
    "energy_mj_per_operation_high", "mJ", "", Number, |row| energy(row).and_then(|energy| energy.mj_per_operation).map(|of| of.high);
    "energy_mj_per_operation_n", "", "number of values in the median", Whole, |row| energy(row).and_then(|energy| energy.mj_per_operation).map(|of| of.n.into());
    "energy_against", "", "the system that the energy is compared with", Text, |row| energy_cost(row).and_then(|cost| text(&cost.system));
    "energy_ratio", "ratio", "this energy ÷ that one's, pair by pair, median: above 1 is more", Number, |row| energy_cost(row).and_then(|cost| cost.ratio).map(|of| of.median);
    "energy_ratio_low", "ratio", "its 95 % interval", Number, |row| energy_cost(row).and_then(|cost| cost.ratio).map(|of| of.low);
    "energy_ratio_high", "ratio", "", Number, |row| energy_cost(row).and_then(|cost| cost.ratio).map(|of| of.high);
    "energy_ratio_n", "", "pairs", Whole, |row| energy_cost(row).and_then(|cost| cost.ratio).map(|of| of.n.into());
    "energy_more_j_per_gb", "J/10⁹ B", "this energy less that one's, pair by pair, median", Number, |row| energy_cost(row).and_then(|cost| cost.more_j_per_gb).map(|of| of.median);
    "energy_more_j_per_gb_low", "J/10⁹ B", "its 95 % interval", Number, |row| energy_cost(row).and_then(|cost| cost.more_j_per_gb).map(|of| of.low);
    "energy_more_j_per_gb_high", "J/10⁹ B", "", Number, |row| energy_cost(row).and_then(|cost| cost.more_j_per_gb).map(|of| of.high);
    "energy_verdict", "", "more, less, not distinguishable, too few", Text, |row| energy_cost(row).and_then(|cost| word(cost.verdict));
    "idle_w", "W", "power of the machine at rest, before the run", Number, |row| energy(row).map(|energy| energy.idle_w).map(|of| of.median);
    "idle_w_low", "W", "its 95 % interval", Number, |row| energy(row).map(|energy| energy.idle_w).map(|of| of.low);
    "idle_w_high", "W", "", Number, |row| energy(row).map(|energy| energy.idle_w).map(|of| of.high);
};

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_words_that_no_engine_changes() {
        let names: BTreeSet<&str> = COLUMNS.iter().map(|column| column.name).collect();
        assert_eq!(names.len(), COLUMNS.len());
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        assert!(names.iter().all(|name| name.chars().all(plain)));
        assert!(!names.contains("date"));
    }
}
