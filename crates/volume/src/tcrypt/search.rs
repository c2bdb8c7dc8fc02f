//! The search for the key derivation and the cipher that open a header, on
//! all cores.
//!
//! PBKDF2's output is computed in parts of a digest's length, and each part is a job of its own.
//! The parts that short keys need come first, for all derivations; then the others. Once more parts
//! of a derivation are there, the ciphers that they suffice for are tried.

use super::layers::{self, ENCRYPTED_BYTES, Sector};
use super::prf::LONGEST_HEADER_KEY;
use super::{Family, Header, Place, Prf, SALT_BYTES, Unlocked};
use crate::{Damage, Kdf, Limits, VolumeError};
use block::BlockError;
use cipher::{CipherSpec, Key};
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use zeroize::Zeroizing;

/// Hears how far a search is, from several threads and every few
/// milliseconds, and may end it: the error is [`BlockError::Interrupted`].
/// Argon2 cannot be cut; it comes to its end first. The numbers are the work
/// done, as [`Kdf::work`] counts it in nanoseconds, and all the work if nothing
/// opens before the end.
pub type Watch<'a> = &'a (dyn Fn(u64, u64) -> ControlFlow<()> + Sync);

/// An encrypted header.
pub(super) struct Candidate {
    /// Where it begins on the device.
    pub(super) offset: u64,
    pub(super) salt: [u8; SALT_BYTES],
    pub(super) encrypted: [u8; ENCRYPTED_BYTES],
}

/// The input of a search.
pub(super) struct Search<'a> {
    pub(super) family: Family,
    pub(super) place: Place,
    pub(super) password: &'a Key,
    pub(super) headers: &'a [Candidate],
    pub(super) derivations: &'a [(Prf, Kdf)],
    pub(super) specs: &'a [CipherSpec],
    pub(super) limits: &'a Limits,
    /// Threads to search on, at most.
    pub(super) threads: NonZeroUsize,
    pub(super) watch: Watch<'a>,
}

impl Search<'_> {
    /// Tries everything.
    pub(super) fn run(&self) -> Result<Unlocked, VolumeError> {
        let derived: Vec<Derived> = self
            .headers
            .iter()
            .flat_map(|header| self.derivations.iter().map(move |d| (header, *d)))
            .map(|(header, (prf, kdf))| Derived::new(header, prf, kdf))
            .collect();
        let jobs = self.jobs(&derived);
        let run = Run {
            search: self,
            total: jobs.iter().map(Job::work_ns).sum(),
            jobs: &jobs,
            next: AtomicUsize::new(0),
            done: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            outcome: Mutex::default(),
        };
        thread::scope(|scope| {
            for _ in 1..self.threads.get().min(jobs.len()) {
                // Without more threads this one does it all.
                let _ = thread::Builder::new().spawn_scoped(scope, || run.work());
            }
            run.work();
        });
        let outcome = run.outcome.into_inner();
        match outcome.unwrap_or_else(PoisonError::into_inner) {
            Outcome::Nothing => Err(VolumeError::NoHeaderFits),
            Outcome::Failed(error) | Outcome::Ended(Err(error)) => Err(error),
            Outcome::Ended(Ok(found)) => Ok(*found),
        }
    }

    /// In the order in which to do them.
    fn jobs<'a>(&self, derived: &'a [Derived<'a>]) -> Vec<Job<'a>> {
        let lengths = || self.specs.iter().map(|&spec| layers::material_bytes(spec));
        let longest = lengths().max().unwrap_or(0);
        let mut jobs = Vec::new();
        for of in derived {
            let parts = match of.part_bytes {
                Some(part_bytes) => longest.div_ceil(part_bytes),
                None => 1,
            };
            for part in 0..parts {
                let before = part * of.part_bytes.unwrap_or(0);
                // The shortest material that this part makes longer.
                let stage = lengths().filter(|&length| length > before).min();
                jobs.push((stage, Job { of, part }));
            }
        }
        jobs.sort_by_key(|(stage, _)| *stage);
        jobs.into_iter().map(|(_, job)| job).collect()
    }
}

/// The parts of a derivation that were computed so far.
struct Derived<'a> {
    header: &'a Candidate,
    prf: Prf,
    kdf: Kdf,
    /// Length of a part; `None` if there is only one.
    part_bytes: Option<usize>,
    parts: Mutex<Parts>,
}

#[derive(Default)]
struct Parts {
    /// By number, if they were made.
    made: Vec<Option<Key>>,
    /// Material of this length was tried.
    tried: usize,
}

impl<'a> Derived<'a> {
    fn new(header: &'a Candidate, prf: Prf, kdf: Kdf) -> Self {
        Self {
            header,
            prf,
            kdf,
            part_bytes: match kdf {
                Kdf::Pbkdf2 { hash, .. } => Some(hash.digest_bytes()),
                Kdf::Argon2 { .. } => None,
            },
            parts: Mutex::default(),
        }
    }

    /// Takes a part in; all the material from the beginning on, and how much
    /// of it was tried already.
    fn extend(&self, part: usize, key: Key) -> (Zeroizing<Vec<u8>>, usize) {
        let mut parts = lock(&self.parts);
        if parts.made.len() <= part {
            parts.made.resize_with(part + 1, || None);
        }
        parts.made[part] = Some(key);
        let beginning = || parts.made.iter().map_while(Option::as_ref);
        let mut material =
            Zeroizing::new(Vec::with_capacity(beginning().map(|part| part.len()).sum()));
        for part in beginning() {
            material.extend_from_slice(part.as_bytes());
        }
        let tried = std::mem::replace(&mut parts.tried, material.len());
        (material, tried)
    }
}

/// A part of a derivation.
struct Job<'a> {
    of: &'a Derived<'a>,
    part: usize,
}

impl Job<'_> {
    fn work_ns(&self) -> u64 {
        let work = self.of.kdf.part_work().as_nanos();
        u64::try_from(work).unwrap_or(u64::MAX)
    }
}

/// How a search ends.
#[derive(Default)]
enum Outcome {
    #[default]
    Nothing,
    /// A derivation failed, and no other opens the header.
    Failed(VolumeError),
    /// For good.
    Ended(Result<Box<Unlocked>, VolumeError>),
}

/// The state that the threads of a search share.
struct Run<'a> {
    search: &'a Search<'a>,
    jobs: &'a [Job<'a>],
    total: u64,
    next: AtomicUsize,
    done: AtomicU64,
    stop: AtomicBool,
    outcome: Mutex<Outcome>,
}

impl Run<'_> {
    fn work(&self) {
        while !self.stop.load(Ordering::Relaxed)
            && let Some(job) = self.jobs.get(self.next.fetch_add(1, Ordering::Relaxed))
        {
            match self.make(job) {
                Ok(Some(part)) => self.attempt(job, part),
                Ok(None) => {}
                Err(error) => {
                    let mut outcome = lock(&self.outcome);
                    if matches!(*outcome, Outcome::Nothing) {
                        *outcome = Outcome::Failed(error);
                    }
                }
            }
        }
    }

    /// The part of a job, or nothing if the search is over.
    fn make(&self, job: &Job) -> Result<Option<Key>, VolumeError> {
        let password = self.search.password.as_bytes();
        let salt = &job.of.header.salt;
        match job.of.kdf {
            Kdf::Pbkdf2 { hash, iterations } => {
                let index = job.part as u32 + 1;
                let made = Key::filled(hash.digest_bytes(), |out| {
                    let each = hash.iteration_ns();
                    let done = |iterations| self.advance(u64::from(iterations) * each);
                    match hash.pbkdf2_block(password, salt, iterations, index, out, &done) {
                        ControlFlow::Continue(()) => Ok(()),
                        ControlFlow::Break(()) => Err(()),
                    }
                });
                Ok(made.ok())
            }
            kdf @ Kdf::Argon2 { .. } => {
                let key = kdf.derive(password, salt, LONGEST_HEADER_KEY, self.search.limits)?;
                let go_on = self.advance(job.work_ns());
                Ok(go_on.is_continue().then_some(key))
            }
        }
    }

    /// Counts work as done.
    fn advance(&self, work_ns: u64) -> ControlFlow<()> {
        let done = work_ns + self.done.fetch_add(work_ns, Ordering::Relaxed);
        if self.stop.load(Ordering::Relaxed) {
            return ControlFlow::Break(());
        }
        let flow = (self.search.watch)(done, self.total);
        if flow.is_break() {
            self.end(Err(BlockError::Interrupted.into()));
        }
        flow
    }

    /// Tries the ciphers that a part makes the material long enough for.
    fn attempt(&self, job: &Job, part: Key) {
        let (material, tried) = job.of.extend(job.part, part);
        for &spec in self.search.specs {
            let length = layers::material_bytes(spec);
            if length <= tried || length > material.len() || self.stop.load(Ordering::Relaxed) {
                continue;
            }
            match self.search.open(job.of.header, spec, &material) {
                Ok(None) => {}
                Ok(Some(header)) => self.end(Ok(Box::new(Unlocked {
                    place: self.search.place,
                    offset: job.of.header.offset,
                    spec,
                    prf: job.of.prf,
                    header,
                }))),
                Err(error) => self.end(Err(error)),
            }
        }
    }

    /// Ends the search; the first end counts.
    fn end(&self, result: Result<Box<Unlocked>, VolumeError>) {
        let mut outcome = lock(&self.outcome);
        if !matches!(*outcome, Outcome::Ended(_)) {
            *outcome = Outcome::Ended(result);
        }
        self.stop.store(true, Ordering::Relaxed);
    }
}

impl Search<'_> {
    /// The header as `spec` decrypts it, if it is one then.
    fn open(
        &self,
        sealed: &Candidate,
        spec: CipherSpec,
        material: &[u8],
    ) -> Result<Option<Header>, VolumeError> {
        let mut sector = Sector::new([0; 512]);
        sector[..ENCRYPTED_BYTES].copy_from_slice(&sealed.encrypted);
        layers::decrypt(spec, material, &mut sector)?;
        let damaged = |damage: Damage| VolumeError::damaged(self.family.format(), damage);
        let decrypted = sector
            .first_chunk()
            .expect("a header is shorter than a sector");
        Header::parse(self.family, self.place, decrypted).map_err(damaged)
    }
}

/// Locks `mutex`. No thread panics while it holds one of these locks, so a poisoned one is still
/// valid.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
