//! TLS 1.3 by `rustls`, with certificates where libnbd, nbdkit and QEMU have
//! them.
//!
//! Two locks keep the order of sent data without holding up received data. A sender holds
//! `outgoing` for as long as sending takes, and the connection only while it encrypts.

use super::secure::{Security, Session};
use super::transport::Wire;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{
    ClientConfig, ClientConnection, Connection, RootCertStore, ServerConfig, ServerConnection,
};
use std::fs;
use std::io::{self, IoSlice, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Ciphertext that is received at a time: a record and its frame.
const INCOMING: usize = (16 << 10) + 512;

/// The names of the files in a directory of certificates.
const AUTHORITY: &str = "ca-cert.pem";
const SERVER: [&str; 2] = ["server-cert.pem", "server-key.pem"];
const CLIENT: [&str; 2] = ["client-cert.pem", "client-key.pem"];

/// Why there is no TLS.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A file does not hold what its name says.
    #[error("{} holds no {what} in PEM", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// The content that it should hold.
        what: &'static str,
    },
    /// Certificate and key are not accepted, or do not belong together.
    #[error("the certificates in {} cannot be used", directory.display())]
    Certificates {
        /// Where they are.
        directory: PathBuf,
        /// Why not.
        source: rustls::Error,
    },
    /// The expected name of the server isn't a valid name.
    #[error("{name} is neither a host name nor an address")]
    Name {
        /// The given name.
        name: String,
    },
}

impl TlsError {
    /// The remedy, in one sentence or two.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Read { .. } | Self::Content { .. } => {
                "The directory must hold ca-cert.pem. A server also needs server-cert.pem and \
                 server-key.pem; a client needs client-cert.pem and client-key.pem."
            }
            Self::Certificates { .. } => {
                "Check that the key belongs to the certificate (openssl x509 -text)."
            }
            Self::Name { .. } => "Use the host name that is in the certificate.",
        }
    }
}

/// The TLS settings of a server.
pub struct ServerTls {
    config: Arc<ServerConfig>,
    required: bool,
}

impl ServerTls {
    /// Reads `server-cert.pem` and `server-key.pem` in `directory`. With `verify_peer`, clients
    /// need a certificate that `ca-cert.pem` there vouches for. With `required`, clients without
    /// TLS are refused.
    ///
    /// # Errors
    /// [`TlsError`], but for `Name`.
    pub fn open(directory: &Path, verify_peer: bool, required: bool) -> Result<Self, TlsError> {
        let refused = |source| TlsError::Certificates {
            directory: directory.into(),
            source,
        };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = match verify_peer {
            true => {
                let roots = Arc::new(authority(directory)?);
                WebPkiClientVerifier::builder_with_provider(roots, provider.clone())
                    .build()
                    .map_err(|error| refused(rustls::Error::General(error.to_string())))?
            }
            false => WebPkiClientVerifier::no_client_auth(),
        };
        let [certificates, key] = SERVER.map(|name| directory.join(name));
        let config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(refused)?
            .with_client_cert_verifier(verifier as Arc<dyn ClientCertVerifier>)
            .with_single_cert(all_in(&certificates)?, key_in(&key)?)
            .map_err(refused)?;
        Ok(Self {
            config: Arc::new(config),
            required,
        })
    }
}

impl Security for ServerTls {
    fn is_required(&self) -> bool {
        self.required
    }

    fn begin(&self, below: &dyn Wire) -> io::Result<Box<dyn Session>> {
        let connection = ServerConnection::new(self.config.clone()).map_err(io::Error::other)?;
        Tls::greet(Connection::Server(connection), below)
    }
}

/// The TLS settings of a client.
#[derive(Clone)]
pub struct ClientTls {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl ClientTls {
    /// Reads `ca-cert.pem` in `directory`, and `client-cert.pem` with `client-key.pem` if they
    /// exist. `ca-cert.pem` must vouch for the server's certificate, which must carry the host
    /// `name`.
    ///
    /// # Errors
    /// [`TlsError`].
    pub fn open(directory: &Path, name: &str) -> Result<Self, TlsError> {
        let refused = |source| TlsError::Certificates {
            directory: directory.into(),
            source,
        };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(refused)?
            .with_root_certificates(authority(directory)?);
        let [certificates, key] = CLIENT.map(|name| directory.join(name));
        let config = match certificates.exists() {
            true => builder
                .with_client_auth_cert(all_in(&certificates)?, key_in(&key)?)
                .map_err(refused)?,
            false => builder.with_no_client_auth(),
        };
        let server = ServerName::try_from(name.to_owned());
        Ok(Self {
            config: Arc::new(config),
            name: server.map_err(|_| TlsError::Name { name: name.into() })?,
        })
    }
}

impl Security for ClientTls {
    fn is_required(&self) -> bool {
        true
    }

    fn begin(&self, below: &dyn Wire) -> io::Result<Box<dyn Session>> {
        let connection = ClientConnection::new(self.config.clone(), self.name.clone());
        let connection = connection.map_err(io::Error::other)?;
        Tls::greet(Connection::Client(connection), below)
    }
}

fn read(path: &Path) -> Result<zeroize::Zeroizing<Vec<u8>>, TlsError> {
    let bytes = fs::read(path).map_err(|source| TlsError::Read {
        path: path.into(),
        source,
    })?;
    Ok(bytes.into())
}

fn all_in(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&read(path)?).collect();
    let found = all.ok().filter(|all| !all.is_empty());
    found.ok_or_else(|| TlsError::Content {
        path: path.into(),
        what: "certificate",
    })
}

fn key_in(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_slice(&read(path)?).map_err(|_| TlsError::Content {
        path: path.into(),
        what: "private key",
    })
}

fn authority(directory: &Path) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in all_in(&directory.join(AUTHORITY))? {
        roots
            .add(certificate)
            .map_err(|source| TlsError::Certificates {
                directory: directory.into(),
                source,
            })?;
    }
    Ok(roots)
}

/// A connection that both sides have agreed on.
struct Tls {
    connection: Mutex<Connection>,
    incoming: Mutex<Ciphertext>,
    outgoing: Mutex<Ciphertext>,
}

/// Bytes on their way, from `start` on.
struct Ciphertext {
    bytes: Vec<u8>,
    start: usize,
}

impl Ciphertext {
    fn new() -> Mutex<Self> {
        Mutex::new(Self {
            bytes: Vec::new(),
            start: 0,
        })
    }

    fn rest(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.start = 0;
    }

    /// Sends all of it.
    fn send(&mut self, below: &dyn Wire) -> io::Result<()> {
        while !self.rest().is_empty() {
            match below.send(&[IoSlice::new(self.rest())])? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                sent => self.start += sent,
            }
        }
        self.clear();
        Ok(())
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Tls {
    fn greet(connection: Connection, below: &dyn Wire) -> io::Result<Box<dyn Session>> {
        let tls = Self {
            connection: Mutex::new(connection),
            incoming: Ciphertext::new(),
            outgoing: Ciphertext::new(),
        };
        loop {
            let mut outgoing = locked(&tls.outgoing);
            let mut connection = locked(&tls.connection);
            while connection.wants_write() {
                connection.write_tls(&mut outgoing.bytes)?;
            }
            let greeting = connection.is_handshaking();
            drop(connection);
            outgoing.send(below)?;
            if !greeting {
                break;
            }
            drop(outgoing);
            let mut incoming = locked(&tls.incoming);
            if incoming.rest().is_empty() && !receive(&mut incoming, below)? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let taken = take(&mut incoming, &mut locked(&tls.connection));
            if let Err(error) = taken {
                // The other side hears why.
                let mut outgoing = locked(&tls.outgoing);
                locked(&tls.connection).write_tls(&mut outgoing.bytes)?;
                outgoing.send(below)?;
                return Err(error);
            }
        }
        Ok(Box::new(tls))
    }
}

/// Receives ciphertext; false at its end.
fn receive(incoming: &mut Ciphertext, below: &dyn Wire) -> io::Result<bool> {
    incoming.clear();
    incoming.bytes.resize(INCOMING, 0);
    let received = below.receive(&mut incoming.bytes);
    incoming.bytes.truncate(*received.as_ref().unwrap_or(&0));
    Ok(received? > 0)
}

/// Decrypts what was received, as far as there is space.
fn take(incoming: &mut Ciphertext, connection: &mut Connection) -> io::Result<()> {
    let mut rest = incoming.rest();
    let taken = connection.read_tls(&mut rest)?;
    incoming.start += taken;
    let done = connection.process_new_packets();
    done.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    Ok(())
}

impl Session for Tls {
    fn receive(&self, below: &dyn Wire, into: &mut [u8]) -> io::Result<usize> {
        // One thread receives at a time, so no thread waits for this lock.
        let mut incoming = locked(&self.incoming);
        loop {
            let mut connection = locked(&self.connection);
            match connection.reader().read(into) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                other => return other,
            }
            if incoming.rest().is_empty() {
                drop(connection);
                if !receive(&mut incoming, below)? {
                    return Ok(0);
                }
                connection = locked(&self.connection);
            }
            take(&mut incoming, &mut connection)?;
        }
    }

    fn send(&self, below: &dyn Wire, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut outgoing = locked(&self.outgoing);
        outgoing.send(below)?;
        let mut connection = locked(&self.connection);
        let taken = connection.writer().write_vectored(parts)?;
        while connection.wants_write() {
            connection.write_tls(&mut outgoing.bytes)?;
        }
        drop(connection);
        match outgoing.send(below) {
            // Encrypted data cannot be taken back: it is sent before the next data.
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
            _ => Ok(taken),
        }
    }

    fn flush(&self, below: &dyn Wire) -> io::Result<()> {
        locked(&self.outgoing).send(below)
    }

    fn has_received(&self) -> bool {
        !locked(&self.incoming).rest().is_empty()
            || locked(&self.connection)
                .process_new_packets()
                .is_ok_and(|state| state.plaintext_bytes_to_read() > 0)
    }
}
