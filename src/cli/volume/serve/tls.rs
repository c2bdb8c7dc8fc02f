//! Which clients of the NBD server speak TLS.

use crate::cli::Failure;
use clap::{Args, ValueEnum};
use serve::nbd::Server;
use std::path::PathBuf;

/// The options, named as nbdkit names them.
#[derive(Debug, Args)]
pub struct TlsArguments {
    /// TLS for NBD: off, on (clients may use it) or require (clients must use it) [default: off]
    #[arg(long, value_enum, conflicts_with_all = ["fuse", "ublk"], requires_ifs = [("on", "tls_certificates"), ("require", "tls_certificates")])]
    tls: Option<Tls>,
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
        self.tls == Some(Tls::Require)
    }

    fn is_on(&self) -> bool {
        matches!(self.tls, Some(Tls::On | Tls::Require))
    }

    /// Configures a server's TLS as the options say.
    ///
    /// Exit code 2 if the certificates cannot be used; 1 if this program was built without TLS.
    #[cfg(feature = "tls")]
    pub fn securing(&self) -> Result<impl FnOnce(Server) -> Server, Failure> {
        let idle = [
            ("--tls-verify-peer", self.tls_verify_peer && !self.is_on()),
            (
                "--tls-certificates",
                self.tls_certificates.is_some() && self.tls.is_none(),
            ),
        ];
        let mut idle = idle.into_iter();
        if let Some((option, _)) = idle.find(|(_, given)| *given) {
            return Err(Failure::new(
                2,
                format!("{option} has no effect without TLS"),
                "Give --tls require, or omit it.",
            ));
        }
        let security = match &self.tls_certificates {
            Some(directory) if self.is_on() => {
                let (verify, required) = (self.tls_verify_peer, self.is_required());
                let opened = ::serve::nbd::ServerTls::open(directory, verify, required);
                Some(opened.map_err(|error| Failure::of(2, &error, error.remedy()))?)
            }
            _ => None,
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
        match self.is_on() {
            false => Ok(|server| server),
            true => Err(Failure::new(
                1,
                "this program was built without TLS",
                "Build it with --features tls, or tunnel a Unix socket through ssh.",
            )),
        }
    }
}
