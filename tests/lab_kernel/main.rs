//! The lab kernel: commands in it, what encrypts in it, and that nothing of it
//! stays behind.

// What makes foreign volumes is shared with the crate's own tests.
extern crate volume as cryptmark_volume;

#[path = "../../crates/volume/tests/bitlk/maker.rs"]
#[allow(dead_code)]
mod bitlk;
mod block_tier;
mod building;
mod commands;
mod encryption;
mod ending;
mod file_encryption;
mod foreign;
#[path = "../../crates/volume/tests/fvault2/maker.rs"]
#[allow(dead_code)]
mod fvault2;
mod parts;
mod sandbox;
mod sealed;
