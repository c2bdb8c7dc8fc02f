//! [`FileSystems`]: a plan on file systems, run by agents and made into records.
//!
//! Each job of the plan is run by an agent of its own, on this kernel or in the
//! lab kernel. What it tells becomes records as it comes.

use super::{Observer, STEAL, SessionError, Visit};
use crate::file_system::agent::{self, Told};
use crate::file_system::plan::{FileSystemPlan, Leg, base_job, system_name};
use crate::file_system::{
    Backing, Event, FileSystemError, Job, OperationSample, Subject,
};
use crate::probe::{self, StealMeter};
use crate::record::{Device, Noise, Run, SCHEMA, Tier, Trial};
use crate::stats;
use crate::summary::Identity;
use crate::summary::operation::{self as summary, Against};
use std::ffi::OsString;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How soon what an agent tells is heard.
const TICK: Duration = Duration::from_millis(20);

/// How long an agent may take to undo everything.
const ENDING: Duration = Duration::from_secs(60);

/// Starts an agent with these arguments, which may write in this directory; it
/// ends with the process that is returned.
pub type Start<'a> = dyn Fn(&[OsString], &Path) -> Result<Child, FileSystemError> + 'a;

/// What a run needs beside its plan.
pub struct Surroundings<'a> {
    /// This program.
    pub program: &'a Path,
    /// Where the bytes are to live.
    pub at: Backing,
    /// The path that the user gave for that.
    pub named: &'a Path,
    /// How an agent is started in the lab kernel; or why it cannot be.
    pub lab: Result<&'a Start<'a>, String>,
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
    /// Rates of the first system's second visits ÷ its first, of all operations.
    pairs: Vec<f64>,
    steal: StealMeter,
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
        tidy();
        let folder = tempfile::Builder::new()
            .prefix(&format!("{FOLDER}{}-", std::process::id()))
            .tempdir()
            .map_err(|source| FileSystemError::File {
                what: "cannot make a directory in",
                path: std::env::temp_dir(),
                source,
            })?;
        let name = std::process::id().to_string();
        let base = base_job(&name, surroundings.program, &folder.path().join("scratch"), seed);
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
                schema: SCHEMA.to_owned(),
                run: id,
                plan: plan.name.clone(),
                started: jiff::Zoned::now()
                    .strftime("%Y-%m-%dT%H:%M:%S%:z")
                    .to_string(),
                partial: true,
                seed,
                host: probe::host(),
                noise: Noise::default(),
                trials: Vec::new(),
                warnings,
            },
        })
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
        for leg in std::mem::take(&mut self.legs) {
            for job in &leg.jobs {
                if outcome.is_ok() {
                    outcome = self.course(job, stop, observer);
                }
            }
        }
        if outcome.is_ok() && self.run.trials.is_empty() {
            outcome = Err(SessionError::Absent(self.run.warnings.clone()));
        }
        self.run.partial = outcome.is_err();
        self.run.host.steal = self.steal.share();
        if let Some(steal) = self.run.host.steal.filter(|steal| *steal > STEAL) {
            self.run.warnings.push(format!(
                "the hypervisor took {:.0} % of the CPU time away; run again when the host is quieter",
                steal * 100.0
            ));
        }
        (self.run, outcome)
    }

    /// One job, by one agent.
    fn course(
        &mut self,
        job: &Job,
        stop: &AtomicBool,
        observer: &mut dyn Observer,
    ) -> Result<(), SessionError> {
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
        let child = match (job.in_lab, &self.surroundings.lab) {
            (false, _) => agent::start_here(self.surroundings.program, &arguments)?,
            (true, Ok(start)) => start(&arguments, self.folder.path())?,
            (true, Err(_)) => return Ok(()),
        };
        let mut agent = Agent { child };
        let cells = job.subjects.len() + 1;
        let mut course = Course {
            job,
            identities: self.identities(job),
            exact: false,
            samples: vec![vec![Vec::new(); cells]; job.operations.len()],
            places: vec![vec![None; cells]; job.operations.len()],
        };
        let mut kept = Instant::now();
        loop {
            let ended = agent.has_ended();
            let mut over = None;
            for event in events.read()? {
                match event {
                    Event::Done => over = Some(Ok(())),
                    Event::Failed {
                        interrupted: true, ..
                    } => over = Some(Err(SessionError::Interrupted)),
                    Event::Failed { what, remedy, .. } => {
                        let failed = SessionError::Agent { what, remedy };
                        over = Some(Err(failed));
                    }
                    event => self.hear(event, &mut course, observer),
                }
            }
            if over.is_some() || ended || kept.elapsed() >= super::KEPT_EVERY {
                self.keep(&mut course, observer)?;
                kept = Instant::now();
            }
            match over {
                Some(outcome) => {
                    agent.end();
                    return outcome;
                }
                None if ended && stop.load(Ordering::Relaxed) => {
                    return Err(SessionError::Interrupted);
                }
                None if ended => return Err(agent.died(job)),
                None => {}
            }
            if stop.load(Ordering::Relaxed) {
                agent.stop(job.in_lab);
            }
            std::thread::sleep(TICK);
        }
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
                    rounds: self.rounds,
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
        let mut changed = Vec::new();
        let mut pairs = self.pairs.clone();
        let again = course.job.subjects.len();
        for operation in 0..course.job.operations.len() {
            let cells = &course.samples[operation];
            let (first, second) = (summary::rates(&cells[0]), summary::rates(&cells[again]));
            pairs.extend(second.iter().zip(&first).map(|(b, a)| b / a));
            let floor = stats::noise_floor(stats::paired_ratio(&second, &first));
            for cell in 0..=again {
                let Some(trial) = course.trial(operation, cell, floor, self.run.host.cores) else {
                    continue;
                };
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
        self.run.noise = stats::noise(&pairs);
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
            constant_time: None,
            device: device.clone(),
            served: false,
        };
        job.subjects.iter().map(identity).collect()
    }
}

impl Course<'_> {
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
        let against = (cell > 0).then_some(Against {
            system: &self.identities[0].system,
            samples: &cells[0],
            floor,
        });
        summary::trial(&described, &cells[cell], against)
    }
}

fn label(subject: &Subject, in_lab: bool) -> String {
    format!("{}{}", if in_lab { "lab:" } else { "" }, subject.label())
}

/// An agent that runs; it is ended when this is dropped.
struct Agent {
    child: Child,
}

impl Agent {
    fn has_ended(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(_)) | Err(_))
    }

    /// Tells it that nobody wants more; the lab kernel simply goes.
    fn stop(&mut self, in_lab: bool) {
        if in_lab {
            let _ = self.child.kill();
        }
        self.child.stdin = None;
    }

    /// Lets it end by itself for a while.
    fn end(&mut self) {
        self.child.stdin = None;
        let begun = Instant::now();
        while !self.has_ended() && begun.elapsed() < ENDING {
            std::thread::sleep(TICK);
        }
    }

    /// Why it has ended without a word.
    fn died(&mut self, job: &Job) -> SessionError {
        let mut said = Vec::new();
        if let Some(errors) = &mut self.child.stderr {
            let _ = errors.take(1 << 16).read_to_end(&mut said);
        }
        let said = String::from_utf8_lossy(&said).into_owned();
        let last = said.lines().map(str::trim).rfind(|line| !line.is_empty());
        let how = match self.child.try_wait() {
            Ok(Some(status)) => status.to_string(),
            _ => "for an unknown reason".to_owned(),
        };
        let who = if job.in_lab { "the lab kernel" } else { "the agent" };
        SessionError::Agent {
            what: format!("{who} has ended early ({how}): {}", last.unwrap_or("it said nothing")),
            remedy: "What was measured so far is stored; run it again, and report it if it ends so again.".into(),
        }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.end();
        // Its namespaces go with it, and what was mounted in them.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What directories of runs begin with, followed by the process that made them.
const FOLDER: &str = "cryptmark-fs-";

/// Removes what runs have left that were killed together with their agents.
fn tidy() {
    for entry in fs::read_dir(std::env::temp_dir())
        .into_iter()
        .flatten()
        .flatten()
    {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(process) = name.strip_prefix(FOLDER).and_then(|rest| rest.split('-').next())
        else {
            continue;
        };
        if !PathBuf::from(format!("/proc/{process}")).exists() {
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
