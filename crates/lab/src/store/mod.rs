//! The store of runs: files in a folder, one file per run. With the feature `postgres`, a
//! PostgreSQL server can hold them instead.
//!
//! A trial is on the disk as soon as it is measured, because the next one may fail. Several
//! processes may write at the same time. To write to a server, open it with
//! [`Store::open_to_write`]: runs are then files of this machine first ([`Spool`]). A server's
//! connections drive a runtime of their own, so callers see blocking calls. The callers must not be
//! inside an async runtime themselves.

mod entry;
mod error;
mod folder;
mod index;
mod location;
mod log;
#[cfg(feature = "postgres")]
mod server;
mod settings;
mod shards;
mod take_over;
mod waiting;

pub use error::StoreError;
pub use folder::is_store;
pub use location::Location;
pub use settings::Settings;
pub use shards::{Progress, ShardState};
pub use take_over::TakenOver;
pub use waiting::{HandedOver, Spool};

use crate::record::{Run, Shard, Trial};
use entry::Entry;
use folder::Folder;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The word that [`Store::load`] takes for the newest run.
pub const LATEST: &str = "latest";

/// An open store of runs.
pub struct Store {
    location: Location,
    kept: Kept,
}

/// The implementation that keeps the runs.
enum Kept {
    Files(Folder),
    #[cfg(feature = "postgres")]
    Server(Box<server::Server>),
}

/// The entry of a run in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunSummary {
    /// Id of the run.
    pub run: String,
    /// Name of its plan.
    pub plan: String,
    /// Start, RFC 3339.
    pub started: String,
    /// True when the run was interrupted, failed or is still under way.
    pub partial: bool,
    /// Number of trials stored so far.
    pub trials: u32,
    /// [`crate::record::Host::key`] of the machine.
    pub host: String,
    /// Names under which the run is a baseline, sorted.
    #[serde(skip)]
    pub baselines: Vec<String>,
}

/// The operations of a store, whatever holds the runs. [`Store`] documents each of them.
trait Records {
    fn write(&self, entry: Entry) -> Result<(), StoreError>;
    fn take_over(&self, runs: &[Run]) -> Result<Vec<TakenOver>, StoreError>;
    fn list(&self) -> Result<Vec<RunSummary>, StoreError>;
    fn load(&self, which: &str) -> Result<Run, StoreError>;
    fn runs_after(&self, after: &str, trials: usize) -> Result<Vec<Run>, StoreError>;
    fn delete(&self, which: &str) -> Result<String, StoreError>;
    fn baselines(&self) -> Result<BTreeMap<String, String>, StoreError>;
    fn set_baseline(&self, name: &str, which: &str) -> Result<String, StoreError>;
    fn remove_baseline(&self, name: &str) -> Result<(), StoreError>;
    fn stored_shard(&self, shard: &Shard) -> Result<Option<String>, StoreError>;
    fn progress(&self, name: &str) -> Result<Progress, StoreError>;
    fn dropped_attempts(&self) -> Result<Vec<String>, StoreError>;
}

/// Everything by which a run can be named.
struct Names {
    ids: Vec<String>,
    /// Run by name.
    baselines: BTreeMap<String, String>,
}

/// Tells which runs of a list, sorted by id, are baselines.
fn name(runs: &mut [RunSummary], baselines: BTreeMap<String, String>) {
    for (name, of) in baselines {
        if let Ok(place) = runs.binary_search_by(|found| found.run.cmp(&of)) {
            runs[place].baselines.push(name);
        }
    }
}

impl Names {
    /// The id of the run called `which`.
    fn resolve(&self, which: &str, location: &Location) -> Result<String, StoreError> {
        if which == LATEST {
            let location = location.clone();
            let latest = self.ids.iter().max().cloned();
            return latest.ok_or(StoreError::Empty { location });
        }
        if let Some(run) = self.baselines.get(which) {
            return Ok(run.clone());
        }
        if self.ids.iter().any(|id| id == which) {
            return Ok(which.to_owned());
        }
        let is_match = |id: &&String| !which.is_empty() && id.starts_with(which);
        let mut matches: Vec<String> = self.ids.iter().filter(is_match).cloned().collect();
        match matches.len() {
            0 => Err(no_such_run(which)),
            1 => Ok(matches.remove(0)),
            _ => Err(StoreError::Ambiguous {
                which: which.to_owned(),
                matches,
            }),
        }
    }

    /// The id of the run called `which`, if no name keeps it.
    fn removable(&self, which: &str, location: &Location) -> Result<String, StoreError> {
        let run = self.resolve(which, location)?;
        let names = self.baselines.iter().filter(|(_, of)| **of == run);
        let names: Vec<String> = names.map(|(name, _)| name.clone()).collect();
        match names.is_empty() {
            true => Ok(run),
            false => Err(StoreError::IsBaseline { run, names }),
        }
    }

    /// The id of the run that is to be called `name`.
    fn baseline(&self, name: &str, which: &str, at: &Location) -> Result<String, StoreError> {
        if name.trim().is_empty() || name == LATEST || self.ids.iter().any(|id| id == name) {
            let name = name.to_owned();
            return Err(StoreError::BaselineName { name });
        }
        self.resolve(which, at)
    }
}

impl Store {
    /// Opens the store at `location` and creates it if it does not exist.
    ///
    /// A new folder has mode 0700 and its files 0600. Anything that is not a store of this program,
    /// or has another version, is refused and left as it is.
    pub fn open(location: &Location) -> Result<Self, StoreError> {
        let kept = match location {
            Location::Folder(path) => Kept::Files(Folder::open(path)?),
            #[cfg(feature = "postgres")]
            Location::Postgres(url) => {
                let server = server::Server::new(url)?;
                server.reach()?;
                Kept::Server(Box::new(server))
            }
            #[cfg(not(feature = "postgres"))]
            Location::Postgres(_) => {
                let location = location.clone();
                return Err(StoreError::NoPostgres { location });
            }
        };
        Ok(Self {
            location: location.clone(),
            kept,
        })
    }

    fn records(&self) -> &dyn Records {
        match &self.kept {
            Kept::Files(folder) => folder,
            #[cfg(feature = "postgres")]
            Kept::Server(server) => server.as_ref(),
        }
    }

    /// The location of this store.
    pub fn location(&self) -> &Location {
        &self.location
    }

    /// Stores the header of a run that starts now, marked partial; its
    /// `trials` are not looked at.
    ///
    /// Refuses an id that is stored already; and of a shard, an experiment that
    /// measures something else under the same name, and a shard that is stored.
    pub fn begin(&self, run: &Run) -> Result<(), StoreError> {
        self.records().write(Entry::begin(run)?)
    }

    /// Stores trials at their positions in a run, each in place of one that is
    /// stored there: all of them or, on an error, none.
    ///
    /// Refuses a run that was never begun, a run that another process writes, and a record
    /// with a number that is not finite.
    pub fn put_trials(&self, run: &str, trials: &[(u32, &Trial)]) -> Result<(), StoreError> {
        self.records().write(Entry::trials(run, trials)?)
    }

    /// Replaces the header of a begun run with its final state, `partial` included. Its `trials`
    /// are ignored.
    ///
    /// A complete shard is then stored, and the remains of other runs for it are dropped. If
    /// another run was first, this run is dropped, and [`StoreError::ShardStored`] says so.
    pub fn finish(&self, run: &Run) -> Result<(), StoreError> {
        self.records().write(Entry::finish(run)?)
    }

    /// Stores complete runs: all of them or, on an error, none. Returns the outcome of each run. A
    /// second call with the same runs changes nothing.
    ///
    /// Refuses a run if another one is stored under its id, and if [`Store::begin`] or
    /// [`Store::put_trials`] would refuse it. If a server is unavailable, the runs wait one by one.
    pub fn take_over(&self, runs: &[Run]) -> Result<Vec<TakenOver>, StoreError> {
        self.records().take_over(runs)
    }

    /// All runs in the order of their ids, oldest first. If a file cannot be read, only its id is
    /// known.
    pub fn list(&self) -> Result<Vec<RunSummary>, StoreError> {
        self.records().list()
    }

    /// The run called `which`: the name of a baseline, an id, the beginning of
    /// an id that fits one run alone, [`LATEST`], or the name of an experiment whose
    /// shards are one run.
    pub fn load(&self, which: &str) -> Result<Run, StoreError> {
        match self.records().load(which) {
            Err(missing @ StoreError::NoSuchRun { .. }) => {
                match shards::load_experiment(self, which) {
                    Err(StoreError::NoSuchExperiment { .. }) => Err(missing),
                    outcome => outcome,
                }
            }
            outcome => outcome,
        }
    }

    /// The next whole runs behind the run `after`, in the order in which the store sorts their ids;
    /// from the first if `after` is empty. The list is empty if `after` was the last run.
    ///
    /// The runs have about `trials` trials together; a single run may have more than that. A run
    /// that is stored in the meantime may or may not be returned.
    pub fn runs_after(&self, after: &str, trials: usize) -> Result<Vec<Run>, StoreError> {
        self.records().runs_after(after, trials)
    }

    /// Removes a run, named as for [`Store::load`], with all its trials, and
    /// returns its id.
    ///
    /// Refuses a run that is a baseline.
    pub fn delete(&self, which: &str) -> Result<String, StoreError> {
        self.records().delete(which)
    }

    /// Gives a run, named as for [`Store::load`], the name `name`, taken from another run if
    /// necessary, and returns the id of the run.
    ///
    /// Refuses an empty name, [`LATEST`] and the id of a run.
    pub fn set_baseline(&self, name: &str, which: &str) -> Result<String, StoreError> {
        self.records().set_baseline(name, which)
    }

    /// Every baseline as (name, id of its run), sorted by name.
    pub fn baselines(&self) -> Result<Vec<(String, String)>, StoreError> {
        Ok(self.records().baselines()?.into_iter().collect())
    }

    /// Forgets the name of a baseline; its run stays.
    pub fn remove_baseline(&self, name: &str) -> Result<(), StoreError> {
        self.records().remove_baseline(name)
    }

    /// The run that is stored for the shard, if there is one.
    ///
    /// Refuses a shard of an experiment that differs from the stored one of the same name.
    pub fn stored_shard(&self, shard: &Shard) -> Result<Option<String>, StoreError> {
        self.records().stored_shard(shard)
    }

    /// How far the experiment `name` is.
    pub fn progress(&self, name: &str) -> Result<Progress, StoreError> {
        self.records().progress(name)
    }

    /// Ids of runs that began a shard and were dropped when another run was stored as it.
    pub fn dropped_attempts(&self) -> Result<Vec<String>, StoreError> {
        self.records().dropped_attempts()
    }
}

fn no_such_run(which: &str) -> StoreError {
    StoreError::NoSuchRun {
        which: which.to_owned(),
    }
}
