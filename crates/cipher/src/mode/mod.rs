//! Modes of operation over any block cipher.

#[cfg_attr(not(test), expect(dead_code, reason = "for the mode `adiantum`"))]
pub(crate) mod adiantum;
#[cfg_attr(not(test), expect(dead_code, reason = "for the mode `hctr2`"))]
pub(crate) mod hctr2;
mod nh_poly1305;
pub(crate) mod polyval;
pub(crate) mod xts;

pub(crate) use xts::Xts;
