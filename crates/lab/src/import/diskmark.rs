//! Reads the text that CrystalDiskMark and KDiskMark copy and save:
//! `SEQ    1MiB (Q=  8, T= 1):   562.430 MB/s [    536.4 IOPS] < 14895.06 us>`.

use super::{ImportError, Measurement, Results, Work, device};
use crate::record::{Latency, Tier};
use std::sync::Arc;

pub(super) fn read(text: &str) -> Result<Results, ImportError> {
    let (tool, name) = match text.contains("KDiskMark") {
        true => ("kdiskmark", "KDiskMark"),
        false => ("crystaldiskmark", "CrystalDiskMark"),
    };
    // It divides KiB by 1000: 10,000 requests of 4 KiB a second are its 40 MB/s.
    let unit = match tool {
        "kdiskmark" => 1.024,
        _ => 1.0,
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
        } else if line.contains("(Q=") || is_row(line) {
            let measured = row(line, op, unit).ok_or(ImportError::Line { number })?;
            // Tests that were not measured are listed with zero.
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

/// The time in `2021/05/09 12:00:00` or `2021-05-09 12:00:00`. Its time zone is unknown.
fn when(date: &str) -> Option<String> {
    let date: jiff::civil::DateTime = date.replace('/', "-").parse().ok()?;
    Some(format!("{date}Z"))
}

/// Whether a line is one of results.
fn is_row(line: &str) -> bool {
    let pattern = line.split([' ', '(']).next().and_then(pattern);
    pattern.is_some() && line.contains("MB/s")
}

fn pattern(word: &str) -> Option<&'static str> {
    match word {
        "SEQ" | "Sequential" => Some("seq"),
        "RND" | "Random" => Some("rnd"),
        _ => None,
    }
}

/// One line; `op` is that of its section, and `unit` what its MB is, 10⁶ bytes.
///
/// Version 3 has `Random Read 4KB (QD=32)`, 5 and 6 `Random Read 4KiB (Q= 32,T= 1)`, and in both a
/// stream is one of 1 MiB.
fn row(line: &str, op: Option<&'static str>, unit: f64) -> Option<Measurement> {
    let (what, rest) = line.split_once(':')?;
    let (what, load) = match what.split_once('(') {
        Some((what, load)) => (what, Some(load.trim_end().strip_suffix(')')?)),
        None => (what, None),
    };
    let after = |text: &str, name: &str| -> Option<u32> {
        text.trim().strip_prefix(name)?.trim().parse().ok()
    };
    let (queue_depth, threads) = match load {
        None => (1, 1),
        Some(load) => match load.split_once(',') {
            Some((queues, threads)) => (after(queues, "Q=")?, after(threads, "T=")?),
            None => (after(load, "QD=")?, 1),
        },
    };
    let mut words = what.split_whitespace();
    let pattern = pattern(words.next()?)?;
    let (mut block, mut op) = (String::new(), op);
    for word in words {
        match word {
            "Read" => op = Some("read"),
            "Write" => op = Some("write"),
            "Mix" => op = Some("mixed"),
            size => block += size,
        }
    }
    let op = op?;
    let block_bytes = match block.is_empty() {
        true => 1 << 20,
        false => size(&block)?,
    };
    let (rate, rest) = rest.split_once("MB/s")?;
    let number = |text: &str| -> Option<f64> {
        // Some systems write a comma there.
        let number: f64 = text.trim().replace(',', ".").parse().ok()?;
        (number.is_finite() && number >= 0.0).then_some(number)
    };
    let between = |open: char, close: &str| {
        let (_, rest) = rest.split_once(open)?;
        number(rest.split_once(close)?.0)
    };
    let mb_s = number(rate)? * unit;
    let short = match block_bytes {
        kib if kib < 1 << 20 => format!("{}k", kib >> 10),
        mib => format!("{}m", mib >> 20),
    };
    Some(Measurement {
        work: Arc::new(Work {
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
        }),
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
        "KiB" | "KB" => 1 << 10,
        "MiB" | "MB" => 1 << 20,
        _ => return None,
    };
    number.checked_mul(unit).filter(|bytes| *bytes > 0)
}
