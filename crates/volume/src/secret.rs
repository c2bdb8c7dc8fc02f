//! [`Secret`]: what a user has to open a volume with.

use cipher::Key;

/// A passphrase, the content of a key file, or the volume key itself.
///
/// Formats treat them differently: a plain volume hashes a passphrase and
/// takes a key file as it is.
#[derive(Debug)]
pub enum Secret {
    /// The bytes of a passphrase, without the newline that ended it.
    Passphrase(Key),
    /// The bytes of a key file, all of them.
    KeyFile(Key),
    /// The key that encrypts the data.
    VolumeKey(Key),
}

impl Secret {
    /// Its kind in a sentence.
    pub(crate) const fn kind(&self) -> &'static str {
        match self {
            Self::Passphrase(_) => "a passphrase",
            Self::KeyFile(_) => "a key file",
            Self::VolumeKey(_) => "a volume key",
        }
    }
}

/// A volume key that was found, and where.
#[derive(Debug)]
pub struct Unlocked {
    /// The key that encrypts the data.
    pub key: Key,
    /// The keyslot that it was in; `None` where the format has none, or the
    /// key was given.
    pub slot: Option<u32>,
}
