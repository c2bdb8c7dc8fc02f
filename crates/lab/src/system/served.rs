//! Programs that serve encrypted volumes: this one's own NBD server and its file
//! by FUSE, qemu-nbd with its LUKS driver, nbdkit with its LUKS filter, and
//! VeraCrypt with its file by FUSE.
//!
//! Each serves the extent on a socket of its own, or as a file, and this process
//! is its client. Ours runs on threads of this process; the others are programs that
//! reach the extent as a file, and keep it in a volume with 512-byte sectors: LUKS1,
//! or VeraCrypt's own.

use super::format::PASSPHRASE;
use super::{Encryption, Program, Reach, Storage, SystemId, Target, dm_crypt, veracrypt};
use crate::error::LabError;
use ::serve::fuse::{self, FuseMount, Unmount, Visibility, unmount};
use ::serve::nbd::{End, Named, NbdDevice, Place, ServeError, Server};
use ::serve::{Access, Export};
use block::{BlockDevice, Engine, FileDevice, FileOptions, confine};
use cipher::{CipherSpec, Key, SectorSize};
use rustix::fs::{AtFlags, CWD};
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use volume::{Hash, luks1};

/// How long a program may take to begin to serve.
const PATIENCE: Duration = Duration::from_secs(20);
/// The volume's key is not what is measured.
const ITERATIONS: u32 = 1000;

/// An extent without a path by which a program could reach it.
pub(super) fn no_path(program: &str) -> LabError {
    LabError::failed(
        format!("{program} works only on files and disks"),
        "Give `at` a directory, a file or a disk.",
    )
}

/// A program that could not be run, or spoken to.
pub(super) fn not_run(program: &str, source: io::Error) -> LabError {
    let what = format!("{program} cannot be run");
    LabError::failed(what, "Run the program by hand to see its messages.").because(source)
}

/// A program that would not serve a cipher, and the first line of its answer.
pub(super) fn refused(program: &str, cipher: CipherSpec, said: &str) -> LabError {
    LabError::failed(
        format!("{program} does not serve {cipher}: {said}"),
        "Choose a cipher that the program supports.",
    )
}

/// The command that serves the LUKS1 volume at `path` on the socket `nbd` in `folder`. The
/// passphrase is in the file `line` there.
type Serve = fn(folder: &Path, path: &Path, direct: bool) -> Command;

fn qemu_nbd(folder: &Path, path: &Path, direct: bool) -> Command {
    let mut command = block::program::command("qemu-nbd");
    let cache = if direct { "none" } else { "writeback" };
    command
        .args(["--persistent", "--shared=64", "--cache", cache])
        .arg(format!("--socket={}", folder.join("nbd").display()))
        .arg("--object")
        .arg(format!(
            "secret,id=line,file={}",
            folder.join("line").display()
        ))
        .arg("--image-opts")
        .arg(format!(
            // This program holds it already.
            "driver=luks,key-secret=line,file.locking=off,file.filename={}",
            path.display()
        ));
    command
}

/// It has no way around the page cache.
fn nbdkit(folder: &Path, path: &Path, _: bool) -> Command {
    let mut command = block::program::command("nbdkit");
    command
        .args(["--foreground", "--exit-with-parent", "--filter=luks"])
        .arg(format!("--unix={}", folder.join("nbd").display()))
        .arg("file")
        .arg(format!("file={}", path.display()))
        .arg(format!("passphrase=+{}", folder.join("line").display()));
    command
}

/// A name that an extent has while a program serves it.
pub(super) struct Name {
    path: PathBuf,
    lent: bool,
}

impl Name {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn of(reach: &Reach) -> io::Result<Self> {
        match reach {
            Reach::Named(path) => Ok(Self {
                path: path.clone(),
                lent: false,
            }),
            Reach::Nameless { open, directory } => {
                let path = directory.join(format!(".cryptmark-{}", std::process::id()));
                let follow = AtFlags::SYMLINK_FOLLOW;
                match rustix::fs::linkat(CWD, open, CWD, &path, follow) {
                    Ok(()) => Ok(Self { path, lent: true }),
                    // Another target has lent it: it can be given only once.
                    Err(_) if is_same(open, &path) => Ok(Self { path, lent: false }),
                    Err(error) => Err(error.into()),
                }
            }
        }
    }
}

fn is_same(one: &Path, other: &Path) -> bool {
    let inode = |path: &Path| fs::metadata(path).map(|found| (found.dev(), found.ino()));
    matches!((inode(one), inode(other)), (Ok(one), Ok(other)) if one == other)
}

impl Drop for Name {
    fn drop(&mut self) {
        if self.lent {
            // Another process may already have removed the file.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The built-in engine behind the built-in NBD server, over all of `storage`. If the storage
/// answers at once, as memory does, one thread handles a client's requests.
///
/// # Errors
/// [`LabError`].
pub fn builtin(
    storage: Arc<dyn BlockDevice>,
    encryption: Encryption,
    at_once: bool,
) -> Result<Target, LabError> {
    let inner = Target::builtin(storage, encryption)?;
    let folder = folder("cryptmark")?;
    let place = Place::Unix(folder.path().join("nbd"));
    let export = Named {
        name: String::new(),
        description: String::new(),
        export: Arc::new(Export::new(inner.device.into(), Access::Write)),
    };
    let threads = if at_once { 1 } else { 16 };
    let server = Server::listen(place.clone(), vec![export], threads)?;
    let guard = Own {
        end: server.end(),
        thread: Some(std::thread::spawn(move || server.run())),
        _folder: folder,
    };
    Ok(Target {
        system: SystemId::BuiltinNbd,
        device: Box::new(NbdDevice::connect(&place, "")?),
        _server: Some(Box::new(guard)),
        data_offset: 0,
        ..inner
    })
}

/// The built-in engine behind a file of its own, by FUSE, over all of
/// `storage`; `at_once` as for [`builtin`].
///
/// Nothing stays behind, however the process ends: when the file is open, its
/// mount is taken out of sight, and lives for as long as it is open.
///
/// # Errors
/// [`LabError`].
pub fn builtin_file(
    storage: Arc<dyn BlockDevice>,
    encryption: Encryption,
    at_once: bool,
) -> Result<Target, LabError> {
    let inner = Target::builtin(storage, encryption)?;
    let folder = folder("cryptmark")?;
    let place = fuse::Place::In {
        directory: folder.path().to_owned(),
        name: "volume".into(),
    };
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let threads = cores.max(if at_once { 1 } else { 16 });
    let export = Arc::new(Export::new(inner.device.into(), Access::Write));
    let mount = FuseMount::new(export, &place, threads, Visibility::Owner)?;
    let options = FileOptions {
        write: true,
        direct: true,
        ..FileOptions::default()
    };
    let opened = FileDevice::open(&folder.path().join("volume"), &options);
    unmount(folder.path(), Unmount::Detached)?;
    Ok(Target {
        system: SystemId::BuiltinFuse,
        device: Box::new(opened?),
        _server: Some(Box::new(OwnFile(mount))),
        data_offset: 0,
        ..inner
    })
}

impl Storage {
    /// A program's server over the extent.
    ///
    /// # Errors
    /// Those of [`foreign`].
    pub fn served_by(&self, program: Program, encryption: Encryption) -> Result<Target, LabError> {
        let direct = self.description.cache == "direct" && self.description.kind != "ram";
        let reach = self.reach.as_ref();
        foreign(program, &*self.device, reach, direct, encryption)
    }

    /// The kernel's dm-crypt over the extent.
    ///
    /// # Errors
    /// Those of a system that is not there: [`LabError`].
    pub fn mapped(&self, encryption: Encryption) -> Result<Target, LabError> {
        let size = self.device.geometry().size;
        let named = |engine: &Engine| engine.name() == self.description.engine;
        // The engine that drives plain, so that nothing else differs.
        let engine = Engine::ALL.into_iter().find(named);
        dm_crypt::target(self.reach.as_ref(), size, engine, encryption)
    }
}

/// A program's server, over a volume of its format that is made on all of
/// `storage`, which the program reaches by `reach`; the name that is lent to it
/// goes with the target.
///
/// # Errors
/// Any of [`LabError`].
pub fn foreign(
    program: Program,
    storage: &dyn BlockDevice,
    reach: Option<&Reach>,
    direct: bool,
    encryption: Encryption,
) -> Result<Target, LabError> {
    let name = program.command();
    let version = program.version().ok_or_else(|| {
        let package = program.package();
        LabError::failed(
            format!("{name} is not installed; {package} brings it"),
            format!("Install {package}."),
        )
    })?;
    let reach = reach.ok_or_else(|| no_path(name))?;
    let serve: Serve = match program {
        Program::Qemu => qemu_nbd,
        Program::Nbdkit => nbdkit,
        Program::Veracrypt => return veracrypt::mount(version, storage, reach, encryption),
    };
    let encryption = Encryption {
        sector_size: SectorSize::B512,
        backend: None,
        sharing: None,
        ..encryption
    };
    let header = make(storage, &encryption)?;
    let path = Name::of(reach).map_err(|source| not_run(name, source))?;
    let folder = folder(name)?;
    let failed = |source| not_run(name, source);
    fs::write(folder.path().join("line"), PASSPHRASE).map_err(failed)?;
    let mut command = serve(folder.path(), &path.path, direct);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let own = confine::use_() | confine::name() | confine::name_sockets();
    let allowed = [
        (path.path.clone(), confine::use_()),
        (folder.path().to_owned(), own),
    ];
    let confinement = confine::around(&command, &allowed).map_err(failed)?;
    let (keep, kept) = channel::<()>();
    let (sender, started) = channel();
    // nbdkit ends with the thread that started it.
    std::thread::spawn(move || {
        let child = confinement.enter().and_then(|()| command.spawn());
        let _ = sender.send(child);
        kept.recv()
    });
    let child = started.recv().map_err(io::Error::other);
    let mut guard = Foreign {
        child: child.flatten().map_err(failed)?,
        _keep: keep,
        _name: path,
        _folder: folder,
    };
    let place = Place::Unix(guard._folder.path().join("nbd"));
    let client = guard.connect(&place, name, &encryption)?;
    Ok(Target {
        system: SystemId::Served(program),
        version,
        encryption: Some(encryption),
        backend: None,
        constant_time: None,
        elsewhere: None,
        format: None,
        device: Box::new(client),
        _server: Some(Box::new(guard)),
        data_offset: header,
    })
}

/// Makes a LUKS1 volume and returns the offset of its data.
fn make(storage: &dyn BlockDevice, encryption: &Encryption) -> Result<u64, LabError> {
    let key = Key::random(encryption.key_bits as usize / 8)?;
    let creation = luks1::Creation {
        spec: encryption.spec,
        key_bytes: key.len(),
        hash: Hash::Sha256,
        iterations: ITERATIONS,
        payload_offset: None,
        detached: false,
        uuid: None,
    };
    let header = luks1::Header::create(storage, &creation, &key, &Key::from_slice(PASSPHRASE))?;
    storage.flush()?;
    Ok(header.payload_offset)
}

/// A folder that only this user sees into.
pub(super) fn folder(program: &'static str) -> Result<TempDir, LabError> {
    TempDir::new().map_err(|source| not_run(program, source))
}

/// Our server; it ends with the target.
struct Own {
    end: End,
    thread: Option<JoinHandle<Result<(), ServeError>>>,
    _folder: TempDir,
}

impl Drop for Own {
    fn drop(&mut self) {
        self.end.now();
        if let Some(thread) = self.thread.take() {
            // Its errors have already been reported to the client.
            let _ = thread.join();
        }
    }
}

/// Our file. Its server ends when no process has the file open.
struct OwnFile(FuseMount);

impl Drop for OwnFile {
    fn drop(&mut self) {
        // A ring lets go of its files a little after it was closed.
        let end = Instant::now() + PATIENCE;
        while !self.0.is_over() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// A program; it is ended with the target.
struct Foreign {
    child: Child,
    /// For the thread that started it.
    _keep: Sender<()>,
    /// Other targets use it as well.
    _name: Name,
    _folder: TempDir,
}

impl Foreign {
    /// Waits for the program's server, or for its reason to end.
    fn connect(
        &mut self,
        place: &Place,
        program: &'static str,
        encryption: &Encryption,
    ) -> Result<NbdDevice, LabError> {
        let begun = Instant::now();
        loop {
            let refusal = match NbdDevice::connect(place, "") {
                Ok(client) => return Ok(client),
                Err(error) => error,
            };
            let ended = self
                .child
                .try_wait()
                .map_err(|source| not_run(program, source))?;
            if ended.is_some() {
                let mut said = String::new();
                if let Some(mut stderr) = self.child.stderr.take() {
                    // Without its reason it is refused all the same.
                    let _ = stderr.read_to_string(&mut said);
                }
                let said = said.lines().next().unwrap_or("it gives no reason");
                return Err(refused(program, encryption.spec, said));
            }
            if begun.elapsed() > PATIENCE {
                return Err(refusal.into());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        // Nothing of what it holds is needed any more.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
