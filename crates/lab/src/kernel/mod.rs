//! The lab kernels: the real dm-crypt, cryptoloop, fscrypt, eCryptfs, jffs2 and cramfs in a kernel
//! that is an ordinary program (docs/LAB-KERNEL.md).
//!
//! [`Lab::build`] makes it of Debian's source, our configuration and our patches,
//! in the user's cache; [`Lab::run`] boots it, has it run a command on the host's
//! files, and hands out the command's exit code and output. Nothing of the host
//! is written but what the caller names.

mod archive;
mod boot;
mod build;
mod error;
mod inputs;
mod script;
mod work;

pub use boot::{Disk, Job, Output, Outputs};
pub use build::{Progress, Step, standard_cache};
pub use error::{KernelError, Tool};
pub use inputs::Version;

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// A lab kernel that was built.
#[derive(Clone, Debug)]
pub struct Lab {
    kernel: PathBuf,
}

impl Lab {
    /// The kernel of that version in the user's cache.
    ///
    /// # Errors
    /// [`KernelError::Absent`] if it was not built, [`KernelError::NoCache`].
    pub fn find(version: Version) -> Result<Self, KernelError> {
        let found = build::find(version, &standard_cache()?);
        let kernel = found.ok_or(KernelError::Absent { kernel: version })?;
        Ok(Self { kernel })
    }

    /// Builds the kernel of that version in `cache`, unless that has it. A build takes some minutes
    /// of all cores, 800 MB of disk during that time, and 150 MB from Debian's archive. One process
    /// builds at a time. Setting `stop` ends the build.
    ///
    /// # Errors
    /// All errors except those of running.
    pub fn build(
        version: Version,
        cache: &Path,
        stop: &AtomicBool,
        told: &mut dyn FnMut(Progress),
    ) -> Result<Self, KernelError> {
        let kernel = build::build(version, cache, stop, told)?;
        Ok(Self { kernel })
    }

    /// The program.
    pub fn path(&self) -> &Path {
        &self.kernel
    }

    /// Boots the kernel, runs a job, and waits for its end, or until `stop` is set. Returns the
    /// exit code of the command, or 128 plus the signal that killed it.
    ///
    /// When this returns, nothing of the machine is left. If the calling thread dies, nothing is
    /// left a moment later.
    ///
    /// # Errors
    /// If the command has no exit code: [`KernelError::Crashed`], [`KernelError::TimedOut`],
    /// [`KernelError::SetUp`], [`KernelError::Interrupted`], or an error that the machine could not
    /// be started.
    pub fn run(&self, job: &Job, outputs: Outputs, stop: &AtomicBool) -> Result<u8, KernelError> {
        boot::run(&self.kernel, job, outputs, stop)
    }

    /// [`Self::run`], with all that the command writes.
    ///
    /// # Errors
    /// As there.
    pub fn output(&self, job: &Job, stop: &AtomicBool) -> Result<Output, KernelError> {
        boot::output(&self.kernel, job, stop)
    }
}
