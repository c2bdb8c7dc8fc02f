//! [`Confinement`]: what this process can still reach once it has opened what it works on.
//!
//! Landlock confines a thread, and the threads and programs that it starts later. So the thread
//! that works enters before it starts others. Descriptors that are open stay open.

#[cfg(debug_assertions)]
mod planted;

use super::Failure;
use super::volume::disk::is_remote;
use landlock::{
    ABI, Access, AccessNet, LandlockStatus, NetPort, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError, Scope,
};
pub use landlock::{AccessFs, BitFlags};
use serve::nbd::Uri;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

/// The rights that are taken, of this version of Landlock. Version 7 adds none to those of 6.
const VERSION: ABI = ABI::V7;

/// Where programs, their libraries and what they say about the machine are.
const SYSTEM: [&str; 8] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib64",
    "/nix/store",
    "/proc",
    "/sys/devices/system",
];

/// What a program reads at its start.
const FILES: [&str; 4] = [
    "/etc/ld.so.cache",
    "/dev/urandom",
    "/dev/random",
    "/etc/gnutls",
];

/// The files by which the system finds the address of a host, to connect to it again.
const RESOLVER: [&str; 4] = [
    "/etc/hosts",
    "/etc/resolv.conf",
    "/etc/nsswitch.conf",
    "/etc/gai.conf",
];

/// A file or folder, and what may be done there.
pub type Allowed = (PathBuf, BitFlags<AccessFs>);

/// Rules that threads of this process can enter.
pub struct Confinement(RulesetCreated);

impl Confinement {
    /// Allows these paths, as far as they exist, and TCP connections to these ports. All else that
    /// Landlock knows is refused: other files, other ports, signals to other programs, and abstract
    /// sockets. Mounts and unmounts are refused in any case.
    ///
    /// # Errors
    /// The kernel has Landlock and refuses the rules.
    pub fn new(paths: &[Allowed], ports: &[u16]) -> Result<Self, Failure> {
        rules(paths, ports).map(Self).map_err(refused)
    }

    /// For work on volumes that are open: their places are `sources`, and only the servers among
    /// them can be reached again. `more` is allowed as well. Locks that cryptsetup sees are kept.
    ///
    /// # Errors
    /// The kernel has Landlock and refuses the rules.
    pub fn around<'a>(
        sources: impl IntoIterator<Item = &'a Path>,
        more: Vec<Allowed>,
    ) -> Result<Self, Failure> {
        let remote = sources.into_iter().filter(|place| is_remote(place));
        let ports = remote.map(|place| Ok(Uri::parse(place.as_os_str())?.port()));
        let ports: Vec<_> = ports.collect::<Result<_, Failure>>()?;
        let ports: Vec<u16> = ports.into_iter().flatten().collect();
        let mut paths = more;
        paths.push(("/dev/null".into(), use_()));
        paths.push(("/run/cryptsetup".into(), use_() | name()));
        if !ports.is_empty() {
            let files = RESOLVER.iter();
            paths.extend(files.map(|path| (path.into(), AccessFs::ReadFile.into())));
        }
        Self::new(&paths, &ports)
    }

    /// Confines this thread for good, with all that it starts from now on. It cannot get more
    /// rights by a program with `setuid` either. Without Landlock, that is all.
    ///
    /// # Errors
    /// The kernel has Landlock and refuses.
    pub fn enter(&self) -> Result<(), Failure> {
        #[cfg(debug_assertions)]
        planted::attempt("before");
        self.0
            .try_clone()
            .map_err(refused)?
            .restrict_self()
            .map_err(refused)?;
        #[cfg(debug_assertions)]
        planted::attempt("after");
        Ok(())
    }
}

fn rules(paths: &[Allowed], ports: &[u16]) -> Result<RulesetCreated, RulesetError> {
    let mut rules = Ruleset::default()
        .handle_access(AccessFs::from_all(VERSION))?
        .handle_access(AccessNet::from_all(VERSION))?
        .scope(Scope::from_all(VERSION))?
        .create()?;
    for (path, access) in paths {
        let Ok(place) = PathFd::new(path) else {
            continue;
        };
        let access = match path.is_dir() {
            true => *access,
            false => *access & AccessFs::from_file(VERSION),
        };
        rules = rules.add_rule(PathBeneath::new(place, access))?;
    }
    for port in ports {
        rules = rules.add_rule(NetPort::new(*port, AccessNet::ConnectTcp))?;
    }
    Ok(rules)
}

fn refused(error: impl std::error::Error) -> Failure {
    let remedy = "Report this with the kernel's version (uname -r).";
    Failure::new(1, format!("cannot confine this process: {error}"), remedy)
}

/// Reads and writes a file or a device that is there.
pub fn use_() -> BitFlags<AccessFs> {
    AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev
}

/// Makes and removes the names of files in a folder, without reading or writing other files there.
pub fn name() -> BitFlags<AccessFs> {
    AccessFs::ReadDir | AccessFs::MakeReg | AccessFs::RemoveFile
}

/// Makes and removes sockets in a folder.
pub fn name_sockets() -> BitFlags<AccessFs> {
    AccessFs::MakeSock | AccessFs::RemoveFile
}

/// Starts a program that reaches these paths and the system's libraries, and no TCP.
///
/// # Errors
/// Those of starting it.
pub fn start(command: &mut Command, paths: &[Allowed]) -> io::Result<Child> {
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let folders = block::program::search_path();
    let program = std::env::split_paths(&folders)
        .map(|folder| folder.join(command.get_program()))
        .find(|path| path.is_file())
        .unwrap_or_default();
    let system = SYSTEM
        .iter()
        .map(|path| (path.into(), read | AccessFs::Execute));
    let files = FILES.iter().map(|path| (path.into(), read));
    let own = [
        (program, AccessFs::ReadFile | AccessFs::Execute),
        ("/dev/null".into(), use_()),
    ];
    let all: Vec<_> = system
        .chain(files)
        .chain(own)
        .chain(paths.to_vec())
        .collect();
    let failed = |failure: Failure| io::Error::other(failure.what().to_owned());
    let confinement = Confinement::new(&all, &[]).map_err(failed)?;
    inside(|| {
        confinement.enter().map_err(failed)?;
        command.spawn()
    })?
}

/// Runs `work` on a thread of its own, which may enter a confinement.
///
/// # Errors
/// It has panicked.
pub fn inside<T: Send>(work: impl FnOnce() -> T + Send) -> io::Result<T> {
    let panicked = |_| io::Error::other("a thread has panicked");
    std::thread::scope(|scope| scope.spawn(work).join().map_err(panicked))
}

/// What this kernel does not confine; `None` if nothing is left out.
pub fn lacking() -> Option<&'static str> {
    let status = || rules(&[], &[]).and_then(RulesetCreated::restrict_self);
    match inside(status).ok()?.ok()?.landlock {
        LandlockStatus::NotEnabled => Some("nothing is confined: Landlock is off in this kernel"),
        LandlockStatus::NotImplemented => Some("nothing is confined: the kernel has no Landlock"),
        LandlockStatus::Available { effective_abi, .. } if effective_abi < ABI::V4 => {
            Some("files alone are confined: TCP needs Linux 6.7, signals need 6.12")
        }
        LandlockStatus::Available { effective_abi, .. } if effective_abi < ABI::V6 => {
            Some("files and TCP are confined: signals need Linux 6.12")
        }
        LandlockStatus::Available { .. } => None,
    }
}
