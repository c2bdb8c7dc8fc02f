//! `cryptmark drive predict`: what a plan would measure on a drive that is not
//! here, plain and encrypted.

use super::{go_on, put_json};
use crate::cli::progress::Progress;
use crate::cli::report::check;
use crate::cli::run::check_rates;
use crate::cli::whole::Kind;
use crate::cli::{Failure, print, stop_on_signal};
use bytesize::ByteSize;
use clap::Args;
use lab::experiment::{Changes, Experiment};
use lab::record::Bottleneck;
use lab::session::simulated::rate;
use lab::summary;
use lab::system::simulated::{self, CipherRate, Driver, Simulated};
use lab::system::{Encryption, notation};
use lab::trial::{self, Options, Sample};
use lab::workload::Workload;
use serde::Serialize;
use std::fmt::Write as _;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

/// Requests of a workload that the plan gives a time, unless fewer fill its extent.
const REQUESTS: u64 = 20_000;

/// Encryption sectors of a disk, bytes.
const SECTOR: u32 = 512;

/// Overhead from which on a cipher is said to matter.
const MATTERS: f64 = 0.05;

/// Steps of the search for the rate at which it does.
const STEPS: u32 = 20;

/// Options of `cryptmark drive predict`.
#[derive(Debug, Args)]
pub struct PredictOptions {
    /// The drive: a name from `cryptmark drive list`, or a file that ends in .toml
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
    #[arg(long, value_name = "NAME|FILE", default_value = "storage-ciphers")]
    plan: String,
    /// Size of the test file, e.g. 100MB [default: the plan's]
    #[arg(long)]
    size: Option<ByteSize>,
    /// Cipher throughput on the target CPU, e.g. aes=145MB/s [default: measured here]
    #[arg(long, value_name = "CIPHER=RATE", value_delimiter = ',', value_parser = crate::cli::run::rate)]
    cpu: Vec<(String, CipherRate)>,
    /// Driver model: queue (encrypts while the drive works), in-turn (the drive waits) or truecrypt (its Windows threads)
    #[arg(long, value_name = "DRIVER", default_value_t = Driver::Queue)]
    driver: Driver,
    /// Seed of the requests; the same seed gives the same result
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Write the result as JSON; - is standard output
    #[arg(long, value_name = "FILE|-")]
    json: Option<PathBuf>,
    /// Show no progress
    #[arg(long)]
    no_progress: bool,
}

/// The record of a prediction.
const RECORD: Kind = Kind::Json("cryptmark-predict");

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
    /// Share of the time in which the host waited for the cipher.
    crypto: f64,
    /// Share of the time in which the drive's busiest part was at work.
    drive: f64,
    bottleneck: Bottleneck,
}

#[derive(Debug, Serialize)]
struct Prediction<'a> {
    schema: &'static str,
    device: &'a str,
    title: &'a str,
    plan: &'a str,
    seed: u64,
    driver: Driver,
    ciphers: &'a [Cipher],
    cells: &'a [Cell],
}

/// Runs the command.
pub fn run(options: &PredictOptions) -> Result<(), Failure> {
    options
        .json
        .as_ref()
        .map_or(Ok(()), |path| check(path, RECORD))?;
    let preset = simulated::preset(&options.device)?;
    let experiment = Experiment::load(&options.plan)?.changed(&Changes {
        size: options.size,
        ..Changes::default()
    })?;
    let Experiment::Devices(plan) = experiment else {
        return Err(Failure::new(
            2,
            format!(
                "the plan {} sends no requests to a drive",
                experiment.name()
            ),
            "Choose a plan for block devices: storage-ciphers, fde-passmark, crystaldiskmark.",
        ));
    };
    let extent = plan.extent_bytes();
    let stop = stop_on_signal()?;
    let progress = Progress::new(options.no_progress, extent);
    progress.doing("filling the simulated drive");
    let drive = Simulated::open(&options.device, extent, options.seed, &mut |filled| {
        progress.filled(filled);
        go_on(&stop)
    });
    progress.finish();
    let host = Host {
        drive: drive?,
        driver: options.driver,
        seed: options.seed,
        stop: &stop,
    };
    let ciphers = options.ciphers()?;
    let mut cells = Vec::new();
    for workload in &plan.workloads {
        cells.push(host.cell(&counted(workload, extent), &ciphers)?);
    }
    let prediction = Prediction {
        schema: "cryptmark-predict/1",
        device: &options.device,
        title: preset.title(),
        plan: &plan.name,
        seed: options.seed,
        driver: options.driver,
        ciphers: &ciphers,
        cells: &cells,
    };
    match &options.json {
        Some(path) => put_json(path, RECORD, &prediction),
        None => print(&text(&prediction)),
    }
}

/// The same workload. If the plan gives it a time, it gets a count instead that makes its result
/// steady.
fn counted(workload: &Workload, extent: u64) -> Workload {
    let mut workload = workload.clone();
    if workload.seconds.take().is_some() {
        let block = workload.block_bytes();
        let bytes = (REQUESTS * block).min(extent / block * block);
        workload.bytes = Some(ByteSize::b(bytes));
    }
    workload
}

/// A host with a drive that is not here.
struct Host<'a> {
    drive: Simulated,
    driver: Driver,
    seed: u64,
    stop: &'a AtomicBool,
}

impl Host<'_> {
    fn cell(&self, workload: &Workload, ciphers: &[Cipher]) -> Result<Cell, Failure> {
        let (plain, _) = self.serve(workload, None)?;
        let plain_mb_s = plain.mb_s();
        let mut encrypted = Vec::new();
        for cipher in ciphers {
            let (sample, drive) = self.serve(workload, Some(cipher.mb_s))?;
            encrypted.push(Encrypted {
                cipher: cipher.name.clone(),
                mb_s: sample.mb_s(),
                ratio: sample.mb_s() / plain_mb_s,
                crypto: sample.ledger.crypto / sample.ledger.threads,
                drive,
                bottleneck: summary::bottleneck(&sample.ledger),
            });
        }
        Ok(Cell {
            workload: workload.name.clone(),
            plain_mb_s,
            plain_iops: plain.iops(),
            matters_below_mb_s: self.threshold(workload, plain_mb_s)?,
            encrypted,
        })
    }

    /// The cipher rate below which the loss of throughput matters, by bisection on a logarithmic
    /// scale, MB/s. `None` if it matters at every rate examined, or at none.
    fn threshold(&self, workload: &Workload, plain: f64) -> Result<Option<f64>, Failure> {
        let matters = |rate: f64| {
            let (sample, _) = self.serve(workload, Some(rate))?;
            Ok::<bool, Failure>(sample.mb_s() < plain * (1.0 - MATTERS))
        };
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

    /// Serves the workload plain, or with a cipher of this rate, MB/s, on one core. Also returns
    /// the share of the time in which the drive's busiest part was at work.
    fn serve(&self, workload: &Workload, rate: Option<f64>) -> Result<(Sample, f64), Failure> {
        let processor = rate.map(|mb_s| simulated::processor(self.driver, NonZeroU32::MIN, mb_s));
        let device = self.drive.device(processor.transpose()?);
        let options = Options {
            seed: self.seed,
            metered: true,
            slice: false,
            stop: self.stop,
            clock: &simulated::clock(),
        };
        match trial::run(&device, workload, options) {
            Ok(sample) => Ok((sample, device.utilisation())),
            Err(error) => Err(error.into()),
        }
    }
}

fn text(prediction: &Prediction<'_>) -> String {
    let mut text = format!(
        "{}, plan {}, driver {}\n",
        prediction.title, prediction.plan, prediction.driver
    );
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
        "\nRates in MB/s. A cipher costs {:.0} % or more if one core is slower with it than the last column.\n",
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
        check_rates(&self.cpu)?;
        let mut ciphers = Vec::new();
        for given in &self.cipher {
            let notation = notation(given);
            let told = self.cpu.iter().find(|(cipher, _)| cipher == given);
            let mb_s = match told {
                Some((_, given)) => given.0,
                None => {
                    let encryption = Encryption::parse(&notation, None, SECTOR, None);
                    rate(encryption?)?.median
                }
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
                format!("--cpu gives a rate for {cipher}, which --cipher does not list"),
                "Add it to --cipher in the same notation.",
            )),
        }
    }
}
