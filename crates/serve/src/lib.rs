//! How others see a device: exports over NBD, FUSE and ublk.
//!
//! This crate will serve any [`block::BlockDevice`] and knows nothing of
//! encryption. No export is built yet; the crate marks the room and its edge
//! (`serve → block`).

#![forbid(unsafe_code)]
