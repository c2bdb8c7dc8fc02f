//! The look at the storage of a system, and at the space that files take on it.

use super::{STORED, Visit};
use crate::error::LabError;
use crate::file_system::error::untrustworthy;
use crate::file_system::exposure::{self, Stored, Tree};
use crate::file_system::image::drop_caches;
use crate::file_system::mounted::Mounted;
use crate::file_system::{Encrypter, Files, Operation};
use crate::record::{Exposure, Shown, Space};
use std::path::PathBuf;

impl<'a> Visit<'a, '_> {
    /// Looks at the storage without the key, and at the space that files take.
    ///
    /// # Errors
    /// [`LabError`] if a system that encrypts shows what it should not.
    pub(in crate::file_system::runner) fn examine(&mut self) -> Result<Exposure, LabError> {
        let context = self.context;
        let operation = &context.job.operations[0];
        // A device may hold trees of other systems and of earlier runs.
        let id = context.job.id.bytes();
        let run = id.fold(context.job.seed, |sum, byte| {
            sum.wrapping_mul(257).wrapping_add(byte.into())
        });
        let tree = Tree::new(run.wrapping_add(self.place as u64));
        let encrypter = self.subject.encrypter;
        self.make(&Files::default(), operation)?;
        self.mount()?;
        let before = self.read_stored(operation)?;
        tree.write(self.root())
            .map_err(|error| self.failed(operation, error))?;
        let look = |visit: &Self| {
            tree.in_directory(&visit.stored(), &before)
                .map_err(|error| visit.failed(operation, error))
        };
        let mut seen = match encrypter {
            Encrypter::None => look(self)?,
            _ if encrypter.encrypts_files() => {
                self.unmount()?;
                let below = self.mount_below()?;
                let seen = look(self);
                below.take_down()?;
                seen?
            }
            _ => Exposure::default(),
        };
        // The kernel reads no content of its own directories without the key, so the device is
        // read.
        if encrypter == Encrypter::Fscrypt
            || self.directory.is_none() && encrypter != Encrypter::None
        {
            self.unmount()?;
            self.detach()?;
            drop_caches(self.image)?;
            let shown = self
                .image
                .shown(&tree)
                .map_err(|error| self.failed(operation, error))?;
            (seen.contents, seen.names) = shown;
        }
        for size in exposure::SIZES {
            if 4 * u64::from(exposure::COUNTED) * size < self.context.job.size {
                seen.space.push(self.space(size, operation)?);
            }
        }
        let in_clear = [("contents", seen.contents), ("names", seen.names)];
        let in_clear = in_clear
            .into_iter()
            .find(|(_, shown)| *shown == Shown::Exact);
        match in_clear {
            Some((what, _)) if encrypter != Encrypter::None => {
                let label = self.subject.label();
                let what = format!("{label} stores {what} that can be read without the key");
                Err(untrustworthy(what))
            }
            _ => Ok(seen),
        }
    }

    /// The space that a file of `size` bytes takes.
    fn space(&mut self, size: u64, operation: &'a Operation) -> Result<Space, LabError> {
        let noise = &self.context.noise;
        self.make(&Files::default(), operation)?;
        self.mount()?;
        let before = self.read_stored(operation)?;
        exposure::write_counted(self.root(), size, noise)
            .map_err(|error| self.failed(operation, error))?;
        self.unmount()?;
        let after = match &self.directory {
            Some(_) => {
                let below = self.mount_below()?;
                let after = self.read_stored(operation);
                below.take_down()?;
                after?
            }
            None => {
                self.mount()?;
                self.read_stored(operation)?
            }
        };
        Ok(exposure::space(size, &before, &after))
    }

    fn read_stored(&self, operation: &Operation) -> Result<Stored, LabError> {
        Stored::read(&self.stored()).map_err(|error| self.failed(operation, error))
    }

    /// Mounts the file system whose files are encrypted, without the key.
    pub(super) fn mount_below(&mut self) -> Result<Mounted, LabError> {
        self.attach()?;
        let context = self.context;
        self.mounted_at(&self.source(), &context.below)
    }

    /// The directory in which files are stored.
    fn stored(&self) -> PathBuf {
        match &self.directory {
            Some(_) => self.context.below.join(STORED),
            None => self.context.mounted.clone(),
        }
    }
}
