//! [`BlockError`]: what can go wrong with a device, by what one can do about it.

use crate::OperationKind;
use crate::hold::Users;
use crate::signature::Content;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// Why a device refused or failed.
///
/// Displayed, it says what happened; [`remedy`](Self::remedy) says what to do;
/// [`errno`](Self::errno) is how a kernel or a protocol is told.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BlockError {
    /// Offset or length is not a multiple of the logical block.
    #[error(
        "the request for {length} bytes at byte {offset} is not aligned to the device's \
         {logical_block}-byte blocks"
    )]
    Misaligned {
        /// First byte asked for.
        offset: u64,
        /// Bytes asked for.
        length: u64,
        /// Both the offset and the length must be multiples of this many bytes.
        logical_block: u32,
    },
    /// The request ends behind the device.
    #[error(
        "the request for {length} bytes at byte {offset} ends beyond the device, which has {size} \
         bytes"
    )]
    OutOfRange {
        /// First byte asked for.
        offset: u64,
        /// Bytes asked for.
        length: u64,
        /// Bytes of the device.
        size: u64,
    },
    /// The device was opened for reading only.
    #[error("the device is open for reading only")]
    ReadOnly,
    /// It would change what is protected, or something since was to.
    #[error("the {operation} of {length} bytes at byte {offset} was refused to protect other data")]
    Protected {
        /// The operation asked for.
        operation: OperationKind,
        /// First byte asked for.
        offset: u64,
        /// Bytes asked for.
        length: u64,
    },
    /// Another program has changed what this one knows of the device.
    #[error("the {operation} was refused: another program has changed the header of the volume")]
    Changed {
        /// The operation asked for.
        operation: OperationKind,
    },
    /// The file system is too full.
    #[error("{needed} bytes are needed, but only {available} are free")]
    NoSpace {
        /// Bytes that would have to be free.
        needed: u64,
        /// Bytes that an ordinary user may still fill.
        available: u64,
    },
    /// The device cannot do this at all.
    #[error("the device does not support {operation}")]
    Unsupported {
        /// The operation asked for.
        operation: OperationKind,
    },
    /// More requests were submitted than the queue was opened for.
    #[error("there are more than {depth} requests in flight")]
    QueueFull {
        /// The queue's depth.
        depth: u32,
    },
    /// A queue cannot be this deep.
    #[error("a queue cannot hold {depth} requests")]
    Depth {
        /// The depth asked for.
        depth: u32,
    },
    /// Another program holds the file or device, or something stands on it.
    #[error("{} is in use{users}", path.display())]
    InUse {
        /// The file or device.
        path: PathBuf,
        /// The programs and devices that use it, as far as this user may see them.
        users: Users,
    },
    /// The device, or a partition of it, is mounted.
    #[error("{} is mounted on {}", path.display(), mount_point.display())]
    Mounted {
        /// The device or the partition.
        path: PathBuf,
        /// Where.
        mount_point: PathBuf,
    },
    /// The device, or a partition of it, is used as swap.
    #[error("{} is used as swap space", path.display())]
    Swap {
        /// The device, the partition or the file.
        path: PathBuf,
    },
    /// The device carries something.
    #[error("{} holds {content}", path.display())]
    Holds {
        /// The device.
        path: PathBuf,
        /// The content that would be lost.
        content: Box<Content>,
    },
    /// The path is neither a regular file nor a block device.
    #[error("{} is neither a regular file nor a block device", path.display())]
    NotADevice {
        /// The path.
        path: PathBuf,
    },
    /// The path could not be opened.
    #[error("cannot open {}", path.display())]
    Open {
        /// The path.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A scratch file could not be made in a directory.
    #[error("cannot create a test file in {}", directory.display())]
    Create {
        /// The directory.
        directory: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The state of a device could not be found out.
    #[error("cannot examine {}", path.display())]
    Examine {
        /// The device or the system file that was being read.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// No loop device could be made.
    #[error("cannot make a loop device of {}", path.display())]
    Loop {
        /// The file that was to be behind it.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The device mapper made no device.
    #[error("the device mapper cannot create a {target} target with these parameters")]
    Mapper {
        /// The target's name in the kernel.
        target: &'static str,
        /// Why not.
        source: io::Error,
    },
    /// The system did not provide an I/O engine.
    #[error("the {engine} engine is not available")]
    Engine {
        /// The engine's name.
        engine: &'static str,
        /// Why not.
        source: io::Error,
    },
    /// The server that has the bytes does not answer any more.
    #[error("the connection to the server at {address} is lost")]
    ServerGone {
        /// Where it was.
        address: String,
        /// The system's error.
        source: io::Error,
    },
    /// The device answered with an error.
    #[error("{operation} of {length} bytes at byte {offset} failed")]
    Io {
        /// The operation that failed.
        operation: OperationKind,
        /// First byte.
        offset: u64,
        /// Bytes; 0 for a flush.
        length: u64,
        /// The system's error.
        source: io::Error,
    },
    /// A file is shorter than it was when it was opened.
    #[error("the file is now shorter than its earlier {size} bytes")]
    CutOff {
        /// The bytes that it had.
        size: u64,
    },
    /// A file has no name any more, so that its data go with the last program that has it open.
    #[error("the file was removed while it was in use")]
    Removed,
    /// A flush has failed before. The system tells of what it could not write once
    /// only, so that no later flush says anything of the data of that time.
    #[error("written data may be lost, because a flush has failed")]
    Lost {
        /// Why it failed.
        source: Arc<BlockError>,
    },
    /// The data read differs from the data written: its authentication tag is wrong.
    #[error("the {length} bytes at byte {offset} do not match their integrity tag")]
    Tampered {
        /// First byte.
        offset: u64,
        /// Bytes.
        length: u64,
    },
    /// A fault layer was told to fail this request.
    #[error("injected fault (errno {errno})")]
    Injected {
        /// The error number to report.
        errno: i32,
    },
    /// The caller asked to stop.
    #[error("interrupted")]
    Interrupted,
}

impl BlockError {
    /// The error number that says this to a kernel or a protocol (Linux's
    /// numbers; positive).
    pub fn errno(&self) -> i32 {
        match self {
            Self::Misaligned { .. } | Self::OutOfRange { .. } | Self::Depth { .. } => errno::EINVAL,
            Self::ReadOnly | Self::Protected { .. } => errno::EROFS,
            Self::NoSpace { .. } => errno::ENOSPC,
            Self::Unsupported { .. } => errno::EOPNOTSUPP,
            Self::QueueFull { .. } => errno::EAGAIN,
            Self::InUse { .. } | Self::Mounted { .. } | Self::Swap { .. } | Self::Holds { .. } => {
                errno::EBUSY
            }
            Self::NotADevice { .. } => errno::ENOTBLK,
            Self::Interrupted => errno::EINTR,
            Self::Tampered { .. } => errno::EILSEQ,
            Self::Injected { errno } => *errno,
            Self::CutOff { .. } | Self::Removed | Self::Changed { .. } => errno::EIO,
            Self::Lost { source } => source.errno(),
            Self::Open { source, .. }
            | Self::Create { source, .. }
            | Self::Examine { source, .. }
            | Self::Loop { source, .. }
            | Self::Mapper { source, .. }
            | Self::Engine { source, .. }
            | Self::ServerGone { source, .. }
            | Self::Io { source, .. } => source.raw_os_error().unwrap_or(errno::EIO),
        }
    }

    /// Whether it is about the bytes that were asked for, so that others may
    /// still be had.
    pub fn is_of_place(&self) -> bool {
        matches!(
            self,
            Self::Io { .. } | Self::Tampered { .. } | Self::Injected { .. }
        )
    }

    /// The remedy, as one sentence: the second line of the message.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Misaligned { .. } => {
                "Choose a request size and offsets that are multiples of the device's logical block."
            }
            Self::OutOfRange { .. } => "Choose a smaller size or offset, or a larger device.",
            Self::ReadOnly => "Open the device for writing, or choose a workload that only reads.",
            Self::Protected { .. } => {
                "Nothing was written there. The place belongs to the hidden volume or to the \
                 volume's metadata."
            }
            Self::Changed { .. } => "Nothing more is written. Close the volume, and open it again.",
            Self::NoSpace { .. } => {
                "Free some space, choose a smaller `size`, or point `at` to another file system."
            }
            Self::Unsupported { .. } => {
                "Choose a device that supports it, or a workload without it."
            }
            Self::QueueFull { .. } => {
                "Reap a request before submitting the next, or open a deeper queue."
            }
            Self::Depth { .. } => "Choose a queue depth from 1 to 4096.",
            Self::InUse { .. } => {
                "Stop the program that uses it, then try again. `cryptmark volume status`, lsblk \
                 and losetup show the users."
            }
            Self::Mounted { .. } => "Unmount it first, or choose another device.",
            Self::Swap { .. } => "Run swapoff on it first, or choose another device.",
            Self::Holds { .. } => {
                "All of that would be lost. If you don't need it, confirm with `yes`."
            }
            Self::NotADevice { .. } => {
                "Name a block device, an ordinary file, or a directory to create a test file in."
            }
            Self::Open { source, .. }
            | Self::Create { source, .. }
            | Self::Examine { source, .. } => match source.kind() {
                io::ErrorKind::PermissionDenied => {
                    "Run as a user with access to it, or choose another place."
                }
                io::ErrorKind::NotFound => "Check the path.",
                io::ErrorKind::ReadOnlyFilesystem => {
                    "Choose a place on a file system that is mounted for writing."
                }
                _ => "Check the path and the device behind it, or choose another place.",
            },
            Self::Loop { .. } => {
                "Run as root, and load the module: modprobe loop. A container must allow loop \
                 devices."
            }
            Self::Mapper { .. } => {
                "Look for the reason in the kernel log (dmesg): a cipher, an option or a key that \
                 this kernel does not support."
            }
            Self::Engine { .. } => {
                "Choose the engine `threads` or `pread`, or allow io_uring (sysctl kernel.io_uring_disabled, container seccomp profile)."
            }
            Self::ServerGone { .. } => {
                "Look at the server's messages and whether it crashed, then start it again. \
                 Smaller blocks or a lower depth may avoid a crash."
            }
            Self::Io { source, .. } => match source.kind() {
                io::ErrorKind::StorageFull => "Free some space on the file system, then try again.",
                io::ErrorKind::NotConnected | io::ErrorKind::TimedOut => {
                    "Check the server that has the storage, and the network to it."
                }
                _ => {
                    "Look into the kernel log (dmesg) for the device's messages. The device may be \
                     failing."
                }
            },
            Self::CutOff { .. } => {
                "Find out what truncated the file. The data beyond its new end is gone, so restore \
                 it from a backup."
            }
            Self::Removed => {
                "Copy the data elsewhere before the program that has the file open ends. After \
                 that the data is lost."
            }
            Self::Lost { source } => source.remedy(),
            Self::Tampered { .. } => {
                "The data was damaged, changed by another program, or never written. Write it \
                 again from a backup."
            }
            Self::Injected { .. } => {
                "There is nothing to do: the fault layer was configured for this."
            }
            Self::Interrupted => "Run it again to get the whole result.",
        }
    }
}

/// Linux's numbers, which NBD and ublk use as well, on every system.
pub(crate) mod errno {
    pub const EINTR: i32 = 4;
    pub const EIO: i32 = 5;
    pub const EAGAIN: i32 = 11;
    pub const ENOTBLK: i32 = 15;
    pub const EBUSY: i32 = 16;
    pub const EINVAL: i32 = 22;
    pub const ENOSPC: i32 = 28;
    pub const EROFS: i32 = 30;
    pub const EILSEQ: i32 = 84;
    pub const EOPNOTSUPP: i32 = 95;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error as _;

    /// The system's error number for a full disk: `ERROR_DISK_FULL` or `ENOSPC`.
    const FULL: i32 = if cfg!(windows) { 112 } else { errno::ENOSPC };

    #[test]
    fn keeps_the_source_and_its_number() {
        let error = BlockError::Io {
            operation: OperationKind::Write,
            offset: 4096,
            length: 512,
            source: io::Error::from_raw_os_error(FULL),
        };
        assert_eq!(error.errno(), FULL);
        assert!(error.source().is_some());
        assert_eq!(error.to_string(), "write of 512 bytes at byte 4096 failed");
        assert!(error.remedy().starts_with("Free some space"));
    }

    #[test]
    fn what_is_lost_is_told_as_the_first_failure_was() {
        let error = BlockError::Lost {
            source: Arc::new(BlockError::NoSpace {
                needed: 4096,
                available: 0,
            }),
        };
        assert_eq!(error.errno(), errno::ENOSPC);
        assert!(error.remedy().starts_with("Free some space"));
        let source = error.source().unwrap().to_string();
        assert_eq!(source, "4096 bytes are needed, but only 0 are free");
    }

    #[test]
    fn protecting_data_reads_as_two_lines() {
        let error = BlockError::Mounted {
            path: "/dev/sdz1".into(),
            mount_point: "/home".into(),
        };
        assert_eq!(error.to_string(), "/dev/sdz1 is mounted on /home");
        assert_eq!(
            error.remedy(),
            "Unmount it first, or choose another device."
        );
        assert_eq!(error.errno(), errno::EBUSY);
    }
}
