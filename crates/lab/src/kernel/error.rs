//! [`KernelError`]: the reasons why the lab kernel is missing or did not do its
//! work.

use super::build::Step;
use super::inputs::Version;
use std::io;
use std::path::PathBuf;

/// A program that building needs, and the Debian package that brings it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tool {
    /// Its name, or the path of a file.
    pub program: &'static str,
    /// The package.
    pub package: &'static str,
}

/// Why the lab kernel could not be built or run.
///
/// Displayed, it says what happened; [`remedy`](Self::remedy) says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KernelError {
    /// It is a program of x86-64 Linux.
    #[error("the lab kernel runs only on x86-64 Linux, and this machine is different")]
    Machine,
    /// The user has no home directory.
    #[error("there is no place to store the lab kernel: the home directory is not known")]
    NoCache {
        /// Why not.
        source: etcetera::HomeDirError,
    },
    /// The system has no apt that knows an archive of Debian.
    #[error("this system's apt has no archive of Debian, which provides the kernel's source")]
    NotDebian,
    /// Programs are missing.
    #[error("building the lab kernel needs {}", programs(.tools))]
    MissingTools {
        /// The missing programs, and the packages that provide them.
        tools: Vec<Tool>,
    },
    /// No archive could be reached.
    #[error("cannot reach an archive of Debian: {said}")]
    Offline {
        /// The last line that apt wrote.
        said: String,
    },
    /// A step of building failed.
    #[error("{step} failed: {said}")]
    Step {
        /// Which.
        step: Step,
        /// The line of the log that tells most.
        said: String,
        /// The whole log.
        log: PathBuf,
    },
    /// The kernel's sources do not know what the configuration asks for.
    #[error("the kernel's sources have no {option}")]
    Option {
        /// The option, as `CONFIG_DM_CRYPT=y`.
        option: String,
    },
    /// It was not built yet.
    #[error("there is no lab kernel {kernel} yet")]
    Absent {
        /// Which kernel.
        kernel: Version,
    },
    /// A file or folder could not be used.
    #[error("cannot use {}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A process or a pipe could not be made.
    #[error("the lab kernel could not be started")]
    Start {
        /// Why not.
        source: io::Error,
    },
    /// More disks than it has names for.
    #[error("the lab kernel supports at most {most} disks, and {given} were given")]
    TooManyDisks {
        /// How many were given.
        given: usize,
        /// How many it can have.
        most: usize,
    },
    /// A path that cannot be written into the machine's script.
    #[error("{} is not an absolute path", path.display())]
    Relative {
        /// The path.
        path: PathBuf,
    },
    /// Something of the machine could not be set up.
    #[error("the lab kernel could not {what}: {said}")]
    SetUp {
        /// The step that was tried.
        what: String,
        /// The last messages of the kernel and of the program that tried.
        said: String,
    },
    /// The kernel ended without saying how the command did.
    #[error("the lab kernel ended {}: {said}", at(*.started))]
    Crashed {
        /// Whether the command had begun.
        started: bool,
        /// The kernel's last messages.
        said: String,
    },
    /// It took longer than it may.
    #[error("the lab kernel was stopped after {seconds} s, {}: {said}", at(*.started))]
    TimedOut {
        /// How long it was given.
        seconds: u64,
        /// Whether the command had begun.
        started: bool,
        /// The kernel's last messages.
        said: String,
    },
    /// The user asked to stop.
    #[error("interrupted")]
    Interrupted,
}

fn programs(tools: &[Tool]) -> String {
    let names: Vec<&str> = tools.iter().map(|tool| tool.program).collect();
    names.join(", ")
}

fn at(started: bool) -> &'static str {
    match started {
        true => "while the command ran",
        false => "before the command began",
    }
}

impl KernelError {
    /// The remedy, as one sentence for the user.
    pub fn remedy(&self) -> String {
        match self {
            Self::Machine => {
                "Measure dm-crypt on a host that has it. Everything else works without the lab \
                 kernel."
            }
            Self::NoCache { .. } => "Set XDG_CACHE_HOME or HOME.",
            Self::NotDebian => {
                "Build it on Debian, and copy ~/.cache/cryptmark/lab-kernel. Everything else works \
                 without it."
            }
            Self::MissingTools { tools } => {
                let mut packages: Vec<&str> = tools.iter().map(|tool| tool.package).collect();
                packages.dedup();
                return format!(
                    "Install the programs as root: apt-get install {}",
                    packages.join(" ")
                );
            }
            Self::Offline { .. } => {
                "Nothing was changed. Check the network and the proxy in apt's configuration."
            }
            Self::Step { log, .. } => {
                return format!("The whole log is in {}.", log.display());
            }
            Self::Option { .. } => {
                "The sources have another version than expected. Please report this."
            }
            Self::Absent { kernel } => {
                let option = match kernel {
                    Version::V5_10 => "",
                    Version::V6_1 => " --kernel 6.1",
                };
                return format!(
                    "Build it with `cryptmark lab build{option}`, which takes some minutes."
                );
            }
            Self::Io { .. } => "Check the path, the permissions and the free space.",
            Self::Start { .. } => "Check the limits on processes and open files.",
            Self::TooManyDisks { .. } => "Use loop devices inside the lab kernel for the rest.",
            Self::Relative { .. } => "Give the full path, beginning with a slash.",
            Self::SetUp { .. } => {
                "Check that the directories exist and that the program is installed."
            }
            Self::Crashed { .. } => {
                "Give the lab kernel more memory if it ran out of memory. Otherwise report this \
                 with the kernel's messages."
            }
            Self::TimedOut { .. } => "Give the command more time.",
            Self::Interrupted => "Nothing was kept.",
        }
        .to_owned()
    }
}
