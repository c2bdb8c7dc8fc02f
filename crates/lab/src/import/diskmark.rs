//! What CrystalDiskMark 7 and later and KDiskMark copy and save as text:
//! `SEQ    1MiB (Q=  8, T= 1):   562.430 MB/s [    536.4 IOPS] < 14895.06 us>`.

use super::{ImportError, Measurement, Results, Work, device};
use crate::record::{Latency, Tier};

pub(super) fn read(text: &str) -> Result<Results, ImportError> {
    let (tool, name) = match text.contains("KDiskMark") {
        true => ("kdiskmark", "KDiskMark"),
        false => ("crystaldiskmark", "CrystalDiskMark"),
    };
    let mut measurements = Vec::new();
    let mut op = None;
    let mut started = None;
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if let Some(section) = line.strip_prefix('[') {
            op = match section.split(']').next() {
                Some("Read") => Some("read"),
                Some("Write") => Some("write"),
                Some("Mix") => Some("mixed"),
                _ => None,
            };
        } else if let Some(date) = line.strip_prefix("Date:") {
            started = when(date.trim());
        } else if line.contains("(Q=") {
            let op = op.ok_or(ImportError::Line { number })?;
            let measured = row(line, op).ok_or(ImportError::Line { number })?;
            // What was not measured stands there as zero.
            measurements.extend((measured.mb_s > 0.0).then_some(measured));
        }
    }
    if measurements.is_empty() {
        return Err(ImportError::Empty { tool });
    }
    Ok(Results {
        tool,
        version: version(text, name),
        started,
        left_out: Vec::new(),
        measurements,
    })
}

/// `CrystalDiskMark 8.0.4 x64 (C) …`, `KDiskMark (3.0.0): …`.
fn version(text: &str, name: &str) -> Option<String> {
    let line = text.lines().find(|line| line.contains(name))?;
    let word = line.split(name).nth(1)?.split_whitespace().next()?;
    let digits = word.trim_matches(|sign: char| !sign.is_ascii_digit());
    (!digits.is_empty()).then(|| digits.to_owned())
}

/// `2021/05/09 12:00:00`, `2021-05-09 12:00:00`, of whatever clock hung there.
fn when(date: &str) -> Option<String> {
    let date: jiff::civil::DateTime = date.replace('/', "-").parse().ok()?;
    Some(format!("{date}Z"))
}

fn row(line: &str, op: &'static str) -> Option<Measurement> {
    let (what, rest) = line.split_once("(Q=")?;
    let (queues, rest) = rest.split_once(',')?;
    let (threads, rest) = rest.trim_start().strip_prefix("T=")?.split_once("):")?;
    let (rate, rest) = rest.split_once("MB/s")?;
    let number = |text: &str| -> Option<f64> {
        let number: f64 = text.trim().parse().ok()?;
        (number.is_finite() && number >= 0.0).then_some(number)
    };
    let between = |open: char, close: &str| {
        let (_, rest) = rest.split_once(open)?;
        number(rest.split_once(close)?.0)
    };
    let (queue_depth, threads) = (queues.trim().parse().ok()?, threads.trim().parse().ok()?);
    let word = what.split_whitespace().next()?;
    let block = what.strip_prefix(word)?.replace(' ', "");
    let (pattern, block_bytes) = match word {
        "SEQ" | "Sequential" => ("seq", size(&block)?),
        "RND" | "Random" => ("rnd", size(&block)?),
        _ => return None,
    };
    let mb_s = number(rate)?;
    let short = block.trim_end_matches("iB").to_lowercase();
    Some(Measurement {
        work: Work {
            tier: Tier::Block,
            cipher: None,
            key_bits: None,
            // As the plans `crystaldiskmark` and `crystaldiskmark-nvme` call it.
            workload: format!("{pattern}{short}-q{queue_depth}t{threads}-{op}"),
            op,
            block_bytes,
            queue_depth,
            threads,
            device: device("direct", "unknown"),
        },
        seconds: 0.0,
        bytes: 0,
        requests: 0,
        mb_s,
        iops: between('[', "IOPS").unwrap_or(mb_s * 1e6 / block_bytes as f64),
        // It prints the mean, and no percentile.
        latency_us: Latency::default(),
        user: None,
        sys: None,
    })
}

/// `1MiB`, `4KiB`.
fn size(text: &str) -> Option<u64> {
    let (number, unit) = text.split_at(text.find(|sign: char| !sign.is_ascii_digit())?);
    let number: u64 = number.parse().ok()?;
    let unit = match unit {
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        _ => return None,
    };
    number.checked_mul(unit).filter(|bytes| *bytes > 0)
}
