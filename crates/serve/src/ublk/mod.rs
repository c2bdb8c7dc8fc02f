//! An export as `/dev/ublkbN`, a disk of the kernel that this process serves.
//!
//! ```text
//! control node ─▶ add, set parameters, start … stop, delete
//! queue:  fetch ─▶ descriptor ─▶ lane of the export ─▶ answer and fetch again
//! ```
//!
//! Each queue has a thread, a ring and a lane. The kernel must be 6.5 or later: data are copied
//! through the character device, and no memory is shared but the descriptors. When the process
//! dies, the disk answers with errors and goes. Its character device stays until it is deleted.

mod layout;
mod request;
#[allow(unsafe_code)]
mod sys;

use crate::Export;
use block::BlockError;
use layout::MOST_DEPTH;
use std::fs::{File, OpenOptions};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;
use sys::{Control, Descriptors, Event, QueueRing};

/// Where the driver takes commands.
const CONTROL: &str = "/dev/ublk-control";

/// The prefix of the paths of disks.
const DISK: &str = "/dev/ublkb";

/// The interval between two checks for the end or for a new node, and the number of checks for a
/// new node.
const LOOK: Duration = Duration::from_millis(100);
const LOOKS_FOR_NODE: u32 = 50;

/// Bytes that a lane takes at a time.
const PIECE: usize = 256 << 10;

/// The driver's error for a command to a stopped device.
const ENODEV: i32 = 19;

/// Why there is no disk, or no more.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UblkError {
    /// The driver is not there.
    #[error("this kernel has no ublk driver: {CONTROL} does not exist")]
    NoDriver,
    /// The control node or the new device's node cannot be opened.
    #[error("cannot open {}", path.display())]
    Open {
        /// The node.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The driver cannot do what is needed.
    #[error("this kernel's ublk driver is too old: it cannot copy data on demand")]
    TooOld,
    /// The kernel refused a ring or a mapping.
    #[error("cannot set up a queue")]
    Queue(#[source] io::Error),
    /// The driver refused a command.
    #[error("the ublk driver refused to {command}")]
    Refused {
        /// The refused action, such as `add a device`.
        command: &'static str,
        /// Why not.
        source: io::Error,
    },
    /// Queues or depth are none, or too many.
    #[error("{queues} queues of depth {depth} are not possible")]
    Shape {
        /// Queues asked for.
        queues: u16,
        /// Requests in each.
        depth: u16,
    },
    /// The threads of the disk cannot be confined.
    #[error("cannot confine the disk's threads")]
    Confine(#[source] io::Error),
    /// The export's device has no queue for a thread.
    #[error(transparent)]
    Device(#[from] BlockError),
}

impl UblkError {
    /// The remedy, as one sentence.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::NoDriver => {
                "Load the driver (modprobe ublk_drv; Linux 6.5 or later), or serve over NBD or \
                 FUSE."
            }
            Self::Open { .. } => "Run as root, or serve over NBD or FUSE.",
            Self::TooOld => "Use Linux 6.5 or later, or serve over NBD or FUSE.",
            Self::Queue(_) => {
                "Allow io_uring (sysctl kernel.io_uring_disabled, container seccomp profile), or choose fewer queues."
            }
            Self::Refused { .. } | Self::Confine(_) => {
                "Look into the kernel log (dmesg), or serve over NBD or FUSE."
            }
            Self::Shape { .. } => "Choose 1 to 64 queues and a depth of 1 to 4096.",
            Self::Device(error) => error.remedy(),
        }
    }
}

/// Most queues that are offered.
const MOST_QUEUES: u16 = 64;

/// A disk that the driver has made, and forgets when this is dropped.
pub struct Disk {
    control: Control,
    number: u32,
    queues: u16,
    depth: u16,
}

/// Whether disks can be had here.
///
/// # Errors
/// [`UblkError::NoDriver`], [`UblkError::Open`], [`UblkError::TooOld`] and
/// [`UblkError::Queue`].
pub fn check() -> Result<(), UblkError> {
    Disk::any().map(drop)
}

/// Forgets the disk at `path`, if its server is dead.
///
/// # Errors
/// [`UblkError::Open`], [`UblkError::Refused`] and [`UblkError::Queue`].
pub fn forget(path: &Path) -> Result<(), UblkError> {
    let number = path.to_str().and_then(|path| path.strip_prefix(DISK));
    let Some(number) = number.and_then(|number| number.parse().ok()) else {
        return Ok(());
    };
    if !character_device(number).exists() {
        return Ok(());
    }
    let mut disk = Disk::any()?;
    let mut information = [0; 64];
    let argument = layout::Control {
        device: number,
        data: 0,
    };
    disk.control
        .command(layout::GET_INFORMATION, &argument, &mut information, 64)
        .map_err(|source| UblkError::Refused {
            command: "describe the device",
            source,
        })?;
    if layout::is_dead(&information) {
        // Dropped, it is forgotten.
        disk.number = number;
    }
    Ok(())
}

impl Disk {
    /// Makes the driver create a disk for `export`, with this many `queues` of this `depth`; the
    /// driver may give fewer. The disk is invisible until it is [served](Self::serve).
    ///
    /// # Errors
    /// Any of [`UblkError`] but `Device`.
    pub fn new(export: &Export, queues: u16, depth: u16) -> Result<Self, UblkError> {
        if !(1..=MOST_QUEUES).contains(&queues) || !(1..=MOST_DEPTH).contains(&depth) {
            return Err(UblkError::Shape { queues, depth });
        }
        let mut disk = Self::any()?;
        let mut information = layout::device_information(queues, depth);
        disk.order("add a device", layout::ADD_DEVICE, 0, &mut information)?;
        (disk.queues, disk.depth, disk.number) = layout::made_device(&information);
        let parameters = &mut layout::parameters(export);
        disk.order("set parameters", layout::SET_PARAMETERS, 0, parameters)?;
        Ok(disk)
    }

    /// Where the disk is, when it is served.
    pub fn path(&self) -> PathBuf {
        format!("{DISK}{}", self.number).into()
    }

    /// The driver, which has what is needed, and no disk yet.
    fn any() -> Result<Self, UblkError> {
        let node = match open(Path::new(CONTROL)) {
            Err(source) if source.kind() == io::ErrorKind::NotFound => {
                return Err(UblkError::NoDriver);
            }
            Err(source) => {
                let path = CONTROL.into();
                return Err(UblkError::Open { path, source });
            }
            Ok(node) => node,
        };
        let mut disk = Self {
            control: Control::new(node).map_err(UblkError::Queue)?,
            number: layout::ANY_DEVICE,
            queues: 0,
            depth: 0,
        };
        let any = layout::Control {
            device: layout::ANY_DEVICE,
            data: 0,
        };
        let mut features = [0; 64];
        let asked = disk
            .control
            .command(layout::GET_FEATURES, &any, &mut features, 8);
        let features = features.first_chunk().copied().unwrap_or_default();
        // A driver that does not know the question is as old.
        match asked.is_err() || u64::from_ne_bytes(features) & layout::FEATURES != layout::FEATURES
        {
            true => Err(UblkError::TooOld),
            false => Ok(disk),
        }
    }

    fn order(
        &mut self,
        command: &'static str,
        operation: u32,
        data: u64,
        buffer: &mut [u8; 64],
    ) -> Result<(), UblkError> {
        let argument = layout::Control {
            device: self.number,
            data,
        };
        self.control
            .command(operation, &argument, buffer, 64)
            .map_err(|source| UblkError::Refused { command, source })
    }

    /// Serves `export`, for which this disk was made, until `stop` is true; `stop` is checked every
    /// 100 ms. `confine` runs on the thread that starts those of the queues, before it does. `ready`
    /// is called when the disk is there.
    ///
    /// If a disk is stopped while it is in use, the requests of its users fail: unmount it first.
    /// In the end the device is flushed.
    ///
    /// # Errors
    /// [`UblkError`]; the disk is gone then.
    pub fn serve(
        mut self,
        export: &Export,
        stop: &AtomicBool,
        confine: impl FnOnce() -> io::Result<()>,
        ready: impl FnOnce(),
    ) -> Result<(), UblkError> {
        let node = self.node()?;
        confine().map_err(UblkError::Confine)?;
        let (tell, heard) = mpsc::channel();
        std::thread::scope(|scope| {
            let mut threads = Vec::new();
            for number in 0..self.queues {
                let (node, depth, tell) = (&node, self.depth, tell.clone());
                let ready = Ready(tell);
                threads.push(scope.spawn(move || {
                    let queue = ServedQueue::new(node, number, depth);
                    let queue = queue.map_err(UblkError::Queue);
                    queue.and_then(|queue| queue.serve(export, || ready.tell()))
                }));
            }
            let all = (0..self.queues).all(|_| heard.recv() == Ok(true));
            let started = match all {
                true => {
                    let own = u64::from(std::process::id());
                    self.order("start the device", layout::START_DEVICE, own, &mut [0; 64])
                }
                false => Ok(()),
            };
            // The threads end when the disk is stopped, and not before: not even
            // a panic may pass that by.
            let mut told = Ok(());
            if all && started.is_ok() {
                told = catch_unwind(AssertUnwindSafe(ready));
                while told.is_ok()
                    && !stop.load(Ordering::Relaxed)
                    && !threads.iter().any(|thread| thread.is_finished())
                {
                    std::thread::sleep(LOOK);
                }
            }
            let stopped = self.order("stop the device", layout::STOP_DEVICE, 0, &mut [0; 64]);
            let served = threads
                .into_iter()
                .map(|thread| match thread.join() {
                    Ok(served) => served,
                    Err(panic) => resume_unwind(panic),
                })
                .fold(Ok(()), Result::and);
            if let Err(panic) = told {
                resume_unwind(panic);
            }
            let flushed = export.flush().map_err(UblkError::Device);
            started.and(served).and(stopped).and(flushed)
        })
    }

    /// The character device, once it is there.
    fn node(&self) -> Result<File, UblkError> {
        let path = character_device(self.number);
        let mut looks = LOOKS_FOR_NODE;
        loop {
            match open(&path) {
                Ok(node) => return Ok(node),
                Err(source) if looks == 0 => return Err(UblkError::Open { path, source }),
                Err(_) => std::thread::sleep(LOOK),
            }
            looks -= 1;
        }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if self.number != layout::ANY_DEVICE {
            // No caller is left to report to, and an earlier error is the one that counts.
            let _ = self.order("delete the device", layout::DELETE_DEVICE, 0, &mut [0; 64]);
        }
    }
}

/// Tells whether a queue takes requests. It tells so in any case: a thread that fails, even by a
/// panic, tells that it does not, while those of the other queues go on.
struct Ready(mpsc::Sender<bool>);

impl Ready {
    fn tell(&self) -> bool {
        self.0.send(true).is_ok()
    }
}

impl Drop for Ready {
    fn drop(&mut self) {
        // If nothing was told yet, the disk is not started. Later it is not read.
        let _ = self.0.send(false);
    }
}

/// The device through which the server of a disk copies data.
fn character_device(number: u32) -> PathBuf {
    format!("/dev/ublkc{number}").into()
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open(path)
}

/// One queue, in the thread that serves it.
struct ServedQueue<'a> {
    node: &'a File,
    number: u16,
    depth: u16,
    descriptors: Descriptors,
    ring: QueueRing,
}

impl<'a> ServedQueue<'a> {
    fn new(node: &'a File, number: u16, depth: u16) -> io::Result<Self> {
        Ok(Self {
            node,
            number,
            depth,
            descriptors: Descriptors::map(node, number, depth)?,
            ring: QueueRing::new(depth)?,
        })
    }

    /// Asks for requests under every tag, tells so, and serves them until the
    /// driver gives all tags back.
    fn serve(mut self, export: &Export, asked: impl FnOnce() -> bool) -> Result<(), UblkError> {
        let mut lane = export.lane(PIECE)?;
        for tag in 0..self.depth {
            let nothing = Event { tag, result: 0 };
            self.ring
                .push(self.node, layout::FETCH, self.number, &nothing);
        }
        self.ring.wait(0).map_err(UblkError::Queue)?;
        if !asked() {
            return Ok(());
        }
        let mut given_back = 0;
        while given_back < self.depth {
            self.ring.wait(1).map_err(UblkError::Queue)?;
            while let Some(Event { tag, result }) = self.ring.pop() {
                match result {
                    0 => {}
                    aborted if aborted == -ENODEV => {
                        given_back += 1;
                        continue;
                    }
                    error => {
                        return Err(UblkError::Refused {
                            command: "fetch a request",
                            source: io::Error::from_raw_os_error(-error),
                        });
                    }
                }
                let at = layout::data_at(self.number, tag);
                let request = self.descriptors.get(tag);
                let result = request.serve(&mut lane, self.node, at);
                let answer = Event { tag, result };
                self.ring
                    .push(self.node, layout::COMMIT_AND_FETCH, self.number, &answer);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Access;
    use block::layer::{Effect, Fault, Rule, Trigger};
    use block::model::Model;
    use block::{BlockDevice, ByteRange, FileDevice, FileOptions, RamDevice};
    use std::sync::Arc;

    fn export() -> Export {
        Export::new(Arc::new(RamDevice::new(1 << 20)), Access::Write)
    }

    #[test]
    fn shapes_that_cannot_be_had_are_refused() {
        for (queues, depth) in [(0, 1), (1, 0), (65, 1), (1, 4097), (u16::MAX, u16::MAX)] {
            let refused = Disk::new(&export(), queues, depth);
            assert!(matches!(refused, Err(UblkError::Shape { .. })));
        }
    }

    #[test]
    fn an_absent_driver_is_two_lines() {
        if Path::new(CONTROL).exists() {
            println!("skipped: {CONTROL} exists");
            return;
        }
        let Err(error) = Disk::new(&export(), 1, 1) else {
            panic!("a disk without a driver");
        };
        assert_eq!(
            error.to_string(),
            "this kernel has no ublk driver: /dev/ublk-control does not exist"
        );
        assert_eq!(
            error.remedy(),
            "Load the driver (modprobe ublk_drv; Linux 6.5 or later), or serve over NBD or FUSE."
        );
    }

    /// Serves `export` while `work` has its disk; then the disk is gone.
    fn with_disk(export: &Export, queues: u16, work: impl FnOnce(&Path)) {
        let stop = AtomicBool::new(false);
        let (tell, heard) = mpsc::channel();
        let disk = Disk::new(export, queues, 16).unwrap();
        let path = disk.path();
        std::thread::scope(|scope| {
            let server = scope.spawn(|| {
                disk.serve(
                    export,
                    &stop,
                    || Ok(()),
                    move || {
                        tell.send(()).expect("somebody waits for the disk");
                    },
                )
            });
            heard.recv().expect("the disk comes");
            // The server must end even if the work does not succeed.
            let worked = catch_unwind(AssertUnwindSafe(|| work(&path)));
            stop.store(true, Ordering::Relaxed);
            server.join().unwrap().unwrap();
            worked.unwrap();
            assert!(!path.exists());
        });
    }

    fn is_absent() -> bool {
        let absent = !Path::new(CONTROL).exists();
        if absent {
            println!("skipped: {CONTROL} does not exist");
        }
        absent
    }

    fn disk(path: &Path, write: bool) -> FileDevice {
        let options = FileOptions {
            write,
            ..FileOptions::default()
        };
        FileDevice::open(path, &options).unwrap()
    }

    #[test]
    fn a_disk_is_the_device() {
        if is_absent() {
            return;
        }
        for (seed, queues) in [(81, 1), (82, 2)] {
            let device = Arc::new(RamDevice::new(4 << 20));
            let export = Export::new(device.clone(), Access::Write);
            with_disk(&export, queues, |path| {
                let disk = disk(path, true);
                assert_eq!(disk.geometry().size, device.geometry().size);
                assert!(disk.geometry().discard_granularity.is_some());
                Model::new(seed).run(&disk);
                let mut both = [vec![0; 4 << 20], vec![0; 4 << 20]];
                disk.read_at(0, &mut both[0]).unwrap();
                device.read_at(0, &mut both[1]).unwrap();
                assert!(both[0] == both[1]);
            });
        }
    }

    #[test]
    fn a_panic_of_who_waits_ends_the_disk() {
        if is_absent() {
            return;
        }
        let export = export();
        let disk = Disk::new(&export, 2, 16).unwrap();
        let path = disk.path();
        let stop = AtomicBool::new(false);
        let served = catch_unwind(AssertUnwindSafe(|| {
            disk.serve(&export, &stop, || Ok(()), || panic!("nobody waits"))
        }));
        assert!(served.is_err());
        assert!(!path.exists());
        assert!(!character_device(path.to_str().unwrap()[DISK.len()..].parse().unwrap()).exists());
    }

    #[test]
    fn only_the_disks_of_the_dead_are_forgotten() {
        if is_absent() {
            return;
        }
        forget(Path::new("/dev/ublkb1000000")).unwrap();
        forget(Path::new("/dev/null")).unwrap();
        with_disk(&export(), 1, |path| {
            forget(path).unwrap();
            disk(path, false).read_at(0, &mut [0; 512]).unwrap();
        });
        let made = Disk::new(&export(), 1, 16).unwrap();
        let number = made.number;
        // As when its process is killed.
        std::mem::forget(made);
        assert!(character_device(number).exists());
        forget(Path::new(&format!("{DISK}{number}"))).unwrap();
        assert!(!character_device(number).exists());
    }

    #[test]
    fn errors_below_reach_who_uses_the_disk() {
        if is_absent() {
            return;
        }
        let bad = Rule {
            operation: None,
            trigger: Trigger::Touching(ByteRange::new(1 << 19, 512)),
            effect: Effect::Fail(5),
        };
        let device = Arc::new(Fault::new(RamDevice::new(1 << 20), [bad]));
        let export = Export::new(device, Access::Write);
        with_disk(&export, 1, |path| {
            let disk = disk(path, true);
            let mut sector = [0; 512];
            assert_eq!(disk.read_at(1 << 19, &mut sector).unwrap_err().errno(), 5);
            assert_eq!(disk.write_at(1 << 19, &sector).unwrap_err().errno(), 5);
            disk.write_at(0, &sector).unwrap();
        });
    }

    #[test]
    fn a_disk_to_be_read_cannot_be_written() {
        if is_absent() {
            return;
        }
        let export = Export::new(Arc::new(RamDevice::new(1 << 20)), Access::Read);
        with_disk(&export, 1, |path| {
            disk(path, false).read_at(0, &mut [0; 512]).unwrap();
            let write = FileOptions {
                write: true,
                ..FileOptions::default()
            };
            let written = FileDevice::open(path, &write).and_then(|disk| {
                disk.write_at(0, &[1; 512])?;
                disk.flush()
            });
            assert!(written.is_err());
        });
        let mut lane = export.lane(512).unwrap();
        assert_eq!(lane.read(0, 512).unwrap(), [0; 512]);
    }

    /// A queue that fails is heard of while the others go on.
    #[test]
    fn a_queue_that_fails_tells_so() {
        for panics in [false, true] {
            let (tell, heard) = mpsc::channel();
            let works = Ready(tell.clone());
            assert!(works.tell());
            let fails = Ready(tell);
            let failed = std::thread::spawn(move || {
                let _fails = fails;
                assert!(!panics, "as a queue may");
            });
            assert_eq!(failed.join().is_err(), panics);
            assert_eq!((heard.recv(), heard.recv()), (Ok(true), Ok(false)));
        }
    }
}
