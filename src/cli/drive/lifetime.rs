//! `cryptmark drive lifetime`: what encryption and its way with TRIM do to an
//! SSD over the years.

use super::{named_ssd, share};
use crate::cli::progress::Progress;
use crate::cli::report::put;
use crate::cli::{Failure, print, stop_on_signal};
use ::drive::lifetime::{Leak, Life, Lived, Setup};
use bytesize::ByteSize;
use clap::Args;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

/// Options of `cryptmark drive lifetime`.
#[derive(Debug, Args)]
pub struct LifetimeOptions {
    /// The drive: a name of `cryptmark drive list`, or a file that ends in .toml
    #[arg(long, value_name = "NAME|FILE.toml")]
    device: String,
    /// What the host writes in a day
    #[arg(long, value_name = "SIZE", default_value = "20GB")]
    daily: ByteSize,
    /// How full the file system is
    #[arg(long, value_name = "SHARE", value_parser = share, default_value = "80%")]
    fill: f64,
    /// How many of the writes go to pages within files; the rest are new files
    #[arg(long, value_name = "SHARE", value_parser = share, default_value = "20%")]
    overwrites: f64,
    /// How much of the drive is left unpartitioned, in the setup that does so
    #[arg(long, value_name = "SHARE", value_parser = share, default_value = "10%")]
    unpartitioned: f64,
    /// What a compressing controller makes of plain data: 0.5 is half
    #[arg(long, value_name = "SHARE", value_parser = share, default_value = "1")]
    compression: f64,
    /// How long to look
    #[arg(long, value_name = "YEARS", default_value_t = 3.0)]
    years: f64,
    /// Another seed writes other files; the same gives the same outcome
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Write the outcome as JSON; - is standard output
    #[arg(long, value_name = "FILE|-")]
    json: Option<PathBuf>,
    /// Show no progress
    #[arg(long)]
    no_progress: bool,
}

/// Runs the command.
pub fn run(options: &LifetimeOptions) -> Result<(), Failure> {
    let ssd = named_ssd(&options.device)?;
    let life = Life {
        ssd: &ssd,
        daily: options.daily.as_u64(),
        fill: options.fill,
        overwrites: options.overwrites,
        years: options.years,
        compression: options.compression,
        seed: options.seed,
    };
    let setups = [
        Setup::Plain,
        Setup::Passed,
        Setup::Blocked,
        Setup::Filled,
        Setup::Unpartitioned {
            left: options.unpartitioned,
        },
    ];
    let stop = stop_on_signal()?;
    let progress = Progress::lives(options.no_progress);
    let mut lives = Vec::new();
    for (number, setup) in setups.into_iter().enumerate() {
        progress.doing(&title(setup));
        let lived = life.live(setup, &mut |done| {
            let parts = (number as f64 + done) * 1000.0;
            progress.counted(parts as u64, setups.len() as u64 * 1000);
            match stop.load(Ordering::Relaxed) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        });
        match lived? {
            Some(lived) => lives.push((setup, lived)),
            None => {
                progress.finish();
                return Err(Failure::new(
                    130,
                    "interrupted",
                    "Nothing was written; fewer --years take less time.",
                ));
            }
        }
    }
    progress.finish();
    let Some(path) = &options.json else {
        return print(&text(&life, &lives));
    };
    let mut json = serde_json::to_string_pretty(&record(options, &life, &lives))
        .map_err(Failure::unprintable)?;
    json.push('\n');
    put(path, &json)
}

fn title(setup: Setup) -> String {
    match setup {
        Setup::Plain => "not encrypted, TRIM".to_owned(),
        Setup::Passed => "encrypted, TRIM passed".to_owned(),
        Setup::Blocked => "encrypted, TRIM blocked".to_owned(),
        Setup::Filled => "the same, filled with noise at first".to_owned(),
        Setup::Unpartitioned { left } => {
            format!("the same, {:.0} % left unpartitioned", left * 100.0)
        }
    }
}

fn text(life: &Life<'_>, lives: &[(Setup, Lived)]) -> String {
    let mut text = format!(
        "{}: {} a day into a file system that is {:.0} % full\n\n{:<38}{:>13}{:>13}{:>13}   {}\n",
        life.ssd.title,
        ByteSize::b(life.daily).display().si(),
        life.fill * 100.0,
        "",
        "flash writes",
        "can write",
        "lasts",
        "who sees the drive without the key sees",
    );
    for (setup, lived) in lives {
        let rate = lived.moments.last().map_or(0.0, |moment| moment.write_mb_s);
        let _ = writeln!(
            text,
            "{:<38}{:>11.2} x{:>8.0} MB/s{:>13}   {}",
            title(*setup),
            lived.write_amplification,
            rate,
            years(lived.lifetime_years),
            lived.leak.as_ref().map_or("everything".to_owned(), seen),
        );
    }
    text.push_str("\nNoise on the drive, from its start to its end:\n");
    for (setup, lived) in lives {
        if let Some(leak) = &lived.leak {
            let _ = writeln!(text, "{:<38}{}", title(*setup), map(leak));
        }
    }
    let _ = write!(text, "\n{}", verdict(lives));
    text
}

fn years(years: f64) -> String {
    match years {
        years if years >= 100.0 => "over 100 years".to_owned(),
        years => format!("{years:.1} years"),
    }
}

fn seen(leak: &Leak) -> String {
    match leak.unused {
        unused if unused < 0.0005 => "noise everywhere".to_owned(),
        unused => format!("{:.1} % unused", unused * 100.0),
    }
}

/// A line of blocks, the darker the more noise.
fn map(leak: &Leak) -> String {
    let shade = |share: &f64| match *share {
        none if none < 0.02 => '·',
        little if little < 0.35 => '░',
        half if half < 0.7 => '▒',
        most if most < 0.98 => '▓',
        _ => '█',
    };
    leak.map.iter().map(shade).collect()
}

/// What it comes to.
fn verdict(lives: &[(Setup, Lived)]) -> String {
    let of = |wanted: fn(&Setup) -> bool| {
        let found = lives.iter().find(|(setup, _)| wanted(setup));
        found.map(|(_, lived)| lived.write_amplification)
    };
    let passed = of(|setup| *setup == Setup::Passed);
    let filled = of(|setup| *setup == Setup::Filled);
    let spared = of(|setup| matches!(setup, Setup::Unpartitioned { .. }));
    let (Some(passed), Some(filled), Some(spared)) = (passed, filled, spared) else {
        return String::new();
    };
    format!(
        "Blocking TRIM on a drive filled at first writes {:.1} times as much to the flash as passing it; \
         what is left unpartitioned brings that down to {:.1}.\n",
        filled / passed,
        spared / passed
    )
}

fn record(options: &LifetimeOptions, life: &Life<'_>, lives: &[(Setup, Lived)]) -> Value {
    let setups: Vec<Value> = lives
        .iter()
        .map(|(setup, lived)| {
            let mut value = json!(lived);
            value["setup"] = match setup {
                Setup::Plain => "plain".into(),
                Setup::Passed => "passed".into(),
                Setup::Blocked => "blocked".into(),
                Setup::Filled => "filled".into(),
                Setup::Unpartitioned { .. } => "unpartitioned".into(),
            };
            value
        })
        .collect();
    json!({
        "schema": "cryptmark-lifetime/1",
        "device": options.device,
        "title": life.ssd.title,
        "daily_bytes": life.daily,
        "fill": life.fill,
        "overwrites": life.overwrites,
        "unpartitioned": options.unpartitioned,
        "compression": life.compression,
        "years": life.years,
        "seed": life.seed,
        "setups": setups,
    })
}
