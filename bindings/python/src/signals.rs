//! [`Signals`]: Ctrl-C while the engine works without Python's lock.

use pyo3::call::PyCallArgs;
use pyo3::prelude::*;
use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How often to look for Ctrl-C.
const EVERY: Duration = Duration::from_millis(50);

/// Looks for Ctrl-C while a search for a key or a measurement runs.
pub struct Signals {
    thread: thread::ThreadId,
    /// What is called meanwhile.
    progress: Option<Py<PyAny>>,
    state: Mutex<State>,
}

struct State {
    looked: Option<Instant>,
    raised: Option<PyErr>,
}

impl Signals {
    /// For work that this thread begins.
    pub fn new(progress: Option<Py<PyAny>>) -> Self {
        let state = State {
            looked: None,
            raised: None,
        };
        Self {
            thread: thread::current().id(),
            progress,
            state: Mutex::new(state),
        }
    }

    /// Tells what is done and lets Python run what it has for a signal, but not more often than every
    /// 50 ms. An exception of either ends the work. Only the thread that began it does so, because
    /// Python handles signals in its main thread alone.
    pub fn listen<A>(&self, done: impl FnOnce() -> A) -> ControlFlow<()>
    where
        A: for<'py> PyCallArgs<'py>,
    {
        if thread::current().id() != self.thread {
            return ControlFlow::Continue(());
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.raised.is_some() {
            return ControlFlow::Break(());
        }
        if state.looked.is_some_and(|looked| looked.elapsed() < EVERY) {
            return ControlFlow::Continue(());
        }
        let raised = Python::attach(|py| {
            if let Some(progress) = &self.progress {
                progress.call1(py, done())?;
            }
            py.check_signals()
        });
        state.looked = Some(Instant::now());
        state.raised = raised.err();
        match state.raised {
            Some(_) => ControlFlow::Break(()),
            None => ControlFlow::Continue(()),
        }
    }

    /// Has the work end with `raised`.
    pub fn end(&self, raised: PyErr) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.raised = Some(raised);
    }

    /// The exception that ended the work, if one has.
    pub fn raised(&self) -> PyResult<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.raised.take().map_or(Ok(()), Err)
    }
}
