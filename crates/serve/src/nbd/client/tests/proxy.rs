//! [`Proxy`]: a way to a server that can be cut.

use std::io;
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// Listens at one socket and passes on to another, for as long as it is told to.
pub struct Proxy {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    /// Where to; nowhere while the way is cut.
    to: Mutex<Option<PathBuf>>,
    open: Mutex<Vec<UnixStream>>,
}

impl Proxy {
    /// It ends with the process.
    pub fn new(at: &Path, to: &Path) -> Self {
        let shared = Arc::new(Shared::default());
        *shared.to.lock().unwrap() = Some(to.into());
        let listener = UnixListener::bind(at).unwrap();
        let own = Arc::clone(&shared);
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                // Where it cannot pass on, the client is left alone.
                let _ = own.pass(client);
            }
        });
        Self { shared }
    }

    /// Cuts all connections, and lets none be made.
    pub fn cut(&self) {
        let mut to = self.shared.to.lock().unwrap();
        *to = None;
        for stream in self.shared.open.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Lets connections be made again.
    pub fn mend(&self, to: &Path) {
        *self.shared.to.lock().unwrap() = Some(to.into());
    }
}

impl Shared {
    fn pass(&self, client: UnixStream) -> io::Result<()> {
        // Held, so that none is forgotten when all are cut.
        let to = self.to.lock().unwrap();
        let Some(path) = &*to else {
            return Ok(());
        };
        let server = UnixStream::connect(path)?;
        let mut open = self.open.lock().unwrap();
        for (from, to) in [(&client, &server), (&server, &client)] {
            let (mut from, mut to) = (from.try_clone()?, to.try_clone()?);
            open.push(from.try_clone()?);
            std::thread::spawn(move || {
                let _ = io::copy(&mut from, &mut to);
                let _ = to.shutdown(Shutdown::Both);
            });
        }
        Ok(())
    }
}
