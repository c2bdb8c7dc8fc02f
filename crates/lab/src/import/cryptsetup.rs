//! Reads the output of `cryptsetup benchmark`: `aes-xts  256b  3869.1 MiB/s  3845.0 MiB/s`. The words
//! around it, and the sign before decimals, are those of the user's language.

use super::{ImportError, Measurement, Results, Work, device};
use crate::record::Tier;
use std::sync::Arc;

const TOOL: &str = "cryptsetup benchmark";

/// Bytes of its requests, unless an option sets another size.
const REQUEST: u64 = 64 << 10;

/// Whether a line of `text` is one of results.
pub(super) fn is_benchmark(text: &str) -> bool {
    text.contains("Algorithm |") || text.lines().any(is_row)
}

/// Whether the second word is a key's length, and a rate follows.
fn is_row(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let key = words.nth(1).and_then(|word| word.strip_suffix('b'));
    key.is_some_and(|bits| bits.parse::<u32>().is_ok()) && line.contains("MiB/s")
}

pub(super) fn read(text: &str) -> Result<Results, ImportError> {
    let mut measurements = Vec::new();
    let mut derivations = false;
    for (number, line) in (1..).zip(text.lines()) {
        derivations |= line.starts_with("PBKDF2-") || line.starts_with("argon2");
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

/// Both directions of a line; what stands for one that it has not measured are words of the user's
/// language.
fn rows(line: &str) -> Option<Vec<Measurement>> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (cipher, rest) = words.split_first()?;
    let (key, rest) = rest.split_first()?;
    let key_bits = key.strip_suffix('b')?.parse().ok()?;
    // No cipher has a longer key, nor one of a part of a byte.
    if !(40..=1024).contains(&key_bits) || key_bits % 8 != 0 {
        return None;
    }
    let is_number = |word: &str| word.starts_with(|sign: char| sign.is_ascii_digit());
    let rates: &[(&str, &str)] = match rest {
        [first, "MiB/s", second, "MiB/s"] => &[("encrypt", first), ("decrypt", second)],
        [first, "MiB/s", none @ ..] if !none.iter().any(|word| is_number(word)) => {
            &[("encrypt", first)]
        }
        [none @ .., second, "MiB/s"] if !none.iter().any(|word| is_number(word)) => {
            &[("decrypt", second)]
        }
        _ => return None,
    };
    let mut rows = Vec::new();
    for &(op, rate) in rates {
        let mb_s = rate.replace(',', ".").parse::<f64>().ok()? * (1 << 20) as f64 / 1e6;
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
                block_bytes: Some(REQUEST),
                queue_depth: Some(1),
                threads: Some(1),
                device: device("unknown", "memory"),
            }),
            seconds: None,
            bytes: None,
            requests: None,
            mb_s,
            iops: mb_s * 1e6 / REQUEST as f64,
            latency_us: None,
            user: None,
            sys: None,
        });
    }
    Some(rows)
}
