//! Reads the file that `hyperfine --export-json` writes.

use super::{ImportError, Measurement, Results, Work, device};
use crate::record::Tier;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::Arc;

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
    /// The exit code of every run; `None` for a run that was killed.
    #[serde(default)]
    exit_codes: Vec<Option<i64>>,
    /// The parameters with which the command was measured, by name.
    #[serde(default)]
    parameters: BTreeMap<String, String>,
    /// Means, seconds.
    user: Option<f64>,
    system: Option<f64>,
}

impl Command {
    /// In one line, with its parameters.
    fn name(&self) -> String {
        let mut name = self.command.replace(['\n', '\r', '\t'], " ");
        let parameters: Vec<String> = self
            .parameters
            .iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        if !parameters.is_empty() {
            name += &format!(" ({})", parameters.join(", "));
        }
        name
    }
}

pub(super) fn read(outputs: Vec<Output>) -> Result<Results, ImportError> {
    let mut measurements = Vec::new();
    let mut left_out = Vec::new();
    for command in outputs.into_iter().flat_map(|output| output.results) {
        let work = Arc::new(Work {
            tier: Tier::Fs,
            cipher: None,
            key_bits: None,
            workload: command.name(),
            op: "command",
            block_bytes: None,
            queue_depth: None,
            threads: None,
            device: device("unknown", TOOL),
        });
        let measurable = |seconds: &f64| seconds.is_finite() && *seconds > 0.0;
        if !command.times.iter().all(measurable) {
            left_out.push("commands that took no longer than their shell");
            continue;
        }
        if command.exit_codes.iter().any(|code| *code != Some(0)) {
            left_out.push("commands that failed");
            continue;
        }
        measurements.extend(command.times.into_iter().map(|seconds| Measurement {
            work: Arc::clone(&work),
            seconds: Some(seconds),
            bytes: None,
            requests: Some(1),
            mb_s: 0.0,
            iops: 1.0 / seconds,
            latency_us: None,
            user: command.user,
            sys: command.system,
        }));
    }
    left_out.sort_unstable();
    left_out.dedup();
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
