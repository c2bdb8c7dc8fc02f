//! [`FileSystemError`]: why a job ended.

#[cfg(target_os = "linux")]
use crate::system::engine_file::EngineFileError;
use block::BlockError;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Why a job on file systems ended, or a system cannot be measured.
#[derive(Debug, Error)]
pub enum FileSystemError {
    /// Only root may attach and mount.
    #[error("measuring file systems needs root")]
    NotRoot,
    /// The device cannot hold what the plan asks for.
    #[error("{file_system} needs a device of at least {needed} bytes, and this one has {size}")]
    TooSmall {
        /// The file system.
        file_system: &'static str,
        /// Smallest device.
        needed: u64,
        /// The device.
        size: u64,
    },
    /// The file system is full.
    #[error("the files of {operation:?} do not fit into {file_system} with {size} bytes")]
    Full {
        /// The operation.
        operation: String,
        /// The file system.
        file_system: &'static str,
        /// The device.
        size: u64,
    },
    /// A program is not installed.
    #[error("{program} is not installed")]
    NoProgram {
        /// Its name.
        program: String,
        /// Debian's package with it.
        package: &'static str,
    },
    /// A program failed.
    #[error("{program} failed: {said}")]
    Program {
        /// Its name.
        program: String,
        /// The last line that it said.
        said: String,
    },
    /// The user's own command failed.
    #[error("the command {command:?} failed: {said}")]
    Command {
        /// The command line.
        command: String,
        /// The last line that it said.
        said: String,
    },
    /// The kernel lacks a part.
    #[error("this kernel has no {what}")]
    NoModule {
        /// The part, for people.
        what: &'static str,
        /// The module that brings it.
        module: &'static str,
    },
    /// No kernel that runs here has it.
    #[error("cryptoloop, removed in Linux 5.16, has no {cipher}")]
    NoCryptoloopCipher {
        /// dm-crypt notation.
        cipher: String,
    },
    /// Flash that is made of a block device stays for as long as the kernel runs.
    #[error(
        "jffs2 can be measured only in the lab kernel, because block2mtd never releases a device"
    )]
    OnlyInLab,
    /// The kernel cannot encrypt files so.
    #[error("this kernel does not encrypt files with {cipher}")]
    NoFileCipher {
        /// The cipher.
        cipher: String,
        /// What it answered.
        source: io::Error,
    },
    /// The system cannot encrypt files of this file system.
    #[error("{system} does not encrypt files of {file_system}")]
    NoDirectory {
        /// The system.
        system: &'static str,
        /// The file system.
        file_system: &'static str,
    },
    /// The file system could not be mounted.
    #[error("cannot mount {file_system} from {device}")]
    Mount {
        /// The file system.
        file_system: &'static str,
        /// The device that holds it.
        device: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// Something could not be taken down.
    #[error("cannot remove {what}")]
    TakeDown {
        /// What.
        what: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file system does not hold the content that was written to it.
    #[error("{operation:?} on {label}: {what}")]
    Content {
        /// The operation after which that was seen.
        operation: String,
        /// The system.
        label: String,
        /// Which file, and what is wrong with it.
        what: String,
    },
    /// Contents or names can be read below a system that should encrypt them.
    #[error("{label} stores {what} that can be read without the key")]
    InClear {
        /// The system.
        label: String,
        /// Names or contents.
        what: &'static str,
    },
    /// A file or directory.
    #[error("{what} {path}")]
    File {
        /// The operation that failed, such as `cannot write`.
        what: &'static str,
        /// The path of the file or directory.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The storage or a loop device.
    #[error(transparent)]
    Block(#[from] BlockError),
    /// The engine's server.
    #[cfg(target_os = "linux")]
    #[error(transparent)]
    Engine(#[from] EngineFileError),
    /// The job cannot be parsed or read.
    #[error("the job cannot be read")]
    Job(#[from] serde_json::Error),
    /// The user or the caller asked to stop.
    #[error("interrupted")]
    Interrupted,
}

impl FileSystemError {
    /// The remedy, as one sentence for the user.
    pub fn remedy(&self) -> String {
        match self {
            Self::NotRoot => "Run the program as root, or measure inside the lab kernel, \
                              with system lab:none."
                .into(),
            Self::TooSmall { needed, .. } => format!("Choose a size of {needed} or more."),
            Self::Full { .. } => "Choose a larger size, or smaller files.".into(),
            Self::NoProgram { package, .. } => format!("Install Debian's {package}."),
            Self::Program { .. } => {
                "Run the program by hand on a file of that size to see more.".into()
            }
            Self::Command { .. } => {
                "Try the command in an empty directory. cryptmark runs it in the mounted directory \
                 with sh -c."
                    .into()
            }
            Self::NoModule { module, .. } => format!(
                "Load the module (modprobe {module}), or use the lab kernel, which has it: \
                 system lab:…"
            ),
            Self::NoCryptoloopCipher { .. } => {
                "Choose a cipher in CBC or ECB mode with plain IVs, such as aes-cbc-plain.".into()
            }
            Self::OnlyInLab => "Use system lab:dm-crypt or another lab: system.".into(),
            Self::NoFileCipher { source, .. } if source.kind() == io::ErrorKind::Unsupported => {
                "Use a file system with the feature: for ext4, tune2fs -O encrypt.".into()
            }
            Self::NoFileCipher { .. } => {
                "Use a kernel with this cipher: fscrypt has Adiantum since Linux 5.0, and HCTR2 \
                 since 6.0, if they are configured."
                    .into()
            }
            Self::NoDirectory { .. } => "Use ext4.".into(),
            Self::Mount { .. } => "Look for the reason in the kernel log (dmesg).".into(),
            Self::TakeDown { .. } => {
                "Close the programs that use it. Nothing of it remains after this program ends."
                    .into()
            }
            Self::Content { .. } | Self::InClear { .. } => {
                "Do not trust this system with data. Please report it with the run's record.".into()
            }
            Self::File { .. } => "Check the free space and the permissions.".into(),
            Self::Block(error) => error.remedy().to_owned(),
            #[cfg(target_os = "linux")]
            Self::Engine(error) => error.remedy(),
            Self::Job(_) => "Use the same version of the program on both sides.".into(),
            Self::Interrupted => "The finished trials are stored: `cryptmark show latest`.".into(),
        }
    }

    /// The error with its causes, for people.
    pub fn told(&self) -> String {
        let mut told = self.to_string();
        let mut source = std::error::Error::source(self);
        while let Some(cause) = source {
            let text = cause.to_string();
            if !told.ends_with(&text) {
                told.push_str(": ");
                told.push_str(&text);
            }
            source = cause.source();
        }
        told
    }

    /// Whether it says that a system cannot work here, and not that something went wrong.
    #[cfg(target_os = "linux")]
    pub(super) fn is_absence(&self) -> bool {
        matches!(
            self,
            Self::Program { .. }
                | Self::NoProgram { .. }
                | Self::NoModule { .. }
                | Self::NoFileCipher { .. }
        )
    }

    #[cfg(target_os = "linux")]
    /// Whether the file system ran out of space.
    pub(super) fn is_full(error: &io::Error) -> bool {
        error.kind() == io::ErrorKind::StorageFull
    }
}
