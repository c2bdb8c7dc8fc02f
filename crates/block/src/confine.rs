//! [`Confinement`]: what threads, and the programs that they start, can still reach.
//!
//! Landlock confines a thread, and the threads and programs that it starts later. So the thread
//! that works enters before it starts others. Descriptors that are open stay open.

use landlock::{
    ABI, Access, AccessNet, LandlockStatus, NetPort, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError, Scope,
};
pub use landlock::{AccessFs, BitFlags};
use std::io;
use std::path::PathBuf;
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
    pub fn new(paths: &[Allowed], ports: &[u16]) -> io::Result<Self> {
        rules(paths, ports).map(Self).map_err(io::Error::other)
    }

    /// Confines this thread for good, with all that it starts from now on. It cannot get more
    /// rights by a program with `setuid` either. Without Landlock, that is all.
    ///
    /// # Errors
    /// The kernel has Landlock and refuses.
    pub fn enter(&self) -> io::Result<()> {
        let entered = self.0.try_clone()?.restrict_self();
        entered.map(drop).map_err(io::Error::other)
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

/// Reads a file, or all files of a folder.
pub fn read() -> BitFlags<AccessFs> {
    AccessFs::ReadFile | AccessFs::ReadDir
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

/// For a program that reaches these paths and the system's libraries, and no TCP.
///
/// # Errors
/// The kernel has Landlock and refuses the rules.
pub fn around(command: &Command, paths: &[Allowed]) -> io::Result<Confinement> {
    let system = SYSTEM
        .iter()
        .map(|path| (path.into(), read() | AccessFs::Execute));
    let files = FILES.iter().map(|path| (path.into(), read()));
    let own = [
        (found(command), AccessFs::ReadFile | AccessFs::Execute),
        ("/dev/null".into(), use_()),
    ];
    let all = system.chain(files).chain(own).chain(paths.to_vec());
    Confinement::new(&all.collect::<Vec<_>>(), &[])
}

/// Starts a program that is confined [`around`] these paths. A thread starts it that ends then, so
/// it must not want to end with that thread (`PR_SET_PDEATHSIG`).
///
/// # Errors
/// Those of the confinement, and of starting the program.
pub fn start(command: &mut Command, paths: &[Allowed]) -> io::Result<Child> {
    let confinement = around(command, paths)?;
    inside(|| {
        confinement.enter()?;
        command.spawn()
    })?
}

/// The program of a command; an empty path if it is not there.
pub fn found(command: &Command) -> PathBuf {
    let folders = crate::program::search_path();
    std::env::split_paths(&folders)
        .map(|folder| folder.join(command.get_program()))
        .find(|path| path.is_file())
        .unwrap_or_default()
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
