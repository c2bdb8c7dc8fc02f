//! eCryptfs: the kernel's file system above a directory (Documentation/filesystems/ecryptfs.rst).
//!
//! The key is an authentication token (`struct ecryptfs_auth_tok` of include/linux/ecryptfs.h) in a
//! session keyring of the agent's own, so it goes with the agent.

use rustix::mount::MountFlags;
use std::ffi::CString;
use std::io;
use std::path::Path;
use zeroize::Zeroizing;

/// Where in the token things are, and its size.
const VERSION: usize = 0;
const PASSWORD: usize = 2 + 2 + 4 + (3 * 4 + 512 + 64) + 32;
const HASH: usize = PASSWORD + 4;
const KEY_SIZE: usize = PASSWORD + 12;
const FLAGS: usize = PASSWORD + 16;
const KEY: usize = PASSWORD + 20;
const SIGNATURE: usize = KEY + 64;
const TOKEN: usize = PASSWORD + 112;

/// `ECRYPTFS_VERSION_MAJOR` 0 and `ECRYPTFS_VERSION_MINOR` 4.
const VERSION_0_4: u16 = 4;
/// `PGP_DIGEST_ALGO_SHA512`.
const SHA512: u32 = 10;
/// `ECRYPTFS_SESSION_KEY_ENCRYPTION_KEY_SET`.
const KEY_IS_SET: u32 = 2;

/// The name of the key for names and contents: 16 hexadecimal digits.
const NAME: &str = "63727970746d6172";

/// The token with `key`, of at most 64 bytes.
fn token(key: &[u8]) -> Zeroizing<Vec<u8>> {
    let mut token = Zeroizing::new(vec![0; TOKEN]);
    token[VERSION..VERSION + 2].copy_from_slice(&VERSION_0_4.to_ne_bytes());
    for (at, number) in [(HASH, SHA512), (KEY_SIZE, 64), (FLAGS, KEY_IS_SET)] {
        token[at..at + 4].copy_from_slice(&number.to_ne_bytes());
    }
    let length = key.len().min(64);
    token[KEY..KEY + length].copy_from_slice(&key[..length]);
    token[SIGNATURE..SIGNATURE + NAME.len()].copy_from_slice(NAME.as_bytes());
    token
}

/// Shows the files in `stored` in clear at `shown`. Names are encrypted, too.
pub(super) fn mount(stored: &Path, shown: &Path, key: &[u8]) -> io::Result<()> {
    block::file_keys::into_new_session_keyring(NAME, &token(key))?;
    let options = format!(
        "ecryptfs_sig={NAME},ecryptfs_fnek_sig={NAME},ecryptfs_cipher=aes,ecryptfs_key_bytes={},\
         ecryptfs_unlink_sigs",
        key.len()
    );
    let options = CString::new(options)?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    rustix::mount::mount(stored, shown, c"ecryptfs", flags, options.as_c_str())?;
    Ok(())
}
