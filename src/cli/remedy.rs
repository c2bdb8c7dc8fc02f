//! [`CliRemedy`]: what to do about an error, in the options and commands of this program.

use crate::cli::plain::word;
use block::BlockError;
use block::signature::Wrapped;
use drive::DriveError;
use drive::replay::ReplayError;
use lab::experiment::PlanError;
use lab::file_system::FileSystemError;
use lab::session::SessionError;
use lab::shard::ShardError;
#[cfg(target_os = "linux")]
use lab::system::engine_file::EngineFileError;
use lab::system::fit::FitError;
#[cfg(target_os = "linux")]
use lab::system::served::ServedError;
use lab::system::simulated::SimulatedError;
use lab::system::unlock::UnlockError;
use lab::system::{StorageError, TargetError};
use lab::trial::TrialError;
#[cfg(target_os = "linux")]
use serve::disk::DiskError;
#[cfg(target_os = "linux")]
use serve::nbd::ClientError;
#[cfg(target_os = "linux")]
use serve::service::ServiceError;
use volume::bitlk::ProtectorKind;
use volume::judge::State;
use volume::recall::RecallError;
use volume::{Format, Given, Instead, VolumeError, is_unsupported};

/// A library's error, of which this program can say more than the library. Libraries know no
/// options, because other programs use them too.
pub trait CliRemedy {
    /// The remedy. It is the library's own if that names everything.
    fn cli_remedy(&self) -> String;
}

impl CliRemedy for BlockError {
    fn cli_remedy(&self) -> String {
        match self {
            Self::NoSpace { .. } => {
                "Free some space, choose a smaller --size, or point --at to another file system."
            }
            Self::InUse { .. } => {
                "Stop the program that uses it, then try again. `cryptmark volume status`, lsblk \
                 and losetup show the users."
            }
            Self::Holds { .. } => {
                "All of that would be lost. If you don't need it, confirm with --yes."
            }
            Self::Lost { source } => return source.cli_remedy(),
            error => error.remedy(),
        }
        .to_owned()
    }
}

impl CliRemedy for VolumeError {
    fn cli_remedy(&self) -> String {
        match self {
            Self::Block(error) => return error.cli_remedy(),
            Self::NoJournal { header } => {
                return format!(
                    "Make it a LUKS2 volume first: cryptmark volume convert {} --type luks2",
                    word(header)
                );
            }
            Self::LeftBehind { image, .. } => {
                return format!(
                    "Run `cryptmark volume reencrypt {}` first: it puts that header where it belongs.",
                    word(image)
                );
            }
            Self::Rewritten { error } => {
                return format!(
                    "{} Then try the new secret, and the one of before: one of them opens the \
                     header or its copy. Repair the header with it: `cryptmark volume header repair`.",
                    error.cli_remedy()
                );
            }
            Self::Partly { error, .. } => return self.going_on(&error.cli_remedy()),
            Self::OtherFormat { found, .. } => {
                return format!("Omit --type, or give --type {found}.");
            }
            Self::NoSignature { holds, .. } => unsigned_remedy(*holds),
            Self::NoBackupFolder => {
                "Set HOME or XDG_STATE_HOME, or give --no-header-backup to skip the backup."
            }
            Self::NotKept { .. } => {
                "Nothing was changed. Make room there, set XDG_STATE_HOME to another folder, or give \
                 --no-header-backup to skip the backup."
            }
            Self::StartLost => {
                "The rest may be enough: run `cryptmark volume header repair`."
            }
            Self::NoKeyslotFits { given } => return given_remedy(*given, self),
            Self::NoProtectorFits { there, .. }
                if there.is_empty() || there.contains(&ProtectorKind::ClearKey.name()) =>
            {
                return self.remedy();
            }
            Self::NoProtectorFits {
                given: Given::Other,
                ..
            } => {
                "Check what you gave. `cryptmark volume info` shows each protector and what opens \
                 it."
            }
            Self::NoProtectorFits { given, .. } => return given_remedy(*given, self),
            Self::SecretKind { format, .. } => secrets(*format),
            Self::Lacks { instead, .. } => return instead_remedy(instead, self),
            Self::IgnoredKeyslot { slot } => return format!("Name it with --key-slot {slot}."),
            Self::SkipAlignment { unit, .. } => {
                return format!("Give a --skip that is a multiple of {unit}.");
            }
            Self::NotThis { .. } => {
                "Give the right --type, or name the file that holds the header with --header."
            }
            Self::Header {
                format: Format::Luks2,
                ..
            } => {
                "Nothing was changed. Try `cryptmark volume header repair`, then a backup of the \
                 header."
            }
            Self::Unwritable { .. } => {
                "Nothing was changed. `cryptmark volume info` shows the header."
            }
            Self::NoKeyslot { .. } => {
                "Give the --volume-key-file, or restore a header backup that still has keyslots."
            }
            Self::NullKeyslot { .. } => {
                "Open the volume with another keyslot or the --volume-key-file, and remove this \
                 keyslot."
            }
            Self::KeyBits { .. } => "Give a multiple of 8, as in --key-size 256.",
            Self::SectorBytes { .. } => "Give a --sector-size of 512, 1024, 2048 or 4096.",
            Self::Unpublished => "Give --experimental to read it with a guessed numbering.",
            Self::Silent { .. } => "Open it with `cryptmark volume open`.",
            Self::NoHeaderFits => {
                "Check the passphrase, the key files and the PIM. Try the other of --type tcrypt \
                 and --type veracrypt. Add --tcrypt-hidden, --tcrypt-backup or --tcrypt-system if \
                 the header is one of those. If a reencryption was interrupted, put its file \
                 IMAGE.cryptmark-header beside the volume, or name it with --header."
            }
            Self::Converting { .. } => "Open the volume with --read-only, or let Windows finish.",
            Self::Unencrypted { .. } => {
                "Open the volume with --read-only. To write, encrypt it with Windows first."
            }
            Self::WrongVolumeKey => "Give the --volume-key-file of this volume.",
            Self::EmptyPassphrase => {
                "Give one on the next line of standard input, in a file or on a terminal, or \
                 confirm with --allow-empty-passphrase."
            }
            Self::UnnamedKeyslot => "Name it with --key-slot.",
            Self::EmptyKeyslot { .. } => "`cryptmark volume info` lists the keyslots.",
            Self::UnboundKeyslot { .. } => {
                "Omit --key-slot, or name a keyslot that is bound to the data."
            }
            Self::DataUponHeader { .. } => {
                "If this is a detached header, name the file with the data as the volume, and this \
                 file with --header."
            }
            Self::ConversionRoom => {
                "Remove a keyslot that you don't need any more. Or make a LUKS2 volume and copy \
                 the data with `volume export` and `volume import`."
            }
            Self::KeyslotInUse { .. } => {
                "Choose a free --new-key-slot, or omit it. `cryptmark volume info` shows the \
                 keyslots in use."
            }
            Self::KeyslotNumber { .. } => "Choose another --new-key-slot, or omit it.",
            Self::LastKeyslot { .. } => {
                "Add another key first. Give --yes if the data may be lost."
            }
            Self::Reencrypting | Self::RecoveryNeeded => {
                "Finish the reencryption first, with `cryptmark volume reencrypt`."
            }
            Self::UnboundReencryption => {
                "Nothing was changed now. The header was changed earlier without its keys. Try a \
                 backup of the header with --header."
            }
            Self::Stranger { .. } => {
                "Nothing was changed. If that may be overwritten, first run `cryptmark volume \
                 header repair` with --yes."
            }
            Self::Judged(finding) if finding.state == State::Keyslots => {
                "Where the volume stays encrypted, give each passphrase or key file with \
                 --keep-passphrase-file or --keep-key-file. If they may be lost, confirm with --yes."
            }
            Self::Judged(finding) => return finding.remedy_by("confirm with --yes"),
            Self::Beside { .. } => {
                "Find out who made that file. Move it away if it does not belong to the volume; \
                 otherwise, name it with --header."
            }
            Self::Uuid { .. } => {
                "Give a UUID such as 123e4567-e89b-42d3-a456-426614174000, or omit the option for \
                 a random one."
            }
            Self::TooSmall { .. } => {
                "Use a larger device, a smaller --offset, or a detached --header."
            }
            Self::EncryptedKeyFile => {
                "Decrypt the key file first and pipe the result in: gpg -d FILE | cryptmark volume \
                 … --key-file -"
            }
            Self::ShortHash { .. } => "Choose a longer --hash or a shorter --key-size.",
            Self::KdfAllWork { .. } => {
                "Give the --key-slot of your passphrase, so that no other keyslot is tried."
            }
            error => return error.remedy(),
        }
        .to_owned()
    }
}

/// Words in the names of contents in which `volume find` finds parts.
const PARTED: [&str; 3] = ["partition", "an LVM physical volume", "software RAID"];

/// What to do about a file that holds this, and no signature of a volume.
fn unsigned_remedy(holds: Option<&str>) -> &'static str {
    let Some(what) = holds else {
        return "Name its --type (plain, tcrypt, veracrypt, cryptoloop and loopaes volumes have no \
                signature), or the file with its --header. An interrupted encryption or decryption \
                needs its file IMAGE.cryptmark-header beside the volume.";
    };
    match Wrapped::named(what) {
        Some(Wrapped::Archive(_)) => "Unpack it, and name the unpacked file.",
        // With the program, it would be open.
        Some(Wrapped::Image {
            driver: Some(_), ..
        }) if cfg!(target_os = "linux") => {
            "Install qemu-nbd (in Debian's package qemu-utils), which opens it, or convert it with \
             `qemu-img convert -O raw`."
        }
        Some(Wrapped::Image { .. }) => {
            "Convert it with `qemu-img convert -O raw`, or serve it with `qemu-nbd` and give the URI \
             of the export."
        }
        None if is_unsupported(what) => "Open it with the system that made it.",
        None if PARTED.iter().any(|word| what.contains(word)) => {
            "List its parts with `cryptmark volume find`, and name one with --partition."
        }
        None => {
            "Name the right file; if it is encrypted all the same, its --type, or the file with its \
             --header."
        }
    }
}

/// The remedy for a secret of this form, which opens nothing.
fn given_remedy(given: Given, error: &VolumeError) -> String {
    match given {
        Given::Line => {
            "The newline at its end counts as part of the key. If the file holds a passphrase, \
             give it with --passphrase-file."
        }
        Given::Other => {
            "Check the passphrase and its keyboard layout, or give the right --key-file or \
             --key-slot."
        }
        Given::Mark | Given::Utf16 | Given::Zero | Given::Space => {
            return format!(
                "{} `cryptmark volume recall` tries it without.",
                error.remedy()
            );
        }
        Given::Nothing | Given::Return => return error.remedy(),
    }
    .to_owned()
}

/// What to choose instead of something that a format lacks.
fn instead_remedy(instead: &Instead, error: &VolumeError) -> String {
    match instead {
        Instead::NoPim => "Omit the PIM, or give --type veracrypt.",
        Instead::Pbkdf2 => {
            "Give each keyslot PBKDF2 first: `cryptmark volume passwd --pbkdf pbkdf2 --hash \
             sha256`."
        }
        Instead::Copy(Format::Luks2) => {
            "Make a LUKS2 volume, and copy the data with `volume export` and `volume import`."
        }
        Instead::Copy(format) => {
            return format!(
                "Nothing was changed. Make a {} volume, and copy the data with `cryptmark volume \
                 export` and `cryptmark volume import`.",
                format.title()
            );
        }
        Instead::OneOf(_) | Instead::WideBlocks => return error.remedy(),
    }
    .to_owned()
}

/// The options that give the secrets of a format.
const fn secrets(format: Format) -> &'static str {
    match format {
        Format::Luks1 | Format::Luks2 => {
            "Give a passphrase, a --key-file or the --volume-key-file."
        }
        Format::Plain => "Give a passphrase, a --key-file or a --volume-key-file.",
        Format::Tcrypt | Format::Veracrypt => "Give a passphrase, a --keyfile, or both.",
        Format::Cryptoloop => "Give a passphrase or a --volume-key-file.",
        Format::LoopAes => "Give a --key-file of 1, 64 or 65 lines.",
        Format::Bestcrypt => "Give a passphrase.",
        Format::Fvault2 => "Give a passphrase, the recovery key, or the --volume-key-file.",
        Format::Bitlk => {
            "Give a passphrase or the recovery password, a --key-file with a startup key, or the --volume-key-file."
        }
    }
}

impl CliRemedy for RecallError {
    fn cli_remedy(&self) -> String {
        match self {
            Self::VolumeKey => "Give a passphrase, or a key file with --key-file.",
            Self::NotTyped => "Omit --typed-on and --meant.",
            Self::NoKey { .. } => {
                "Check both layouts. --meant is the layout that types the passphrase as you give \
                 it."
            }
            Self::Many(_) => {
                "Give more of the passphrase, or fewer --characters, or a smaller range of PIMs."
            }
            error => error.remedy(),
        }
        .to_owned()
    }
}

impl CliRemedy for DriveError {
    fn cli_remedy(&self) -> String {
        match self {
            Self::TooSmall { .. } => {
                "Choose a larger drive, or a plan or --size that needs less space."
            }
            Self::NoSpare { .. } => {
                "Give the drive more --over-provisioning, or more and smaller blocks."
            }
            Self::NoPreset { .. } => {
                "Choose one of the names in `cryptmark drive list`, or a file that ends in .toml."
            }
            Self::Toml { .. } => {
                "`cryptmark drive show mlc-128g` prints a valid description to copy and edit."
            }
            error => error.remedy(),
        }
        .to_owned()
    }
}

impl CliRemedy for ReplayError {
    fn cli_remedy(&self) -> String {
        match self {
            Self::Drive(error) => error.cli_remedy(),
            Self::TooSmall { .. } => {
                "Give the drive more --blocks, or larger pages by --page-size.".to_owned()
            }
            error => error.remedy().to_owned(),
        }
    }
}

#[cfg(target_os = "linux")]
impl CliRemedy for ClientError {
    fn cli_remedy(&self) -> String {
        match self {
            Self::WithoutTls => {
                "Build it with --features tls, or forward a Unix socket through ssh."
            }
            error => error.remedy(),
        }
        .to_owned()
    }
}

#[cfg(target_os = "linux")]
impl CliRemedy for DiskError {
    fn cli_remedy(&self) -> String {
        match self {
            Self::MaybeInUse { .. } => {
                "End that first: see `cryptmark volume status`. Or call both exports by their \
                 names, if the server has several."
                    .to_owned()
            }
            Self::Client(error) => error.cli_remedy(),
            error => error.remedy(),
        }
    }
}

#[cfg(target_os = "linux")]
impl CliRemedy for ServiceError {
    fn cli_remedy(&self) -> String {
        match self {
            Self::Served { image, .. } => {
                return format!("End that first: cryptmark volume umount {}", word(image));
            }
            Self::NoUnmounter => "When this server has ended, run `cryptmark volume umount`.",
            Self::NotEmpty { .. } => {
                "Name an empty directory, or give --yes. Its contents are hidden until the volume \
                 is unmounted."
            }
            Self::OnlyRoot { .. } => "Mount it as root, or serve it with --as file.",
            Self::NoProgram { program, .. } => {
                return format!(
                    "Install it (package {program}), or serve the volume with --as file."
                );
            }
            Self::FileSystem { .. } => {
                "Check that it holds one, or name its type with --fs-type. --as file needs no file \
                 system."
            }
            Self::NoUblk { .. } => {
                "Do the same with a program that was built with --features ublk."
            }
            Self::Block(error) => return error.cli_remedy(),
            error => return error.remedy(),
        }
        .to_owned()
    }
}

// The lab's errors wrap those above.

impl CliRemedy for StorageError {
    fn cli_remedy(&self) -> String {
        match self {
            Self::Block(error) => error.cli_remedy(),
            #[cfg(target_os = "linux")]
            Self::Export(error) => error.cli_remedy(),
            Self::Missing { .. } | Self::Kind { .. } => {
                "Give --at a directory, a file, a block device or an NBD export (nbd+unix://, nbd://)."
                    .into()
            }
            #[cfg(not(target_os = "linux"))]
            Self::NeedsLinux { .. } => "Give --at a directory or a file.".into(),
            Self::Memory { .. } => "Use a smaller --size.".into(),
            Self::TooSmall { available, .. } => {
                format!("Use --size {available} or less, or choose another place.")
            }
            error => error.remedy(),
        }
    }
}

impl CliRemedy for TargetError {
    fn cli_remedy(&self) -> String {
        match self {
            Self::Volume(error) => error.cli_remedy(),
            Self::Block(error) => error.cli_remedy(),
            error => error.remedy(),
        }
    }
}

#[cfg(target_os = "linux")]
impl CliRemedy for ServedError {
    fn cli_remedy(&self) -> String {
        match self {
            Self::Client(error) => error.cli_remedy(),
            Self::Target(error) => error.cli_remedy(),
            Self::Unreachable { .. } => "Give --at a directory, a file or a disk.".into(),
            error => error.remedy(),
        }
    }
}

#[cfg(target_os = "linux")]
impl CliRemedy for EngineFileError {
    fn cli_remedy(&self) -> String {
        match self {
            Self::Volume(error) => error.cli_remedy(),
            Self::Block(error) => error.cli_remedy(),
            error => error.remedy(),
        }
    }
}

impl CliRemedy for SimulatedError {
    fn cli_remedy(&self) -> String {
        match self {
            Self::Drive(error) | Self::Impossible { source: error, .. } => error.cli_remedy(),
            error => error.remedy(),
        }
    }
}

impl CliRemedy for FitError {
    fn cli_remedy(&self) -> String {
        match self {
            Self::Drive(error) => error.cli_remedy(),
            Self::Block(error) => error.cli_remedy(),
            Self::Probe { source, .. } => source.cli_remedy(),
            Self::NoTime { .. } => "Give --at a disk: this device is as fast as memory.".into(),
            error => error.remedy(),
        }
    }
}

impl CliRemedy for UnlockError {
    fn cli_remedy(&self) -> String {
        match self {
            Self::Volume(error) => error.cli_remedy(),
            error => error.remedy(),
        }
    }
}

impl CliRemedy for TrialError {
    fn cli_remedy(&self) -> String {
        match self {
            Self::Request { source, .. } | Self::Queue(source) => source.cli_remedy(),
            Self::Unlock(error) => error.cli_remedy(),
            Self::Simulated(error) => error.cli_remedy(),
            error => error.remedy(),
        }
    }
}

impl CliRemedy for FileSystemError {
    fn cli_remedy(&self) -> String {
        match self {
            Self::Block(error) => error.cli_remedy(),
            #[cfg(target_os = "linux")]
            Self::Engine(error) => error.cli_remedy(),
            error => error.remedy(),
        }
    }
}

impl CliRemedy for PlanError {
    fn cli_remedy(&self) -> String {
        match self {
            Self::Life(error) => error.cli_remedy(),
            Self::SteadyRounds { needed, .. } => format!("Use --repeat {needed} or more."),
            Self::TooSmall { needed, .. } => {
                format!("Use --size {} or more.", needed.display().si_short())
            }
            error => error.remedy(),
        }
    }
}

impl CliRemedy for ShardError {
    fn cli_remedy(&self) -> String {
        match self {
            Self::Plan(error) => error.cli_remedy(),
            Self::OutOfRange { of, .. } => format!("Give --shard 1/{of} to {of}/{of}."),
            Self::Steady => "Give every drive its own run: --matrix system=drive:NAME.".into(),
            Self::NoMatrix(_) => "Use --hosts N. The plan itself says what to combine.".into(),
            error => error.remedy(),
        }
    }
}

impl CliRemedy for SessionError {
    fn cli_remedy(&self) -> String {
        match self {
            Self::Target(error) => error.cli_remedy(),
            #[cfg(target_os = "linux")]
            Self::Served(error) => error.cli_remedy(),
            Self::Simulated(error) => error.cli_remedy(),
            Self::Unlock(error) => error.cli_remedy(),
            Self::Trial { source, .. } => source.cli_remedy(),
            Self::FileSystem(error) => error.cli_remedy(),
            Self::Plan(error) => error.cli_remedy(),
            error => error.remedy(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn full() -> BlockError {
        BlockError::NoSpace {
            needed: 2,
            available: 1,
        }
    }

    #[test]
    fn options_are_named_through_what_wraps_the_error() {
        let told =
            "Free some space, choose a smaller --size, or point --at to another file system.";
        let lost = BlockError::Lost {
            source: Arc::new(full()),
        };
        let deep = SessionError::Trial {
            workload: "w".into(),
            label: "l".into(),
            source: Box::new(TrialError::Queue(full())),
        };
        assert_eq!(lost.cli_remedy(), told);
        assert_eq!(VolumeError::Block(full()).cli_remedy(), told);
        assert_eq!(StorageError::Block(full()).cli_remedy(), told);
        assert_eq!(deep.cli_remedy(), told);
    }

    #[test]
    fn a_library_that_names_everything_is_repeated() {
        let error = VolumeError::Pim { pim: 3, most: 2 };
        assert_eq!(error.cli_remedy(), error.remedy());
        assert_eq!(
            BlockError::ReadOnly.cli_remedy(),
            BlockError::ReadOnly.remedy()
        );
    }
}
