//! [`VolumeError`]: what can be wrong with a volume.

mod made;
mod remedy;
mod verdict;

use made::also;
pub use verdict::Verdict;

use crate::bitlk::RecoveryDamage;
use crate::cryptoloop::UnknownDerivation;
use crate::judge::Finding;
use crate::plain::UnknownHash;
use crate::tcrypt::Family;
use crate::{Damage, Format, Given, Hash, Unfinished, format};

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

    /// The device has a header of LUKS, and the format that was asked for has none that is found.
    #[error("this is a {} volume, not {}", found.title(), format.title())]
    OtherFormat {
        /// The format of the header.
        found: Format,
        /// The format that was asked for.
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

    /// The header is one of LUKS, of a version that is not known.
    #[error("this is a LUKS volume of version {version}, which is not supported")]
    LuksVersion {
        /// The version.
        version: u16,
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

    /// A file with a startup key of BitLocker's is damaged.
    #[error("the startup key cannot be used: {damage}")]
    StartupKey {
        /// The damage.
        damage: Damage,
    },

    /// Another program has begun to change the volume, and only it can finish.
    #[error("{0}")]
    Unfinished(Unfinished),

    /// The partition is not a part of the encrypted system whose header is on its disk.
    #[error(
        "the partition is not a part of the encrypted system, which takes bytes {from} to {to} of the disk"
    )]
    NotOfSystem {
        /// The first byte of the system.
        from: u64,
        /// The byte behind the last.
        to: u64,
    },

    /// A part of the volume is encrypted, and its state could not be kept while it is written.
    #[error("the encryption or decryption of this {} volume has not finished", format.title())]
    Converting {
        /// The format.
        format: Format,
    },

    /// None of the data is encrypted, and what is written would not be either.
    #[error("the data of this {} volume are not encrypted, and what is written would not be either", format.title())]
    Unencrypted {
        /// The format.
        format: Format,
    },

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

    /// The keyslot holds a key that belongs to no data.
    #[error("keyslot {slot} is unbound: its key does not belong to the data")]
    UnboundKeyslot {
        /// Its number.
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

    /// A key file of loop-AES has lines that make no key.
    #[error("the key file has {lines} lines{}", if *even { "" } else { " of different lengths" })]
    KeyFileLines {
        /// How many, empty ones apart.
        lines: usize,
        /// Whether all are equally long.
        even: bool,
    },

    /// A key file of loop-AES is encrypted itself.
    #[error("the key file is encrypted with GnuPG")]
    EncryptedKeyFile,

    /// The hash gives less than a key.
    #[error("{hash} gives {} bytes, and the key has {key_bytes}", hash.digest_bytes())]
    ShortHash {
        /// The hash.
        hash: Hash,
        /// Length of the key, bytes.
        key_bytes: usize,
    },

    /// With large IVs, the first IV number is not that of a sector.
    #[error("a skip of {skip} sectors is not a multiple of the encryption sector size")]
    SkipAlignment {
        /// In units of 512 bytes.
        skip: u64,
        /// The unit: `skip` must be a multiple of it.
        unit: u64,
    },

    /// The JSON of a LUKS2 header has outgrown its area.
    #[error("the metadata would need {needed} bytes, and there is room for {room}")]
    MetadataFull {
        /// Bytes of JSON, and the zero that ends it.
        needed: u64,
        /// Bytes of the area.
        room: u64,
    },

    /// There is no free keyslot, or no space for its key material.
    #[error("there is no room for another keyslot")]
    NoFreeKeyslot,

    /// There is no free number for a token.
    #[error("there is no room for another token")]
    NoFreeToken,

    /// The header of another version, and the key material with it, do not fit
    /// before the data.
    #[error("there is no room before the data for the LUKS2 header and the key material after it")]
    ConversionRoom,

    /// The keyslot that was named is none that a volume of this format has.
    #[error("there is no keyslot {slot}: the highest number for this format is {last}")]
    KeyslotNumber {
        /// Its number.
        slot: u32,
        /// The largest number.
        last: u32,
    },

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

    /// A volume key opens no keyslot, and none was named.
    #[error("the volume key does not show which keyslot is meant")]
    UnnamedKeyslot,

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

    /// A reencryption in cryptsetup's first form, which nothing binds to the keys.
    #[error("the volume is being reencrypted in an old form that is not continued here")]
    FormerReencryption,

    /// The user asked to stop.
    #[error("interrupted")]
    Stopped,

    /// A copy of the header would be written over something else.
    #[error("the place for a copy of the header holds {name}")]
    Stranger {
        /// The thing found there, with its article if it has one.
        name: Box<str>,
    },

    /// Bytes were written, and other bytes were read back.
    #[error("{length} bytes were written at byte {offset}, and different bytes were read back")]
    Unverified {
        /// First byte.
        offset: u64,
        /// Length, bytes.
        length: u64,
    },

    /// A text for the header is too long for it.
    #[error("the {what} has {got} bytes, and there is room for {room}")]
    TextLength {
        /// Which text.
        what: &'static str,
        /// Its length, bytes.
        got: usize,
        /// The longest that is possible.
        room: usize,
    },

    /// A UUID that is none.
    #[error("`{text}` is not a UUID")]
    Uuid {
        /// The value that was given.
        text: String,
    },

    /// The device is too small for header and data.
    #[error("the device has {size} bytes, but the header and some data need {needed}")]
    TooSmall {
        /// Bytes that there are.
        size: u64,
        /// Bytes that are needed at least.
        needed: u64,
    },

    /// The data would begin in the header, or in its key material.
    #[error("the data of this {} volume would overlap its own header", format.title())]
    DataUponHeader {
        /// The format.
        format: Format,
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

    /// Argon2 with more memory than is allowed.
    #[error("the key derivation needs {memory_kib} KiB of memory, and the limit is {limit_kib}")]
    KdfMemory {
        /// The memory that was asked for, KiB.
        memory_kib: u32,
        /// The limit, KiB.
        limit_kib: u32,
    },

    /// Argon2 with more lanes than are allowed.
    #[error("the key derivation needs {lanes} lanes, and the limit is {limit}")]
    KdfLanes {
        /// The value that was asked for.
        lanes: u32,
        /// The limit.
        limit: u32,
    },

    /// Key slots whose derivations take longer together than is allowed.
    #[error(
        "all key slots together take about {} s on one core, and the limit is {} s",
        work.as_secs(), limit.as_secs()
    )]
    KdfAllWork {
        /// The work of all.
        work: Duration,
        /// The limit.
        limit: Duration,
    },

    /// A key derivation that its standard does not have.
    #[error("the key derivation has {got} {what}, and the minimum is {least}")]
    KdfParameter {
        /// Which parameter.
        what: &'static str,
        /// The value that was asked for.
        got: u64,
        /// The smallest value.
        least: u64,
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

    /// A PIM that VeraCrypt does not take.
    #[error("the PIM is {pim}, and the maximum is {most}")]
    Pim {
        /// The value that was given.
        pim: u32,
        /// The largest.
        most: u32,
    },

    /// A hidden volume that does not fit the outer one.
    #[error(
        "a hidden volume of {size} bytes is not possible: the maximum here is {most}, in steps of \
         {unit}"
    )]
    HiddenSize {
        /// The size that was asked for, bytes.
        size: u64,
        /// The largest, bytes.
        most: u64,
        /// The unit, bytes: the size must be a multiple of it.
        unit: u64,
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

    /// No key has this length.
    #[error("a key of {bits} bits is not possible")]
    KeyBits {
        /// The length that was given, bits.
        bits: usize,
    },

    /// No encryption sector has this size.
    #[error("encryption sectors of {bytes} bytes are not possible")]
    SectorBytes {
        /// The size that was given.
        bytes: u32,
    },

    /// No format has that name.
    #[error("{}", format::unknown(name))]
    UnknownFormat {
        /// The name.
        name: String,
    },

    /// A hash of that name is not known.
    #[error(transparent)]
    UnknownHash(#[from] UnknownHash),

    /// A key derivation of cryptoloop is not known by that name.
    #[error(transparent)]
    UnknownDerivation(#[from] UnknownDerivation),

    /// TrueCrypt or VeraCrypt have no key derivation of that name.
    #[error("unknown key derivation `{name}`")]
    UnknownPrf {
        /// The program.
        family: Family,
        /// The name.
        name: String,
    },

    /// BestCrypt's data can only be read by a guess, which was not allowed.
    #[error("BestCrypt's numbering of data sectors is not published")]
    Unpublished,

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

    /// A folder of key files has none.
    #[error("the folder {} has no key file", path.display())]
    NoKeyFile {
        /// The folder.
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

    /// The format has no header that says anything without the secret.
    #[error("{} has no header that can be read without its passphrase", format.article())]
    Silent {
        /// The format.
        format: Format,
    },

    /// The volume needs a secret, and none was given.
    #[error("{} needs a secret, and none was given", format.article())]
    NoSecret {
        /// The format.
        format: Format,
    },

    /// The file of a reencryption beside the volume is not the volume's.
    #[error("{} {why}", side.display())]
    Beside {
        /// The file.
        side: PathBuf,
        /// What shows it.
        why: String,
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

    /// A LUKS1 header has no room for the journal of a reencryption.
    #[error("a LUKS1 volume cannot be reencrypted in place: its header has no room for a journal")]
    NoJournal {
        /// Where the header is.
        header: PathBuf,
    },

    /// A header stands beside its volume, and belongs before its data.
    #[error("{} is a header of {} that an interrupted run left behind", side.display(), image.display())]
    LeftBehind {
        /// The file with the header.
        side: PathBuf,
        /// The volume.
        image: PathBuf,
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

    /// The data are encrypted as far as they went at the beginning, and are longer now.
    #[error("{} is encrypted up to byte {end}, and was made longer meanwhile", image.display())]
    Longer {
        /// The volume.
        image: PathBuf,
        /// Where the encrypted data end.
        end: u64,
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
