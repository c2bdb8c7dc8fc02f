//! The lab kernel: commands in it, what encrypts in it, and that nothing of it
//! stays behind.

mod block_tier;
mod building;
mod commands;
mod encryption;
mod ending;
mod sandbox;
