//! `cryptmark drive run`: what a drive writes to its flash under a workload.

mod wear;

use super::{go_on, put_json, share};
use crate::cli::progress::Progress;
use crate::cli::report::check;
use crate::cli::whole::Kind;
use crate::cli::{Failure, print, stop_on_signal};
use ::drive::DriveError;
use ::drive::ftl::{Layout, Policy, WearLevelling};
use ::drive::replay::{Replay, ReplayError};
use ::drive::trace::Reader;
use ::drive::uniform::{Experiment, Outcome};
use ::drive::workload::Hot;
use bytesize::ByteSize;
use clap::Args;
use serde_json::json;
use std::fmt::Write as _;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Writes before counting and while counting, in capacities.
const WARMUP: f64 = 5.0;
const MEASURE: f64 = 5.0;

/// Sizes of the bare layer.
const BLOCKS: u32 = 8192;
const PAGES_PER_BLOCK: u32 = 64;
const PAGE_SIZE: ByteSize = ByteSize::kib(4);
const SPARE: f64 = 0.0737;

/// The share of a hot-cold workload that is not told otherwise.
const HOT: Hot = Hot {
    pages: 0.2,
    writes: 0.8,
};

/// The drive that has no numbers of its own.
pub const UNIFORM: &str = "ssd-uniform";

/// The record of what a drive writes.
const RECORD: Kind = Kind::Json("cryptmark-drive");

/// Options of `cryptmark drive run`.
#[derive(Debug, Args)]
pub struct RunOptions {
    /// The drive: ssd-uniform, or the name or .toml file of a drive with kind = "flash"
    #[arg(long, value_name = "NAME|FILE.toml", default_value = UNIFORM)]
    device: String,
    /// The pages to write: uniform, hot-cold (the default with --hot), or a trace of fio, DiskSim, MQSim, MSR Cambridge or blkparse
    #[arg(long, value_name = "uniform|hot-cold|TRACE")]
    workload: Option<PathBuf>,
    /// Number of erase blocks
    #[arg(long, value_name = "N", default_value_t = BLOCKS)]
    blocks: u32,
    /// Pages per erase block
    #[arg(long, value_name = "N", default_value_t = PAGES_PER_BLOCK)]
    pages_per_block: u32,
    /// Size of a page; it matters only for traces
    #[arg(long, value_name = "SIZE", default_value = "4KiB")]
    page_size: ByteSize,
    /// Spare pages relative to the pages that the host can write, e.g. 7.37% or 0.0737
    #[arg(long, value_name = "SHARE", value_parser = share, default_value = "7.37%")]
    over_provisioning: f64,
    /// Policy that picks the block to clean: greedy, fifo, random, d-choices:N or cost-benefit
    #[arg(long, value_name = "POLICY", default_value_t = Policy::Greedy)]
    gc: Policy,
    /// Share of the requests that discard a page instead of writing one
    #[arg(long, value_name = "SHARE", value_parser = share, default_value = "0")]
    discard_fraction: f64,
    /// The hot pages, in per cent of all, and the per cent of writes that go to them [default: 20/80]
    #[arg(long, value_name = "PAGES/WRITES", value_parser = hot)]
    hot: Option<Hot>,
    /// Logs that the drive writes; with 2, the hot pages have their own
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=2))]
    streams: u8,
    /// Clean the least worn block when it is behind by more than this number of erases
    #[arg(long, value_name = "ERASES")]
    wear_levelling: Option<u32>,
    /// Writes before counting starts, as a multiple of the drive's capacity
    #[arg(long, value_name = "TIMES", default_value_t = WARMUP)]
    warmup: f64,
    /// Writes to count, as a multiple of the drive's capacity
    #[arg(long, value_name = "TIMES", default_value_t = MEASURE)]
    measure: f64,
    /// Seed of the pages; the same seed gives the same result
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Write the result as JSON; - is standard output
    #[arg(long, value_name = "FILE|-")]
    json: Option<PathBuf>,
    /// Show no progress
    #[arg(long)]
    no_progress: bool,
}

/// The words that --workload takes and that do not name a file.
const UNIFORM_WORKLOAD: &str = "uniform";
const HOT_COLD: &str = "hot-cold";

/// Runs the command.
pub fn run(options: &RunOptions) -> Result<(), Failure> {
    options
        .json
        .as_ref()
        .map_or(Ok(()), |path| check(path, RECORD))?;
    if options.device != UNIFORM {
        return wear::run(options);
    }
    match options.trace() {
        Some(path) => replay(options, path),
        None => measure(options),
    }
}

fn measure(options: &RunOptions) -> Result<(), Failure> {
    let experiment = options.experiment()?;
    let stop = stop_on_signal()?;
    let progress = Progress::pages(options.no_progress);
    let start = Instant::now();
    let outcome = experiment.run(&mut |done, total| {
        progress.counted(done, total);
        go_on(&stop)
    });
    progress.finish();
    let outcome = outcome?.ok_or_else(interrupted)?;
    let workload = match experiment.hot {
        Some(_) => HOT_COLD,
        None => UNIFORM_WORKLOAD,
    };
    let closed_form = experiment.expected();
    options.tell(&experiment.layout, &outcome, workload, closed_form, start)
}

/// Plays a trace.
fn replay(options: &RunOptions, path: &Path) -> Result<(), Failure> {
    options.refuse_what_is_no_traces()?;
    let page_bytes = options.page_size.as_u64();
    if page_bytes == 0 {
        return Err(Failure::new(
            2,
            "a page of 0 bytes is not possible",
            "Give a --page-size such as 4KiB.",
        ));
    }
    let name = path.display().to_string();
    let trace = open(path)?;
    let stop = stop_on_signal()?;
    let progress = Progress::requests(options.no_progress);
    let start = Instant::now();
    let replay = Replay {
        layout: options.layout()?,
        policy: options.gc,
        wear_levelling: options.levelling(),
        page_bytes,
        seed: options.seed,
    };
    let outcome = replay.play(trace, &mut |done| {
        progress.filled(done);
        go_on(&stop)
    });
    progress.finish();
    let outcome = outcome.map_err(|error| unplayable(&error, &name))?;
    let outcome = outcome.ok_or_else(interrupted)?;
    options.tell(&replay.layout, &outcome, &name, None, start)
}

fn open(path: &Path) -> Result<Reader<BufReader<File>>, Failure> {
    let file = File::open(path).map_err(|error| {
        Failure::new(
            2,
            format!("cannot read {}: {error}", path.display()),
            "Give uniform, hot-cold, or the file of a trace.",
        )
    })?;
    Ok(Reader::new(BufReader::new(file)))
}

fn unplayable(error: &ReplayError, name: &str) -> Failure {
    let failure = Failure::of(2, error, error.remedy());
    match error {
        ReplayError::Trace(_) => failure.within(name),
        _ => failure,
    }
}

fn interrupted() -> Failure {
    Failure::new(
        130,
        "interrupted",
        "Nothing was counted; smaller --blocks, --warmup or --measure take less time.",
    )
}

impl RunOptions {
    /// The pages that are hotter than others.
    fn hot(&self) -> Result<Option<Hot>, Failure> {
        let workload = self.workload.as_deref().and_then(Path::to_str);
        match (workload, self.hot) {
            (Some(UNIFORM_WORKLOAD), Some(_)) => Err(Failure::new(
                2,
                "--hot contradicts --workload uniform, in which all pages are alike",
                "Omit one of them.",
            )),
            (Some(HOT_COLD), None) => Ok(Some(HOT)),
            (_, hot) => Ok(hot),
        }
    }

    fn experiment(&self) -> Result<Experiment, Failure> {
        let hot = self.hot()?;
        if self.streams == 2 && hot.is_none() {
            return Err(Failure::new(
                2,
                "--streams 2 separates hot pages from cold ones, but all pages are alike",
                "Add --hot 20/80.",
            ));
        }
        Ok(Experiment {
            layout: self.layout()?,
            policy: self.gc,
            wear_levelling: self.levelling(),
            hot,
            separated: self.streams == 2,
            discards: self.discard_fraction,
            warmup: self.warmup,
            measure: self.measure,
            seed: self.seed,
        })
    }

    /// The trace that is to be played.
    fn trace(&self) -> Option<&Path> {
        let workload = self.workload.as_deref()?;
        let is_word = [UNIFORM_WORKLOAD, HOT_COLD]
            .map(Path::new)
            .contains(&workload);
        (!is_word).then_some(workload)
    }

    fn layout(&self) -> Result<Layout, Failure> {
        let layout = Layout::new(self.blocks, self.pages_per_block, self.over_provisioning)?;
        let (pages, bytes) = (layout.pages(), layout.memory());
        // The system grants memory that may be missing when it is used.
        match lab::probe::available_memory() {
            Some(available) if available < bytes => Err(DriveError::Memory { pages, bytes }.into()),
            _ => Ok(layout),
        }
    }

    fn levelling(&self) -> WearLevelling {
        match self.wear_levelling {
            Some(spread) => WearLevelling::Static { spread },
            None => WearLevelling::None,
        }
    }

    /// A trace says itself what is written, and how often.
    fn refuse_what_is_no_traces(&self) -> Result<(), Failure> {
        let given = [
            ("--hot", self.hot.is_some()),
            ("--streams", self.streams != 1),
            ("--discard-fraction", self.discard_fraction != 0.0),
            ("--warmup", self.warmup != WARMUP),
            ("--measure", self.measure != MEASURE),
        ];
        let remedy = "Omit it. A trace is played once, on a drive that was filled in order.";
        refuse(&given, "a trace", remedy)
    }

    /// A chip has its own sizes, and no policies.
    fn refuse_what_is_no_chips(&self) -> Result<(), Failure> {
        let given = [
            ("--blocks", self.blocks != BLOCKS),
            ("--pages-per-block", self.pages_per_block != PAGES_PER_BLOCK),
            ("--page-size", self.page_size != PAGE_SIZE),
            (
                "--over-provisioning",
                (self.over_provisioning - SPARE).abs() > 1e-9,
            ),
            ("--gc", self.gc != Policy::Greedy),
            ("--discard-fraction", self.discard_fraction != 0.0),
            ("--streams", self.streams != 1),
            ("--wear-levelling", self.wear_levelling.is_some()),
        ];
        let remedy = "Omit it. `cryptmark drive show` prints the chip's TOML, which you can edit.";
        refuse(&given, "a flash chip", remedy)
    }

    /// Prints what came of it, or writes it as JSON.
    fn tell(
        &self,
        layout: &Layout,
        outcome: &Outcome,
        workload: &str,
        closed_form: Option<f64>,
        start: Instant,
    ) -> Result<(), Failure> {
        let Some(path) = &self.json else {
            let seconds = start.elapsed().as_secs_f64();
            return print(&self.text(layout, outcome, closed_form, seconds));
        };
        let Outcome { counts, .. } = outcome;
        let record = json!({
            "schema": "cryptmark-drive/1",
            "device": UNIFORM,
            "workload": workload,
            "blocks": layout.blocks,
            "pages_per_block": layout.pages_per_block,
            "page_bytes": self.page_size.as_u64(),
            "logical_pages": layout.logical_pages,
            "over_provisioning": self.over_provisioning,
            "gc": self.gc.to_string(),
            "discard_fraction": self.discard_fraction,
            "hot": self.hot.map(|hot| json!({ "pages": hot.pages, "writes": hot.writes })),
            "streams": self.streams,
            "stream_blocks": outcome.logs,
            "wear_levelling": self.wear_levelling,
            "warmup": self.warmup,
            "measure": self.measure,
            "seed": self.seed,
            "write_amplification": counts.write_amplification(),
            "closed_form": closed_form,
            "host_pages": counts.host,
            "flash_pages": counts.flash(),
            "relocated_pages": counts.relocated,
            "discarded_pages": counts.discarded,
            "pages_in_use": outcome.in_use,
            "erase_counts": outcome.erases,
        });
        put_json(path, RECORD, &record)
    }

    fn text(
        &self,
        layout: &Layout,
        outcome: &Outcome,
        closed_form: Option<f64>,
        seconds: f64,
    ) -> String {
        let counts = &outcome.counts;
        let mut text = String::from("write amplification   ");
        match counts.write_amplification() {
            Some(amplification) => {
                let _ = write!(text, "{amplification:.3}");
                if let Some(expected) = closed_form {
                    let error = (amplification / expected - 1.0) * 100.0;
                    let _ = write!(text, "   (closed form {expected:.3}, {error:+.2} %)");
                }
            }
            None => text.push_str("none: the host wrote nothing"),
        }
        let in_use = f64::from(outcome.in_use) / f64::from(layout.logical_pages) * 100.0;
        let _ = write!(
            text,
            "\nwritten by the host   {} pages\nwritten to the flash  {} pages\nin use at the end     {in_use:.1} % of {} pages\n\
             {}\nseed                  {}\nsimulated in          {seconds:.1} s\n",
            counts.host,
            counts.flash(),
            layout.logical_pages,
            erases(&outcome.erases),
            self.seed,
        );
        text
    }
}

/// How often the blocks were erased.
fn erases(blocks: &[u32]) -> String {
    let least = blocks.iter().min().copied().unwrap_or(0);
    let most = blocks.iter().max().copied().unwrap_or(0);
    let erased: u64 = blocks.iter().copied().map(u64::from).sum();
    let mean = erased as f64 / blocks.len() as f64;
    format!(
        "erases of a block     {mean:.1} (least {least}, most {most}) of {} blocks",
        blocks.len()
    )
}

/// Refuses the first option that was given.
fn refuse(given: &[(&str, bool)], subject: &str, remedy: &str) -> Result<(), Failure> {
    match given.iter().find(|(_, given)| *given) {
        None => Ok(()),
        Some((name, _)) => Err(Failure::new(
            2,
            format!("{name} does not apply to {subject}"),
            remedy,
        )),
    }
}

fn hot(text: &str) -> Result<Hot, String> {
    let wrong = || format!("{text} isn't a pair of shares; write 20/80");
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
