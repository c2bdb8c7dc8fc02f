//! Which clients of the NBD server speak TLS.

use crate::cli::Failure;
use clap::{Args, ValueEnum};
use serve::nbd::Server;
use std::path::PathBuf;

/// The options, named as nbdkit names them.
#[derive(Debug, Args)]
pub struct TlsArguments {
    /// TLS for NBD: off, on (clients may use it) or require (clients must use it)
    #[arg(long, value_enum, default_value_t = Tls::Off, conflicts_with_all = ["fuse", "ublk"], requires_ifs = [("on", "tls_certificates"), ("require", "tls_certificates")])]
    tls: Tls,
    /// The directory of ca-cert.pem, server-cert.pem and server-key.pem
    #[arg(long, value_name = "DIR", conflicts_with_all = ["fuse", "ublk"])]
    tls_certificates: Option<PathBuf>,
    /// Require clients to present a certificate signed by ca-cert.pem
    #[arg(long, requires = "tls_certificates", conflicts_with_all = ["fuse", "ublk"])]
    tls_verify_peer: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Tls {
    Off,
    On,
    Require,
}

impl TlsArguments {
    /// Whether TLS is required of every client.
    pub fn is_required(&self) -> bool {
        self.tls == Tls::Require
    }

    /// Configures a server's TLS as the options say.
    ///
    /// Exit code 2 if the certificates cannot be used; 1 if this program was built without TLS.
    #[cfg(feature = "tls")]
    pub fn securing(&self) -> Result<impl FnOnce(Server) -> Server, Failure> {
        if self.tls == Tls::Off && self.tls_verify_peer {
            return Err(Failure::new(
                2,
                "--tls-verify-peer has no effect without TLS",
                "Give --tls require, or omit it.",
            ));
        }
        let security = match (self.tls, &self.tls_certificates) {
            (Tls::Off, _) | (_, None) => None,
            (tls, Some(directory)) => {
                let required = tls == Tls::Require;
                let opened =
                    ::serve::nbd::ServerTls::open(directory, self.tls_verify_peer, required);
                Some(opened.map_err(|error| Failure::of(2, &error, error.remedy()))?)
            }
        };
        Ok(|server: Server| match security {
            Some(security) => server.with_tls(security),
            None => server,
        })
    }

    /// Configures a server's TLS as the options say.
    ///
    /// # Errors
    /// Exit code 1 if they ask for TLS.
    #[cfg(not(feature = "tls"))]
    pub fn securing(&self) -> Result<impl FnOnce(Server) -> Server, Failure> {
        match self.tls {
            Tls::Off => Ok(|server| server),
            Tls::On | Tls::Require => Err(Failure::new(
                1,
                "this program was built without TLS",
                "Build it with --features tls, or tunnel a Unix socket through ssh.",
            )),
        }
    }
}
