//! The file system that is made before an operation, and the encrypted directory on it.

use super::{LONGEST, STORED, Visit};
use crate::error::LabError;
use crate::file_system::error::{program_failed, unusable};
use crate::file_system::mounted::make_directory;
use crate::file_system::stack;
use crate::file_system::{Encrypter, FileSystem, Files, Job, Operation, Subject};
use crate::trial::operation::{self as timed, Flash, Load};
use std::io;
use std::path::Path;
use std::process::Command;

impl<'a> Visit<'a, '_> {
    /// Makes the file system outside the timed part.
    pub(super) fn make(&mut self, files: &Files, operation: &'a Operation) -> Result<(), LabError> {
        self.unmount()?;
        self.attach()?;
        self.image.clear()?;
        let device = self.device();
        if self.context.job.file_system == FileSystem::Directory {
            return self.make_directory();
        }
        if !self.context.job.file_system.is_made_of_a_tree() {
            self.run_maker(operation, &device, self.flash())?;
            return self.make_directory();
        }
        // To make it takes longer than all that is timed: it is made once, in a file.
        let made = self.context.made.join(files.word());
        if !made.exists() {
            self.plant(files, operation)?;
            self.run_maker(operation, &made, None)?;
        }
        timed::put(&made, &device, self.flash()).map_err(|error| self.failed(operation, error))
    }

    pub(super) fn flash(&self) -> Option<Flash> {
        let job = self.context.job;
        let road = self.road.as_ref()?;
        (job.file_system == FileSystem::Jffs2).then_some(Flash {
            size: road.size,
            erase_bytes: job.erase_bytes,
        })
    }

    /// Puts the files into the tree that the program that makes the file system reads.
    pub(super) fn plant(&self, files: &Files, operation: &Operation) -> Result<(), LabError> {
        let tree = &self.context.tree;
        let failed = |source| unusable("cannot write", tree, source);
        match std::fs::remove_dir_all(tree) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
        make_directory(tree)?;
        let load = Load {
            root: tree,
            caching: None,
            below: None,
            ..self.load(files, LONGEST)
        };
        timed::populate(load).map_err(|error| match error.kind() {
            io::ErrorKind::StorageFull => self.full(operation),
            _ => failed(error),
        })
    }

    /// Runs the program that makes the file system on `device`, which is `flash`
    /// or none; seconds.
    pub(super) fn run_maker(
        &self,
        operation: &Operation,
        device: &Path,
        flash: Option<Flash>,
    ) -> Result<f64, LabError> {
        let job = self.context.job;
        let mut maker = maker(job, self.subject, &self.context.tree, device);
        let made = timed::make(&mut maker, device, flash);
        let (wall, output) = made.map_err(|error| self.failed(operation, error))?;
        if output.status.success() {
            return Ok(wall);
        }
        let said = stack::said(&output);
        let no_space = rustix::io::Errno::NOSPC.to_string();
        let full = ["No space left", "not enough", "too small", &no_space];
        match full.iter().any(|words| said.contains(words)) {
            true => Err(self.full(operation)),
            false => Err(program_failed(job.file_system.maker(), &said)),
        }
    }

    /// Makes the encrypted directory on a file system that has just been made.
    pub(super) fn make_directory(&mut self) -> Result<(), LabError> {
        if self.directory.is_none() {
            return Ok(());
        }
        let (context, below) = (self.context, self.mount_below()?);
        let made = self.directory.as_ref().map_or(Ok(()), |directory| {
            directory.make(&context.below.join(STORED), &context.mounted)
        });
        made.and(below.take_down())
    }
}

/// The command that makes a file system of all of `device`. Nothing is
/// discarded, so that all systems are asked for the same.
fn maker(job: &Job, subject: &Subject, tree: &Path, device: &Path) -> Command {
    let mut command = block::program::command(job.file_system.maker());
    match job.file_system {
        FileSystem::Ext2 => command.args(["-q", "-F", "-E", "nodiscard"]),
        FileSystem::Ext4 => command.args([
            "-q",
            "-F",
            "-E",
            "nodiscard,lazy_itable_init=0,lazy_journal_init=0",
        ]),
        FileSystem::Xfs => command.args(["-q", "-f", "-K"]),
        FileSystem::Btrfs => command.args(["-q", "-f", "-K"]),
        FileSystem::F2fs => command.args(["-q", "-f", "-t", "0"]),
        // Nothing is made in a directory.
        FileSystem::Directory => &mut command,
        FileSystem::Cramfs => command.arg(tree),
        FileSystem::Jffs2 => {
            command.args(["--little-endian", "--squash"]);
            command.arg(format!("--eraseblock={}", job.erase_bytes));
            command.arg("-d").arg(tree).arg("-o")
        }
    };
    if subject.encrypter == Encrypter::Fscrypt {
        command.args(["-O", "encrypt"]);
    }
    command.arg(device);
    command
}
