//! Keys that the kernel encrypts files with: those of fscrypt, and keys in a session keyring.

use crate::sys::file_keys;
use std::ffi::CString;
use std::fs::File;
use std::io;
use std::path::Path;

/// A cipher of fscrypt (linux/fscrypt.h, `FSCRYPT_MODE_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum FscryptMode {
    /// AES-256-XTS, for contents.
    Aes256Xts = 1,
    /// AES-256-CBC-CTS, for names.
    Aes256Cts = 4,
    /// Adiantum, for both.
    Adiantum = 9,
    /// AES-256-HCTR2, for names; Linux has it since 6.0.
    Aes256Hctr2 = 10,
}

/// `FSCRYPT_POLICY_V2`, and `FSCRYPT_POLICY_FLAGS_PAD_32`: encrypted names have a multiple of 32
/// bytes, as the program `fscrypt` has it.
const VERSION: u8 = 2;
const PAD_32: u8 = 3;

/// Gives the file system that holds `directory` the master key `key` of 16 to 64 bytes, until it is
/// unmounted, and encrypts the empty `directory` with it if that is not encrypted.
///
/// # Errors
/// The system's errors: `EOPNOTSUPP` if the file system was made without the feature, `ENOPKG` if
/// the kernel lacks a cipher, `EINVAL` if it does not know a mode.
pub fn encrypt_directory(
    directory: &Path,
    key: &[u8],
    contents: FscryptMode,
    names: FscryptMode,
) -> io::Result<()> {
    let file = File::open(directory)?;
    let identifier = file_keys::add_key(&file, key)?;
    let mut policy = [0; 24];
    policy[..4].copy_from_slice(&[VERSION, contents as u8, names as u8, PAD_32]);
    policy[8..].copy_from_slice(&identifier);
    file_keys::set_policy(&file, policy)
}

/// Puts `payload` as the key `description` of the kind `user` into a new session keyring of the
/// calling thread. The key goes with the last thread that has the keyring.
///
/// # Errors
/// The system's errors: `ENOSYS` if the kernel has no keys.
pub fn into_new_session_keyring(description: &str, payload: &[u8]) -> io::Result<()> {
    let description = CString::new(description)?;
    file_keys::join_session()?;
    file_keys::add_to_session(&description, payload)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_in_a_session_keyring_is_seen_by_its_thread_alone() {
        let listed = || std::fs::read_to_string("/proc/keys").unwrap_or_default();
        let name = format!("cryptmark-test-{}", std::process::id());
        let inside = std::thread::spawn({
            let name = name.clone();
            move || into_new_session_keyring(&name, b"payload").map(|()| listed())
        });
        match inside.join().unwrap() {
            Ok(keys) => assert!(keys.contains(&name), "{keys}"),
            Err(error) => println!("skipped: this kernel keeps no keys: {error}"),
        }
        // The kernel collects keys a moment after the last keyring with them has gone.
        let gone = (0..1000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            !listed().contains(&name)
        });
        assert!(gone);
    }

    #[test]
    fn a_file_system_without_encryption_refuses_a_policy() {
        // procfs knows no policy, so nothing depends on the machine.
        let modes = (FscryptMode::Aes256Xts, FscryptMode::Aes256Cts);
        assert!(encrypt_directory(Path::new("/proc/self"), &[7; 64], modes.0, modes.1).is_err());
        assert!(encrypt_directory(Path::new("/proc/self"), &[7; 65], modes.0, modes.1).is_err());
    }
}
