//! The rate of a cipher on this machine.

use super::{Failure, stop_on_signal};
use lab::experiment::Ciphers;
use lab::record::Run;
use lab::session::{Session, Unwatched};
use lab::system::Backend;
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
    let mut plan = Ciphers::parse("rate", &plan)?;
    plan.backend = backend;
    let session = Session::of_ciphers(&plan, 1, "rate".to_owned())?;
    let (run, outcome) = session.measure(&*stop_on_signal()?, &mut Unwatched);
    outcome?;
    Ok(run)
}
