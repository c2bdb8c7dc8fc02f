//! dm-crypt over a device, and dm-integrity below it, which stores tags with the sectors.

use super::error::unusable;
use super::stack::{Wanted, unmapped};
use super::{DmOption, FileSystem};
use crate::error::LabError;
use crate::system::dm_crypt::table_line;
use block::{BlockDevice, FileDevice, FileOptions, MappedDevice};
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;

/// Bytes of a tag of HMAC-SHA256.
const TAG: u32 = 32;

/// The magic bytes at the start of dm-integrity's superblock, and the offset of its size in
/// 512-byte sectors (drivers/md/dm-integrity.c).
const MAGIC: &[u8] = b"integrt\0";
const PROVIDED: usize = 16;
const SUPERBLOCK: u64 = 4096;

/// A device whose sectors have tags.
pub(super) struct Tagged {
    pub device: MappedDevice,
    /// Bytes that it has for data.
    pub size: u64,
}

/// Puts dm-crypt over the first `size` bytes of `below`.
pub(super) fn crypt(wanted: Wanted<'_>, below: &Path, size: u64) -> Result<MappedDevice, LabError> {
    let subject = wanted.subject;
    let notation = subject.cipher.as_deref().unwrap_or_default();
    let cipher = match subject.has_tags() {
        true => authenticated(notation),
        false => notation.to_owned(),
    };
    let mut options: Vec<String> = subject
        .options
        .iter()
        .filter(|option| **option != DmOption::SectorSize4096)
        .map(|option| option.in_table().to_owned())
        .collect();
    if subject.sector_bytes != 512 {
        options.push(format!("sector_size:{}", subject.sector_bytes));
    }
    let line = table_line(&cipher, wanted.key, below, &options)
        .map_err(|source| unwritable(below, source))?;
    Ok(MappedDevice::new(
        &wanted.name("crypt"),
        size,
        "crypt",
        &line,
    )?)
}

/// A cipher with HMAC-SHA256 in the notation of the kernel's crypto interface:
/// `capi:authenc(hmac(sha256),xts(aes))-plain64`.
fn authenticated(notation: &str) -> String {
    let mut parts = notation.splitn(3, '-');
    let [cipher, mode, iv] = [(); 3].map(|()| parts.next().unwrap_or_default());
    format!("capi:authenc(hmac(sha256),{mode}({cipher}))-{iv}")
}

/// Puts dm-integrity over all of `below`, with a journal if that is asked for, so that a sector and
/// its tag change together. A fresh one is formatted.
pub(super) fn tagged(wanted: Wanted<'_>, below: &Path) -> Result<Tagged, LabError> {
    let make = |size| {
        let sector = wanted.subject.sector_bytes;
        let mode = if wanted.subject.has_journal() {
            'J'
        } else {
            'D'
        };
        let line = format!("{} 0 {TAG} {mode} 1 block_size:{sector}", below.display());
        MappedDevice::new(&wanted.name("tags"), size, "integrity", line.as_bytes())
    };
    if wanted.fresh {
        // It formats what begins with zeros, and then knows how much room there is.
        let mut device = OpenOptions::new()
            .write(true)
            .open(below)
            .map_err(|source| unwritable(below, source))?;
        device
            .write_all(&[0; SUPERBLOCK as usize])
            .and_then(|()| device.sync_all())
            .map_err(|source| unwritable(below, source))?;
        unmapped(make(SUPERBLOCK)?)?;
    }
    let step = match wanted.job.file_system {
        FileSystem::Jffs2 => u64::from(wanted.job.erase_bytes),
        _ => SUPERBLOCK,
    };
    let size = provided(below)? / step * step;
    let device = make(size)?;
    Ok(Tagged { device, size })
}

/// Bytes for data on a device that dm-integrity has formatted, as it stands there.
fn provided(below: &Path) -> Result<u64, LabError> {
    let mut superblock = [0; SUPERBLOCK as usize];
    FileDevice::open(below, &FileOptions::default())?.read_at(0, &mut superblock)?;
    let mut sectors = [0; 8];
    sectors.copy_from_slice(&superblock[PROVIDED..PROVIDED + 8]);
    match superblock.starts_with(MAGIC) {
        true => Ok(u64::from_le_bytes(sectors) * 512),
        false => Err(unwritable(below, io::ErrorKind::InvalidData.into())),
    }
}

/// Writes all of `device`, so that every sector has a tag: without one it cannot
/// be read.
pub(super) fn fill(device: &Path, size: u64) -> Result<(), LabError> {
    let zeros = vec![0; 1 << 20];
    let failed = |source| unwritable(device, source);
    let mut out = OpenOptions::new()
        .write(true)
        .open(device)
        .map_err(failed)?;
    let mut left = size;
    while left > 0 {
        let length = left.min(zeros.len() as u64);
        out.write_all(&zeros[..length as usize]).map_err(failed)?;
        left -= length;
    }
    out.sync_all().map_err(failed)
}

fn unwritable(path: &Path, source: io::Error) -> LabError {
    unusable("cannot map", path, source)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ciphers_with_tags_are_named_as_the_kernel_composes_them() {
        for (notation, composed) in [
            (
                "aes-xts-plain64",
                "capi:authenc(hmac(sha256),xts(aes))-plain64",
            ),
            (
                "serpent-cbc-essiv:sha256",
                "capi:authenc(hmac(sha256),cbc(serpent))-essiv:sha256",
            ),
        ] {
            assert_eq!(authenticated(notation), composed);
        }
    }
}
