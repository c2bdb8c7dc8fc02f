//! An opened volume as a disk of the kernel's, by its ublk driver.

use super::ServeOptions;
use crate::cli::Failure;
use crate::cli::volume::disk::Names;
use crate::cli::volume::service::{End, Served, joined, record};
use crate::cli::volume::umount::{Undo, undo};
use block::signature::is_held;
use serve::ublk::{self, Disk, UblkError};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;

/// Requests that the kernel may have under way in each queue.
const DEPTH: u16 = 64;

/// Queues that are worth having.
const MOST_QUEUES: usize = 16;

/// Serves the volume until it is ended.
pub fn as_disk(options: &ServeOptions, names: &Names) -> Result<(), Failure> {
    // Before a passphrase is asked for.
    ublk::check()?;
    let Some(service) = options.service.begin(&[&options.volume])? else {
        return Ok(());
    };
    let exported = options.export(&options.volume.with(names), &service)?;
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let queues = exported.threads.max(cores).min(MOST_QUEUES);
    let disk = Disk::new(&exported.export, queues as u16, DEPTH)?;
    let path = disk.path();
    service.add(record::Place::Disk(path.clone()))?;
    let stop = Arc::new(AtomicBool::new(false));
    let (tell, ready) = mpsc::channel();
    let thread = std::thread::spawn({
        let (export, stop) = (exported.export.clone(), stop.clone());
        move || {
            disk.serve(&export, &stop, || {
                // The thread that began this waits, unless it has panicked.
                let _ = tell.send(());
            })
        }
    });
    let mut running = Running {
        path,
        stop,
        thread: Some(thread),
    };
    let outcome = match ready.recv() {
        Ok(()) => options
            .ready(&service, &running.path.display().to_string())
            .and_then(|()| service.wait(&[exported.export], &mut running)),
        // It has ended before it began, and says why below.
        Err(_) => Ok(()),
    };
    let ended = running.end(End::Now);
    undo(&service.record(), Undo::Now)?;
    outcome.and(ended.map(drop))
}

/// A disk that a thread of its own serves.
struct Running {
    path: PathBuf,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<(), UblkError>>>,
}

impl Served for Running {
    fn is_over(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    fn outcome(&mut self) -> Result<(), Failure> {
        self.thread.take().map_or(Ok(()), joined)
    }

    fn end(&mut self, how: End) -> Result<bool, Failure> {
        if how == End::Unused && is_held(&self.path) {
            return Ok(false);
        }
        self.stop.store(true, Ordering::Relaxed);
        self.outcome().map(|()| true)
    }
}

impl From<UblkError> for Failure {
    fn from(error: UblkError) -> Self {
        Self::of(1, &error, error.remedy())
    }
}
