//! The NBD server and client, by the NBD project's `doc/proto.md`.

mod client;
mod clients;
mod connection;
mod handshake;
pub mod owner;
mod secure;
mod server;
#[cfg(test)]
mod tests;
#[cfg(feature = "tls")]
mod tls;
mod transport;
mod wire;

pub use client::{Address, ClientError, NbdDevice, Offer, Uri};
pub use handshake::Named;
pub use server::{End, Place, ServeError, Server};
#[cfg(feature = "tls")]
pub use tls::{ClientTls, ServerTls, TlsError};
pub use wire::LONGEST_NAME;
