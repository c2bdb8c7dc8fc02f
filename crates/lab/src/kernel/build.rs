//! Builds the kernel in the cache, one build at a time.
//!
//! A folder of the cache that has a name of its own holds a whole kernel: it is
//! renamed into its place. Everything else is in `build`, which is removed afterwards. `build.log`
//! stays, and is that of the last build.

use super::KernelError;
use super::archive::{self, Sources};
use super::error::Tool;
use super::inputs::{Version, compiler_key};
use super::work::Work;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Kernels that the cache keeps, of all versions and of other versions of this program.
const KEPT: usize = 8;

/// The file beside a kernel that names the source package it was built from.
const SOURCE: &str = "source";

/// How often it is asked whether another build has ended.
const TICK: Duration = Duration::from_millis(200);

/// The programs that building needs in addition to apt, tar and a shell.
const TOOLS: &[Tool] = &[
    Tool {
        program: "dpkg-deb",
        package: "dpkg",
    },
    Tool {
        program: "xz",
        package: "xz-utils",
    },
    Tool {
        program: "patch",
        package: "patch",
    },
    Tool {
        program: "make",
        package: "make",
    },
    Tool {
        program: "gcc",
        package: "gcc",
    },
    Tool {
        program: "/usr/include/stdio.h",
        package: "libc6-dev",
    },
    Tool {
        program: "ld",
        package: "binutils",
    },
    Tool {
        program: "flex",
        package: "flex",
    },
    Tool {
        program: "bison",
        package: "bison",
    },
    Tool {
        program: "bc",
        package: "bc",
    },
];

/// The parts of the sources that the build does not need, which are most of
/// them. Linux 6.1 reads `crypto/Kconfig` of some architectures.
const LEFT_OUT: &[&str] = &[
    "*/arch/alpha",
    "*/arch/arc",
    "*/arch/arm/[!c]*",
    "*/arch/arm64/[!c]*",
    "*/arch/c6x",
    "*/arch/csky",
    "*/arch/h8300",
    "*/arch/hexagon",
    "*/arch/ia64",
    "*/arch/loongarch",
    "*/arch/m68k",
    "*/arch/microblaze",
    "*/arch/mips/[!c]*",
    "*/arch/nds32",
    "*/arch/nios2",
    "*/arch/openrisc",
    "*/arch/parisc",
    "*/arch/powerpc/[!c]*",
    "*/arch/riscv",
    "*/arch/s390/[!c]*",
    "*/arch/sh",
    "*/arch/sparc/[!c]*",
    "*/arch/xtensa",
    "*/sound/*.[ch]",
    "*/drivers/gpu/*.[ch]",
    "*/drivers/net/*/*.[ch]",
    "*/drivers/media/*.[ch]",
    "*/drivers/staging/*.[ch]",
    "*/Documentation/*.rst",
    "*/Documentation/*.txt",
    "*/Documentation/*.yaml",
    "*/tools/testing",
];

/// The current step of the build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Another process builds it.
    Waiting,
    /// The lists of the archives, which locate the source package.
    Lists,
    /// The source package, 120 to 140 MB.
    Download,
    /// The needed parts of the source package are unpacked.
    Unpack,
    /// The patches.
    Patch,
    /// The configuration.
    Configure,
    /// The kernel itself.
    Compile,
}

impl std::fmt::Display for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Waiting => "waiting for another build",
            Self::Lists => "reading the archive's lists",
            Self::Download => "downloading the source",
            Self::Unpack => "unpacking the source",
            Self::Patch => "patching the source",
            Self::Configure => "configuring the kernel",
            Self::Compile => "compiling the kernel",
        })
    }
}

/// How far building is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The current step.
    pub step: Step,
    /// Amount of the step that is done, of [`total`](Self::total).
    pub done: u64,
    /// Approximate total amount; 0 if it is unknown.
    pub total: u64,
}

/// The standard directory of built kernels:
/// `$XDG_CACHE_HOME/cryptmark/lab-kernel`, or the same below `~/.cache`.
///
/// # Errors
/// [`KernelError::NoCache`].
pub fn standard_cache() -> Result<PathBuf, KernelError> {
    use etcetera::BaseStrategy;
    let base =
        etcetera::base_strategy::Xdg::new().map_err(|source| KernelError::NoCache { source })?;
    Ok(base.cache_dir().join("cryptmark/lab-kernel"))
}

/// The kernel that this program would build, if `cache` has it. With an
/// installed compiler, it must be that compiler's; otherwise any will do.
pub(super) fn find(version: Version, cache: &Path) -> Option<PathBuf> {
    let sources = version.sources_key();
    let name = match compiler_key() {
        Some(compiler) => format!("{sources}-{compiler}"),
        None => kernels(cache).find(|name| name.starts_with(&sources))?,
    };
    let kernel = cache.join(name).join("linux");
    kernel.is_file().then_some(kernel)
}

/// The names of the kernels' folders.
fn kernels(cache: &Path) -> impl Iterator<Item = String> {
    let entries = fs::read_dir(cache).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.contains("-gcc-"))
}

/// Builds the kernel if `cache` has none, which takes some minutes.
pub(super) fn build(
    version: Version,
    cache: &Path,
    stop: &AtomicBool,
    told: &mut dyn FnMut(Progress),
) -> Result<PathBuf, KernelError> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Err(KernelError::Machine);
    }
    if let Some(kernel) = find(version, cache) {
        return Ok(kernel);
    }
    let sources = sources(version)?;
    create(cache)?;
    let _lock = lock(cache, stop, told)?;
    // Another process may have built it while this one waited.
    if let Some(kernel) = find(version, cache) {
        return Ok(kernel);
    }
    let Some(compiler) = compiler_key() else {
        let gcc = |tool: &&Tool| tool.program == "gcc";
        let tools = TOOLS.iter().filter(gcc).copied().collect();
        return Err(KernelError::MissingTools { tools });
    };
    let name = format!("{}-{compiler}", version.sources_key());
    let folder = cache.join("build");
    remove(&folder)?;
    create(&folder)?;
    let built = Work::new(&folder, &cache.join("build.log"), stop, told)
        .and_then(|mut work| make(&mut work, version, &folder, &sources))
        .and_then(|()| keep(cache, &folder, &name));
    let removed = remove(&folder);
    built?;
    removed?;
    forget(cache, &name);
    Ok(cache.join(name).join("linux"))
}

/// The archives, once all programs are there.
fn sources(version: Version) -> Result<Sources, KernelError> {
    if !block::program::is_there("apt-get") {
        return Err(KernelError::NotDebian);
    }
    let sources = archive::of_the_system(Path::new("/etc/apt"), version.suite())
        .ok_or(KernelError::NotDebian)?;
    let missing = TOOLS
        .iter()
        .filter(|tool| !block::program::is_there(tool.program));
    let tools: Vec<Tool> = missing.copied().collect();
    match tools.is_empty() {
        true => Ok(sources),
        false => Err(KernelError::MissingTools { tools }),
    }
}

/// Waits until no other process builds.
fn lock(
    cache: &Path,
    stop: &AtomicBool,
    told: &mut dyn FnMut(Progress),
) -> Result<File, KernelError> {
    let path = cache.join("lock");
    let failed = |source| KernelError::Io {
        path: path.clone(),
        source,
    };
    let file = File::create(&path).map_err(failed)?;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(source)) => return Err(failed(source)),
            Err(TryLockError::WouldBlock) => {}
        }
        if stop.load(Ordering::Relaxed) {
            return Err(KernelError::Interrupted);
        }
        told(Progress {
            step: Step::Waiting,
            done: 0,
            total: 0,
        });
        thread::sleep(TICK);
    }
}

/// From the archive to a program, in `folder`.
fn make(
    work: &mut Work<'_>,
    version: Version,
    folder: &Path,
    sources: &Sources,
) -> Result<(), KernelError> {
    let package = download(work, version, folder, sources)?;
    let name = package.file_name().unwrap_or_default().to_string_lossy();
    write(&folder.join(SOURCE), &format!("{name}\n"))?;
    let tree = folder.join("linux");
    create(&tree)?;
    unpack(work, version, &package, &tree)?;
    let patches = version.patches();
    work.begin(Step::Patch, patches.len() as u64);
    for (_, patch) in patches {
        let mut command = work.command("patch");
        command
            .args(["--batch", "--fuzz=0", "--strip=1"])
            .current_dir(&tree);
        work.run_with(command, patch.as_bytes())?;
        work.advance();
    }
    configure(work, version, folder, &tree)?;
    work.begin(Step::Compile, version.lines());
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let mut command = kernel_make(work, &tree);
    command.arg(format!("-j{cores}")).arg("linux");
    work.run(command)
}

/// A `make` of the kernel that records neither the builder nor the build time.
fn kernel_make(work: &Work<'_>, tree: &Path) -> Command {
    let mut command = work.command("make");
    command
        .arg("ARCH=um")
        .current_dir(tree)
        .env("KBUILD_BUILD_TIMESTAMP", "2024-08-10")
        .env("KBUILD_BUILD_USER", "cryptmark")
        .env("KBUILD_BUILD_HOST", "lab");
    command
}

/// The source package, of which apt has checked the signature. If no archive has the release for
/// which the patches were made, it is the newest release that the suite has.
fn download(
    work: &mut Work<'_>,
    version: Version,
    folder: &Path,
    sources: &Sources,
) -> Result<PathBuf, KernelError> {
    let moved = sources.in_the_archive();
    let package = version.package();
    let exact = format!("{package}={}", version.release());
    let mut reached = None;
    let mut outcome = Ok(());
    for (attempt, sources) in [sources, &moved].into_iter().enumerate() {
        let apt = Apt::new(work, &folder.join(format!("apt-{attempt}")), sources)?;
        outcome = apt.update(work);
        if outcome.is_ok() {
            outcome = apt.download(work, &exact, folder);
            reached = reached.or(Some(apt));
        }
        match outcome {
            Err(KernelError::Step { .. }) => {}
            _ => break,
        }
    }
    if let (Err(KernelError::Step { .. }), Some(apt)) = (&outcome, reached) {
        outcome = apt.download(work, package, folder);
    }
    match outcome {
        Err(KernelError::Step { said, .. }) if offline(&said) => {
            return Err(KernelError::Offline { said });
        }
        outcome => outcome?,
    }
    let entries = fs::read_dir(folder).map_err(|source| at(folder, source))?;
    let mut packages = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|suffix| suffix == "deb"));
    packages
        .next()
        .ok_or_else(|| at(folder, io::ErrorKind::NotFound.into()))
}

/// Whether apt's complaint is about the network, not about what is there.
fn offline(said: &str) -> bool {
    [
        "Could not resolve",
        "Temporary failure resolving",
        "Could not connect",
        "Unable to connect",
        "Cannot initiate the connection",
        "Connection timed out",
        "Network is unreachable",
        "Connection failed",
        "Connection refused",
    ]
    .iter()
    .any(|words| said.contains(words))
}

/// A private apt, with lists of its own.
struct Apt {
    configuration: PathBuf,
}

impl Apt {
    /// An apt whose state is in `state`.
    fn new(work: &mut Work<'_>, state: &Path, sources: &Sources) -> Result<Self, KernelError> {
        for part in ["lists/partial", "cache/archives/partial", "parts"] {
            create(&state.join(part))?;
        }
        for (name, text) in &sources.files {
            write(&state.join("parts").join(name), text)?;
        }
        let configuration = state.join("apt.conf");
        write(&configuration, &private_apt(work, state)?)?;
        Ok(Self { configuration })
    }

    fn command(&self, work: &Work<'_>) -> Command {
        let mut command = work.command("apt-get");
        command
            .arg("--quiet=2")
            .env("APT_CONFIG", &self.configuration);
        command
    }

    fn update(&self, work: &mut Work<'_>) -> Result<(), KernelError> {
        work.begin(Step::Lists, 0);
        let mut command = self.command(work);
        command.args(["--error-on=any", "update"]);
        work.run(command)
    }

    /// Puts the package into `folder`.
    fn download(
        &self,
        work: &mut Work<'_>,
        wanted: &str,
        folder: &Path,
    ) -> Result<(), KernelError> {
        work.begin(Step::Download, 0);
        let mut command = self.command(work);
        command.args(["download", wanted]).current_dir(folder);
        work.run(command)
    }
}

/// The configuration of an apt that writes below `state` only: how the system
/// reaches archives is taken over, what it runs afterwards is not.
fn private_apt(work: &mut Work<'_>, state: &Path) -> Result<String, KernelError> {
    let mut command = work.command("apt-config");
    command.arg("dump");
    let dump = command
        .output()
        .map_err(|source| KernelError::Start { source })?;
    let dump = String::from_utf8_lossy(&dump.stdout).into_owned();
    let kept = dump
        .lines()
        .filter(|line| line.starts_with("Acquire::") || line.starts_with("APT::Architecture"));
    let mut text: String = kept.map(|line| format!("{line}\n")).collect();
    let state = state.display();
    text += &format!(
        "Dir::Etc::Main \"/dev/null\";\n\
         Dir::Etc::Parts \"/dev/null\";\n\
         Dir::Etc::SourceList \"/dev/null\";\n\
         Dir::Etc::SourceParts \"{state}/parts\";\n\
         Dir::State::Lists \"{state}/lists\";\n\
         Dir::Cache \"{state}/cache\";\n\
         APT::Sandbox::User \"root\";\n\
         Acquire::Languages \"none\";\n\
         Acquire::IndexTargets::deb::DEP-11::DefaultEnabled \"false\";\n\
         Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled \"false\";\n"
    );
    Ok(text)
}

/// Takes what is needed out of an archive in an archive.
fn unpack(
    work: &mut Work<'_>,
    version: Version,
    package: &Path,
    tree: &Path,
) -> Result<(), KernelError> {
    work.begin(Step::Unpack, 0);
    let mut exclude = String::new();
    for pattern in LEFT_OUT {
        exclude += &format!(" --exclude='{pattern}'");
    }
    let script = format!(
        "dpkg-deb --fsys-tarfile \"$1\" | tar -xO ./usr/src/{}.tar.xz | \
         tar -xJ --strip-components=1{exclude} && test -e Kbuild",
        version.package()
    );
    let mut command = work.command("sh");
    command
        .args(["-c", &script, "sh"])
        .arg(package)
        .current_dir(tree);
    work.run(command)
}

/// Configures it, and sees that nothing of the configuration was lost.
fn configure(
    work: &mut Work<'_>,
    version: Version,
    folder: &Path,
    tree: &Path,
) -> Result<(), KernelError> {
    work.begin(Step::Configure, 0);
    let wanted = folder.join("config");
    write(&wanted, version.config())?;
    let mut command = kernel_make(work, tree);
    command.arg("allnoconfig").env("KCONFIG_ALLCONFIG", &wanted);
    work.run(command)?;
    let path = tree.join(".config");
    let got = fs::read_to_string(&path).map_err(|source| at(&path, source))?;
    let lost = version
        .config()
        .lines()
        .filter(|line| line.starts_with("CONFIG_") && !line.ends_with("=n"))
        .find(|wanted| !got.lines().any(|line| line == *wanted));
    match lost {
        Some(option) => Err(KernelError::Option {
            option: option.to_owned(),
        }),
        None => Ok(()),
    }
}

/// Puts the kernel into its place, whole or not at all.
fn keep(cache: &Path, folder: &Path, name: &str) -> Result<(), KernelError> {
    let whole = folder.join(name);
    create(&whole)?;
    let kernel = whole.join("linux");
    fs::rename(folder.join("linux/linux"), &kernel).map_err(|source| at(&kernel, source))?;
    let source = whole.join(SOURCE);
    fs::rename(folder.join(SOURCE), &source).map_err(|error| at(&source, error))?;
    let synced = File::open(&kernel).and_then(|file| file.sync_all());
    synced.map_err(|source| at(&kernel, source))?;
    let place = cache.join(name);
    // An existing folder does not hold a kernel, or it would have been found.
    remove(&place)?;
    fs::rename(&whole, &place).map_err(|source| at(&place, source))
}

/// Removes the oldest kernels of other versions, as far as there are too many.
fn forget(cache: &Path, name: &str) {
    let age = |name: &String| {
        let folder = fs::metadata(cache.join(name));
        folder.and_then(|folder| folder.modified()).ok()
    };
    let mut others: Vec<String> = kernels(cache).filter(|other| other != name).collect();
    others.sort_by_key(age);
    for old in others.iter().rev().skip(KEPT - 1) {
        // A folder that cannot be removed does no harm.
        let _ = fs::remove_dir_all(cache.join(old));
    }
}

fn at(path: &Path, source: io::Error) -> KernelError {
    KernelError::Io {
        path: path.to_owned(),
        source,
    }
}

fn create(folder: &Path) -> Result<(), KernelError> {
    fs::create_dir_all(folder).map_err(|source| at(folder, source))
}

fn write(path: &Path, text: &str) -> Result<(), KernelError> {
    fs::write(path, text).map_err(|source| at(path, source))
}

/// Removes a folder with all its content. If a build was killed, a process may
/// still be at work in it for a moment.
fn remove(folder: &Path) -> Result<(), KernelError> {
    for _ in 0..50 {
        match fs::remove_dir_all(folder) {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => thread::sleep(TICK),
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(at(folder, error)),
            _ => return Ok(()),
        }
    }
    Err(at(folder, io::ErrorKind::DirectoryNotEmpty.into()))
}
