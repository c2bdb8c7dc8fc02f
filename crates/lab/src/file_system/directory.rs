//! [`Directory`]: a directory whose files a system encrypts, on a mounted file system.
//!
//! The file system below it is plain. fscrypt encrypts the directory itself. eCryptfs and the
//! programs behind FUSE show its files in clear at another place, which they mount.

mod ecryptfs;
mod program;

use self::program::Program;
use super::error::{not_removed, unusable};
use super::job::{ADIANTUM, XTS_HCTR2};
use super::mounted::{make_directory, unmount};
use super::stack::{PATIENCE, RETRY, said};
use super::{Encrypter, Subject};
use crate::error::LabError;
use crate::system::engine_file::VolumeKey;
use block::file_keys::{FscryptMode, encrypt_directory};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// How long a program may derive its key and mount. CryFS needs some seconds.
const MOUNTING: Duration = Duration::from_secs(60);

/// An encrypted directory of one system, which is made anew with every file system below it.
pub(super) struct Directory<'a> {
    subject: &'a Subject,
    key: &'a VolumeKey,
    /// The directory for what a program keeps outside its directory.
    state: PathBuf,
    /// The directory as it is when it is new, and the state with it. A program derives a key when
    /// it makes them, which takes up to some seconds, so they are copied after the first time.
    new: PathBuf,
}

impl<'a> Directory<'a> {
    /// One whose own files are below `scratch`; `place` tells it from others of the job.
    pub(super) fn new(
        subject: &'a Subject,
        key: &'a VolumeKey,
        scratch: &Path,
        place: usize,
    ) -> Self {
        Self {
            subject,
            key,
            state: scratch.join(format!("state{place}")),
            new: scratch.join(format!("new{place}")),
        }
    }

    /// Makes the directory at `stored`, where there is none. It is shown at `shown` for a moment.
    ///
    /// # Errors
    /// [`LabError`], or an error of the system.
    pub(super) fn make(&self, stored: &Path, shown: &Path) -> Result<(), LabError> {
        let Some(program) = Program::of(self.subject) else {
            make_directory(stored)?;
            let opened = self.open(stored, shown)?;
            // A cipher is looked for when the first file is made.
            let probe = opened.root().join("probe");
            let made = File::create_new(&probe).and_then(|_| fs::remove_file(&probe));
            made.map_err(|source| self.no_cipher(source))?;
            return opened.close();
        };
        let parts = [(stored, "stored"), (&self.state, "state")];
        if self.new.exists() {
            remove(&self.state)?;
            return parts
                .iter()
                .try_for_each(|(path, name)| copy(&self.new.join(name), path));
        }
        for path in [stored, &self.state] {
            make_directory(path)?;
        }
        if let Some(mut init) = program.init(stored) {
            let output = self
                .run(program, &mut init)
                .and_then(Child::wait_with_output)
                .map_err(|source| program.failed(source))?;
            if !output.status.success() {
                return Err(program.refused(&said(&output)));
            }
        }
        self.open(stored, shown)?.close()?;
        make_directory(&self.new)?;
        parts
            .iter()
            .try_for_each(|(path, name)| copy(path, &self.new.join(name)))
    }

    /// Opens the directory at `stored`: its files are then in clear at [`Opened::root`], which is
    /// `shown` unless the kernel encrypts the directory itself.
    ///
    /// # Errors
    /// [`LabError`], or an error of the system.
    pub(super) fn open(&self, stored: &Path, shown: &Path) -> Result<Opened, LabError> {
        let mut opened = Opened {
            root: shown.to_owned(),
            server: None,
            is_mounted: false,
        };
        match (self.subject.encrypter, Program::of(self.subject)) {
            (_, Some(program)) => self.serve(program, stored, &mut opened)?,
            (Encrypter::Ecryptfs, None) => {
                self.key
                    .with_bytes(|key| ecryptfs::mount(stored, shown, key))
                    .map_err(|source| self.no_cipher(source))?;
                opened.is_mounted = true;
            }
            (_, None) => {
                let (contents, names) = modes(self.subject.cipher.as_deref().unwrap_or_default());
                self.key
                    .with_bytes(|key| encrypt_directory(stored, key, contents, names))
                    .map_err(|source| self.no_cipher(source))?;
                stored.clone_into(&mut opened.root);
            }
        }
        Ok(opened)
    }

    fn no_cipher(&self, source: io::Error) -> LabError {
        let remedy = match source.kind() {
            io::ErrorKind::Unsupported => {
                "Use a file system with the feature: for ext4, tune2fs -O encrypt."
            }
            _ => {
                "Use a kernel with this cipher: fscrypt has Adiantum since Linux 5.0, and HCTR2 \
                 since 6.0, if they are configured."
            }
        };
        let cipher = self.subject.label();
        let what = format!("this kernel does not encrypt files with {cipher}");
        LabError::failed(what, remedy).because(source).absent()
    }

    /// Starts the program, and waits until it has mounted.
    fn serve(&self, program: Program, stored: &Path, opened: &mut Opened) -> Result<(), LabError> {
        let failed = |source| program.failed(source);
        let below = fs::metadata(&opened.root).map_err(failed)?;
        let told = self.state.with_extension("told");
        let mut command = program.mount(stored, &opened.root, self.subject);
        command.stderr(File::create(&told).map_err(failed)?);
        let server = self.run(program, &mut command).map_err(failed)?;
        let server = opened.server.insert(server);
        let begun = Instant::now();
        loop {
            // The answer waits until the program is ready.
            let above = fs::metadata(&opened.root);
            if above.is_ok_and(|above| is_other(&above, &below)) {
                opened.is_mounted = true;
                return Ok(());
            }
            let ended = server.try_wait().map_err(failed)?;
            if ended.is_some() || begun.elapsed() > MOUNTING {
                let text = fs::read_to_string(&told).unwrap_or_default();
                let last = text.lines().map(str::trim).rfind(|line| !line.is_empty());
                return Err(program.refused(last.unwrap_or("it does not mount")));
            }
            std::thread::sleep(RETRY);
        }
    }

    /// Starts a command of the program, and gives it the password.
    fn run(&self, program: Program, command: &mut std::process::Command) -> io::Result<Child> {
        command.envs(program.environment(&self.state));
        command.stdin(Stdio::piped()).stdout(Stdio::null());
        let mut child = command.spawn()?;
        if let Some(mut input) = child.stdin.take() {
            use std::io::Write;
            // A program that does not want it says why.
            let _ = self
                .key
                .write_hex(&mut input)
                .and_then(|()| input.write_all(b"\n"));
        }
        Ok(child)
    }
}

/// An encrypted directory that is open.
pub(super) struct Opened {
    root: PathBuf,
    server: Option<Child>,
    is_mounted: bool,
}

impl Opened {
    /// The directory with the files in clear.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// User and system CPU time of the program that serves the files, seconds, in ticks of the
    /// system; none if the kernel does the work.
    pub(super) fn cpu(&self) -> (f64, f64) {
        let read = |server: &Child| {
            let text = fs::read_to_string(format!("/proc/{}/stat", server.id())).ok()?;
            // The command's name may hold blanks and brackets: fields count from behind it.
            let fields = text.rsplit_once(')')?.1;
            let mut ticks = fields.split_whitespace().skip(11).map(str::parse::<u64>);
            Some((ticks.next()?.ok()?, ticks.next()?.ok()?))
        };
        let ticks = self.server.as_ref().and_then(read).unwrap_or_default();
        let rate = rustix::param::clock_ticks_per_second() as f64;
        (ticks.0 as f64 / rate, ticks.1 as f64 / rate)
    }

    /// Unmounts it, and waits for the end of the program.
    pub(super) fn close(mut self) -> Result<(), LabError> {
        self.undo()
    }

    fn undo(&mut self) -> Result<(), LabError> {
        let unmounted = match std::mem::take(&mut self.is_mounted) {
            true => unmount(&self.root),
            false => Ok(()),
        };
        let Some(mut server) = self.server.take() else {
            return unmounted;
        };
        let begun = Instant::now();
        while unmounted.is_ok() && begun.elapsed() < PATIENCE {
            if let Ok(Some(_)) = server.try_wait() {
                return Ok(());
            }
            std::thread::sleep(RETRY);
        }
        // It is killed so that the file system below can be unmounted.
        let _ = server.kill().and_then(|()| server.wait());
        unmounted.and_then(|()| Err(not_removed(&self.root, io::ErrorKind::TimedOut)))
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        // Why it came to this is worth more.
        let _ = self.undo();
    }
}

/// fscrypt's ciphers of contents and of names.
fn modes(cipher: &str) -> (FscryptMode, FscryptMode) {
    match cipher {
        ADIANTUM => (FscryptMode::Adiantum, FscryptMode::Adiantum),
        XTS_HCTR2 => (FscryptMode::Aes256Xts, FscryptMode::Aes256Hctr2),
        _ => (FscryptMode::Aes256Xts, FscryptMode::Aes256Cts),
    }
}

fn is_other(above: &fs::Metadata, below: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    above.dev() != below.dev()
}

fn copy(from: &Path, to: &Path) -> Result<(), LabError> {
    let failed = |source| unusable("cannot make", to, source);
    let mut command = block::program::command("cp");
    command.args(["-a", "--no-target-directory", "--"]);
    let output = command.arg(from).arg(to).output().map_err(failed)?;
    match output.status.success() {
        true => Ok(()),
        false => Err(failed(io::Error::other(said(&output)))),
    }
}

fn remove(directory: &Path) -> Result<(), LabError> {
    match fs::remove_dir_all(directory) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            Err(unusable("cannot remove", directory, source))
        }
        _ => Ok(()),
    }
}

/// Looks for what `subject` needs.
pub(super) fn provide(subject: &Subject) -> Result<(), LabError> {
    match (subject.encrypter, Program::of(subject)) {
        (_, Some(program)) => program.provide(),
        (Encrypter::Ecryptfs, None) => super::module::provide_file_system("ecryptfs"),
        _ => Ok(()),
    }
}
