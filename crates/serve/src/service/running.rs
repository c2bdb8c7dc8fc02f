//! Servers on threads of their own: [`OverNbd`] and `OnDisk`.

use super::{End, Served, ServiceError, joined};
use crate::nbd::{self, ServeError, Server};
use std::thread::JoinHandle;
#[cfg(feature = "ublk")]
use {
    crate::Export,
    crate::ublk::{Disk, UblkError},
    block::signature::is_held,
    std::io,
    std::path::{Path, PathBuf},
    std::sync::Arc,
    std::sync::atomic::{AtomicBool, Ordering},
    std::sync::mpsc,
};

/// An NBD server that runs.
pub struct OverNbd {
    end: nbd::End,
    thread: Option<JoinHandle<Result<(), ServeError>>>,
}

impl OverNbd {
    /// Starts `server`.
    pub fn start(server: Server) -> Self {
        Self {
            end: server.end(),
            thread: Some(std::thread::spawn(move || server.run())),
        }
    }
}

impl Served for OverNbd {
    fn is_over(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    fn connections(&self) -> usize {
        self.end.users()
    }

    fn outcome(&mut self) -> Result<(), ServiceError> {
        self.thread.take().map_or(Ok(()), joined)
    }

    /// Ends the server. Connected clients get the answers to the requests that they have sent, and
    /// no more.
    fn end(&mut self, how: End) -> Result<bool, ServiceError> {
        if how == End::Unused && self.connections() > 0 {
            return Ok(false);
        }
        self.end.now();
        self.outcome().map(|()| true)
    }
}

/// Requests that the kernel may have under way in each queue.
#[cfg(feature = "ublk")]
const DEPTH: u16 = 64;

/// Queues that are worth having.
#[cfg(feature = "ublk")]
const MOST_QUEUES: usize = 16;

/// An export that is a disk of the kernel's.
#[cfg(feature = "ublk")]
pub struct OnDisk {
    path: PathBuf,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<(), UblkError>>>,
}

#[cfg(feature = "ublk")]
impl OnDisk {
    /// A disk for `export`, of which so many requests are worth working on at a time.
    ///
    /// # Errors
    /// Those of [`Disk::new`].
    pub fn disk(export: &Export, threads: usize) -> Result<Disk, ServiceError> {
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
        let queues = threads.max(cores).min(MOST_QUEUES);
        Ok(Disk::new(export, queues as u16, DEPTH)?)
    }

    /// Serves the disk. `confine` runs on the thread that answers it.
    ///
    /// # Errors
    /// Those of [`Disk::serve`] before it has begun.
    pub fn start(
        disk: Disk,
        export: Arc<Export>,
        confine: impl FnOnce() -> io::Result<()> + Send + 'static,
    ) -> Result<Self, ServiceError> {
        let stop = Arc::new(AtomicBool::new(false));
        let (tell, ready) = mpsc::channel();
        let mut running = Self {
            path: disk.path(),
            stop: stop.clone(),
            thread: Some(std::thread::spawn(move || {
                disk.serve(&export, &stop, confine, || {
                    // The thread that began this waits, unless it has panicked.
                    let _ = tell.send(());
                })
            })),
        };
        // It has ended before it began, and says why.
        if ready.recv().is_err() {
            running.outcome()?;
        }
        Ok(running)
    }

    /// The disk.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

#[cfg(feature = "ublk")]
impl Served for OnDisk {
    fn is_over(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    fn outcome(&mut self) -> Result<(), ServiceError> {
        self.thread.take().map_or(Ok(()), joined)
    }

    fn end(&mut self, how: End) -> Result<bool, ServiceError> {
        if how == End::Unused && is_held(&self.path) {
            return Ok(false);
        }
        self.stop.store(true, Ordering::Relaxed);
        self.outcome().map(|()| true)
    }
}
