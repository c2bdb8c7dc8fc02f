//! Headers as they are written: salt, and what a passphrase encrypts.

use super::layers::{self, ENCRYPTED_BYTES, Sector};
use super::prf::LONGEST_HEADER_KEY;
use super::{HEADER_BYTES, SALT_BYTES};
use crate::{Kdf, Limits, VolumeError};
use cipher::{CipherSpec, Key};

/// A header for the device.
pub(super) type SealedBytes = [u8; HEADER_BYTES as usize];

/// Encrypts a `sector` of [`Header::to_sector`](super::Header::to_sector)
/// under `password`, in XTS.
pub(super) fn seal(
    mut sector: Sector,
    spec: CipherSpec,
    kdf: Kdf,
    password: &Key,
    salt: &[u8; SALT_BYTES],
    limits: &Limits,
) -> Result<SealedBytes, VolumeError> {
    let material = kdf.derive(password.as_bytes(), salt, LONGEST_HEADER_KEY, limits)?;
    layers::encrypt(spec, material.as_bytes(), &mut sector)?;
    let mut sealed = [0; HEADER_BYTES as usize];
    let (first, rest) = sealed.split_at_mut(SALT_BYTES);
    first.copy_from_slice(salt);
    rest.copy_from_slice(&sector[..ENCRYPTED_BYTES]);
    Ok(sealed)
}
