//! One row a trial, every scalar field, for spreadsheets and data frames.

use crate::beside::printed;
use lab::record::{Interval, Life, Overhead, Published, Run, Trial};
use serde::Serialize;
use std::borrow::Cow;

/// The columns, in order; new ones are only ever added at the end.
const HEADER: &str = "\
    run plan started partial seed cpu cores kernel os aa_ratio aa_low aa_high noise tier \
    system system_version backend cipher key_bits sector_bytes format device_kind device_model \
    device_path_kind device_filesystem device_cache device_write_cache device_engine \
    device_scheduler device_size fs workload op block_bytes queue_depth threads repetitions \
    bytes requests throughput_mb_s throughput_mb_s_low throughput_mb_s_high throughput_n iops \
    iops_low iops_high iops_n cycles_per_byte cycles_per_byte_low cycles_per_byte_high \
    cycles_per_byte_n latency_p50_us latency_p90_us latency_p99_us latency_p99_9_us \
    latency_max_us wall_s user_s sys_s crypto_s copy_s submit_s wait_s other_s \
    latency_queue_us latency_crypto_us latency_device_us against overhead_ratio overhead_low \
    overhead_high overhead_n verdict bottleneck steady_state constant_time clock_hz governor \
    hypervisor warnings published trim_policy over_provisioning gc fill daily_bytes first_seed \
    write_amplification write_amplification_low write_amplification_high write_amplification_n \
    lifetime_years lifetime_years_low lifetime_years_high lifetime_years_n terabytes_written \
    terabytes_written_low terabytes_written_high terabytes_written_n smallest_difference";

/// The names of the columns.
pub fn header() -> Vec<&'static str> {
    HEADER.split_whitespace().collect()
}

/// The runs as CSV with a [`header`]; unknown values are empty fields, several
/// warnings or published figures are separated by ` | `.
pub fn render(runs: &[Run]) -> String {
    let mut writer = ::csv::WriterBuilder::new()
        .flexible(true)
        .from_writer(Vec::new());
    let rows = std::iter::once(header().into_iter().map(str::to_owned).collect()).chain(
        runs.iter()
            .flat_map(|run| run.trials.iter().map(move |trial| row(run, trial))),
    );
    for row in rows {
        let row = row.iter().map(|cell| harmless(cell));
        // Writing to memory has no way to fail.
        writer
            .write_record(row.map(|cell| cell.into_owned().into_bytes()))
            .ok();
    }
    let bytes = writer.into_inner().unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A cell that no spreadsheet takes for a formula: behind an apostrophe where it
/// begins like one and is not a number.
fn harmless(cell: &str) -> Cow<'_, str> {
    let suspect = cell.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let number = || cell.parse::<f64>().is_ok_and(f64::is_finite);
    match suspect && !number() {
        true => format!("'{cell}").into(),
        false => cell.into(),
    }
}

fn row(run: &Run, trial: &Trial) -> Vec<String> {
    let host = &run.host;
    let device = &trial.device;
    let time = &trial.time_s;
    let latency = &trial.latency_us;
    let split = trial.latency_split_us;
    let overhead = trial.overhead.as_ref();
    let mut row = vec![
        run.run.clone(),
        run.plan.clone(),
        run.started.clone(),
        run.partial.to_string(),
        run.seed.to_string(),
        host.cpu.clone(),
        host.cores.to_string(),
        host.kernel.clone(),
        host.os.clone(),
    ];
    row.extend(interval(run.noise.aa_ratio).into_iter().take(3));
    row.extend([
        word(run.noise.verdict),
        word(trial.tier),
        trial.system.clone(),
        trial.system_version.clone(),
        text(&trial.backend),
        text(&trial.cipher),
        text(&trial.key_bits),
        text(&trial.sector_bytes),
        text(&trial.format),
        device.kind.clone(),
        text(&device.model),
        device.path_kind.clone(),
        text(&device.filesystem),
        device.cache.clone(),
        text(&device.write_cache),
        device.engine.clone(),
        text(&device.scheduler),
        device.size.to_string(),
        text(&trial.fs()),
        trial.workload.clone(),
        trial.op.clone(),
        trial.block_bytes.to_string(),
        trial.queue_depth.to_string(),
        trial.threads.to_string(),
        trial.repetitions.to_string(),
        trial.bytes.to_string(),
        trial.requests.to_string(),
    ]);
    row.extend(interval(Some(trial.throughput_mb_s)));
    row.extend(interval(Some(trial.iops)));
    row.extend(interval(trial.cycles_per_byte));
    row.extend(
        [
            latency.p50,
            latency.p90,
            latency.p99,
            latency.p99_9,
            latency.max,
        ]
        .map(float),
    );
    row.push(float(time.wall));
    row.extend(
        [
            time.user,
            time.sys,
            time.crypto,
            time.copy,
            time.submit,
            time.wait,
            time.other,
            split.map(|split| split.queue),
            split.map(|split| split.crypto),
            split.map(|split| split.device),
        ]
        .map(|value| value.map_or_else(String::new, float)),
    );
    row.push(overhead.map_or_else(String::new, |overhead| overhead.against.clone()));
    row.extend(interval(overhead.map(|overhead| overhead.ratio)));
    row.extend([
        overhead.map_or_else(String::new, |Overhead { verdict, .. }| word(verdict)),
        word(trial.bottleneck),
        text(&trial.steady_state),
        text(&trial.constant_time),
        host.clock_hz.map_or_else(String::new, float),
        text(&host.governor),
        text(&host.hypervisor),
        trial.warnings.join(" | "),
        published(trial).join(" | "),
    ]);
    let life = trial.life();
    let told = |value: fn(&Life) -> String| life.map_or_else(String::new, value);
    row.extend([
        told(|life| word(life.policy)),
        told(|life| float(life.over_provisioning)),
        told(|life| life.gc.clone()),
        told(|life| float(life.fill)),
        told(|life| life.daily_bytes.to_string()),
        told(|life| life.first_seed.to_string()),
    ]);
    row.extend(interval(life.map(|life| life.write_amplification)));
    row.extend(interval(life.map(|life| life.lifetime_years)));
    row.extend(interval(life.map(|life| life.terabytes_written)));
    let smallest = overhead.and_then(|overhead| overhead.smallest);
    row.push(smallest.map_or_else(String::new, float));
    row
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

fn interval(interval: Option<Interval>) -> [String; 4] {
    interval.map_or_else(Default::default, |interval| {
        [
            float(interval.median),
            float(interval.low),
            float(interval.high),
            interval.n.to_string(),
        ]
    })
}

fn float(value: f64) -> String {
    if value.is_finite() {
        value.to_string()
    } else {
        String::new()
    }
}

fn text(value: &Option<impl ToString>) -> String {
    value.as_ref().map_or_else(String::new, ToString::to_string)
}

/// The word that JSON uses for a value of an enumeration.
fn word(value: impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => String::new(),
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
            assert_eq!(harmless(formula), format!("'{formula}"));
        }
        for plain in [
            "", "-1", "-0.5", "+3", "-1e-7", "1-2", "aes=xts", "'=1", "ext4",
        ] {
            assert_eq!(harmless(plain), plain);
        }
    }
}
