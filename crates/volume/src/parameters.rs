//! [`Parameters`]: what a user says of a volume beyond its secret, as texts and numbers.

use crate::error::impossible;
use crate::plain::{Hashing, Place, unknown_hash};
use crate::tcrypt::{Family, Keyfiles, Prf};
use crate::{Format, Hash, Opening, VolumeError, cryptoloop, loopaes, plain, tcrypt};
use cipher::{CipherSpec, SectorLayout, SectorSize};

/// Defaults of cryptsetup since 2.7, and of losetup.
const PLAIN_CIPHER: &str = "aes-xts-plain64";
const PLAIN_HASH: &str = "sha256";
const LOOP_CIPHER: &str = "aes";

/// cryptsetup's cipher and hash of plain volumes up to 2.6.
const EARLIER_PLAIN: [&str; 2] = ["aes-cbc-essiv:sha256", "ripemd160"];

/// The parameters of a volume, named as cryptsetup's options are. The default names none.
///
/// A header gives nearly all of them. Volumes without a header have them from the user.
#[derive(Clone, Debug, Default)]
pub struct Parameters {
    /// Cipher in dm-crypt's notation.
    pub cipher: Option<String>,
    /// Length of the key, bits.
    pub key_size: Option<usize>,
    /// Hash of the passphrase; for TrueCrypt and VeraCrypt, the key derivation.
    pub hash: Option<String>,
    /// First byte of the data.
    pub offset: Option<u64>,
    /// IV number of the first sector, in units of 512 bytes.
    pub skip: Option<u64>,
    /// Length of the data, bytes.
    pub size: Option<u64>,
    /// Encryption sector size, bytes.
    pub sector_size: Option<u32>,
    /// IVs count encryption sectors, and not units of 512 bytes.
    pub iv_large_sectors: bool,
    /// The keyslot to open.
    pub key_slot: Option<u32>,
    /// Open the hidden volume.
    pub tcrypt_hidden: bool,
    /// Open with the copy of the header.
    pub tcrypt_backup: bool,
    /// Open an encrypted system partition with the header on its disk.
    pub tcrypt_system: bool,
    /// VeraCrypt's multiplier of the costs.
    pub veracrypt_pim: Option<u32>,
    /// Key files beside the passphrase of TrueCrypt and VeraCrypt.
    pub keyfiles: Option<Keyfiles>,
    /// Read BestCrypt's data with a guessed numbering of its sectors.
    pub experimental: bool,
    /// Key derivation of cryptoloop.
    pub key_derivation: Option<String>,
}

impl Parameters {
    /// The way to open a volume of `format`.
    ///
    /// # Errors
    /// [`VolumeError::Foreign`] if the format has no use for a parameter; those of each.
    pub fn opening(&self, format: Format) -> Result<Opening, VolumeError> {
        self.check(format)?;
        let slot = self.key_slot;
        Ok(match format {
            Format::Luks1 => Opening::Luks1 { slot },
            Format::Luks2 => Opening::Luks2 { slot },
            Format::Plain => Opening::Plain(self.plain()?),
            Format::Cryptoloop => Opening::Cryptoloop(self.cryptoloop()?),
            Format::LoopAes => Opening::LoopAes(self.loopaes()?),
            Format::Tcrypt => Opening::Tcrypt(Box::new(self.tcrypt(Family::TrueCrypt)?)),
            Format::Veracrypt => Opening::Tcrypt(Box::new(self.tcrypt(Family::VeraCrypt)?)),
            Format::Bitlk => Opening::Bitlk,
            Format::Fvault2 => Opening::Fvault2,
            Format::Bestcrypt if self.experimental => Opening::Bestcrypt,
            Format::Bestcrypt => {
                return Err(impossible(
                    "BestCrypt's numbering of data sectors is not published",
                    "Give `experimental` to read it with a guessed numbering.",
                ));
            }
        })
    }

    /// Refuses a parameter that `format` has no use for, because it is a mistake.
    ///
    /// # Errors
    /// [`VolumeError::Foreign`].
    pub fn check(&self, format: Format) -> Result<(), VolumeError> {
        use Format::{Bestcrypt, Cryptoloop, LoopAes, Luks1, Luks2, Plain, Tcrypt, Veracrypt};
        const HEADLESS: &[Format] = &[Plain, Cryptoloop, LoopAes];
        const SEARCHED: &[Format] = &[Plain, Cryptoloop, LoopAes, Tcrypt, Veracrypt];
        const HASHED: &[Format] = &[Plain, LoopAes, Tcrypt, Veracrypt];
        const TCRYPT: &[Format] = &[Tcrypt, Veracrypt];
        let given = [
            ("cipher", self.cipher.is_some(), SEARCHED),
            ("key_size", self.key_size.is_some(), HEADLESS),
            ("hash", self.hash.is_some(), HASHED),
            ("offset", self.offset.is_some(), HEADLESS),
            ("skip", self.skip.is_some(), HEADLESS),
            ("size", self.size.is_some(), HEADLESS),
            ("sector_size", self.sector_size.is_some(), &[Plain]),
            ("iv_large_sectors", self.iv_large_sectors, &[Plain]),
            ("tcrypt_hidden", self.tcrypt_hidden, TCRYPT),
            ("tcrypt_backup", self.tcrypt_backup, TCRYPT),
            ("tcrypt_system", self.tcrypt_system, TCRYPT),
            ("veracrypt_pim", self.veracrypt_pim.is_some(), &[Veracrypt]),
            ("keyfile", self.keyfiles.is_some(), TCRYPT),
            ("key_slot", self.key_slot.is_some(), &[Luks1, Luks2]),
            ("experimental", self.experimental, &[Bestcrypt]),
            (
                "key_derivation",
                self.key_derivation.is_some(),
                &[Cryptoloop],
            ),
        ];
        let mut foreign = given.into_iter().filter(|(_, given, _)| *given);
        match foreign.find(|(.., formats)| !formats.contains(&format)) {
            Some((parameter, _, formats)) => Err(VolumeError::Foreign {
                parameter,
                format,
                formats,
            }),
            None => Ok(()),
        }
    }

    /// How cryptsetup up to 2.6 would open a plain volume of which neither cipher nor hash is given.
    ///
    /// # Errors
    /// Those of [`opening`](Self::opening).
    pub(crate) fn earlier_plain(&self) -> Result<Option<plain::Opening>, VolumeError> {
        if !self.is_default_plain() {
            return Ok(None);
        }
        let [cipher, hash] = EARLIER_PLAIN.map(|text| Some(text.to_owned()));
        let earlier = Self {
            cipher,
            hash,
            ..self.clone()
        };
        earlier.plain().map(Some)
    }

    /// Whether a plain volume is opened by defaults, which have changed.
    #[doc(hidden)]
    pub fn is_default_plain(&self) -> bool {
        self.cipher.is_none() && self.key_size.is_none() && self.hash.is_none()
    }

    /// The cipher.
    ///
    /// # Errors
    /// [`VolumeError::Cipher`].
    pub fn cipher(&self) -> Result<Option<CipherSpec>, VolumeError> {
        Ok(self.cipher.as_deref().map(str::parse).transpose()?)
    }

    /// The hash, of LUKS.
    ///
    /// # Errors
    /// [`VolumeError::Impossible`].
    pub fn hash(&self) -> Result<Option<Hash>, VolumeError> {
        let named = |name: &String| Hash::named(name).ok_or_else(|| unknown_hash(name));
        self.hash.as_ref().map(named).transpose()
    }

    /// The length of the key, bytes.
    ///
    /// # Errors
    /// [`VolumeError::Impossible`].
    pub fn key_bytes(&self) -> Result<Option<usize>, VolumeError> {
        match self.key_size {
            Some(bits) if bits == 0 || !bits.is_multiple_of(8) || bits > 65_536 => Err(impossible(
                format!("a key of {bits} bits is not possible"),
                "Give a multiple of 8, as in `key_size` 256.",
            )),
            bits => Ok(bits.map(|bits| bits / 8)),
        }
    }

    /// The encryption sector size.
    ///
    /// # Errors
    /// [`VolumeError::Impossible`].
    pub fn sector_size(&self) -> Result<Option<SectorSize>, VolumeError> {
        let wrong = |bytes| {
            impossible(
                format!("encryption sectors of {bytes} bytes are not possible"),
                "Give a `sector_size` of 512, 1024, 2048 or 4096.",
            )
        };
        let size = |bytes| SectorSize::from_bytes(bytes).ok_or_else(|| wrong(bytes));
        self.sector_size.map(size).transpose()
    }

    /// The way to open a TrueCrypt or VeraCrypt volume.
    ///
    /// # Errors
    /// [`VolumeError::Cipher`] and [`VolumeError::Lacks`] for an unknown key derivation.
    pub fn tcrypt(&self, family: Family) -> Result<tcrypt::Opening, VolumeError> {
        let place = match (self.tcrypt_system, self.tcrypt_hidden, self.tcrypt_backup) {
            (true, _, _) => tcrypt::Place::System,
            (_, true, true) => tcrypt::Place::HiddenBackup,
            (_, true, false) => tcrypt::Place::Hidden,
            (_, false, true) => tcrypt::Place::NormalBackup,
            (_, false, false) => tcrypt::Place::Normal,
        };
        let prf = self.hash.as_deref().map(|name| Prf::of(family, name));
        Ok(tcrypt::Opening {
            family,
            place,
            pim: self.veracrypt_pim,
            prf: prf.transpose()?,
            algorithms: self.cipher()?.map(|spec| spec.algorithms().to_vec()),
            keyfiles: self.keyfiles.clone().unwrap_or_default(),
            partition: None,
        })
    }

    /// The way to open a plain volume.
    ///
    /// # Errors
    /// [`VolumeError::Cipher`] and [`VolumeError::Impossible`].
    pub fn plain(&self) -> Result<plain::Opening, VolumeError> {
        let notation = self.cipher.as_deref().unwrap_or(PLAIN_CIPHER);
        let spec: CipherSpec = notation.parse()?;
        let hash = self.hash.as_deref().unwrap_or(PLAIN_HASH);
        Ok(plain::Opening {
            spec,
            key_bytes: self.key_bytes()?,
            hashing: hash.parse::<Hashing>()?,
            place: Place {
                offset: self.offset.unwrap_or(0),
                skip: self.skip.unwrap_or(0),
                size: self.size,
            },
            layout: SectorLayout {
                size: self.sector_size()?.unwrap_or_default(),
                large_iv: self.iv_large_sectors,
            },
        })
    }

    fn cryptoloop(&self) -> Result<cryptoloop::Opening, VolumeError> {
        let notation = self.cipher.as_deref().unwrap_or(LOOP_CIPHER);
        let derivation = self.key_derivation.as_deref().map(str::parse);
        Ok(cryptoloop::Opening {
            cipher: notation.parse::<cryptoloop::LoopCipher>()?,
            key_bytes: self.key_bytes()?,
            derivation: derivation.transpose()?.unwrap_or_default(),
            offset: self.offset.unwrap_or(0),
            skip: self.skip,
            size: self.size,
        })
    }

    fn loopaes(&self) -> Result<loopaes::Opening, VolumeError> {
        let notation = self.cipher.as_deref().unwrap_or(LOOP_CIPHER);
        let spec: CipherSpec = notation.parse()?;
        Ok(loopaes::Opening {
            cipher: spec.algorithms()[0],
            key_bytes: self.key_bytes()?.unwrap_or(32),
            hash: self.hash()?,
            offset: self.offset.unwrap_or(0),
            skip: self.skip,
            size: self.size,
        })
    }
}
