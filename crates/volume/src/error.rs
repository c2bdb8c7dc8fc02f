//! [`VolumeError`]: what can be wrong with a volume.

use crate::bitlk::RecoveryDamage;
use crate::damage::printable;
use crate::{Damage, Format, Given, Hash, Secret};
use block::BlockError;
use cipher::CipherError;
use thiserror::Error;

/// What an error means to the user, as the program's exit codes tell it apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The operation was possible and failed.
    Failed,
    /// What was given cannot be used: options, a header, a file.
    BadInput,
    /// The passphrase or key fits nothing.
    WrongSecret,
    /// Refused, because data would be lost.
    Protected,
    /// Stopped by the user.
    Interrupted,
}

/// A keyslot that was not tried.
#[derive(Debug)]
pub struct Untried {
    /// Its number.
    pub slot: u32,
    /// Why.
    pub why: Box<VolumeError>,
}

/// The keyslots that were not tried, behind another sentence.
fn also(untried: &[Untried]) -> String {
    const MOST: usize = 3;
    let named = |untried: &Untried| match &*untried.why {
        VolumeError::UnusableKeyslot { slot, damage } => format!("; keyslot {slot}: {damage}"),
        named @ (VolumeError::IgnoredKeyslot { .. } | VolumeError::NullKeyslot { .. }) => {
            format!("; {named}")
        }
        why => format!("; keyslot {}: {why}", untried.slot),
    };
    let mut text: String = untried.iter().take(MOST).map(named).collect();
    if untried.len() > MOST {
        text += &format!("; and {} more", untried.len() - MOST);
    }
    text
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

    /// There is no header of this format.
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
        /// What is wrong with it.
        damage: Damage,
    },

    /// The header is not what a change of it began from.
    #[error("another program has changed the header of this {} volume meanwhile", format.title())]
    HeaderChanged {
        /// The format.
        format: Format,
    },

    /// The format has this, and it is not built in.
    #[error("this {} volume uses {feature}, which is not supported", format.title())]
    Unsupported {
        /// The format.
        format: Format,
        /// What it uses.
        feature: Box<str>,
    },

    /// The file or device ends before the header, or what it speaks of, does.
    #[error("this {} volume is cut off: it needs {needed} bytes, and there are {got}", format.title())]
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
    #[error("the {} header would be one that cryptsetup refuses: {damage}", format.title())]
    Unwritable {
        /// The format.
        format: Format,
        /// The rule that it would break.
        damage: Damage,
    },

    /// The passphrase or key file opens none of the keyslots that were tried.
    #[error("no keyslot opens with {given}")]
    NoKeyslotFits {
        /// What was tried.
        given: Given,
    },

    /// The passphrase or key file opens none of the keyslots that could be tried.
    #[error("no keyslot that can be tried opens with this passphrase or key file{}", also(.untried))]
    KeyslotsUntried {
        /// Those that could not be tried, and why.
        untried: Vec<Untried>,
    },

    /// There is no keyslot of the data.
    #[error("this {} volume has no keyslot left that opens its data", format.title())]
    NoKeyslot {
        /// The format.
        format: Format,
    },

    /// There are keyslots of the data, and none that can be tried.
    #[error("none of the keyslots can be tried{}", also(.untried))]
    NoUsableKeyslot {
        /// Why.
        untried: Vec<Untried>,
    },

    /// A keyslot with something in it that is unknown or wrong.
    #[error("keyslot {slot} cannot be used: {damage}")]
    UnusableKeyslot {
        /// Its number.
        slot: u32,
        /// What that is.
        damage: Damage,
    },

    /// A keyslot of low priority, which is tried only if it is named.
    #[error("keyslot {slot} is tried only if it is named")]
    IgnoredKeyslot {
        /// Its number.
        slot: u32,
    },

    /// The key material is not encrypted: any passphrase opens it, and whoever
    /// can write the header can put a key of his own there.
    #[error(
        "keyslot {slot} keeps its key without encryption (cipher_null), so that any passphrase would open it"
    )]
    NullKeyslot {
        /// Its number.
        slot: u32,
    },

    /// The passphrase or key file opens none of a BitLocker volume's protectors.
    #[error("no protector opens with {given}; the volume has {}", there.join(", "))]
    NoProtectorFits {
        /// What was tried.
        given: Given,
        /// The kinds of protectors that there are.
        there: Vec<&'static str>,
    },

    /// What is meant as a recovery password is none.
    #[error("the recovery password is mistyped: {damage}")]
    RecoveryPassword {
        /// Where.
        damage: RecoveryDamage,
    },

    /// A file with a startup key of BitLocker's is damaged.
    #[error("the startup key cannot be used: {damage}")]
    StartupKey {
        /// What is wrong with it.
        damage: Damage,
    },

    /// A part of the volume is encrypted, and its state could not be kept while it is written.
    #[error("this {} volume is being encrypted or decrypted, and that has not ended", format.title())]
    Converting {
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

    /// The keyslot that was named does not exist.
    #[error("keyslot {slot} holds no key")]
    EmptyKeyslot {
        /// The number that the user gave.
        slot: u32,
    },

    /// The keyslot holds a key that belongs to no data.
    #[error("keyslot {slot} is unbound: its key belongs to no data")]
    UnboundKeyslot {
        /// Its number.
        slot: u32,
    },

    /// The secret is of a kind that the format cannot use.
    #[error("{} cannot be opened with {got}", format.article())]
    SecretKind {
        /// The format.
        format: Format,
        /// What was given.
        got: &'static str,
    },

    /// A passphrase or key file has a length that the format does not take.
    #[error("the {what} has {got} bytes, and {rule}")]
    SecretLength {
        /// What was given.
        what: &'static str,
        /// Its length, bytes.
        got: u64,
        /// What would do.
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
    #[error("a skip of {skip} sectors is not made of whole encryption sectors")]
    SkipAlignment {
        /// In units of 512 bytes.
        skip: u64,
        /// What it must be a multiple of.
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
    #[error("there is no room before the data to move the key material behind LUKS2's header")]
    ConversionRoom,

    /// The keyslot that was named is none that a volume of this format has.
    #[error("there is no keyslot {slot}: the last one of such a volume is {last}")]
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

    /// Other keyslots than the one that was opened would be lost.
    #[error("{count} more {} would be lost, because the secret for {} was not given", if *count == 1 { "keyslot" } else { "keyslots" }, if *count == 1 { "it" } else { "them" })]
    OtherKeyslots {
        /// How many.
        count: usize,
    },

    /// The volume is being reencrypted, and this would not leave it so.
    #[error("the volume is being reencrypted")]
    Reencrypting,

    /// A crash has stopped a reencryption in the middle of a write.
    #[error("the reencryption of this volume was stopped in the middle of a write")]
    RecoveryNeeded,

    /// The header tells of a reencryption, and who wrote that did not have the keys.
    #[error("the header tells of a reencryption that is not bound to the volume's keys")]
    UnboundReencryption,

    /// A header of data that it says is not encrypted, and no keyslot that could confirm that.
    #[error("the header says that all data is decrypted, and no keyslot opens to confirm that")]
    Decrypted {
        /// The byte of the device where the data begins.
        offset: u64,
    },

    /// Data that are not those with which the reencryption began, of which a header in a file of
    /// its own tells.
    #[error("the header tells of a reencryption of other data than these")]
    OtherData,

    /// A reencryption that the keys confirm, of a kind or in a state that is not known here.
    #[error("the header tells of a reencryption that this program cannot go on with")]
    ForeignReencryption,

    /// A reencryption in a form that this version does not go on with.
    #[error("the volume is being reencrypted in a form that is not written any more")]
    FormerReencryption {
        /// The program that goes on with it, and how.
        program: &'static str,
    },

    /// The user asked to stop.
    #[error("interrupted")]
    Stopped,

    /// A copy of the header would be written over something else.
    #[error("where a copy of the header belongs, there is {name}")]
    Stranger {
        /// What is there, with its article where it has one.
        name: Box<str>,
    },

    /// What was written was read back as something else.
    #[error("{length} bytes at byte {offset} were written, and read back as something else")]
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
        /// What was given.
        text: String,
    },

    /// The device is too small for header and data.
    #[error("the device has {size} bytes, and {needed} are needed for the header and some data")]
    TooSmall {
        /// Bytes that there are.
        size: u64,
        /// Bytes that are needed at least.
        needed: u64,
    },

    /// The data would begin in the header, or in its key material.
    #[error("the data of this {} volume would lie upon its own header", format.title())]
    DataUponHeader {
        /// The format.
        format: Format,
    },

    /// The data area does not lie within the device.
    #[error(
        "the data area ({length} bytes from {offset}) does not fit the device of {device} bytes"
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
    #[error("the data area ({length} bytes from {offset}) is not made of {unit}-byte sectors")]
    DataAlignment {
        /// First byte of the data area.
        offset: u64,
        /// Length of the data area, bytes.
        length: u64,
        /// Sector size of the mapping or of the device, whichever is larger, bytes.
        unit: u32,
    },

    /// PBKDF2 with more iterations than are allowed.
    #[error("the key derivation asks for {iterations} iterations, and the limit is {limit}")]
    KdfIterations {
        /// What was asked for.
        iterations: u32,
        /// What is allowed.
        limit: u32,
    },

    /// Argon2 with more memory than is allowed.
    #[error("the key derivation asks for {memory_kib} KiB of memory, and the limit is {limit_kib}")]
    KdfMemory {
        /// What was asked for, KiB.
        memory_kib: u32,
        /// What is allowed, KiB.
        limit_kib: u32,
    },

    /// Argon2 with more lanes than are allowed.
    #[error("the key derivation asks for {lanes} lanes, and the limit is {limit}")]
    KdfLanes {
        /// What was asked for.
        lanes: u32,
        /// What is allowed.
        limit: u32,
    },

    /// Argon2 with more passes over so much memory than are allowed.
    #[error(
        "the key derivation fills {filled_kib} KiB in all its passes, and the limit is {limit_kib}"
    )]
    KdfFill {
        /// Passes times memory, KiB.
        filled_kib: u64,
        /// What is allowed, KiB.
        limit_kib: u64,
    },

    /// Keyslots with more iterations of PBKDF2 together than are allowed.
    #[error("the keyslots ask for {iterations} iterations in all, and the limit is {limit}")]
    KdfAllIterations {
        /// What they ask for.
        iterations: u64,
        /// What is allowed.
        limit: u64,
    },

    /// Keyslots whose Argon2 fills more memory together than is allowed.
    #[error("the keyslots fill {filled_kib} KiB in all, and the limit is {limit_kib}")]
    KdfAllFill {
        /// The sum of passes times memory, KiB.
        filled_kib: u64,
        /// What is allowed, KiB.
        limit_kib: u64,
    },

    /// A key derivation that its standard does not have.
    #[error("the key derivation has {got} {what}, and the least is {least}")]
    KdfParameter {
        /// Which parameter.
        what: &'static str,
        /// What was asked for.
        got: u64,
        /// The smallest value.
        least: u64,
    },

    /// Something was chosen that the format does not have.
    #[error("{} has no {what}", format.title())]
    Lacks {
        /// The format.
        format: Format,
        /// What was chosen.
        what: Box<str>,
        /// What the user can do about it, a sentence.
        possible: Box<str>,
    },

    /// A PIM that VeraCrypt does not take.
    #[error("the PIM is {pim}, and the largest is {most}")]
    Pim {
        /// What was given.
        pim: u32,
        /// The largest.
        most: u32,
    },

    /// A hidden volume that does not fit the outer one.
    #[error(
        "a hidden volume of {size} bytes is not possible: {most} is the most here, in steps of {unit}"
    )]
    HiddenSize {
        /// What was asked for, bytes.
        size: u64,
        /// The largest, bytes.
        most: u64,
        /// What it must be a multiple of.
        unit: u64,
    },

    /// There is not as much memory as Argon2 needs.
    #[error("there is no memory left for a key derivation of {memory_kib} KiB")]
    OutOfMemory {
        /// What is needed, KiB.
        memory_kib: u32,
    },
}

impl VolumeError {
    /// A header of `format` that cannot be used because of `damage`: damaged, or
    /// cut off, or sound and of a kind that is not known here.
    pub(crate) fn damaged(format: Format, damage: Damage) -> Self {
        match damage {
            Damage::Short { needed, got } => Self::Cut {
                format,
                needed,
                got,
            },
            Damage::Unknown { field, value } => Self::Unsupported {
                format,
                feature: format!("`{}` as its `{field}`", printable(&value)).into(),
            },
            damage => Self::Header { format, damage },
        }
    }

    /// No keyslot opened, of those that were tried if any were.
    pub(crate) fn none_fits(
        format: Format,
        secret: &Secret,
        tried: bool,
        mut untried: Vec<Untried>,
    ) -> Self {
        match (tried, untried.len()) {
            (true, 0) => Self::NoKeyslotFits {
                given: Given::of(secret),
            },
            (true, _) => Self::KeyslotsUntried { untried },
            (false, 0) => Self::NoKeyslot { format },
            (false, 1) => *untried.remove(0).why,
            (false, _) => Self::NoUsableKeyslot { untried },
        }
    }

    /// Whether it is about one place of the device alone, so that another one
    /// may still be read.
    pub(crate) fn is_of_place(&self) -> bool {
        matches!(self, Self::Block(error) if error.is_of_place())
    }

    /// What the error means to the user.
    pub fn verdict(&self) -> Verdict {
        match self {
            Self::NoKeyslotFits { .. }
            | Self::KeyslotsUntried { .. }
            | Self::NoKeyslot { .. }
            | Self::NoHeaderFits
            | Self::NoProtectorFits { .. }
            | Self::RecoveryPassword { .. }
            | Self::WrongVolumeKey => Verdict::WrongSecret,
            Self::Block(
                BlockError::Io { .. }
                | BlockError::ServerGone { .. }
                | BlockError::CutOff { .. }
                | BlockError::Removed
                | BlockError::Lost { .. }
                | BlockError::Tampered { .. },
            )
            | Self::OutOfMemory { .. }
            | Self::Unverified { .. } => Verdict::Failed,
            Self::LastKeyslot { .. }
            | Self::OtherKeyslots { .. }
            | Self::HeaderChanged { .. }
            | Self::Reencrypting
            | Self::Converting { .. }
            | Self::RecoveryNeeded
            | Self::UnboundReencryption
            | Self::Decrypted { .. }
            | Self::OtherData
            | Self::ForeignReencryption
            | Self::FormerReencryption { .. }
            | Self::Stranger { .. }
            | Self::Unwritable { .. } => Verdict::Protected,
            Self::Stopped | Self::Block(BlockError::Interrupted) => Verdict::Interrupted,
            Self::Block(
                BlockError::InUse { .. }
                | BlockError::Mounted { .. }
                | BlockError::Swap { .. }
                | BlockError::Holds { .. }
                | BlockError::Protected { .. },
            ) => Verdict::Protected,
            _ => Verdict::BadInput,
        }
    }

    /// What the user can do about it, one sentence.
    pub fn remedy(&self) -> String {
        match self {
            Self::Cipher(error) => error.remedy(),
            Self::Block(error) => error.remedy().to_string(),
            Self::NotThis { .. } => {
                "Name the right --type, or the file that holds the header with --header.".to_owned()
            }
            Self::Header {
                format: Format::Luks2,
                ..
            } => "Try `cryptmark volume header repair`, then a backup of the header; nothing was changed."
                .to_owned(),
            Self::Header { .. } => {
                "Restore the header from a backup; nothing was changed.".to_owned()
            }
            Self::Cut { .. } => {
                "Check that this is the right file, and the whole of it; nothing was changed.".to_owned()
            }
            Self::LuksVersion { .. } => {
                "Open it with a program that knows this version; nothing was changed.".to_owned()
            }
            Self::Unwritable { .. } => {
                "Nothing was changed. `cryptmark volume info` shows the header.".to_owned()
            }
            Self::Unsupported { .. } => {
                "Open it with the program that made it; nothing was changed.".to_owned()
            }
            Self::NoKeyslotFits { given } => given.remedy().to_owned(),
            Self::KeyslotsUntried { .. } => {
                "Check the passphrase; if it is that of a keyslot named here, open the volume with the \
                 program that made that keyslot."
                    .to_owned()
            }
            Self::NoKeyslot { .. } => {
                "Give the --volume-key-file, or restore a header backup of when it had keyslots."
                    .to_owned()
            }
            Self::UnusableKeyslot { .. } | Self::NoUsableKeyslot { .. } => {
                "Give what opens another keyslot, or open it with the program that made this one; nothing was changed.".to_owned()
            }
            Self::IgnoredKeyslot { slot } => format!("Name it with --key-slot {slot}."),
            Self::NullKeyslot { .. } => {
                "Open it with another keyslot or the --volume-key-file, and remove this one.".to_owned()
            }
            Self::NoHeaderFits => {
                "Check the passphrase, the key files and the PIM; take the other one of --type \
                 tcrypt and veracrypt; say --tcrypt-hidden, --tcrypt-backup or --tcrypt-system \
                 if the header is one of those."
                    .to_owned()
            }
            Self::NoProtectorFits { given: Given::Other, .. } => {
                "Check it; `cryptmark volume info` shows each protector, and what opens it.".to_owned()
            }
            Self::NoProtectorFits { given, .. } => given.remedy().to_owned(),
            Self::RecoveryPassword { .. } => "Compare it with the paper or the account.".to_owned(),
            Self::StartupKey { .. } => {
                "Check that it is the right file with the ending .BEK, and the whole of it.".to_owned()
            }
            Self::Converting { .. } => "Open it --read-only, or let Windows finish that.".to_owned(),
            Self::WrongVolumeKey => "Give the --volume-key-file of this volume.".to_owned(),
            Self::EmptyKeyslot { .. } => {
                "See `cryptmark volume info` for the keyslots that there are.".to_owned()
            }
            Self::UnboundKeyslot { .. } => {
                "Omit --key-slot, or name a keyslot that is bound to the data.".to_owned()
            }
            Self::SecretKind { format, .. } => format.secrets().to_owned(),
            Self::SecretLength { .. } => {
                "Check that it is the right file, whole, and its offset and size.".to_owned()
            }
            Self::DataUponHeader { .. } => {
                "If this is a detached header, name the data's file, and this one with --header."
                    .to_owned()
            }
            Self::DataArea { .. } => {
                "Check that it is the right file, whole, and the offset and size that were given."
                    .to_owned()
            }
            Self::DataAlignment { unit, .. } => {
                format!("Give an offset and a size that are multiples of {unit}.")
            }
            Self::MetadataFull { .. } => {
                "Remove a token or a keyslot; nothing was changed.".to_owned()
            }
            Self::NoFreeKeyslot => "Remove a keyslot that is not needed any more.".to_owned(),
            Self::NoFreeToken => "Remove a token that is not needed any more.".to_owned(),
            Self::ConversionRoom => {
                "Remove a keyslot that is not needed any more, or make a LUKS2 volume, and copy with \
                 `volume export` and `volume import`."
                    .to_owned()
            }
            Self::HeaderChanged { .. } => {
                "Its change was kept, and this one was not made: run the command again.".to_owned()
            }
            Self::KeyslotInUse { .. } => {
                "Choose a free --new-key-slot, or omit it; `cryptmark volume info` shows those in use."
                    .to_owned()
            }
            Self::KeyslotNumber { .. } => "Choose another --new-key-slot, or omit it.".to_owned(),
            Self::LastKeyslot { .. } => {
                "Add another key first, or give --yes if the data may be lost.".to_owned()
            }
            Self::OtherKeyslots { .. } => {
                "Give what opens them, each with --keep-passphrase-file or --keep-key-file; or --yes if they may go."
                    .to_owned()
            }
            Self::Reencrypting => {
                "Finish that first, with `cryptmark volume reencrypt`."
                    .to_owned()
            }
            Self::RecoveryNeeded => {
                "Open it --read-only, or finish it with `cryptmark volume reencrypt`.".to_owned()
            }
            Self::UnboundReencryption => {
                "The header was changed without its keys. Nothing was changed now. Try a \
                 backup of the header with --header."
                    .to_owned()
            }
            Self::Decrypted { offset } => format!(
                "Check the passphrase. If it is the right one, look at the data from byte {offset} on, \
                 with `blkid --probe --offset {offset}` for instance: where it is decrypted, the \
                 header is not needed any more."
            ),
            Self::OtherData => {
                "Name the volume that it began with. If the data were put back from a backup since, \
                 the file with that header belongs to them no more: move it away, and begin anew. If \
                 another program has written to them since, finish it with that."
                    .to_owned()
            }
            Self::ForeignReencryption => {
                "Finish it with `cryptsetup reencrypt --resume-only`; nothing was changed."
                    .to_owned()
            }
            Self::FormerReencryption { program } => format!("Finish it with {program}."),
            Self::Stranger { .. } => {
                "Nothing was changed. If it may be overwritten, run `cryptmark volume header repair` with --yes first."
                    .to_owned()
            }
            Self::Stopped => "Run it again to go on from here.".to_owned(),
            Self::Unverified { .. } => {
                "The device lies or is failing: copy what it holds elsewhere.".to_owned()
            }
            Self::TextLength { .. } => "Give a shorter one.".to_owned(),
            Self::Uuid { .. } => {
                "Give one as in 123e4567-e89b-42d3-a456-426614174000, or omit it for a random one."
                    .to_owned()
            }
            Self::TooSmall { .. } => {
                "Take a larger device, a smaller --offset, or a detached --header.".to_owned()
            }
            Self::KeyFileLines { .. } => {
                "Give a key file of 1, 64 or 65 lines, all equally long.".to_owned()
            }
            Self::EncryptedKeyFile => {
                "Decrypt it first, and pipe the result in: gpg -d FILE | cryptmark volume … --key-file -"
                    .to_owned()
            }
            Self::ShortHash { .. } => "Name a longer --hash or a shorter --key-size.".to_owned(),
            Self::SkipAlignment { unit, .. } => format!("Give a --skip that is a multiple of {unit}."),
            Self::KdfIterations { .. }
            | Self::KdfMemory { .. }
            | Self::KdfLanes { .. }
            | Self::KdfFill { .. } => {
                "Do not open another person's volume that asks for so much. Change the key slot of your own with the program that made it."
                    .to_owned()
            }
            Self::KdfAllIterations { .. } | Self::KdfAllFill { .. } => {
                "Give the --key-slot of your passphrase, so that no other is tried.".to_owned()
            }
            Self::Lacks { possible, .. } => possible.to_string(),
            Self::HiddenSize { .. } => {
                "Choose another size, and leave room for what the outer volume holds.".to_owned()
            }
            Self::Pim { .. } => {
                "Give the PIM that the volume was made with; without one, leave it out.".to_owned()
            }
            Self::OutOfMemory { memory_kib } => format!(
                "Open it on a machine with more than {} MiB to spare, or change the keyslot there.",
                memory_kib >> 10
            ),
            Self::KdfParameter { what, least, .. } => {
                format!("Give at least {least} {what}; a header that says less is damaged.")
            }
        }
    }
}
