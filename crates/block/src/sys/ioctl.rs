//! BLKDISCARD and loop devices, for which there are no safe wrappers.

use crate::ByteRange;
use rustix::ioctl::{Getter, Ioctl, IoctlOutput, NoArg, Opcode, Setter, ioctl, opcode};
use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use zeroize::Zeroizing;

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
const LOOP_SET_FD: Opcode = 0x4C00;
const LOOP_CLR_FD: Opcode = 0x4C01;
const LOOP_SET_STATUS64: Opcode = 0x4C04;
const LOOP_GET_STATUS64: Opcode = 0x4C05;
const LOOP_CONFIGURE: Opcode = 0x4C0A;
const LOOP_CTL_GET_FREE: Opcode = 0x4C82;

/// `struct loop_config`: 304 bytes, in words of 4.
type LoopConfig = [u32; 76];
const LOOP_FD: usize = 0;
/// Behind descriptor and block size, five numbers of 8 bytes and three of 4.
const LOOP_FLAGS: usize = (8 + 5 * 8 + 3 * 4) / 4;

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

/// The number of an unused loop device; `control` is `/dev/loop-control`.
pub(crate) fn free_loop(control: &File) -> io::Result<u32> {
    // SAFETY: as said at `FreeLoop`.
    Ok(unsafe { ioctl(control, FreeLoop) }?)
}

/// Puts `backing` behind a loop device that has nothing behind it.
pub(crate) fn configure_loop(device: &File, backing: &File, flags: u32) -> io::Result<()> {
    let mut config: LoopConfig = [0; 76];
    config[LOOP_FD] = backing.as_raw_fd().cast_unsigned();
    config[LOOP_FLAGS] = flags;
    // SAFETY: the kernel reads a `struct loop_config`, which has the size of
    // the array and holds numbers only.
    unsafe { ioctl(device, Setter::<LOOP_CONFIGURE, LoopConfig>::new(config)) }?;
    Ok(())
}

/// `struct loop_info64`: where in its 232 bytes things are.
const INFO_BYTES: usize = 232;
const ENCRYPT_TYPE: usize = 5 * 8 + 4;
const ENCRYPT_KEY_SIZE: usize = ENCRYPT_TYPE + 4;
const INFO_FLAGS: usize = ENCRYPT_KEY_SIZE + 4;
const CRYPT_NAME: usize = INFO_FLAGS + 4 + 64;
const ENCRYPT_KEY: usize = CRYPT_NAME + 64;

/// `LO_CRYPT_CRYPTOAPI`: that cryptoloop encrypts.
const CRYPTO_API: u32 = 18;

/// A cipher as cryptoloop calls it, and its key; both are refused where they
/// are longer than the kernel has room for.
pub(crate) struct LoopEncryption<'a> {
    pub(crate) cipher: &'a str,
    pub(crate) key: &'a [u8],
}

/// The number of the file that LOOP_SET_FD puts behind a device.
struct Backing(i32);

// SAFETY: the kernel takes the argument as a number and follows no pointer.
unsafe impl Ioctl for Backing {
    type Output = ();
    const IS_MUTATING: bool = false;

    fn opcode(&self) -> Opcode {
        LOOP_SET_FD
    }

    fn as_ptr(&mut self) -> *mut c_void {
        std::ptr::without_provenance_mut(self.0.cast_unsigned() as usize)
    }

    unsafe fn output_from_ptr(_: IoctlOutput, _: *mut c_void) -> rustix::io::Result<()> {
        Ok(())
    }
}

/// A `struct loop_info64`, whose key goes when it is dropped.
struct LoopStatus(Zeroizing<[u8; INFO_BYTES]>);

// SAFETY: the kernel reads a `struct loop_info64`, which has the size of the
// array and holds numbers and bytes only.
unsafe impl Ioctl for LoopStatus {
    type Output = ();
    const IS_MUTATING: bool = false;

    fn opcode(&self) -> Opcode {
        LOOP_SET_STATUS64
    }

    fn as_ptr(&mut self) -> *mut c_void {
        self.0.as_mut_ptr().cast()
    }

    unsafe fn output_from_ptr(_: IoctlOutput, _: *mut c_void) -> rustix::io::Result<()> {
        Ok(())
    }
}

/// Puts `backing` behind a loop device that has nothing behind it, with
/// cryptoloop in between. Kernels since 5.16 refuse that.
pub(crate) fn encrypt_loop(
    device: &File,
    backing: &File,
    flags: u32,
    encryption: &LoopEncryption<'_>,
) -> io::Result<()> {
    let (name, key) = (encryption.cipher.as_bytes(), encryption.key);
    // A zero ends the name.
    if name.len() >= 64 || name.contains(&0) || key.len() > INFO_BYTES - 16 - ENCRYPT_KEY {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut info = LoopStatus(Zeroizing::new([0; INFO_BYTES]));
    let mut number = |at: usize, value: u32| {
        info.0[at..at + 4].copy_from_slice(&value.to_ne_bytes());
    };
    number(ENCRYPT_TYPE, CRYPTO_API);
    number(ENCRYPT_KEY_SIZE, key.len() as u32);
    number(INFO_FLAGS, flags);
    info.0[CRYPT_NAME..CRYPT_NAME + name.len()].copy_from_slice(name);
    info.0[ENCRYPT_KEY..ENCRYPT_KEY + key.len()].copy_from_slice(key);
    // SAFETY: as said at `Backing`.
    unsafe { ioctl(device, Backing(backing.as_raw_fd())) }?;
    // SAFETY: as said at `LoopStatus`.
    let set = unsafe { ioctl(device, info) };
    if let Err(error) = set {
        // The device must not show the data without the encryption.
        clear_loop(device)?;
        return Err(error.into());
    }
    Ok(())
}

/// `struct loop_info64` in words of 8: device and inode of the backing file come first.
type LoopInfo = [u64; INFO_BYTES / 8];

/// Device and inode of the file behind a loop device.
pub(crate) fn loop_backing(device: &File) -> io::Result<(u64, u64)> {
    // SAFETY: the kernel writes a `struct loop_info64`, which has the size of the
    // array and holds numbers and bytes only.
    let info = unsafe { ioctl(device, Getter::<LOOP_GET_STATUS64, LoopInfo>::new()) }?;
    Ok((info[0], info[1]))
}

/// Detaches the file behind a loop device, now or when its last user closes the device.
pub(crate) fn clear_loop(device: &File) -> io::Result<()> {
    // SAFETY: the kernel takes no argument.
    unsafe { ioctl(device, NoArg::<LOOP_CLR_FD>::new()) }?;
    Ok(())
}
