//! File systems as cells of a session: stacks on a backing, visited by agents.
//!
//! Each job of the plan is run by an agent of its own, on this kernel or in the
//! lab kernel. It goes through its rounds by itself; the session asks in the same order, and
//! hears what each operation took.

use super::cell::Cell;
use super::rounds::Stage;
use super::subject::{Once, Subject};
use super::{Observer, Session, Way};
use crate::clock::Clock;
use crate::error::LabError;
use crate::experiment::file_systems::{FileSystems, base_job, system_name};
use crate::experiment::{Schedule, Until};
use crate::file_system::agent::{self, Ended, Told};
use crate::file_system::error::{unreadable_job, unusable};
use crate::file_system::{self, Backing, Event, FileSystem, Job, Kernel, OperationSample};
use crate::probe::{self, Pace};
use crate::record::{Device, Exposure, Host, Tier, Trial};
use crate::stats::Looks;
use crate::summary::operation as summary;
use crate::system::engine_file::EngineBackend;
use crate::trial::{Sample, Samples};
use crate::workload::Workload;
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::fs;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tempfile::TempDir;

/// The core, of those that may be used, that has the lab kernel.
const LAB_CORE: u32 = 1;

/// How soon what an agent tells is heard.
const TICK: Duration = Duration::from_millis(20);

/// Runs this program with arguments as an agent in a lab kernel, with write access to a
/// directory. The agent runs to its end, or until it is stopped.
pub type Boot<'a> =
    dyn Fn(Kernel, &[OsString], &Path, &AtomicBool) -> Result<Ended, LabError> + Sync + 'a;

/// The inputs that a run needs in addition to its plan.
pub struct Surroundings<'a> {
    /// This program.
    pub program: &'a Path,
    /// The storage that is to hold the bytes.
    pub at: Backing,
    /// The path that the user gave for that storage.
    pub named: &'a Path,
    /// The function that runs an agent in a lab kernel.
    pub boot: &'a Boot<'a>,
    /// The lab kernels that are not there, each with the reason.
    pub absent: Vec<(Kernel, String)>,
}

/// A lab kernel, for people.
const fn lab_name(kernel: Kernel) -> &'static str {
    match kernel {
        Kernel::Lab6 => "lab kernel 6.1",
        _ => "lab kernel",
    }
}

/// The jobs of a plan, an agent each.
pub(super) struct Jobs<'a> {
    surroundings: Surroundings<'a>,
    folder: TempDir,
    agents: Vec<Rc<Agent>>,
}

/// Sets a flag when it is dropped.
struct Raise(Arc<AtomicBool>);

impl Drop for Raise {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A running job, and the events that it has sent.
struct Agent {
    job: Job,
    /// The speed of its core, recorded while lab kernels run on it.
    core: Option<Rc<Pace>>,
    /// The maximum number of processors that work for the job at a time.
    cores: u32,
    /// Whether the agent is to end.
    halt: Arc<AtomicBool>,
    /// Whether the agent has ended.
    gone: Arc<AtomicBool>,
    heard: RefCell<Heard>,
}

/// The data that an agent has sent.
#[derive(Default)]
struct Heard {
    told: Option<Told>,
    events: VecDeque<Event>,
    kernel: String,
    maker: String,
    exact: bool,
    /// By subject.
    backends: BTreeMap<usize, EngineBackend>,
    absent: BTreeMap<usize, String>,
    exposures: BTreeMap<usize, Exposure>,
    /// By cell and operation.
    samples: BTreeMap<(usize, usize), Vec<OperationSample>>,
    /// Whether more may be known of their paces.
    unpaced: bool,
    over: Option<Result<(), LabError>>,
}

/// A stack on a backing, with a file system on it: a cell of an agent's job.
struct OnStack {
    agent: Rc<Agent>,
    cell: usize,
}

impl Agent {
    /// The next event of the agent; `None` once the agent has ended.
    fn next(&self, stop: &AtomicBool) -> Result<Option<Event>, LabError> {
        loop {
            let mut heard = self.heard.borrow_mut();
            if let Some(event) = heard.events.pop_front() {
                return Ok(Some(event));
            }
            // An agent that has ended has sent all its events.
            let gone = self.gone.load(Ordering::Relaxed);
            let new = heard.told.as_mut().map_or(Ok(Vec::new()), Told::read)?;
            if new.is_empty() && gone {
                return Ok(None);
            }
            heard.events.extend(new);
            if heard.events.is_empty() {
                drop(heard);
                self.halt
                    .fetch_or(stop.load(Ordering::Relaxed), Ordering::Relaxed);
                std::thread::sleep(TICK);
            }
        }
    }

    /// Waits until it begins with an operation; whether it does, and has not ended instead.
    fn begins(&self, stop: &AtomicBool) -> Result<bool, LabError> {
        while let Some(event) = self.next(stop)? {
            let mut heard = self.heard.borrow_mut();
            match event {
                Event::Begun {
                    kernel,
                    maker,
                    exact,
                } => (heard.kernel, heard.maker, heard.exact) = (kernel, maker, exact),
                Event::Engine { subject, backend } => {
                    heard.backends.insert(subject, backend);
                }
                Event::Absent { subject, reason } => {
                    heard.absent.insert(subject, reason);
                }
                Event::Exposed { subject, exposure } => {
                    heard.exposures.insert(subject, *exposure);
                }
                Event::Done => heard.over = Some(Ok(())),
                Event::Failed {
                    interrupted: true, ..
                } => heard.over = Some(Err(LabError::session_interrupted())),
                Event::Failed { what, remedy, .. } => {
                    heard.over = Some(Err(LabError::failed(what, remedy)));
                }
                Event::Visiting { .. } | Event::Sample { .. } => {
                    heard.events.push_front(event);
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// The sample of the next operation, which must be `asked`: cell, operation and round.
    fn sample(&self, asked: (usize, usize, u32), stop: &AtomicBool) -> Result<Sample, LabError> {
        while self.begins(stop)? {
            let mut heard = self.heard.borrow_mut();
            if let Some(Event::Sample {
                cell,
                operation,
                round,
                sample,
            }) = heard.events.pop_front()
            {
                if (cell, operation, round) != asked {
                    return Err(LabError::failed(
                        "the agent measured something other than what was requested",
                        "Report it.",
                    ));
                }
                heard
                    .samples
                    .entry((cell, operation))
                    .or_default()
                    .push(sample);
                heard.unpaced = true;
                return Ok(summary::sample(&sample));
            }
        }
        // The caller that started the agent knows why it has ended.
        Err(LabError::session_interrupted())
    }

    /// Sets the relative core speed of every operation, or of none if that of one is unknown.
    fn pace(&self) {
        let heard = &mut *self.heard.borrow_mut();
        let Some(core) = self.core.as_ref().filter(|_| heard.unpaced) else {
            return;
        };
        heard.unpaced = false;
        let seen = core.seen();
        let mut samples: Vec<&mut OperationSample> = heard.samples.values_mut().flatten().collect();
        for sample in &mut samples {
            sample.pace = seen.pace(sample.begun, sample.wall);
        }
        if samples.iter().any(|sample| sample.pace.is_none()) {
            samples.iter_mut().for_each(|sample| sample.pace = None);
        }
    }

    /// The place of a workload among its operations.
    fn operation(&self, workload: &Workload) -> Option<usize> {
        let mut operations = self.job.operations.iter();
        operations.position(|operation| operation.name == workload.name)
    }

    /// The stacks, and the first again.
    fn cells(self: &Rc<Self>, plan: &Schedule, place: usize, device: &Device) -> Vec<Cell> {
        let job = &self.job;
        let again = job.subjects.len();
        let cell = |cell: usize| {
            let subject = &job.subjects[cell % again];
            let options: Vec<&str> = subject.options.iter().map(|option| option.name()).collect();
            let identity = Trial {
                tier: Tier::Fs,
                system: system_name(subject.encrypter, job.kernel),
                backend: (!options.is_empty()).then(|| options.join(" ")),
                cipher: subject.cipher.clone(),
                key_bits: subject.cipher.as_ref().map(|_| subject.key_bits),
                sector_bytes: subject.cipher.as_ref().map(|_| subject.sector_bytes),
                device: device.clone(),
                ..Trial::default()
            };
            let label = format!("{}{}", job.kernel.prefix(), subject.label());
            let agent = Rc::clone(self);
            Cell {
                place,
                ..Cell::new(Box::new(OnStack { agent, cell }), label, identity, plan)
            }
        };
        (0..=again).map(cell).collect()
    }

    /// Why it has ended without a word.
    fn died(&self, ended: &Ended) -> LabError {
        let said = String::from_utf8_lossy(&ended.said).into_owned();
        let last = said.lines().map(str::trim).rfind(|line| !line.is_empty());
        let who = match self.job.kernel.is_lab() {
            true => "the agent in the lab kernel",
            false => "the agent",
        };
        LabError::failed(
            format!(
                "{who} ended early ({}): {}",
                ended.how,
                last.unwrap_or("it gave no message")
            ),
            "The finished trials are stored. Run it again, and report it if it ends like this \
             again.",
        )
    }
}

impl Subject for OnStack {
    fn takes(&self, workload: &Workload) -> bool {
        let subject = self.cell % self.agent.job.subjects.len();
        let absent = self.agent.heard.borrow().absent.contains_key(&subject);
        let job = &self.agent.job;
        let suits = |place: usize| {
            job.subjects[subject]
                .encrypter
                .suits(&job.operations[place])
        };
        !absent && self.agent.operation(workload).is_some_and(suits)
    }

    fn is_timed_here(&self) -> bool {
        false
    }

    fn visit(&self, workload: &Workload, once: Once<'_>) -> Result<Sample, LabError> {
        let operation = self.agent.operation(workload).unwrap_or_default();
        self.agent
            .sample((self.cell, operation, once.number), once.stop)
    }

    fn calls(&self, workload: &Workload) -> String {
        format!("{} · {}", self.agent.job.file_system.name(), workload.name)
    }

    fn is_visited_whole(&self) -> bool {
        true
    }

    fn timed_elsewhere(&self, workload: &Workload) -> Option<(f64, f64)> {
        let operation = self.agent.operation(workload)?;
        let heard = self.agent.heard.borrow();
        let last = heard.samples.get(&(self.cell, operation))?.last()?;
        Some((last.begun, last.wall))
    }

    /// Every operation begins in a state that is made for it.
    fn lasts(&self) -> bool {
        false
    }

    fn samples(&self, workload: &Workload, looks: Looks) -> Option<Samples> {
        self.agent.core.as_ref()?;
        self.agent.pace();
        let operation = self.agent.operation(workload)?;
        let heard = self.agent.heard.borrow();
        let mut samples = Samples::new(looks);
        for sample in heard
            .samples
            .get(&(self.cell, operation))
            .into_iter()
            .flatten()
        {
            samples.push(summary::sample(sample));
        }
        Some(samples)
    }

    fn complete(&self, trial: &mut Trial) {
        let heard = self.agent.heard.borrow();
        let job = &self.agent.job;
        let of_name = |operation: &file_system::Operation| operation.name == trial.workload;
        let Some(operation) = job.operations.iter().position(of_name) else {
            return;
        };
        trial.op = job.operations[operation].op.as_str().to_owned();
        trial.system_version.clone_from(&heard.kernel);
        if let Some(engine) = heard.backends.get(&(self.cell % job.subjects.len())) {
            trial.backend = Some(engine.backend.clone());
            trial.constant_time = Some(engine.constant_time);
            trial.system_version = env!("CARGO_PKG_VERSION").to_owned();
        }
        if let Some(samples) = heard.samples.get(&(self.cell, operation)) {
            let (file_system, cores) = (job.file_system.name(), self.agent.cores);
            summary::complete(trial, file_system, samples, heard.exact, cores);
        }
    }
}

impl<'a> Session<'a> {
    /// File systems by `plan`; `id` names the run.
    ///
    /// # Errors
    /// [`LabError`], also if nothing can be measured.
    pub fn of_file_systems(
        plan: &FileSystems,
        surroundings: Surroundings<'a>,
        seed: u64,
        id: String,
    ) -> Result<Self, LabError> {
        tidy(&std::env::temp_dir());
        let folder = tempfile::Builder::new()
            .prefix(&format!("{FOLDER}{}-", std::process::id()))
            .tempdir()
            .map_err(|source| {
                unusable("cannot make a directory in", &std::env::temp_dir(), source)
            })?;
        let base = base_job(
            &std::process::id().to_string(),
            surroundings.program,
            &folder.path().join("scratch"),
            seed,
        );
        let schedule = Arc::new(plan.schedule());
        let mut legs = plan.legs(&surroundings.at, &base)?;
        let mut warnings = Vec::new();
        for (kernel, reason) in &surroundings.absent {
            if !legs.iter().any(|leg| leg.kernel == *kernel) {
                continue;
            }
            legs.retain(|leg| leg.kernel != *kernel);
            let absent = format!("the {} ({reason})", lab_name(*kernel));
            if legs.is_empty() {
                return Err(super::all_absent(&[absent]));
            }
            warnings.push(format!("absent: {absent}"));
        }
        let in_lab = legs.iter().any(|leg| leg.kernel.is_lab());
        if in_lab {
            warnings.push(
                "the lab kernel has ciphers in plain C and storage in memory: its figures compare \
                 systems, ciphers and file systems, but don't show this machine's dm-crypt speed"
                    .to_owned(),
            );
        }
        if plan.in_directory {
            warnings.push(
                "measured as a user in a directory: only root can make the kernel forget names and \
                 attributes of files, so these stay cached, and only their contents are cold"
                    .to_owned(),
            );
        }
        let core = in_lab.then(|| Pace::watch(LAB_CORE)).flatten().map(Rc::new);
        let mut agents = Vec::new();
        let cells = |host: &Host| {
            let mut cells = Vec::new();
            for (place, job) in legs.into_iter().flat_map(|leg| leg.jobs).enumerate() {
                let device = device(&job, surroundings.named);
                let agent = Rc::new(Agent {
                    core: core.clone().filter(|_| job.kernel.is_lab()),
                    cores: if job.kernel.is_lab() { 1 } else { host.cores },
                    halt: Arc::default(),
                    gone: Arc::default(),
                    heard: RefCell::default(),
                    job,
                });
                cells.extend(agent.cells(&schedule, place, &device));
                agents.push(agent);
            }
            cells
        };
        let mut session = Self::of(Arc::clone(&schedule), seed, id, warnings, cells)?;
        session.way = Way::Jobs(Jobs {
            surroundings,
            folder,
            agents,
        });
        Ok(session)
    }

    /// All jobs, one after the other.
    pub(super) fn jobs(
        &mut self,
        jobs: &Jobs<'_>,
        stop: &AtomicBool,
        observer: &mut dyn Observer,
    ) -> Result<(), LabError> {
        let visits = |agent: &Rc<Agent>| {
            let job = &agent.job;
            let cells = job.subjects.len() as u64 + 1;
            cells * job.operations.len() as u64 * u64::from(job.repetitions)
        };
        let plan = Arc::clone(&self.plan);
        let until = plan.until.as_ref();
        let visits = match until {
            Some(until) => (10.0 * until.seconds) as u64,
            None => jobs.agents.iter().map(visits).sum(),
        };
        let clock = Clock::get();
        let begun = clock.now();
        let mut done = 0;
        let mut outcome = Ok(());
        for (place, agent) in jobs.agents.iter().enumerate() {
            // Time that one job leaves over goes to the next one.
            let share = (place + 1) as f64 / jobs.agents.len() as f64;
            let end = |until: &Until| Duration::from_secs_f64(until.seconds * share);
            let time = until.map(|until| clock.now()..begun + clock.ticks(end(until)));
            let stage = Stage {
                workloads: (0..self.plan.workloads.len()).collect(),
                test: None,
                place: Some(place),
                time,
            };
            match self.job(jobs, agent, &stage, done..visits, stop, observer) {
                Ok(visited) => done = visited,
                Err(error) => {
                    outcome = Err(error);
                    break;
                }
            }
        }
        // The full pace is known best in the end.
        for agent in &jobs.agents {
            agent.heard.borrow_mut().unpaced = true;
        }
        self.fresh.extend(0..self.plan.workloads.len());
        outcome = outcome.and(self.hand_over(observer));
        if outcome.is_ok() && self.run.trials.is_empty() {
            let absent = self.run.warnings.iter();
            let absent: Vec<&str> = absent
                .filter_map(|warning| warning.strip_prefix("absent: "))
                .collect();
            outcome = Err(super::all_absent(&absent));
        }
        self.run.warnings.extend(paced(&self.run.trials));
        outcome
    }

    /// One job, by its agent; the visits done by then.
    fn job(
        &mut self,
        jobs: &Jobs<'_>,
        agent: &Agent,
        stage: &Stage,
        visits: Range<u64>,
        stop: &AtomicBool,
        observer: &mut dyn Observer,
    ) -> Result<u64, LabError> {
        let job = &agent.job;
        let [told, file] = ["told", "job"].map(|name| jobs.folder.path().join(name));
        for stale in [&told, &file] {
            // Of the job before.
            let _ = fs::remove_file(stale);
        }
        let unwritable = |path, source| unusable("cannot write", path, source);
        fs::create_dir_all(&job.scratch).map_err(|error| unwritable(&job.scratch, error))?;
        let text = serde_json::to_vec(job).map_err(unreadable_job)?;
        fs::write(&file, text).map_err(|error| unwritable(&file, error))?;
        agent.heard.borrow_mut().told = Some(Told::create(&told)?);
        let arguments = agent::arguments(&file, &told);
        let (program, folder) = (jobs.surroundings.program, jobs.folder.path());
        let (kernel, boot) = (job.kernel, jobs.surroundings.boot);
        let needs_root = job.file_system != FileSystem::Directory;
        std::thread::scope(|scope| {
            // Any exit from this scope ends the agent.
            let _halt = Raise(Arc::clone(&agent.halt));
            let (halt, gone) = (Arc::clone(&agent.halt), Arc::clone(&agent.gone));
            let running = scope.spawn(move || {
                let _gone = Raise(gone);
                match kernel.is_lab() {
                    true => {
                        // The lab kernel stays on the core on which it was started.
                        probe::pin_to_core(LAB_CORE);
                        boot(kernel, &arguments, folder, &halt)
                    }
                    false => agent::run_here(program, &arguments, needs_root, &halt)
                        .map_err(LabError::into_failure),
                }
            });
            let begins = agent.begins(stop)?;
            self.note(agent);
            let measured = match begins {
                true => self.stage(stage, visits.clone(), stop, observer),
                false => Ok(visits.start),
            };
            // Measurements beyond that point are not needed.
            let decided = measured.is_ok() && agent.begins(stop)?;
            if decided || measured.is_err() {
                agent.halt.store(true, Ordering::Relaxed);
            }
            while agent.begins(stop)? {
                agent.heard.borrow_mut().events.clear();
            }
            let ended = match running.join() {
                Ok(ended) => ended,
                Err(panic) => std::panic::resume_unwind(panic),
            };
            let done = match measured {
                Err(error) if error.is_interrupted() => visits.start,
                Err(error) => return Err(error),
                Ok(done) if decided => return Ok(done),
                Ok(done) => done,
            };
            let over = agent.heard.borrow_mut().over.take();
            match (over, ended) {
                (Some(outcome), _) => outcome.map(|()| done),
                _ if stop.load(Ordering::Relaxed) => Err(LabError::session_interrupted()),
                (None, Ok(ended)) => Err(agent.died(&ended)),
                (None, Err(error)) => Err(error),
            }
        })
    }

    /// States what an agent works with, and what is absent.
    fn note(&mut self, agent: &Agent) {
        let (job, heard) = (&agent.job, agent.heard.borrow());
        let versions = &mut self.run.host.versions;
        if !heard.kernel.is_empty() {
            versions.insert(job.file_system.maker().to_owned(), heard.maker.clone());
            if job.kernel.is_lab() {
                versions.insert(lab_name(job.kernel).to_owned(), heard.kernel.clone());
            }
        }
        self.run
            .exposures
            .extend(heard.exposures.iter().map(|(&subject, seen)| {
                let subject = &job.subjects[subject];
                Exposure {
                    system: system_name(subject.encrypter, job.kernel),
                    cipher: subject.cipher.clone(),
                    fs: job.file_system.name().to_owned(),
                    ..seen.clone()
                }
            }));
        for (&subject, reason) in &heard.absent {
            let subject = &job.subjects[subject.min(job.subjects.len() - 1)];
            let name = system_name(subject.encrypter, job.kernel);
            let absent = format!("absent: {name} ({reason})");
            if !self.run.warnings.contains(&absent) {
                self.run.warnings.push(absent);
            }
        }
    }
}

/// The device of a job's bytes; `named` is the path that the user gave.
fn device(job: &Job, named: &Path) -> Device {
    let device = match job.backing {
        Backing::Ram => Device {
            kind: "ram".to_owned(),
            path_kind: "file".to_owned(),
            filesystem: Some("tmpfs".to_owned()),
            cache: "buffered".to_owned(),
            ..Device::default()
        },
        _ => Device {
            cache: "direct".to_owned(),
            ..probe::describe(named)
        },
    };
    Device {
        engine: match job.file_system {
            FileSystem::Directory => "directory",
            _ => "loop",
        }
        .to_owned(),
        size: job.size,
        ..device
    }
}

/// A note for readers on the relative core speeds of `trials`.
fn paced(trials: &[Trial]) -> Option<String> {
    let mut paces: Vec<f64> = trials
        .iter()
        .filter_map(Trial::operation)
        .flat_map(|operation| operation.samples_pace.iter().copied())
        .collect();
    paces.sort_by(f64::total_cmp);
    let at = |share: f64| paces.get(((paces.len() as f64 - 1.0) * share) as usize);
    let (median, slow) = (at(0.5)?, at(0.05)?);
    Some(format!(
        "the lab kernel's times are corrected to full core speed; the core ran at {:.0} % of that \
         in the median, and at {:.0} % or less in the slowest twentieth",
        median * 100.0,
        slow * 100.0
    ))
}

/// The prefix of the names of runs' directories, followed by the id of the process that made them.
const FOLDER: &str = "cryptmark-fs-";

/// Removes the directories below `temporary` that this user's killed runs have left, if their
/// agents were killed, too. Other users can create anything there, so links are not followed and
/// folders of other users are left alone.
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
