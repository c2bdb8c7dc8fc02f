//! The client against servers that come, go, lose and lie.

mod hostile;
mod lasting;
mod proxy;

use super::{ClientError, NbdDevice, Uri};
use crate::nbd::handshake::Named;
use crate::nbd::server::{End, Place, Server};
use crate::{Access, Export};
use block::BlockDevice;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

/// Our server, on a thread.
struct Running {
    end: End,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    fn start(socket: &Path, device: Arc<dyn BlockDevice>, access: Access) -> Self {
        let export = Named {
            name: "disk".into(),
            description: String::new(),
            export: Arc::new(Export::new(device, access)),
        };
        let server = Server::listen(Place::Unix(socket.into()), vec![export], 4).unwrap();
        Self {
            end: server.end(),
            thread: Some(std::thread::spawn(move || server.run().unwrap())),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end.now();
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

fn uri(socket: &Path) -> Uri {
    let text = format!("nbd+unix:///disk?socket={}", socket.display());
    Uri::parse(text.as_ref()).unwrap()
}

/// A folder for sockets.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

/// An error and all that is behind it.
fn told(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text += &format!(": {error}");
        source = error.source();
    }
    text
}
