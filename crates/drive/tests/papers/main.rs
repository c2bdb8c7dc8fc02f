//! Published results on drives under encryption, compared with those of the simulated drives.
//! Tables, in Markdown:
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

use drive::Driver;
use drive::preset::Preset;
use host::{ClosedLoop, Pattern};

/// A driver, and the rate of its cipher on all its cores.
type Encryption = (Driver, f64);

fn truecrypt(cipher_mb_s: f64) -> Encryption {
    (Driver::TrueCrypt, cipher_mb_s)
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
        driver: Driver::Queue,
        seed: 1,
    }
}

/// Its rate on a drive at rest, 10⁶ bytes a second, plain or encrypted.
fn rate(preset: &Preset, demands: &ClosedLoop, by: Option<Encryption>) -> f64 {
    let drive = preset.drive(demands.extent, 1).unwrap();
    encrypted(demands, by).run(drive).mb_s
}

fn encrypted(demands: &ClosedLoop, by: Option<Encryption>) -> ClosedLoop {
    let driver = by.map_or(Driver::Queue, |(driver, _)| driver);
    ClosedLoop {
        driver,
        cipher_mb_s: by.map(|(_, mb_s)| mb_s),
        ..*demands
    }
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
