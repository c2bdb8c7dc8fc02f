//! [`Visit`]: the operations of a round on one system, each from its own state.

mod examine;
mod make;

use super::{Context, LONGEST, maker_version};
use crate::clock::unix_time;
use crate::error::LabError;
use crate::file_system::content::{self, Present};
use crate::file_system::directory::{Directory, Opened};
use crate::file_system::error::{self, untrustworthy, unusable};
use crate::file_system::image::{self, Image, drop_caches};
use crate::file_system::mounted::Mounted;
use crate::file_system::operation::Kind;
use crate::file_system::stack::{self, Attached, CryptoTimer, Engine};
use crate::file_system::usage::Usage;
use crate::file_system::{FileSystem, Files, Operation, OperationSample, Subject};
use crate::system::engine_file::VolumeKey;
use crate::trial::operation::{self as timed, Load, OnFiles};
use std::io;
use std::path::{Path, PathBuf};

/// The encrypted directory's name on the file system below.
const STORED: &str = "stored";

/// The content of a file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// The content is unknown.
    Unknown,
    /// The files of all jobs, as far as they are present.
    Files(Files, Present),
    /// The bytes of all jobs' files on the device itself, without a file system.
    Bare(Files),
}

/// One system in one round.
pub(super) struct Visit<'a, 'c> {
    pub(super) context: &'a Context<'a>,
    pub(super) place: usize,
    pub(super) subject: &'a Subject,
    pub(super) key: &'c VolumeKey,
    pub(super) image: &'c Image,
    pub(super) road: Option<Attached>,
    /// Whether it has had one before: then the image is as that has left it.
    pub(super) had_road: bool,
    /// The engine's server while it belongs to no stack.
    pub(super) engine: Option<Engine>,
    /// The encrypted directory, if the system encrypts files.
    pub(super) directory: Option<Directory<'c>>,
    pub(super) mounted: Option<Mounted>,
    pub(super) opened: Option<Opened>,
    /// Whether it is of the first round, in which content is compared through mounts of its own.
    pub(super) is_first: bool,
    pub(super) content: Content,
    /// The operation that left it so, until it is compared.
    pub(super) unchecked: Option<&'a Operation>,
}

impl<'a> Visit<'a, '_> {
    /// One operation, from the state that it begins in.
    pub(super) fn measure(
        &mut self,
        operation: &'a Operation,
    ) -> Result<OperationSample, LabError> {
        let job = self.context.job;
        let files = operation.files();
        let begins_with = match operation.op {
            Kind::Mkfs | Kind::Encrypt => None,
            Kind::Write | Kind::Append | Kind::Sparse => Some(Files::default()),
            _ => Some(files.clone()),
        };
        match begins_with {
            None => self.check()?,
            Some(wanted) if self.content != Content::Files(wanted.clone(), Present::Files) => {
                self.check()?;
                self.make(&wanted, operation)?;
                if !job.file_system.is_made_of_a_tree() && wanted.count > 0 {
                    self.mount()?;
                    let populated = timed::populate(self.load(&wanted, LONGEST));
                    populated.map_err(|error| self.failed(operation, error))?;
                }
                self.content = Content::Files(wanted, Present::Files);
                self.unchecked = Some(operation);
            }
            Some(_) => {}
        }
        self.get_ready(operation)?;
        let nothing = self.usage(Usage::before);
        // The time for reading the counters is subtracted, because a mount may be just as short.
        let reading = self.usage(Usage::after).since(nothing);
        let before = self.usage(Usage::before);
        let begun = unix_time();
        let wall = self.timed(operation, &files)?;
        let spent = self.usage(Usage::after).since(before).since(reading);
        if operation.op == Kind::Mkfs {
            self.make_directory()?;
        }
        let every = u64::from(job.jobs);
        let handled = match operation.op {
            Kind::Command | Kind::Mkfs | Kind::Mount => 1,
            Kind::RandomRead | Kind::Append => files.pieces(operation.buffer.as_u64()) * every,
            _ => u64::from(files.count) * every,
        };
        Ok(OperationSample {
            begun,
            wall,
            user: spent.user,
            sys: spent.sys,
            workers: spent.workers,
            crypto: spent.crypto,
            moved: spent.moved,
            bytes: match operation.op {
                Kind::Write | Kind::Read | Kind::Copy | Kind::Encrypt => files.bytes() * every,
                Kind::RandomRead | Kind::Append => files.bytes() * every,
                Kind::Mkfs if job.file_system.is_made_of_a_tree() => files.bytes() * every,
                _ => 0,
            },
            requests: handled,
            pace: None,
        })
    }

    /// Cold: everything is taken down and forgotten; warm: what is read was
    /// read before. Afterwards the file system is mounted, unless the operation
    /// makes or mounts it.
    fn get_ready(&mut self, operation: &'a Operation) -> Result<(), LabError> {
        let job = self.context.job;
        let needs_mount = !matches!(operation.op, Kind::Mkfs | Kind::Mount | Kind::Encrypt);
        let files = operation.files();
        if operation.op == Kind::Mkfs && job.file_system.is_made_of_a_tree() {
            self.plant(&files, operation)?;
        }
        // An empty directory is in no cache that could answer.
        let begins_empty = matches!(operation.op, Kind::Write | Kind::Append | Kind::Sparse);
        let stays = needs_mount && begins_empty && self.stays_open();
        if (job.cold || !needs_mount) && !stays {
            self.unmount()?;
        }
        if job.cold {
            if !self.context.permanent() && !stays {
                self.detach()?;
            }
            self.drop_caches(operation)?;
            if operation.op == Kind::Mkfs {
                // The program itself is not what is cold.
                maker_version(job.file_system)?;
            }
        }
        self.attach()?;
        if needs_mount {
            self.mount()?;
        }
        if job.cold && needs_mount && self.context.permanent() {
            // Mounting has read all of it.
            drop_caches(self.image)?;
        }
        if !job.cold
            && matches!(
                operation.op,
                Kind::Read | Kind::RandomRead | Kind::Stat | Kind::List
            )
        {
            let warm = timed::on_files(OnFiles::Read, self.load(&files, LONGEST));
            warm.map_err(|error| self.failed(operation, error))?;
        }
        Ok(())
    }

    /// The timed part; seconds.
    fn timed(&mut self, operation: &'a Operation, files: &Files) -> Result<f64, LabError> {
        let job = self.context.job;
        let failed = |error| self.failed(operation, error);
        let on = |what| {
            let load = self.load(files, operation.buffer.as_u64() as usize);
            timed::on_files(what, load).map_err(failed)
        };
        let (wall, content) = match operation.op {
            Kind::Mkfs => {
                let wall = self.run_maker(operation, &self.device(), self.flash())?;
                let made_of = match job.file_system.is_made_of_a_tree() {
                    true => files.clone(),
                    false => Files::default(),
                };
                (wall, Content::Files(made_of, Present::Files))
            }
            Kind::Mount => {
                let device = self.source();
                let (wall, (mounted, opened)) = timed::mount(|| self.mounted_from(&device))?;
                (self.mounted, self.opened) = (Some(mounted), opened);
                (wall, Content::Files(files.clone(), Present::Files))
            }
            Kind::Write => (
                on(OnFiles::Write)?,
                Content::Files(files.clone(), Present::Files),
            ),
            Kind::Read => (
                on(OnFiles::Read)?,
                Content::Files(files.clone(), Present::Files),
            ),
            Kind::Stat => (
                on(OnFiles::Stat)?,
                Content::Files(files.clone(), Present::Files),
            ),
            Kind::Copy => (
                on(OnFiles::Copy)?,
                Content::Files(files.clone(), Present::Both),
            ),
            Kind::Remove => (
                on(OnFiles::Remove)?,
                Content::Files(Files::default(), Present::Files),
            ),
            Kind::List => (
                on(OnFiles::List)?,
                Content::Files(files.clone(), Present::Files),
            ),
            Kind::RandomRead => (
                on(OnFiles::RandomRead)?,
                Content::Files(files.clone(), Present::Files),
            ),
            Kind::Append => (
                on(OnFiles::Append)?,
                Content::Files(files.clone(), Present::Files),
            ),
            Kind::Rename => (
                on(OnFiles::Rename)?,
                Content::Files(files.clone(), Present::Renamed),
            ),
            Kind::Sparse => {
                let present = Present::Sparse(operation.buffer.as_u64());
                (on(OnFiles::Sparse)?, Content::Files(files.clone(), present))
            }
            Kind::Encrypt => {
                let device = self.device();
                let load = Load {
                    root: &device,
                    ..self.load(files, LONGEST)
                };
                let wall = timed::on_files(OnFiles::Encrypt, load).map_err(failed)?;
                (wall, Content::Bare(files.clone()))
            }
            Kind::Command => {
                let line = operation.command.as_deref().unwrap_or_default();
                let ran = timed::command(line, self.load(files, LONGEST));
                let (wall, output) = ran.map_err(failed)?;
                if let Some(output) = output {
                    return Err(LabError::failed(
                        format!("the command {line:?} failed: {}", stack::said(&output)),
                        "Try the command in an empty directory. cryptmark runs it in the mounted \
                         directory with sh -c.",
                    ));
                }
                (wall, Content::Unknown)
            }
        };
        self.content = content;
        self.unchecked = Some(operation);
        Ok(wall)
    }

    /// Compares the content of the file system with the written data and gives it up. A cold
    /// comparison reads through all layers.
    pub(super) fn check(&mut self) -> Result<(), LabError> {
        let Some(operation) = self.unchecked.take() else {
            return Ok(());
        };
        let content = std::mem::replace(&mut self.content, Content::Unknown);
        if content == Content::Unknown {
            return Ok(());
        }
        match self.stays_open() && !self.is_first {
            true => self.drop_caches(operation)?,
            false => {
                self.unmount()?;
                self.forget()?;
            }
        }
        self.attach()?;
        let context = self.context;
        let (jobs, noise) = (context.job.jobs, &context.noise);
        let compared = match &content {
            Content::Bare(files) => content::compare_device(&self.device(), files, jobs, noise),
            Content::Files(files, present) => {
                self.mount()?;
                content::compare(self.root(), files, jobs, *present, noise)
            }
            Content::Unknown => Ok(()),
        };
        compared.map_err(|what| {
            let label = self.subject.label();
            untrustworthy(format!("{:?} on {label}: {what}", operation.name))
        })
    }

    /// Drops the caches of all layers without taking them down.
    fn forget(&self) -> Result<(), LabError> {
        match &self.road {
            // The pages of flash belong to another device than the stack's last one.
            Some(_) if self.context.permanent() => drop_caches(self.image),
            Some(road) => road.forget().and_then(|()| self.image.forget()),
            None => self.image.forget(),
        }
    }

    fn load<'l>(&'l self, files: &'l Files, buffer: usize) -> Load<'l> {
        Load {
            root: self.root(),
            files,
            jobs: self.context.job.jobs,
            buffer,
            noise: &self.context.noise,
            caching: self.caching(),
            below: self
                .directory
                .as_ref()
                .map(|_| self.context.below.as_path()),
        }
    }

    /// The directory with the files in clear.
    fn root(&self) -> &Path {
        match &self.opened {
            Some(opened) => opened.root(),
            None => &self.context.mounted,
        }
    }

    /// Forgets everything that is cached, as far as that is allowed.
    fn drop_caches(&self, operation: &Operation) -> Result<(), LabError> {
        if !self.context.drops_caches && self.opened.is_some() {
            let synced = std::fs::File::open(self.root())
                .and_then(|root| Ok(rustix::fs::syncfs(root)?))
                .and_then(|()| image::forget_files(self.root()));
            synced.map_err(|error| self.failed(operation, error))?;
        }
        drop_caches(self.image)
    }

    /// Whether what is open can stay open: a program would derive its key again, which takes
    /// longer than all that is timed.
    fn stays_open(&self) -> bool {
        self.opened.is_some() && self.subject.encrypter.is_program()
    }

    /// The device under block2mtd, which writes to that one's cache.
    fn caching(&self) -> Option<&Path> {
        let road = self.road.as_ref()?;
        self.flash().map(|_| road.device.as_path())
    }

    fn attach(&mut self) -> Result<(), LabError> {
        if self.road.is_none() {
            let wanted = stack::Wanted {
                job: self.context.job,
                subject: self.subject,
                key: self.key,
                place: self.place,
                fresh: !self.had_road,
                tick_rate: self.context.tick_rate,
            };
            self.road = Some(Attached::new(wanted, self.image, self.engine.take())?);
            self.had_road = true;
        }
        Ok(())
    }

    pub(super) fn detach(&mut self) -> Result<(), LabError> {
        if let Some(road) = self.road.take() {
            self.engine = road.take_down()?;
        }
        Ok(())
    }

    fn mount(&mut self) -> Result<(), LabError> {
        if self.mounted.is_none() {
            let (mounted, opened) = self.mounted_from(&self.source())?;
            (self.mounted, self.opened) = (Some(mounted), opened);
        }
        Ok(())
    }

    pub(super) fn unmount(&mut self) -> Result<(), LabError> {
        let closed = self.opened.take().map_or(Ok(()), Opened::close);
        let unmounted = self.mounted.take().map_or(Ok(()), Mounted::take_down);
        closed.and(unmounted)
    }

    /// Mounts the file system, and opens the encrypted directory on it if there is one.
    fn mounted_from(&self, device: &Path) -> Result<(Mounted, Option<Opened>), LabError> {
        let context = self.context;
        let Some(directory) = &self.directory else {
            return Ok((self.mounted_at(device, &context.mounted)?, None));
        };
        let mounted = self.mounted_at(device, &context.below)?;
        let opened = directory.open(&context.below.join(STORED), &context.mounted)?;
        Ok((mounted, Some(opened)))
    }

    /// Mounts the file system at `at`, or shows the user's own there.
    fn mounted_at(&self, device: &Path, at: &Path) -> Result<Mounted, LabError> {
        let (kernel_name, file_system) = (&self.context.kernel_name, self.context.job.file_system);
        let mounted = match file_system {
            FileSystem::Directory => Mounted::bind(device, at),
            _ => Mounted::new(device, at, kernel_name, file_system.is_read_only()),
        };
        mounted.map_err(|source| self.not_mounted(source))
    }

    /// The counter readings for the current stack.
    fn usage(&mut self, read: fn(&mut CryptoTimer, &Path) -> Usage) -> Usage {
        let (user, sys) = self.opened.as_ref().map_or((0.0, 0.0), Opened::cpu);
        let usage = match &mut self.road {
            Some(road) => read(&mut road.timer, &road.device),
            None => read(&mut CryptoTimer::None, Path::new("")),
        };
        Usage {
            user: usage.user.map(|own| own + user),
            sys: usage.sys.map(|own| own + sys),
            ..usage
        }
    }

    fn device(&self) -> PathBuf {
        self.road
            .as_ref()
            .map_or_else(PathBuf::new, |road| road.device.clone())
    }

    fn source(&self) -> PathBuf {
        self.road
            .as_ref()
            .map_or_else(PathBuf::new, |road| road.source.clone())
    }

    fn not_mounted(&self, source: io::Error) -> LabError {
        let file_system = self.context.job.file_system.name();
        error::not_mounted(file_system, &self.source(), source)
    }

    fn failed(&self, operation: &Operation, error: io::Error) -> LabError {
        match error.kind() {
            io::ErrorKind::StorageFull => self.full(operation),
            _ => unusable("cannot go on with", operation.name.as_ref(), error),
        }
    }

    fn full(&self, operation: &Operation) -> LabError {
        let job = self.context.job;
        LabError::invalid(
            format!(
                "the files of {:?} do not fit into {} with {} bytes",
                operation.name,
                job.file_system.name(),
                job.size
            ),
            "Choose a larger size, or smaller files.",
        )
    }
}

impl Drop for Visit<'_, '_> {
    /// Unmounts the file system before the device below it is removed.
    fn drop(&mut self) {
        self.opened = None;
        self.mounted = None;
        self.road = None;
    }
}
