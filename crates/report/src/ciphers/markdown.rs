//! The tables of bare ciphers as Markdown.

use super::{lines, main_loads};
use crate::figure;
use crate::markdown::escape;
use lab::record::Run;

/// A table for each direction, with the rates over request sizes.
pub(crate) fn tables(run: &Run) -> String {
    let mut out = String::new();
    for load in main_loads(run) {
        out.push_str(&format!(
            "\n## {}\n\nMedians with their 95 % interval.\n\n\
             | cipher | sector | MB/s | time of a request | cycles/B | against the best library | weakest size | \
             constant time | by request size, MB/s |\n|---|---:|---:|---:|---:|---|---|---|---|\n",
            escape(&load.title())
        ));
        for line in lines(run, &load) {
            let curve: Vec<String> = super::curve(run, line.trial)
                .iter()
                .map(|point| {
                    format!(
                        "{}: {}",
                        figure::bytes(point.block_bytes),
                        figure::number(point.throughput_mb_s.median)
                    )
                })
                .collect();
            let cells = [
                line.name.clone(),
                line.trial
                    .sector_bytes
                    .map_or_else(String::new, |bytes| bytes.to_string()),
                figure::interval(line.trial.throughput_mb_s),
                line.time(),
                line.cycles(),
                line.against(),
                line.weakest(),
                line.constant_time().to_owned(),
                curve.join(", "),
            ];
            let cells: Vec<String> = cells.iter().map(|cell| escape(cell)).collect();
            out.push_str(&format!("| {} |\n", cells.join(" | ")));
        }
    }
    out
}
