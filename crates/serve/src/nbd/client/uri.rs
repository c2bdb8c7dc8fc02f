//! [`Uri`]: an export by the NBD project's `doc/uri.md` (2023).

use super::ClientError;
use super::road::Address;
use crate::nbd::wire::LONGEST_NAME;
use fluent_uri::component::Host;
use percent_encoding::{
    AsciiSet, CONTROLS, NON_ALPHANUMERIC, PercentEncode, percent_decode_str, percent_encode,
    utf8_percent_encode,
};
use std::ffi::OsStr;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The port that IANA has assigned.
const PORT: u16 = 10809;

/// The characters to escape in the paths of exports and sockets: all but letters, digits and these.
const KEPT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'/');

/// Characters that a URI may hold only as `%XX`, but that people type: blanks, quotes and others.
/// All characters outside ASCII are escaped too. Existing `%XX` stays.
const TYPED: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'<')
    .add(b'>')
    .add(b'\\')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// Where an export is, what it is called, and whether TLS goes there.
///
/// `nbd+unix:///EXPORT?socket=PATH`, `nbd://HOST[:PORT]/EXPORT`, and with an `s`
/// behind `nbd` the same by TLS. Displayed, it is spelled in one way, whatever
/// way was taken to write it: the socket's path is absolute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uri {
    pub(super) address: Address,
    pub(super) export: String,
    pub(super) tls: Option<Tls>,
}

/// The TLS parameters of a URI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tls {
    /// Where the certificates are.
    pub certificates: PathBuf,
    /// The host name that the server's certificate must carry.
    pub hostname: String,
}

impl Uri {
    /// Reads a URI. The schemes are `nbd`, `nbds`, `nbd+unix` and `nbds+unix`,
    /// the parameters `socket` and, for TLS, `tls-certificates` (a directory, as
    /// libnbd has it), `tls-hostname` and `tls-type=x509`.
    ///
    /// # Errors
    /// [`ClientError::Uri`] says what is wrong with it.
    pub fn parse(text: &OsStr) -> Result<Self, ClientError> {
        let refused = |what| ClientError::Uri {
            text: text.to_owned(),
            what,
        };
        let known = text.to_str().ok_or(refused("it is not UTF-8"))?;
        let known = utf8_percent_encode(known, TYPED).to_string();
        let uri = fluent_uri::Uri::parse(known.as_str()).map_err(|_| refused("it is malformed"))?;
        let (unix, secure) = match uri.scheme().as_str().to_ascii_lowercase().as_str() {
            "nbd" => (false, false),
            "nbds" => (false, true),
            "nbd+unix" => (true, false),
            "nbds+unix" => (true, true),
            _ => {
                return Err(refused(
                    "its scheme is not nbd, nbds, nbd+unix or nbds+unix",
                ));
            }
        };
        let authority = uri.authority().ok_or(refused("it names no host"))?;
        if authority.userinfo().is_some() {
            return Err(refused("user names are only for TLS with pre-shared keys"));
        }
        if uri.fragment().is_some() {
            return Err(refused("it has a fragment (#)"));
        }
        let query = uri.query().map_or("", |query| query.as_str());
        let parameters = Parameters::of(query).map_err(refused)?;
        let host = match authority.host_parsed() {
            Host::RegName(name) if name.is_empty() => None,
            Host::RegName(name) => {
                // Another character, decoded, would end the host in the written form.
                let letter = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
                let name = decoded(name.as_str()).map_err(refused)?;
                if !name.chars().all(|c| letter(c) || !c.is_ascii()) {
                    return Err(refused("its host name has characters that no host has"));
                }
                Some(name)
            }
            Host::Ipv4(address) => Some(address.to_string()),
            Host::Ipv6(address) => Some(address.to_string()),
            _ => {
                return Err(refused(
                    "its address is neither a host name nor an IP address",
                ));
            }
        };
        let port = authority.port_to_u16();
        let port = port.map_err(|_| refused("its port is not valid"))?;
        let address = match (unix, host.clone(), parameters.socket) {
            (true, None, Some(socket)) => {
                let path = std::path::absolute(socket);
                Address::Unix(path.map_err(|_| refused("its socket has no name"))?)
            }
            (true, None, None) => return Err(refused("it names no socket (?socket=PATH)")),
            (true, Some(_), _) => {
                return Err(refused(
                    "a socket cannot be on another host (write nbd+unix:///)",
                ));
            }
            (false, _, Some(_)) => return Err(refused("sockets are for nbd+unix and nbds+unix")),
            (false, None, None) => return Err(refused("it names no host")),
            (false, Some(host), None) => Address::Tcp {
                host,
                port: port.unwrap_or(PORT),
            },
        };
        let path = uri.path().as_str();
        let tls = match (secure, parameters.certificates) {
            (true, Some(certificates)) => Some(Tls {
                certificates: std::path::absolute(certificates)
                    .map_err(|_| refused("its directory of certificates has no name"))?,
                hostname: parameters
                    .hostname
                    .or(host)
                    .unwrap_or_else(|| "localhost".to_owned()),
            }),
            (true, None) => {
                return Err(refused(
                    "TLS needs the directory with ca-cert.pem (tls-certificates=DIR)",
                ));
            }
            (false, None) if parameters.hostname.is_none() => None,
            (false, _) => return Err(refused("TLS is for nbds and nbds+unix")),
        };
        Ok(Self {
            address,
            export: decoded(path.strip_prefix('/').unwrap_or(path)).map_err(refused)?,
            tls,
        })
    }
}

impl Uri {
    /// The name of the export. The empty name means the server's default export.
    pub fn export(&self) -> &str {
        &self.export
    }

    /// The TCP port of the server; `None` for a Unix socket.
    pub fn port(&self) -> Option<u16> {
        match &self.address {
            Address::Unix(_) => None,
            Address::Tcp { port, .. } => Some(*port),
        }
    }

    /// Names of the server that two URIs share if they lead to it, as far as this machine knows.
    /// They are the socket's path without links and its inode, or the host's addresses.
    pub fn servers(&self) -> Vec<String> {
        match &self.address {
            Address::Unix(socket) => {
                let path = socket.canonicalize().unwrap_or_else(|_| socket.clone());
                // Another kind of file may have the inode of a socket that is gone but still in
                // use.
                let inode = std::fs::metadata(&path).ok();
                let inode = inode.filter(|found| found.file_type().is_socket());
                // Its number may soon be another socket's, which began at another time.
                let inode = inode.map(|found| {
                    let began = found.created().ok();
                    format!("{}:{}:{began:?}", found.dev(), found.ino())
                });
                let names = [Some(path.display().to_string()), inode].into_iter();
                names.flatten().collect()
            }
            Address::Tcp { host, port } => {
                let addresses = (host.as_str(), *port).to_socket_addrs();
                let addresses = addresses.into_iter().flatten();
                let mut names: Vec<_> = addresses.map(|at| reached(at).to_string()).collect();
                names.sort();
                names.dedup();
                names
            }
        }
    }
}

/// The address that a connection to this one reaches: that of no host in particular is this
/// machine's own.
fn reached(mut at: SocketAddr) -> SocketAddr {
    at.set_ip(match at.ip().to_canonical() {
        IpAddr::V4(any) if any.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(any) if any.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        other => other,
    });
    at
}

/// The parameters that are known, decoded.
#[derive(Default)]
struct Parameters {
    socket: Option<PathBuf>,
    certificates: Option<PathBuf>,
    hostname: Option<String>,
}

impl Parameters {
    /// Reads the parameters of `query`. An unknown parameter is an error.
    fn of(query: &str) -> Result<Self, &'static str> {
        let mut found = Self::default();
        let pairs = query.split('&');
        for pair in pairs.filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            // As for all URIs: a plus is a plus.
            let path = PathBuf::from(std::ffi::OsString::from_vec(
                percent_decode_str(value).collect(),
            ));
            let again = match name {
                "socket" if path.as_os_str().is_empty() => return Err("its socket has no name"),
                "socket" if path.as_os_str().as_bytes().contains(&0) => {
                    return Err("its socket is not in the file system");
                }
                "socket" => found.socket.replace(path).is_some(),
                "tls-certificates" => found.certificates.replace(path).is_some(),
                "tls-hostname" => found.hostname.replace(decoded(value)?).is_some(),
                "tls-type" if value == "x509" => false,
                "tls-type" => return Err("its tls-type is not x509"),
                "tls-verify-peer" if value == "1" => false,
                "tls-verify-peer" => return Err("servers are always verified"),
                _ => {
                    return Err(
                        "it has a parameter other than socket, tls-certificates, tls-hostname and \
                         tls-type",
                    );
                }
            };
            if again {
                return Err("it has the same parameter twice");
            }
        }
        Ok(found)
    }
}

fn decoded(text: &str) -> Result<String, &'static str> {
    let decoded = percent_decode_str(text).decode_utf8();
    match decoded {
        Ok(decoded) if decoded.contains('\0') => Err("it contains a NUL"),
        Ok(decoded) if decoded.len() > LONGEST_NAME => Err("a name in it is too long"),
        Ok(decoded) => Ok(decoded.into_owned()),
        Err(_) => Err("it is not UTF-8"),
    }
}

fn path(path: &Path) -> PercentEncode<'_> {
    percent_encode(path.as_os_str().as_bytes(), KEPT)
}

impl fmt::Display for Uri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let secure = if self.tls.is_some() { "s" } else { "" };
        let export = utf8_percent_encode(&self.export, KEPT);
        let mut sign = '?';
        match &self.address {
            Address::Unix(socket) => {
                write!(f, "nbd{secure}+unix:///{export}?socket={}", path(socket))?;
                sign = '&';
            }
            Address::Tcp { host, port } if host.contains(':') => {
                write!(f, "nbd{secure}://[{host}]:{port}/{export}")?;
            }
            Address::Tcp { host, port } => write!(f, "nbd{secure}://{host}:{port}/{export}")?,
        }
        if let Some(tls) = &self.tls {
            let hostname = utf8_percent_encode(&tls.hostname, KEPT);
            let directory = path(&tls.certificates);
            write!(
                f,
                "{sign}tls-certificates={directory}&tls-hostname={hostname}"
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Uri, ClientError> {
        Uri::parse(text.as_ref())
    }

    #[test]
    fn uris_are_read_as_the_project_spells_them() {
        let tcp = |host: &str, port| Address::Tcp {
            host: host.into(),
            port,
        };
        let unix = |path: &str| Address::Unix(path.into());
        for (text, address, export) in [
            ("nbd://example.com", tcp("example.com", 10809), ""),
            ("nbd://example.com/", tcp("example.com", 10809), ""),
            ("nbd://example.com:1/disk", tcp("example.com", 1), "disk"),
            (
                "nbd://example.com//disk",
                tcp("example.com", 10809),
                "/disk",
            ),
            (
                "nbd://example.com/hello%20world",
                tcp("example.com", 10809),
                "hello world",
            ),
            ("nbd://127.0.0.1:5/a/b", tcp("127.0.0.1", 5), "a/b"),
            ("nbd://[::1]:7/x", tcp("::1", 7), "x"),
            ("nbd+unix:///?socket=/a/b.sock", unix("/a/b.sock"), ""),
            ("nbd+unix:///disk?socket=/a/b", unix("/a/b"), "disk"),
            ("nbd+unix:////d?socket=/a+b%20c&", unix("/a+b c"), "/d"),
            ("nbd+unix:///a b?socket=/ä {1}", unix("/ä {1}"), "a b"),
            ("NBD://h/%25", tcp("h", 10809), "%"),
        ] {
            let uri = parse(text).unwrap();
            assert_eq!(
                (&uri.address, uri.export.as_str()),
                (&address, export),
                "{text}"
            );
            assert_eq!(uri.tls, None);
            // The printed form means the same.
            assert_eq!(parse(&uri.to_string()).unwrap(), uri);
        }
        let here = std::env::current_dir().unwrap();
        let relative = parse("nbd+unix:///?socket=x.sock").unwrap();
        assert_eq!(relative.address, Address::Unix(here.join("x.sock")));
    }

    #[test]
    fn addresses_of_this_machine_are_one_server() {
        let servers = |text: &str| parse(text).unwrap().servers();
        assert_eq!(servers("nbd://0.0.0.0:7/x"), ["127.0.0.1:7"]);
        assert_eq!(servers("nbd://[::ffff:127.0.0.1]:7/"), ["127.0.0.1:7"]);
        assert_eq!(servers("nbd://[::]:7/"), ["[::1]:7"]);
    }

    #[test]
    fn uris_of_tls_name_certificates() {
        for (text, hostname) in [
            ("nbds://there:7/x?tls-certificates=/pki", "there"),
            (
                "nbds://there/x?tls-certificates=/pki&tls-hostname=else",
                "else",
            ),
            (
                "nbds+unix:///x?socket=/s&tls-certificates=/pki",
                "localhost",
            ),
            (
                "nbds+unix:///x?tls-type=x509&socket=/s&tls-certificates=/pki&tls-hostname=there",
                "there",
            ),
        ] {
            let uri = parse(text).unwrap();
            let tls = uri.tls.as_ref().unwrap();
            assert_eq!(
                (tls.hostname.as_str(), uri.export.as_str()),
                (hostname, "x")
            );
            assert_eq!(tls.certificates, Path::new("/pki"));
            assert_eq!(parse(&uri.to_string()).unwrap(), uri);
        }
    }

    #[test]
    fn what_is_no_uri_is_refused() {
        for text in [
            "",
            "nbd",
            "nbd:",
            "nbd://",
            "nbd:///disk",
            "nbd://host:port/",
            "nbd://host:99999/",
            "nbd://user@host/",
            "nbd://ho%2Fst/",
            "nbd://ho%3Ast/",
            "nbd://host/?socket=/s",
            "nbd://host/#there",
            "nbd://host/x%00y",
            "nbd://host/%ff",
            "nbd://host/?tls-certificates=/pki",
            "nbd://host/?tls-hostname=other",
            "nbd://host/?colour=red",
            "nbds://host/",
            "nbds://host/?tls-certificates=/pki&tls-verify-peer=0",
            "nbds://host/?tls-certificates=/pki&tls-type=psk",
            "nbd+unix:///",
            "nbd+unix:///?socket=",
            "nbd+unix:///?socket=%00abstract",
            "nbd+unix:///?socket=/a&socket=/b",
            "nbd+unix://host/?socket=/a",
            "nbd+ssh://host/disk",
            "http://host/disk",
            &format!("nbd://host/{}", "x".repeat(5000)),
        ] {
            let refused = parse(text);
            assert!(
                matches!(refused, Err(ClientError::Uri { .. })),
                "{text}: {refused:?}"
            );
        }
    }
}
