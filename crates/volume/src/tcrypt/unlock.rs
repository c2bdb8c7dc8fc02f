//! From a passphrase and key files to the volume key, and from that to the
//! mapping.

use super::layers;
use super::prf::{LONGEST_HEADER_KEY, checked_pim};
use super::search::{Candidate, Search, Watch};
use super::{
    Family, HEADER_BYTES, HIDDEN_AT, Header, Keyfiles, OLD_HIDDEN_BEFORE_END, Place, Prf,
    SALT_BYTES, UNIT,
};
use crate::error::impossible;
use crate::mapping::within;
use crate::{Damage, Kdf, Limits, Mapping, Secret, VolumeError, unaligned};
use block::{BlockDevice, ByteRange};
use cipher::{Algorithm, CipherSpec, IvSector, Key, Mode, SectorLayout};
use std::num::NonZeroUsize;
use std::thread;
use std::time::Duration;

/// The longest passphrase of TrueCrypt, and of VeraCrypt up to version 1.23.
const OLD_LONGEST_PASSPHRASE: usize = 64;

/// The volume to open, and the known facts about it.
#[derive(Clone, Debug)]
pub struct Opening {
    /// The program whose volume it is.
    pub family: Family,
    /// The header to open.
    pub place: Place,
    /// VeraCrypt's multiplier of the costs; `None` and 0 are the usual costs.
    pub pim: Option<u32>,
    /// The only key derivation to try; `None` tries all.
    pub prf: Option<Prf>,
    /// The only ciphers to try, named as in [`specs`](super::specs); `None`
    /// tries all.
    pub algorithms: Option<Vec<Algorithm>>,
    /// Key files beside the passphrase.
    pub keyfiles: Keyfiles,
    /// Of an encrypted system: where on the disk with the header the partition with the data
    /// begins. `None` if the data are on the whole disk.
    pub partition: Option<u64>,
}

impl Opening {
    /// The normal volume of `family`, with a passphrase alone.
    pub const fn new(family: Family) -> Self {
        Self {
            family,
            place: Place::Normal,
            pim: None,
            prf: None,
            algorithms: None,
            keyfiles: Keyfiles::none(),
            partition: None,
        }
    }

    /// Finds the header on `device` that `secret` opens. If the device cannot read it, or it opens
    /// and is damaged, its copy is used.
    ///
    /// A key file is taken as a whole, as if it were typed. Key files beside the passphrase belong
    /// in `keyfiles`. If all derivations are tried, those beyond `limits` are left out.
    ///
    /// # Errors
    /// [`VolumeError::NoHeaderFits`]; [`VolumeError::Header`] if a header opens and cannot be used,
    /// and its copy cannot either or does not exist; [`VolumeError::SecretKind`],
    /// [`VolumeError::SecretLength`], [`VolumeError::Impossible`] and [`VolumeError::Lacks`]; those of
    /// [`Kdf::derive`]; [`VolumeError::Block`], with
    /// [`BlockError::Interrupted`](block::BlockError::Interrupted) if `watch` ended it.
    pub fn unlock(
        &self,
        device: &dyn BlockDevice,
        secret: &Secret,
        limits: &Limits,
        watch: Watch,
    ) -> Result<Unlocked, VolumeError> {
        let cores = thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        self.unlock_by(cores, device, secret, limits, watch)
    }

    /// Does what [`unlock`](Self::unlock) does, on so many threads.
    pub(crate) fn unlock_by(
        &self,
        threads: NonZeroUsize,
        device: &dyn BlockDevice,
        secret: &Secret,
        limits: &Limits,
        watch: Watch,
    ) -> Result<Unlocked, VolumeError> {
        let spoilt = |error: &VolumeError| matches!(error, VolumeError::Header { .. });
        let wrong = match self.unlock_here(threads, device, secret, limits, watch) {
            Err(wrong) if wrong.is_of_place() || spoilt(&wrong) => wrong,
            opened => return opened,
        };
        let Some(place) = self.place.copy() else {
            return Err(wrong);
        };
        let copy = Self {
            place,
            ..self.clone()
        };
        let opened = copy.unlock_here(threads, device, secret, limits, watch);
        // The error of the header tells more than the copy's, unless no header was recognised.
        opened.map_err(|error| match error.is_of_place() || spoilt(&wrong) {
            true => wrong,
            false => error,
        })
    }

    /// Finds the header in its own place.
    fn unlock_here(
        &self,
        threads: NonZeroUsize,
        device: &dyn BlockDevice,
        secret: &Secret,
        limits: &Limits,
        watch: Watch,
    ) -> Result<Unlocked, VolumeError> {
        let passwords = self.passwords(secret)?;
        let specs = match &self.algorithms {
            Some(algorithms) => layers::specs_of(self.family, algorithms)?,
            None => layers::specs(self.family),
        };
        let derivations = self.derivations(limits)?;
        let headers = self.headers(device)?;
        let search = |password| {
            Search {
                family: self.family,
                place: self.place,
                password,
                headers: &headers,
                derivations: &derivations,
                specs: &specs,
                limits,
                threads,
                watch,
            }
            .run()
        };
        let unlocked = match (search(&passwords.0), &passwords.1) {
            (Err(VolumeError::NoHeaderFits), Some(short)) => search(short)?,
            (unlocked, _) => unlocked?,
        };
        unlocked.check_offset(device.geometry().size)?;
        Ok(unlocked)
    }

    /// The input from which a header key is derived: the passphrase, mixed with the key files.
    ///
    /// # Errors
    /// [`VolumeError::SecretKind`] and [`VolumeError::SecretLength`].
    pub fn password(&self, secret: &Secret) -> Result<Key, VolumeError> {
        match secret {
            Secret::Passphrase(bytes) | Secret::KeyFile(bytes) => {
                self.keyfiles.password(self.family, bytes.as_bytes())
            }
            Secret::VolumeKey(_) => Err(VolumeError::SecretKind {
                format: self.family.format(),
                got: secret.kind(),
            }),
        }
    }

    /// The same, and the variant that VeraCrypt made of it up to version 1.23: it took the first 64
    /// bytes of a longer passphrase.
    fn passwords(&self, secret: &Secret) -> Result<(Key, Option<Key>), VolumeError> {
        let whole = self.password(secret)?;
        let short = match secret {
            Secret::Passphrase(bytes) | Secret::KeyFile(bytes)
                if self.family == Family::VeraCrypt && bytes.len() > OLD_LONGEST_PASSPHRASE =>
            {
                let short = &bytes.as_bytes()[..OLD_LONGEST_PASSPHRASE];
                Some(self.keyfiles.password(self.family, short)?)
            }
            _ => None,
        };
        Ok((whole, short))
    }

    /// The key derivations to try, all of them within `limits`.
    fn derivations(&self, limits: &Limits) -> Result<Vec<(Prf, Kdf)>, VolumeError> {
        checked_pim(self.family, self.place, self.pim)?;
        let checked = |prf: Prf| {
            let kdf = prf.kdf(self.family, self.place, self.pim)?;
            kdf.check(&[0; SALT_BYTES], LONGEST_HEADER_KEY, limits)?;
            Ok((prf, kdf))
        };
        if let Some(prf) = self.prf {
            return Ok(vec![checked(prf)?]);
        }
        let (mut within, mut beyond) = (Vec::new(), None);
        for &prf in Prf::all(self.family) {
            match checked(prf) {
                Ok(derivation) => within.push(derivation),
                Err(error) => beyond = beyond.or(Some(error)),
            }
        }
        match beyond {
            Some(error) if within.is_empty() => Err(error),
            _ => Ok(within),
        }
    }

    /// The work of trying one passphrase.
    ///
    /// # Errors
    /// Those of [`unlock`](Self::unlock) that no passphrase is needed for.
    pub(crate) fn work(&self, limits: &Limits) -> Result<Duration, VolumeError> {
        let derivations = self.derivations(limits)?.into_iter();
        let works = derivations.map(|(_, kdf)| kdf.work(LONGEST_HEADER_KEY));
        Ok(works.fold(Duration::ZERO, Duration::saturating_add))
    }

    /// The most memory that trying one passphrase on one thread takes, KiB.
    pub(crate) fn memory_kib(&self, limits: &Limits) -> Result<u32, VolumeError> {
        let derivations = self.derivations(limits)?.into_iter();
        let memory = derivations.map(|(_, kdf)| kdf.memory_kib());
        Ok(memory.max().unwrap_or(0))
    }

    /// The candidates for a header.
    fn headers(&self, device: &dyn BlockDevice) -> Result<Vec<Candidate>, VolumeError> {
        let size = device.geometry().size;
        let (mut headers, mut unread) = (Vec::new(), None);
        let mut offsets = self.place.offsets(self.family, size);
        offsets.dedup();
        for offset in offsets {
            let bytes = match unaligned::read_up_to(device, offset, HEADER_BYTES) {
                Err(error) if error.is_of_place() => {
                    unread = unread.or(Some(error));
                    continue;
                }
                bytes => bytes?,
            };
            let Some((salt, rest)) = bytes.split_first_chunk() else {
                continue;
            };
            if let Ok(encrypted) = rest.try_into() {
                headers.push(Candidate {
                    offset,
                    salt: *salt,
                    encrypted,
                });
            }
        }
        if let (Some(error), true) = (unread, headers.is_empty()) {
            return Err(error);
        }
        if headers.is_empty() {
            let needed = match self.place {
                Place::Normal => HEADER_BYTES,
                Place::NormalBackup => super::HEADERS_BYTES,
                Place::Hidden => HIDDEN_AT + HEADER_BYTES,
                Place::HiddenBackup => HIDDEN_AT,
                Place::System => super::SYSTEM_AT + HEADER_BYTES,
            };
            let damage = Damage::Short { needed, got: size };
            return Err(VolumeError::damaged(self.family.format(), damage));
        }
        Ok(headers)
    }
}

/// An opened header.
#[derive(Debug)]
pub struct Unlocked {
    /// Which header it is.
    pub place: Place,
    /// Where it begins on its device.
    pub offset: u64,
    /// Cipher and mode of the header and of the data.
    pub spec: CipherSpec,
    /// The key derivation of the header key.
    pub prf: Prf,
    /// The fields of the header.
    pub header: Header,
}

impl Unlocked {
    /// The key of the data, as the cipher takes it.
    pub fn key(&self) -> Key {
        layers::key(self.spec, self.header.key_area.as_bytes())
    }

    /// The volume on `device`, the one that holds its header or a copy of it.
    ///
    /// # Errors
    /// [`VolumeError::DataArea`], [`VolumeError::DataAlignment`],
    /// [`VolumeError::Header`] and [`VolumeError::Unsupported`].
    pub fn mapping(&self, device: &dyn BlockDevice) -> Result<Mapping, VolumeError> {
        let mapping = self.described(device)?;
        within(device, mapping.data)?;
        Ok(mapping)
    }

    /// The same, whether `device` has all of it or not.
    pub(crate) fn described(&self, device: &dyn BlockDevice) -> Result<Mapping, VolumeError> {
        let data = self.header.data(self.place, device)?;
        let first = match self.spec.mode() {
            Mode::Lrw => 0,
            // As if it began behind a header.
            Mode::Cbc if self.place.is_hidden() => 1,
            _ => data.offset / UNIT,
        };
        Ok(self.mapped(data, first))
    }

    /// The part of an encrypted system on `data`, a partition that begins at byte `start` of the
    /// disk.
    ///
    /// # Errors
    /// [`VolumeError::Impossible`] if the partition begins outside of the system, and those of
    /// [`mapping`](Self::mapping).
    pub(crate) fn in_partition(
        &self,
        start: u64,
        data: &dyn BlockDevice,
    ) -> Result<Mapping, VolumeError> {
        let mapping = self.described(data)?;
        let (from, to) = (mapping.data.offset, mapping.data.end().unwrap_or(u64::MAX));
        if !(from..to).contains(&start) {
            return Err(impossible(
                format!(
                    "the partition is not a part of the encrypted system, which takes bytes {from} to \
                     {to} of the disk"
                ),
                "Name another partition.",
            ));
        }
        let length = data.geometry().size.min(to - start);
        Ok(self.mapped(ByteRange::new(0, length), start / UNIT))
    }

    /// The range that a hidden volume takes within the data of the outer one on `device`. It is the
    /// hidden volume's data and, before version 4, its header, which follows them.
    ///
    /// # Errors
    /// Those of [`mapping`](Self::mapping).
    pub fn within_outer(&self, device: &dyn BlockDevice) -> Result<ByteRange, VolumeError> {
        let data = self.mapping(device)?.data;
        Ok(match self.header.has_old_layout() {
            true => ByteRange::new(data.offset, data.length + HEADER_BYTES),
            false => data,
        })
    }

    fn mapped(&self, data: ByteRange, first: u64) -> Mapping {
        let layout = SectorLayout::default();
        Mapping::new(self.spec, self.key(), layout, data, IvSector::new(first))
    }

    /// A hidden volume's header stands where its version has it.
    fn check_offset(&self, size: u64) -> Result<(), VolumeError> {
        let expected = match (self.place, self.header.has_old_layout()) {
            (Place::Hidden, true) => size - OLD_HIDDEN_BEFORE_END,
            (Place::Hidden, false) => HIDDEN_AT,
            _ => return Ok(()),
        };
        if self.offset != expected {
            let rule = format!("such a header begins at byte {expected}");
            let damage = Damage::number("header version", self.header.version, rule);
            return Err(VolumeError::damaged(self.header.family.format(), damage));
        }
        Ok(())
    }
}
