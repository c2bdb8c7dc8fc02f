//! Reads the output of `cryptsetup benchmark`: `aes-xts  256b  3869.1 MiB/s  3845.0 MiB/s`.

use super::{ImportError, Measurement, Results, Work, device};
use crate::record::{Latency, Tier};
use std::sync::Arc;

const TOOL: &str = "cryptsetup benchmark";

/// Bytes of its requests, unless an option sets another size.
const REQUEST: u64 = 64 << 10;

pub(super) fn read(text: &str) -> Result<Results, ImportError> {
    let mut measurements = Vec::new();
    let mut derivations = false;
    for (number, line) in (1..).zip(text.lines()) {
        derivations |= line.contains("iterations per second") || line.contains("parallel threads");
        if !line.contains("MiB/s") || line.trim_start().starts_with('#') {
            continue;
        }
        let unreadable = ImportError::Line { number };
        measurements.extend(rows(line).ok_or(unreadable)?);
    }
    if measurements.is_empty() {
        return Err(ImportError::Empty { tool: TOOL });
    }
    Ok(Results {
        tool: TOOL,
        version: None,
        started: None,
        left_out: match derivations {
            true => vec!["key derivations, which cryptmark measures as whole keyslots"],
            false => Vec::new(),
        },
        measurements,
    })
}

/// Both directions of a line; one that it has not measured is left out.
fn rows(line: &str) -> Option<Vec<Measurement>> {
    let mut words = line.split_whitespace().filter(|word| *word != "MiB/s");
    let cipher = words.next()?;
    let key_bits = words.next()?.strip_suffix('b')?.parse().ok()?;
    let mut rows = Vec::new();
    for op in ["encrypt", "decrypt"] {
        let mb_s = match words.next()? {
            "N/A" => continue,
            rate => rate.parse::<f64>().ok()? * (1 << 20) as f64 / 1e6,
        };
        if !mb_s.is_finite() || mb_s <= 0.0 {
            return None;
        }
        rows.push(Measurement {
            work: Arc::new(Work {
                tier: Tier::Cipher,
                // It has no IV generator; the usual one costs next to nothing.
                cipher: Some(format!("{cipher}-plain64")),
                key_bits: Some(key_bits),
                workload: format!("{op}-64k"),
                op,
                block_bytes: REQUEST,
                queue_depth: 1,
                threads: 1,
                device: device("unknown", "memory"),
            }),
            seconds: 0.0,
            bytes: 0,
            requests: 0,
            mb_s,
            iops: mb_s * 1e6 / REQUEST as f64,
            latency_us: Latency::default(),
            user: None,
            sys: None,
        });
    }
    words.next().is_none().then_some(rows)
}
