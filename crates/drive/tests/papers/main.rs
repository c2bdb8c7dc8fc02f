//! What published documents say of drives under encryption, against what the
//! simulated drives make of it. Tables, in Markdown:
//!
//! ```text
//! cargo test -p cryptmark-drive --test papers -- --nocapture --test-threads=1
//! ```

extern crate cryptmark_drive as drive;

mod fde_passmark;
#[path = "../host/mod.rs"]
mod host;
mod ssd_truecrypt;
mod storage_ciphers;

use drive::filter::{Filter, Filtered, Manner};
use drive::preset::Preset;
use host::{ClosedLoop, Pattern};

/// Until a thread works that was asleep, microseconds: an event, a scheduler and
/// a core that wakes. Assumed.
const WAKE_US: f64 = 15.0;

fn truecrypt(cipher_mb_s: f64) -> Filter {
    Filter {
        cipher_mb_s,
        wake_us: WAKE_US,
        manner: Manner::TrueCrypt,
    }
}

/// One request at a time within the first 10⁹ bytes.
fn one_by_one(pattern: Pattern, request: u64, writes: f64, requests: u64) -> ClosedLoop {
    ClosedLoop {
        offset: 0,
        extent: 1_000_000_000 / request * request,
        request,
        pattern,
        writes,
        queue_depth: 1,
        requests,
        cipher_mb_s: None,
        cores: 1,
        seed: 1,
    }
}

/// Its rate on a drive at rest, 10⁶ bytes a second, plain or through a filter.
fn rate(preset: &Preset, demands: &ClosedLoop, filter: Option<Filter>) -> f64 {
    let drive = preset.drive(demands.extent, 1).unwrap();
    let rates = match filter {
        None => demands.run(drive),
        Some(filter) => demands.run(Box::new(Filtered::new(drive, filter).unwrap())),
    };
    rates.mb_s
}

/// Where `of` takes `target`, between `low` and `high`, on a scale of powers;
/// it falls or rises all the way.
fn solve(target: f64, low: f64, high: f64, of: impl Fn(f64) -> f64) -> f64 {
    let rises = of(high) > of(low);
    let (mut low, mut high) = (low, high);
    for _ in 0..18 {
        let middle = (low * high).sqrt();
        match (of(middle) < target) == rises {
            true => low = middle,
            false => high = middle,
        }
    }
    (low * high).sqrt()
}
