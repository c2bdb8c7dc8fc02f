//! [`Flushes`]: what an export remembers of flushes, for all its clients.

use block::BlockError;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

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

#[cfg(test)]
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
