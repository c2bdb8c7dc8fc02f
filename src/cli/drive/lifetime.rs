//! `cryptmark drive lifetime`: what encryption and its way with TRIM do to an
//! SSD over the years.

use super::{go_on, put_json, share};
use crate::cli::progress::Progress;
use crate::cli::report::{check_both, put};
use crate::cli::whole::Kind;
use crate::cli::{Failure, print, stop_on_signal};
use ::drive::ftl::Policy;
use ::drive::lifetime::{BLOCKS, Life, Lived, Setup};
use ::drive::ssd::Ssd;
use ::report::lifetime::{self as told, Lifetime};
use bytesize::ByteSize;
use clap::Args;
use lab::system::simulated;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// The record of lives.
const RECORD: Kind = Kind::Json("cryptmark-lifetime");

/// Options of `cryptmark drive lifetime`.
#[derive(Debug, Args)]
pub struct LifetimeOptions {
    #[command(flatten)]
    question: Question,
    /// Write the result as JSON; - is standard output
    #[arg(long, value_name = "FILE|-")]
    json: Option<PathBuf>,
    /// Write the result as one HTML page with pictures
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Show no progress
    #[arg(long)]
    no_progress: bool,
}

/// The drive, and how it is used.
#[derive(Debug, Args)]
pub struct Question {
    /// The drive: a name from `cryptmark drive list`, or a file that ends in .toml
    #[arg(long, value_name = "NAME|FILE.toml")]
    pub device: String,
    /// Data that the host writes per day
    #[arg(long, value_name = "SIZE", default_value = "20GB")]
    pub daily: ByteSize,
    /// How full the file system is
    #[arg(long, value_name = "SHARE", value_parser = share, default_value = "80%")]
    pub fill: f64,
    /// Share of the writes that go to pages within files; the rest are new files
    #[arg(long, value_name = "SHARE", value_parser = share, default_value = "20%")]
    pub overwrites: f64,
    /// Share of the drive left unpartitioned, in the setup with such a part
    #[arg(long, value_name = "SHARE", value_parser = share, default_value = "10%")]
    pub unpartitioned: f64,
    /// Size of plain data after the controller has compressed it: 0.5 is half
    #[arg(long, value_name = "SHARE", value_parser = share, default_value = "1")]
    pub compression: f64,
    /// Years to simulate
    #[arg(long, value_name = "YEARS", default_value_t = 3.0)]
    pub years: f64,
    /// Seed of the files; the same seed gives the same result
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Blocks that are simulated
    #[arg(skip = BLOCKS)]
    pub blocks: u32,
}

/// Runs the command.
pub fn run(options: &LifetimeOptions) -> Result<(), Failure> {
    let ssd = simulated::ssd(&options.question.device)?;
    check_both(options.html.as_deref(), options.json.as_deref(), RECORD)?;
    let stop = stop_on_signal()?;
    let progress = Progress::lives(options.no_progress);
    let lived = options.question.answer(&ssd, &mut |doing, done, total| {
        progress.doing(doing);
        progress.counted(done, total);
        go_on(&stop)
    });
    progress.finish();
    match lived? {
        Some(record) => tell(options, &record),
        None => Err(Failure::new(
            130,
            "interrupted",
            "Nothing was written; fewer --years take less time.",
        )),
    }
}

impl Question {
    /// Lives through the years in every setup. `hear` gets what is done, how much of it, and all of
    /// it; `None` if it ends that.
    pub fn answer(
        &self,
        ssd: &Ssd,
        hear: &mut dyn FnMut(&'static str, u64, u64) -> ControlFlow<()>,
    ) -> Result<Option<Lifetime>, Failure> {
        let life = Life {
            ssd,
            blocks: self.blocks,
            policy: Policy::Greedy,
            daily: self.daily.as_u64(),
            fill: self.fill,
            overwrites: self.overwrites,
            years: self.years,
            compression: self.compression,
            seed: self.seed,
        };
        let setups = [
            Setup::Plain,
            Setup::Passed,
            Setup::Blocked,
            Setup::Filled,
            Setup::Unpartitioned {
                left: self.unpartitioned,
            },
        ];
        let mut lives = Vec::new();
        for (number, setup) in setups.into_iter().enumerate() {
            let lived = life.live(setup, &mut |done| {
                let parts = (number as f64 + done) * 1000.0;
                hear(doing(setup), parts as u64, setups.len() as u64 * 1000)
            });
            match lived? {
                Some(lived) => lives.push(life_of(setup, lived)),
                None => return Ok(None),
            }
        }
        Ok(Some(Lifetime {
            schema: told::SCHEMA,
            device: self.device.clone(),
            title: ssd.title.clone(),
            daily_bytes: life.daily,
            fill: life.fill,
            overwrites: life.overwrites,
            unpartitioned: self.unpartitioned,
            compression: life.compression,
            years: life.years,
            seed: life.seed,
            setups: lives,
        }))
    }
}

/// Writes the files that were asked for, and prints what is not JSON.
fn tell(options: &LifetimeOptions, record: &Lifetime) -> Result<(), Failure> {
    if let Some(path) = &options.html {
        put(path, Kind::Html, &::report::html::lifetime(record))?;
    }
    if let Some(path) = &options.json {
        return put_json(path, RECORD, record);
    }
    match &options.html {
        // The page is on standard output.
        Some(path) if path == Path::new("-") => Ok(()),
        _ => print(&told::text(record, &crate::cli::style())),
    }
}

fn doing(setup: Setup) -> &'static str {
    match setup {
        Setup::Plain => "not encrypted",
        Setup::Passed => "encrypted, TRIM passed",
        Setup::Blocked => "encrypted, TRIM blocked",
        Setup::Filled => "filled with noise at first",
        Setup::Unpartitioned { .. } => "a part left unpartitioned",
    }
}

/// The report of a drive's simulated life.
fn life_of(setup: Setup, lived: Lived) -> told::Life {
    told::Life {
        setup: match setup {
            Setup::Plain => told::Setup::Plain,
            Setup::Passed => told::Setup::Passed,
            Setup::Blocked => told::Setup::Blocked,
            Setup::Filled => told::Setup::Filled,
            Setup::Unpartitioned { .. } => told::Setup::Unpartitioned,
        },
        moments: lived
            .moments
            .iter()
            .map(|moment| told::Moment {
                years: moment.years,
                write_amplification: moment.write_amplification,
                write_mb_s: moment.write_mb_s,
            })
            .collect(),
        steady_after: lived.steady_after,
        write_amplification: lived.write_amplification,
        lifetime_years: lived.lifetime_years,
        terabytes_written: lived.terabytes_written,
        erases: lived.erases,
        leak: lived.leak.map(|leak| told::Leak {
            unused: leak.unused,
            map: leak.map,
            right: leak.right,
        }),
    }
}
