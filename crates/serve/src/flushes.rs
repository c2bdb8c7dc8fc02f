//! [`Flushes`]: what an export remembers of flushes, for all its clients.

use block::BlockError;
#[cfg(all(test, loom))]
use loom::sync::{Mutex, atomic::AtomicU64};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
#[cfg(not(all(test, loom)))]
use std::sync::{Mutex, atomic::AtomicU64};

/// The flushes of one open file that all clients share.
///
/// The system tells only one of them, and once, of what it could not write behind
/// its cache. So after a flush has failed all fail; and only one is under way at a
/// time, for a success beside a failure would mean nothing. Those who wait share the
/// next one.
#[derive(Default)]
pub struct Flushes {
    /// How many were asked for.
    asked: AtomicU64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The number of the last one that is done.
    done: u64,
    /// Why the first that failed did so.
    failed: Option<Arc<BlockError>>,
}

impl Flushes {
    /// Returns once all earlier writes are durable, by `flush` or by another thread's flush. A
    /// failure is forgotten if the device `keeps` the writes that it has not made durable, and
    /// writes them again.
    ///
    /// # Errors
    /// [`BlockError::Lost`], or that of a device that keeps its lost writes.
    pub fn run(
        &self,
        keeps: bool,
        flush: impl FnOnce() -> Result<(), BlockError>,
    ) -> Result<(), BlockError> {
        let number = self.asked.fetch_add(1, Ordering::SeqCst) + 1;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(source) = &state.failed {
            let source = Arc::clone(source);
            return Err(BlockError::Lost { source });
        }
        if number <= state.done {
            return Ok(());
        }
        let asked = self.asked.load(Ordering::SeqCst);
        match flush() {
            Ok(()) => {
                state.done = asked;
                Ok(())
            }
            Err(error) if keeps => Err(error),
            Err(error) => {
                let source = Arc::new(error);
                state.failed = Some(Arc::clone(&source));
                Err(BlockError::Lost { source })
            }
        }
    }
}

/// Every order that threads can come in, by loom.
#[cfg(all(test, loom))]
mod orders {
    use super::*;
    use loom::thread;

    /// A file behind a cache: each client has one bit of it.
    #[derive(Default)]
    struct Cached {
        written: AtomicU64,
        durable: AtomicU64,
        /// Whether the next flush loses what is not durable, of which the system tells once.
        loses: AtomicU64,
    }

    impl Cached {
        fn flush(&self) -> Result<(), BlockError> {
            let written = self.written.load(Ordering::SeqCst);
            if self.loses.swap(0, Ordering::SeqCst) == 1 {
                return Err(BlockError::Injected { errno: 5 });
            }
            self.durable.fetch_or(written, Ordering::SeqCst);
            Ok(())
        }
    }

    /// Clients write and flush at once. None hears of a success while its bit is not durable, and
    /// none at all after a loss.
    fn clients(loses: bool) {
        loom::model(move || {
            let shared = Arc::new((Flushes::default(), Cached::default()));
            shared.1.loses.store(loses.into(), Ordering::SeqCst);
            let client = |bit: u64| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    let (flushes, file) = &*shared;
                    file.written.fetch_or(bit, Ordering::SeqCst);
                    let flushed = flushes.run(false, || file.flush());
                    let is_durable = file.durable.load(Ordering::SeqCst) & bit != 0;
                    assert!(flushed.is_err() || is_durable && !loses);
                    flushed.is_ok()
                })
            };
            let both = [client(1), client(2)].map(|client| client.join().unwrap());
            assert_eq!(both, [!loses; 2]);
        });
    }

    #[test]
    fn a_success_means_durable() {
        clients(false);
    }

    #[test]
    fn a_loss_is_no_success_for_anybody() {
        clients(true);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const CLIENTS: u64 = 8;

    /// The outcomes of flushes that were asked for while no thread could flush, and the number of
    /// flushes of the device.
    fn waiting(outcome: fn() -> Result<(), BlockError>) -> (Vec<Result<(), BlockError>>, u64) {
        let flushes = Flushes::default();
        let done = AtomicU64::new(0);
        let flush = || {
            done.fetch_add(1, Ordering::SeqCst);
            outcome()
        };
        let outcomes = std::thread::scope(|scope| {
            let held = flushes.state.lock().unwrap();
            let clients: Vec<_> = (0..CLIENTS)
                .map(|_| scope.spawn(|| flushes.run(false, flush)))
                .collect();
            while flushes.asked.load(Ordering::SeqCst) < CLIENTS {
                std::thread::yield_now();
            }
            drop(held);
            clients
                .into_iter()
                .map(|client| client.join().unwrap())
                .collect()
        });
        (outcomes, done.load(Ordering::SeqCst))
    }

    #[test]
    fn those_who_wait_share_one() {
        let (outcomes, flushes) = waiting(|| Ok(()));
        assert!(outcomes.iter().all(Result::is_ok));
        assert_eq!(flushes, 1);
    }

    #[test]
    fn all_hear_of_a_failure() {
        let (outcomes, flushes) = waiting(|| Err(BlockError::Injected { errno: 28 }));
        for outcome in outcomes {
            let error = outcome.unwrap_err();
            assert!(matches!(error, BlockError::Lost { .. }));
            assert_eq!(error.errno(), 28);
        }
        assert_eq!(flushes, 1);
    }

    #[test]
    fn what_is_written_later_is_flushed_anew() {
        let flushes = Flushes::default();
        let failing = || -> Result<(), BlockError> { Err(BlockError::Injected { errno: 5 }) };
        flushes.run(false, || Ok(())).unwrap();
        assert!(matches!(
            flushes.run(true, failing),
            Err(BlockError::Injected { .. })
        ));
        flushes.run(true, || Ok(())).unwrap();
        assert!(flushes.run(false, failing).is_err());
        let unasked = || -> Result<(), BlockError> { panic!("it means nothing any more") };
        assert!(flushes.run(false, unasked).is_err());
    }
}
