//! `cryptmark import`: results of other programs, and runs from other machines.

use super::{Failure, open_store_to_measure, print_done};
use clap::Args;
use lab::import::{self, Imported, Results};
use lab::record::Run;
use lab::store::TakenOver;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The largest file that is read, bytes. A larger one is not a result of these programs.
const MOST: u64 = 64 << 20;

/// Options of `cryptmark import`.
#[derive(Debug, Args)]
pub struct ImportOptions {
    /// JSON of cryptmark, fio or hyperfine, text of CrystalDiskMark, KDiskMark or cryptsetup benchmark, or XML of DiskSpd; a test found in several files counts as repeated
    #[arg(required = true, value_name = "FILE|-")]
    files: Vec<PathBuf>,
    /// The system that another program measured, named as in the runs to compare with; none is a plain device
    #[arg(long, value_name = "SYSTEM", default_value = "none")]
    system: String,
}

/// Runs the command.
pub fn run(options: &ImportOptions, store: Option<&str>) -> Result<(), Failure> {
    let mut runs = Vec::new();
    let mut results = Vec::new();
    let mut written = None;
    for path in &options.files {
        let name = path.display().to_string();
        match read(path).map_err(|failure| failure.within(&name))? {
            Imported::Runs(found) => runs.extend(found),
            Imported::Results(found) => {
                results.push(found);
                written = written.or_else(|| when(path));
            }
        }
    }
    if !results.is_empty() {
        runs.push(foreign(&results, options, written)?);
    }
    let store = open_store_to_measure(store)?;
    let mut text = String::new();
    for (run, taken) in runs.iter().zip(store.take_over(&runs)?) {
        let id = &run.run;
        let cells = match run.trials.len() {
            1 => "1 cell".to_owned(),
            cells => format!("{cells} cells"),
        };
        let _ = match taken {
            TakenOver::Stored => writeln!(text, "Imported {cells} of {} as run {id}.", run.plan),
            TakenOver::Completed => writeln!(
                text,
                "Imported {cells} of {} as run {id}, of which a part was stored already.",
                run.plan
            ),
            TakenOver::There => writeln!(text, "Run {id} is stored already."),
            TakenOver::Superseded { by } => {
                writeln!(text, "Run {id} is not needed: its shard is stored as {by}.")
            }
        };
    }
    let left_out: BTreeSet<_> = results.iter().flat_map(|found| &found.left_out).collect();
    for what in left_out {
        let _ = writeln!(text, "Left out: {what}.");
    }
    print_done(&text);
    Ok(())
}

fn read(path: &Path) -> Result<Imported, Failure> {
    let unreadable = |error: std::io::Error| {
        Failure::of(2, &error, "Give a file that exists and that you may read.")
    };
    let input: Box<dyn Read> = match path == Path::new("-") {
        true => Box::new(std::io::stdin()),
        false => Box::new(File::open(path).map_err(unreadable)?),
    };
    let mut bytes = Vec::new();
    let taken = input.take(MOST + 1).read_to_end(&mut bytes);
    if taken.map_err(unreadable)? as u64 > MOST {
        return Err(Failure::new(
            2,
            "it is larger than 64 MiB",
            "Give the result of one measurement.",
        ));
    }
    let text = text(bytes).ok_or_else(|| {
        Failure::new(
            2,
            "it isn't text in UTF-8 or UTF-16",
            "Save the result as UTF-8, and give that file.",
        )
    })?;
    // As editors of another system begin a file.
    let text = text.trim_start_matches('\u{feff}');
    Ok(import::read(text)?)
}

/// UTF-8, or the UTF-16 that other systems write behind a mark of its byte order.
fn text(bytes: Vec<u8>) -> Option<String> {
    let unit: fn([u8; 2]) -> u16 = match bytes.get(..2) {
        Some([0xff, 0xfe]) => u16::from_le_bytes,
        Some([0xfe, 0xff]) => u16::from_be_bytes,
        _ => return String::from_utf8(bytes).ok(),
    };
    let (pairs, odd) = bytes.as_chunks::<2>();
    let units: Vec<u16> = pairs.iter().map(|pair| unit(*pair)).collect();
    odd.is_empty().then(|| String::from_utf16(&units).ok())?
}

/// When a file was written.
fn when(path: &Path) -> Option<jiff::Timestamp> {
    let modified = path.metadata().ok()?.modified().ok()?;
    jiff::Timestamp::try_from(modified).ok()
}

fn foreign(
    results: &[Results],
    options: &ImportOptions,
    written: Option<jiff::Timestamp>,
) -> Result<Run, Failure> {
    let started = written.unwrap_or_else(jiff::Timestamp::now).to_string();
    let id = ::lab::run::new_id();
    Ok(import::run(id, &options.system, started, results)?)
}
