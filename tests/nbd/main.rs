//! Volumes on NBD exports: made, opened, served and measured there, while the
//! servers are killed.

mod ceph;
mod commands;
mod cut;
mod desk;
mod held;
mod killed;
mod refused;
#[cfg(feature = "tls")]
mod tls;
