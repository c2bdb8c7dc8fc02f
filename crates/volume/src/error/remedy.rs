//! What the user can do about a [`VolumeError`].

use super::VolumeError;
use crate::bitlk::ProtectorKind;
use crate::tcrypt::Prf;
use crate::{Format, Given, Instead, format};

impl VolumeError {
    /// The remedy, in one sentence.
    pub fn remedy(&self) -> String {
        match self {
            Self::Cipher(error) => error.remedy(),
            Self::Block(error) => error.remedy().to_string(),
            Self::NotThis { .. } => {
                "Give the right type, or name the file that holds the header."
                    .to_owned()
            }
            Self::OtherFormat { found, .. } => format!("Omit the type, or give {found}."),
            Self::Header {
                format: Format::Luks2,
                ..
            } => "Nothing was changed. Repair the header, or restore it from a backup.".to_owned(),
            Self::Header { .. } => {
                "Nothing was changed. Restore the header from a backup.".to_owned()
            }
            Self::Cut { .. } => {
                "Nothing was changed. Check that this is the right file and that it is complete."
                    .to_owned()
            }
            Self::LuksVersion { .. } => {
                "Nothing was changed. Open the volume with a program that supports this version."
                    .to_owned()
            }
            Self::Unwritable { .. } => {
                "Nothing was changed. Look at the present header.".to_owned()
            }
            Self::Unsupported { .. } => {
                "Nothing was changed. Open the volume with the program that made it.".to_owned()
            }
            Self::NoKeyslotFits { given } => given.remedy().to_owned(),
            Self::KeyslotsUntried { .. } => {
                "Check the passphrase. If it belongs to a keyslot named here, open the volume with \
                 the program that made that keyslot."
                    .to_owned()
            }
            Self::NoKeyslot { .. } => {
                "Give the volume key, or restore a header backup that still has keyslots."
                    .to_owned()
            }
            Self::UnusableKeyslot { .. } | Self::NoUsableKeyslot { .. } => {
                "Nothing was changed. Give a passphrase or key file of another keyslot, or open \
                 the volume with the program that made this one."
                    .to_owned()
            }
            Self::IgnoredKeyslot { slot } => format!("Name keyslot {slot} explicitly."),
            Self::NullKeyslot { .. } => {
                "Open the volume with another keyslot or the volume key, and remove this keyslot."
                    .to_owned()
            }
            Self::NoHeaderFits => {
                "Check the passphrase, the key files and the PIM. Try both TrueCrypt and VeraCrypt. \
                 Try the header of a hidden volume, the backup, or the header of an encrypted \
                 system."
                    .to_owned()
            }
            Self::NoProtectorFits { there, .. } if opens_by_itself(there) => {
                "Check what you gave, or give no secret: the volume opens without one.".to_owned()
            }
            Self::NoProtectorFits {
                given: Given::Other,
                ..
            } => {
                "Check what you gave. The header lists each protector and what opens it."
                .to_owned()
            }
            Self::NoProtectorFits { given, .. } => given.remedy().to_owned(),
            Self::RecoveryPassword { .. } => "Compare it with the printed copy or the copy in the \
                                              account."
                .to_owned(),
            Self::StartupKey { .. } => {
                "Check that it is the right file, that its name ends in .BEK, and that it is \
                 complete."
                    .to_owned()
            }
            Self::Converting { .. } => {
                "Open the volume for reading only, or let Windows finish.".to_owned()
            }
            Self::Unfinished(unfinished) => unfinished.remedy(),
            Self::NotOfSystem { .. } => "Name another partition.".to_owned(),
            Self::Unencrypted { .. } => {
                "Open the volume for reading only. To write, encrypt it with Windows first.".to_owned()
            }
            Self::WrongVolumeKey => "Give the volume key of this volume.".to_owned(),
            Self::EmptyPassphrase => {
                "Give a passphrase, or allow an empty one explicitly.".to_owned()
            }
            Self::UnnamedKeyslot => "Name the keyslot.".to_owned(),
            Self::EmptyKeyslot { .. } => "Name a keyslot that is in use.".to_owned(),
            Self::UnboundKeyslot { .. } => {
                "Name no keyslot, or one that is bound to the data.".to_owned()
            }
            Self::SecretKind { format, .. } => format.secrets().to_owned(),
            Self::SecretLength { .. } => {
                "Check that it is the right file, that it is complete, and that its offset and \
                 size are right."
                    .to_owned()
            }
            Self::DataUponHeader { .. } => {
                "If this is a detached header, name the file with the data as the volume, and this \
                 file as its header."
                    .to_owned()
            }
            Self::DataArea { .. } => {
                "Check that it is the right file, that it is complete, and that the offset and \
                 size you gave are right."
                    .to_owned()
            }
            Self::DataAlignment { unit, .. } => {
                format!("Give an offset and a size that are multiples of {unit}.")
            }
            Self::MetadataFull { .. } => {
                "Nothing was changed. Remove a token or a keyslot first.".to_owned()
            }
            Self::NoFreeKeyslot => "Remove a keyslot that you don't need any more.".to_owned(),
            Self::NoFreeToken => "Remove a token that you don't need any more.".to_owned(),
            Self::ConversionRoom => {
                "Remove a keyslot that you don't need any more. Or make a LUKS2 volume and copy \
                 the data."
                    .to_owned()
            }
            Self::HeaderChanged { .. } => {
                "The other program's change was kept, and yours was not made. Run the command \
                 again."
                    .to_owned()
            }
            Self::KeyslotInUse { .. } => {
                "Choose a free keyslot, or omit its number."
                    .to_owned()
            }
            Self::KeyslotNumber { .. } => "Choose another number, or omit it.".to_owned(),
            Self::LastKeyslot { .. } => {
                "Add another key first, or confirm that the data may be lost.".to_owned()
            }
            Self::Reencrypting | Self::RecoveryNeeded => {
                "Finish the reencryption first.".to_owned()
            }
            Self::UnboundReencryption => {
                "Nothing was changed now. The header was changed earlier without its keys. Try a \
                 backup of the header."
                    .to_owned()
            }
            Self::Decrypted { offset } => format!(
                "Check the passphrase. If it is right, look at the data from byte {offset} on, for \
                 instance with `blkid --probe --offset {offset}`. If the data is decrypted, the \
                 header is not needed any more."
            ),
            Self::OtherData => {
                "Name the volume with which the reencryption began. If all of it was restored from a \
                 backup since then, move the file with the reencryption's header away, and keep it \
                 until you have read the data. If only a header was put back, do not: the data need \
                 that file. If another program has written to the data, finish with that program."
                    .to_owned()
            }
            Self::ForeignReencryption => {
                "Nothing was changed. Finish it with `cryptsetup reencrypt --resume-only`."
                    .to_owned()
            }
            Self::FormerReencryption => "Finish it with cryptsetup 2.4 or newer: run `cryptsetup \
                                         repair`, then run this command again."
                .to_owned(),
            Self::Stranger { .. } => {
                "Nothing was changed. If that may be overwritten, repair the header first, and \
                 confirm the loss."
                    .to_owned()
            }
            Self::Stopped => "Run the command again to continue from here.".to_owned(),
            Self::Unverified { .. } => {
                "The device is faulty or reports false results. Copy its data to another device."
                    .to_owned()
            }
            Self::TextLength { .. } => "Give a shorter text.".to_owned(),
            Self::Uuid { .. } => {
                "Give a UUID such as 123e4567-e89b-42d3-a456-426614174000, or none for a random one."
                    .to_owned()
            }
            Self::TooSmall { .. } => {
                "Use a larger device, a smaller offset, or a detached header.".to_owned()
            }
            Self::KeyFileLines { .. } => {
                "Give a key file with 1, 64 or 65 lines of equal length.".to_owned()
            }
            Self::EncryptedKeyFile => {
                "Decrypt the key file first, for instance with `gpg -d`, and give the result."
                    .to_owned()
            }
            Self::ShortHash { .. } => "Choose a longer hash or a shorter key.".to_owned(),
            Self::SkipAlignment { unit, .. } => {
                format!("Skip a multiple of {unit} sectors of 512 bytes.")
            }
            Self::KdfWork { .. } | Self::KdfMemory { .. } | Self::KdfLanes { .. } => {
                "Do not open another person's volume that needs so much. If the volume is yours, \
                 change the key slot with the program that made it."
                    .to_owned()
            }
            Self::KdfAllWork { .. } => {
                "Name the keyslot of your passphrase, so that no other keyslot is tried."
                    .to_owned()
            }
            Self::Lacks { instead, .. } => instead.remedy(),
            Self::Foreign { formats, .. } => {
                let names: Vec<_> = formats.iter().map(|format| format.name()).collect();
                format!("Omit it; it is for {}.", names.join(", "))
            }
            Self::KeyBits { .. } => "Give a multiple of 8, such as 256.".to_owned(),
            Self::SectorBytes { .. } => "Give 512, 1024, 2048 or 4096.".to_owned(),
            Self::UnknownFormat { name } => format::unknown_remedy(name),
            Self::UnknownHash(error) => error.remedy(),
            Self::UnknownDerivation(error) => error.remedy(),
            Self::UnknownPrf { family, .. } => {
                let names: Vec<_> = Prf::all(*family).iter().map(|prf| prf.name()).collect();
                let title = family.format().title();
                format!("{title} has {}.", names.join(", "))
            }
            Self::Unpublished => "Allow a guessed numbering to read the data.".to_owned(),
            Self::Unreadable { .. } => "Check the path and its permissions.".to_owned(),
            Self::EmptyKeyFile { .. } => "Check that it is the right file.".to_owned(),
            Self::NoKeyFile { .. } => "Check that it is the right folder: files whose names begin \
                                       with a dot do not count."
                .to_owned(),
            Self::NoSignature { .. } => {
                "Name its format. Plain, TrueCrypt, VeraCrypt, cryptoloop and loop-AES volumes \
                 have no signature."
                    .to_owned()
            }
            Self::StartLost => "Repair the header: its remains may suffice.".to_owned(),
            Self::Silent { .. } => "Open the volume.".to_owned(),
            Self::NoSecret { format } => format.secrets().to_owned(),
            Self::Beside { .. } => {
                "Find out who made that file. Move it away if it does not belong to the volume; \
                 otherwise, name it as the header."
                    .to_owned()
            }
            Self::Judged(finding) => finding.remedy(),
            Self::Impossible { instead, .. } | Self::Standing { instead, .. } => instead.clone(),
            Self::NoJournal { .. } => "Convert it to LUKS2 first.".to_owned(),
            Self::LeftBehind { .. } => {
                "Reencrypt it again first: that puts the header where it belongs.".to_owned()
            }
            Self::Partly { error, .. } => self.going_on(&error.remedy()),
            Self::Rewritten { error } => format!(
                "{} Then try the new secret, and the one of before: one of them opens the header or \
                 its copy. Repair the header with it.",
                error.remedy()
            ),
            Self::Longer { .. } => {
                "The data behind that byte are unchanged. Copy them, and cut the file.".to_owned()
            }
            Self::CannotWrite { .. } => {
                "Check the permissions and the free space, and run it again.".to_owned()
            }
            Self::NoBackupFolder => "Name a folder, or keep no backup.".to_owned(),
            Self::NotKept { .. } => {
                "Nothing was changed. Make room there, or keep no backup.".to_owned()
            }
            Self::Caller(_) => "Mend that, and run it again.".to_owned(),
            Self::NoRoom(_) => {
                "Make room on the disk that has the file. Nothing was changed.".to_owned()
            }
            Self::Overwritten { .. } => {
                "Make the volume again, and accept the loss of what is left.".to_owned()
            }
            Self::Forked { .. } => {
                "Give the secret and open the volume in each process that uses it.".to_owned()
            }
            Self::HiddenSize { .. } => {
                "Choose a size that leaves room for the data of the outer volume.".to_owned()
            }
            Self::Pim { .. } => {
                "Give the PIM with which the volume was made. Omit it if the volume has none."
                    .to_owned()
            }
            Self::OutOfMemory { memory_kib } => format!(
                "Open the volume on a machine with more than {} MiB of free memory, or change the \
                 keyslot there.",
                memory_kib >> 10
            ),
            Self::KdfParameter { what, least, .. } => {
                format!("Give at least {least} {what}. A header with less is damaged.")
            }
        }
    }

    /// What to do after a part of the data was converted; `first` is the remedy of what went wrong.
    #[doc(hidden)]
    pub fn going_on(&self, first: &str) -> String {
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

/// Whether a BitLocker volume with these kinds of protectors needs no secret.
fn opens_by_itself(there: &[&str]) -> bool {
    there.is_empty() || there.contains(&ProtectorKind::ClearKey.name())
}

impl Instead {
    /// The remedy, in one or two sentences.
    fn remedy(&self) -> String {
        match self {
            Self::OneOf(names) => format!("Use one of: {}.", names.join(", ")),
            Self::WideBlocks => "Choose a cipher with 128-bit blocks, such as AES.".to_owned(),
            Self::NoPim => "Omit the PIM, or choose VeraCrypt.".to_owned(),
            Self::Pbkdf2 => "Give each keyslot PBKDF2 with SHA-256 first.".to_owned(),
            Self::Copy(format) => format!(
                "Nothing was changed. Make a {} volume, and copy the data.",
                format.title()
            ),
        }
    }
}
