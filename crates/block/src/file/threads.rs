//! The threads engine: blocking transfers, one thread for each in flight, from when
//! there are so many.

use super::Shared;
use crate::{BlockError, Completion, Part, Queue, QueueOptions, Request, Wait};
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};

/// More threads than this cost more than their parallelism brings.
const MOST_THREADS: u32 = 64;

pub(super) struct ThreadQueue {
    shared: Arc<Shared>,
    exchange: Arc<Exchange>,
    workers: Vec<JoinHandle<()>>,
    options: QueueOptions,
    /// With the workers, or finished and not yet taken from them.
    away: u32,
    finished: VecDeque<Completion>,
}

/// Where the queue and its workers meet.
struct Exchange {
    state: Mutex<State>,
    /// A request was added, or the queue is closed.
    work: Condvar,
    /// A request was finished.
    answer: Condvar,
}

struct State {
    /// Requests for the workers, each with the tick of its submission.
    waiting: VecDeque<(Request, u64)>,
    done: VecDeque<(Completion, u64)>,
    closed: bool,
}

impl Exchange {
    /// No code that can panic runs under the lock, so poison is impossible.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ThreadQueue {
    pub(super) fn open(shared: Arc<Shared>, options: QueueOptions) -> Result<Self, BlockError> {
        let depth = options.checked_depth()?;
        let exchange = Arc::new(Exchange {
            state: Mutex::new(State {
                waiting: VecDeque::with_capacity(depth as usize),
                done: VecDeque::with_capacity(depth as usize),
                closed: false,
            }),
            work: Condvar::new(),
            answer: Condvar::new(),
        });
        let mut queue = Self {
            shared,
            workers: Vec::new(),
            exchange,
            finished: VecDeque::with_capacity(depth as usize),
            options,
            away: 0,
        };
        queue.hire().map_err(|source| BlockError::Engine {
            engine: "threads",
            source,
        })?;
        Ok(queue)
    }

    /// Starts one more worker.
    fn hire(&mut self) -> io::Result<()> {
        let shared = self.shared.for_a_thread()?;
        let exchange = Arc::clone(&self.exchange);
        let worker = Builder::new()
            .name("block-io".into())
            .spawn(move || work(&shared, &exchange))?;
        self.workers.push(worker);
        Ok(())
    }

    /// Takes what the workers have finished.
    fn collect(&mut self, now: u64, state: &mut State) {
        for (mut completion, started) in state.done.drain(..) {
            completion.request.timeline.device += now.saturating_sub(started);
            self.finished.push_back(completion);
            self.away -= 1;
        }
    }
}

fn work(shared: &Shared, exchange: &Exchange) {
    let mut state = exchange.lock();
    loop {
        if state.closed {
            return;
        }
        let Some((mut request, started)) = state.waiting.pop_front() else {
            state = exchange
                .work
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
            continue;
        };
        drop(state);
        let result = shared.carry_out(&mut request);
        state = exchange.lock();
        state
            .done
            .push_back((Completion { request, result }, started));
        exchange.answer.notify_one();
    }
}

impl Queue for ThreadQueue {
    fn submit(&mut self, request: Request) {
        if self.in_flight() >= self.options.depth {
            let result = Err(BlockError::QueueFull {
                depth: self.options.depth,
            });
            return self.finished.push_back(Completion { request, result });
        }
        let started = self.options.meter.now();
        self.exchange.lock().waiting.push_back((request, started));
        self.exchange.work.notify_one();
        self.away += 1;
        let workers = self.workers.len() as u32;
        if self.away > workers && workers < MOST_THREADS {
            // Fewer than there could be only queue longer.
            let _ = self.hire();
        }
        self.options.meter.charge(Part::Submit, started);
    }

    fn reap(&mut self, wait: Wait) -> Option<Completion> {
        if self.finished.is_empty() && self.away > 0 {
            let exchange = Arc::clone(&self.exchange);
            let mut state = exchange.lock();
            let now = if state.done.is_empty() && wait == Wait::Yes {
                let since = self.options.meter.now();
                while state.done.is_empty() {
                    state = exchange
                        .answer
                        .wait(state)
                        .unwrap_or_else(PoisonError::into_inner);
                }
                self.options.meter.charge(Part::Wait, since)
            } else {
                self.options.meter.now()
            };
            self.collect(now, &mut state);
        }
        self.finished.pop_front()
    }

    fn in_flight(&self) -> u32 {
        self.away + self.finished.len() as u32
    }
}

impl Drop for ThreadQueue {
    fn drop(&mut self) {
        self.exchange.lock().closed = true;
        self.exchange.work.notify_all();
        for worker in self.workers.drain(..) {
            // A worker that panicked has nothing left to say.
            let _ = worker.join();
        }
    }
}
