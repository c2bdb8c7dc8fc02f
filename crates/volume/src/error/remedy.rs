//! What the user can do about a [`VolumeError`].
//!
//! Parameters stand in backquotes, as `key_slot`; the program prints them as its options.

use super::{TOO_MUCH, VolumeError};
use crate::bitlk::ProtectorKind;
use crate::format::is_unsupported;
use crate::{Format, Instead};
use block::signature::Wrapped;

impl VolumeError {
    /// The remedy, in one or two sentences.
    pub fn remedy(&self) -> String {
        match self {
            Self::Cipher(error) => return error.remedy(),
            Self::Block(error) => error.remedy(),
            Self::NotThis { .. } => {
                "Give the right `format`, or name the file that holds the header with `header`."
            }
            Self::Header {
                format: Format::Luks2,
                ..
            } => {
                "Nothing was changed. Try `cryptmark volume header repair`, then a backup of the \
                 header."
            }
            Self::Header { .. } => "Nothing was changed. Restore the header from a backup.",
            Self::Cut { .. } => {
                "Nothing was changed. Check that this is the right file and that it is complete."
            }
            Self::Unwritable { .. } => {
                "Nothing was changed. `cryptmark volume info` shows the header."
            }
            Self::Unsupported { .. } => {
                "Nothing was changed. Open the volume with the program that made it."
            }
            Self::KeyslotsUntried { .. } => {
                "Check the passphrase. If it belongs to a keyslot named here, open the volume with \
                 the program that made that keyslot."
            }
            Self::NoKeyslot { .. } => {
                "Give the `volume_key`, or restore a header backup that still has keyslots."
            }
            Self::UnusableKeyslot { .. } | Self::NoUsableKeyslot { .. } => {
                "Nothing was changed. Give a passphrase or key file of another keyslot, or open \
                 the volume with the program that made this one."
            }
            Self::IgnoredKeyslot { slot } => return format!("Name it with `key_slot` {slot}."),
            Self::NullKeyslot { .. } => {
                "Open the volume with another keyslot or the `volume_key`, and remove this \
                 keyslot."
            }
            Self::NoHeaderFits => {
                "Check the passphrase, the key files and the PIM. Try the other of `format` tcrypt \
                 and `format` veracrypt. Add `tcrypt_hidden`, `tcrypt_backup` or `tcrypt_system` if \
                 the header is one of those. If a reencryption was interrupted, put its file \
                 IMAGE.cryptmark-header beside the volume, or name it with `header`."
            }
            Self::NoProtectorFits { there, .. }
                if there.is_empty() || there.contains(&ProtectorKind::ClearKey.name()) =>
            {
                "Check what you gave, or give no secret: the volume opens without one."
            }
            Self::NoProtectorFits {
                given: crate::Given::Other,
                ..
            } => {
                "Check what you gave. `cryptmark volume info` shows each protector and what opens \
                 it."
            }
            Self::NoProtectorFits { given, .. } | Self::NoKeyslotFits { given } => given.remedy(),
            Self::RecoveryPassword { .. } => {
                "Compare it with the printed copy or the copy in the account."
            }
            Self::Unfinished(unfinished) => return unfinished.remedy(),
            Self::WrongVolumeKey => "Give the `volume_key` of this volume.",
            Self::EmptyPassphrase => {
                "Give a passphrase, or allow an empty one with `empty_passphrase`."
            }
            Self::EmptyKeyslot { .. } => "`cryptmark volume info` lists the keyslots.",
            Self::SecretKind { format, .. } | Self::NoSecret { format } => format.secrets(),
            Self::SecretLength { .. } => {
                "Check that it is the right file, that it is complete, and that its offset and \
                 size are right."
            }
            Self::DataArea { .. } => {
                "Check that it is the right file, that it is complete, and that the offset and \
                 size you gave are right."
            }
            Self::DataAlignment { unit, .. } => {
                return format!("Give an offset and a size that are multiples of {unit}.");
            }
            Self::NoFreeKeyslot => "Remove a keyslot that you don't need any more.",
            Self::HeaderChanged { .. } => {
                "The other program's change was kept, and yours was not made. Run the command \
                 again."
            }
            Self::KeyslotInUse { .. } => {
                "Choose a free `new_key_slot`, or omit it. `cryptmark volume info` shows the \
                 keyslots in use."
            }
            Self::LastKeyslot { .. } => {
                "Add another key first. Give `last_key` if the data may be lost."
            }
            Self::Reencrypting => {
                "Finish the reencryption first, with `cryptmark volume reencrypt`."
            }
            Self::RecoveryNeeded => {
                "Finish the reencryption first, with `cryptmark volume reencrypt`. Until then, \
                 `read_only` and `cryptmark volume export` may read it."
            }
            Self::UnboundReencryption => {
                "Nothing was changed now. The header was changed earlier without its keys. Try a \
                 backup of the header with `header`."
            }
            Self::Decrypted { offset } => {
                return format!(
                    "Check the passphrase. If it is right, look at the data from byte {offset} on, \
                     for instance with `blkid --probe --offset {offset}`. If the data is decrypted, \
                     the header is not needed any more."
                );
            }
            Self::OtherData => {
                "Name the volume with which the reencryption began. If all of it was restored from a \
                 backup since then, move the file with the reencryption's header away, and keep it \
                 until you have read the data. If only a header was put back, do not: the data need \
                 that file. If another program has written to the data, finish with that program."
            }
            Self::ForeignReencryption => {
                "Nothing was changed. Finish it with `cryptsetup reencrypt --resume-only`."
            }
            Self::Stopped => "Run the command again to continue from here.",
            Self::Unverified { .. } => {
                "The device is faulty or reports false results. Copy its data to another device."
            }
            Self::TooSmall { .. } => {
                "Use a larger device, a smaller `offset`, or a detached `header`."
            }
            Self::KdfWork { .. } => TOO_MUCH,
            Self::Lacks { instead, .. } => return instead.remedy(),
            Self::Foreign { formats, .. } => {
                let names: Vec<_> = formats.iter().map(|format| format.name()).collect();
                return format!("Omit it; it is for {}.", names.join(", "));
            }
            Self::Unreadable { .. } => "Check the path and its permissions.",
            Self::EmptyKeyFile { .. } => "Check that it is the right file.",
            Self::NoSignature { holds, .. } => unsigned(*holds),
            Self::StartLost => "The rest may be enough: run `cryptmark volume header repair`.",
            Self::Judged(finding) => return finding.remedy(),
            Self::Impossible { instead, .. } | Self::Standing { instead, .. } => instead,
            Self::Partly { error, .. } => return self.going_on(&error.remedy()),
            Self::Rewritten { error } => {
                return format!(
                    "{} Then try the new secret, and the one of before: one of them opens the \
                     header or its copy. Repair the header with it: `cryptmark volume header repair`.",
                    error.remedy()
                );
            }
            Self::CannotWrite { .. } => {
                "Check the permissions and the free space, and run it again."
            }
            Self::NoBackupFolder => {
                "Set HOME or XDG_STATE_HOME, or give `no_header_backup` to skip the backup."
            }
            Self::NotKept { .. } => {
                "Nothing was changed. Make room there, set XDG_STATE_HOME to another folder, or give \
                 `no_header_backup` to skip the backup."
            }
            Self::Caller(_) => "Mend that, and run it again.",
            Self::NoRoom(_) => "Make room on the disk that has the file. Nothing was changed.",
            Self::Overwritten { .. } => {
                "Make the volume again, and accept the loss of what is left."
            }
            Self::Forked { .. } => "Give the secret and open the volume in each process that uses it.",
            Self::OutOfMemory { memory_kib } => {
                return format!(
                    "Open the volume on a machine with more than {} MiB of free memory, or change \
                     the keyslot there.",
                    memory_kib >> 10
                );
            }
        }
        .to_owned()
    }

    /// What to do after a part of the data was converted; `first` is the remedy of what went wrong.
    fn going_on(&self, first: &str) -> String {
        let Self::Partly { error, keys, .. } = self else {
            return first.to_owned();
        };
        let kept = match keys {
            None => "The header keeps both keys.".to_owned(),
            Some(path) => format!(
                "Keep {} with the volume: without that file, nothing opens it.",
                path.display()
            ),
        };
        match **error {
            Self::Stopped => format!("{kept} Run it again to continue."),
            _ => format!("{kept} {first} Run it again to continue."),
        }
    }
}

/// What to do about a file that holds this, and no signature of a volume.
fn unsigned(holds: Option<&str>) -> &'static str {
    /// Words in the names of contents that have parts.
    const PARTED: [&str; 3] = ["partition", "an LVM physical volume", "software RAID"];
    let Some(what) = holds else {
        return "Name its `format` (plain, tcrypt, veracrypt, cryptoloop and loopaes volumes have no \
                signature), or the file with its `header`. An interrupted encryption or decryption \
                needs its file IMAGE.cryptmark-header beside the volume.";
    };
    match Wrapped::named(what) {
        Some(Wrapped::Archive(_)) => "Unpack it, and name the unpacked file.",
        Some(Wrapped::Image { .. }) => {
            "Convert it with `qemu-img convert -O raw`, or serve it with `qemu-nbd` and give the URI \
             of the export."
        }
        None if is_unsupported(what) => "Open it with the system that made it.",
        None if PARTED.iter().any(|word| what.contains(word)) => {
            "List its parts with `cryptmark volume find`, and name one with `partition`."
        }
        None => {
            "Name the right file; if it is encrypted all the same, its `format`, or the file with its \
             `header`."
        }
    }
}

impl Instead {
    /// The remedy, in one or two sentences.
    fn remedy(&self) -> String {
        match self {
            Self::OneOf(names) => return format!("Use one of: {}.", names.join(", ")),
            Self::WideBlocks => "Choose a cipher with 128-bit blocks, such as AES.",
            Self::NoPim => "Omit the PIM, or give `format` veracrypt.",
            Self::Pbkdf2 => {
                "Give each keyslot PBKDF2 first: `cryptmark volume passwd --pbkdf pbkdf2 --hash \
                 sha256`."
            }
            Self::Copy(format) => {
                return format!(
                    "Nothing was changed. Make a {} volume, and copy the data with `cryptmark volume \
                     export` and `cryptmark volume import`.",
                    format.title()
                );
            }
        }
        .to_owned()
    }
}
