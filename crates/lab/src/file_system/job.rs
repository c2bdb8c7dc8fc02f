//! [`Job`]: what an agent measures, as plain data.

use super::operation::Kind;
use super::{FileSystem, Operation};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// One file system on several systems, with all operations, in rounds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// Tells this job's device-mapper devices from others.
    pub id: String,
    /// This program, to be started again for what needs a process of its own.
    pub program: PathBuf,
    /// The kernel that runs it.
    pub kernel: Kernel,
    /// The file system that is made on every system.
    pub file_system: FileSystem,
    /// Bytes of the device; a multiple of 4096, and of `erase_bytes` for MTD.
    pub size: u64,
    /// The storage that holds the bytes.
    pub backing: Backing,
    /// Size of an MTD device's erase blocks, bytes.
    pub erase_bytes: u32,
    /// The systems, in the order of a round; the first is visited again at its end.
    pub subjects: Vec<Subject>,
    /// The operations that are timed.
    pub operations: Vec<Operation>,
    /// Rounds.
    pub repetitions: u32,
    /// Whether everything is unmounted, detached and forgotten before an operation.
    pub cold: bool,
    /// How many do each operation at the same time, each on files of its own.
    pub jobs: u32,
    /// Same seed, same content of files.
    pub seed: u64,
    /// An empty directory, on which the agent mounts a file system in memory.
    pub scratch: PathBuf,
}

/// A kernel that runs jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kernel {
    /// That of this machine.
    Here,
    /// The lab kernel 5.10.
    Lab,
    /// The lab kernel 6.1.
    Lab6,
}

impl Kernel {
    /// All of them, in the order in which they are measured.
    pub const ALL: [Self; 3] = [Self::Here, Self::Lab, Self::Lab6];

    /// The prefix of the names of its systems.
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::Here => "",
            Self::Lab => "lab:",
            Self::Lab6 => "lab-6.1:",
        }
    }

    /// The kernel and the name without the prefix of a system.
    pub fn of(system: &str) -> (Self, &str) {
        let lab = |kernel: Self| Some((kernel, system.strip_prefix(kernel.prefix())?));
        let labs = [Self::Lab, Self::Lab6];
        labs.into_iter()
            .find_map(lab)
            .unwrap_or((Self::Here, system))
    }

    /// Whether the kernel ends with the job, and with it what cannot be taken down.
    pub const fn is_lab(self) -> bool {
        !matches!(self, Self::Here)
    }
}

/// The storage that holds the bytes of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Backing {
    /// A file without a name in this directory.
    File(PathBuf),
    /// This block device or file of the job's size, which is overwritten.
    Named(PathBuf),
    /// A file in memory.
    Ram,
}

/// The layer that encrypts: between the file system and its storage, or the files themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Encrypter {
    /// No layer encrypts.
    None,
    /// The kernel's device-mapper target.
    DmCrypt,
    /// The loop driver of kernels before 5.16.
    Cryptoloop,
    /// This program's engine, behind FUSE and a loop device.
    BuiltinFuse,
    /// The kernel's encryption of directories within ext4 and f2fs.
    Fscrypt,
    /// The kernel's file system above another one.
    Ecryptfs,
    /// A program behind FUSE, above a directory.
    Gocryptfs,
    /// The same, the oldest.
    Encfs,
    /// The same, whose files are cut into blocks of one size.
    Cryfs,
    /// The same.
    Securefs,
}

/// A cipher of files, as a system that encrypts files offers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileCipher {
    /// As people write it: `aes-256-gcm`.
    pub name: &'static str,
    /// Bits of the key of a file's content.
    pub key_bits: u32,
    /// Bytes that are encrypted together.
    pub unit_bytes: u32,
}

const fn file_cipher(name: &'static str, key_bits: u32, unit_bytes: u32) -> FileCipher {
    FileCipher {
        name,
        key_bits,
        unit_bytes,
    }
}

/// fscrypt's cipher of contents and names (Documentation/filesystems/fscrypt.rst); HCTR2 is for
/// names alone.
pub(super) const XTS: &str = "aes-256-xts";
pub(super) const XTS_HCTR2: &str = "aes-256-xts-hctr2";
pub(super) const ADIANTUM: &str = "adiantum";

/// gocryptfs's cipher for processors without AES instructions.
pub(super) const XCHACHA: &str = "xchacha20-poly1305";

impl Encrypter {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::None,
        Self::DmCrypt,
        Self::Cryptoloop,
        Self::BuiltinFuse,
        Self::Fscrypt,
        Self::Ecryptfs,
        Self::Gocryptfs,
        Self::Encfs,
        Self::Cryfs,
        Self::Securefs,
    ];

    /// The contract's word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::DmCrypt => "dm-crypt",
            Self::Cryptoloop => "cryptoloop",
            Self::BuiltinFuse => "builtin-fuse",
            Self::Fscrypt => "fscrypt",
            Self::Ecryptfs => "ecryptfs",
            Self::Gocryptfs => "gocryptfs",
            Self::Encfs => "encfs",
            Self::Cryfs => "cryfs",
            Self::Securefs => "securefs",
        }
    }

    /// The ciphers of a system that encrypts files, the one that it chooses by itself first. Empty
    /// if it encrypts devices, or nothing.
    pub const fn file_ciphers(self) -> &'static [FileCipher] {
        match self {
            Self::None | Self::DmCrypt | Self::Cryptoloop | Self::BuiltinFuse => &[],
            Self::Fscrypt => {
                &const {
                    [
                        file_cipher(XTS, 512, 4096),
                        file_cipher(XTS_HCTR2, 512, 4096),
                        file_cipher(ADIANTUM, 256, 4096),
                    ]
                }
            }
            Self::Ecryptfs => &const { [file_cipher("aes-256-cbc", 256, 4096)] },
            Self::Gocryptfs => {
                &const {
                    [
                        file_cipher("aes-256-gcm", 256, 4096),
                        file_cipher(XCHACHA, 256, 4096),
                    ]
                }
            }
            Self::Encfs => &const { [file_cipher("aes-192-cbc", 192, 1024)] },
            Self::Cryfs => &const { [file_cipher(XCHACHA, 256, 16384)] },
            Self::Securefs => &const { [file_cipher("aes-256-gcm", 256, 4096)] },
        }
    }

    /// Whether it encrypts files, and not the device below them.
    pub const fn encrypts_files(self) -> bool {
        !self.file_ciphers().is_empty()
    }

    /// Whether a program of another project serves the files, behind FUSE.
    pub const fn is_program(self) -> bool {
        matches!(
            self,
            Self::Gocryptfs | Self::Encfs | Self::Cryfs | Self::Securefs
        )
    }

    /// Whether an operation can be done with it.
    pub fn suits(self, operation: &Operation) -> bool {
        // Below encrypted files the device is as it was.
        operation.op != Kind::Encrypt || !self.encrypts_files()
    }
}

/// A system with what it encrypts with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subject {
    /// The encrypting layer.
    pub encrypter: Encrypter,
    /// dm-crypt notation, or a file cipher's name; `None` if no layer encrypts.
    #[serde(default)]
    pub cipher: Option<String>,
    /// Bits of the key, counted as cryptsetup counts.
    #[serde(default)]
    pub key_bits: u32,
    /// Encryption sector size, bytes.
    #[serde(default = "sector")]
    pub sector_bytes: u32,
    /// Options of dm-crypt. They include the sector size if several are measured.
    #[serde(default)]
    pub options: Vec<DmOption>,
}

/// Bits of HMAC-SHA256's key.
const TAG_KEY_BITS: u32 = 256;

fn sector() -> u32 {
    512
}

impl Subject {
    /// The plain system.
    pub fn plain() -> Self {
        Self {
            encrypter: Encrypter::None,
            cipher: None,
            key_bits: 0,
            sector_bytes: sector(),
            options: Vec::new(),
        }
    }

    /// Whether every sector has a tag that authenticates it.
    pub fn has_tags(&self) -> bool {
        self.options.contains(&DmOption::IntegrityHmacSha256) || !self.has_journal()
    }

    /// Whether a sector and its tag change together.
    pub fn has_journal(&self) -> bool {
        !self.options.contains(&DmOption::IntegrityNoJournal)
    }

    /// Bits of all keys together: that of the tags follows the cipher's.
    pub fn all_key_bits(&self) -> u32 {
        match self.has_tags() {
            true => self.key_bits + TAG_KEY_BITS,
            false => self.key_bits,
        }
    }

    /// The label that distinguishes it for people: `dm-crypt aes-cbc-plain`.
    pub fn label(&self) -> String {
        let mut label = self.encrypter.name().to_owned();
        for word in self.cipher.iter().map(String::as_str) {
            label.push(' ');
            label.push_str(word);
        }
        for option in &self.options {
            label.push(' ');
            label.push_str(option.name());
        }
        label
    }
}

/// An option of dm-crypt (Documentation/admin-guide/device-mapper/dm-crypt.rst).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DmOption {
    /// Discards reach the device below.
    AllowDiscards,
    /// Encrypt on the core that submitted.
    SameCpuCrypt,
    /// Submit writes from the threads that encrypt.
    SubmitFromCryptCpus,
    /// Decrypt in the context in which the read ended, without a work queue.
    NoReadWorkqueue,
    /// Encrypt in the context in which the write began, without a work queue.
    NoWriteWorkqueue,
    /// Sectors of 4096 bytes.
    #[serde(rename = "sector_size:4096")]
    SectorSize4096,
    /// A tag for every sector, which dm-integrity keeps below dm-crypt with a
    /// journal, as `cryptsetup luksFormat --integrity hmac-sha256` has it.
    #[serde(rename = "integrity:hmac-sha256")]
    IntegrityHmacSha256,
    /// The same without a journal, as `--integrity-no-journal` has it: after a power cut a sector
    /// may not match its tag.
    #[serde(rename = "integrity:hmac-sha256,no-journal")]
    IntegrityNoJournal,
}

impl DmOption {
    /// The word in plans and reports; for a flag of the kernel, the kernel's own word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AllowDiscards => "allow_discards",
            Self::SameCpuCrypt => "same_cpu_crypt",
            Self::SubmitFromCryptCpus => "submit_from_crypt_cpus",
            Self::NoReadWorkqueue => "no_read_workqueue",
            Self::NoWriteWorkqueue => "no_write_workqueue",
            Self::SectorSize4096 => "sector_size:4096",
            Self::IntegrityHmacSha256 => "integrity:hmac-sha256",
            Self::IntegrityNoJournal => "integrity:hmac-sha256,no-journal",
        }
    }

    /// The word for the option in a table line.
    pub const fn in_table(self) -> &'static str {
        match self {
            Self::IntegrityHmacSha256 | Self::IntegrityNoJournal => "integrity:32:aead",
            flag => flag.name(),
        }
    }
}
