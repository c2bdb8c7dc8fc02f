//! [`Encryption`]: what a target encrypts with.

use super::{Backend, sharing};
use crate::error::LabError;
use cipher::{CipherError, CipherSpec, SectorSize, Sharing};

/// The cipher of a target, with its settings.
#[derive(Clone, Copy, Debug)]
pub struct Encryption {
    /// Cipher, mode and IV generator.
    pub spec: CipherSpec,
    /// Bits of the volume key, as cryptsetup counts.
    pub key_bits: u32,
    /// Encryption sector size.
    pub sector_size: SectorSize,
    /// Backend to force; `None` takes the fastest.
    pub backend: Option<Backend>,
    /// How the engine shares large requests among cores; `None` takes one core.
    pub sharing: Option<Sharing>,
}

/// Bytes of the smallest request that all cores share.
pub const SHARED_FROM: u64 = 2 * PART as u64;

/// Bytes of a request that each of them has at least.
const PART: usize = 128 << 10;

/// Dm-crypt notation of a cipher that is named alone: its XTS, as disks have it; of one that has
/// none, and of what is notation already, the same.
pub fn notation(given: &str) -> String {
    let xts = format!("{given}-xts-plain64");
    match !given.contains('-') && xts.parse::<CipherSpec>().is_ok() {
        true => xts,
        false => given.to_owned(),
    }
}

impl Encryption {
    /// Reads dm-crypt notation; without `key_bits` the cipher's default
    /// applies, without `backend` the fastest.
    ///
    /// # Errors
    /// [`LabError`] names what is possible.
    pub fn parse(
        notation: &str,
        key_bits: Option<u32>,
        sector_bytes: u32,
        backend: Option<Backend>,
    ) -> Result<Self, LabError> {
        let spec: CipherSpec = notation.parse()?;
        let bits = key_bits.unwrap_or(spec.default_key_size() as u32 * 8);
        if !spec
            .key_sizes()
            .iter()
            .any(|size| size * 8 == bits as usize)
        {
            return Err(LabError::from(CipherError::KeySize {
                spec,
                got_bits: bits as usize,
                possible_bits: spec.key_sizes().iter().map(|size| size * 8).collect(),
            }));
        }
        if let Some(backend) = backend.filter(|backend| !spec.backends().contains(backend)) {
            return Err(LabError::from(CipherError::BackendUnavailable {
                spec,
                backend,
                available: spec.backends(),
            }));
        }
        Ok(Self {
            spec,
            key_bits: bits,
            sector_size: SectorSize::from_bytes(sector_bytes).ok_or_else(|| {
                LabError::invalid(
                    format!("sector_size = {sector_bytes} is not an encryption sector size"),
                    "Use 512, 1024, 2048 or 4096.",
                )
            })?,
            backend,
            sharing: None,
        })
    }

    /// The same encryption with large requests shared among `cores`, from the size on at which that
    /// is measured to be faster here. It is unchanged if sharing is never faster.
    ///
    /// # Errors
    /// [`LabError`] if the cipher cannot be built or gets no threads.
    pub fn shared_among(self, cores: u32) -> Result<Self, LabError> {
        Ok(Self {
            sharing: match cores {
                0 | 1 => None,
                _ => sharing::sharing(&self, cores as usize)?,
            },
            ..self
        })
    }

    /// The same encryption with requests of [`SHARED_FROM`] and more shared among all cores,
    /// whether or not that is faster. `None` if the machine has one core, or they share already.
    pub(crate) fn on_all_cores(self) -> Option<Self> {
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
        let several = cores > 1 && self.sharing.is_none();
        several.then_some(Self {
            sharing: Some(Sharing { cores, part: PART }),
            ..self
        })
    }

    /// Cores that share large requests, and bytes of the smallest that they share; `None` of one
    /// core.
    pub(crate) fn shares(&self) -> Option<(usize, u64)> {
        let sharing = self.sharing?;
        Some((sharing.cores, 2 * sharing.part as u64))
    }

    /// The outcome of sharing requests among `cores`, for a user who asked for several cores.
    pub fn tell_sharing(&self, cores: u32) -> Option<String> {
        let Self {
            spec, sector_size, ..
        } = self;
        let cipher = format!("{spec}, {}-byte sectors", sector_size.bytes());
        match self.sharing {
            _ if cores < 2 => None,
            Some(Sharing { part, .. }) => Some(format!(
                "{cipher}: {cores} cores share requests of {} KiB and more",
                2 * part / 1024
            )),
            None => Some(format!(
                "{cipher}: {cores} cores are not faster than one for every large request, so one \
                 core encrypts"
            )),
        }
    }

    /// The engine's backend as records name it: `vaes512`, `vaes512 on 2 cores`.
    pub(crate) fn engine(&self, backend: Backend) -> String {
        match self.sharing {
            Some(Sharing { cores, .. }) => format!("{backend} on {cores} cores"),
            None => backend.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_asked_for_several_cores_is_told_of_them() {
        let mut encryption = Encryption::parse("aes-xts-plain64", None, 512, None).unwrap();
        assert_eq!(encryption.shared_among(1).unwrap().sharing, None);
        assert_eq!(encryption.tell_sharing(1), None);
        assert_eq!(encryption.engine(Backend::Portable), "portable");
        let refused = encryption.tell_sharing(4).unwrap();
        assert!(refused.contains("4 cores are not faster"), "{refused}");

        encryption.sharing = Some(Sharing {
            cores: 4,
            part: 64 << 10,
        });
        assert_eq!(
            encryption.tell_sharing(4).unwrap(),
            "aes-xts-plain64, 512-byte sectors: 4 cores share requests of 128 KiB and more"
        );
        assert_eq!(encryption.engine(Backend::Portable), "portable on 4 cores");
    }
}
