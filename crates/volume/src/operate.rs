//! Volumes made and changed, each operation the same for the program, Rust, C and Python.
//!
//! An operation works on a [`Place`](crate::Place), which it or its caller has opened for that use.
//! Before the first byte is written, everything that would be lost is looked at, and
//! [judged](crate::judge): what the caller has not accepted is an error, and nothing was changed.

mod convert;
mod create;
mod keys;
mod reencrypt;
mod resize;
mod wipe;

pub use convert::convert;
pub use create::{Created, Creation, check_create, create};
pub use keys::{KeyOptions, KeySlotCost, NewKey, add_key, change_key, remove_key};
pub use reencrypt::{Reencryption, reencrypt};
pub use resize::{Resizing, resize};

// For the program.
#[doc(hidden)]
pub use create::{check_pim, natural_sector_size, usual_key_bytes};
#[doc(hidden)]
pub use reencrypt::{Chosen, check_apart, first_kept, no_journal, opened, run, several_segments};
#[doc(hidden)]
pub use resize::is_blank;
#[doc(hidden)]
pub use wipe::{check_blank, check_cipher, check_content, fill, reserve};

use crate::VolumeError;
use std::ops::ControlFlow;

fn impossible(what: impl Into<String>, instead: impl Into<String>) -> VolumeError {
    VolumeError::Impossible {
        what: what.into(),
        instead: instead.into(),
    }
}

/// Is told how many bytes are done, of how many, from any thread, and says whether to go on.
pub type Report<'a> = &'a (dyn Fn(u64, u64) -> ControlFlow<()> + Sync);

/// Says nothing, and goes on.
pub fn unwatched(_: u64, _: u64) -> ControlFlow<()> {
    ControlFlow::Continue(())
}
