//! Builds the kernel in the cache, one build at a time.
//!
//! A folder of the cache that has a name of its own holds a whole kernel: it is
//! renamed into its place. All else is in `build`, which goes away afterwards;
//! `build.log` stays.

use super::KernelError;
use super::archive::{self, Sources};
use super::error::Tool;
use super::inputs::{CONFIG, PACKAGE, PATCHES, VERSION, compiler_key, sources_key};
use super::work::Work;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Kernels that the cache keeps: those of other versions of this program.
const KEPT: usize = 4;

/// How often it is asked whether another build has ended.
const TICK: Duration = Duration::from_millis(200);

/// Lines that make prints for this configuration, for the progress.
const COMPILED: u64 = 1150;

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
/// them.
const LEFT_OUT: &[&str] = &[
    "*/arch/alpha",
    "*/arch/arc",
    "*/arch/arm",
    "*/arch/arm64",
    "*/arch/c6x",
    "*/arch/csky",
    "*/arch/h8300",
    "*/arch/hexagon",
    "*/arch/ia64",
    "*/arch/m68k",
    "*/arch/microblaze",
    "*/arch/mips",
    "*/arch/nds32",
    "*/arch/nios2",
    "*/arch/openrisc",
    "*/arch/parisc",
    "*/arch/powerpc",
    "*/arch/riscv",
    "*/arch/s390",
    "*/arch/sh",
    "*/arch/sparc",
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
    /// The source package, 120 MB.
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

/// The kernel of this version of the program, if `cache` has it. With an
/// installed compiler, it must be that compiler's; otherwise any will do.
pub(super) fn find(cache: &Path) -> Option<PathBuf> {
    let sources = sources_key();
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
    cache: &Path,
    stop: &AtomicBool,
    told: &mut dyn FnMut(Progress),
) -> Result<PathBuf, KernelError> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Err(KernelError::Machine);
    }
    if let Some(kernel) = find(cache) {
        return Ok(kernel);
    }
    let sources = sources()?;
    create(cache)?;
    let _lock = lock(cache, stop, told)?;
    // Another process may have built it while this one waited.
    if let Some(kernel) = find(cache) {
        return Ok(kernel);
    }
    let Some(compiler) = compiler_key() else {
        let gcc = |tool: &&Tool| tool.program == "gcc";
        let tools = TOOLS.iter().filter(gcc).copied().collect();
        return Err(KernelError::MissingTools { tools });
    };
    let name = format!("{}-{compiler}", sources_key());
    let folder = cache.join("build");
    remove(&folder)?;
    create(&folder)?;
    let built = Work::new(&folder, &cache.join("build.log"), stop, told)
        .and_then(|mut work| make(&mut work, &folder, &sources))
        .and_then(|()| keep(cache, &folder, &name));
    let removed = remove(&folder);
    built?;
    removed?;
    forget(cache, &name);
    Ok(cache.join(name).join("linux"))
}

/// The archives, once all programs are there.
fn sources() -> Result<Sources, KernelError> {
    if !block::program::is_there("apt-get") {
        return Err(KernelError::NotDebian);
    }
    let sources = archive::of_the_system(Path::new("/etc/apt")).ok_or(KernelError::NotDebian)?;
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
fn make(work: &mut Work<'_>, folder: &Path, sources: &Sources) -> Result<(), KernelError> {
    let package = download(work, folder, sources)?;
    let tree = folder.join("linux");
    create(&tree)?;
    unpack(work, &package, &tree)?;
    work.begin(Step::Patch, PATCHES.len() as u64);
    for (_, patch) in PATCHES {
        let mut command = work.command("patch");
        command
            .args(["--batch", "--fuzz=0", "--strip=1"])
            .current_dir(&tree);
        work.run_with(command, patch.as_bytes())?;
        work.advance();
    }
    configure(work, folder, &tree)?;
    work.begin(Step::Compile, COMPILED);
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

/// The source package, which apt has checked the signature of.
fn download(work: &mut Work<'_>, folder: &Path, sources: &Sources) -> Result<PathBuf, KernelError> {
    let moved = sources.in_the_archive();
    let mut outcome = Ok(());
    for (attempt, sources) in [sources, &moved].into_iter().enumerate() {
        outcome = fetch(
            work,
            &folder.join(format!("apt-{attempt}")),
            folder,
            sources,
        );
        match outcome {
            Err(KernelError::Step { .. }) => {}
            _ => break,
        }
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

/// Has a private apt, whose state is in `state`, put the package into `folder`.
fn fetch(
    work: &mut Work<'_>,
    state: &Path,
    folder: &Path,
    sources: &Sources,
) -> Result<(), KernelError> {
    for part in ["lists/partial", "cache/archives/partial", "parts"] {
        create(&state.join(part))?;
    }
    for (name, text) in &sources.files {
        write(&state.join("parts").join(name), text)?;
    }
    let configuration = state.join("apt.conf");
    write(&configuration, &private_apt(work, state)?)?;
    let apt = |arguments: &[&str]| {
        let mut command = work.command("apt-get");
        command
            .arg("--quiet=2")
            .args(arguments)
            .current_dir(folder)
            .env("APT_CONFIG", &configuration);
        command
    };
    let (update, wanted) = (
        apt(&["--error-on=any", "update"]),
        format!("{PACKAGE}={VERSION}"),
    );
    let download = apt(&["download", &wanted]);
    work.begin(Step::Lists, 0);
    work.run(update)?;
    work.begin(Step::Download, 0);
    work.run(download)
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
fn unpack(work: &mut Work<'_>, package: &Path, tree: &Path) -> Result<(), KernelError> {
    work.begin(Step::Unpack, 0);
    let mut exclude = String::new();
    for pattern in LEFT_OUT {
        exclude += &format!(" --exclude='{pattern}'");
    }
    let script = format!(
        "dpkg-deb --fsys-tarfile \"$1\" | tar -xO ./usr/src/{PACKAGE}.tar.xz | \
         tar -xJ --strip-components=1{exclude} && test -e Kbuild"
    );
    let mut command = work.command("sh");
    command
        .args(["-c", &script, "sh"])
        .arg(package)
        .current_dir(tree);
    work.run(command)
}

/// Configures it, and sees that nothing of the configuration was lost.
fn configure(work: &mut Work<'_>, folder: &Path, tree: &Path) -> Result<(), KernelError> {
    work.begin(Step::Configure, 0);
    let wanted = folder.join("config");
    write(&wanted, CONFIG)?;
    let mut command = kernel_make(work, tree);
    command.arg("allnoconfig").env("KCONFIG_ALLCONFIG", &wanted);
    work.run(command)?;
    let path = tree.join(".config");
    let got = fs::read_to_string(&path).map_err(|source| at(&path, source))?;
    let lost = CONFIG
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
