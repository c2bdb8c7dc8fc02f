//! [`SystemId`]: what can be measured, by the names of the contract.

use super::Program;
use super::peer::Library;
use super::simulated::DRIVE;
use crate::file_system::{Encrypter, Kernel};
use serde::{Deserialize, Serialize};
use std::path::Path;
use thiserror::Error;

/// A system that the contract names.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum SystemId {
    /// The plain device.
    None,
    /// This program's engine, in process.
    Builtin,
    /// This program's engine behind its own NBD server.
    BuiltinNbd,
    /// This program's engine behind a file of its own, by FUSE.
    BuiltinFuse,
    /// The kernel's dm-crypt.
    DmCrypt,
    /// The file system that is mounted on a directory: `path:` and the directory.
    Path(String),
    /// Another program's volumes, behind its NBD server.
    Served(Program),
    /// A simulated drive, plain and encrypted: `drive:` and its name.
    Simulated(String),
    /// A cipher library, in the cipher tier only.
    Library(Library),
    /// Java's own ciphers, in the cipher tier only.
    Java,
    /// This program's engine behind a disk that ublk serves: a disk is measured by its path.
    BuiltinUblk,
    /// What encrypts under a file system or files themselves, and is measured in the tier of file
    /// systems alone, in a kernel.
    UnderFiles(Encrypter, Kernel),
}

/// Systems of the tier of file systems alone.
const UNDER_FILES: [(&str, Encrypter, Kernel); 18] = {
    use Encrypter as E;
    use Kernel::{Here, Lab, Lab6};
    [
        ("cryptoloop", E::Cryptoloop, Here),
        ("lab:none", E::None, Lab),
        ("lab:builtin-fuse", E::BuiltinFuse, Lab),
        ("lab:dm-crypt", E::DmCrypt, Lab),
        ("lab-6.1:none", E::None, Lab6),
        ("lab-6.1:builtin-fuse", E::BuiltinFuse, Lab6),
        ("lab-6.1:dm-crypt", E::DmCrypt, Lab6),
        ("lab:cryptoloop", E::Cryptoloop, Lab),
        ("fscrypt", E::Fscrypt, Here),
        ("lab:fscrypt", E::Fscrypt, Lab),
        ("lab-6.1:fscrypt", E::Fscrypt, Lab6),
        ("ecryptfs", E::Ecryptfs, Here),
        ("lab:ecryptfs", E::Ecryptfs, Lab),
        ("lab-6.1:ecryptfs", E::Ecryptfs, Lab6),
        ("gocryptfs", E::Gocryptfs, Here),
        ("encfs", E::Encfs, Here),
        ("cryfs", E::Cryfs, Here),
        ("securefs", E::Securefs, Here),
    ]
};

/// The prefix of the names of mounted systems.
const PATH: &str = "path:";

/// What people ask for that is no system here, and how it is measured all the same.
const ASKED_FOR: [(&[&str], &str); 5] = [
    (
        &["zfs", "btrfs", "bcachefs"],
        "is measured by its directory: path:DIR in what is encrypted, and a plain directory of the \
         same pool beside it",
    ),
    (
        &["bitlocker", "ebs", "filevault", "opal", "sed"],
        "encrypts where nothing can be left out: run before and after the change, or on two disks, \
         and compare (`cryptmark baseline`)",
    ),
    (
        &["ceph", "longhorn", "rook"],
        "is measured by its storage classes, a plain and an encrypted one (`cryptmark fleet \
         manifest`)",
    ),
    (
        &["cryptsetup", "luks", "luks1", "luks2"],
        "is dm-crypt here",
    ),
    (
        &["truecrypt"],
        "is veracrypt here, or builtin, which opens the same volumes",
    ),
];

/// A word that does not name a system.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown system {name:?}; {}", instead(name))]
pub struct UnknownSystem {
    /// The given name.
    pub name: String,
}

fn instead(name: &str) -> String {
    let name = name.to_lowercase();
    let mut asked = ASKED_FOR.iter();
    match asked.find(|(names, _)| names.contains(&&*name)) {
        Some((_, how)) => format!("{name} {how}"),
        None => "use none, builtin, dm-crypt, veracrypt or another system that `cryptmark doctor` \
                 lists"
            .to_owned(),
    }
}

impl SystemId {
    /// The contract's word.
    pub fn as_str(&self) -> &str {
        match self {
            Self::None => "none",
            Self::Builtin => "builtin",
            Self::BuiltinNbd => "builtin-nbd",
            Self::BuiltinFuse => "builtin-fuse",
            Self::BuiltinUblk => "builtin-ublk",
            Self::DmCrypt => "dm-crypt",
            Self::Path(name) | Self::Simulated(name) => name,
            Self::Served(program) => program.name(),
            Self::Library(library) => library.name(),
            Self::Java => "java",
            Self::UnderFiles(encrypter, kernel) => UNDER_FILES
                .iter()
                .find(|(_, of, at)| (of, at) == (encrypter, kernel))
                .map_or(encrypter.name(), |(name, ..)| name),
        }
    }

    /// The directory of a mounted system.
    pub fn directory(&self) -> Option<&Path> {
        match self {
            Self::Path(name) => name.strip_prefix(PATH).map(Path::new),
            _ => None,
        }
    }

    /// The simulated drive: its name, or the file that describes it.
    pub fn drive(&self) -> Option<&str> {
        match self {
            Self::Simulated(name) => name.strip_prefix(DRIVE),
            _ => None,
        }
    }

    /// Whether something outside the engine's reach does the work: what part of
    /// the time is the cipher's is not known then.
    pub fn is_served(&self) -> bool {
        matches!(
            self,
            Self::BuiltinNbd | Self::BuiltinFuse | Self::DmCrypt | Self::Served(_) | Self::Path(_)
        )
    }

    /// Whether it is measured on Linux alone.
    pub fn needs_linux(&self) -> bool {
        match self {
            Self::Path(_) => false,
            Self::Library(Library::AfAlg) | Self::BuiltinUblk | Self::UnderFiles(..) => true,
            other => other.is_served(),
        }
    }

    /// Whether every cipher of a plan is a target of its own.
    pub fn takes_ciphers(&self) -> bool {
        matches!(
            self,
            Self::Builtin
                | Self::BuiltinNbd
                | Self::BuiltinFuse
                | Self::DmCrypt
                | Self::Served(_)
                | Self::Simulated(_)
        )
    }

    /// Whether the engine encrypts, in this process or another one of this program.
    pub fn is_ours(&self) -> bool {
        matches!(self, Self::Builtin | Self::BuiltinNbd | Self::BuiltinFuse)
    }

    /// Whether every cipher in memory is encrypted by it.
    pub fn encrypts_memory(&self) -> bool {
        matches!(self, Self::Builtin | Self::Library(_) | Self::Java)
    }

    /// What encrypts in the tier of file systems, and in which kernel; `None` if it is not of that
    /// tier.
    pub const fn under_files(&self) -> Option<(Encrypter, Kernel)> {
        match self {
            Self::None => Some((Encrypter::None, Kernel::Here)),
            Self::DmCrypt => Some((Encrypter::DmCrypt, Kernel::Here)),
            Self::BuiltinFuse => Some((Encrypter::BuiltinFuse, Kernel::Here)),
            Self::UnderFiles(encrypter, kernel) => Some((*encrypter, *kernel)),
            _ => None,
        }
    }

    /// The program of another project that it is in the tier of file systems, which is also the name
    /// of its package.
    pub fn file_program(&self) -> Option<&'static str> {
        let (encrypter, _) = self.under_files()?;
        encrypter.is_program().then(|| encrypter.name())
    }

    /// Whether it is in a lab kernel.
    pub fn is_in_lab(&self) -> bool {
        matches!(self, Self::UnderFiles(_, kernel) if kernel.is_lab())
    }

    /// Every system of the contract.
    pub fn all() -> impl Iterator<Item = Self> {
        let path = Self::Path(format!("{PATH}…"));
        let drive = Self::Simulated(format!("{DRIVE}…"));
        [Self::None, Self::Builtin, Self::BuiltinNbd]
            .into_iter()
            .chain([Self::BuiltinFuse, Self::DmCrypt, path, drive])
            .chain(Program::ALL.map(Self::Served))
            .chain(Library::ALL.map(Self::Library))
            .chain([Self::Java, Self::BuiltinUblk])
            .chain(UNDER_FILES.map(|(_, encrypter, kernel)| Self::UnderFiles(encrypter, kernel)))
    }
}

/// Whether `name` is the system `known`; one that ends in a colon takes an argument.
fn is_named(known: &str, name: &str) -> bool {
    match name.strip_prefix(known) {
        Some(argument) => known.ends_with(':') != argument.is_empty(),
        None => false,
    }
}

impl std::str::FromStr for SystemId {
    type Err = UnknownSystem;

    fn from_str(name: &str) -> Result<Self, UnknownSystem> {
        match name {
            "none" => Ok(Self::None),
            "builtin" => Ok(Self::Builtin),
            "builtin-nbd" => Ok(Self::BuiltinNbd),
            "builtin-fuse" => Ok(Self::BuiltinFuse),
            "builtin-ublk" => Ok(Self::BuiltinUblk),
            "dm-crypt" => Ok(Self::DmCrypt),
            "qemu" => Ok(Self::Served(Program::Qemu)),
            "nbdkit" => Ok(Self::Served(Program::Nbdkit)),
            "veracrypt" => Ok(Self::Served(Program::Veracrypt)),
            "java" => Ok(Self::Java),
            _ if is_named(PATH, name) => Ok(Self::Path(name.to_owned())),
            _ if is_named(DRIVE, name) => Ok(Self::Simulated(name.to_owned())),
            _ => match Library::ALL.into_iter().find(|l| l.name() == name) {
                Some(library) => Ok(Self::Library(library)),
                None => match UNDER_FILES.into_iter().find(|(known, ..)| *known == name) {
                    Some((_, encrypter, kernel)) => Ok(Self::UnderFiles(encrypter, kernel)),
                    None => Err(UnknownSystem {
                        name: name.to_owned(),
                    }),
                },
            },
        }
    }
}

impl TryFrom<String> for SystemId {
    type Error = UnknownSystem;

    fn try_from(name: String) -> Result<Self, UnknownSystem> {
        name.parse()
    }
}

impl From<SystemId> for String {
    fn from(system: SystemId) -> Self {
        match system {
            SystemId::Path(name) | SystemId::Simulated(name) => name,
            known => known.as_str().to_owned(),
        }
    }
}
