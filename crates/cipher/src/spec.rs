//! [`CipherSpec`]: a cipher, a mode and an IV generator that fit together, and
//! the only way from them to a cipher.

use std::fmt;

use crate::assembly::assemble;
use crate::iv::{SEED_BYTES, WHITENING_BYTES};
use crate::{
    Algorithm, Backend, CipherError, EssivHash, IvGenerator, Key, KeyedCipher, Mode, SectorLayout,
    SectorSize,
};

/// Ciphers in a cascade, at most.
pub(crate) const LONGEST_CASCADE: usize = 3;

/// Keys of a multi-key cipher, at most: loop-AES's number.
pub(crate) const MOST_KEYS: usize = 64;

/// Where TrueCrypt's keys of a cascade begin in the modes before XTS: what
/// stands before them is the tweak key of LRW, or the seeds of CBC.
pub(crate) const CASCADE_SECRET_BYTES: usize = 32;

/// Ciphers with 8-byte blocks that TrueCrypt 4 has in LRW; the kernel has none.
const TRUECRYPT_4: [Algorithm; 3] = [
    Algorithm::BlowfishLe,
    Algorithm::Cast5,
    Algorithm::TripleDes,
];

/// The key that Adiantum derives all others from, and its block cipher's.
const ADIANTUM_KEY_BYTES: usize = 32;

/// A disk cipher in dm-crypt's notation, such as `aes-xts-plain64`.
///
/// It also reads
/// * the kernel crypto API's form, `capi:xts(aes)-plain64`, ESSIV as a template
///   in it, `capi:essiv(cbc(aes),sha256)-plain64`, and dm-crypt's shorthands
///   `aes` and `aes-plain` for `aes-cbc-plain`;
/// * the stream cipher of Adiantum before the block cipher:
///   `xchacha12,aes-adiantum-plain64`;
/// * several keys, one for each sector in turn: `aes:64-cbc-lmk`;
/// * VeraCrypt's cascades, `AES(Twofish(Serpent))` or `aes-twofish-serpent`, in
///   capital or small letters, in XTS where no mode is named;
/// * `cipher_null-ecb`, which does not encrypt at all.
///
/// It prints the short form. A value of this type can always be built: an impossible specification
/// is refused when it is parsed. The length of the key is not part of the notation.
///
/// Source: Linux, Documentation/admin-guide/device-mapper/dm-crypt.rst;
/// VeraCrypt, Encryption Algorithms: Cascades of Ciphers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CipherSpec {
    /// The named ciphers, then the first of them again.
    named: [Algorithm; LONGEST_CASCADE],
    ciphers: usize,
    key_count: usize,
    mode: Mode,
    iv: Option<IvGenerator>,
}

impl CipherSpec {
    /// Specifications for help texts and tests: of every cipher the mode that
    /// cryptsetup creates by default, and of every mode and IV generator one.
    pub const KNOWN: &[&str] = &[
        "aes-xts-plain64",
        "serpent-xts-plain64",
        "twofish-xts-plain64",
        "camellia-xts-plain64",
        "cast6-xts-plain64",
        "kuznyechik-xts-plain64",
        "sm4-xts-plain64",
        "aria-xts-plain64",
        "anubis-cbc-plain64",
        "seed-cbc-plain64",
        "blowfish-cbc-plain64",
        "blowfish_le-cbc-plain64",
        "cast5-cbc-essiv:md5",
        "des-cbc-plain64",
        "des3_ede-cbc-plain64",
        "khazad-cbc-plain64",
        "aes-cbc-essiv:sha256",
        "serpent-cbc-plain",
        "twofish-cbc-plain64be",
        "aes-cbc-eboiv",
        "aes-cbc-elephant",
        "aes-cbc-tcw",
        "aes:64-cbc-lmk",
        "aes-lrw-benbi",
        "xchacha12,aes-adiantum-plain64",
        "xchacha20,aes-adiantum-plain64",
        "aes-hctr2-plain64",
        "aes-ctr-plain64",
        "aes-ecb",
        "twofish-ecb-null",
        "aes-twofish-serpent-xts-plain64",
        "serpent-aes-cbc-tcw",
        "twofish-serpent-lrw-benbi",
    ];

    /// Puts together what fits together; `ciphers` are one to
    /// [`LONGEST_CASCADE`], `key_count` a power of two up to [`MOST_KEYS`].
    pub(crate) fn new(
        ciphers: &[Algorithm],
        key_count: usize,
        mode: Mode,
        iv: Option<IvGenerator>,
    ) -> Result<Self, CipherError> {
        let mut named = [ciphers[0]; LONGEST_CASCADE];
        named[..ciphers.len()].copy_from_slice(ciphers);
        let spec = Self {
            named,
            ciphers: ciphers.len(),
            key_count,
            mode,
            iv,
        };
        spec.check()?;
        Ok(spec)
    }

    fn check(&self) -> Result<(), CipherError> {
        if !self.has(self.mode) {
            let modes = Mode::ALL.into_iter();
            return Err(CipherError::UnfitMode {
                ciphers: self.ciphers_notation(),
                mode: self.mode,
                possible: modes.filter(|&mode| self.has(mode)).collect(),
            });
        }
        let mode = self.mode;
        let sizes = self.named[0].key_sizes();
        let fits = |hash: &EssivHash| sizes.contains(&hash.digest_bytes());
        let mut hashes = EssivHash::ALL.into_iter().filter(fits);
        let mut possible = || {
            let usable = |iv| match iv {
                IvGenerator::Essiv(_) => hashes.next().map(IvGenerator::Essiv),
                _ => Some(iv),
            };
            let taken = IvGenerator::ALL.into_iter().filter(|&iv| self.takes(iv));
            taken.filter_map(usable).collect()
        };
        let iv = match self.iv {
            Some(iv) => iv,
            None if mode == Mode::Ecb => return Ok(()),
            None => {
                let possible = possible();
                return Err(CipherError::MissingIv { mode, possible });
            }
        };
        if !self.takes(iv) {
            return Err(CipherError::UnfitIv {
                ciphers: self.ciphers_notation(),
                mode,
                iv,
                possible: possible(),
            });
        }
        if let IvGenerator::Essiv(hash) = iv
            && !fits(&hash)
        {
            return Err(CipherError::UnfitHash {
                cipher: self.named[0],
                hash,
                possible: hashes.collect(),
            });
        }
        Ok(())
    }

    /// Whether these ciphers can work in `mode`.
    fn has(&self, mode: Mode) -> bool {
        let wide = self.algorithms().iter().all(|c| c.block_bytes() == 16);
        let single = !self.is_cascade() && self.key_count == 1;
        if self.named[0] == Algorithm::Null {
            return single && mode == Mode::Ecb;
        }
        match mode {
            Mode::Xts => wide,
            Mode::Lrw => wide || single && TRUECRYPT_4.contains(&self.named[0]),
            Mode::Cbc => true,
            Mode::Ctr | Mode::Ecb => !self.is_cascade(),
            Mode::Adiantum(_) => {
                let sizes = self.named[0].key_sizes();
                single && wide && sizes.contains(&ADIANTUM_KEY_BYTES)
            }
            Mode::Hctr2 => single && wide,
        }
    }

    /// Whether `iv`, with some parameter, can make the IVs of this mode.
    fn takes(&self, iv: IvGenerator) -> bool {
        use IvGenerator::{
            Benbi, Eboiv, Elephant, Essiv, Lmk, Null, Plain, Plain64, Plain64Be, Tcw,
        };
        let aes_sized = || {
            let aes = Algorithm::Aes.key_sizes();
            self.named[0]
                .key_sizes()
                .iter()
                .any(|size| aes.contains(size))
        };
        match (self.mode, iv) {
            (Mode::Lrw, _) if self.named[0].block_bytes() == 8 => iv == Benbi,
            (_, Null | Plain | Plain64 | Plain64Be) => true,
            (Mode::Cbc, Tcw) | (Mode::Lrw, Benbi) => true,
            (Mode::Adiantum(_) | Mode::Hctr2, _) => iv == Benbi,
            _ if self.is_cascade() => false,
            (Mode::Cbc, Elephant) => {
                self.key_count == 1 && self.named[0].block_bytes() == 16 && aes_sized()
            }
            (Mode::Cbc, Lmk) => true,
            (Mode::Ecb, _) | (_, Elephant | Lmk | Tcw) => false,
            (Mode::Ctr, Eboiv) => false,
            (Mode::Xts | Mode::Cbc | Mode::Lrw | Mode::Ctr, Essiv(_) | Benbi | Eboiv) => true,
        }
    }

    /// The block ciphers as they are named: one, or the layers of a cascade,
    /// of which the last encrypts first.
    pub fn algorithms(&self) -> &[Algorithm] {
        &self.named[..self.ciphers]
    }

    /// The mode of operation.
    pub const fn mode(&self) -> Mode {
        self.mode
    }

    /// The IV generator; ECB needs none.
    pub const fn iv(&self) -> Option<IvGenerator> {
        self.iv
    }

    /// How many keys take turns, from one 512-byte unit to the next.
    pub const fn key_count(&self) -> usize {
        self.key_count
    }

    /// Whether several ciphers encrypt one after the other.
    pub const fn is_cascade(&self) -> bool {
        self.ciphers > 1
    }

    /// Possible key lengths in bytes, ascending, as cryptsetup counts. An XTS key holds the data
    /// key and the tweak key; a multi-key cipher's key holds all keys. The bytes that the mode and
    /// the IV generator need besides follow.
    ///
    /// The keys of a cascade stand in VeraCrypt's order, that of encryption. In XTS the data keys
    /// come first, then the tweak keys. In LRW and in CBC with `tcw`, 32 bytes for the tweak key or
    /// the seeds come before the keys.
    pub fn key_sizes(&self) -> Vec<usize> {
        if self.is_cascade() {
            let keys: usize = self.algorithms().iter().map(|c| c.longest_key()).sum();
            return vec![match (self.mode, self.iv) {
                (Mode::Xts, _) => 2 * keys,
                (Mode::Lrw, _) | (_, Some(IvGenerator::Tcw)) => CASCADE_SECRET_BYTES + keys,
                _ => keys,
            }];
        }
        let keys = self.named[0].key_sizes();
        let mut sizes: Vec<usize> = keys.iter().flat_map(|&key| self.whole_keys(key)).collect();
        sizes.sort_unstable();
        sizes
    }

    /// Lengths of the whole key where one key of the block cipher has `cipher_key` bytes.
    fn whole_keys(&self, cipher_key: usize) -> Vec<usize> {
        let key = match self.mode {
            Mode::Xts => 2 * cipher_key,
            Mode::Lrw => cipher_key + self.named[0].block_bytes(),
            Mode::Adiantum(_) if cipher_key != ADIANTUM_KEY_BYTES => return Vec::new(),
            Mode::Cbc | Mode::Ctr | Mode::Ecb | Mode::Adiantum(_) | Mode::Hctr2 => cipher_key,
        };
        let keys = self.key_count * key;
        match self.iv {
            Some(IvGenerator::Tcw) => {
                vec![keys + self.named[0].block_bytes() + WHITENING_BYTES]
            }
            Some(IvGenerator::Elephant) if Algorithm::Aes.key_sizes().contains(&key) => {
                vec![2 * key]
            }
            Some(IvGenerator::Elephant) => Vec::new(),
            // With one key, version 3 of loop-AES would look like a longer key.
            Some(IvGenerator::Lmk) if self.key_count > 1 && key >= SEED_BYTES => {
                vec![keys, keys + key]
            }
            _ => vec![keys],
        }
    }

    /// The key length in bytes to take where the user names none: that of
    /// 256-bit keys, or of the longest where the cipher has no such keys.
    pub fn default_key_size(&self) -> usize {
        let keys = self.named[0].key_sizes();
        match keys.contains(&32) && !self.is_cascade() {
            true => self.whole_keys(32)[0],
            false => self.key_sizes().into_iter().max().unwrap_or(0),
        }
    }

    /// The bytes that follow the keys in a whole key of `len` bytes.
    pub(crate) fn extra_key_bytes(&self, len: usize) -> usize {
        match self.iv {
            Some(IvGenerator::Tcw) => self.named[0].block_bytes() + WHITENING_BYTES,
            Some(IvGenerator::Elephant) => len / 2,
            Some(IvGenerator::Lmk) if !len.is_multiple_of(self.key_count) => {
                len / (self.key_count + 1)
            }
            _ => 0,
        }
    }

    /// The sector sizes that the IV generator is defined for.
    pub fn sector_sizes(&self) -> &'static [SectorSize] {
        match self.iv {
            Some(IvGenerator::Lmk | IvGenerator::Tcw) => &[SectorSize::B512],
            _ => &SectorSize::ALL,
        }
    }

    /// The backends that this CPU has for this cipher, the best first; for
    /// a cascade, all those that one of its ciphers has.
    pub fn backends(&self) -> Vec<Backend> {
        Backend::ALL
            .into_iter()
            .filter(|&wanted| {
                self.algorithms()
                    .iter()
                    .any(|c| c.backends().any(|b| b == wanted))
            })
            .collect()
    }

    /// The cipher itself, by `backend` or by the best there is.
    ///
    /// A cipher of a cascade that lacks `backend` takes the next one that
    /// it has.
    ///
    /// # Errors
    /// [`CipherError::KeySize`] if the length of `key` is none of
    /// [`key_sizes`](Self::key_sizes); [`CipherError::SectorSize`] if `layout`
    /// has none of [`sector_sizes`](Self::sector_sizes);
    /// [`CipherError::BackendUnavailable`] if `backend` is none of
    /// [`backends`](Self::backends).
    pub fn cipher(
        &self,
        key: &Key,
        layout: SectorLayout,
        backend: Option<Backend>,
    ) -> Result<KeyedCipher, CipherError> {
        let key_sizes = self.key_sizes();
        if !key_sizes.contains(&key.len()) {
            return Err(CipherError::KeySize {
                spec: *self,
                got_bits: key.len() * 8,
                possible_bits: key_sizes.iter().map(|bytes| bytes * 8).collect(),
            });
        }
        if !self.sector_sizes().contains(&layout.size) {
            return Err(CipherError::SectorSize {
                spec: *self,
                got: layout.size,
                possible: self.sector_sizes().to_vec(),
            });
        }
        let available = self.backends();
        let backend = backend.unwrap_or(available[0]);
        if !available.contains(&backend) {
            return Err(CipherError::BackendUnavailable {
                spec: *self,
                backend,
                available,
            });
        }
        Ok(assemble(self, key.as_bytes(), layout, backend))
    }

    /// The beginning of the notation, up to the mode.
    fn ciphers_notation(&self) -> String {
        let names: Vec<_> = self.algorithms().iter().map(|c| c.name()).collect();
        let mut notation = names.join("-");
        if let Mode::Adiantum(stream) = self.mode {
            notation = format!("{stream},{notation}");
        }
        if self.key_count > 1 {
            notation += &format!(":{}", self.key_count);
        }
        notation
    }
}

impl fmt::Display for CipherSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut notation = format!("{}-{}", self.ciphers_notation(), self.mode);
        if let Some(iv) = self.iv {
            notation += &format!("-{iv}");
        }
        f.pad(&notation)
    }
}
