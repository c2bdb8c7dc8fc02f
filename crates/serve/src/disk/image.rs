//! Disk images that are not raw: qcow2, VDI, VMDK, VHDX and VHD. QEMU's server
//! `qemu-nbd` reads and writes them, on a socket that only this user reaches.

use super::DiskError;
use crate::nbd::{NbdDevice, Uri};
use block::signature::Wrapped;
use block::{BlockDevice, BlockError, confine, program};
use serde_json::json;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

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
    /// The folder of its socket, until there is a connection. It accepts none after its last.
    folder: Option<TempDir>,
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
    what: &'static str,
    driver: &'static str,
}

impl<'a> Image<'a> {
    /// The image at `place` whose file is `raw`. A file is none, and what its bytes are, if
    /// QEMU's program is not there.
    ///
    /// # Errors
    /// [`DiskError::Parts`] for an image whose data are in other files too.
    pub fn of(place: &'a Path, raw: &dyn BlockDevice) -> Result<Option<Self>, DiskError> {
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
        let start = start_of(raw, 64 << 10)?;
        match needs_another_file(driver, &start) {
            false => Ok(Some(Self {
                place,
                what,
                driver,
            })),
            true => Err(parts(place, what)),
        }
    }

    /// Starts QEMU's server for it. QEMU locks the file.
    ///
    /// # Errors
    /// [`DiskError::Qemu`] with QEMU's words if it cannot open it, and [`DiskError::Start`].
    pub fn open(&self, write: bool) -> Result<NbdDevice, DiskError> {
        let (mut server, uri) = Server::start(self, write)?;
        let device = server.connect(&uri, self.place)?;
        Ok(device.kept_by(server))
    }
}

/// The first whole blocks, at most `bytes` bytes.
fn start_of(raw: &dyn BlockDevice, bytes: u64) -> Result<Vec<u8>, BlockError> {
    let geometry = raw.geometry();
    let block = u64::from(geometry.logical_block);
    let mut start = vec![0; (geometry.size.min(bytes) / block * block) as usize];
    raw.read_at(0, &mut start)?;
    Ok(start)
}

/// Whether the image is not one sparse file by itself, as far as its start says. QEMU would read
/// and write the files that it names, and its author could name any file of this user.
fn needs_another_file(driver: &str, start: &[u8]) -> bool {
    let bytes = |at: usize, length: usize| start.get(at..at + length).unwrap_or_default();
    let number = |at: usize| bytes(at, 8).try_into().map_or(0, u64::from_be_bytes);
    let text = |wanted: &str| {
        let wanted = wanted.as_bytes();
        start.windows(wanted.len()).any(|part| part == wanted)
    };
    // Bytes that were not read may be anything.
    let is_zero = |at, length| {
        let bytes = bytes(at, length);
        bytes.len() == length && bytes.iter().all(|&byte| byte == 0)
    };
    match driver {
        // The offset of the backing file's name, and the feature of an external data file.
        "qcow2" => number(8) != 0 || (number(4) >> 32 >= 3 && number(72) & 4 != 0),
        // A capacity of zero has QEMU look for the extents that the description names.
        "vmdk" => {
            let is_sparse = text("\"monolithicSparse\"") || text("\"streamOptimized\"");
            let is_foreign = [
                "FLAT",
                "VMFS",
                "VMFSSPARSE",
                "VMFSRDM",
                "VMFSRAW",
                "SESPARSE",
            ]
            .iter()
            .any(|kind| text(&format!(" {kind} \"")));
            is_zero(12, 8)
                || !is_sparse
                || is_foreign
                || !text("parentCID=ffffffff")
                || text("parentFileNameHint")
        }
        // The type of a dynamic disk, not that of a differencing one. The parent's UUID and the
        // places of its name are in the second header.
        "vpc" => {
            let header = usize::try_from(number(16)).unwrap_or(usize::MAX);
            header > start.len()
                || bytes(60, 4) != [0, 0, 0, 3]
                || bytes(header, 8) != b"cxsparse"
                || !is_zero(header + 40, 16)
                || !is_zero(header + 576, 8 * 24)
        }
        // A dynamic or a fixed disk.
        "vdi" => !matches!(bytes(0x4c, 4), [1 | 2, 0, 0, 0]),
        // QEMU opens no VHDX with a parent.
        _ => false,
    }
}

/// QEMU's file of an image, and how it opens it.
struct Node {
    file: String,
    json: serde_json::Value,
}

impl Node {
    fn of(image: &Image<'_>) -> Result<Self, DiskError> {
        let file = std::path::absolute(image.place).map_err(DiskError::Start)?;
        let file = file.to_str().ok_or_else(|| DiskError::NotText {
            path: image.place.to_owned(),
        })?;
        let driver = image.driver;
        let mut json = json!({ "driver": driver, "file": { "driver": "file", "filename": file } });
        if matches!(driver, "qcow2" | "vmdk") {
            json["backing"] = serde_json::Value::Null;
        }
        let file = file.to_owned();
        Ok(Self { file, json })
    }

    /// Asks QEMU, without writing, whether it uses this file alone. What it cannot open, its server
    /// refuses with the reason.
    fn is_alone(&self, driver: &str) -> bool {
        let mut command = program::command("qemu-img");
        command
            .args(["info", "--force-share", "--output=json"])
            .arg(format!("json:{}", self.json))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let image = (PathBuf::from(&self.file), confine::read());
        let told = confine::start(&mut command, &[image]).and_then(Child::wait_with_output);
        let told = told.map(|told| serde_json::from_slice::<serde_json::Value>(&told.stdout));
        let Ok(Ok(told)) = told else {
            return true;
        };
        let own = |file: &serde_json::Value| *file == *self.file;
        let data = &told["format-specific"]["data"];
        let extents = data["extents"].as_array().map_or(&[][..], Vec::as_slice);
        let children = told["children"].as_array().map_or(&[][..], Vec::as_slice);
        told["format"] == *driver
            && told["backing-filename"].is_null()
            && told["full-backing-filename"].is_null()
            && data["data-file"].is_null()
            && extents.len() <= 1
            && extents.iter().all(|extent| own(&extent["filename"]))
            && children.iter().all(|child| child["name"] == "file")
    }
}

/// Refuses an image whose data are in several files.
fn parts(place: &Path, what: &'static str) -> DiskError {
    let path = place.to_owned();
    DiskError::Parts { path, what }
}

impl Server {
    fn start(image: &Image<'_>, write: bool) -> Result<(Self, Uri), DiskError> {
        let failed = DiskError::Start;
        let node = Node::of(image)?;
        if !node.is_alone(image.driver) {
            return Err(parts(image.place, image.what));
        }
        let folder = tempfile::Builder::new()
            .prefix("cryptmark-image")
            .tempdir()
            .map_err(failed)?;
        let socket = folder.path().join("socket");
        let access = match write {
            true => confine::use_(),
            false => confine::read(),
        };
        let mut command = program::command(PROGRAM);
        command
            .arg("--socket")
            .arg(&socket)
            .args(["--shared=0", "--cache=writeback", "--discard=unmap"])
            .args((!write).then_some("--read-only"))
            .arg(format!("json:{}", node.json))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let allowed = [
            (PathBuf::from(&node.file), access),
            (folder.path().to_owned(), confine::name_sockets()),
        ];
        let child = confine::start(&mut command, &allowed).map_err(failed)?;
        let uri = Uri::parse(format!("nbd+unix:///?socket={}", socket.display()).as_ref())?;
        let server = Self {
            child,
            folder: Some(folder),
            has_client: false,
        };
        Ok((server, uri))
    }

    /// The export, when the server has opened the image: it listens before it does.
    fn connect(&mut self, uri: &Uri, place: &Path) -> Result<NbdDevice, DiskError> {
        let folder = self.folder.take();
        let socket = folder.as_ref().map(|folder| folder.path().join("socket"));
        let is_there = || socket.as_ref().is_some_and(|socket| socket.exists());
        let begun = Instant::now();
        while !is_there() && self.is_running() && begun.elapsed() < PATIENCE {
            std::thread::sleep(PAUSE);
        }
        // The socket has its name a little before it listens.
        let device = loop {
            match NbdDevice::open(uri) {
                Err(_) if self.is_running() && begun.elapsed() < PATIENCE => {
                    std::thread::sleep(PAUSE);
                }
                device => break device,
            }
        };
        match device {
            Ok(device) => {
                self.has_client = true;
                Ok(device)
            }
            Err(_) => {
                let _ = self.child.kill();
                let _ = self.child.wait();
                Err(DiskError::Qemu {
                    path: place.to_owned(),
                    said: complaint(&mut self.child),
                })
            }
        }
    }

    fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parent_behind_the_bytes_that_were_read_is_not_ruled_out() {
        const HEADER: usize = 512;
        let mut start = vec![0; 64 << 10];
        start[16..24].copy_from_slice(&(HEADER as u64).to_be_bytes());
        start[60..64].copy_from_slice(&[0, 0, 0, 3]);
        start[HEADER..HEADER + 8].copy_from_slice(b"cxsparse");
        assert!(!needs_another_file("vpc", &start));
        start.truncate(HEADER + 600);
        assert!(needs_another_file("vpc", &start));
    }
}
