//! Any bytes as an NBD client, an NBD server and the URI of one: what the fuzzer and a test with
//! random bytes drive. Whatever the other side says, each side ends.

use block::{BlockDevice, ByteRange, RamDevice};
use serve::nbd::{Named, NbdDevice, Place, Server, Uri};
use serve::{Access, Export, Extent};
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::{Arc, LazyLock, Mutex};
use std::thread;
use std::time::Duration;
use tempfile::TempDir;

/// A parser that takes any bytes.
pub type Target = fn(&[u8]);

/// Both sides, and the address.
pub const TARGETS: &[(&str, Target)] = &[
    ("nbd_client", nbd_client),
    ("nbd_server", nbd_server),
    ("nbd_uri", nbd_uri),
];

/// Bytes of the export.
const SIZE: u64 = 256 << 10;

/// What one side says, at most: less than a socket holds, so that saying it never waits.
const MOST: usize = 64 << 10;

/// A folder, and a socket in it.
fn socket() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    (folder, path)
}

/// What a client says to the server here, before it stops sending. The server answers and leaves.
pub fn nbd_client(input: &[u8]) {
    static SERVER: LazyLock<(TempDir, PathBuf)> = LazyLock::new(|| {
        let (folder, path) = socket();
        let named = |name: &str, access| {
            let export = Export::new(Arc::new(RamDevice::new(SIZE)), access);
            let export = export.with_allocation(|range| {
                let half = range.length / 2;
                let extent = |offset, length, hole| Extent {
                    range: ByteRange::new(offset, length),
                    hole,
                };
                let second = extent(range.offset + half, range.length - half, false);
                Ok(vec![extent(range.offset, half, true), second])
            });
            Named {
                name: name.into(),
                description: String::new(),
                export: Arc::new(export),
            }
        };
        let exports = vec![named("a", Access::Write), named("b", Access::Read)];
        let server = Server::listen(Place::Unix(path.clone()), exports, 1).unwrap();
        thread::spawn(move || server.run().unwrap());
        (folder, path)
    });
    let (_, path) = &*SERVER;
    let mut client = UnixStream::connect(path).unwrap();
    client
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    // The server may leave before it has heard all.
    let _ = client.write_all(&input[..input.len().min(MOST)]);
    let _ = client.shutdown(Shutdown::Write);
    let mut heard = [0; 64 << 10];
    loop {
        match client.read(&mut heard) {
            Ok(0) => break,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                panic!("the server neither answers nor leaves");
            }
            Err(_) => break,
            Ok(_) => {}
        }
    }
}

/// What a server says to the client here on each connection, before it stops sending.
pub fn nbd_server(input: &[u8]) {
    static SPEECH: Mutex<Vec<u8>> = Mutex::new(Vec::new());
    static SERVER: LazyLock<(TempDir, PathBuf)> = LazyLock::new(|| {
        let (folder, path) = socket();
        let listener = UnixListener::bind(&path).unwrap();
        let serve = |mut client: UnixStream| {
            let speech = SPEECH.lock().unwrap().clone();
            let _ = client.write_all(&speech);
            let _ = client.shutdown(Shutdown::Write);
            // Until the client leaves: closing earlier would lose what it has not read.
            let _ = std::io::copy(&mut client, &mut std::io::sink());
        };
        thread::spawn(move || {
            for client in listener.incoming() {
                let client = client.unwrap();
                thread::spawn(move || serve(client));
            }
        });
        (folder, path)
    });
    let (_, path) = &*SERVER;
    *SPEECH.lock().unwrap() = input[..input.len().min(MOST)].to_vec();
    let device = match NbdDevice::connect(&Place::Unix(path.clone()), "a") {
        Ok(device) => device.with_patience(Duration::from_secs(10)),
        Err(error) => {
            let told = error.to_string();
            return assert!(!told.contains(char::is_control), "{told:?}");
        }
    };
    let block = device.geometry().logical_block as usize;
    let mut buffer = vec![0; 4 * block];
    let _ = device.read_at(0, &mut buffer);
    let _ = device.write_at(0, &buffer);
    let _ = device.flush();
    let _ = device.read_at(0, &mut buffer[..block]);
}

/// A URI. What is read is written in a form that is read as the same.
pub fn nbd_uri(input: &[u8]) {
    use std::os::unix::ffi::OsStrExt;
    match Uri::parse(std::ffi::OsStr::from_bytes(input)) {
        Ok(uri) => {
            let again = uri.to_string();
            assert_eq!(Uri::parse(again.as_ref()).ok(), Some(uri), "{again}");
        }
        Err(error) => {
            let told = error.to_string();
            // Bytes that are not text are written in four or more.
            assert!(told.len() < 12 * input.len() + 1000);
        }
    }
}
