//! Runs as Parquet files, for programs that analyse tables.
//!
//! A run is one object, `date=2026-11-22/plan=quick/RUN.parquet`: the day on which
//! it began, UTC, and its plan, as Hive names partitions. Objects appear whole or not
//! at all, and a run that is exported again takes the place of itself.

use crate::{FleetError, Storage, columns};
use futures::stream::{self, StreamExt, TryStreamExt};
use lab::record::Run;
use object_store::ObjectStoreExt;
use object_store::path::Path;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use tokio::runtime::{Builder, Runtime};

/// Objects on their way at the same time: a store far away answers each within
/// tens of milliseconds.
const AT_ONCE: usize = 16;

/// The day of a run whose record says no time, and the plan of one without a name:
/// Hive's word for no value is one that pandas stumbles over.
const NO_DAY: &str = "1970-01-01";
const NO_PLAN: &str = "unnamed";

/// A place that runs are written to.
pub struct Export {
    storage: Storage,
    runtime: Runtime,
}

/// How much was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Runs, each an object.
    pub runs: u64,
    /// Their trials.
    pub trials: u64,
    /// Bytes of the objects.
    pub bytes: u64,
    /// Objects removed, of attempts at shards that were dropped.
    pub removed: u64,
}

impl std::ops::AddAssign for Written {
    fn add_assign(&mut self, more: Self) {
        self.runs += more.runs;
        self.trials += more.trials;
        self.bytes += more.bytes;
        self.removed += more.removed;
    }
}

impl Export {
    /// Begins to write to a place.
    ///
    /// # Errors
    /// [`FleetError::Runtime`].
    pub fn to(storage: Storage) -> Result<Self, FleetError> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|source| FleetError::Runtime { source })?;
        Ok(Self { storage, runtime })
    }

    /// Writes runs, each as an object; one without trials is none.
    ///
    /// # Errors
    /// The error of the place. Objects that it accepted before are whole, and stay.
    pub fn write(&self, runs: &[Run]) -> Result<Written, FleetError> {
        let place = &self.storage.place;
        let mut written = Written::default();
        let mut objects = Vec::new();
        for run in runs.iter().filter(|run| !run.trials.is_empty()) {
            let bytes = encode(run).map_err(|source| FleetError::Unwritable {
                run: run.run.clone(),
                source,
            })?;
            written += Written {
                runs: 1,
                trials: run.trials.len() as u64,
                bytes: bytes.len() as u64,
                removed: 0,
            };
            let path = path(run).map_err(|source| FleetError::of(place, source.into()))?;
            objects.push((path, bytes));
        }
        let puts = stream::iter(objects).map(|(path, bytes)| {
            let store = &self.storage.store;
            async move { store.put(&path, bytes.into()).await }
        });
        let all = puts
            .buffer_unordered(AT_ONCE)
            .try_for_each(|_| async { Ok(()) });
        self.runtime
            .block_on(all)
            .map_err(|source| FleetError::of(place, source))?;
        Ok(written)
    }

    /// Removes the objects of runs, wherever they are in the place, and returns how many there
    /// were.
    ///
    /// # Errors
    /// The error of the place.
    pub fn remove(&self, runs: &[String]) -> Result<u64, FleetError> {
        // Days and plans of runs that are gone are not known any more.
        let names: BTreeSet<String> = runs.iter().map(|run| file(run)).collect();
        let store = &self.storage.store;
        let remove = async {
            let mut objects = store.list(None);
            let mut found = Vec::new();
            while let Some(object) = objects.try_next().await? {
                if object
                    .location
                    .filename()
                    .is_some_and(|name| names.contains(name))
                {
                    found.push(object.location);
                }
            }
            for path in &found {
                store.delete(path).await?;
            }
            Ok::<u64, object_store::Error>(found.len() as u64)
        };
        self.runtime
            .block_on(remove)
            .map_err(|source| FleetError::of(&self.storage.place, source))
    }
}

/// The file of a run.
fn encode(run: &Run) -> Result<Vec<u8>, ParquetError> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        // Runs are small: what helps to skip pages would be as long as they are.
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true)
        .set_created_by("cryptmark".to_owned())
        .build();
    let mut writer = ArrowWriter::try_new(Vec::new(), columns::schema(), Some(properties))?;
    for batch in columns::batches(run) {
        writer.write(&batch?)?;
    }
    writer.into_inner()
}

/// The path of a run's object.
fn path(run: &Run) -> Result<Path, object_store::path::Error> {
    let date = columns::started(run).map(|at| at.strftime("%F").to_string());
    let date = date.unwrap_or_else(|| NO_DAY.to_owned());
    let plan = match run.plan.as_str() {
        "" => NO_PLAN.to_owned(),
        plan => escaped(plan),
    };
    Path::parse(format!("date={date}/plan={plan}/{}", file(&run.run)))
}

/// The name of a run's object in its partition.
fn file(run: &str) -> String {
    format!("{}.parquet", escaped(run))
}

/// Letters, digits, `-`, `_` and `.` stay as they are. Other ASCII characters become `%` and two
/// digits, as Hive writes those that it escapes; all its readers undo that.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for sign in text.chars() {
        match sign {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '_' | '.' => escaped.push(sign),
            // Writing to a string does not fail.
            sign if sign.is_ascii() => drop(write!(escaped, "%{:02X}", u32::from(sign))),
            sign => escaped.push(sign),
        }
    }
    escaped
}
