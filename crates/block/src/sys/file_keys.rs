//! The kernel's calls for keys of files: fscrypt's ioctls (linux/fscrypt.h) and keyrings
//! (keyctl(2)).

use rustix::ioctl::{Ioctl, IoctlOutput, Opcode, Setter, ioctl};
use std::ffi::{CStr, c_void};
use std::fs::File;
use std::io;
use zeroize::Zeroize;

/// `_IOR('f', 19, struct fscrypt_policy_v1)`; the kernel reads as many bytes as the version has.
const SET_POLICY: Opcode = 0x800c_6613;
/// `_IOWR('f', 23, struct fscrypt_add_key_arg)`.
const ADD_KEY: Opcode = 0xc050_6617;

/// `struct fscrypt_policy_v2`.
const POLICY_BYTES: usize = 24;

/// `struct fscrypt_add_key_arg`: where in its 80 bytes things are; the raw key follows.
const KIND: usize = 0;
const IDENTIFIER: usize = 8;
const RAW_SIZE: usize = 40;
const ARGUMENT: usize = 80;

/// `FSCRYPT_KEY_SPEC_TYPE_IDENTIFIER`.
const BY_IDENTIFIER: u32 = 2;

/// `FSCRYPT_MAX_KEY_SIZE`.
const LONGEST: usize = 64;

/// A `struct fscrypt_add_key_arg` with the largest key behind it.
struct AddKey([u8; ARGUMENT + LONGEST]);

impl Drop for AddKey {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

// SAFETY: the kernel reads the argument and as many bytes behind it as `RAW_SIZE` says, at most
// `LONGEST`, and writes to the argument alone. All of them belong to the array.
unsafe impl Ioctl for &mut AddKey {
    type Output = ();
    const IS_MUTATING: bool = true;

    fn opcode(&self) -> Opcode {
        ADD_KEY
    }

    fn as_ptr(&mut self) -> *mut c_void {
        self.0.as_mut_ptr().cast()
    }

    unsafe fn output_from_ptr(_: IoctlOutput, _: *mut c_void) -> rustix::io::Result<()> {
        Ok(())
    }
}

/// Gives the file system that holds `file` a master key; its identifier.
pub(crate) fn add_key(file: &File, key: &[u8]) -> io::Result<[u8; 16]> {
    if key.len() > LONGEST {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut argument = AddKey([0; ARGUMENT + LONGEST]);
    let bytes = &mut argument.0;
    bytes[KIND..KIND + 4].copy_from_slice(&BY_IDENTIFIER.to_ne_bytes());
    bytes[RAW_SIZE..RAW_SIZE + 4].copy_from_slice(&(key.len() as u32).to_ne_bytes());
    bytes[ARGUMENT..ARGUMENT + key.len()].copy_from_slice(key);
    // SAFETY: as said at `AddKey`.
    unsafe { ioctl(file, &mut argument) }?;
    let mut identifier = [0; 16];
    identifier.copy_from_slice(&argument.0[IDENTIFIER..IDENTIFIER + 16]);
    Ok(identifier)
}

/// Gives the empty directory `file` a policy of version 2.
pub(crate) fn set_policy(file: &File, policy: [u8; POLICY_BYTES]) -> io::Result<()> {
    // SAFETY: the kernel reads a `struct fscrypt_policy_v2`, which has the size of the array and
    // holds numbers only.
    unsafe { ioctl(file, Setter::<SET_POLICY, [u8; POLICY_BYTES]>::new(policy)) }?;
    Ok(())
}

/// `KEYCTL_JOIN_SESSION_KEYRING` and `KEY_SPEC_SESSION_KEYRING`.
const JOIN_SESSION: libc::c_long = 1;
const SESSION: libc::c_long = -3;

/// Gives the calling thread a session keyring of its own.
pub(crate) fn join_session() -> io::Result<()> {
    let none = std::ptr::null::<libc::c_char>();
    // SAFETY: a null pointer asks for a keyring without a name, and nothing else is pointed to.
    match unsafe { libc::syscall(libc::SYS_keyctl, JOIN_SESSION, none) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Adds a key of the kind `user` to the session keyring of the calling thread.
pub(crate) fn add_to_session(description: &CStr, payload: &[u8]) -> io::Result<()> {
    // SAFETY: both strings end with a zero, and the kernel reads `payload` as far as its length.
    let added = unsafe {
        libc::syscall(
            libc::SYS_add_key,
            c"user".as_ptr(),
            description.as_ptr(),
            payload.as_ptr(),
            payload.len(),
            SESSION,
        )
    };
    match added {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
