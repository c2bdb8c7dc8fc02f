//! Modes of operation over any block cipher, generic and correct: what works
//! wherever no fused kernel does.

mod adiantum;
pub(crate) mod cbc;
mod chain;
pub(crate) mod ctr;
mod ecb;
mod hctr2;
mod lrw;
mod nh_poly1305;
pub(crate) mod polyval;
mod sectors;
#[cfg(test)]
pub(crate) mod tests;
mod wide;
pub(crate) mod xts;

use std::fmt;

pub(crate) use self::adiantum::Adiantum;
pub(crate) use self::cbc::Cbc;
pub(crate) use self::chain::Chain;
pub(crate) use self::ctr::Ctr;
pub(crate) use self::ecb::Ecb;
pub(crate) use self::hctr2::Hctr2;
pub(crate) use self::lrw::Lrw;
pub(crate) use self::sectors::{Sectors, assert_whole};
pub(crate) use self::wide::{HashEncryptHash, Wide};
pub(crate) use self::xts::Xts;

/// How a block cipher is applied to the blocks of a sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// IEEE Std 1619-2018, data key before tweak key, for 16-byte blocks: `xts`.
    Xts,
    /// NIST SP 800-38A, section 6.2: `cbc`.
    Cbc,
    /// Liskov, Rivest, Wagner 2002: `lrw`. For 16-byte blocks as in the drafts of IEEE 1619, cipher
    /// key before tweak key. For 8-byte blocks as in TrueCrypt 4.
    Lrw,
    /// NIST SP 800-38A, section 6.5, the whole IV a big-endian counter: `ctr`.
    ///
    /// On a disk, an observer who sees a sector before and after it is rewritten learns the
    /// difference of the plaintexts.
    Ctr,
    /// NIST SP 800-38A, section 6.1: `ecb`.
    ///
    /// Equal blocks of plaintext show as equal blocks of ciphertext.
    Ecb,
    /// Crowley and Biggers 2018, for 16-byte blocks and 256-bit keys:
    /// `adiantum`. The whole sector is one block; its stream cipher stands
    /// before the block cipher, `xchacha12,aes-adiantum`.
    Adiantum(StreamCipher),
    /// Crowley, Huckleberry, Biggers 2021, for 16-byte blocks: `hctr2`. The
    /// whole sector is one block.
    Hctr2,
}

/// The stream cipher that encrypts most of a sector in [`Mode::Adiantum`], by the kernel's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StreamCipher {
    /// draft-irtf-cfrg-xchacha-03 with 12 rounds: `xchacha12`.
    XChaCha12,
    /// draft-irtf-cfrg-xchacha-03, 20 rounds: `xchacha20`.
    XChaCha20,
}

impl StreamCipher {
    /// Both.
    pub const ALL: [Self; 2] = [Self::XChaCha12, Self::XChaCha20];

    /// The kernel's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::XChaCha12 => "xchacha12",
            Self::XChaCha20 => "xchacha20",
        }
    }
}

impl fmt::Display for StreamCipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Mode {
    /// Every mode of this build, `adiantum` with its usual stream cipher.
    pub const ALL: [Self; 7] = [
        Self::Xts,
        Self::Cbc,
        Self::Lrw,
        Self::Ctr,
        Self::Ecb,
        Self::Adiantum(StreamCipher::XChaCha12),
        Self::Hctr2,
    ];

    /// The kernel's name, without the stream cipher.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Xts => "xts",
            Self::Cbc => "cbc",
            Self::Lrw => "lrw",
            Self::Ctr => "ctr",
            Self::Ecb => "ecb",
            Self::Adiantum(_) => "adiantum",
            Self::Hctr2 => "hctr2",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Sectors that share a call: their IVs are made together, and CBC encrypts
/// them side by side.
pub(crate) const GROUP: usize = 64;

/// The same for a mode and a cipher that gain by more of them.
pub(crate) const MOST_SECTORS: usize = 512;

/// Blocks encrypted in one call: these and their tweaks stay in the L1 cache.
const BATCH: usize = 128;

/// The same in bytes, where blocks may be short and lanes many.
const BATCH_BYTES: usize = 4096;

/// Bytes of the smallest sector: clearing room for more would take it longer
/// than its own.
const SMALL: usize = 512;

/// A keyed mode whose IVs have `N` bytes, most often a block's.
///
/// `data` are sectors of equal length, at least 512 bytes and at most 4096, one for each of at most
/// [`most_sectors`](Self::most_sectors) `ivs`. The content of `ivs` is unspecified afterwards.
pub(crate) trait BlockMode<const N: usize>: Send + Sync {
    /// Sectors in a call, from [`GROUP`] to [`MOST_SECTORS`].
    fn most_sectors(&self) -> usize {
        GROUP
    }

    /// Encrypts every sector under its IV.
    fn encrypt(&self, ivs: &mut [[u8; N]], data: &mut [u8]);

    /// Decrypts every sector under its IV.
    fn decrypt(&self, ivs: &mut [[u8; N]], data: &mut [u8]);

    /// Replaces every IV by the ciphertext of one block of zeros under it.
    fn encrypt_zeros(&self, ivs: &mut [[u8; N]]);
}

/// The blocks of whole sectors.
fn blocks<const N: usize>(data: &mut [u8]) -> &mut [[u8; N]] {
    let (blocks, []) = data.as_chunks_mut() else {
        unreachable!("sectors are whole blocks");
    };
    blocks
}

fn add<const N: usize>(block: &mut [u8; N], other: &[u8; N]) {
    for (byte, other) in block.iter_mut().zip(other) {
        *byte ^= other;
    }
}

fn add_all<const N: usize>(blocks: &mut [[u8; N]], others: &[[u8; N]]) {
    for (block, other) in blocks.iter_mut().zip(others) {
        add(block, other);
    }
}

/// Multiplies by x modulo x¹²⁸ + x⁷ + x² + x + 1, without a branch.
pub(crate) const fn times_x(element: u128) -> u128 {
    (element << 1) ^ (((element as i128 >> 127) as u128) & 0x87)
}
