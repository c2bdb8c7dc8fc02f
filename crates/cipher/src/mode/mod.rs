//! Modes of operation over any block cipher.

mod xts;

pub(crate) use xts::Xts;
