//! Volumes made and changed, each operation the same for the program, Rust, C and Python.
//!
//! An operation works on a [`Place`](crate::Place), which it or its caller has opened for that use.
//! Before the first byte is written, everything that would be lost is looked at, and
//! [judged](crate::judge): what the caller has not accepted is an error, and nothing was changed.

#[doc(hidden)]
pub mod backups;
mod convert;
mod create;
mod fill;
mod header;
mod hidden;
mod keys;
mod reencrypt;
mod resize;
mod tcrypt;
mod wipe;

pub use convert::convert;
pub use create::{Created, Creation, check_create, create};
pub use header::{
    HeaderBackup, Mended, backup_header, repair_header, restore_header, save_header, set_names,
};
pub use hidden::HiddenCreation;
pub use keys::{KeyChange, KeyOptions, KeySlotCost, NewKey, add_key, change_key, remove_key};
pub use reencrypt::{Answers, Caller, Change, Reencrypted, reencrypt};
pub use resize::resize;
pub use tcrypt::PasswordChange;

// For the program.
#[doc(hidden)]
pub use fill::Filling;
#[doc(hidden)]
pub use header::{TCRYPT_HEADERS, bounded, read};
#[doc(hidden)]
pub use reencrypt::{check_in_place, is_beside, left, opened};
#[doc(hidden)]
pub use wipe::{check_blank, check_content, reserve};

use crate::error::impossible;
use crate::judge::State;
use crate::tcrypt::{Family, Opening};
use crate::{Format, Limits, Parameters, VolumeError};
use std::ops::ControlFlow;

/// What an operation needs besides a secret.
#[derive(Debug, Default)]
pub struct Options {
    /// [`Format::Tcrypt`] or [`Format::Veracrypt`], which have no signature; `None` for LUKS.
    pub format: Option<Format>,
    /// How the secret opens the volume.
    pub parameters: Parameters,
    /// What may be lost.
    pub accepted: Vec<State>,
    /// Bounds of the work that a header may demand.
    pub limits: Limits,
}

impl Options {
    /// TrueCrypt or VeraCrypt, if it is one of theirs.
    fn family(&self) -> Option<Family> {
        self.format?.family()
    }

    fn tcrypt(&self, family: Family) -> Result<Opening, VolumeError> {
        self.parameters.check(family.format())?;
        self.parameters.tcrypt(family)
    }
}

/// Is told how many bytes are done, of how many, from any thread, and says whether to go on.
pub type Report<'a> = &'a (dyn Fn(u64, u64) -> ControlFlow<()> + Sync);

/// Says nothing, and goes on.
pub fn unwatched(_: u64, _: u64) -> ControlFlow<()> {
    ControlFlow::Continue(())
}
