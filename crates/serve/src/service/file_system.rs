//! [`FileSystem`]: the file system in a plaintext, mounted by the system's programs.

use super::{Pinned, Place, Service, ServiceError};
use block::LoopDevice;
use std::path::Path;
use std::process::{Command, Stdio};

/// The file systems that users can mount.
const BY_USERS: [&str; 3] = ["ext2", "ext3", "ext4"];

/// What the user says of a file system.
#[derive(Clone, Copy, Debug, Default)]
pub struct FileSystem<'a> {
    /// Its type; `None` for what `mount` finds.
    pub kind: Option<&'a str>,
    /// Options, as `mount` takes them.
    pub options: Option<&'a str>,
}

impl FileSystem<'_> {
    /// Mounts what is in `file`: as root by a loop device, else ext2, ext3 or ext4 by `fuse2fs`.
    pub(super) fn mount(
        &self,
        service: &Service,
        file: &Path,
        directory: &Pinned,
    ) -> Result<(), ServiceError> {
        match rustix::process::geteuid().is_root() {
            true => self.by_kernel(service, file, directory),
            false => self.by_fuse2fs(service, file, directory.path()),
        }
    }

    fn by_kernel(
        &self,
        service: &Service,
        file: &Path,
        directory: &Pinned,
    ) -> Result<(), ServiceError> {
        let write = service.record().access == "write";
        let device = LoopDevice::attach(file, write)?;
        service.add(Place::Loop(device.path().to_owned()))?;
        service.add(Place::FileSystem(directory.path().to_owned()))?;
        let mut command = block::program::command("mount");
        if let Some(kind) = self.kind {
            command.args(["-t", kind]);
        }
        // The author of the volume's content isn't root on this system. The user's options come
        // last, and may say otherwise.
        command.args(["-o", &self.joined(write, ",nosuid,nodev")]);
        // It must not make a path of its own of what the descriptor leads to.
        command.arg("--no-canonicalize").arg("--");
        let place = directory.through_for_others();
        run(service, "mount", command.arg(device.path()).arg(place))
    }

    fn by_fuse2fs(
        &self,
        service: &Service,
        file: &Path,
        directory: &Path,
    ) -> Result<(), ServiceError> {
        if let Some(kind) = self.kind.filter(|kind| !BY_USERS.contains(kind)) {
            let kind = kind.to_owned();
            return Err(ServiceError::OnlyRoot { kind });
        }
        service.add(Place::Fuse2fs(directory.to_owned()))?;
        let wanted = self.joined(service.record().access == "write", "");
        let mut command = block::program::command("fuse2fs");
        command.arg(file).arg(directory).args(["-o", &wanted]);
        run(service, "fuse2fs", &mut command)
    }

    fn joined(&self, write: bool, more: &str) -> String {
        let access = if write { "rw" } else { "ro" };
        let wanted = self.options.map(|wanted| format!(",{wanted}"));
        format!("{access}{more}{}", wanted.unwrap_or_default())
    }
}

/// Runs a program that mounts.
fn run(
    service: &Service,
    program: &'static str,
    command: &mut Command,
) -> Result<(), ServiceError> {
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|source| ServiceError::NoProgram { program, source })?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.trim().lines().next().unwrap_or("it gives no reason");
    Err(ServiceError::FileSystem {
        image: service.record().image,
        said: said.to_owned(),
    })
}
