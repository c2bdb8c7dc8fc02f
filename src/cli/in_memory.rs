//! The rate of a cipher on this machine.

use super::{Failure, stop_on_signal};
use lab::plan::Plan;
use lab::record::Run;
use lab::session::{Session, Unwatched};
use lab::target::{Backend, Storage};
use std::fmt::Write as _;

/// Measures a cipher of the engine in memory, in both directions, with requests of 1 MiB on one
/// core. It takes a quarter of a second.
pub fn in_memory(
    notation: &str,
    key_bits: Option<u32>,
    sector_bytes: u32,
    backend: Option<Backend>,
) -> Result<Run, Failure> {
    let mut plan = format!(
        r#"
title = "the rate of a cipher"
tier = "cipher"
size = "1 MiB"
repetitions = 5
ciphers = ["{notation}"]
sector_size = {sector_bytes}
"#
    );
    if let Some(bits) = key_bits {
        let _ = writeln!(plan, "key_size = {bits}");
    }
    for way in ["encrypt", "decrypt"] {
        let _ = write!(
            plan,
            r#"
[[workload]]
name = "{way}"
pattern = "sequential"
op = "{way}"
block_size = "1 MiB"
seconds = 0.02
"#
        );
    }
    let plan = Plan::parse("rate", &plan)?;
    let storage = Storage::memory(plan.extent_bytes(), 1)?;
    let session = Session::open(&plan, &storage, backend, 1, "rate".to_owned())?;
    let (run, outcome) = session.measure(&*stop_on_signal()?, &mut Unwatched);
    outcome?;
    Ok(run)
}
