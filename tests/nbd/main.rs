//! Volumes on NBD exports: made, opened, served and measured there, while the
//! servers are killed.

mod ceph;
mod commands;
mod cut;
mod held;
mod killed;
mod refused;
mod sandbox;
#[cfg(feature = "tls")]
mod tls;
