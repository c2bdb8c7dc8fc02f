//! `cryptmark drive predict`: what a plan would measure on a drive that is not
//! here, plain and encrypted.

use super::named;
use crate::cli::in_memory::in_memory;
use crate::cli::report::put;
use crate::cli::{Failure, print};
use ::drive::DriveError;
use ::drive::closed_loop::{ClosedLoop, Drive, Pattern, Rates};
use ::drive::ftl::Policy;
use ::drive::hdd::Hdd;
use ::drive::preset::Preset;
use ::drive::ssd::SsdDrive;
use bytesize::ByteSize;
use clap::Args;
use lab::plan::Plan;
use lab::workload::{self, Extent, Mix, Workload};
use serde::Serialize;
use std::fmt::Write as _;
use std::path::PathBuf;

/// Requests of a workload that the plan gives a time.
const REQUESTS: u64 = 20_000;

/// Overhead from which on a cipher is said to matter.
const MATTERS: f64 = 0.05;

/// Steps of the search for the rate at which it does.
const STEPS: u32 = 20;

/// Of a large SSD so many times the extent is simulated: all that a plan writes
/// goes into erased blocks there as it would on the whole drive.
const ENOUGH: u64 = 8;

/// Options of `cryptmark drive predict`.
#[derive(Debug, Args)]
pub struct PredictOptions {
    /// The drive: a name of `cryptmark drive list`, or a file that ends in .toml
    #[arg(long, value_name = "NAME|FILE.toml")]
    device: String,
    /// Ciphers, by name (in XTS) or in dm-crypt notation
    #[arg(
        long,
        value_name = "CIPHER",
        value_delimiter = ',',
        default_value = "aes,serpent,twofish"
    )]
    cipher: Vec<String>,
    /// The experiment; `cryptmark plans` lists them
    #[arg(long, value_name = "NAME|FILE", default_value = "anvil")]
    plan: String,
    /// Rate of a cipher on the processor that there would be, aes=145MB/s; measured here without it
    #[arg(long, value_name = "CIPHER=RATE", value_delimiter = ',', value_parser = rate)]
    cpu: Vec<(String, f64)>,
    /// Another seed makes other requests; the same gives the same outcome
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Write the outcome as JSON; - is standard output
    #[arg(long, value_name = "FILE|-")]
    json: Option<PathBuf>,
}

/// A cipher and how fast the processor is at it.
#[derive(Debug, Serialize)]
struct Cipher {
    name: String,
    notation: String,
    mb_s: f64,
    measured: bool,
}

/// A workload on the drive.
#[derive(Debug, Serialize)]
struct Cell {
    workload: String,
    plain_mb_s: f64,
    plain_iops: f64,
    /// Rate of the cipher below which it costs 5 % and more.
    matters_below_mb_s: Option<f64>,
    encrypted: Vec<Encrypted>,
}

#[derive(Debug, Serialize)]
struct Encrypted {
    cipher: String,
    mb_s: f64,
    /// Encrypted ÷ plain.
    ratio: f64,
    /// Share of the time in which the processor encrypted.
    crypto: f64,
    /// Share of the time in which the drive's busiest part was at work.
    drive: f64,
    bottleneck: &'static str,
}

#[derive(Debug, Serialize)]
struct Prediction<'a> {
    schema: &'static str,
    device: &'a str,
    title: &'a str,
    plan: &'a str,
    seed: u64,
    ciphers: &'a [Cipher],
    cells: &'a [Cell],
}

/// Runs the command.
pub fn run(options: &PredictOptions) -> Result<(), Failure> {
    let preset = named(&options.device)?;
    let plan = Plan::load(&options.plan)?;
    if plan.is_bare() {
        return Err(Failure::new(
            2,
            format!("the plan {} asks a drive for nothing", plan.name),
            "Choose one of block devices: anvil, passmark, crystaldiskmark.",
        ));
    }
    let ciphers = options.ciphers()?;
    let mut cells = Vec::new();
    for workload in &plan.workloads {
        let demands = demands(workload, plan.extent_bytes(), options.seed);
        cells.push(cell(workload, &demands, &preset, &ciphers)?);
    }
    let prediction = Prediction {
        schema: "cryptmark-predict/1",
        device: &options.device,
        title: preset.title(),
        plan: &plan.name,
        seed: options.seed,
        ciphers: &ciphers,
        cells: &cells,
    };
    let Some(path) = &options.json else {
        return print(&text(&prediction));
    };
    let mut json = serde_json::to_string_pretty(&prediction).map_err(Failure::unprintable)?;
    json.push('\n');
    put(path, &json)
}

fn demands(workload: &Workload, extent: u64, seed: u64) -> ClosedLoop {
    let request = workload.block_bytes();
    ClosedLoop {
        offset: 0,
        extent,
        request,
        pattern: match workload.pattern {
            workload::Pattern::Sequential => Pattern::Sequential,
            workload::Pattern::Random => Pattern::Random,
        },
        writes: match workload.op {
            Mix::Read | Mix::Decrypt => 0.0,
            Mix::Write | Mix::Encrypt => 1.0,
            Mix::Mixed => 1.0 - f64::from(workload.read_percent.unwrap_or(50)) / 100.0,
        },
        queue_depth: workload.queue_depth * workload.threads,
        requests: match workload.extent() {
            Extent::Bytes(bytes) => (bytes / request).max(1),
            Extent::Time(_) => REQUESTS,
        },
        cipher_mb_s: None,
        seed,
    }
}

fn cell(
    workload: &Workload,
    demands: &ClosedLoop,
    preset: &Preset,
    ciphers: &[Cipher],
) -> Result<Cell, DriveError> {
    let with = |rate: Option<f64>| {
        let demands = ClosedLoop {
            cipher_mb_s: rate,
            ..*demands
        };
        serve(preset, &demands)
    };
    let plain = with(None)?;
    let mut encrypted = Vec::new();
    for cipher in ciphers {
        let rates = with(Some(cipher.mb_s))?;
        encrypted.push(Encrypted {
            cipher: cipher.name.clone(),
            mb_s: rates.mb_s,
            ratio: rates.mb_s / plain.mb_s,
            crypto: rates.crypto,
            drive: rates.drive,
            bottleneck: match rates.crypto > rates.drive {
                true => "cipher",
                false => "device",
            },
        });
    }
    Ok(Cell {
        workload: workload.name.clone(),
        plain_mb_s: plain.mb_s,
        plain_iops: plain.iops,
        matters_below_mb_s: threshold(plain.mb_s, &with)?,
        encrypted,
    })
}

/// The rate at which a cipher costs what matters, by halving on a scale of
/// powers; `None` where it does at any rate that is looked at, or at none.
fn threshold(
    plain: f64,
    with: &dyn Fn(Option<f64>) -> Result<Rates, DriveError>,
) -> Result<Option<f64>, DriveError> {
    let matters = |rate: f64| Ok(with(Some(rate))?.mb_s < plain * (1.0 - MATTERS));
    let (mut low, mut high) = (0.1_f64, 1e6_f64);
    if !matters(low)? || matters(high)? {
        return Ok(None);
    }
    for _ in 0..STEPS {
        let middle = (low * high).sqrt();
        match matters(middle)? {
            true => low = middle,
            false => high = middle,
        }
    }
    Ok(Some(high))
}

/// On a drive at rest, whose extent is written.
fn serve(preset: &Preset, demands: &ClosedLoop) -> Result<Rates, DriveError> {
    let mut drive: Box<dyn Drive> = match preset {
        Preset::Hdd(preset) => Box::new(Hdd::new(preset.clone())?),
        Preset::Ssd(ssd) => {
            let mut ssd = ssd.clone();
            let enough = demands.extent.saturating_mul(ENOUGH);
            ssd.capacity = ByteSize::b(ssd.capacity.as_u64().min(enough));
            let mut drive = SsdDrive::new(&ssd, Policy::Greedy, demands.seed)?;
            drive.fill(0, demands.extent.min(drive.capacity()));
            Box::new(drive)
        }
    };
    demands.run(&mut *drive)
}

fn text(prediction: &Prediction<'_>) -> String {
    let mut text = format!("{}, plan {}\n", prediction.title, prediction.plan);
    for cipher in prediction.ciphers {
        let source = if cipher.measured {
            "measured here"
        } else {
            "given"
        };
        let _ = writeln!(
            text,
            "  {:<10} {:>8.0} MB/s on one core, {source} ({})",
            cipher.name, cipher.mb_s, cipher.notation
        );
    }
    let _ = write!(text, "\n{:<24}{:>12}", "", "plain");
    for cipher in prediction.ciphers {
        let _ = write!(text, "{:>22}", cipher.name);
    }
    let _ = writeln!(text, "{:>24}", "matters below");
    for cell in prediction.cells {
        let _ = write!(
            text,
            "{:<24}{:>12}",
            cell.workload,
            megabytes(cell.plain_mb_s)
        );
        for encrypted in &cell.encrypted {
            let percent = (encrypted.ratio - 1.0) * 100.0;
            let rate = megabytes(encrypted.mb_s);
            let _ = write!(text, "{:>22}", format!("{rate} ({percent:+.1} %)"));
        }
        let matters = cell.matters_below_mb_s;
        let matters = matters.map_or("never".to_owned(), |rate| format!("{rate:.0} MB/s"));
        let _ = writeln!(text, "{matters:>24}");
    }
    let _ = write!(
        text,
        "\nRates in MB/s. A cipher slower on one core than the last column says costs {:.0} % and more there.\n",
        MATTERS * 100.0
    );
    text
}

fn megabytes(rate: f64) -> String {
    match rate {
        rate if rate < 10.0 => format!("{rate:.2}"),
        rate => format!("{rate:.0}"),
    }
}

impl PredictOptions {
    fn ciphers(&self) -> Result<Vec<Cipher>, Failure> {
        let mut ciphers = Vec::new();
        for given in &self.cipher {
            let notation = match given.contains('-') {
                true => given.clone(),
                false => format!("{given}-xts-plain64"),
            };
            let told = self.cpu.iter().find(|(cipher, _)| cipher == given);
            let mb_s = match told {
                Some((_, rate)) => *rate,
                None => measured(&notation)?,
            };
            ciphers.push(Cipher {
                name: given.clone(),
                notation,
                mb_s,
                measured: told.is_none(),
            });
        }
        let unused = self
            .cpu
            .iter()
            .find(|(cipher, _)| !self.cipher.contains(cipher));
        match unused {
            None => Ok(ciphers),
            Some((cipher, _)) => Err(Failure::new(
                2,
                format!("--cpu gives a rate of {cipher}, which is not among --cipher"),
                "Name the cipher there as well, in the same words.",
            )),
        }
    }
}

/// The slower of both directions.
fn measured(notation: &str) -> Result<f64, Failure> {
    let run = in_memory(notation, None, 512, None)?;
    let rates = run.trials.iter().map(|trial| trial.throughput_mb_s.median);
    Ok(rates.fold(f64::INFINITY, f64::min))
}

fn rate(text: &str) -> Result<(String, f64), String> {
    let wrong = || format!("{text} is not a rate; write aes=145MB/s");
    let (cipher, rate) = text.split_once('=').ok_or_else(wrong)?;
    let number = rate.strip_suffix("MB/s").ok_or_else(wrong)?;
    match number.trim().parse::<f64>() {
        Ok(rate) if rate > 0.0 && rate.is_finite() => Ok((cipher.to_owned(), rate)),
        _ => Err(wrong()),
    }
}
