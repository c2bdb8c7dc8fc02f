//! Where a run goes: into the store, to whoever asked, beside a baseline.

use super::shard;
use crate::cli::progress::Progress;
use crate::cli::{
    Failure, compare, open_store_to_measure, print, report, standard, style, told, waiting,
};
use clap::Args;
use lab::record::{Run, Shard};
use lab::session::{Observer, SessionError, Visit};
use lab::store::Store;
use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What becomes of what is measured.
#[derive(Debug, Args)]
pub struct Output {
    /// Write the record as JSON to a file, or to standard output with -
    #[arg(long, value_name = "FILE|-")]
    json: Option<PathBuf>,
    /// Write the report as one HTML page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Compare with this baseline or stored run when done
    #[arg(long, value_name = "NAME")]
    baseline: Option<String>,
    /// Exit with 5 if anything is slower than the baseline by more than this, judged on the interval
    #[arg(long, value_name = "PCT", requires = "baseline", value_parser = compare::percent)]
    fail_if_slower: Option<f64>,
    /// Show no progress
    #[arg(long)]
    pub no_progress: bool,
}

/// How long a shard that is done waits for the store to come back.
const PATIENCE: Duration = Duration::from_secs(20);

impl Output {
    /// Prints the answer and writes the files that were asked for.
    fn tell(&self, run: &Run, stored: bool) -> Result<(), Failure> {
        let json_to_stdout = self.json.as_deref() == Some(Path::new("-"));
        match &self.json {
            Some(_) if json_to_stdout => print(
                &::report::json::render(std::slice::from_ref(run)).map_err(Failure::unprintable)?,
            )?,
            Some(path) => report::write(path, std::slice::from_ref(run))?,
            None => {}
        }
        let table = ::report::text::table(run, &style());
        if json_to_stdout {
            eprint!("{table}");
        } else {
            print(&table)?;
        }
        if let Some(path) = &self.html {
            report::write(path, std::slice::from_ref(run))?;
        }
        let mut footer = match stored {
            true => format!("\nStored as {}", run.run),
            false => format!("\nThis is {}", run.run),
        };
        if let Some(path) = &self.html {
            let _ = write!(footer, "; the page with pictures is {}", path.display());
        } else {
            let _ = write!(
                footer,
                "; pictures: cryptmark report {} -o report.html",
                run.run
            );
        }
        footer.push('\n');
        if json_to_stdout {
            eprint!("{footer}");
            Ok(())
        } else {
            print(&footer)
        }
    }
}

/// Where a run goes: into the store, to whoever asked, beside a baseline.
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
        for path in [&output.html, &output.json].into_iter().flatten() {
            check_writable(path)?;
        }
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
        measure: impl FnOnce(&mut dyn Observer) -> (Run, Result<(), SessionError>),
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
        if !run.trials.is_empty() {
            self.output
                .tell(&run, kept.is_ok() && self.store.absence().is_none())?;
        }
        if let Err(error) = kept {
            return Err(rescue(&run, Failure::from(error)));
        }
        self.settle()?;
        match outcome {
            Err(error @ SessionError::Keep(_)) => return Err(rescue(&run, error.into())),
            outcome => outcome?,
        }
        match self.baseline {
            Some(baseline) => compare::against(&baseline, &run, self.output.fail_if_slower),
            None => Ok(()),
        }
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

/// Writes a run that nobody could keep beside the user, where that is possible.
fn rescue(run: &Run, failure: Failure) -> Failure {
    let Ok(json) = ::report::json::render(std::slice::from_ref(run)) else {
        return failure;
    };
    let name = format!("cryptmark-{}.json", run.run);
    for folder in [PathBuf::from("."), std::env::temp_dir()] {
        let path = folder.join(&name);
        // Never through a link that somebody has put there before.
        let written = File::create_new(&path).and_then(|mut new| new.write_all(json.as_bytes()));
        if written.is_ok() {
            let path = path.display();
            let remedy =
                format!("What was measured is in {path}; `cryptmark import {path}` stores it.");
            return failure.with_remedy(remedy);
        }
    }
    failure
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

    fn keep(
        &mut self,
        run: &Run,
        changed: &[usize],
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        self.progress.so_far(&::report::advice::so_far(run));
        let trials: Vec<_> = changed
            .iter()
            .map(|&place| (place as u32, &run.trials[place]))
            .collect();
        Ok(self.store.put_trials(&run.run, &trials)?)
    }
}

/// A file that cannot be written is better refused before the measurement.
pub fn check_writable(path: &Path) -> Result<(), Failure> {
    if path == Path::new("-") {
        return standard::check_output();
    }
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    if directory.is_dir() && !path.is_dir() {
        return Ok(());
    }
    Err(Failure::new(
        2,
        format!("cannot write {}", path.display()),
        "Give a file in a directory that exists.",
    ))
}
