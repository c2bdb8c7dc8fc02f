//! What `hyperfine --export-json` writes.

use super::{ImportError, Measurement, Results, Work, device};
use crate::record::{Latency, Tier};
use serde::Deserialize;

const TOOL: &str = "hyperfine";

#[derive(Deserialize)]
pub(super) struct Output {
    results: Vec<Command>,
}

#[derive(Deserialize)]
struct Command {
    command: String,
    /// Seconds of every run.
    #[serde(default)]
    times: Vec<f64>,
    /// Means, seconds.
    user: Option<f64>,
    system: Option<f64>,
}

pub(super) fn read(output: Output) -> Result<Results, ImportError> {
    let mut measurements = Vec::new();
    let mut left_out = Vec::new();
    for command in output.results {
        let work = Work {
            tier: Tier::Fs,
            cipher: None,
            key_bits: None,
            workload: command.command,
            op: "command",
            block_bytes: 0,
            queue_depth: 1,
            threads: 1,
            device: device("unknown", TOOL),
        };
        let measurable = |seconds: &f64| seconds.is_finite() && *seconds > 0.0;
        if !command.times.iter().all(measurable) {
            left_out = vec!["commands that took no time beyond their shell's"];
            continue;
        }
        measurements.extend(command.times.into_iter().map(|seconds| Measurement {
            work: work.clone(),
            seconds,
            bytes: 0,
            requests: 1,
            mb_s: 0.0,
            iops: 1.0 / seconds,
            latency_us: Latency::default(),
            user: command.user,
            sys: command.system,
        }));
    }
    if measurements.is_empty() {
        return Err(ImportError::Empty { tool: TOOL });
    }
    Ok(Results {
        tool: TOOL,
        version: None,
        started: None,
        left_out,
        measurements,
    })
}
