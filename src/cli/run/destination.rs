//! The destinations of a run: the store, the output that the user asked for, and a baseline.

use super::shard;
use crate::cli::progress::Progress;
use crate::cli::whole::{self, Kind};
use crate::cli::{Failure, compare, open_store_to_measure, print, report, style, told, waiting};
use block::plain::word;
use clap::Args;
use lab::LabError;
use lab::record::{Run, Shard};
use lab::session::{Observer, Visit};
use lab::store::Store;
use lab::store::StoreError;
use std::error::Error;
use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The options for the results of a run.
#[derive(Debug, Args)]
pub struct Output {
    /// Write the record as JSON; - is standard output
    #[arg(long, value_name = "FILE|-")]
    json: Option<PathBuf>,
    /// Write the report as one HTML page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Compare with this baseline or stored run when done
    #[arg(long, value_name = "NAME")]
    pub baseline: Option<String>,
    /// Exit with 5 if the whole interval of any cell shows it slower than the baseline by more than this
    #[arg(long, value_name = "PCT", requires = "baseline", value_parser = compare::percent)]
    fail_if_slower: Option<f64>,
    /// Show no progress
    #[arg(long)]
    pub no_progress: bool,
}

/// How long a shard that is done waits for the store to come back.
const PATIENCE: Duration = Duration::from_secs(20);

impl Output {
    /// Refuses files that are the storage `at` which is to be measured.
    ///
    /// # Errors
    /// Exit code 2.
    pub fn check_distinct(&self, at: &Path) -> Result<(), Failure> {
        let named = [("--json", &self.json), ("--html", &self.html)];
        let mut named = named
            .into_iter()
            .filter_map(|(option, path)| Some((option, path.as_ref()?)));
        match named.find(|(_, path)| whole::is_same(path, at)) {
            None => Ok(()),
            Some((option, path)) => Err(Failure::new(
                2,
                format!("--at and {option} both name {}", path.display()),
                "Give the output a file of its own.",
            )),
        }
    }

    /// Refuses files that could not be written afterwards.
    pub fn check(&self) -> Result<(), Failure> {
        if self.html.as_deref() == Some(Path::new("-")) {
            return Err(Failure::new(
                2,
                "--html takes a file: the table goes to standard output",
                "Name a file, or give --json - for data on standard output.",
            ));
        }
        report::check_both(self.html.as_deref(), self.json.as_deref(), report::RECORD)
    }

    /// Prints the answer and writes the files that were asked for, each even if another one
    /// cannot be written.
    fn tell(&self, run: &Run, stored: bool) -> Result<(), Failure> {
        let runs = std::slice::from_ref(run);
        let json_to_stdout = self.json.as_deref() == Some(Path::new("-"));
        let json = self.json.as_ref().map_or(Ok(()), |path| {
            let json = ::report::json::render(runs).map_err(Failure::unprintable)?;
            report::put(path, report::RECORD, &json)
        });
        let say = |text: &str| match json_to_stdout {
            true => {
                eprint!("{text}");
                Ok(())
            }
            false => print(text),
        };
        let table = say(&::report::text::table(run, &style()));
        let html = self.html.as_ref().map_or(Ok(()), |path| {
            report::put(path, Kind::Html, &::report::html::render(runs))
        });
        let mut footer = match stored {
            true => format!("\nStored as {}", run.run),
            false => format!("\nThis is {}", run.run),
        };
        match &self.html {
            Some(path) if html.is_ok() => {
                let _ = write!(footer, "; the page with pictures is {}", path.display());
            }
            _ => {
                let _ = write!(
                    footer,
                    "; pictures: cryptmark report {} -o report.html",
                    run.run
                );
            }
        }
        footer.push('\n');
        let footer = say(&footer);
        first_failure([json, table, html, footer])
    }
}

/// The destinations of a run: the store, the output that the user asked for, and a baseline.
pub struct Destination<'a> {
    output: &'a Output,
    /// The store that takes it.
    pub store: Store,
    baseline: Option<Run>,
    /// The shard that it is.
    pub shard: Option<Shard>,
}

impl<'a> Destination<'a> {
    /// Refuses before anything is measured what could not be kept afterwards.
    ///
    /// # Errors
    /// A file that cannot be written, a store or baseline that is not to be had.
    pub fn open(output: &'a Output, store: Option<&str>) -> Result<Self, Failure> {
        output.check()?;
        let store = open_store_to_measure(store)?;
        let baseline = match &output.baseline {
            Some(name) => Some(store.load(name)?),
            None => None,
        };
        Ok(Self {
            output,
            store,
            baseline,
            shard: None,
        })
    }

    /// Stores what is known before anything is measured.
    pub fn begin(&self, header: &Run) -> Result<(), Failure> {
        let header = Run {
            shard: self.shard.clone(),
            ..header.clone()
        };
        Ok(self.store.begin(&header)?)
    }

    /// Stores what `measure` tells and returns, prints it and compares it.
    pub fn receive(
        self,
        progress: &Progress,
        measure: impl FnOnce(&mut dyn Observer) -> (Run, Result<(), LabError>),
    ) -> Result<(), Failure> {
        let mut keeper = Keeper {
            store: &self.store,
            progress,
        };
        let (mut run, outcome) = measure(&mut keeper);
        progress.finish();
        run.shard.clone_from(&self.shard);
        let kept = self.store.finish(&run);
        if let (Some(shard), true) = (&self.shard, kept.is_err() || outcome.is_err())
            && let Ok(Some(by)) = self.store.stored_shard(shard)
        {
            return shard::stored_already(shard, &by);
        }
        let stored = kept.is_ok() && self.store.absence().is_none();
        let shown = match run.trials.is_empty() {
            true => Ok(()),
            false => self.output.tell(&run, stored),
        };
        // Even if a report could not be shown, the measurements must be kept somewhere.
        let kept = match (kept, outcome) {
            (Err(error), _) => Err(rescue(&run, error.into())),
            (Ok(()), Err(error))
                if error.source().is_some_and(|cause| cause.is::<StoreError>()) =>
            {
                first_failure([Err(rescue(&run, error.into())), self.settle()])
            }
            (Ok(()), outcome) => first_failure([self.settle(), outcome.map_err(Failure::from)]),
        };
        let compared = match (&kept, &self.baseline) {
            (Ok(()), Some(baseline)) => {
                compare::against(baseline, &run, self.output.fail_if_slower)
            }
            _ => Ok(()),
        };
        first_failure([kept, compared, shown])
    }
}

impl Destination<'_> {
    /// Says where the run waits, if the store is away. A shard waits for the store
    /// itself: who started it may take its folder away afterwards.
    fn settle(&self) -> Result<(), Failure> {
        let Some(reason) = self.store.absence() else {
            return Ok(());
        };
        if self.shard.is_some() {
            let handed = self.store.hand_over(Some(PATIENCE))?;
            eprint!("{}", told(&handed));
            return Ok(());
        }
        if let Some(waiting) = waiting(&self.store)? {
            eprintln!("warning: {reason}\n  {waiting}");
        }
        Ok(())
    }
}

/// The first failure. It is the one that the program ends with, so the others are said here.
pub fn first_failure<const N: usize>(outcomes: [Result<(), Failure>; N]) -> Result<(), Failure> {
    let mut failures = outcomes.into_iter().filter_map(Result::err);
    let Some(first) = failures.next() else {
        return Ok(());
    };
    // One reason may be in the way of several.
    for other in failures.filter(|other| other.what() != first.what()) {
        eprintln!("warning: {}\n  {}", other.what(), other.remedy());
    }
    Err(first)
}

/// Writes a run that the store could not keep beside the user, if that is possible.
pub fn rescue(run: &Run, failure: Failure) -> Failure {
    if run.trials.is_empty() {
        return failure;
    }
    // It was there when the run began, so nothing was asked for wrongly.
    let failed = |remedy: String| Failure::new(1, failure.what(), remedy);
    let Ok(json) = ::report::json::render(std::slice::from_ref(run)) else {
        return failure;
    };
    let name = format!("cryptmark-{}.json", run.run);
    let elsewhere = std::env::temp_dir();
    for folder in [Path::new("."), &elsewhere] {
        let path = folder.join(&name);
        if write_new(&path, json.as_bytes()).is_ok() {
            return failed(format!(
                "The run is in {}. Store it with `cryptmark import {}`.",
                path.display(),
                word(&path)
            ));
        }
    }
    failed(format!(
        "{} The measurements could not be written here or to {} either.",
        failure.remedy(),
        elsewhere.display()
    ))
}

/// Writes a file that is not there yet: all of it, or none.
fn write_new(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    // Never through a link that another program has put there before.
    let mut new = File::create_new(path)?;
    // Some file systems find out late that they are full.
    let written = new.write_all(bytes).and_then(|()| new.sync_all());
    if written.is_err() {
        let _ = std::fs::remove_file(path);
    }
    written
}

/// Stores and shows a session as it goes.
struct Keeper<'a> {
    store: &'a Store,
    progress: &'a Progress,
}

impl Observer for Keeper<'_> {
    fn visiting(&mut self, visit: &Visit<'_>) {
        self.progress.visiting(visit);
    }

    fn keep(&mut self, run: &Run, changed: &[usize]) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.progress.so_far(&::report::advice::so_far(run));
        let trials: Vec<_> = changed
            .iter()
            .map(|&place| (place as u32, &run.trials[place]))
            .collect();
        self.store.put_trials(&run.run, &trials)?;
        self.progress.kept(&run.run);
        Ok(())
    }
}
