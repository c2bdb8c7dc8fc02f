//! VeraCrypt's console program: a volume in its format, as the file that it
//! serves by FUSE. That file is what its loop device and the file system on it
//! lie on.
//!
//! It wants root, or asks `sudo` for it.

use super::format::{PASSPHRASE, PIM, tcrypt_volume};
use super::served::{Name, folder, not_run, refused};
use super::{Encryption, Program, Reach, SystemId, Target, VolumeFormat};
use crate::error::LabError;
use block::{BlockDevice, FileDevice, FileOptions};
use cipher::Key;
use std::io::{self, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use tempfile::TempDir;
use volume::tcrypt::Family;

/// The program.
const COMMAND: &str = Program::Veracrypt.command();

/// Slots that it has.
const SLOTS: u32 = 64;

/// The prefix, before a number, of the folders in which VeraCrypt serves.
const SERVED: &str = ".veracrypt_aux_mnt";

/// VeraCrypt over a volume that is made on all of `storage`, which it reaches
/// by `reach`.
///
/// # Errors
/// [`LabError`] with what it said.
pub(super) fn mount(
    version: String,
    storage: &dyn BlockDevice,
    reach: &Reach,
    encryption: Encryption,
) -> Result<Target, LabError> {
    let asked = Encryption {
        backend: None,
        sharing: None,
        ..encryption
    };
    let passphrase = Key::from_slice(PASSPHRASE);
    let (encryption, mapping) = tcrypt_volume(storage, Family::VeraCrypt, asked, &passphrase)?;
    storage.flush()?;
    let mounted = Mounted::new(reach, &encryption)?;
    let options = FileOptions {
        write: true,
        direct: true,
        ..FileOptions::default()
    };
    Ok(Target {
        system: SystemId::Served(Program::Veracrypt),
        version,
        encryption: Some(encryption),
        backend: None,
        constant_time: None,
        elsewhere: None,
        format: Some(VolumeFormat::Veracrypt),
        device: Box::new(FileDevice::open(&mounted.file, &options)?),
        _server: Some(Box::new(mounted)),
        data_offset: mapping.data.offset,
    })
}

/// A volume that VeraCrypt serves; it is dismounted with this.
struct Mounted {
    slot: u32,
    file: PathBuf,
    /// Other targets use it as well.
    _name: Name,
    /// It serves in here, and the volume has a name here that no other target gives
    /// it: it serves a name once.
    folder: TempDir,
}

impl Mounted {
    fn new(reach: &Reach, encryption: &Encryption) -> Result<Self, LabError> {
        let name = Name::of(reach).map_err(failed)?;
        let folder = folder(COMMAND)?;
        let volume = folder.path().join("volume");
        symlink(name.path(), &volume).map_err(failed)?;
        for slot in (1..=SLOTS).rev() {
            let slot_text = format!("--slot={slot}");
            let pim = format!("--pim={PIM}");
            let output = speak(
                folder.path(),
                &["--mount", "--stdin", "--hash=sha512", "--keyfiles="],
                &["--protect-hidden=no", "--filesystem=none", &pim, &slot_text],
                Some(&volume),
            )?;
            if output.status.success() {
                let served = format!("{SERVED}1");
                return Ok(Self {
                    slot,
                    file: folder.path().join(served).join("volume"),
                    _name: name,
                    folder,
                });
            }
            let said = said(&output);
            if !said.contains("slot") {
                return Err(refused(COMMAND, encryption.spec, &said));
            }
        }
        Err(refused(
            COMMAND,
            encryption.spec,
            &format!("all of its {SLOTS} slots are in use"),
        ))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let slot = format!("--slot={}", self.slot);
        // Nothing of what it holds is needed any more.
        let _ = speak(self.folder.path(), &["--dismount", &slot], &[], None);
    }
}

/// Runs it, with the passphrase on its standard input.
fn speak(
    folder: &Path,
    words: &[&str],
    more: &[&str],
    volume: Option<&Path>,
) -> Result<Output, LabError> {
    let mut child = block::program::command(COMMAND)
        .args(["--text", "--non-interactive"])
        .args(words)
        .args(more)
        .args(["--mount-options=nokernelcrypto"])
        .args(volume)
        // VeraCrypt makes the folders in which it serves here.
        .env("TMPDIR", folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    if let Some(mut line) = child.stdin.take() {
        // One that ends without reading says why.
        let _ = line
            .write_all(PASSPHRASE)
            .and_then(|()| line.write_all(b"\n"));
    }
    child.wait_with_output().map_err(failed)
}

/// Its reason, in one line.
fn said(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let line = text.lines().find(|line| !line.trim().is_empty());
    line.unwrap_or("it gives no reason").to_owned()
}

fn failed(source: io::Error) -> LabError {
    not_run(COMMAND, source)
}
