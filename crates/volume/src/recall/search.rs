//! The search: every candidate at the full cost of the volume's key derivation, on all cores.

use super::{Candidates, ORDER, RecallError};
use crate::{Format, Hash, Limits, Opening, Secret, Terms, Verdict, VolumeError};
use crate::{bestcrypt, luks1, luks2, unaligned};
use block::{BlockDevice, BlockError};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::num::NonZeroUsize;
use std::ops::{ControlFlow, Range};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

/// The length of the part at the start of a header that identifies the volume, bytes.
const RECOGNISED_BY: u64 = 4096;

/// Hears below which number all candidates were tried, from several threads, and may end the
/// search. Argon2 cannot be cut; it comes to its end first.
pub type Watch<'a> = &'a (dyn Fn(u64) -> ControlFlow<()> + Sync);

/// A search on one volume, which is only read.
pub struct Search<'a> {
    opening: &'a Opening,
    header: &'a dyn BlockDevice,
    data: &'a dyn BlockDevice,
    candidates: &'a Candidates,
    limits: Limits,
    /// The most memory of one attempt, KiB.
    memory_kib: u32,
}

/// How a search ends.
#[derive(Debug)]
pub enum End {
    /// A candidate opens the volume.
    Found {
        /// Its number.
        number: u64,
        /// The key slot or protector, if the format has them.
        slot: Option<u32>,
    },
    /// None does.
    Nothing,
    /// The watch has ended it.
    Stopped,
    /// An attempt failed for another reason than a wrong secret.
    Failed {
        /// The number of the candidate.
        number: u64,
        /// The reason.
        error: VolumeError,
    },
}

/// The result of a search.
#[derive(Debug)]
pub struct Report {
    /// All candidates below this number were tried, and they do not open the volume.
    pub tried: u64,
    /// How it ended.
    pub end: End,
}

/// Refuses a format that opens with any secret.
///
/// # Errors
/// [`RecallError::Unchecked`].
pub fn check_format(format: Format) -> Result<(), RecallError> {
    match format {
        Format::Plain | Format::Cryptoloop | Format::LoopAes => Err(RecallError::Unchecked(format)),
        _ => Ok(()),
    }
}

impl Opening {
    /// The same with another PIM, if it is VeraCrypt's and there is one.
    fn with_pim(&self, pim: Option<u32>) -> Self {
        let mut opening = self.clone();
        if let (Self::Tcrypt(tcrypt), Some(_)) = (&mut opening, pim) {
            tcrypt.pim = pim;
        }
        opening
    }
}

impl<'a> Search<'a> {
    /// A search among `candidates` on the volume whose header is on `header` and whose data is on
    /// `data`: one device, unless the header is detached.
    ///
    /// # Errors
    /// Those of reading the header; [`VolumeError::Impossible`] and those of [`Kdf`](crate::Kdf) for a
    /// PIM that VeraCrypt does not have, or `limits` do not allow.
    pub fn new(
        opening: &'a Opening,
        header: &'a dyn BlockDevice,
        data: &'a dyn BlockDevice,
        candidates: &'a Candidates,
        limits: Limits,
    ) -> Result<Self, VolumeError> {
        let memory_kib = match opening {
            Opening::Luks2 { slot } => luks2::Header::read(header)?.attempt_memory_kib(*slot),
            Opening::Tcrypt(_) => {
                let last = candidates.pims().map(super::Pims::last);
                match opening.with_pim(last) {
                    Opening::Tcrypt(last) => last.memory_kib(&limits)?,
                    _ => unreachable!("the format stays"),
                }
            }
            _ => 0,
        };
        Ok(Self {
            opening,
            header,
            data,
            candidates,
            limits,
            memory_kib,
        })
    }

    /// The number of attempts that may run at once on so many cores, with so much free memory, KiB.
    /// They take at most half of the free memory, and at most the limit of one derivation.
    pub fn threads(&self, cores: NonZeroUsize, free_kib: u64) -> NonZeroUsize {
        let room = u64::from(self.limits.memory_kib).min(free_kib / 2);
        match room.checked_div(u64::from(self.memory_kib)) {
            None => cores,
            Some(fit) => {
                let fit = usize::try_from(fit).unwrap_or(usize::MAX);
                NonZeroUsize::new(fit).map_or(NonZeroUsize::MIN, |fit| fit.min(cores))
            }
        }
    }

    /// The work of the candidates from `from` on, divided by that of those in `part`.
    ///
    /// # Errors
    /// Those of [`new`](Self::new).
    pub fn times_as_long(&self, part: Range<u64>, from: u64) -> Result<f64, VolumeError> {
        let cost = |pim: Option<u32>| match self.opening.with_pim(pim) {
            // A refused derivation costs nothing; the attempt reports the reason.
            Opening::Tcrypt(tcrypt) => tcrypt.work(&self.limits).unwrap_or_default().as_secs_f64(),
            _ => 1.0,
        };
        let work = |from| self.candidates.work_from(from, cost);
        let measured = work(part.start) - work(part.end);
        Ok(match measured > 0.0 {
            true => work(from) / measured,
            false => 0.0,
        })
    }

    /// Tries the candidates in `range`, in their order, on so many threads.
    pub fn run(&self, range: Range<u64>, threads: NonZeroUsize, watch: Watch) -> Report {
        let run = Run {
            search: self,
            watch,
            state: Mutex::new(State {
                left: range.clone(),
                under_way: BTreeSet::new(),
                end: None,
            }),
        };
        let others = (range.end.saturating_sub(range.start)).min(threads.get() as u64);
        thread::scope(|scope| {
            for _ in 1..others {
                // Without more threads this one does it all.
                let _ = thread::Builder::new().spawn_scoped(scope, || run.work());
            }
            run.work();
        });
        let state = run.state.into_inner();
        let state = state.unwrap_or_else(PoisonError::into_inner);
        Report {
            tried: state.tried(),
            end: state.end.unwrap_or(End::Nothing),
        }
    }

    /// The key slot or protector that the candidate opens, if it has a number; `None` if the
    /// candidate does not open the volume.
    fn attempt(
        &self,
        number: u64,
        go_on: &(dyn Fn() -> ControlFlow<()> + Sync),
    ) -> Result<Option<Option<u32>>, VolumeError> {
        let candidate = self.candidates.candidate(number);
        match self.unlock(&candidate.secret, candidate.pim, go_on) {
            Ok(slot) => Ok(Some(slot)),
            // No passphrase opens a volume that has no key slot.
            Err(error @ VolumeError::NoKeyslot { .. }) => Err(error),
            // The format takes no such passphrase, so it is not this one.
            Err(VolumeError::SecretKind { .. } | VolumeError::SecretLength { .. }) => Ok(None),
            Err(error) if error.verdict() == Verdict::WrongSecret => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn unlock(
        &self,
        secret: &Secret,
        pim: Option<u32>,
        go_on: &(dyn Fn() -> ControlFlow<()> + Sync),
    ) -> Result<Option<u32>, VolumeError> {
        match self.opening.with_pim(pim) {
            Opening::Tcrypt(tcrypt) => {
                let one = NonZeroUsize::MIN;
                let watch = |_, _| go_on();
                tcrypt.unlock_by(one, self.header, secret, &self.limits, &watch)?;
                Ok(None)
            }
            // Whether the data can be read is not asked: a backup of a header has none.
            Opening::Luks1 { slot } => {
                let header = luks1::Header::read(self.header)?;
                let unlocked = header.unlock(self.header, secret, slot, &self.limits)?;
                Ok(unlocked.slot)
            }
            Opening::Luks2 { slot } => {
                let header = luks2::Header::read(self.header)?;
                if header.is_reencrypting() {
                    header.unlock_both(self.header, secret, &self.limits)?;
                    return Ok(None);
                }
                let unlocked = header.unlock(self.header, secret, slot, &self.limits)?;
                Ok(unlocked.slot)
            }
            Opening::Bestcrypt => {
                let header = bestcrypt::Header::read(self.header)?;
                Ok(header.unlock(self.header, secret, &self.limits)?.slot)
            }
            opening => {
                let (header, data) = (self.header, self.data);
                let watch = |_, _| go_on();
                let terms = Terms::reading(&self.limits, &watch);
                let opened = opening.unlock(header, data, secret, &terms)?;
                Ok(opened.slot)
            }
        }
    }

    /// A fingerprint by which the same search is recognised: a SHA-256 digest in hexadecimal. It
    /// covers the format, the start and the size of the header, `options`, and the number of
    /// candidates. `options` must not hold a secret. Nothing else depends on the secret, so the
    /// fingerprint does not help to test one.
    ///
    /// # Errors
    /// [`VolumeError::Block`].
    pub fn identity(&self, options: &str) -> Result<String, VolumeError> {
        let start = unaligned::read_up_to(self.header, 0, RECOGNISED_BY)?;
        let size = self.header.geometry().size;
        let count = self.candidates.count();
        let format = self.opening.format();
        let said = format!("{ORDER}\n{format}\n{size}\n{count}\n{options}\n");
        let digest = Hash::Sha256.digest(&[said.as_bytes(), &start]);
        let mut text = String::with_capacity(2 * digest.len());
        for byte in digest.iter() {
            write!(text, "{byte:02x}").expect("a text takes all");
        }
        Ok(text)
    }
}

/// The state that the threads of a search share.
struct Run<'a> {
    search: &'a Search<'a>,
    watch: Watch<'a>,
    state: Mutex<State>,
}

struct State {
    /// The candidates that no thread has begun.
    left: Range<u64>,
    /// The candidates that were begun and have not turned out to be wrong.
    under_way: BTreeSet<u64>,
    end: Option<End>,
}

impl State {
    /// Below this number all were tried.
    fn tried(&self) -> u64 {
        self.under_way
            .first()
            .map_or(self.left.start, |first| *first)
    }
}

impl Run<'_> {
    fn work(&self) {
        while let Some(number) = self.next() {
            let go_on = || {
                let (ended, tried) = {
                    let state = self.lock();
                    (state.end.is_some(), state.tried())
                };
                match ended || (self.watch)(tried).is_break() {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                }
            };
            match self.search.attempt(number, &go_on) {
                Ok(Some(slot)) => self.end(End::Found { number, slot }),
                Ok(None) => {
                    self.lock().under_way.remove(&number);
                    if go_on().is_break() {
                        self.end(End::Stopped);
                    }
                }
                Err(VolumeError::Block(BlockError::Interrupted)) => self.end(End::Stopped),
                Err(error) => self.end(End::Failed { number, error }),
            }
        }
    }

    /// The next number, until the search ends.
    fn next(&self) -> Option<u64> {
        let mut state = self.lock();
        if state.end.is_some() {
            return None;
        }
        let number = state.left.next()?;
        state.under_way.insert(number);
        Some(number)
    }

    /// Ends the search. A candidate that is found counts even if the search is already ending.
    fn end(&self, end: End) {
        let mut state = self.lock();
        if state.end.is_none() || matches!(end, End::Found { .. }) {
            state.end = Some(end);
        }
    }

    /// Locks the state. No thread panics while it holds this lock, so a poisoned lock is still
    /// valid.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
