//! The device mapper's ioctls (linux/dm-ioctl.h), for which there are no safe
//! wrappers.

use rustix::ioctl::{Ioctl, IoctlOutput, Opcode, ioctl, opcode};
use std::ffi::c_void;
use std::fs::File;
use std::io;
use zeroize::Zeroizing;

/// `struct dm_ioctl`: where in its 312 bytes things are.
const HEAD: usize = 312;
const DATA_SIZE: usize = 12;
const DATA_START: usize = 16;
const TARGET_COUNT: usize = 20;
const FLAGS: usize = 28;
const DEVICE: usize = 40;
const NAME: usize = 48;
const NAME_BYTES: usize = 128;

/// The oldest version of the interface; all since understand it.
const VERSION: u32 = 4;

/// `struct dm_target_spec`: where in its 40 bytes things are; a string follows,
/// and zeros up to a multiple of 8.
const SPEC: usize = 40;
const LENGTH: usize = 8;
const NEXT: usize = 20;
const KIND: usize = 24;
const KIND_BYTES: usize = 16;

/// `DM_…_FLAG`: what the kernel has copied of a request is wiped; a device that
/// is in use is removed when it is not.
const SECURE_DATA: u32 = 1 << 15;
const DEFERRED_REMOVE: u32 = 1 << 17;

/// `DM_…_CMD`.
#[derive(Clone, Copy)]
enum Command {
    Create = 3,
    Remove = 4,
    /// Resumes, without the flag that says otherwise.
    Suspend = 6,
    Load = 9,
}

/// A `struct dm_ioctl` with what follows it; it goes when it is dropped.
struct Request {
    command: Command,
    bytes: Zeroizing<Vec<u8>>,
}

impl Request {
    /// `more` bytes follow the head.
    fn new(command: Command, name: &str, flags: u32, more: usize) -> io::Result<Self> {
        // A zero ends the name.
        if name.is_empty() || name.len() >= NAME_BYTES || name.contains('\0') {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut request = Self {
            command,
            bytes: Zeroizing::new(vec![0; HEAD + more]),
        };
        let size = u32::try_from(HEAD + more).map_err(|_| io::ErrorKind::InvalidInput)?;
        request.number(0, VERSION);
        request.number(DATA_SIZE, size);
        request.number(DATA_START, HEAD as u32);
        request.number(FLAGS, flags | SECURE_DATA);
        request.bytes[NAME..NAME + name.len()].copy_from_slice(name.as_bytes());
        Ok(request)
    }

    /// A table of one target.
    fn load(name: &str, sectors: u64, kind: &str, parameters: &[u8]) -> io::Result<Self> {
        if kind.len() >= KIND_BYTES || kind.contains('\0') || parameters.contains(&0) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let target = (SPEC + parameters.len() + 1).next_multiple_of(8);
        let mut request = Self::new(Command::Load, name, 0, target)?;
        request.number(TARGET_COUNT, 1);
        request.number(HEAD + NEXT, target as u32);
        let mut put = |at: usize, bytes: &[u8]| {
            request.bytes[HEAD + at..HEAD + at + bytes.len()].copy_from_slice(bytes);
        };
        put(LENGTH, &sectors.to_ne_bytes());
        put(KIND, kind.as_bytes());
        put(SPEC, parameters);
        Ok(request)
    }

    fn number(&mut self, at: usize, value: u32) {
        self.bytes[at..at + 4].copy_from_slice(&value.to_ne_bytes());
    }

    /// Asks the kernel, whose `/dev/mapper/control` is `control`; the number of
    /// the device.
    fn ask(mut self, control: &File) -> io::Result<u64> {
        // SAFETY: as said at `Asked`.
        unsafe { ioctl(control, Asked(&mut self)) }?;
        let mut number = [0; 8];
        number.copy_from_slice(&self.bytes[DEVICE..DEVICE + 8]);
        Ok(u64::from_ne_bytes(number))
    }
}

struct Asked<'a>(&'a mut Request);

// SAFETY: the kernel reads and writes as many bytes as the head says, which is
// how many there are; they hold numbers and text, and no pointers.
unsafe impl Ioctl for Asked<'_> {
    type Output = ();
    const IS_MUTATING: bool = true;

    fn opcode(&self) -> Opcode {
        opcode::read_write::<[u8; HEAD]>(0xfd, self.0.command as u8)
    }

    fn as_ptr(&mut self) -> *mut c_void {
        self.0.bytes.as_mut_ptr().cast()
    }

    unsafe fn output_from_ptr(_: IoctlOutput, _: *mut c_void) -> rustix::io::Result<()> {
        Ok(())
    }
}

/// Makes a device without a table; its number.
pub(crate) fn create(control: &File, name: &str) -> io::Result<u32> {
    let device = Request::new(Command::Create, name, 0, 0)?.ask(control)?;
    // The kernel's `new_encode_dev`: the minor number is around the major.
    Ok((device & 0xff | device >> 12 & 0xfff00) as u32)
}

/// Gives it a table of one target, of 512-byte sectors.
pub(crate) fn load(
    control: &File,
    name: &str,
    sectors: u64,
    kind: &str,
    parameters: &[u8],
) -> io::Result<()> {
    Request::load(name, sectors, kind, parameters)?
        .ask(control)
        .map(drop)
}

/// Lets requests through to the table that was loaded last.
pub(crate) fn resume(control: &File, name: &str) -> io::Result<()> {
    Request::new(Command::Suspend, name, 0, 0)?
        .ask(control)
        .map(drop)
}

/// Removes a device as soon as its last user closes it.
pub(crate) fn remove(control: &File, name: &str) -> io::Result<()> {
    Request::new(Command::Remove, name, DEFERRED_REMOVE, 0)?
        .ask(control)
        .map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_lies_where_the_kernel_looks_for_it() {
        let request =
            Request::load("name", 65_536, "crypt", b"aes-cbc-plain 00 0 /dev/x 0").unwrap();
        let bytes = &request.bytes;
        assert_eq!(bytes.len(), 312 + 72);
        assert_eq!(bytes[12..16], 384_u32.to_ne_bytes());
        assert_eq!(bytes[16..20], 312_u32.to_ne_bytes());
        assert_eq!(bytes[48..53], *b"name\0");
        let target = &bytes[312..];
        assert_eq!(target[..8], [0; 8]);
        assert_eq!(target[8..16], 65_536_u64.to_ne_bytes());
        assert_eq!(target[20..24], 72_u32.to_ne_bytes());
        assert_eq!(target[24..30], *b"crypt\0");
        assert_eq!(target[40..], *b"aes-cbc-plain 00 0 /dev/x 0\0\0\0\0\0");
    }

    #[test]
    fn what_would_not_fit_is_refused() {
        let long = "x".repeat(128);
        for (name, kind, parameters) in [
            (&*long, "crypt", "x"),
            ("", "crypt", "x"),
            ("a\0b", "crypt", "x"),
            ("a", "a-target-of-16-b", "x"),
            ("a", "crypt", "x\0y"),
        ] {
            assert!(
                Request::load(name, 8, kind, parameters.as_bytes()).is_err(),
                "{name:?}"
            );
        }
    }
}
