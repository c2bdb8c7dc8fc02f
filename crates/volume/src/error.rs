//! [`VolumeError`]: what can be wrong with a volume.

mod made;
mod remedy;
mod verdict;

use made::also;
pub(crate) use made::{
    TOO_MUCH, conversion_room, data_upon_header, impossible, in_place_of_copy, no_such_keyslot,
    standing, unbound_keyslot,
};
pub use verdict::Verdict;

use crate::bitlk::RecoveryDamage;
use crate::judge::Finding;
use crate::{Damage, Format, Given, Unfinished};

use block::BlockError;
use cipher::CipherError;
use std::io;
use std::path::PathBuf;
use std::time::Duration;
use thiserror::Error;

/// What to choose instead of something that a format lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Instead {
    /// One of these names.
    OneOf(Vec<String>),
    /// A cipher with blocks of 128 bits.
    WideBlocks,
    /// No PIM, or VeraCrypt.
    NoPim,
    /// PBKDF2 with SHA-256 in each keyslot.
    Pbkdf2,
    /// A new volume of this format, into which the data is copied.
    Copy(Format),
}

/// A keyslot that was not tried.
#[derive(Debug)]
pub struct Untried {
    /// Its number.
    pub slot: u32,
    /// Why.
    pub why: Box<VolumeError>,
}

/// Why a volume could not be opened, made or changed.
#[derive(Debug, Error)]
pub enum VolumeError {
    /// The cipher cannot be built as the mapping asks.
    #[error(transparent)]
    Cipher(#[from] CipherError),

    /// The device below failed or refused.
    #[error(transparent)]
    Block(#[from] BlockError),

    /// The device has no header of this format.
    #[error("this is not {}", format.article())]
    NotThis {
        /// The format that was asked for or looked for.
        format: Format,
    },

    /// The header cannot be used.
    #[error("the header of this {} volume is damaged: {damage}", format.title())]
    Header {
        /// The format.
        format: Format,
        /// The damage.
        damage: Damage,
    },

    /// The header is not what a change of it began from.
    #[error("another program has changed the header of this {} volume in the meantime", format.title())]
    HeaderChanged {
        /// The format.
        format: Format,
    },

    /// The format has this, and it is not built in.
    #[error("this {} volume uses {feature}, which is not supported", format.title())]
    Unsupported {
        /// The format.
        format: Format,
        /// The feature.
        feature: Box<str>,
    },

    /// The file or device ends before the header, or what it speaks of, does.
    #[error("this {} volume is cut off: it needs {needed} bytes, and the file or device has {got}", format.title())]
    Cut {
        /// The format.
        format: Format,
        /// The bytes that there must be.
        needed: u64,
        /// The bytes that there are.
        got: u64,
    },

    /// The header would not be one that cryptsetup reads.
    #[error("cryptsetup would refuse the new {} header: {damage}", format.title())]
    Unwritable {
        /// The format.
        format: Format,
        /// The rule that it would break.
        damage: Damage,
    },

    /// The passphrase or key file opens none of the keyslots that were tried.
    #[error("no keyslot opens with {given}")]
    NoKeyslotFits {
        /// The form of the secret that was tried.
        given: Given,
    },

    /// The passphrase or key file opens none of the keyslots that could be tried.
    #[error("none of the usable keyslots opens with this passphrase or key file{}", also(.untried))]
    KeyslotsUntried {
        /// Those that could not be tried, and why.
        untried: Vec<Untried>,
    },

    /// There is no keyslot of the data.
    #[error("this {} volume has no keyslot left for its data", format.title())]
    NoKeyslot {
        /// The format.
        format: Format,
    },

    /// There are keyslots of the data, and none that can be tried.
    #[error("none of the keyslots is usable{}", also(.untried))]
    NoUsableKeyslot {
        /// Why.
        untried: Vec<Untried>,
    },

    /// A keyslot with something in it that is unknown or wrong.
    #[error("keyslot {slot} cannot be used: {damage}")]
    UnusableKeyslot {
        /// Its number.
        slot: u32,
        /// The damage.
        damage: Damage,
    },

    /// A keyslot of low priority, which is tried only if it is named.
    #[error("keyslot {slot} is tried only if it is named")]
    IgnoredKeyslot {
        /// Its number.
        slot: u32,
    },

    /// The key material is not encrypted. Any passphrase opens it, and a program that can write the
    /// header can replace the key.
    #[error(
        "keyslot {slot} stores its key without encryption (cipher_null), so any passphrase would \
         open it"
    )]
    NullKeyslot {
        /// Its number.
        slot: u32,
    },

    /// The passphrase or key file opens none of a BitLocker volume's protectors.
    #[error("no protector opens with {given}; the volume has {}", if there.is_empty() { "none".to_owned() } else { there.join(", ") })]
    NoProtectorFits {
        /// The form of the secret that was tried.
        given: Given,
        /// The kinds of protectors that there are.
        there: Vec<&'static str>,
    },

    /// The text given as a recovery password is not one.
    #[error("the recovery password is mistyped: {damage}")]
    RecoveryPassword {
        /// The mistake in it.
        damage: RecoveryDamage,
    },

    /// Another program has begun to change the volume, and only it can finish.
    #[error("{0}")]
    Unfinished(Unfinished),

    /// The passphrase, with all key derivations and ciphers that were tried,
    /// decrypts no header.
    #[error("no header opens with this passphrase")]
    NoHeaderFits,

    /// The volume key given is not that of the volume.
    #[error("this is not the volume key of this volume")]
    WrongVolumeKey,

    /// A passphrase that is going to be set is empty. Anyone can open a volume that has one.
    #[error("the new passphrase is empty")]
    EmptyPassphrase,

    /// The keyslot that was named does not exist.
    #[error("keyslot {slot} holds no key")]
    EmptyKeyslot {
        /// The number that the user gave.
        slot: u32,
    },

    /// The secret is of a kind that the format cannot use.
    #[error("{} cannot be opened with {got}", format.article())]
    SecretKind {
        /// The format.
        format: Format,
        /// The value that was given.
        got: &'static str,
    },

    /// A passphrase or key file has a length that the format does not take.
    #[error("the {what} has {got} bytes, and {rule}")]
    SecretLength {
        /// The value that was given.
        what: &'static str,
        /// Its length, bytes.
        got: u64,
        /// The rule for the length.
        rule: Box<str>,
    },

    /// There is no free keyslot, or no space for its key material.
    #[error("there is no room for another keyslot")]
    NoFreeKeyslot,

    /// The keyslot that was named is in use.
    #[error("keyslot {slot} is in use")]
    KeyslotInUse {
        /// Its number.
        slot: u32,
    },

    /// Without the last keyslot, only a copy of the volume key opens the volume.
    #[error("keyslot {slot} is the last one: without it no passphrase opens the volume")]
    LastKeyslot {
        /// Its number.
        slot: u32,
    },

    /// The volume is being reencrypted, and this would not leave it so.
    #[error("the volume is being reencrypted")]
    Reencrypting,

    /// A crash has stopped a reencryption in the middle of a write.
    #[error("the reencryption of this volume was interrupted in the middle of a write")]
    RecoveryNeeded,

    /// The header tells of a reencryption, and who wrote that did not have the keys.
    #[error("the header describes a reencryption that is not bound to the volume's keys")]
    UnboundReencryption,

    /// A header of data that it says is not encrypted, and no keyslot that could confirm that.
    #[error("the header says that all data is decrypted, but no keyslot opens to confirm it")]
    Decrypted {
        /// The byte of the device where the data begins.
        offset: u64,
    },

    /// Data that are not those with which the reencryption began, of which a header in a file of
    /// its own tells.
    #[error("the header describes a reencryption of different data")]
    OtherData,

    /// A reencryption that the keys confirm, of a kind or in a state that is not known here.
    #[error("the header describes a reencryption that this program cannot continue")]
    ForeignReencryption,

    /// The user asked to stop.
    #[error("interrupted")]
    Stopped,

    /// Bytes were written, and other bytes were read back.
    #[error("{length} bytes were written at byte {offset}, and different bytes were read back")]
    Unverified {
        /// First byte.
        offset: u64,
        /// Length, bytes.
        length: u64,
    },

    /// The device is too small for header and data.
    #[error("the device has {size} bytes, but the header and some data need {needed}")]
    TooSmall {
        /// Bytes that there are.
        size: u64,
        /// Bytes that are needed at least.
        needed: u64,
    },

    /// The data area does not lie within the device.
    #[error(
        "the data area ({length} bytes from byte {offset}) does not fit into the device of \
         {device} bytes"
    )]
    DataArea {
        /// First byte of the data area.
        offset: u64,
        /// Length of the data area, bytes.
        length: u64,
        /// Size of the device, bytes.
        device: u64,
    },

    /// Offset or length of the data area is not a multiple of the sector size.
    #[error(
        "the data area ({length} bytes from byte {offset}) does not consist of whole {unit}-byte \
         sectors"
    )]
    DataAlignment {
        /// First byte of the data area.
        offset: u64,
        /// Length of the data area, bytes.
        length: u64,
        /// Sector size of the mapping or of the device, whichever is larger, bytes.
        unit: u32,
    },

    /// A key derivation that takes longer than is allowed.
    #[error(
        "the key derivation takes about {} s on one core, and the limit is {} s",
        work.as_secs(), limit.as_secs()
    )]
    KdfWork {
        /// Its work, as [`Kdf::work`](crate::Kdf::work) counts it.
        work: Duration,
        /// The limit.
        limit: Duration,
    },

    /// Something was chosen that the format does not have.
    #[error("{} has no {what}", format.title())]
    Lacks {
        /// The format.
        format: Format,
        /// The choice.
        what: Box<str>,
        /// What to choose instead.
        instead: Instead,
    },

    /// The format has no use for a parameter that was given.
    #[error("`{parameter}` has no meaning for {}", format.article())]
    Foreign {
        /// Its name in [`Parameters`](crate::Parameters).
        parameter: &'static str,
        /// The format.
        format: Format,
        /// The formats that have a use for it.
        formats: &'static [Format],
    },

    /// A file with key material cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },

    /// A key file has no content.
    #[error("the key file {} is empty", path.display())]
    EmptyKeyFile {
        /// The file.
        path: PathBuf,
    },

    /// The device has no signature of a volume.
    #[error("this has no signature of a volume{}", .holds.map(|name| format!(", and holds {name}")).unwrap_or_default())]
    NoSignature {
        /// Its content, if that has a name.
        holds: Option<&'static str>,
        /// Whether it has no content.
        is_blank: bool,
    },

    /// The start of a LUKS header was overwritten, and the rest of it is there.
    #[error("the volume has lost the start of its LUKS header")]
    StartLost,

    /// The volume needs a secret, and none was given.
    #[error("{} needs a secret, and none was given", format.article())]
    NoSecret {
        /// The format.
        format: Format,
    },

    /// Something would be lost.
    #[error("the device or file {0}")]
    Judged(Box<Finding>),

    /// What was chosen is not possible.
    #[error("{what}")]
    Impossible {
        /// What, in words.
        what: String,
        /// What to choose instead: a sentence.
        instead: String,
    },

    /// There is no room for what is going to be written.
    #[error("there is no room for the data to write: {0}")]
    NoRoom(#[source] BlockError),

    /// A new volume was written in part over what was there.
    #[error("{error}; it is overwritten in part, and holds no finished volume")]
    Overwritten {
        /// Why it was not finished.
        error: Box<VolumeError>,
    },

    /// Something that is there must be finished or moved away first.
    #[error("{what}")]
    Standing {
        /// What, in words.
        what: String,
        /// What to do about it: a sentence.
        instead: String,
    },

    /// The data were converted in part. The volume opens, and the same again continues.
    #[error("{error}; {}", self.change().unwrap_or_default())]
    Partly {
        /// Why it was not finished.
        error: Box<VolumeError>,
        /// The volume.
        image: PathBuf,
        /// The file with the keys of the volume, if they are not in the volume itself.
        keys: Option<PathBuf>,
    },

    /// A header and its copy were to be written, and it failed when that had begun.
    #[error("{error}; {}", self.change().unwrap_or_default())]
    Rewritten {
        /// Why it failed.
        error: Box<VolumeError>,
    },

    /// A file beside the volume cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    CannotWrite {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },

    /// There is no folder for backups.
    #[error("no folder is known in which to keep the header before it is changed")]
    NoBackupFolder,

    /// The header could not be kept before it is changed.
    #[error("cannot keep the header in {} before it is changed", folder.display())]
    NotKept {
        /// The folder.
        folder: PathBuf,
        /// The system's error.
        source: io::Error,
    },

    /// The caller of an operation could not open a device, or give what it was asked for.
    #[error("{0}")]
    Caller(Box<dyn std::error::Error + Send + Sync>),

    /// This process was forked from the one that opened the volume, or that was given the secret.
    #[error("{what} belongs to another process, from which this one was forked")]
    Forked {
        /// The volume, the secret, or a server.
        what: &'static str,
    },

    /// There is not as much memory as Argon2 needs.
    #[error("there is not enough memory for a key derivation of {memory_kib} KiB")]
    OutOfMemory {
        /// The memory that it needs, KiB.
        memory_kib: u32,
    },
}
