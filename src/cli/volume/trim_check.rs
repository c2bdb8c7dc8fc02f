//! `cryptmark volume trim-check`: whether a discard arrives, and what it reveals.
//!
//! A file is written and deleted again, and the file system is told to discard its free space. Then
//! every layer below is examined: block devices by their discard counters, files by the space they
//! take.

mod scratch;

use super::Failure;
use crate::cli::{print, stop_on_signal};
use block::layer::TrimPolicy;
use block::layers::{Layer, LayerError, Layers, Seen, Trial, WRITTEN};
use clap::Args;
use scratch::Scratch;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

/// Columns of a map.
const COLUMNS: usize = 64;

/// Options of `cryptmark volume trim-check`.
#[derive(Debug, Args)]
pub struct TrimCheckOptions {
    /// Where a file system is mounted [default: temporary volumes, one for each TRIM policy]
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,
    /// The file or device of the encrypted volume under DIR, if the system does not know it
    #[arg(long, value_name = "FILE", requires = "directory", conflicts_with_all = ["at", "fs_type"])]
    image: Option<PathBuf>,
    /// The directory for the temporary volumes, which take 80 MiB one after the other
    #[arg(
        long,
        value_name = "DIR",
        conflicts_with = "directory",
        default_value = "."
    )]
    at: PathBuf,
    /// Type of their file system
    #[arg(
        long,
        value_name = "TYPE",
        conflicts_with = "directory",
        default_value = "ext4"
    )]
    fs_type: String,
    /// Discard all free space of the file system at DIR; a hidden volume there would be lost
    #[arg(long, requires = "directory", conflicts_with_all = ["at", "fs_type"])]
    yes: bool,
}

/// Runs the command.
pub fn run(options: &TrimCheckOptions) -> Result<(), Failure> {
    if !rustix::process::geteuid().is_root() {
        return Err(Failure::new(
            1,
            "only root may tell a file system to discard",
            "Run it as root.",
        ));
    }
    // Ctrl-C ends the programs that are at work, and what was made is undone.
    let stop = stop_on_signal()?;
    let outcome = run_all(options, || stop.load(Ordering::Relaxed));
    match stop.load(Ordering::Relaxed) {
        true => Err(Failure::new(130, "interrupted", "Nothing was kept.")),
        false => outcome,
    }
}

/// Checks what the user has named, or a volume for each policy.
fn run_all(options: &TrimCheckOptions, stopped: impl Fn() -> bool) -> Result<(), Failure> {
    if let Some(directory) = &options.directory {
        let layers = Layers::under(directory, options.image.as_deref())?;
        if !options.yes {
            return Err(unconfirmed(directory));
        }
        let text = check(directory, &layers)?;
        return print(&text);
    }
    for policy in TrimPolicy::ALL {
        if stopped() {
            return Ok(());
        }
        let scratch = Scratch::new(&options.at, &options.fs_type)?;
        let mounted = scratch.mount(policy)?;
        let layers = Layers::under(mounted.directory(), Some(&scratch.image()))?;
        let text = check(mounted.directory(), &layers)?;
        mounted.end()?;
        let map = scratch.map()?;
        print(&format!("--trim {policy}\n{text}{}\n", picture(&map)))?;
    }
    Ok(())
}

/// Refuses to discard what a user may miss.
fn unconfirmed(directory: &Path) -> Failure {
    Failure::new(
        4,
        format!(
            "the check would write and delete a file of {WRITTEN} MiB, and then discard all free \
             space of the file system at {}",
            directory.display()
        ),
        "That destroys a hidden volume, if this is the outer volume of TrueCrypt or VeraCrypt. It \
         also makes deleted files unrecoverable. If you accept that, confirm with --yes.",
    )
}

/// Says what each layer heard of a discard.
fn check(directory: &Path, layers: &Layers) -> Result<String, Failure> {
    let trial = Trial::run(directory, layers)?;
    let mut text = match &trial.sent {
        Ok(bytes) => format!("  {:<28} discards {}\n", "file system", megabytes(*bytes)),
        Err(said) => format!("  {:<28} cannot discard: {said}\n", "file system"),
    };
    for (layer, heard) in &trial.heard {
        text += &format!("  {:<28} {}\n", layer.name, told(layer, *heard));
    }
    let deaf = trial.heard.iter().find(|(_, heard)| *heard == 0);
    text += &match (trial.sent, deaf) {
        (Err(_), _) => "  The file system sends no TRIM.\n".to_owned(),
        (Ok(_), None) => "  TRIM arrives.\n".to_owned(),
        (Ok(_), Some((layer, _))) => format!("  TRIM does not reach {}.\n", layer.name),
    };
    Ok(text)
}

/// The effect of the discards on a layer, in words.
fn told(layer: &Layer, bytes: u64) -> String {
    match (layer.is_file(), bytes) {
        (false, 0) => "received no discard".into(),
        (false, bytes) => format!("was told to discard {}", megabytes(bytes)),
        (true, 0) => "takes as much space as before".into(),
        (true, bytes) => format!("gave back {}", megabytes(bytes)),
    }
}

impl From<LayerError> for Failure {
    fn from(error: LayerError) -> Self {
        let (code, remedy) = match error {
            LayerError::Block(error) => return error.into(),
            LayerError::Unknown { .. } => {
                (2, "Name the directory that a file system is mounted on.")
            }
            LayerError::None { .. } => (2, "Name the container with --image."),
            LayerError::Unwritten { .. } => (
                1,
                "Choose a directory that is mounted for writing and has room for 32 MiB.",
            ),
            LayerError::Uncounted(_) => {
                (1, "The kernel has to count discards: Linux 4.18 or later.")
            }
            LayerError::NoFstrim(_) => (1, "Install it (package util-linux)."),
            LayerError::Strange { .. } => (1, "Report this with the version of util-linux."),
        };
        Self::of(code, &error, remedy)
    }
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

/// A map of the image for people.
fn picture(map: &[Seen]) -> String {
    let mut text = String::from("  The image, as anyone who can read it sees it:\n");
    for row in map.chunks(COLUMNS) {
        text += "  ";
        text.extend(row.iter().map(|seen| match seen {
            Seen::Hole => '·',
            Seen::Same => '░',
            Seen::Written => '█',
        }));
        text.push('\n');
    }
    let share = |wanted| {
        let count = map.iter().filter(|&&seen| seen == wanted).count();
        100 * count / map.len().max(1)
    };
    text += &format!(
        "  · given back, so not in use: {} %; ░ as before it was used: {} %; █ written since: {} %\n",
        share(Seen::Hole),
        share(Seen::Same),
        share(Seen::Written),
    );
    text
}
