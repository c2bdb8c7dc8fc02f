//! Drives that are not here: HDD, SSHD, SSD and flash, simulated in virtual
//! time and deterministic from a seed.
//!
//! A simulated drive will be a [`block::BlockDevice`] like any other. No
//! model is built yet; the crate marks the room and its edge (`drive → block`).

#![forbid(unsafe_code)]
