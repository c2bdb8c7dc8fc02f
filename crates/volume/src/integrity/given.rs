//! [`GivenIv`]: XTS and CBC under IVs that are given, not made of a sector's
//! number.
//!
//! ```text
//! XTS   tweaks:  E₂(IV), and from block to block times x     ciphertext:  E₁(data ⊕ tweaks) ⊕ tweaks
//! CBC   the first block ⊕ IV, and then CBC under an IV of zeros
//! ```
//!
//! The encryptions are the engine's, over all sectors of a request at once.

use crate::VolumeError;
use crate::mapping::sectors_of;
use cipher::{
    Algorithm, CipherError, CipherSpec, IvSector, Key, KeyedCipher, Mode, SectorCipher,
    SectorLayout, SectorSize,
};
use zeroize::Zeroizing;

const BLOCK: usize = 16;

/// ECB's input is padded to a multiple of this, bytes: the smallest sector that the cipher takes.
const RUN: usize = 512;

/// A cipher in XTS or CBC mode.
pub(crate) struct GivenIv {
    mode: Given,
    sector_bytes: usize,
}

enum Given {
    /// ECB under the key of the data, and under that of the tweaks.
    Xts {
        data: KeyedCipher,
        tweak: KeyedCipher,
    },
    /// CBC under an IV of zeros.
    Cbc(KeyedCipher),
}

impl GivenIv {
    /// The cipher and mode of `transform`, as in `aes-xts`. The key of XTS is
    /// that of the data and then that of the tweaks. Nothing if that is not
    /// one cipher of 16-byte blocks under one key, in one of these modes.
    pub(super) fn new(
        transform: &str,
        key: &[u8],
        sector: SectorSize,
    ) -> Result<Option<Self>, VolumeError> {
        // Says better what is wrong with name and key than the parts do.
        let spec: CipherSpec = format!("{transform}-plain64").parse()?;
        let layout = sectors_of(sector);
        spec.cipher(&Key::from_slice(key), layout, None)?;
        let one = matches!(spec.algorithms(), [one] if one.block_bytes() == BLOCK && *one != Algorithm::Null);
        if !one || spec.key_count() != 1 {
            return Ok(None);
        }
        let Some((name, _)) = transform.rsplit_once('-') else {
            return Ok(None);
        };
        let mode = match spec.mode() {
            Mode::Xts => return Ok(Some(Self::xts(name, key, sector.bytes())?)),
            Mode::Cbc => {
                let cbc: CipherSpec = format!("{name}-cbc-null").parse()?;
                Given::Cbc(cbc.cipher(&Key::from_slice(key), layout, None)?)
            }
            _ => return Ok(None),
        };
        Ok(Some(Self {
            mode,
            sector_bytes: sector.bytes(),
        }))
    }

    /// XTS of the cipher `name` over sectors of any length that is a multiple of 512 bytes.
    pub(crate) fn xts(name: &str, key: &[u8], sector_bytes: usize) -> Result<Self, CipherError> {
        let (first, second) = key.split_at(key.len() / 2);
        let mode = Given::Xts {
            data: ecb(name, first)?,
            tweak: ecb(name, second)?,
        };
        Ok(Self { mode, sector_bytes })
    }

    /// Encrypts whole sectors in place, each under its IV of 16 bytes.
    pub(super) fn encrypt(&self, data: &mut [u8], ivs: &[u8]) {
        match &self.mode {
            Given::Xts { data: blocks, .. } => {
                let tweaks = self.tweaks(ivs);
                self.mask(data, &tweaks);
                blocks.encrypt(IvSector::new(0), data);
                self.mask(data, &tweaks);
            }
            Given::Cbc(chain) => {
                self.add_ivs(data, ivs);
                chain.encrypt(IvSector::new(0), data);
            }
        }
    }

    /// Decrypts whole sectors in place, each under its IV of 16 bytes.
    pub(crate) fn decrypt(&self, data: &mut [u8], ivs: &[u8]) {
        match &self.mode {
            Given::Xts { data: blocks, .. } => {
                let tweaks = self.tweaks(ivs);
                self.mask(data, &tweaks);
                blocks.decrypt(IvSector::new(0), data);
                self.mask(data, &tweaks);
            }
            Given::Cbc(chain) => {
                chain.decrypt(IvSector::new(0), data);
                self.add_ivs(data, ivs);
            }
        }
    }

    /// The first tweak of every sector.
    fn tweaks(&self, ivs: &[u8]) -> Zeroizing<Vec<u8>> {
        let mut tweaks = Zeroizing::new(ivs.to_vec());
        if let Given::Xts { tweak, .. } = &self.mode {
            encrypt_blocks(tweak, &mut tweaks);
        }
        tweaks
    }

    fn mask(&self, data: &mut [u8], tweaks: &[u8]) {
        let (tweaks, _) = tweaks.as_chunks::<BLOCK>();
        for (sector, tweak) in data.chunks_mut(self.sector_bytes).zip(tweaks) {
            let mut tweak = u128::from_le_bytes(*tweak);
            for block in sector.as_chunks_mut::<BLOCK>().0 {
                *block = (u128::from_le_bytes(*block) ^ tweak).to_le_bytes();
                tweak = (tweak << 1) ^ (0x87 * (tweak >> 127));
            }
        }
    }

    /// Adds its IV to the first block of every sector.
    fn add_ivs(&self, data: &mut [u8], ivs: &[u8]) {
        for (sector, iv) in data.chunks_mut(self.sector_bytes).zip(ivs.chunks(BLOCK)) {
            for (byte, iv) in sector.iter_mut().zip(iv) {
                *byte ^= iv;
            }
        }
    }
}

/// The cipher `name` in ECB mode.
///
/// # Errors
/// [`CipherError`] if there is no such cipher, or none with such a key.
pub(super) fn ecb(name: &str, key: &[u8]) -> Result<KeyedCipher, CipherError> {
    let spec: CipherSpec = format!("{name}-ecb").parse()?;
    spec.cipher(&Key::from_slice(key), SectorLayout::default(), None)
}

/// Encrypts blocks in place, as many as there are.
pub(super) fn encrypt_blocks(ecb: &KeyedCipher, blocks: &mut Vec<u8>) {
    let length = blocks.len();
    blocks.resize(length.next_multiple_of(RUN), 0);
    ecb.encrypt(IvSector::new(0), blocks);
    blocks.truncate(length);
}
