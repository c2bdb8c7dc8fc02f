//! The kernel's dm-crypt over the extent. It needs root and a kernel with dm-crypt.

use super::engine_file::VolumeKey;
use super::served::{no_path, not_run, refused};
use super::{Encryption, Reach, SystemId, Target};
use crate::error::LabError;
use block::{BlockError, Engine, FileDevice, FileOptions, Hold, LoopDevice, MappedDevice};
use rustix::system::uname;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use zeroize::Zeroizing;

/// The name of the device-mapper target.
const NAME: &str = "dm-crypt";

/// Capacity for a table line. A reallocation would leave a copy of the key behind.
const LINE: usize = 4096;

/// Devices that this process has made, which no two are to be named alike.
static MADE: AtomicU32 = AtomicU32::new(0);

/// The dm-crypt table line for all of `below`, from sector 0 on
/// (Documentation/admin-guide/device-mapper/dm-crypt.rst). `cipher` is in dm-crypt's notation.
///
/// # Errors
/// [`io::Error`] only if memory cannot hold the line.
pub(crate) fn table_line(
    cipher: &str,
    key: &VolumeKey,
    below: &Path,
    options: &[String],
) -> io::Result<Zeroizing<Vec<u8>>> {
    let mut line = Zeroizing::new(Vec::with_capacity(LINE));
    write!(line, "{cipher} ")?;
    key.write_hex(&mut *line)?;
    let (count, options) = (options.len(), options.join(" "));
    write!(line, " 0 {} 0 {count} {options}", below.display())?;
    Ok(line)
}

/// dm-crypt over `size` bytes of the storage at `reach`, under a fresh random key, driven by
/// `engine`. A file gets a loop device, which bypasses the page cache if possible.
///
/// # Errors
/// [`LabError`], also if the kernel lacks dm-crypt or this cipher.
pub(super) fn target(
    reach: Option<&Reach>,
    size: u64,
    engine: Option<Engine>,
    encryption: Encryption,
) -> Result<Target, LabError> {
    let path = match reach.ok_or_else(|| no_path(NAME))? {
        Reach::Named(path) | Reach::Nameless { open: path, .. } => path,
    };
    let is_device = fs::metadata(path).is_ok_and(|found| found.file_type().is_block_device());
    let file = match is_device {
        true => None,
        false => Some(LoopDevice::attach(path, true)?),
    };
    let below = file.as_ref().map_or(path.as_path(), LoopDevice::path);
    let encryption = Encryption {
        backend: None,
        sharing: None,
        ..encryption
    };
    let cipher = encryption.spec.to_string();
    let failed = |source| not_run(NAME, source);
    let key =
        VolumeKey::random(encryption.key_bits).map_err(|error| failed(io::Error::other(error)))?;
    let options = match encryption.sector_size.bytes() {
        512 => Vec::new(),
        sector => vec![format!("sector_size:{sector}")],
    };
    let line = table_line(&cipher, &key, below, &options).map_err(failed)?;
    let number = MADE.fetch_add(1, Ordering::Relaxed);
    let name = format!("cryptmark-{}-block{number}", std::process::id());
    let mapped = MappedDevice::new(&name, size, "crypt", &line).map_err(|error| match error {
        BlockError::Mapper { source, .. } => refused(
            NAME,
            encryption.spec,
            &format!("{source}; this kernel may not have it at all (try modprobe dm-crypt)"),
        ),
        other => other.into(),
    })?;
    let options = FileOptions {
        write: true,
        direct: true,
        engine,
        // Other ciphers' mappings stand on the same bytes, and the lab takes turns between them.
        hold: Hold::Lent,
    };
    Ok(Target {
        system: SystemId::DmCrypt,
        version: format!("Linux {}", uname().release().to_string_lossy()),
        encryption: Some(encryption),
        backend: None,
        constant_time: None,
        elsewhere: None,
        format: None,
        device: Box::new(FileDevice::open(mapped.path(), &options)?),
        // Each goes with its last user: the upper one first.
        _server: Some(Box::new((mapped, file))),
        data_offset: 0,
    })
}
