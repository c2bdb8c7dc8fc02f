//! [`FileSystems`]: a plan on file systems, run by agents and made into records.
//!
//! Each job of the plan is run by an agent of its own, on this kernel or in the
//! lab kernel. What it tells becomes records as it comes.

use super::{Observer, SessionError, Visit, begun, ended, state_build};
use crate::file_system::agent::{self, Ended, Told};
use crate::file_system::plan::{FileSystemPlan, Leg, base_job, system_name};
use crate::file_system::{Backing, Event, FileSystemError, Job, OperationSample, Subject};
use crate::plan::PlanError;
use crate::probe::{self, Pace, Seen, StealMeter};
use crate::published::repeats::Beside;
use crate::record::{Device, Run, Tier, Trial};
use crate::stats::{self, Looks};
use crate::summary::operation as summary;
use crate::summary::{Identity, Reference};
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The core, of those that may be used, that has the lab kernel.
const LAB_CORE: u32 = 1;

/// How soon what an agent tells is heard.
const TICK: Duration = Duration::from_millis(20);

/// Runs this program with arguments as an agent in the lab kernel, where it may
/// write in a directory, to its end, or until it is to stop.
pub type Boot<'a> =
    dyn Fn(&[OsString], &Path, &AtomicBool) -> Result<Ended, SessionError> + Sync + 'a;

/// What a run needs beside its plan.
pub struct Surroundings<'a> {
    /// This program.
    pub program: &'a Path,
    /// Where the bytes are to live.
    pub at: Backing,
    /// The path that the user gave for that.
    pub named: &'a Path,
    /// How an agent is run in the lab kernel; or why it cannot be.
    pub lab: Result<&'a Boot<'a>, String>,
}

/// A plan on file systems on its way through its rounds.
pub struct FileSystems<'a> {
    surroundings: Surroundings<'a>,
    folder: TempDir,
    legs: Vec<Leg>,
    run: Run,
    rounds: u32,
    /// Visits done, and in all.
    done: u64,
    visits: u64,
    /// Rates of the first system's second visits ÷ its first, of all rounds.
    pairs: Vec<f64>,
    /// What was published of the plan's cells.
    beside: Beside,
    /// Watched while lab kernels run on it.
    core: Option<Pace>,
    steal: StealMeter,
}

/// Sets a flag when it is dropped.
struct Halt<'a>(&'a AtomicBool);

impl Drop for Halt<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A job on its way.
struct Course<'j> {
    job: &'j Job,
    identities: Vec<Identity>,
    exact: bool,
    /// By operation, then by cell: the subjects, and the first again.
    samples: Vec<Vec<Vec<OperationSample>>>,
    /// Places in the run's trials.
    places: Vec<Vec<Option<usize>>>,
}

impl<'a> FileSystems<'a> {
    /// A session of `plan`; `id` names the run.
    ///
    /// # Errors
    /// [`SessionError::Plan`], [`SessionError::Absent`] where nothing can be
    /// measured, [`SessionError::FileSystem`].
    pub fn open(
        plan: &FileSystemPlan,
        surroundings: Surroundings<'a>,
        seed: u64,
        id: String,
    ) -> Result<Self, SessionError> {
        let beside = Beside::of(plan.published.as_ref()).map_err(PlanError::from)?;
        tidy(&std::env::temp_dir());
        let folder = tempfile::Builder::new()
            .prefix(&format!("{FOLDER}{}-", std::process::id()))
            .tempdir()
            .map_err(|source| FileSystemError::File {
                what: "cannot make a directory in",
                path: std::env::temp_dir(),
                source,
            })?;
        let name = std::process::id().to_string();
        let base = base_job(
            &name,
            surroundings.program,
            &folder.path().join("scratch"),
            seed,
        );
        let mut legs = plan.legs(&surroundings.at, &base)?;
        let mut warnings = Vec::new();
        if let Err(reason) = &surroundings.lab
            && legs.iter().any(|leg| leg.in_lab)
        {
            legs.retain(|leg| !leg.in_lab);
            let absent = format!("the lab kernel ({reason})");
            if legs.is_empty() {
                return Err(SessionError::Absent(vec![absent]));
            }
            warnings.push(format!("absent: {absent}"));
        }
        if legs.iter().any(|leg| leg.in_lab) {
            warnings.push(
                "the lab kernel's ciphers are plain C and its storage is memory: its figures tell \
                 systems, ciphers and file systems apart, and say nothing of dm-crypt's speed on \
                 this machine"
                    .to_owned(),
            );
        }
        let visits = legs
            .iter()
            .flat_map(|leg| &leg.jobs)
            .map(|job| {
                let cells = job.subjects.len() as u64 + 1;
                cells * job.operations.len() as u64 * u64::from(job.repetitions)
            })
            .sum();
        Ok(Self {
            surroundings,
            folder,
            legs,
            rounds: plan.repetitions,
            done: 0,
            visits,
            pairs: Vec::new(),
            steal: StealMeter::start(),
            run: Run {
                paper: beside.paper(),
                ..begun(&plan.name, seed, id, warnings)
            },
            beside,
            core: None,
        })
    }

    /// States which build of the program measures: its version and commit.
    pub fn built_as(mut self, version: &str) -> Self {
        state_build(&mut self.run, version);
        self
    }

    /// What is known before anything is measured; to be stored first.
    pub fn header(&self) -> &Run {
        &self.run
    }

    /// Measures the whole plan.
    ///
    /// Whatever happens, the returned run holds what was measured; it says
    /// `partial` unless the plan was completed.
    pub fn measure(
        mut self,
        stop: &AtomicBool,
        observer: &mut dyn Observer,
    ) -> (Run, Result<(), SessionError>) {
        let mut outcome = Ok(());
        let legs = std::mem::take(&mut self.legs);
        let jobs = || legs.iter().flat_map(|leg| &leg.jobs);
        let in_lab = jobs().any(|job| job.in_lab);
        self.core = in_lab.then(|| Pace::watch(LAB_CORE)).flatten();
        let mut courses = Vec::new();
        for job in jobs() {
            let mut course = Course::new(job, self.identities(job));
            outcome = self.course(&mut course, stop, observer);
            self.pairs.extend(course.pairs());
            courses.push(course);
            if outcome.is_err() {
                break;
            }
        }
        // The full pace is known best in the end.
        self.pairs.clear();
        for course in &mut courses {
            let kept = self.keep(course, observer);
            outcome = outcome.and(kept);
            self.pairs.extend(course.pairs());
        }
        if outcome.is_ok() && self.run.trials.is_empty() {
            let absent = self.run.warnings.iter();
            let absent = absent.filter_map(|warning| warning.strip_prefix("absent: "));
            outcome = Err(SessionError::Absent(absent.map(str::to_owned).collect()));
        }
        self.run.warnings.extend(paced(&self.run.trials));
        (
            ended(self.run, self.steal.share(), outcome.is_ok()),
            outcome,
        )
    }

    /// One job, by one agent.
    fn course(
        &mut self,
        course: &mut Course<'_>,
        stop: &AtomicBool,
        observer: &mut dyn Observer,
    ) -> Result<(), SessionError> {
        let job = course.job;
        let [told, file] = ["told", "job"].map(|name| self.folder.path().join(name));
        for stale in [&told, &file] {
            // Of the job before.
            let _ = fs::remove_file(stale);
        }
        let unwritable = |path: &Path| {
            let path = path.to_owned();
            move |source| FileSystemError::File {
                what: "cannot write",
                path,
                source,
            }
        };
        fs::create_dir_all(&job.scratch).map_err(unwritable(&job.scratch))?;
        let text = serde_json::to_vec(job).map_err(FileSystemError::Job)?;
        fs::write(&file, text).map_err(unwritable(&file))?;
        let mut events = Told::create(&told)?;
        let arguments = agent::arguments(&file, &told);
        let program = self.surroundings.program;
        let lab = self.surroundings.lab.clone();
        let folder = self.folder.path().to_owned();
        // Whatever ends this ends the agent.
        let halt = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let _halt = Halt(&halt);
            let halt = &halt;
            let agent = scope.spawn(move || match (job.in_lab, lab) {
                (true, Ok(boot)) => {
                    // The lab kernel stays where it was started.
                    probe::pin_to_core(LAB_CORE);
                    boot(&arguments, &folder, halt)
                }
                (true, Err(reason)) => Err(SessionError::Absent(vec![reason])),
                (false, _) => Ok(agent::run_here(program, &arguments, halt)?),
            });
            let mut kept = Instant::now();
            let mut over = None;
            loop {
                let ended = agent.is_finished();
                for event in events.read()? {
                    match event {
                        Event::Done => over = Some(Ok(())),
                        Event::Failed {
                            interrupted: true, ..
                        } => over = Some(Err(SessionError::Interrupted)),
                        Event::Failed { what, remedy, .. } => {
                            over = Some(Err(SessionError::Agent { what, remedy }));
                        }
                        event => self.hear(event, course, observer),
                    }
                }
                if ended || kept.elapsed() >= super::KEPT_EVERY {
                    self.keep(course, observer)?;
                    kept = Instant::now();
                }
                if ended {
                    break;
                }
                halt.fetch_or(stop.load(Ordering::Relaxed), Ordering::Relaxed);
                std::thread::sleep(TICK);
            }
            let ended = match agent.join() {
                Ok(ended) => ended,
                Err(panic) => std::panic::resume_unwind(panic),
            };
            match (over, ended) {
                (Some(outcome), _) => outcome,
                _ if stop.load(Ordering::Relaxed) => Err(SessionError::Interrupted),
                (None, Ok(ended)) => Err(died(job, &ended)),
                (None, Err(error)) => Err(error),
            }
        })
    }

    fn hear(&mut self, event: Event, course: &mut Course<'_>, observer: &mut dyn Observer) {
        let job = course.job;
        match event {
            Event::Begun {
                kernel,
                maker,
                exact,
            } => {
                course.exact = exact;
                for identity in &mut course.identities {
                    identity.system_version.clone_from(&kernel);
                }
                let versions = &mut self.run.host.versions;
                versions.insert(job.file_system.maker().to_owned(), maker);
                if job.in_lab {
                    versions.insert("lab kernel".to_owned(), kernel);
                }
            }
            Event::Engine { subject, backend } => {
                if let Some(identity) = course.identities.get_mut(subject) {
                    identity.backend = Some(backend.backend);
                    identity.constant_time = Some(backend.constant_time);
                    identity.system_version = env!("CARGO_PKG_VERSION").to_owned();
                }
            }
            Event::Absent { subject, reason } => {
                let subject = &job.subjects[subject.min(job.subjects.len() - 1)];
                let name = system_name(subject.encrypter, job.in_lab);
                let absent = format!("absent: {name} ({reason})");
                if !self.run.warnings.contains(&absent) {
                    self.run.warnings.push(absent);
                }
            }
            Event::Visiting {
                cell,
                operation,
                round,
            } => {
                let subject = &job.subjects[cell % job.subjects.len()];
                let workload = job.operations.get(operation);
                observer.visiting(&Visit {
                    workload: &format!(
                        "{} · {}",
                        job.file_system.name(),
                        workload.map_or("", |operation| &operation.name)
                    ),
                    label: &label(subject, job.in_lab),
                    round: round + 1,
                    rounds: Some(self.rounds),
                    done: self.done,
                    visits: self.visits,
                });
                self.done += 1;
            }
            Event::Sample {
                cell,
                operation,
                sample,
                ..
            } => {
                if let Some(samples) = course
                    .samples
                    .get_mut(operation)
                    .and_then(|cells| cells.get_mut(cell))
                {
                    samples.push(sample);
                }
            }
            Event::Done | Event::Failed { .. } => {}
        }
    }

    /// Brings the records of a job up to date.
    fn keep(
        &mut self,
        course: &mut Course<'_>,
        observer: &mut dyn Observer,
    ) -> Result<(), SessionError> {
        if let Some(core) = self.core.as_ref().filter(|_| course.job.in_lab) {
            course.pace(&core.seen());
        }
        let mut changed = Vec::new();
        let mut pairs = self.pairs.clone();
        let again = course.job.subjects.len();
        pairs.extend(course.pairs());
        for operation in 0..course.job.operations.len() {
            let cells = &course.samples[operation];
            let (first, second) = (summary::rates(&cells[0]), summary::rates(&cells[again]));
            let floor = stats::noise_floor(stats::paired_ratio(&second, &first));
            for cell in 0..=again {
                let Some(mut trial) = course.trial(operation, cell, floor, self.run.host.cores)
                else {
                    continue;
                };
                self.beside.fill(&mut trial);
                match course.places[operation][cell] {
                    Some(place) if self.run.trials[place] == trial => {}
                    Some(place) => {
                        self.run.trials[place] = trial;
                        changed.push(place);
                    }
                    None => {
                        changed.push(self.run.trials.len());
                        course.places[operation][cell] = Some(self.run.trials.len());
                        self.run.trials.push(trial);
                    }
                }
            }
        }
        self.run.noise = stats::noise(&pairs, Looks::Once);
        if changed.is_empty() {
            return Ok(());
        }
        observer
            .keep(&self.run, &changed)
            .map_err(SessionError::Keep)
    }

    fn identities(&self, job: &Job) -> Vec<Identity> {
        let mut device = match (&job.backing, job.in_lab) {
            (Backing::Ram, _) => Device {
                kind: "ram".to_owned(),
                path_kind: "file".to_owned(),
                filesystem: Some("tmpfs".to_owned()),
                cache: "buffered".to_owned(),
                ..Device::default()
            },
            _ => Device {
                cache: "direct".to_owned(),
                ..probe::describe(self.surroundings.named)
            },
        };
        device.engine = "loop".to_owned();
        device.size = job.size;
        let identity = |subject: &Subject| Identity {
            tier: Tier::Fs,
            system: system_name(subject.encrypter, job.in_lab),
            system_version: String::new(),
            backend: match subject.options.is_empty() {
                true => None,
                false => {
                    let names: Vec<&str> = subject.options.iter().map(|o| o.name()).collect();
                    Some(names.join(" "))
                }
            },
            cipher: subject.cipher.clone(),
            key_bits: subject.cipher.as_ref().map(|_| subject.key_bits),
            sector_bytes: subject.cipher.as_ref().map(|_| subject.sector_bytes),
            format: None,
            constant_time: None,
            device: device.clone(),
            served: false,
        };
        job.subjects.iter().map(identity).collect()
    }
}

impl<'a> Course<'a> {
    /// Of `job`, before anything is measured; `identities` are its subjects'.
    fn new(job: &'a Job, identities: Vec<Identity>) -> Self {
        let cells = job.subjects.len() + 1;
        Self {
            job,
            identities,
            exact: false,
            samples: vec![vec![Vec::new(); cells]; job.operations.len()],
            places: vec![vec![None; cells]; job.operations.len()],
        }
    }

    /// Rates of the first system's second visits ÷ its first, of every round the
    /// median: what is done in one visit shares its luck, so these are no pairs of
    /// their own.
    fn pairs(&self) -> Vec<f64> {
        let again = self.job.subjects.len();
        let mut rounds: Vec<Vec<f64>> = Vec::new();
        for cells in &self.samples {
            let (first, second) = (summary::rates(&cells[0]), summary::rates(&cells[again]));
            for (round, (first, second)) in first.iter().zip(&second).enumerate() {
                rounds.resize_with(rounds.len().max(round + 1), Vec::new);
                rounds[round].push(second / first);
            }
        }
        let medians = rounds.iter().map(|ratios| stats::median(ratios));
        medians.flatten().collect()
    }

    /// States the pace of every operation; of none where that of one is not known.
    fn pace(&mut self, seen: &Seen) {
        let cells = self.samples.iter_mut().flatten();
        let mut samples: Vec<&mut OperationSample> = cells.flatten().collect();
        for sample in &mut samples {
            sample.pace = seen.pace(sample.begun, sample.wall);
        }
        if samples.iter().any(|sample| sample.pace.is_none()) {
            samples.iter_mut().for_each(|sample| sample.pace = None);
        }
    }

    fn trial(&self, operation: usize, cell: usize, floor: f64, cores: u32) -> Option<Trial> {
        let job = self.job;
        let cells = &self.samples[operation];
        let identity = &self.identities[cell % job.subjects.len()];
        let described = summary::Cell {
            identity,
            file_system: job.file_system.name(),
            operation: &job.operations[operation],
            jobs: job.jobs,
            cold: job.cold,
            exact: self.exact,
            cores: if job.in_lab { 1 } else { cores },
        };
        let reference = (cell > 0).then_some(Reference {
            against: &self.identities[0].system,
            rates: summary::rates(&cells[0]),
            floor,
        });
        summary::trial(&described, &cells[cell], reference)
    }
}

/// What the paces of `trials` mean to who reads them.
fn paced(trials: &[Trial]) -> Option<String> {
    let mut paces: Vec<f64> = trials
        .iter()
        .flat_map(|trial| trial.samples_pace.iter().copied())
        .collect();
    paces.sort_by(f64::total_cmp);
    let at = |share: f64| paces.get(((paces.len() as f64 - 1.0) * share) as usize);
    let (median, slow) = (at(0.5)?, at(0.05)?);
    Some(format!(
        "times of the lab kernel are as at the full pace of its core; who shares it and what its \
         clock does left {:.0} % of that in the median, {:.0} % in a twentieth of the operations",
        median * 100.0,
        slow * 100.0
    ))
}

fn label(subject: &Subject, in_lab: bool) -> String {
    format!("{}{}", if in_lab { "lab:" } else { "" }, subject.label())
}

/// Why an agent has ended without a word.
fn died(job: &Job, ended: &Ended) -> SessionError {
    let said = String::from_utf8_lossy(&ended.said).into_owned();
    let last = said.lines().map(str::trim).rfind(|line| !line.is_empty());
    let who = match job.in_lab {
        true => "the agent in the lab kernel",
        false => "the agent",
    };
    SessionError::Agent {
        what: format!(
            "{who} has ended early ({}): {}",
            ended.how,
            last.unwrap_or("it said nothing")
        ),
        remedy:
            "What was measured so far is stored; run it again, and report it if it ends so again."
                .to_owned(),
    }
}

/// What directories of runs begin with, followed by the process that made them.
const FOLDER: &str = "cryptmark-fs-";

/// Removes what this user's runs have left below `temporary` that were killed together
/// with their agents. Others may put there what they like: links are not followed, and
/// folders of others are left alone.
fn tidy(temporary: &Path) {
    for entry in fs::read_dir(temporary).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(process) = name
            .strip_prefix(FOLDER)
            .and_then(|rest| rest.split('-').next())
        else {
            continue;
        };
        let own = entry.metadata().is_ok_and(|found| {
            found.is_dir() && found.uid() == rustix::process::geteuid().as_raw()
        });
        if own && !PathBuf::from(format!("/proc/{process}")).exists() {
            // Only what such a run makes: nothing is mounted there any more.
            let folder = entry.path();
            for file in ["job", "told"] {
                let _ = fs::remove_file(folder.join(file));
            }
            let _ = fs::remove_dir(folder.join("scratch"));
            let _ = fs::remove_dir(folder);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Everybody may put what they like into the folder of temporary files.
    #[test]
    fn what_others_have_put_there_is_left_alone() {
        let temporary = TempDir::new().unwrap();
        let precious = TempDir::new().unwrap();
        // No process has this number.
        let left = |name: &str| temporary.path().join(format!("{FOLDER}4194399-{name}"));
        fs::create_dir_all(left("own").join("scratch")).unwrap();
        for folder in [precious.path(), &left("own")] {
            fs::write(folder.join("job"), "job").unwrap();
            fs::write(folder.join("told"), "told").unwrap();
        }
        std::os::unix::fs::symlink(precious.path(), left("link")).unwrap();
        tidy(temporary.path());
        assert!(!left("own").exists());
        assert!(precious.path().join("job").exists() && precious.path().join("told").exists());
        if rustix::process::geteuid().is_root() {
            fs::create_dir(left("theirs")).unwrap();
            fs::write(left("theirs").join("job"), "job").unwrap();
            std::os::unix::fs::chown(left("theirs"), Some(65534), None).unwrap();
            tidy(temporary.path());
            assert!(left("theirs").join("job").exists());
        }
    }
}
