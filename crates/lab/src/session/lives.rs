//! Lives of simulated SSDs as cells of a session, on all cores.
//!
//! A *life* is one drive in one use from one seed; it is lived once for every way in
//! which discards come to the drive, and the aged drive is used without encryption
//! and behind every cipher. Places are handed over in their order, so that what is
//! stored does not tell how many cores there were, and a run that was interrupted
//! is a beginning that can be gone on with.

use super::cell::Cell;
use super::simulated::{Encrypting, Processors};
use super::subject::{Once, Subject, in_virtual_time};
use super::{Observer, Session, Visit, Way};
use crate::error::LabError;
use crate::experiment::{Lives, Place, Schedule, of_drive};
use crate::record::{Detail, Life, Run, Trial, TrimPolicy};
use crate::stats;
use crate::system::life::{Aged, Living, Outcome};
use crate::system::simulated::{self, Processor};
use crate::trial::{Sample, Samples};
use crate::workload::Workload;
use sha2::{Digest, Sha256};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;

/// The lives of a plan.
pub(super) struct AllLives {
    of: Lives,
    plan: Arc<Schedule>,
    ciphers: Processors,
    /// The first seed.
    seed: u64,
    cores: usize,
}

/// A place of the plan, with the drive and the outcomes of its lives.
struct Aging {
    place: Place,
    living: Living,
    /// The seed of its first life.
    first_seed: u64,
    /// The drive that was lived last, by its seed and its way.
    drive: RefCell<Option<(u64, TrimPolicy, Aged)>>,
    /// The outcomes of lives, by seed and by policy.
    outcomes: RefCell<Vec<(TrimPolicy, Outcome)>>,
}

/// A drive that has lived, behind a cipher or not encrypted.
struct AgedDrive {
    aging: Rc<Aging>,
    policy: TrimPolicy,
    processor: Option<Processor>,
}

/// The samples and outcomes of one seed at a place.
struct Lived {
    /// By cell, then by workload.
    samples: Vec<Vec<Samples>>,
    outcomes: Vec<(TrimPolicy, Outcome)>,
}

/// The policy under which the drive lives. The plain drive lives as under pass-through: nothing is
/// compressed, so the flash cannot tell whether data are encrypted.
fn way_of(policy: TrimPolicy) -> TrimPolicy {
    match policy {
        TrimPolicy::Plain => TrimPolicy::Pass,
        policy => policy,
    }
}

impl Aging {
    /// Lives so from a seed, unless that was the last life.
    fn live(&self, policy: TrimPolicy, once: Once<'_>) -> Result<(), LabError> {
        let way = way_of(policy);
        let last = self
            .drive
            .borrow()
            .as_ref()
            .map(|(seed, way, _)| (*seed, *way));
        if last == Some((once.seed, way)) {
            return Ok(());
        }
        let mut go_on = || match once.stop.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        };
        let (outcome, aged) = self.living.live(way, once.seed, &mut go_on)?;
        self.outcomes.borrow_mut().push((way, outcome));
        self.drive.replace(Some((once.seed, way, aged)));
        Ok(())
    }

    /// The summary of all lives under a policy.
    fn life(&self, policy: TrimPolicy) -> Option<Life> {
        let outcomes = self.outcomes.borrow();
        let values = |value: fn(&Outcome) -> f64| -> Vec<f64> {
            let so = outcomes.iter().filter(|(way, _)| *way == way_of(policy));
            so.map(|(_, outcome)| value(outcome)).collect()
        };
        let amplification = values(|life| life.write_amplification);
        let years = values(|life| life.lifetime_years);
        let by = &self.place.by;
        Some(Life {
            policy,
            over_provisioning: self.living.over_provisioning(),
            gc: by.gc.clone(),
            fill: by.fill,
            overwrites: by.overwrites,
            unpartitioned: by.unpartitioned,
            daily_bytes: by.daily,
            years: by.years,
            first_seed: self.first_seed,
            write_amplification: stats::interval(&amplification)?,
            lifetime_years: stats::interval(&years)?,
            terabytes_written: stats::interval(&values(|life| life.terabytes_written))?,
            samples_write_amplification: amplification,
            samples_lifetime_years: years,
        })
    }
}

impl Subject for AgedDrive {
    fn takes(&self, workload: &Workload) -> bool {
        !workload.op.is_bare()
    }

    /// Uses the files on the drive once.
    fn visit(&self, workload: &Workload, once: Once<'_>) -> Result<Sample, LabError> {
        self.aging.live(self.policy, once)?;
        match &*self.aging.drive.borrow() {
            Some((_, _, aged)) => in_virtual_time(&aged.device(self.processor)?, workload, once),
            None => Err(LabError::session_interrupted()),
        }
    }

    fn is_simulated(&self) -> bool {
        true
    }

    /// Every seed has a life of its own.
    fn lasts(&self) -> bool {
        false
    }

    fn complete(&self, trial: &mut Trial) {
        if let Some(life) = self.aging.life(self.policy) {
            trial.detail = Detail::Life(Box::new(life));
        }
    }
}

impl AllLives {
    /// The users of a drive, the first of which encrypts nothing.
    fn users(&self) -> Vec<(TrimPolicy, Option<&Encrypting>)> {
        let mut users = vec![(TrimPolicy::Plain, None)];
        for &policy in &self.of.policies {
            users.extend(self.ciphers.all().map(|cipher| (policy, Some(cipher))));
        }
        users
    }

    /// The drive at a place as each user has it.
    fn cells(&self, place: &Place) -> Result<(Rc<Aging>, Vec<Cell>), LabError> {
        let living = Living::new(&place.device, place.by.clone())?;
        let system = of_drive(&place.device);
        let device = simulated::description(&place.device, living.capacity());
        let aging = Rc::new(Aging {
            place: place.clone(),
            living,
            first_seed: self.seed + u64::from(place.seeds.0),
            drive: RefCell::default(),
            outcomes: RefCell::default(),
        });
        let cell = |(policy, cipher): (TrimPolicy, Option<&Encrypting>)| {
            let identity = self.ciphers.identity(&system, cipher, device.clone());
            let subject = AgedDrive {
                aging: Rc::clone(&aging),
                policy,
                processor: cipher.map(Encrypting::processor),
            };
            Cell::new(
                Box::new(subject),
                place.device.clone(),
                identity,
                &self.plan,
            )
        };
        let cells = self.users().into_iter().map(cell).collect();
        Ok((aging, cells))
    }

    /// Records of each place.
    fn trials_of_a_place(&self) -> usize {
        self.users().len() * self.of.workloads.len()
    }

    /// One seed of a place, in every way.
    fn live(&self, place: &Place, seed: u32, stop: &AtomicBool) -> Result<Lived, LabError> {
        let (aging, mut cells) = self.cells(place)?;
        let once = Once {
            number: seed,
            seed: aging.first_seed + u64::from(seed),
            slice: false,
            stop,
        };
        let users = self.users();
        for way in self.of.setups() {
            let of_users = cells.iter_mut().zip(&users);
            for (cell, _) in of_users.filter(|(_, (policy, _))| way_of(*policy) == way) {
                for (index, workload) in self.of.workloads.iter().enumerate() {
                    let sample = cell.visit(workload, once)?;
                    cell.samples[index].push(sample);
                }
            }
        }
        Ok(Lived {
            samples: cells.into_iter().map(|cell| cell.samples).collect(),
            outcomes: aging.outcomes.take(),
        })
    }

    /// The cells of a place with what its seeds have brought, in their order.
    fn joined(&self, place: &Place, all: Vec<Lived>) -> Result<Vec<Cell>, LabError> {
        let (aging, mut cells) = self.cells(place)?;
        for lived in all {
            aging.outcomes.borrow_mut().extend(lived.outcomes);
            for (cell, workloads) in cells.iter_mut().zip(lived.samples) {
                for (samples, more) in cell.samples.iter_mut().zip(workloads) {
                    samples.append(more);
                }
            }
        }
        Ok(cells)
    }
}

impl<'a> Session<'a> {
    /// Lives of the drives of `lives`, from `seed` on, with `cores` lives at a time.
    ///
    /// # Errors
    /// [`LabError`].
    pub fn of_lives(lives: &Lives, cores: usize, seed: u64, id: String) -> Result<Self, LabError> {
        let plan = Arc::new(lives.schedule());
        let ciphers = Processors::of_lives(lives)?;
        let warnings = ciphers.warnings();
        let mut session = Self::of(Arc::clone(&plan), seed, id, warnings, |_| Vec::new())?;
        session.run.fingerprint = Some(fingerprint(lives, seed));
        session.way = Way::Lives(Box::new(AllLives {
            of: lives.clone(),
            plan,
            ciphers,
            seed,
            cores,
        }));
        Ok(session)
    }

    /// Whether `run` is a beginning of this, by the same program.
    pub fn goes_on_with(&self, run: &Run) -> bool {
        let build = |run: &Run| run.host.versions.get("cryptmark").cloned();
        run.partial
            && run.fingerprint.is_some()
            && run.fingerprint == self.run.fingerprint
            && build(run) == build(&self.run)
    }

    /// Goes on with a beginning of this, under its id.
    pub fn resumed(mut self, beginning: Run) -> Self {
        self.run = beginning;
        if let Way::Lives(lives) = &self.way {
            let each = lives.trials_of_a_place();
            self.run.trials.truncate(self.places_done() * each);
        }
        self
    }

    /// Places of lives that are done.
    pub fn places_done(&self) -> usize {
        match &self.way {
            Way::Lives(lives) => self.run.trials.len() / lives.trials_of_a_place(),
            _ => 0,
        }
    }

    /// Lives the first life that is missing, to know how long they take; what it comes to is
    /// thrown away.
    ///
    /// # Errors
    /// As [`measure`](Self::measure).
    pub fn try_one(&self, stop: &AtomicBool) -> Result<(), LabError> {
        let Way::Lives(lives) = &self.way else {
            return Ok(());
        };
        match lives.of.numbers().get(self.places_done()) {
            Some(&number) => lives.live(&lives.of.place(number), 0, stop).map(drop),
            None => Ok(()),
        }
    }

    /// All that are missing.
    pub(super) fn lives(
        &mut self,
        lives: &AllLives,
        begin: usize,
        stop: &AtomicBool,
        observer: &mut dyn Observer,
    ) -> Result<(), LabError> {
        let numbers = lives.of.numbers();
        let places: Vec<Place> = numbers.iter().map(|&n| lives.of.place(n)).collect();
        let tasks: Vec<(usize, u32)> = (begin..places.len())
            .flat_map(|place| (0..places[place].seeds.1).map(move |seed| (place, seed)))
            .collect();
        let next = AtomicUsize::new(0);
        let failed = AtomicBool::new(false);
        let visits = tasks.len() as u64;
        std::thread::scope(|scope| {
            let (sender, receiver) = mpsc::sync_channel(lives.cores);
            for _ in 0..lives.cores.max(1) {
                let sender = sender.clone();
                let (next, failed, tasks, places) = (&next, &failed, &tasks, &places);
                scope.spawn(move || {
                    while !failed.load(Ordering::Relaxed) {
                        let Some(&(place, seed)) = tasks.get(next.fetch_add(1, Ordering::Relaxed))
                        else {
                            break;
                        };
                        let lived = lives.live(&places[place], seed, stop);
                        failed.fetch_or(lived.is_err(), Ordering::Relaxed);
                        if sender.send((place, seed, lived)).is_err() {
                            break;
                        }
                    }
                });
            }
            drop(sender);
            // By place and seed.
            let mut waiting: BTreeMap<(usize, u32), Lived> = BTreeMap::new();
            let mut ready = begin;
            let mut outcome = Ok(());
            let mut done = 0;
            show(&places, begin, 0..visits, observer);
            for (place, seed, lived) in receiver {
                match lived {
                    Ok(lived) => waiting.insert((place, seed), lived),
                    // The first error is the cause; the other threads were stopped.
                    Err(error) => {
                        outcome = outcome.and(Err(error));
                        continue;
                    }
                };
                done += 1;
                while let Some(place) = places.get(ready) {
                    let seeds = (ready, 0)..(ready, place.seeds.1);
                    if waiting.range(seeds).count() < place.seeds.1 as usize {
                        break;
                    }
                    let later = waiting.split_off(&(ready + 1, 0));
                    let all = std::mem::replace(&mut waiting, later).into_values();
                    self.enter(lives.joined(place, all.collect())?);
                    ready += 1;
                }
                show(&places, place, done..visits, observer);
                let told = self.hand_over_in_time(observer);
                failed.fetch_or(told.is_err(), Ordering::Relaxed);
                told?;
            }
            outcome
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

/// SHA-256 of everything that decides what comes out.
fn fingerprint(lives: &Lives, seed: u64) -> String {
    let text = serde_json::to_string(&(lives, &lives.only, seed));
    let text = text.expect("a plan that was read can be written");
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
