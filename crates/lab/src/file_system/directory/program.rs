//! [`Program`]: the programs that encrypt files behind FUSE, and how each is called.
//!
//! Each gets the password on standard input and stays in the foreground, as a child of the agent.

use crate::error::LabError;
use crate::file_system::error::{not_installed, program_failed, unusable};
use crate::file_system::job::XCHACHA;
use crate::file_system::{Encrypter, Subject};
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::Command;

/// A program that encrypts files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Program {
    Gocryptfs { xchacha: bool },
    Encfs,
    Cryfs,
    Securefs,
}

impl Program {
    /// The one of a system; `None` if the kernel encrypts.
    pub(super) fn of(subject: &Subject) -> Option<Self> {
        let xchacha = subject.cipher.as_deref() == Some(XCHACHA);
        match subject.encrypter {
            Encrypter::Gocryptfs => Some(Self::Gocryptfs { xchacha }),
            Encrypter::Encfs => Some(Self::Encfs),
            Encrypter::Cryfs => Some(Self::Cryfs),
            Encrypter::Securefs => Some(Self::Securefs),
            _ => None,
        }
    }

    /// Its name, which is that of Debian's package, too.
    const fn name(self) -> &'static str {
        match self {
            Self::Gocryptfs { .. } => "gocryptfs",
            Self::Encfs => "encfs",
            Self::Cryfs => "cryfs",
            Self::Securefs => "securefs",
        }
    }

    pub(super) fn provide(self) -> Result<(), LabError> {
        match block::program::is_there(self.name()) {
            true => Ok(()),
            false => Err(not_installed(self.name(), self.name())),
        }
    }

    /// Makes the encrypted directory `stored`; `None` if that is done at the first mount.
    pub(super) fn init(self, stored: &Path) -> Option<Command> {
        let mut command = block::program::command(self.name());
        match self {
            Self::Gocryptfs { xchacha } => {
                command.args(["-q", "-init"]);
                if xchacha {
                    command.arg("-xchacha");
                }
                command.arg("--")
            }
            Self::Securefs => command.arg("create"),
            Self::Encfs | Self::Cryfs => return None,
        };
        command.arg(stored);
        Some(command)
    }

    /// Shows the files of `stored` at `shown`.
    pub(super) fn mount(self, stored: &Path, shown: &Path, subject: &Subject) -> Command {
        let mut command = block::program::command(self.name());
        match self {
            Self::Gocryptfs { .. } => command.args(["-q", "-fg", "-nosyslog", "--"]),
            Self::Encfs => command.args(["--standard", "--stdinpass", "-f"]),
            Self::Cryfs => {
                let cipher = subject.cipher.as_deref().unwrap_or_default();
                command.args(["-f", "--cipher", cipher])
            }
            Self::Securefs => command.arg("mount"),
        };
        command.arg(stored).arg(shown);
        command
    }

    /// The variables that it is started with; `state` is a directory of its own.
    pub(super) fn environment(self, state: &Path) -> Vec<(&'static str, OsString)> {
        match self {
            Self::Cryfs => vec![
                ("CRYFS_FRONTEND", "noninteractive".into()),
                ("CRYFS_NO_UPDATE_CHECK", "true".into()),
                ("CRYFS_LOCAL_STATE_DIR", state.into()),
            ],
            _ => Vec::new(),
        }
    }

    pub(super) fn failed(self, source: io::Error) -> LabError {
        unusable("cannot run", self.name().as_ref(), source)
    }

    pub(super) fn refused(self, said: &str) -> LabError {
        program_failed(self.name(), said)
    }
}
