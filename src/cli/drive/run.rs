//! `cryptmark drive run`: what a drive writes to its flash under a workload.

use super::share;
use crate::cli::progress::Progress;
use crate::cli::report::put;
use crate::cli::{Failure, print, stop_on_signal};
use ::drive::ftl::{Layout, Policy, WearLevelling};
use ::drive::uniform::{Experiment, Outcome};
use ::drive::workload::Hot;
use clap::{Args, ValueEnum};
use serde_json::json;
use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// The share of a hot-cold workload that is not told otherwise.
const HOT: Hot = Hot {
    pages: 0.2,
    writes: 0.8,
};

/// The drive that has no numbers of its own.
pub const UNIFORM: &str = "ssd-uniform";

/// Options of `cryptmark drive run`.
#[derive(Debug, Args)]
pub struct RunOptions {
    /// The drive
    #[arg(long, value_name = "NAME", default_value = UNIFORM)]
    device: Device,
    /// Which pages are written; hot-cold where --hot is given
    #[arg(long)]
    workload: Option<Workload>,
    /// Erase blocks
    #[arg(long, value_name = "N", default_value_t = 8192)]
    blocks: u32,
    /// Pages of an erase block
    #[arg(long, value_name = "N", default_value_t = 64)]
    pages_per_block: u32,
    /// Pages beyond those that the host can write, 7.37% or 0.0737
    #[arg(long, value_name = "SHARE", value_parser = share, default_value = "7.37%")]
    over_provisioning: f64,
    /// Which block is cleaned: greedy, fifo, random, d-choices:N or cost-benefit
    #[arg(long, value_name = "POLICY", default_value_t = Policy::Greedy)]
    gc: Policy,
    /// How many of the requests discard a page instead of writing one
    #[arg(long, value_name = "SHARE", value_parser = share, default_value = "0")]
    discard_fraction: f64,
    /// Per cent of the pages, and per cent of the writes that go to them [default: 20/80]
    #[arg(long, value_name = "PAGES/WRITES", value_parser = hot)]
    hot: Option<Hot>,
    /// Logs that the drive writes; with 2 the hot pages have their own
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=2))]
    streams: u8,
    /// Erases that the least worn block may be behind before it is cleaned
    #[arg(long, value_name = "ERASES")]
    wear_levelling: Option<u32>,
    /// Writes before counting, in capacities of the drive
    #[arg(long, value_name = "TIMES", default_value_t = 5.0)]
    warmup: f64,
    /// Writes that are counted, in capacities of the drive
    #[arg(long, value_name = "TIMES", default_value_t = 5.0)]
    measure: f64,
    /// Another seed writes other pages; the same gives the same outcome
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Write the outcome as JSON; - is standard output
    #[arg(long, value_name = "FILE|-")]
    json: Option<PathBuf>,
    /// Show no progress
    #[arg(long)]
    no_progress: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Device {
    /// A bare translation layer, without time
    SsdUniform,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Workload {
    /// Every page alike
    Uniform,
    /// Some pages more often than others
    HotCold,
}

/// Runs the command.
pub fn run(options: &RunOptions) -> Result<(), Failure> {
    let experiment = options.experiment()?;
    let stop = stop_on_signal()?;
    let progress = Progress::pages(options.no_progress);
    let start = Instant::now();
    let outcome = experiment.run(&mut |done, total| {
        progress.counted(done, total);
        match stop.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    });
    progress.finish();
    let Some(outcome) = outcome? else {
        return Err(Failure::new(
            130,
            "interrupted",
            "Nothing was counted; smaller --blocks, --warmup or --measure take less time.",
        ));
    };
    let Some(path) = &options.json else {
        let seconds = start.elapsed().as_secs_f64();
        return print(&text(&experiment, &outcome, seconds));
    };
    let mut json = serde_json::to_string_pretty(&options.record(&experiment, &outcome))
        .map_err(Failure::unprintable)?;
    json.push('\n');
    put(path, &json)
}

impl RunOptions {
    fn experiment(&self) -> Result<Experiment, Failure> {
        let hot = match (self.workload, self.hot) {
            (Some(Workload::Uniform), Some(_)) => {
                return Err(Failure::new(
                    2,
                    "--hot says that pages differ, --workload uniform that they do not",
                    "Leave one of them away.",
                ));
            }
            (Some(Workload::HotCold), None) => Some(HOT),
            (_, hot) => hot,
        };
        if self.streams == 2 && hot.is_none() {
            return Err(Failure::new(
                2,
                "--streams 2 separates hot pages from cold ones, and all are alike",
                "Add --hot 20/80.",
            ));
        }
        Ok(Experiment {
            layout: Layout::new(self.blocks, self.pages_per_block, self.over_provisioning)?,
            policy: self.gc,
            wear_levelling: self.wear_levelling.map_or(WearLevelling::None, |spread| {
                WearLevelling::Static { spread }
            }),
            hot,
            separated: self.streams == 2,
            discards: self.discard_fraction,
            warmup: self.warmup,
            measure: self.measure,
            seed: self.seed,
        })
    }

    fn record(&self, experiment: &Experiment, outcome: &Outcome) -> serde_json::Value {
        let Outcome { counts, .. } = outcome;
        json!({
            "schema": "cryptmark-drive/1",
            "device": UNIFORM,
            "workload": if experiment.hot.is_some() { "hot-cold" } else { "uniform" },
            "blocks": experiment.layout.blocks,
            "pages_per_block": experiment.layout.pages_per_block,
            "logical_pages": experiment.layout.logical_pages,
            "over_provisioning": self.over_provisioning,
            "gc": experiment.policy.to_string(),
            "discard_fraction": experiment.discards,
            "hot": experiment.hot.map(|hot| json!({ "pages": hot.pages, "writes": hot.writes })),
            "streams": self.streams,
            "stream_blocks": outcome.logs,
            "wear_levelling": self.wear_levelling,
            "warmup": experiment.warmup,
            "measure": experiment.measure,
            "seed": experiment.seed,
            "write_amplification": counts.write_amplification(),
            "closed_form": experiment.expected(),
            "host_pages": counts.host,
            "flash_pages": counts.flash(),
            "relocated_pages": counts.relocated,
            "discarded_pages": counts.discarded,
            "pages_in_use": outcome.in_use,
            "erase_counts": outcome.erases,
        })
    }
}

fn text(experiment: &Experiment, outcome: &Outcome, seconds: f64) -> String {
    let Experiment { layout, .. } = experiment;
    let counts = &outcome.counts;
    let amplification = counts.write_amplification().unwrap_or(f64::NAN);
    let mut text = format!("write amplification   {amplification:.3}");
    if let Some(expected) = experiment.expected() {
        let error = (amplification / expected - 1.0) * 100.0;
        let _ = write!(text, "   (closed form {expected:.3}, {error:+.2} %)");
    }
    let in_use = f64::from(outcome.in_use) / f64::from(layout.logical_pages) * 100.0;
    let least = outcome.erases.iter().min().copied().unwrap_or(0);
    let most = outcome.erases.iter().max().copied().unwrap_or(0);
    let erased: u64 = outcome.erases.iter().copied().map(u64::from).sum();
    let mean = erased as f64 / outcome.erases.len() as f64;
    let _ = write!(
        text,
        "\nwritten by the host   {} pages\nwritten to the flash  {} pages\nin use at the end     {in_use:.1} % of {} pages\n\
         erases of a block     {mean:.1} (least {least}, most {most}) of {} blocks\nseed                  {}\nsimulated in          {seconds:.1} s\n",
        counts.host,
        counts.flash(),
        layout.logical_pages,
        layout.blocks,
        experiment.seed,
    );
    text
}

fn hot(text: &str) -> Result<Hot, String> {
    let wrong = || format!("{text} is not two shares; write 20/80");
    let (pages, writes) = text.split_once('/').ok_or_else(wrong)?;
    let percent = |text: &str| text.trim_end_matches('%').parse::<f64>().ok();
    match (percent(pages), percent(writes)) {
        (Some(pages), Some(writes)) => Ok(Hot {
            pages: pages / 100.0,
            writes: writes / 100.0,
        }),
        _ => Err(wrong()),
    }
}
