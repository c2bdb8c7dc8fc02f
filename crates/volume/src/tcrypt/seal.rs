//! [`Sealing`]: headers as they are written.

use super::layers::{self, ENCRYPTED_BYTES, Sector};
use super::prf::LONGEST_HEADER_KEY;
use super::{Family, HEADER_BYTES, Header, Keyfiles, Place, Prf, SALT_BYTES};
use crate::{Limits, VolumeError};
use cipher::{CipherError, CipherSpec, Key};

/// A header for the device: the salt, then what the passphrase encrypts.
pub(super) type Sealed = [u8; HEADER_BYTES as usize];

/// The secrets and costs that a header opens with, besides its passphrase.
#[derive(Clone, Debug)]
pub struct Sealing {
    /// The key derivation.
    pub prf: Prf,
    /// VeraCrypt's multiplier of the costs; `None` and 0 are the usual costs.
    pub pim: Option<u32>,
    /// Key files beside the passphrase.
    pub keyfiles: Keyfiles,
}

impl Sealing {
    /// With a passphrase alone.
    pub const fn new(prf: Prf) -> Self {
        Self {
            prf,
            pim: None,
            keyfiles: Keyfiles::none(),
        }
    }

    /// `N` copies of `header`, which share nothing that shows.
    pub(super) fn seal<const N: usize>(
        &self,
        header: &Header,
        spec: CipherSpec,
        passphrase: &Key,
        limits: &Limits,
    ) -> Result<[Sealed; N], VolumeError> {
        let password = self.password(header.family, passphrase)?;
        let mut copies = [[0; HEADER_BYTES as usize]; N];
        for copy in &mut copies {
            let mut salt = [0; SALT_BYTES];
            getrandom::fill(&mut salt).map_err(CipherError::from)?;
            *copy = self.seal_with(
                header.to_sector(),
                header.family,
                spec,
                &password,
                salt,
                limits,
            )?;
        }
        Ok(copies)
    }

    /// The input from which the header key is derived. An empty passphrase without key files is
    /// refused.
    fn password(&self, family: Family, passphrase: &Key) -> Result<Key, VolumeError> {
        if passphrase.is_empty() && self.keyfiles.count() == 0 {
            return Err(VolumeError::SecretLength {
                what: "passphrase",
                got: 0,
                rule: "the minimum is 1 without key files".into(),
            });
        }
        self.keyfiles.password(family, passphrase.as_bytes())
    }

    /// Encrypts a decrypted header, in XTS.
    pub(super) fn seal_with(
        &self,
        mut sector: Sector,
        family: Family,
        spec: CipherSpec,
        password: &Key,
        salt: [u8; SALT_BYTES],
        limits: &Limits,
    ) -> Result<Sealed, VolumeError> {
        // Those of encrypted systems are not written.
        let kdf = self.prf.kdf(family, Place::Normal, self.pim)?;
        let material = kdf.derive(password.as_bytes(), &salt, LONGEST_HEADER_KEY, limits)?;
        layers::encrypt(spec, material.as_bytes(), &mut sector)?;
        let mut sealed = [0; HEADER_BYTES as usize];
        let (first, rest) = sealed.split_at_mut(SALT_BYTES);
        first.copy_from_slice(&salt);
        rest.copy_from_slice(&sector[..ENCRYPTED_BYTES]);
        Ok(sealed)
    }
}
