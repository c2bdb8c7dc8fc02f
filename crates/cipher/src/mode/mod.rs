//! Modes of operation over any block cipher.

pub(crate) mod xts;

pub(crate) use xts::Xts;
