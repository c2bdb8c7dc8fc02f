//! [`Sweeping`]: the lives of a sweep, on all cores, kept as they go.
//!
//! A *life* is one drive in one use from one seed; it is lived once for every way in
//! which discards come to the drive, and the aged drive is used without encryption
//! and behind every cipher. Places are handed over in their order, so that what is
//! stored does not tell how many cores there were, and a run that was interrupted
//! is a beginning that can be gone on with.

use super::simulated::{Ciphers, Encrypting};
use super::{KEPT_EVERY, Observer, SessionError, Visit, begun, ended, state_build};
use crate::clock::Clock;
use crate::record::{Life, Run, Tier, Trial, TrimPolicy};
use crate::stats;
use crate::summary::{self, Identity, Reference};
use crate::sweep::{Place, Sweep, of_drive};
use crate::target::life::{Aged, Living, Outcome};
use crate::target::simulated::{self, Processor, SimulatedError};
use crate::trial::{self, Options, Sample, Samples, TrialError, histogram};
use crate::workload::Workload;
use hdrhistogram::Histogram;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;

/// A sweep on its way.
pub struct Sweeping<'a> {
    sweep: &'a Sweep,
    ciphers: Ciphers,
    numbers: Vec<u32>,
    run: Run,
}

/// Who uses a drive: nobody's cipher, or one of the sweep's.
#[derive(Clone, Copy)]
struct User<'a> {
    policy: TrimPolicy,
    cipher: Option<&'a Encrypting>,
}

/// What one seed has brought to a place.
struct Lived {
    /// By policy, the drive that is not encrypted first.
    outcomes: Vec<Outcome>,
    /// By workload, then by user.
    samples: Vec<Vec<Sample>>,
}

/// What is known of a place.
struct Gathered {
    outcomes: Vec<Option<Vec<Outcome>>>,
    /// By workload, user and seed; latencies of all seeds are together.
    samples: Vec<Vec<Vec<Option<Sample>>>>,
    latencies: Vec<Vec<Histogram<u64>>>,
    missing: usize,
}

impl<'a> Sweeping<'a> {
    /// A sweep whose lives are from `seed` on; `id` names the run.
    ///
    /// # Errors
    /// [`SessionError::Plan`], [`SessionError::Simulated`].
    pub fn new(sweep: &'a Sweep, seed: u64, id: String) -> Result<Self, SessionError> {
        let ciphers = Ciphers::of(&sweep.plan(), None)?;
        let run = Run {
            fingerprint: Some(fingerprint(sweep, seed)),
            ..begun(&sweep.name, seed, id, ciphers.warnings())
        };
        Ok(Self {
            numbers: sweep.numbers(),
            ciphers,
            sweep,
            run,
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

    /// Whether `run` is a beginning of this, by the same program.
    pub fn goes_on_with(&self, run: &Run) -> bool {
        let build = |run: &Run| run.host.versions.get("cryptmark").cloned();
        run.partial && run.fingerprint == self.run.fingerprint && build(run) == build(&self.run)
    }

    /// Goes on with a beginning of this, under its id.
    pub fn resumed(mut self, beginning: Run) -> Self {
        self.run = beginning;
        let whole = self.done() * self.trials_of_a_place();
        self.run.trials.truncate(whole);
        self
    }

    /// Places that are done.
    pub fn done(&self) -> usize {
        self.run.trials.len() / self.trials_of_a_place()
    }

    fn users(&self) -> Vec<User<'_>> {
        let plain = User {
            policy: TrimPolicy::Plain,
            cipher: None,
        };
        let policies = self.sweep.policies.iter();
        let encrypted = policies.flat_map(|&policy| {
            self.ciphers.all().map(move |cipher| User {
                policy,
                cipher: Some(cipher),
            })
        });
        std::iter::once(plain).chain(encrypted).collect()
    }

    fn trials_of_a_place(&self) -> usize {
        self.users().len() * self.sweep.workloads.len()
    }

    /// Lives the first life that is missing, to know how long they take; what it comes to is
    /// thrown away.
    ///
    /// # Errors
    /// As [`measure`](Self::measure).
    pub fn try_one(&self, stop: &AtomicBool) -> Result<(), SessionError> {
        match self.numbers.get(self.done()) {
            Some(&number) => self.live(&self.sweep.place(number), 0, stop).map(drop),
            None => Ok(()),
        }
    }

    /// Lives all of them on so many cores.
    ///
    /// Whatever happens, the returned run holds what was measured; it says
    /// `partial` unless the sweep was completed.
    pub fn measure(
        self,
        cores: usize,
        stop: &AtomicBool,
        observer: &mut dyn Observer,
    ) -> (Run, Result<(), SessionError>) {
        let mut run = self.run.clone();
        let outcome = self.all(&mut run, cores, stop, observer);
        let whole = outcome.is_ok();
        // The hypervisor takes nothing of virtual time.
        (ended(run, None, whole), outcome)
    }

    fn all(
        &self,
        run: &mut Run,
        cores: usize,
        stop: &AtomicBool,
        observer: &mut dyn Observer,
    ) -> Result<(), SessionError> {
        let begin = self.done();
        let places: Vec<Place> = self.numbers.iter().map(|&n| self.sweep.place(n)).collect();
        let tasks: Vec<(usize, u32)> = (begin..places.len())
            .flat_map(|place| (0..places[place].seeds.1).map(move |seed| (place, seed)))
            .collect();
        let next = AtomicUsize::new(0);
        let failed = AtomicBool::new(false);
        let visits = tasks.len() as u64;
        std::thread::scope(|scope| {
            // As many as cores may be done and not looked at: each has its histograms.
            let (sender, receiver) = mpsc::sync_channel(cores);
            for _ in 0..cores.max(1) {
                let sender = sender.clone();
                let (next, failed, tasks, places) = (&next, &failed, &tasks, &places);
                scope.spawn(move || {
                    while !failed.load(Ordering::Relaxed) {
                        let Some(&(place, seed)) = tasks.get(next.fetch_add(1, Ordering::Relaxed))
                        else {
                            break;
                        };
                        let lived = self.live(&places[place], seed, stop);
                        failed.fetch_or(lived.is_err(), Ordering::Relaxed);
                        if sender.send((place, seed, lived)).is_err() {
                            break;
                        }
                    }
                });
            }
            drop(sender);
            let mut gathered: BTreeMap<usize, Gathered> = BTreeMap::new();
            let mut ready = begin;
            let mut kept = run.trials.len();
            let clock = Clock::get();
            let mut then = clock.now();
            let mut outcome = Ok(());
            let mut done = 0;
            show(&places, begin, 0..visits, observer);
            for (place, seed, lived) in receiver {
                let lived = match lived {
                    Ok(lived) => lived,
                    // The first one is why; the others were told to stop.
                    Err(error) => {
                        outcome = outcome.and(Err(error));
                        continue;
                    }
                };
                done += 1;
                let seeds = places[place].seeds.1 as usize;
                let all = gathered
                    .entry(place)
                    .or_insert_with(|| Gathered::new(seeds, &lived));
                all.add(seed as usize, lived);
                while gathered.get(&ready).is_some_and(|all| all.missing == 0) {
                    if let Some(all) = gathered.remove(&ready) {
                        run.trials.extend(self.summarise(&places[ready], all)?);
                    }
                    ready += 1;
                }
                show(&places, place, done..visits, observer);
                if clock.now() - then >= clock.ticks(KEPT_EVERY) {
                    keep(run, &mut kept, observer, &failed)?;
                    then = clock.now();
                }
            }
            keep(run, &mut kept, observer, &failed)?;
            outcome
        })
    }

    /// One seed of a place, in every setup.
    fn live(&self, place: &Place, seed: u32, stop: &AtomicBool) -> Result<Lived, SessionError> {
        let living = Living::new(&place.device, place.by.clone())?;
        let seed = self.run.seed + u64::from(place.seeds.0 + seed);
        let users = self.users();
        let workloads = &self.sweep.workloads;
        let mut outcomes = vec![None; 1 + self.sweep.policies.len()];
        let mut samples: Vec<Vec<Option<Sample>>> = workloads
            .iter()
            .map(|_| users.iter().map(|_| None).collect())
            .collect();
        for setup in self.sweep.setups() {
            let mut go_on = || match stop.load(Ordering::Relaxed) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            };
            let (outcome, aged) =
                living
                    .live(setup, seed, &mut go_on)
                    .map_err(|error| match error {
                        SimulatedError::Interrupted => SessionError::Interrupted,
                        error => error.into(),
                    })?;
            let lives_so = |policy: TrimPolicy| match policy {
                // Nothing is compressed: the flash cannot tell what is encrypted.
                TrimPolicy::Plain => setup == TrimPolicy::Pass,
                policy => setup == policy,
            };
            let plain = std::iter::once(TrimPolicy::Plain);
            let policies = plain.chain(self.sweep.policies.iter().copied());
            for (known, _) in outcomes
                .iter_mut()
                .zip(policies)
                .filter(|(_, policy)| lives_so(*policy))
            {
                *known = Some(outcome);
            }
            for (number, user) in users.iter().enumerate() {
                if !lives_so(user.policy) {
                    continue;
                }
                for (workload, samples) in workloads.iter().zip(&mut samples) {
                    let processor = user.cipher.map(Encrypting::processor);
                    let sample = used(&aged, workload, processor, seed, stop, &place.device)?;
                    samples[number] = Some(sample);
                }
            }
        }
        // Every policy is among the setups, and what is not encrypted lives as one of them.
        Ok(Lived {
            outcomes: outcomes.into_iter().flatten().collect(),
            samples: samples
                .into_iter()
                .map(|users| users.into_iter().flatten().collect())
                .collect(),
        })
    }

    fn summarise(&self, place: &Place, all: Gathered) -> Result<Vec<Trial>, SessionError> {
        let living = Living::new(&place.device, place.by.clone())?;
        let system = of_drive(&place.device);
        let users = self.users();
        let device = simulated::description(&place.device, living.capacity());
        let identities: Vec<Identity> = users
            .iter()
            .map(|user| {
                self.ciphers
                    .identity(&system, user.cipher, Tier::Block, device.clone())
            })
            .collect();
        let outcomes: Vec<Vec<Outcome>> = all.outcomes.into_iter().flatten().collect();
        let mut trials = Vec::new();
        for ((workload, samples), latencies) in self
            .sweep
            .workloads
            .iter()
            .zip(all.samples)
            .zip(all.latencies)
        {
            let of_users: Vec<Samples> = samples
                .into_iter()
                .zip(latencies)
                .map(|(samples, latency)| {
                    let mut samples: Vec<Sample> = samples.into_iter().flatten().collect();
                    if let Some(first) = samples.first_mut() {
                        first.latency = latency;
                    }
                    samples.into_iter().collect()
                })
                .collect();
            for (number, user) in users.iter().enumerate() {
                let reference = (number > 0).then(|| Reference {
                    against: identities[0].system.as_str(),
                    rates: of_users[0].rates(),
                    floor: stats::noise_floor(None),
                });
                let life = self.life(place, &living, user.policy, &outcomes);
                let samples = &of_users[number];
                let trial = life.and_then(|life| {
                    summary::life(&identities[number], workload, samples, reference, life)
                });
                trials.extend(trial);
            }
        }
        Ok(trials)
    }

    /// What the lives of a place came to under a policy.
    fn life(
        &self,
        place: &Place,
        living: &Living,
        policy: TrimPolicy,
        outcomes: &[Vec<Outcome>],
    ) -> Option<Life> {
        let of_policy = match policy {
            TrimPolicy::Plain => 0,
            policy => 1 + self.sweep.policies.iter().position(|p| *p == policy)?,
        };
        let values = |value: fn(&Outcome) -> f64| -> Vec<f64> {
            outcomes.iter().map(|by| value(&by[of_policy])).collect()
        };
        let amplification = values(|life| life.write_amplification);
        let years = values(|life| life.lifetime_years);
        Some(Life {
            policy,
            over_provisioning: living.over_provisioning(),
            gc: place.by.gc.clone(),
            fill: place.by.fill,
            overwrites: place.by.overwrites,
            unpartitioned: place.by.unpartitioned,
            daily_bytes: place.by.daily,
            years: place.by.years,
            first_seed: self.run.seed + u64::from(place.seeds.0),
            write_amplification: stats::interval(&amplification)?,
            lifetime_years: stats::interval(&years)?,
            terabytes_written: stats::interval(&values(|life| life.terabytes_written))?,
            samples_write_amplification: amplification,
            samples_lifetime_years: years,
        })
    }
}

/// Tells how far it is, by the place that was looked at last.
fn show(places: &[Place], number: usize, visits: Range<u64>, observer: &mut dyn Observer) {
    let Some(place) = places.get(number) else {
        return;
    };
    observer.visiting(&Visit {
        workload: &place.device,
        label: &format!("{:.0} % full", place.by.fill * 100.0),
        round: number as u32 + 1,
        rounds: Some(places.len() as u32),
        done: visits.start,
        visits: visits.end,
    });
}

/// Hands over what is new.
fn keep(
    run: &Run,
    kept: &mut usize,
    observer: &mut dyn Observer,
    failed: &AtomicBool,
) -> Result<(), SessionError> {
    if *kept == run.trials.len() {
        return Ok(());
    }
    let changed: Vec<usize> = (*kept..run.trials.len()).collect();
    *kept = run.trials.len();
    observer.keep(run, &changed).map_err(|source| {
        failed.store(true, Ordering::Relaxed);
        SessionError::Keep(source)
    })
}

/// Uses the files on an aged drive once.
fn used(
    aged: &Aged,
    workload: &Workload,
    processor: Option<Processor>,
    seed: u64,
    stop: &AtomicBool,
    device: &str,
) -> Result<Sample, SessionError> {
    let clock = simulated::clock();
    let options = Options {
        seed,
        metered: true,
        slice: false,
        stop,
        clock: &clock,
    };
    let drive = aged.device(processor)?;
    trial::run(&drive, workload, options).map_err(|source| match source {
        TrialError::Interrupted => SessionError::Interrupted,
        source => SessionError::Trial {
            workload: workload.name.clone(),
            label: device.to_owned(),
            source: Box::new(source),
        },
    })
}

/// SHA-256 of everything that decides what comes out.
fn fingerprint(sweep: &Sweep, seed: u64) -> String {
    let text = serde_json::to_string(&(sweep, &sweep.only, seed));
    let text = text.expect("a sweep that was read can be written");
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Gathered {
    /// Room for so many seeds of what is like `first`.
    fn new(seeds: usize, first: &Lived) -> Self {
        let each = |users: &Vec<Sample>| -> Vec<Vec<Option<Sample>>> {
            let none = || (0..seeds).map(|_| None).collect();
            users.iter().map(|_| none()).collect()
        };
        let none = |users: &Vec<Sample>| users.iter().map(|_| histogram()).collect();
        Self {
            outcomes: vec![None; seeds],
            samples: first.samples.iter().map(each).collect(),
            latencies: first.samples.iter().map(none).collect(),
            missing: seeds,
        }
    }

    fn add(&mut self, seed: usize, lived: Lived) {
        self.outcomes[seed] = Some(lived.outcomes);
        for (workload, users) in lived.samples.into_iter().enumerate() {
            for (user, mut sample) in users.into_iter().enumerate() {
                // A histogram has a hundred thousand numbers: one for all seeds is enough, and
                // counts add up in whatever order they come.
                self.latencies[workload][user] += &sample.latency;
                sample.latency = Histogram::new(1).expect("a digit is possible");
                self.samples[workload][user][seed] = Some(sample);
            }
        }
        self.missing -= 1;
    }
}
