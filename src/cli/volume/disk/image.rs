//! Disk images that are not raw: qcow2, VDI, VMDK, VHDX and VHD. QEMU's server
//! `qemu-nbd` reads and writes them, on a socket that only this user reaches.

use super::Claimed;
use crate::cli::Failure;
use crate::cli::volume::recognise::Wrapped;
use block::{BlockDevice, program};
use serde_json::json;
use serve::nbd::{NbdDevice, Uri};
use std::io::Read as _;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use volume::VolumeError;

/// How long the server may take to open an image.
const PATIENCE: Duration = Duration::from_secs(20);

/// How often the socket is looked for.
const PAUSE: Duration = Duration::from_millis(5);

/// QEMU's program.
const PROGRAM: &str = "qemu-nbd";

/// A running `qemu-nbd`. It ends when its last client has gone, also when this
/// process is killed.
pub struct Server {
    child: Child,
    folder: TempDir,
    has_client: bool,
}

impl Drop for Server {
    fn drop(&mut self) {
        // The image is whole and free only when the server has closed it.
        let ended = self.child.wait();
        if self.has_client && !ended.is_ok_and(|status| status.success()) {
            let said = complaint(&mut self.child);
            eprintln!("warning: {PROGRAM} failed while it was ending. {said}");
        }
    }
}

/// An image, and QEMU's driver for it.
pub struct Image<'a> {
    place: &'a Path,
    driver: &'static str,
}

impl<'a> Image<'a> {
    /// The image at `place` whose file is `raw`. A file is none, and what its bytes are, if
    /// QEMU's program is not there.
    ///
    /// # Errors
    /// Exit code 2 for an image whose data are in other files too.
    pub fn of(place: &'a Path, raw: &dyn BlockDevice) -> Result<Option<Self>, Failure> {
        // A volume opens even if its first bytes cannot be read.
        let Ok(first) = start_of(raw, 4096) else {
            return Ok(None);
        };
        let Some(Wrapped::Image { what, driver }) = Wrapped::known(&first) else {
            return Ok(None);
        };
        let Some(driver) = driver.filter(|_| program::is_there(PROGRAM)) else {
            return Ok(None);
        };
        let start = start_of(raw, 64 << 10).map_err(VolumeError::Block)?;
        match needs_another_file(driver, &start) {
            false => Ok(Some(Self { place, driver })),
            true => Err(Failure::new(
                2,
                format!(
                    "{} is {what} whose data are partly in another file",
                    place.display()
                ),
                "If you trust the names of files in it, serve it with `qemu-nbd`, and give the \
                 URI of the export.",
            )),
        }
    }

    /// Starts QEMU's server for it. QEMU locks the file.
    ///
    /// # Errors
    /// Exit code 4 if another program has the image, 2 with QEMU's words if QEMU cannot
    /// open it.
    pub fn open(&self, write: bool) -> Result<Claimed, Failure> {
        let (mut server, uri) = Server::start(self, write)?;
        let device = server.connect(&uri, self.place)?;
        Ok(Claimed {
            device,
            _claim: None,
            _server: Some(server),
        })
    }
}

/// The first whole blocks, at most `bytes` bytes.
fn start_of(raw: &dyn BlockDevice, bytes: u64) -> Result<Vec<u8>, block::BlockError> {
    let geometry = raw.geometry();
    let block = u64::from(geometry.logical_block);
    let mut start = vec![0; (geometry.size.min(bytes) / block * block) as usize];
    raw.read_at(0, &mut start)?;
    Ok(start)
}

/// Whether the image names another file, from which QEMU would read. The author of the image could
/// name any file of this user.
fn needs_another_file(driver: &str, start: &[u8]) -> bool {
    let number = |at: usize| {
        let bytes = start
            .get(at..at + 8)
            .and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, u64::from_be_bytes)
    };
    match driver {
        // The offset of the backing file's name, and the feature of an external data file.
        "qcow2" => number(8) != 0 || (number(4) >> 32 >= 3 && number(72) & 4 != 0),
        "vmdk" => {
            let text = String::from_utf8_lossy(start);
            !text.contains("parentCID=ffffffff") || text.contains("parentFileNameHint")
        }
        _ => false,
    }
}

impl Server {
    fn start(image: &Image<'_>, write: bool) -> Result<(Self, Uri), Failure> {
        let failed = |error: std::io::Error| {
            Failure::new(
                1,
                format!("{PROGRAM} cannot be started: {error}"),
                "Check that there is room for temporary files.",
            )
        };
        let file = std::path::absolute(image.place).map_err(failed)?;
        let file = file.to_str().ok_or_else(|| {
            let what = format!("the name of {} is not UTF-8", image.place.display());
            Failure::new(2, what, "Rename the file: QEMU takes no other names here.")
        })?;
        let folder = tempfile::Builder::new()
            .prefix("cryptmark-image")
            .tempdir()
            .map_err(failed)?;
        let socket = folder.path().join("socket");
        let driver = image.driver;
        let mut node = json!({ "driver": driver, "file": { "driver": "file", "filename": file } });
        if matches!(driver, "qcow2" | "vmdk") {
            node["backing"] = serde_json::Value::Null;
        }
        let child = program::command(PROGRAM)
            .arg("--socket")
            .arg(&socket)
            .args(["--shared=0", "--cache=writeback", "--discard=unmap"])
            .args((!write).then_some("--read-only"))
            .arg(format!("json:{node}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let uri = Uri::parse(format!("nbd+unix:///?socket={}", socket.display()).as_ref())?;
        let server = Self {
            child,
            folder,
            has_client: false,
        };
        Ok((server, uri))
    }

    /// The export, when the server has opened the image: it listens before it does.
    fn connect(&mut self, uri: &Uri, place: &Path) -> Result<NbdDevice, Failure> {
        let socket = self.folder.path().join("socket");
        let begun = Instant::now();
        while !socket.exists() && self.is_running() && begun.elapsed() < PATIENCE {
            std::thread::sleep(PAUSE);
        }
        match NbdDevice::open(uri) {
            Ok(device) => {
                self.has_client = true;
                Ok(device)
            }
            Err(_) => {
                let _ = self.child.kill();
                let _ = self.child.wait();
                Err(refused(place, &complaint(&mut self.child)))
            }
        }
    }

    fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }
}

/// QEMU does not open the image, and says why.
fn refused(place: &Path, said: &str) -> Failure {
    let (code, remedy) = match said.contains(" lock") {
        true => (4, "Close the image in the other program."),
        false => (2, "Check the image with `qemu-img check`."),
    };
    let what = format!("{PROGRAM} cannot open {}: {said}", place.display());
    Failure::new(code, what, remedy)
}

/// The error message of the program, which has ended.
fn complaint(child: &mut Child) -> String {
    let mut said = String::new();
    if let Some(stderr) = child.stderr.take() {
        let _ = stderr.take(4096).read_to_string(&mut said);
    }
    let said = said.trim().trim_start_matches("qemu-nbd: ");
    match said.is_empty() {
        true => "It gave no reason.".to_owned(),
        false => said.replace('\n', " "),
    }
}
