//! What a reader picks rows by: the system, and the cipher as people call it.
//!
//! Rows of tables and of charts carry both; the page's script offers those that
//! it finds.

use crate::{figure, group};
use std::borrow::Cow;

/// The system's name, `plain` for the one that encrypts nothing.
pub(crate) fn system(system: &str) -> &str {
    match group::is_unencrypted(system) {
        true => "plain",
        false => system,
    }
}

/// The cipher: `AES-256 XTS`; `none` where nothing is encrypted.
pub(crate) fn cipher(cipher: Option<&str>, key_bits: Option<u32>) -> Cow<'static, str> {
    match cipher {
        Some(cipher) => figure::cipher(cipher, key_bits).into(),
        None => "none".into(),
    }
}
