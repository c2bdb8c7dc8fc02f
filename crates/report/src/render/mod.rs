//! A document in each output.

pub(crate) mod html;
pub(crate) mod markdown;
pub(crate) mod text;
