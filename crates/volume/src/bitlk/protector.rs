//! [`Protector`]: a copy of the volume master key, encrypted for one way to open it.

use super::bytes::{Sealed, entries, kind};
use crate::Damage;
use crate::fields::{Fields, utf16};
use cipher::Key;
use uuid::Uuid;

/// Length of a protector's head, bytes.
const HEAD_BYTES: usize = 28;

/// A copy of the volume master key, encrypted for one way to open it.
#[derive(Debug)]
pub struct Protector {
    /// Its identifier.
    pub identifier: Uuid,
    /// The kind of key that opens it.
    pub kind: ProtectorKind,
    /// Its name.
    pub name: Option<String>,
    /// Time of its last change, in 100 ns since 1601.
    pub modified: u64,
    /// The salt of a passphrase or recovery password.
    pub(super) salt: Option<[u8; 16]>,
    /// The clear key, stored next to what it encrypts.
    pub(super) clear_key: Option<Key>,
    pub(super) master_key: Option<Sealed>,
}

/// The kind of key that opens a protector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtectorKind {
    /// Nothing. The key is in the metadata while protection is suspended or not active yet.
    ClearKey,
    /// The TPM of one computer.
    Tpm {
        /// A PIN is needed too.
        pin: bool,
        /// A startup key is needed too.
        startup_key: bool,
    },
    /// A key file.
    StartupKey,
    /// 48 digits.
    RecoveryPassword,
    /// A smart card or a certificate.
    Certificate,
    /// A passphrase.
    Passphrase,
    /// An unknown kind.
    Other(u16),
}

impl ProtectorKind {
    fn numbered(number: u16) -> Self {
        const TPM: u16 = 0x0100;
        const STARTUP_KEY: u16 = 0x0200;
        const PIN: u16 = 0x0400;
        match number & 0xff00 {
            0 => Self::ClearKey,
            STARTUP_KEY => Self::StartupKey,
            kinds if kinds & TPM != 0 && kinds & !(TPM | STARTUP_KEY | PIN) == 0 => Self::Tpm {
                pin: kinds & PIN != 0,
                startup_key: kinds & STARTUP_KEY != 0,
            },
            0x0800 => Self::RecoveryPassword,
            0x1000 => Self::Certificate,
            0x2000 => Self::Passphrase,
            _ => Self::Other(number),
        }
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ClearKey => "clear key",
            Self::Tpm { pin, startup_key } => match (pin, startup_key) {
                (false, false) => "TPM",
                (true, false) => "TPM and PIN",
                (false, true) => "TPM and startup key",
                (true, true) => "TPM, PIN and startup key",
            },
            Self::StartupKey => "startup key",
            Self::RecoveryPassword => "recovery password",
            Self::Certificate => "smart card or certificate",
            Self::Passphrase => "passphrase",
            Self::Other(_) => "unknown",
        }
    }

    /// The key that opens it, as a sentence.
    pub const fn opened_by(self) -> &'static str {
        match self {
            Self::ClearKey => "No key is needed: protection is suspended.",
            Self::Tpm { .. } => {
                "The computer that made it. Run `manage-bde -protectors -get` there to print the \
                 recovery password."
            }
            Self::StartupKey => "The startup key file (.BEK) with this identifier.",
            Self::RecoveryPassword => {
                "The 48 digits that were printed or saved in an account under this identifier."
            }
            Self::Certificate => "Windows with the smart card, or the network's unlock server.",
            Self::Passphrase => "The passphrase.",
            Self::Other(_) => "Windows, perhaps.",
        }
    }
}

impl Protector {
    /// Parses the body of a protector's entry.
    pub(super) fn parse(body: &[u8]) -> Result<Self, Damage> {
        if body.len() < HEAD_BYTES {
            return Err(Damage::length(
                "volume master key",
                body.len(),
                format!("must have at least {HEAD_BYTES}"),
            ));
        }
        let fields = Fields(body);
        let mut protector = Self {
            identifier: Uuid::from_bytes_le(fields.array(0)),
            kind: ProtectorKind::numbered(fields.le16(26)),
            name: None,
            modified: fields.le64(16),
            salt: None,
            clear_key: None,
            master_key: None,
        };
        for entry in entries(&body[HEAD_BYTES..])? {
            match entry.kind {
                kind::KEY if entry.body.len() >= 4 => {
                    protector.clear_key = Some(Key::from_slice(&entry.body[4..]));
                }
                kind::TEXT => {
                    protector.name.get_or_insert_with(|| utf16(entry.body));
                }
                kind::STRETCHED => {
                    let salt = entry.body.get(4..).and_then(<[u8]>::first_chunk);
                    protector.salt = protector.salt.or(salt.copied());
                }
                kind::SEALED if protector.master_key.is_none() => {
                    protector.master_key = Some(Sealed::parse(entry.body)?);
                }
                _ => {}
            }
        }
        Ok(protector)
    }
}
