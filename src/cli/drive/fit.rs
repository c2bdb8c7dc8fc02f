//! `cryptmark drive fit`: the numbers of a simulated drive that does what a
//! real one does.

use crate::cli::progress::Progress;
use crate::cli::report::{check, put};
use crate::cli::volume::disk::Disk;
use crate::cli::whole::Kind;
use crate::cli::{Failure, print, stop_on_signal};
use ::drive::preset::Preset;
use block::{BlockDevice, FileDevice, FileOptions, PathKind};
use bytesize::ByteSize;
use clap::Args;
use lab::LabError;
use lab::system::fit::{Bench, Fit, Real, Virtual, fit, probes, written};
use lab::system::{Place, Storage, simulated};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// Options of `cryptmark drive fit`.
#[derive(Debug, Args)]
pub struct FitOptions {
    /// The storage to measure: a directory, a file or a block device
    #[arg(long, value_name = "PATH")]
    at: PathBuf,
    /// The drive of the same kind to start from: a name from `cryptmark drive list`, or a file that ends in .toml [default: hdd-wd for disks, tlc-1t for others]
    #[arg(long, value_name = "NAME|FILE.toml")]
    from: Option<String>,
    /// Write the fitted drive to this TOML file
    #[arg(long, value_name = "FILE.toml")]
    out: Option<PathBuf>,
    /// Size of the test file, or of the part of a file or device to write, e.g. 500MB
    #[arg(long, default_value = "1GB")]
    size: ByteSize,
    /// Seed; another one visits other blocks
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Show no progress
    #[arg(long)]
    no_progress: bool,
    /// Overwrite the contents of the file or device that --at names
    #[arg(long)]
    yes: bool,
}

/// The least size: room for the largest requests, and for a disk's memory.
const LEAST: u64 = 128_000_000;

/// Sizes are multiples of this.
const ALIGNMENT: u64 = 4096;

/// Error of a figure from which on the drive is said to be another.
const UNLIKE: f64 = 0.25;

/// How often a search simulates the drive, about; for progress only.
const SEARCH: u64 = 120;

/// Runs the command.
pub fn run(options: &FitOptions) -> Result<(), Failure> {
    options.check()?;
    let kind = lab::probe::describe(&options.at).kind;
    let name = match (&options.from, kind.as_str()) {
        (Some(name), _) => name.as_str(),
        (None, "hdd") => "hdd-wd",
        (None, _) => "tlc-1t",
    };
    let base = simulated::toml(name)?;
    let from = simulated::preset(name)?;
    if let Preset::Flash(_) = from {
        return Err(Failure::new(
            2,
            format!("{name} is a flash chip; its numbers are in its data sheet"),
            "Start from a disk or an SSD of `cryptmark drive list`.",
        ));
    }
    let whole = whole(&options.at)?;
    let extent = options.size.as_u64() / ALIGNMENT * ALIGNMENT;
    let stop = stop_on_signal()?;
    let from = match &whole {
        Some(device) => from.sized(device.geometry().size),
        None => from,
    };
    // Refused before anything is written.
    Virtual::new(&from, [extent; 2], options.seed, &stop)?;

    let progress = Progress::new(options.no_progress, extent);
    let _claim = Disk::claim_to_measure(&options.at)?;
    let storage = prepare(options, extent, &progress, &stop);
    progress.finish();
    let storage = storage?;
    // Sectors that were never written take as long to read on a disk.
    let read: &dyn BlockDevice = match (&from, &whole) {
        (Preset::Hdd(_), Some(whole)) => whole,
        _ => &*storage.device,
    };
    let bench = Real {
        read,
        written: &*storage.device,
        seed: options.seed,
        stop: &stop,
    };
    let reach = [read.geometry().size, extent];
    let progress = Progress::lives(options.no_progress);
    let found = measure(bench, &from, reach, &progress, &stop);
    progress.finish();
    let found = found?;

    let mut text = table(name, &found);
    for warning in &storage.warnings {
        let _ = writeln!(text, "warning: {warning}");
    }
    let Some(out) = &options.out else {
        text.push_str("--out FILE.toml writes this drive, for `drive show`, `drive predict` and `run --system drive:FILE.toml`.\n");
        return print(&text);
    };
    let model = storage.description.model.as_deref().unwrap_or("a device");
    let title = format!("{model}, fitted from {name}");
    let source = format!(
        "fitted to what {model} did at {} on {}",
        options.at.display(),
        jiff::Zoned::now().date()
    );
    let capacity = whole.map(|device| device.geometry().size);
    put(
        out,
        Kind::Other,
        &written(&base, &found, &title, &source, capacity),
    )?;
    print(&text)
}

impl FitOptions {
    fn check(&self) -> Result<(), Failure> {
        if self.size.as_u64() < LEAST {
            return Err(Failure::new(
                2,
                format!("--size {} is too small to fit a drive", self.size),
                "Give 128MB or more; 1GB is the default.",
            ));
        }
        match &self.out {
            Some(out) if out.extension().is_none_or(|end| end != "toml") => Err(Failure::new(
                2,
                format!("--out {} has no .toml suffix", out.display()),
                "Give a name that ends in .toml.",
            )),
            Some(out) => check(out, Kind::Other),
            None => Ok(()),
        }
    }
}

/// All of a block device, for reading.
fn whole(at: &Path) -> Result<Option<FileDevice>, Failure> {
    // A missing file is reported when the extent is made.
    let kind = fs::metadata(at).ok().and_then(|there| PathKind::of(&there));
    if kind != Some(PathKind::BlockDevice) {
        return Ok(None);
    }
    let options = FileOptions {
        write: false,
        direct: true,
        engine: None,
        hold: block::Hold::Usual,
    };
    match FileDevice::open(at, &options) {
        Ok(device) => Ok(Some(device)),
        Err(error) => Err(LabError::from(error).into()),
    }
}

fn prepare(
    options: &FitOptions,
    extent: u64,
    progress: &Progress,
    stop: &AtomicBool,
) -> Result<Storage, Failure> {
    let place = Place {
        at: &options.at,
        size: extent,
        seed: options.seed,
        overwrite: options.yes,
        engine: None,
    };
    Ok(Storage::prepare(place, &mut progress.filling(stop))?)
}

/// Asks the device, and looks for the drive that answers alike.
fn measure(
    mut bench: impl Bench,
    from: &Preset,
    reach: [u64; 2],
    progress: &Progress,
    stop: &AtomicBool,
) -> Result<Fit, LabError> {
    let probes = probes(from);
    let all = probes.len() as u64 + SEARCH;
    let mut measured = Vec::new();
    for (done, probe) in (0..).zip(&probes) {
        progress.doing(probe.name);
        progress.counted(done, all);
        measured.push(bench.figure(probe)?);
    }
    progress.doing("fitting the drive");
    let mut report = |simulated| progress.counted(probes.len() as u64 + simulated, all);
    fit(from, &probes, &measured, reach, stop, &mut report)
}

fn table(name: &str, fit: &Fit) -> String {
    let mut text = format!(
        "{:<24}{:>14}{:>14}{:>10}\n",
        "", "measured", "fitted", "error"
    );
    for cell in &fit.cells {
        let figure = |value: f64| format!("{} {}", digits(value), cell.shows.unit());
        let _ = writeln!(
            text,
            "{:<24}{:>14}{:>14}{:>8.1} %",
            cell.probe,
            figure(cell.measured),
            figure(cell.fitted),
            cell.error() * 100.0
        );
    }
    let _ = writeln!(text, "\n{:<24}{name:>14}{:>14}", "", "fitted");
    for number in &fit.numbers {
        let after = match number.seen {
            true => digits(number.after),
            false => "not shown".to_owned(),
        };
        let _ = writeln!(
            text,
            "{:<24}{:>14}{after:>14}",
            number.key,
            digits(number.before)
        );
    }
    let worst = fit
        .cells
        .iter()
        .map(|cell| cell.error().abs())
        .fold(0.0, f64::max);
    if worst > UNLIKE {
        let _ = writeln!(
            text,
            "\nwarning: figures differ by up to {:.0} %; the measured device isn't of this kind, or was busy",
            worst * 100.0
        );
    }
    text.push_str("\nNumbers that affect no figure keep their values. Numbers that act only together cannot be told apart.\n");
    text
}

/// Four digits.
fn digits(value: f64) -> String {
    match value.abs() {
        large if large >= 1000.0 => format!("{value:.0}"),
        middle if middle >= 100.0 => format!("{value:.1}"),
        small if small >= 10.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}
