//! The server against clients of all kinds, byte by byte.

mod any_client;
mod hostile;
mod known;
mod model;
mod protocol;
mod raw;
mod secure;

use super::handshake::Named;
use super::server::{End, Place, Server};
use crate::{Access, Export};
use block::BlockDevice;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use tempfile::TempDir;

/// A server of a test's own, on a socket in a folder that goes with it.
struct Running {
    end: End,
    place: Place,
    thread: Option<JoinHandle<()>>,
    _folder: TempDir,
}

impl Running {
    fn start(exports: Vec<Named>, threads: usize) -> Self {
        Self::with(exports, threads, |server| server)
    }

    fn with(exports: Vec<Named>, threads: usize, change: impl FnOnce(Server) -> Server) -> Self {
        let folder = TempDir::new().unwrap();
        let place = Place::Unix(folder.path().join("socket"));
        let server = change(Server::listen(place.clone(), exports, threads).unwrap());
        let end = server.end();
        Self {
            end,
            place,
            thread: Some(std::thread::spawn(move || server.run().unwrap())),
            _folder: folder,
        }
    }

    fn path(&self) -> PathBuf {
        match &self.place {
            Place::Unix(path) => path.clone(),
            Place::Tcp(_) => unreachable!("tests listen at sockets"),
        }
    }

    fn stop(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.end.now();
            thread.join().unwrap();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop();
    }
}

fn named(name: &str, device: impl BlockDevice + 'static, access: Access) -> Named {
    Named {
        name: name.into(),
        description: format!("the export {name}"),
        export: Arc::new(Export::new(Arc::new(device), access)),
    }
}
