//! Verification of a server's identity.

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error as TlsError, RootCertStore,
    SignatureScheme,
};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;

type Source = Box<dyn Error + Send + Sync>;

/// The part of a server's certificate that must be right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verify {
    /// No part. An eavesdropper is kept out, but an impostor is not.
    Nothing,
    /// The issuer.
    Issuer,
    /// The issuer and the host's name.
    Name,
}

/// Files with certificates.
pub(super) struct Files {
    /// Certificates of the trusted issuers, instead of the system's.
    pub(super) root: Option<PathBuf>,
    /// The client's own.
    pub(super) certificate: Option<PathBuf>,
    pub(super) key: Option<PathBuf>,
}

impl Files {
    pub(super) fn of_environment() -> Self {
        let path = |name| std::env::var_os(name).map(PathBuf::from);
        Self {
            root: path("PGSSLROOTCERT"),
            certificate: path("PGSSLCERT"),
            key: path("PGSSLKEY"),
        }
    }
}

/// The settings of a connection.
///
/// # Errors
/// A file cannot be read, or the system trusts no issuer.
pub(super) fn config(verify: Verify, files: &Files) -> Result<ClientConfig, Source> {
    let provider = Arc::new(ring::default_provider());
    let mut roots = RootCertStore::empty();
    let certificates = match (&files.root, verify) {
        (Some(path), _) => read(path)?,
        (None, Verify::Nothing) => Vec::new(),
        (None, _) => rustls_native_certs::load_native_certs().certs,
    };
    roots.add_parsable_certificates(certificates);
    let verifier = match verify {
        Verify::Nothing => None,
        _ => Some(
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone())
                .build()?,
        ),
    };
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Verifier {
            verify,
            verifier,
            provider,
        }));
    Ok(match (&files.certificate, &files.key) {
        (Some(own), Some(key)) => {
            let key = PrivateKeyDer::from_pem_file(key).map_err(|error| told(key, &error))?;
            builder.with_client_auth_cert(read(own)?, key)?
        }
        _ => builder.with_no_client_auth(),
    })
}

fn read(path: &Path) -> Result<Vec<CertificateDer<'static>>, Source> {
    let read = CertificateDer::pem_file_iter(path).and_then(|found| found.collect());
    read.map_err(|error| told(path, &error))
}

fn told(path: &Path, error: &impl std::fmt::Display) -> Source {
    format!("cannot use {}: {error}", path.display()).into()
}

#[derive(Debug)]
struct Verifier {
    verify: Verify,
    /// `None` if nothing is verified.
    verifier: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        own: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, TlsError> {
        let Some(verifier) = &self.verifier else {
            return Ok(ServerCertVerified::assertion());
        };
        match verifier.verify_server_cert(own, others, name, ocsp, now) {
            // The name is looked at last, when all else is good.
            Err(TlsError::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if self.verify == Verify::Issuer => Ok(ServerCertVerified::assertion()),
            outcome => outcome,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::{ClientConnection, ServerConfig, ServerConnection};

    /// A server of this name, and who vouches for it. They were made by OpenSSL for this test.
    const NAME: &str = "db.example.org";
    const SERVER: &[u8] = include_bytes!("tls/server.pem");

    fn server() -> ServerConnection {
        let provider = Arc::new(ring::default_provider());
        let own = CertificateDer::pem_slice_iter(SERVER).map(Result::unwrap);
        let key = PrivateKeyDer::from_pem_slice(SERVER).unwrap();
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(own.collect(), key);
        ServerConnection::new(Arc::new(config.unwrap())).unwrap()
    }

    /// Whether a client that trusts who is in the file `root` goes on with the server as `name`.
    fn goes_on(verify: Verify, root: &str, name: &'static str) -> bool {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/store/server/tls");
        let files = Files {
            root: Some(folder.join(root)),
            certificate: None,
            key: None,
        };
        let config = Arc::new(config(verify, &files).unwrap());
        let mut client = ClientConnection::new(config, name.try_into().unwrap()).unwrap();
        let mut server = server();
        while client.is_handshaking() {
            let (mut there, mut back) = (Vec::new(), Vec::new());
            while client.wants_write() {
                client.write_tls(&mut there).unwrap();
            }
            server.read_tls(&mut &there[..]).unwrap();
            server.process_new_packets().unwrap();
            while server.wants_write() {
                server.write_tls(&mut back).unwrap();
            }
            client.read_tls(&mut &back[..]).unwrap();
            if client.process_new_packets().is_err() {
                return false;
            }
        }
        true
    }

    #[test]
    fn names_are_verified_unless_the_user_says_otherwise() {
        let other = "other.example.org";
        for (verify, root, name, expected) in [
            (Verify::Name, "authority.pem", NAME, true),
            (Verify::Name, "authority.pem", other, false),
            // The server has not vouched for itself.
            (Verify::Name, "server.pem", NAME, false),
            (Verify::Issuer, "authority.pem", other, true),
            (Verify::Issuer, "server.pem", NAME, false),
            (Verify::Nothing, "server.pem", other, true),
        ] {
            let found = goes_on(verify, root, name);
            assert_eq!(found, expected, "{verify:?} {root} {name}");
        }
    }
}
