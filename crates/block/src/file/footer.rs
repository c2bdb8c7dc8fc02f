//! The footer of an image, which stands behind its disk in the same file.
//!
//! The disk begins at the first byte, so that such an image looks like a raw one. Integers are
//! big-endian. Sources: for fixed VHD images, Virtual Hard Disk Image Format Specification 1.0,
//! "Hard Disk Footer Format" and "Hard Disk Footer Checksum"; for macOS, hdiutil's `koly` block, of
//! which only magic, version and length are looked at.

use super::{FileDevice, PathKind};
use crate::{BlockDevice, BlockError};
use std::sync::Arc;

/// The length of the footer, bytes.
const LENGTH: usize = 512;

/// The type of a disk that stands in the file as it is.
const FIXED: u32 = 2;

impl FileDevice {
    /// The same device without the footer of a disk image, if the file has one. The footer stays what
    /// it is, and the file as long.
    ///
    /// # Errors
    /// Those of reading.
    pub fn without_footer(mut self) -> Result<Self, BlockError> {
        let size = self.geometry().size;
        let Some(disk) = size.checked_sub(LENGTH as u64) else {
            return Ok(self);
        };
        if self.shared.kind != PathKind::RegularFile {
            return Ok(self);
        }
        let mut footer = [0; LENGTH];
        match self.read_at(disk, &mut footer) {
            // What cannot be read is not known to be one.
            Err(error) if error.is_of_place() => return Ok(self),
            read => read?,
        }
        if (is_fixed(&footer, disk) || is_koly(&footer))
            && let Some(shared) = Arc::get_mut(&mut self.shared)
        {
            shared.geometry.size = disk;
            self.has_footer = true;
        }
        Ok(self)
    }
}

/// Whether this is the footer of a fixed disk of so many bytes.
fn is_fixed(footer: &[u8; LENGTH], disk: u64) -> bool {
    const CHECKSUM: usize = 64;
    let word = |at: usize| u32::from_be_bytes([0, 1, 2, 3].map(|byte| footer[at + byte]));
    let size = (u64::from(word(48)) << 32) | u64::from(word(52));
    let others = footer.iter().enumerate();
    let others = others.filter(|(at, _)| !(CHECKSUM..CHECKSUM + 4).contains(at));
    let sum: u32 = others.map(|(_, byte)| u32::from(*byte)).sum();
    footer.starts_with(b"conectix") && word(60) == FIXED && size == disk && word(CHECKSUM) == !sum
}

/// Whether this is the footer of an image of macOS.
fn is_koly(footer: &[u8; LENGTH]) -> bool {
    footer.starts_with(b"koly\0\0\0\x04\0\0\x02\0")
}

#[cfg(test)]
mod tests {
    use super::{FIXED, LENGTH, is_fixed};
    use crate::{BlockDevice, FileDevice, FileOptions};
    use std::fs;

    const DISK: u64 = 64 << 10;

    fn footer(kind: u32, disk: u64) -> [u8; LENGTH] {
        let mut footer = [0; LENGTH];
        footer[..8].copy_from_slice(b"conectix");
        footer[16..24].fill(0xff);
        footer[48..56].copy_from_slice(&disk.to_be_bytes());
        footer[60..64].copy_from_slice(&kind.to_be_bytes());
        let sum: u32 = footer.iter().map(|byte| u32::from(*byte)).sum();
        footer[64..68].copy_from_slice(&(!sum).to_be_bytes());
        footer
    }

    #[test]
    fn only_a_footer_of_this_disk_is_left_out() {
        let good = footer(FIXED, DISK);
        assert!(is_fixed(&good, DISK));
        assert!(!is_fixed(&good, DISK + 512));
        assert!(!is_fixed(&footer(3, DISK), DISK));
        for at in 0..LENGTH {
            let mut other = good;
            other[at] ^= 1;
            assert!(!is_fixed(&other, DISK), "byte {at}");
        }
    }

    #[test]
    fn the_footer_cannot_be_reached() {
        let mut koly = [0; LENGTH];
        koly[..12].copy_from_slice(b"koly\0\0\0\x04\0\0\x02\0");
        for footer in [footer(FIXED, DISK), koly] {
            cannot_be_reached(footer);
        }
    }

    fn cannot_be_reached(footer: [u8; LENGTH]) {
        let file = tempfile::NamedTempFile::new().unwrap();
        let whole = [vec![7; DISK as usize], footer.to_vec()].concat();
        fs::write(file.path(), &whole).unwrap();
        let options = FileOptions {
            write: true,
            ..FileOptions::default()
        };
        let device = FileDevice::open(file.path(), &options).unwrap();
        let mut device = device.without_footer().unwrap();
        assert_eq!(device.geometry().size, DISK);
        assert_eq!(device.length().unwrap(), DISK);
        assert!(!device.is_resizable());
        assert!(device.set_len(DISK).is_err());
        assert!(device.write_at(DISK, &[0; 512]).is_err());
        device.write_at(DISK - 512, &[1; 512]).unwrap();
        drop(device);
        let now = fs::read(file.path()).unwrap();
        assert_eq!(now.len(), whole.len());
        assert!(now.ends_with(&footer));
    }
}
