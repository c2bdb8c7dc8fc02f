//! [`ClientError`]: why an export is not to be had.

use super::road::{Address, Offer};
use std::ffi::OsString;
use std::io;

/// Why an export could not be reached, or is no more.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The text isn't a URI of an export.
    #[error("`{}` isn't an NBD URI: {what}", text.display())]
    Uri {
        /// The text.
        text: OsString,
        /// The fault in the text, as the end of a sentence.
        what: &'static str,
    },
    /// The server cannot be reached.
    #[error("cannot reach an NBD server at {address}")]
    Connect {
        /// Where.
        address: Address,
        /// Why not.
        source: io::Error,
    },
    /// There is no export of this name.
    #[error("the NBD server at {address} has no export `{name}`")]
    NoExport {
        /// Where.
        address: Address,
        /// The name; empty for the default one.
        name: String,
    },
    /// TLS was asked for, and the server does not do it.
    #[error("the NBD server at {address} does not support TLS")]
    NoTls {
        /// Where.
        address: Address,
    },
    /// The server wants TLS.
    #[error("the NBD server at {address} requires TLS")]
    OnlyTls {
        /// Where.
        address: Address,
    },
    /// The server said no.
    #[error("the NBD server at {address} refuses its export (its reply is {code:#x})")]
    Refused {
        /// Where.
        address: Address,
        /// The server's reply.
        code: u32,
    },
    /// The server does not speak the protocol.
    #[error("the NBD server's {0} does not follow the protocol")]
    Protocol(&'static str),
    /// The connection broke.
    #[error("the connection to the NBD server was lost")]
    Io(#[from] io::Error),
    /// After the connection was made anew, the export was another.
    #[error("the NBD server's export was {was}, and is now {is}")]
    Changed {
        /// When it was opened.
        was: Offer,
        /// Now.
        is: Offer,
    },
    /// The server did not take again what it had acknowledged and not yet made durable.
    #[error("the NBD server refuses a repeat of the writes that it lost (error {number})")]
    Replay {
        /// The protocol's number.
        number: u32,
    },
    /// This program was built without TLS.
    #[error("this program was built without TLS")]
    WithoutTls,
    /// The certificates cannot be used.
    #[cfg(feature = "tls")]
    #[error(transparent)]
    Tls(#[from] crate::nbd::TlsError),
}

impl ClientError {
    /// The remedy, as one sentence or two.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Uri { .. } => {
                "Write nbd+unix:///EXPORT?socket=PATH or nbd://HOST:PORT/EXPORT. For TLS, use \
                 nbds+unix or nbds."
            }
            Self::Connect { .. } => {
                "Check the server's address, that the server is running, and that you may use it."
            }
            Self::NoExport { .. } => "Check the export's name. `nbdinfo --list` shows the names.",
            Self::Refused { .. } => "Look for the reason in the server's messages.",
            Self::NoTls { .. } => {
                "Start the server with TLS, or write nbd or nbd+unix if the connection is private."
            }
            Self::OnlyTls { .. } => {
                "Write nbds or nbds+unix, and name the certificates with tls-certificates=DIR."
            }
            Self::Protocol(_) | Self::Io(_) | Self::Replay { .. } => {
                "Look for the reason in the server's messages."
            }
            Self::Changed { .. } => {
                "Make sure that the server exports the same storage as before, then open it again."
            }
            Self::WithoutTls => {
                "Build it with the feature `tls`, or forward a Unix socket through ssh."
            }
            #[cfg(feature = "tls")]
            Self::Tls(error) => error.remedy(),
        }
    }

    /// Whether the user must give other input, so that trying again is useless.
    pub fn is_bad_input(&self) -> bool {
        match self {
            Self::Uri { .. }
            | Self::NoExport { .. }
            | Self::NoTls { .. }
            | Self::OnlyTls { .. } => true,
            #[cfg(feature = "tls")]
            Self::Tls(_) => true,
            _ => false,
        }
    }
}
