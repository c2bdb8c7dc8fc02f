//! The built-in engine as a file for a loop device: `builtin-fuse` under a file system.
//!
//! A separate process serves the file, because a process that mounts a file system waits in the
//! kernel for it. [`serve()`] is that process; [`EngineClient`] starts it and asks it for its times.
//! It ends when its standard input does.

use crate::clock::Clock;
use crate::error::LabError;
use crate::probe::CpuTimes;
use crate::record::Moved;
use ::serve::fuse::{self, FuseMount, Visibility};
use ::serve::{Access, Export};
use block::layer::Count;
use block::{
    BlockDevice, BlockError, ByteRange, Completion, FileDevice, FileOptions, Geometry, Meter,
    OperationKind, Part, Queue, QueueOptions, Request, Wait,
};
use cipher::{IvSector, Key, SectorLayout, SectorSize};
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use volume::{CryptDevice, Mapping};

/// The name of the served file.
const FILE: &str = "volume";

/// The hidden subcommand that serves.
pub const SUBCOMMAND: &str = "engine-file";

/// The maximum number of cores that are worth encrypting on for one file.
const MOST_THREADS: usize = 16;

const START: &str = "Start the program from the folder in which it is installed.";

/// A server that could not be started, or spoken to.
fn silent(error: io::Error) -> LabError {
    LabError::failed("the engine's server does not answer", START).because(error)
}

/// A request that cannot be parsed.
fn unknown(error: serde_json::Error) -> LabError {
    let what = "the engine's server received an unknown request";
    LabError::failed(what, START).because(error)
}

/// The key of a system under test, which all layers get in their own way.
#[derive(Debug)]
pub struct VolumeKey(Key);

impl VolumeKey {
    /// A random key.
    ///
    /// # Errors
    /// [`LabError`] if the system has no random numbers.
    pub fn random(bits: u32) -> Result<Self, LabError> {
        Ok(Self(Key::random(bits as usize / 8)?))
    }

    /// Writes the key as hexadecimal digits; `-` if it is empty.
    pub fn write_hex(&self, to: &mut impl Write) -> io::Result<()> {
        if self.0.is_empty() {
            return to.write_all(b"-");
        }
        self.0
            .as_bytes()
            .iter()
            .try_for_each(|byte| write!(to, "{byte:02x}"))
    }

    /// Lends the bytes.
    pub fn with_bytes<T>(&self, lend: impl FnOnce(&[u8]) -> T) -> T {
        lend(self.0.as_bytes())
    }

    fn read_hex(digits: &str) -> Option<Self> {
        let length = digits.len() / 2;
        let key = Key::filled(length, |bytes| {
            for (byte, pair) in bytes.iter_mut().zip(digits.as_bytes().chunks(2)) {
                let pair = std::str::from_utf8(pair).map_err(|_| ())?;
                *byte = u8::from_str_radix(pair, 16).map_err(|_| ())?;
            }
            Ok::<(), ()>(())
        });
        key.ok().map(Self)
    }
}

/// A request to a server. The key follows on a line of its own.
#[derive(Debug, Serialize, Deserialize)]
struct Wanted {
    backing: PathBuf,
    directory: PathBuf,
    cipher: String,
    sector_bytes: u32,
}

/// The server's report that the file is there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineBackend {
    /// The backend with which the server encrypts, such as `vaes512`.
    pub backend: String,
    /// Whether the backend is constant-time.
    pub constant_time: bool,
}

/// Times of a server since its start, seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EngineTimes {
    /// Encrypting and decrypting, all threads.
    pub crypto: Option<f64>,
    /// User CPU time.
    pub user: Option<f64>,
    /// System CPU time.
    pub sys: Option<f64>,
    /// Bytes and requests that the server was asked to read and to write.
    pub moved: Option<Moved>,
}

/// A server in a process of its own; it ends when this is dropped.
#[derive(Debug)]
pub struct EngineClient {
    child: Child,
    ask: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    directory: PathBuf,
    backend: Option<EngineBackend>,
}

impl EngineClient {
    /// Lets `program`, which is this one, encrypt `backing` as a file in `directory`. If `apart`,
    /// it gets a mount namespace of its own, which shares mounts with this one if this one allows
    /// it.
    ///
    /// # Errors
    /// [`LabError`], with the reason if the server gives one.
    pub fn start(
        program: &Path,
        apart: bool,
        backing: &Path,
        directory: &Path,
        cipher: &str,
        sector_bytes: u32,
        key: &VolumeKey,
    ) -> Result<Self, LabError> {
        let wanted = Wanted {
            backing: backing.to_owned(),
            directory: directory.to_owned(),
            cipher: cipher.to_owned(),
            sector_bytes,
        };
        let mut command = match apart {
            false => block::program::command(program),
            true => {
                let mut command = block::program::command("unshare");
                command.args(["--mount", "--propagation", "unchanged", "--"]);
                command.arg(program);
                command
            }
        };
        let mut child = command
            .arg(SUBCOMMAND)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(silent)?;
        let ask = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().expect("it was asked for"));
        let mut client = Self {
            child,
            ask,
            answers,
            directory: directory.to_owned(),
            backend: None,
        };
        let request = serde_json::to_string(&wanted).map_err(unknown)?;
        let asked = client.say(|ask| {
            writeln!(ask, "{request}")?;
            key.write_hex(ask)?;
            writeln!(ask)
        });
        asked.map_err(silent)?;
        let answer = client.hear().map_err(silent)?;
        match serde_json::from_str(&answer) {
            Ok(backend) => client.backend = backend,
            Err(_) => {
                return Err(LabError::failed(
                    format!("the engine cannot serve: {answer}"),
                    "Check /dev/fuse with `cryptmark doctor`.",
                ));
            }
        }
        Ok(client)
    }

    /// The backend with which the server encrypts; `None` before it serves.
    pub fn backend(&self) -> Option<&EngineBackend> {
        self.backend.as_ref()
    }

    /// The file that it serves.
    pub fn file(&self) -> PathBuf {
        self.directory.join(FILE)
    }

    /// The server's times so far; `None` if it has ended.
    pub fn times(&mut self) -> Option<EngineTimes> {
        self.say(|ask| writeln!(ask, "times")).ok()?;
        serde_json::from_str(&self.hear().ok()?).ok()
    }

    fn say(&mut self, words: impl FnOnce(&mut ChildStdin) -> io::Result<()>) -> io::Result<()> {
        let ask = self.ask.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        words(ask)?;
        ask.flush()
    }

    fn hear(&mut self) -> io::Result<String> {
        let mut line = String::new();
        match self.answers.read_line(&mut line)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(line.trim_end().to_owned()),
        }
    }
}

impl Drop for EngineClient {
    fn drop(&mut self) {
        self.ask = None;
        // It ends when it hears nothing more.
        let _ = self.child.wait();
    }
}

/// Serves the request on standard input until that ends. The first line on standard output is an
/// [`EngineBackend`], or the reason for not serving.
///
/// # Errors
/// [`LabError`] if nothing is served.
pub fn serve() -> Result<(), LabError> {
    let mut lines = io::stdin().lock();
    let mut out = io::stdout().lock();
    let crypto = Arc::new(AtomicU64::new(0));
    let mounted = begin(&mut lines, &crypto);
    let told = match &mounted {
        Ok((.., backend)) => writeln!(out, "{}", serde_json::to_string(backend).map_err(unknown)?),
        Err(error) => writeln!(out, "{}", in_one_line(error)),
    };
    let (_mounted, volume, _) = mounted?;
    told.and_then(|()| out.flush()).map_err(silent)?;
    let mut line = String::new();
    while lines.read_line(&mut line).is_ok_and(|length| length > 0) {
        line.clear();
        let cpu = CpuTimes::precise();
        let times = EngineTimes {
            crypto: Some(Clock::get().seconds(crypto.load(Ordering::Relaxed))),
            user: cpu.map(|cpu| cpu.user.as_secs_f64()),
            sys: cpu.map(|cpu| cpu.sys.as_secs_f64()),
            moved: Some(moved(&volume)),
        };
        let text = serde_json::to_string(&times).map_err(unknown)?;
        if writeln!(out, "{text}").and_then(|()| out.flush()).is_err() {
            break;
        }
    }
    Ok(())
}

/// The bytes and requests that `volume` was asked for since it was opened.
fn moved(volume: &Volume) -> Moved {
    let (read, written) = (
        volume.of(OperationKind::Read),
        volume.of(OperationKind::Write),
    );
    Moved {
        read_bytes: read.bytes,
        written_bytes: written.bytes,
        reads: read.operations,
        writes: written.operations,
    }
}

/// An error with its causes.
fn in_one_line(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let _ = write!(text, ": {cause}");
        source = cause.source();
    }
    text.replace('\n', " ")
}

fn begin(
    lines: &mut impl BufRead,
    crypto: &Arc<AtomicU64>,
) -> Result<(FuseMount, Arc<Volume>, EngineBackend), LabError> {
    let mut line = String::new();
    lines.read_line(&mut line).map_err(silent)?;
    let wanted: Wanted = serde_json::from_str(&line).map_err(unknown)?;
    line.clear();
    lines.read_line(&mut line).map_err(silent)?;
    let key = VolumeKey::read_hex(line.trim_end());
    zeroize::Zeroize::zeroize(&mut line);
    let VolumeKey(key) =
        key.ok_or_else(|| silent(io::Error::new(io::ErrorKind::InvalidData, "no key")))?;
    // The process that asked for it holds it.
    let storage = FileDevice::open(
        &wanted.backing,
        &FileOptions {
            write: true,
            direct: true,
            engine: None,
            hold: block::Hold::Lent,
        },
    )?;
    let size = SectorSize::from_bytes(wanted.sector_bytes).unwrap_or(SectorSize::B512);
    let data = ByteRange::new(0, storage.geometry().size);
    let mapping = Mapping {
        spec: wanted.cipher.parse()?,
        key,
        layout: SectorLayout {
            size,
            large_iv: false,
        },
        data,
        first: IvSector::new(0),
        backend: None,
        sharing: None,
        allow_discards: false,
        holes: false,
    };
    let device = CryptDevice::new(storage, mapping)?;
    let backend = EngineBackend {
        backend: device.cipher().backend().to_string(),
        constant_time: device.cipher().constant_time(),
    };
    let device = Arc::new(Count::new(Metered {
        device,
        crypto: Arc::clone(crypto),
    }));
    // The clock is calibrated before the first request for times.
    Clock::get();
    let threads = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let export = Export::new(Arc::clone(&device) as Arc<dyn BlockDevice>, Access::Write);
    let threads = threads.min(MOST_THREADS);
    let place = fuse::Place::In {
        directory: wanted.directory.clone(),
        name: FILE.into(),
    };
    let mounted = FuseMount::new(Arc::new(export), &place, threads, Visibility::Owner)?;
    Ok((mounted, device, backend))
}

/// The volume that a server serves.
type Volume = Count<Metered<CryptDevice<FileDevice>>>;

/// A device whose queues add the time of encryption to one counter, in ticks.
struct Metered<D> {
    device: D,
    crypto: Arc<AtomicU64>,
}

impl<D: BlockDevice> BlockDevice for Metered<D> {
    fn geometry(&self) -> Geometry {
        self.device.geometry()
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), BlockError> {
        self.device.read_at(offset, into)
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<(), BlockError> {
        self.device.write_at(offset, data)
    }

    fn flush(&self) -> Result<(), BlockError> {
        self.device.flush()
    }

    fn discard(&self, range: ByteRange) -> Result<(), BlockError> {
        self.device.discard(range)
    }

    fn queue(&self, options: QueueOptions) -> Result<Box<dyn Queue + '_>, BlockError> {
        let meter = Rc::new(Meter::new(Clock::get().reader()));
        let options = QueueOptions {
            meter: Rc::clone(&meter),
            ..options
        };
        Ok(Box::new(MeteredQueue {
            below: self.device.queue(options)?,
            meter,
            told: 0,
            crypto: &self.crypto,
        }))
    }
}

struct MeteredQueue<'a> {
    below: Box<dyn Queue + 'a>,
    meter: Rc<Meter>,
    /// The part of the meter's time that is already in the counter, in the meter's unit.
    told: u64,
    crypto: &'a AtomicU64,
}

impl Queue for MeteredQueue<'_> {
    fn submit(&mut self, request: Request) {
        self.below.submit(request);
    }

    fn reap(&mut self, wait: Wait) -> Option<Completion> {
        let completion = self.below.reap(wait);
        let spent = self.meter.spent(Part::Crypto);
        self.crypto.fetch_add(spent - self.told, Ordering::Relaxed);
        self.told = spent;
        completion
    }

    fn in_flight(&self) -> u32 {
        self.below.in_flight()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_pass_as_digits_and_nothing_else_is_one() {
        let key = VolumeKey::random(256).unwrap();
        let mut digits = Vec::new();
        key.write_hex(&mut digits).unwrap();
        assert_eq!(digits.len(), 64);
        let again = VolumeKey::read_hex(std::str::from_utf8(&digits).unwrap()).unwrap();
        key.with_bytes(|one| again.with_bytes(|other| assert_eq!(one, other)));
        assert!(VolumeKey::read_hex("0g").is_none());
        assert!(format!("{key:?}").find("32 bytes").is_some());
    }

    #[test]
    fn the_meter_counts_what_encryption_takes() {
        let crypto = Arc::new(AtomicU64::new(0));
        let spec: cipher::CipherSpec = "serpent-cbc-plain".parse().unwrap();
        let mapping = Mapping {
            spec,
            key: Key::random(32).unwrap(),
            layout: SectorLayout {
                size: SectorSize::B512,
                large_iv: false,
            },
            data: ByteRange::new(0, 1 << 20),
            first: IvSector::new(0),
            backend: None,
            sharing: None,
            allow_discards: false,
            holes: false,
        };
        let device = Metered {
            device: CryptDevice::new(block::RamDevice::new(1 << 20), mapping).unwrap(),
            crypto: Arc::clone(&crypto),
        };
        let mut queue = device.queue(QueueOptions::new(1)).unwrap();
        let mut last = 0;
        for operation in [block::Operation::Write, block::Operation::Read] {
            let buffer = block::AlignedBuffer::new(1 << 20);
            queue.submit(Request::new(operation, 0, buffer, 0));
            queue.reap(Wait::Yes).unwrap().result.unwrap();
            let now = crypto.load(Ordering::Relaxed);
            assert!(now > last);
            last = now;
        }
        assert!(queue.reap(Wait::No).is_none());
        assert_eq!(crypto.load(Ordering::Relaxed), last);
    }
}
