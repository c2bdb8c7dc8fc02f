//! [`Attached`]: the stack of layers from a job's image to a device for a file system. This module
//! sets it up and takes it down.

use super::directory;
use super::error::{not_removed, not_root, unusable};
use super::image::{Image, forget};
use super::mapping;
use super::module::{BLOCK2MTD, CRYPTOLOOP, DM_CRYPT, DM_INTEGRITY};
use super::mounted::{make_directory, unmount};
use super::usage::counter;
use super::{Encrypter, FileSystem, Job, Subject};
use crate::error::LabError;
use crate::system::engine_file::{EngineBackend, EngineClient, EngineTimes, VolumeKey};
use block::{LoopDevice, MappedDevice};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Maximum time for which a layer may stay in use after its user has ended.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

/// Interval of further attempts during that time.
pub(super) const RETRY: Duration = Duration::from_millis(2);

/// How long the timers' frequency is measured.
const CALIBRATION: Duration = Duration::from_millis(100);

/// The directory of the lab kernel's timers.
const TIMERS: &str = "/sys/kernel/cryptmark";

/// The settings of a stack that is to be set up.
#[derive(Clone, Copy)]
pub(super) struct Wanted<'a> {
    pub job: &'a Job,
    pub subject: &'a Subject,
    pub key: &'a VolumeKey,
    /// Tells it from others of the job.
    pub place: usize,
    /// Whether the image holds no data of an earlier stack.
    pub fresh: bool,
    /// Ticks a second of the lab kernel's timers.
    pub tick_rate: Option<f64>,
}

impl Wanted<'_> {
    /// The name of one of the stack's device-mapper devices.
    pub(super) fn name(&self, what: &str) -> String {
        format!("cryptmark-{}-{}-{what}", self.job.id, self.place)
    }
}

/// A stack that is set up.
pub(super) struct Attached {
    /// The device that `mkfs` gets.
    pub device: PathBuf,
    /// The source that `mount` gets.
    pub source: PathBuf,
    /// Bytes of the device.
    pub size: u64,
    /// Counts the time that encryption takes.
    pub timer: CryptoTimer,
    /// The engine's backend, if the engine encrypts.
    pub backend: Option<EngineBackend>,
    /// In the order in which they were made.
    layers: Vec<Layer>,
    /// The file that the engine serves.
    served: PathBuf,
    /// Whether the kernel never lets go of it, until it ends itself.
    permanent: bool,
}

/// One layer of a stack.
enum Layer {
    /// The engine's server, which is [`Attached::timer`]: it outlives the stack.
    Engine,
    /// A loop device, which goes with its last user.
    Loop(LoopDevice),
    /// A device-mapper device, which is removed when its last user closes it.
    Mapped(MappedDevice),
}

impl Attached {
    /// Sets up a stack over `image`, with `engine` if an earlier stack has left one.
    ///
    /// # Errors
    /// [`LabError`]. No layer of the stack stays.
    pub(super) fn new(
        wanted: Wanted<'_>,
        image: &Image,
        engine: Option<Engine>,
    ) -> Result<Self, LabError> {
        let job = wanted.job;
        let mut road = Self {
            device: image.path(),
            source: PathBuf::new(),
            size: job.size,
            timer: CryptoTimer::None,
            backend: None,
            layers: Vec::new(),
            served: PathBuf::new(),
            permanent: false,
        };
        let raw = image.is_device();
        match wanted.subject.encrypter {
            Encrypter::Cryptoloop => road.attach_cryptoloop(wanted)?,
            Encrypter::DmCrypt => {
                if !raw {
                    road.attach_loop()?;
                }
                road.map(wanted)?;
            }
            Encrypter::BuiltinFuse => {
                road.serve(match engine {
                    Some(engine) => engine,
                    None => Engine::start(wanted, &road.device)?,
                })?;
                road.attach_loop()?;
            }
            // Nothing encrypts the device.
            _ if raw || job.file_system == FileSystem::Directory => {}
            _ => road.attach_loop()?,
        }
        road.source.clone_from(&road.device);
        if job.file_system == FileSystem::Jffs2 {
            road.permanent = true;
            road.source = mtd(&road.device, job.erase_bytes)?;
        }
        Ok(road)
    }

    /// Lets the kernel forget what it has cached of the device that the file
    /// system was mounted from, and of what the engine serves.
    pub(super) fn forget(&self) -> Result<(), LabError> {
        forget(&self.device)?;
        match self.layers.first() {
            Some(Layer::Engine) => forget(&self.served),
            _ => Ok(()),
        }
    }

    /// Takes everything down, the last first, but for the engine's server.
    ///
    /// # Errors
    /// [`LabError`] for the first that would not go; the rest
    /// is tried as well.
    pub(super) fn take_down(mut self) -> Result<Option<Engine>, LabError> {
        self.undo()?;
        Ok(
            match std::mem::replace(&mut self.timer, CryptoTimer::None) {
                CryptoTimer::Engine(engine) => Some(*engine),
                _ => None,
            },
        )
    }

    fn undo(&mut self) -> Result<(), LabError> {
        let mut outcome = Ok(());
        while let Some(layer) = self.layers.pop() {
            let undone = match layer {
                Layer::Loop(device) => detached(device),
                Layer::Mapped(device) => unmapped(device),
                // The loop device writes without a cache, so its data have arrived. Data that
                // others have cached by reading must not be read from that cache again.
                Layer::Engine => forget(&self.served),
            };
            outcome = outcome.and(undone);
        }
        outcome
    }

    fn attach_loop(&mut self) -> Result<(), LabError> {
        let device = LoopDevice::attach(&self.device, true)?;
        self.device = device.path().to_owned();
        self.layers.push(Layer::Loop(device));
        Ok(())
    }

    fn attach_cryptoloop(&mut self, wanted: Wanted<'_>) -> Result<(), LabError> {
        let notation = wanted.subject.cipher.as_deref().unwrap_or_default();
        let Some(cipher) = cryptoloop_cipher(notation) else {
            return Err(no_cryptoloop(notation));
        };
        let key = wanted.key;
        let device =
            key.with_bytes(|key| LoopDevice::with_cryptoloop(&self.device, true, cipher, key))?;
        self.device = device.path().to_owned();
        self.timer = CryptoTimer::of_kernel("cryptoloop", wanted.tick_rate);
        self.layers.push(Layer::Loop(device));
        Ok(())
    }

    /// Adds dm-crypt, and dm-integrity below it if its sectors have tags.
    fn map(&mut self, wanted: Wanted<'_>) -> Result<(), LabError> {
        let mut size = wanted.job.size;
        if wanted.subject.has_tags() {
            let tagged = mapping::tagged(wanted, &self.device)?;
            self.device = tagged.device.path().to_owned();
            self.layers.push(Layer::Mapped(tagged.device));
            size = tagged.size;
        }
        let device = mapping::crypt(wanted, &self.device, size)?;
        self.device = device.path().to_owned();
        self.size = size;
        self.timer = CryptoTimer::of_kernel("dm_crypt", wanted.tick_rate);
        self.layers.push(Layer::Mapped(device));
        match wanted.subject.has_tags() && wanted.fresh {
            true => mapping::fill(&self.device, size),
            false => Ok(()),
        }
    }

    fn serve(&mut self, engine: Engine) -> Result<(), LabError> {
        self.device = engine.client.file();
        self.served.clone_from(&self.device);
        self.backend = engine.client.backend().cloned();
        self.timer = CryptoTimer::Engine(Box::new(engine));
        self.layers.push(Layer::Engine);
        Ok(())
    }
}

/// The engine's server over an image. It keeps no data that it has read or written, so it serves
/// all stacks of its system.
pub(super) struct Engine {
    client: EngineClient,
    /// The directory at which its file is mounted.
    directory: PathBuf,
    over: bool,
}

impl Engine {
    fn start(wanted: Wanted<'_>, backing: &Path) -> Result<Self, LabError> {
        let Wanted {
            job, subject, key, ..
        } = wanted;
        let directory = job.scratch.join(format!("engine{}", wanted.place));
        make_directory(&directory)?;
        let client = EngineClient::start(
            &job.program,
            !job.kernel.is_lab(),
            backing,
            &directory,
            subject.cipher.as_deref().unwrap_or_default(),
            subject.sector_bytes,
            key,
        );
        let client = client.inspect_err(|_| {
            let _ = fs::remove_dir(&directory);
        })?;
        Ok(Self {
            client,
            directory,
            over: false,
        })
    }

    /// Unmounts its file and ends it.
    pub(super) fn end(mut self) -> Result<(), LabError> {
        self.over = true;
        unmount(&self.directory)
    }
}

impl Drop for Engine {
    /// The client ends the server when it is dropped, behind this.
    fn drop(&mut self) {
        if !self.over {
            let _ = unmount(&self.directory);
        }
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        if self.permanent {
            // Waiting for it would not help.
            std::mem::forget(std::mem::take(&mut self.layers));
            std::mem::forget(std::mem::replace(&mut self.timer, CryptoTimer::None));
        }
        // Why it came to this is worth more.
        let _ = self.undo();
    }
}

/// The name of a cipher in cryptoloop; `None` if cryptoloop has no such mode or IVs.
fn cryptoloop_cipher(notation: &str) -> Option<&str> {
    let cipher = notation.strip_suffix("-plain")?;
    (cipher.ends_with("-cbc") || cipher.ends_with("-ecb")).then_some(cipher)
}

/// Loads what `subject` needs in `job`, if it is not there.
///
/// # Errors
/// Why it cannot be measured here.
pub(super) fn provide(job: &Job, subject: &Subject) -> Result<(), LabError> {
    if job.file_system == FileSystem::Jffs2 {
        if !job.kernel.is_lab() {
            return Err(LabError::invalid(
                "jffs2 can be measured only in the lab kernel, because block2mtd never releases a \
                 device",
                "Use system lab:dm-crypt or another lab: system.",
            ));
        }
        BLOCK2MTD.provide()?;
    }
    let on_device = !matches!(subject.encrypter, Encrypter::None)
        && !subject.encrypter.is_program()
        && subject.encrypter != Encrypter::Fscrypt;
    if job.file_system == FileSystem::Directory && on_device {
        return Err(not_root());
    }
    match subject.encrypter {
        Encrypter::None | Encrypter::BuiltinFuse => Ok(()),
        encrypter if encrypter.encrypts_files() => {
            let holds = match encrypter {
                Encrypter::Fscrypt => {
                    matches!(
                        job.file_system,
                        FileSystem::Ext4 | FileSystem::F2fs | FileSystem::Directory
                    )
                }
                _ => !job.file_system.is_made_of_a_tree(),
            };
            match holds {
                true => directory::provide(subject),
                false => Err(LabError::invalid(
                    format!(
                        "{} does not encrypt files of {}",
                        encrypter.name(),
                        job.file_system.name()
                    ),
                    "Use ext4.",
                )),
            }
        }
        Encrypter::DmCrypt => {
            if subject.has_tags() {
                DM_INTEGRITY.provide()?;
            }
            DM_CRYPT.provide()
        }
        _ => {
            let notation = subject.cipher.as_deref().unwrap_or_default();
            if cryptoloop_cipher(notation).is_none() || subject.sector_bytes != 512 {
                return Err(no_cryptoloop(notation));
            }
            CRYPTOLOOP.provide()
        }
    }
}

/// Counts the time that encryption takes.
pub(super) enum CryptoTimer {
    /// The time is not counted.
    None,
    /// The lab kernel counts it in a file, in ticks; the second value is the number of ticks per
    /// second.
    Kernel(PathBuf, f64),
    /// The engine's server counts it.
    Engine(Box<Engine>),
}

impl CryptoTimer {
    fn of_kernel(name: &str, tick_rate: Option<f64>) -> Self {
        let path = Path::new(TIMERS).join(name);
        match tick_rate.filter(|_| path.exists()) {
            Some(rate) => Self::Kernel(path, rate),
            None => Self::None,
        }
    }

    /// The current readings. Only a server's readings include CPU time, which no other counter
    /// covers.
    pub(super) fn read(&mut self) -> EngineTimes {
        match self {
            Self::None => EngineTimes::default(),
            Self::Kernel(path, rate) => {
                let text = fs::read_to_string(path).unwrap_or_default();
                // Transforms that were handed to other hardware are in no timer.
                let whole = counter(&text, "unfinished") == Some(0);
                let ticks = counter(&text, "ticks").filter(|_| whole);
                EngineTimes {
                    crypto: ticks.map(|ticks| ticks as f64 / *rate),
                    ..EngineTimes::default()
                }
            }
            Self::Engine(engine) => engine.client.times().unwrap_or_default(),
        }
    }
}

/// Ticks a second of the lab kernel's timers; nothing outside of it.
pub(super) fn tick_rate() -> Option<f64> {
    let read = || {
        let text = fs::read_to_string(Path::new(TIMERS).join("clock")).ok()?;
        Some((counter(&text, "ticks")?, counter(&text, "nanoseconds")?))
    };
    let begun = read()?;
    std::thread::sleep(CALIBRATION);
    let ended = read()?;
    let nanoseconds = ended.1.checked_sub(begun.1).filter(|passed| *passed > 0)?;
    Some(ended.0.checked_sub(begun.0)? as f64 / nanoseconds as f64 * 1e9)
}

/// A cipher that no kernel that runs here has.
fn no_cryptoloop(cipher: &str) -> LabError {
    LabError::invalid(
        format!("cryptoloop, removed in Linux 5.16, has no {cipher}"),
        "Choose a cipher in CBC or ECB mode with plain IVs, such as aes-cbc-plain.",
    )
}

/// Makes flash of `device`: what `mount` takes for it. It stays as long as the
/// kernel runs, so it is made once.
fn mtd(device: &Path, erase_bytes: u32) -> Result<PathBuf, LabError> {
    // As it calls what it makes of a device.
    let name = format!("block2mtd: {}", device.display());
    let parameter = Path::new("/sys/module/block2mtd/parameters/block2mtd");
    let line = format!("{},{erase_bytes}", device.display());
    let failed = |source| unusable("cannot write", parameter, source);
    fs::write(parameter, line).map_err(failed)?;
    for entry in fs::read_dir("/sys/class/mtd").map_err(failed)?.flatten() {
        let called = fs::read_to_string(entry.path().join("name")).unwrap_or_default();
        if called.trim() == name {
            return Ok(entry.file_name().into());
        }
    }
    Err(failed(io::ErrorKind::NotFound.into()))
}

/// The last line that a program said, or how it ended.
pub(super) fn said(output: &std::process::Output) -> String {
    let text = [&output.stderr, &output.stdout]
        .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
        .join("\n");
    let last = text.lines().map(str::trim).rfind(|line| !line.is_empty());
    last.map_or_else(|| output.status.to_string(), str::to_owned)
}

fn detached(device: LoopDevice) -> Result<(), LabError> {
    let path = device.path().to_owned();
    drop(device);
    gone(&path, || LoopDevice::backing_of(&path).is_none())
}

/// Closes a device-mapper device, and waits until it has gone.
pub(super) fn unmapped(device: MappedDevice) -> Result<(), LabError> {
    let node = device.path().to_owned();
    drop(device);
    gone(&node, || !node.exists())
}

/// Waits until something has gone by itself.
fn gone(what: &Path, is_gone: impl Fn() -> bool) -> Result<(), LabError> {
    let begun = Instant::now();
    while !is_gone() {
        if begun.elapsed() >= PATIENCE {
            return Err(not_removed(what, io::ErrorKind::ResourceBusy));
        }
        std::thread::sleep(RETRY);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cryptoloop_has_ciphers_without_iv_generators_only() {
        assert_eq!(cryptoloop_cipher("aes-cbc-plain"), Some("aes-cbc"));
        assert_eq!(
            cryptoloop_cipher("des3_ede-ecb-plain"),
            Some("des3_ede-ecb")
        );
        for other in [
            "aes-cbc-plain64",
            "aes-xts-plain",
            "aes-cbc-essiv:sha256",
            "aes",
        ] {
            assert_eq!(cryptoloop_cipher(other), None, "{other}");
        }
    }
}
