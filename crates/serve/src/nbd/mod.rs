//! The NBD server and client, by the NBD project's `doc/proto.md`.

mod handshake;
mod transport;
mod wire;
