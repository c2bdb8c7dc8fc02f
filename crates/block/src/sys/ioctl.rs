//! BLKDISCARD and loop devices, for which there are no safe wrappers.

use crate::ByteRange;
use rustix::ioctl::{Ioctl, IoctlOutput, NoArg, Opcode, Setter, ioctl, opcode};
use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// `_IO(0x12, 119)` of linux/fs.h.
const BLKDISCARD: Opcode = opcode::none(0x12, 119);

/// Discards a range of a block device.
pub(crate) fn discard(file: &File, range: ByteRange) -> io::Result<()> {
    let argument = [range.offset, range.length];
    // SAFETY: the kernel reads two u64, offset and length, through the
    // pointer, which is what an array of them is.
    unsafe { ioctl(file, Setter::<BLKDISCARD, [u64; 2]>::new(argument)) }?;
    Ok(())
}

/// Of linux/loop.h, where they are bare numbers.
const LOOP_CLR_FD: Opcode = 0x4C01;
const LOOP_CONFIGURE: Opcode = 0x4C0A;
const LOOP_CTL_GET_FREE: Opcode = 0x4C82;

/// `struct loop_config`: 304 bytes, in words of 4.
type LoopConfig = [u32; 76];
const LOOP_FD: usize = 0;
/// Behind descriptor and block size, five numbers of 8 bytes and three of 4.
const LOOP_FLAGS: usize = (8 + 5 * 8 + 3 * 4) / 4;

/// `lo_encrypt_type` and `lo_encrypt_key_size`.
const LOOP_ENCRYPT_TYPE: usize = (8 + 5 * 8 + 4) / 4;
const LOOP_KEY_SIZE: usize = LOOP_ENCRYPT_TYPE + 1;
/// Behind the flags and the 64 bytes of `lo_file_name`.
const LOOP_CRYPT_NAME: usize = LOOP_FLAGS + 1 + 64 / 4;
const LOOP_KEY: usize = LOOP_CRYPT_NAME + 64 / 4;
/// `LO_CRYPT_CRYPTOAPI` of linux/loop.h.
const CRYPTOAPI: u32 = 18;

/// What cryptoloop encrypts with.
#[derive(Clone, Copy)]
pub(crate) struct LoopCipher<'a> {
    /// As in `aes-cbc`; 63 bytes at most.
    pub(crate) name: &'a str,
    /// 32 bytes at most.
    pub(crate) key: &'a [u8],
}

/// `LO_FLAGS_…` of linux/loop.h.
pub(crate) mod loop_flags {
    pub(crate) const READ_ONLY: u32 = 1;
    pub(crate) const AUTOCLEAR: u32 = 4;
    pub(crate) const DIRECT_IO: u32 = 16;
}

/// The number that LOOP_CTL_GET_FREE returns.
struct FreeLoop;

// SAFETY: the kernel takes no argument and follows no pointer; what it returns
// is the number itself.
unsafe impl Ioctl for FreeLoop {
    type Output = u32;
    const IS_MUTATING: bool = false;

    fn opcode(&self) -> Opcode {
        LOOP_CTL_GET_FREE
    }

    fn as_ptr(&mut self) -> *mut c_void {
        std::ptr::null_mut()
    }

    unsafe fn output_from_ptr(number: IoctlOutput, _: *mut c_void) -> rustix::io::Result<u32> {
        u32::try_from(number).map_err(|_| rustix::io::Errno::RANGE)
    }
}

/// The number of a loop device that nobody uses; `control` is
/// `/dev/loop-control`.
pub(crate) fn free_loop(control: &File) -> io::Result<u32> {
    // SAFETY: as said at `FreeLoop`.
    Ok(unsafe { ioctl(control, FreeLoop) }?)
}

/// Puts `backing` behind a loop device that has nothing behind it.
pub(crate) fn configure_loop(
    device: &File,
    backing: &File,
    flags: u32,
    cipher: Option<LoopCipher<'_>>,
) -> io::Result<()> {
    let mut config: LoopConfig = [0; 76];
    config[LOOP_FD] = backing.as_raw_fd().cast_unsigned();
    config[LOOP_FLAGS] = flags;
    if let Some(LoopCipher { name, key }) = cipher {
        if name.len() > 63 || key.len() > 32 {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        config[LOOP_ENCRYPT_TYPE] = CRYPTOAPI;
        config[LOOP_KEY_SIZE] = key.len() as u32;
        put_bytes(&mut config[LOOP_CRYPT_NAME..], name.as_bytes());
        put_bytes(&mut config[LOOP_KEY..], key);
    }
    // SAFETY: the kernel reads a `struct loop_config`, which has the size of
    // the array and holds numbers only.
    unsafe { ioctl(device, Setter::<LOOP_CONFIGURE, LoopConfig>::new(config)) }?;
    Ok(())
}

/// Puts `bytes` into words as they lie in memory.
fn put_bytes(words: &mut [u32], bytes: &[u8]) {
    for (word, bytes) in words.iter_mut().zip(bytes.chunks(4)) {
        let mut padded = [0; 4];
        padded[..bytes.len()].copy_from_slice(bytes);
        *word = u32::from_ne_bytes(padded);
    }
}

/// Takes away what is behind a loop device, now or when nobody has it open.
pub(crate) fn clear_loop(device: &File) -> io::Result<()> {
    // SAFETY: the kernel takes no argument.
    unsafe { ioctl(device, NoArg::<LOOP_CLR_FD>::new()) }?;
    Ok(())
}
