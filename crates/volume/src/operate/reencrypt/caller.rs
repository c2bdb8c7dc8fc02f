//! [`Caller`]: who gives the secrets of a long operation when they are wanted, and hears of it.

use super::{left, opened};
use crate::luks2::Header;
use crate::operate::{KeySlotCost, Report};
use crate::{Format, Hash, Kdf, Limits, Secret, VolumeError};
use block::BlockDevice;
use cipher::Key;
use std::fmt;
use std::ops::ControlFlow;

/// Who has asked for a long operation.
///
/// It is asked for secrets when everything that could refuse the operation without them was looked
/// at. What it cannot give is a [`VolumeError::Caller`], and nothing was changed then.
pub trait Caller: Sync {
    /// What opens the volume, which is of this format.
    fn secret(&self, format: Format) -> Result<Secret, VolumeError>;

    /// What is going to open data that are not encrypted yet.
    fn new_secret(&self) -> Result<Key, VolumeError>;

    /// The key slots that stay, each with its secret: `first`, and those of `header` that the other
    /// secrets open.
    fn kept(
        &self,
        header: &Header,
        device: &dyn BlockDevice,
        first: (u32, Key),
    ) -> Result<Vec<(u32, Key)>, VolumeError>;

    /// How many other secrets there are, as far as that is known before.
    fn others(&self) -> usize;

    /// Whether it has chosen what a secret of a new key slot costs.
    fn chooses_cost(&self) -> bool;

    /// The derivation of new key slots; `hash` is that of PBKDF2.
    fn derivation(&self, hash: Option<Hash>) -> Result<Kdf, VolumeError>;

    /// Hears what is weak, or will be missing, in a sentence.
    fn warn(&self, what: &str);

    /// Hears that from now on bytes are written. May be called again.
    ///
    /// # Errors
    /// [`VolumeError::Caller`], which ends it before.
    fn begin(&self) -> Result<(), VolumeError>;

    /// Hears how far the search for a key derivation is, and may end it.
    fn search(&self, done: u64, total: u64) -> ControlFlow<()>;

    /// Hears how many bytes are done, of how many, and may stop it.
    fn report(&self, done: u64, total: u64) -> ControlFlow<()>;
}

/// A caller that has given everything before.
pub struct Answers<'a> {
    /// What opens the volume, or is going to.
    pub secret: &'a Secret,
    /// Whether data may be encrypted with an empty passphrase. Anyone can open the volume then.
    pub allow_empty: bool,
    /// What a secret costs those who try it.
    pub cost: KeySlotCost,
    /// The secrets of other key slots, which stay. All others are lost.
    pub kept: &'a [Key],
    /// Hears how far it is.
    pub report: Report<'a>,
}

impl<'a> Answers<'a> {
    /// This secret and nothing else.
    pub fn new(secret: &'a Secret, report: Report<'a>) -> Self {
        Self {
            secret,
            allow_empty: false,
            cost: KeySlotCost::default(),
            kept: &[],
            report,
        }
    }
}

impl Caller for Answers<'_> {
    fn secret(&self, _: Format) -> Result<Secret, VolumeError> {
        match self.secret.is_here() {
            true => Ok(self.secret.copy()),
            false => Err(VolumeError::Forked { what: "the secret" }),
        }
    }

    fn new_secret(&self) -> Result<Key, VolumeError> {
        let secret = self.secret(Format::Luks2)?;
        let words = secret.words(Format::Luks2)?;
        match words.is_empty() && !self.allow_empty {
            true => Err(VolumeError::EmptyPassphrase),
            false => Ok(Key::from_slice(words.as_bytes())),
        }
    }

    fn kept(
        &self,
        header: &Header,
        device: &dyn BlockDevice,
        first: (u32, Key),
    ) -> Result<Vec<(u32, Key)>, VolumeError> {
        let mut kept = vec![first];
        for secret in self.kept {
            let limits = Limits::default();
            let slots = left(header, &kept, &limits)?;
            let found = opened(header, device, &slots, secret, &limits)?;
            kept.push((found, Key::from_slice(secret.as_bytes())));
        }
        Ok(kept)
    }

    fn others(&self) -> usize {
        self.kept.len()
    }

    fn chooses_cost(&self) -> bool {
        self.cost != KeySlotCost::default()
    }

    fn derivation(&self, hash: Option<Hash>) -> Result<Kdf, VolumeError> {
        self.cost.kdf(Format::Luks2, hash)
    }

    fn warn(&self, _: &str) {}

    fn begin(&self) -> Result<(), VolumeError> {
        Ok(())
    }

    fn search(&self, done: u64, total: u64) -> ControlFlow<()> {
        (self.report)(done, total)
    }

    fn report(&self, done: u64, total: u64) -> ControlFlow<()> {
        (self.report)(done, total)
    }
}

impl fmt::Debug for Answers<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answers")
            .field("secret", &self.secret)
            .field("cost", &self.cost)
            .field("kept", &self.kept.len())
            .finish_non_exhaustive()
    }
}
