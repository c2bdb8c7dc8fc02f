//! Volumes that live as long as a check, by this program's own commands.

use crate::cli::Failure;
use block::layer::TrimPolicy;
use block::layers::{self, Seen};
use block::{BlockDevice, ByteRange, FileDevice, FileOptions};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// Bytes of an image, and where its data begins.
const SIZE: u64 = 80 << 20;
const DATA: u64 = 16 << 20;
/// Bytes of a field of the map.
const FIELD: usize = 64 << 10;

/// A folder with a volume full of noise, as VeraCrypt leaves one, and the
/// volume as it was then.
pub struct Scratch {
    folder: TempDir,
}

impl Scratch {
    /// Makes the volume in a folder of its own in `at`, with a file system.
    pub fn new(at: &Path, fs_type: &str) -> Result<Self, Failure> {
        let failed = |error: io::Error| {
            Failure::new(
                1,
                format!("cannot make a volume in {}: {error}", at.display()),
                "Choose a directory with 160 MiB of room: --at DIR.",
            )
        };
        let folder = TempDir::with_prefix_in(".cryptmark-trim-", at).map_err(failed)?;
        let scratch = Self { folder };
        let make = || -> io::Result<()> {
            fs::create_dir(scratch.path("mounted"))?;
            fs::write(scratch.path("line"), "of no use to anyone\n")?;
            let mut noise = File::open("/dev/urandom")?;
            let mut image = File::create_new(scratch.image())?;
            io::copy(&mut io::Read::take(&mut noise, SIZE), &mut image)?;
            image.flush()
        };
        make().map_err(failed)?;
        let cheap = ["--pbkdf", "pbkdf2", "--pbkdf-force-iterations", "1000"];
        scratch.volume(&[&["create", "image", "--yes", "--no-progress"], &cheap[..]].concat())?;
        scratch.volume(&["mount", "image", "mounted", "--as", "file", "--daemon"])?;
        let made =
            scratch.run(block::program::command(format!("mkfs.{fs_type}")).arg("mounted/volume"));
        scratch.end()?;
        made?;
        fs::copy(scratch.image(), scratch.path("before")).map_err(failed)?;
        Ok(scratch)
    }

    /// The volume's file.
    pub fn image(&self) -> PathBuf {
        self.path("image")
    }

    /// Mounts its file system.
    pub fn mount(&self, policy: TrimPolicy) -> Result<Mounted<'_>, Failure> {
        let trim = ["--trim", policy.name()];
        let mount = ["mount", "image", "mounted", "--as", "fs", "--daemon"];
        self.volume(&[&mount[..], &trim].concat())?;
        Ok(Mounted {
            scratch: self,
            directory: self.path("mounted"),
            ended: false,
        })
    }

    /// The state of every field of the image, compared with the image when the file system was
    /// made.
    pub fn map(&self) -> Result<Vec<Seen>, Failure> {
        let options = FileOptions {
            direct: false,
            ..FileOptions::default()
        };
        let open = |name: &str| FileDevice::open(&self.path(name), &options);
        let compare = || {
            let images: [&dyn BlockDevice; 2] = [&open("image")?, &open("before")?];
            layers::seen(images, ByteRange::new(DATA, SIZE - DATA), FIELD)
        };
        Ok(compare()?)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn volume(&self, arguments: &[&str]) -> Result<(), Failure> {
        let program = std::env::current_exe().map_err(|error| {
            Failure::new(
                1,
                format!("cannot find this program: {error}"),
                "Start it from where it is installed.",
            )
        })?;
        let mut command = block::program::command(program);
        command.arg("volume").args(arguments);
        if arguments[0] != "umount" {
            command.args(["--passphrase-file", "line"]);
        }
        self.run(&mut command)
    }

    fn end(&self) -> Result<(), Failure> {
        self.volume(&["umount", "mounted"])
    }

    /// Runs a program in the folder; what it says first is why it failed.
    fn run(&self, command: &mut Command) -> Result<(), Failure> {
        let name = command.get_program().to_string_lossy().into_owned();
        let output = command
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .output()
            .map_err(|error| {
                Failure::new(
                    1,
                    format!("cannot run {name}: {error}"),
                    "Install it, or choose another --fs-type.",
                )
            })?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.lines().next().unwrap_or("it gives no reason");
        Err(Failure::new(
            1,
            format!("{name} failed: {}", said.trim_start_matches("error: ")),
            "Check /dev/fuse and the loop devices: cryptmark doctor.",
        ))
    }
}

/// The file system of a scratch volume, mounted; dropped, it is unmounted.
pub struct Mounted<'a> {
    scratch: &'a Scratch,
    directory: PathBuf,
    ended: bool,
}

impl Mounted<'_> {
    /// Where.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Unmounts it.
    pub fn end(mut self) -> Result<(), Failure> {
        self.ended = true;
        self.scratch.end()
    }
}

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        if !self.ended {
            // Why it came to this is worth more.
            let _ = self.scratch.end();
        }
    }
}
