//! [`run`]: a job from its first round to its last.
//!
//! Every round visits each system once, with all operations in the plan's
//! order. Odd rounds go in reverse, and each round visits the first system
//! again at its other end. An unreported visit before the rounds warms up the
//! kernel. Each operation begins with an empty file system or with one that
//! holds exactly its files. The file system is made again if the previous
//! operation left a different one. Its content is compared with the written
//! data before it is given up.

mod visit;

use self::visit::{Content, Visit};
use super::content::Noise;
use super::directory::Directory;
use super::error::{not_root, not_run};
use super::image::{Image, can_drop_caches};
use super::module::provide_file_system;
use super::mounted::{Scratch, make_directory};
use super::stack::{self, Attached, Engine};
use super::usage;
use super::{Event, FileSystem, Job, Operation, OperationSample, Subject};
use crate::clock::Clock;
use crate::error::LabError;
use crate::system::engine_file::{EngineBackend, VolumeKey};
use crate::system::with_causes;
use std::ffi::CString;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};

/// Runs `job` and reports its events. Nothing stays attached or mounted, even
/// after an error.
///
/// # Errors
/// [`LabError`]. Events reported before it are valid.
pub fn run(job: &Job, stop: &AtomicBool, tell: &mut dyn FnMut(Event)) -> Result<(), LabError> {
    if !rustix::process::geteuid().is_root() {
        return Err(not_root());
    }
    let file_system = job.file_system;
    if job.size < file_system.smallest() {
        return Err(LabError::invalid(
            format!(
                "{} needs a device of at least {} bytes, and this one has {}",
                file_system.name(),
                file_system.smallest(),
                job.size
            ),
            format!("Choose a size of {} or more.", file_system.smallest()),
        ));
    }
    // Calibrated before anything is timed: that is work, too.
    Clock::get();
    let maker = maker_version(file_system)?;
    if file_system != FileSystem::Directory {
        provide_file_system(file_system.name())?;
    }
    let scratch = Scratch::mount(&job.scratch, is_permanent(job))?;
    tell(Event::Begun {
        kernel: kernel(),
        maker,
        exact: usage::is_exact(),
    });
    let mut cells = Vec::new();
    for (place, subject) in job.subjects.iter().enumerate() {
        match stack::provide(job, subject) {
            Ok(()) => cells.push(Cell {
                place,
                subject,
                key: VolumeKey::random(subject.all_key_bits())?,
                image: None,
                kept: None,
                engine: None,
                backend: None,
            }),
            Err(error) => tell(Event::Absent {
                subject: place,
                reason: format!("{error}. {}", error.remedy()),
            }),
        }
    }
    if job.subjects.len() > 1 && cells.len() == 1 {
        // The plain system alone says nothing of what was asked for.
        cells.clear();
    }
    let buffer = |operation: &Operation| operation.buffer.as_u64() as usize;
    let longest = job.operations.iter().map(buffer).max().unwrap_or(0);
    let context = Context {
        job,
        stop,
        noise: Noise::new(job.seed, longest.max(LONGEST)),
        tree: job.scratch.join("tree"),
        made: job.scratch.join("made"),
        mounted: scratch.private().join("mounted"),
        below: scratch.private().join("below"),
        tick_rate: stack::tick_rate(),
        drops_caches: can_drop_caches(),
        kernel_name: CString::new(file_system.name()).expect("a name has no zeros"),
    };
    make_directory(&context.mounted)?;
    make_directory(&context.below)?;
    make_directory(&context.made)?;
    // The index of the second visit to the first system, which follows all
    // other subjects.
    let again = job.subjects.len();
    let shared = match context.permanent() {
        true => None,
        false => Some(Image::new(job, stop)?),
    };
    if job
        .subjects
        .iter()
        .any(|subject| subject.encrypter.encrypts_files())
    {
        context.examine_all(&mut cells, shared.as_ref(), tell)?;
    }
    if let Some(first) = cells.first_mut() {
        context.visit(first, shared.as_ref(), true, |_, _| {})?;
    }
    let mut order: Vec<(usize, usize)> = cells
        .iter()
        .enumerate()
        .map(|(index, cell)| (index, cell.place))
        .collect();
    order.extend((!cells.is_empty()).then_some((0, again)));
    for round in 0..job.repetitions {
        for &(index, told) in &order {
            context.visit(
                &mut cells[index],
                shared.as_ref(),
                round == 0,
                |operation, sample| {
                    let (cell, sample) = (told, sample);
                    tell(match sample {
                        None => Event::Visiting {
                            cell,
                            operation,
                            round,
                        },
                        Some(sample) => Event::Sample {
                            cell,
                            operation,
                            round,
                            sample,
                        },
                    });
                },
            )?;
            let cell = &cells[index];
            if let (0, Some(backend)) = (round, &cell.backend) {
                tell(Event::Engine {
                    subject: cell.place,
                    backend: backend.clone(),
                });
            }
        }
        order.reverse();
    }
    for cell in &mut cells {
        cell.engine.take().map_or(Ok(()), Engine::end)?;
    }
    tell(Event::Done);
    Ok(())
}

/// Whether the stacks of a job can never be taken down, because block2mtd never
/// releases a device.
fn is_permanent(job: &Job) -> bool {
    job.file_system == FileSystem::Jffs2
}

/// Bytes of a system call in untimed work.
const LONGEST: usize = 1 << 20;

/// A system, with what of it outlives a visit.
struct Cell<'a> {
    place: usize,
    subject: &'a Subject,
    key: VolumeKey,
    /// Its own image, if the stack over it cannot be taken down.
    image: Option<Image>,
    kept: Option<Attached>,
    engine: Option<Engine>,
    /// The backend with which the engine encrypts, once that is known.
    backend: Option<EngineBackend>,
}

/// The data that all visits share.
struct Context<'a> {
    job: &'a Job,
    stop: &'a AtomicBool,
    noise: Noise,
    /// The directory with the tree from which a file system is made.
    tree: PathBuf,
    /// The directory that keeps file systems made from trees, each in a file.
    made: PathBuf,
    /// The directory with the files in clear: the file system is mounted at it, or what encrypts
    /// files above one.
    mounted: PathBuf,
    /// The directory at which a file system is mounted whose files are encrypted above it.
    below: PathBuf,
    /// The lab kernel's timer frequency, ticks per second.
    tick_rate: Option<f64>,
    kernel_name: CString,
    /// Whether the kernel may be asked to forget files.
    drops_caches: bool,
}

impl<'a> Context<'a> {
    fn permanent(&self) -> bool {
        is_permanent(self.job)
    }

    fn stopped(&self) -> Result<(), LabError> {
        match self.stop.load(Ordering::Relaxed) {
            true => Err(LabError::session_interrupted()),
            false => Ok(()),
        }
    }

    /// A visit that has done nothing yet, with what an earlier one has left.
    fn begin<'c>(
        &'a self,
        (place, subject, key): (usize, &'a Subject, &'c VolumeKey),
        image: &'c Image,
        (road, engine): (Option<Attached>, Option<Engine>),
    ) -> Visit<'a, 'c>
    where
        'a: 'c,
    {
        let directory = || Directory::new(subject, key, &self.job.scratch, place);
        Visit {
            context: self,
            place,
            subject,
            key,
            image,
            road,
            had_road: false,
            engine,
            directory: subject.encrypter.encrypts_files().then(directory),
            mounted: None,
            opened: None,
            is_first: false,
            content: Content::Unknown,
            unchecked: None,
        }
    }

    /// Tells what the storage of each system shows. A system that cannot encrypt files here is
    /// absent from then on.
    fn examine_all(
        &'a self,
        cells: &mut Vec<Cell<'a>>,
        shared: Option<&Image>,
        tell: &mut dyn FnMut(Event),
    ) -> Result<(), LabError> {
        let Some(image) = shared else {
            return Ok(());
        };
        let mut present = Vec::new();
        for mut cell in cells.drain(..) {
            self.stopped()?;
            let what = (cell.place, cell.subject, &cell.key);
            let mut visit = self.begin(what, image, (None, None));
            let examined = visit.examine().and_then(|exposure| {
                visit.unmount()?;
                visit.detach()?;
                Ok(exposure)
            });
            let engine = visit.engine.take();
            drop(visit);
            cell.engine = engine;
            match examined {
                Ok(exposure) => tell(Event::Exposed {
                    subject: cell.place,
                    exposure: Box::new(exposure),
                }),
                Err(error) if cell.subject.encrypter.encrypts_files() && error.is_absence() => {
                    tell(Event::Absent {
                        subject: cell.place,
                        reason: format!("{}. {}", with_causes(&error), error.remedy()),
                    });
                    continue;
                }
                Err(error) => return Err(error),
            }
            present.push(cell);
        }
        *cells = present;
        if self.job.subjects.len() > 1 && cells.len() == 1 {
            cells.clear();
        }
        Ok(())
    }

    /// All operations on one system; `tell` hears of each before and after. In the
    /// first round, content is compared through mounts of its own.
    fn visit(
        &'a self,
        cell: &mut Cell<'a>,
        shared: Option<&Image>,
        is_first: bool,
        mut tell: impl FnMut(usize, Option<OperationSample>),
    ) -> Result<(), LabError> {
        if shared.is_none() && cell.image.is_none() {
            cell.image = Some(Image::new(self.job, self.stop)?);
        }
        let Some(image) = shared.or(cell.image.as_ref()) else {
            return Ok(());
        };
        let what = (cell.place, cell.subject, &cell.key);
        let left = (cell.kept.take(), cell.engine.take());
        let mut visit = self.begin(what, image, left);
        visit.is_first = is_first;
        for (index, operation) in self.job.operations.iter().enumerate() {
            let suits = cell.subject.encrypter.suits(operation);
            if !suits || !operation.suits(self.job.file_system) {
                continue;
            }
            self.stopped()?;
            tell(index, None);
            let sample = visit.measure(operation)?;
            tell(index, Some(sample));
        }
        visit.check()?;
        visit.unmount()?;
        if let Some(road) = &visit.road {
            cell.backend.clone_from(&road.backend);
        }
        if self.permanent() {
            cell.kept = visit.road.take();
            return Ok(());
        }
        visit.detach()?;
        cell.engine = visit.engine.take();
        Ok(())
    }
}

/// The version that the program that makes a file system reports.
fn maker_version(file_system: FileSystem) -> Result<String, LabError> {
    let program = file_system.maker();
    let version = match file_system {
        FileSystem::Directory => "--version",
        _ => "-V",
    };
    let output = block::program::command(program)
        .arg(version)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| not_run(program, file_system.package(), error))?;
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    let line = text.lines().map(str::trim).find(|line| !line.is_empty());
    Ok(line.unwrap_or(program).to_owned())
}

/// Name and release of the kernel that runs.
fn kernel() -> String {
    let name = rustix::system::uname();
    format!(
        "{} {}",
        name.sysname().to_string_lossy(),
        name.release().to_string_lossy()
    )
}
