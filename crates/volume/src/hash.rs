//! [`Hash`]: the hashes that headers name, for key derivation, for the
//! anti-forensic splitter and for passphrases.

use crate::Damage;
use blake2::{Blake2b512, Blake2s256};
use hmac::{EagerHash, Hmac, KeyInit, SimpleHmac};
use ripemd::Ripemd160;
use sha1::Sha1;
use sha2::digest::common::BlockSizeUser;
use sha2::digest::{Digest, FixedOutput, Output, Update};
use sha2::{Sha224, Sha256, Sha384, Sha512};
use sha3::{Sha3_224, Sha3_256, Sha3_384, Sha3_512};
use skein::Skein512_512;
use sm3::Sm3;
use std::fmt;
use std::ops::ControlFlow;
use streebog::{Streebog256, Streebog512};
use whirlpool::Whirlpool;
use zeroize::{Zeroize, Zeroizing};

named! {
    /// A hash by cryptsetup's name.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Hash {
        /// FIPS 180-4, 160 bits: `sha1`.
        Sha1 = "sha1",
        /// FIPS 180-4, 224 bits: `sha224`.
        Sha224 = "sha224",
        /// FIPS 180-4, 256 bits: `sha256`.
        Sha256 = "sha256",
        /// FIPS 180-4, 384 bits: `sha384`.
        Sha384 = "sha384",
        /// FIPS 180-4, 512 bits: `sha512`.
        Sha512 = "sha512",
        /// FIPS 202, 224 bits: `sha3-224`.
        Sha3_224 = "sha3-224",
        /// FIPS 202, 256 bits: `sha3-256`.
        Sha3_256 = "sha3-256",
        /// FIPS 202, 384 bits: `sha3-384`.
        Sha3_384 = "sha3-384",
        /// FIPS 202, 512 bits: `sha3-512`.
        Sha3_512 = "sha3-512",
        /// ISO/IEC 10118-3, 160 bits: `ripemd160`.
        Ripemd160 = "ripemd160",
        /// ISO/IEC 10118-3, 512 bits: `whirlpool`.
        Whirlpool = "whirlpool",
        /// RFC 7693, 512 bits: `blake2b-512`.
        Blake2b512 = "blake2b-512",
        /// RFC 7693, 256 bits: `blake2s-256`.
        Blake2s256 = "blake2s-256",
        /// Skein 1.3 with 512 bits of state, 512 bits: `skein-512`, BestCrypt's.
        Skein512 = "skein-512",
        /// GB/T 32905-2016, 256 bits: `sm3`.
        Sm3 = "sm3",
        /// GOST R 34.11-2012, RFC 6986, 256 bits: `stribog256`.
        Streebog256 = "stribog256",
        /// GOST R 34.11-2012, RFC 6986, 512 bits: `stribog512`.
        Streebog512 = "stribog512",
    }
}

/// Calls `$call` for the type of the hash `$hash`. It calls `$simple` for a hash that holds back
/// its last block, for which the crates' other HMAC does not work.
macro_rules! dispatch {
    ($hash:expr, $call:ident, $simple:ident, ($($argument:expr),*)) => {
        match $hash {
            Hash::Sha1 => $call::<Sha1>($($argument),*),
            Hash::Sha224 => $call::<Sha224>($($argument),*),
            Hash::Sha256 => $call::<Sha256>($($argument),*),
            Hash::Sha384 => $call::<Sha384>($($argument),*),
            Hash::Sha512 => $call::<Sha512>($($argument),*),
            Hash::Sha3_224 => $simple::<Sha3_224>($($argument),*),
            Hash::Sha3_256 => $simple::<Sha3_256>($($argument),*),
            Hash::Sha3_384 => $simple::<Sha3_384>($($argument),*),
            Hash::Sha3_512 => $simple::<Sha3_512>($($argument),*),
            Hash::Ripemd160 => $call::<Ripemd160>($($argument),*),
            Hash::Whirlpool => $call::<Whirlpool>($($argument),*),
            Hash::Blake2b512 => $simple::<Blake2b512>($($argument),*),
            Hash::Blake2s256 => $simple::<Blake2s256>($($argument),*),
            Hash::Skein512 => $simple::<Skein512_512>($($argument),*),
            Hash::Sm3 => $call::<Sm3>($($argument),*),
            Hash::Streebog256 => $call::<Streebog256>($($argument),*),
            Hash::Streebog512 => $call::<Streebog512>($($argument),*),
        }
    };
}

impl Hash {
    /// The hash that `field` of a header names: in lower case, or as old versions
    /// of cryptsetup wrote what the user typed.
    pub(crate) fn in_header(field: &str, name: &str) -> Result<Self, Damage> {
        let mut all = Self::ALL.into_iter();
        all.find(|hash| hash.name().eq_ignore_ascii_case(name))
            .ok_or_else(|| Damage::unknown(field, name))
    }

    /// Length of a digest, bytes.
    pub const fn digest_bytes(self) -> usize {
        match self {
            Self::Sha1 | Self::Ripemd160 => 20,
            Self::Sha224 | Self::Sha3_224 => 28,
            Self::Sha256 | Self::Sha3_256 | Self::Blake2s256 | Self::Sm3 | Self::Streebog256 => 32,
            Self::Sha384 | Self::Sha3_384 => 48,
            Self::Sha512
            | Self::Sha3_512
            | Self::Whirlpool
            | Self::Blake2b512
            | Self::Skein512
            | Self::Streebog512 => 64,
        }
    }

    /// About how long an iteration of PBKDF2 takes on one core of a machine of 2020, nanoseconds.
    pub(crate) const fn iteration_ns(self) -> u64 {
        match self {
            Self::Sha1 | Self::Sha224 | Self::Sha256 => 200,
            Self::Blake2s256 | Self::Ripemd160 | Self::Sm3 => 400,
            Self::Sha384 | Self::Sha512 | Self::Blake2b512 => 500,
            Self::Sha3_224 | Self::Sha3_256 | Self::Sha3_384 | Self::Sha3_512 => 1100,
            Self::Whirlpool | Self::Skein512 => 1500,
            Self::Streebog256 | Self::Streebog512 => 3300,
        }
    }

    /// The digest of `parts`, one after the other.
    pub fn digest(self, parts: &[&[u8]]) -> Zeroizing<Vec<u8>> {
        let mut digest = Zeroizing::new(vec![0; self.digest_bytes()]);
        self.digest_into(parts, &mut digest);
        digest
    }

    /// Writes the digest of `parts`, one after the other, to `out`, which is
    /// as long as a digest.
    pub(crate) fn digest_into(self, parts: &[&[u8]], out: &mut [u8]) {
        dispatch!(self, digest_of, digest_of, (parts, out));
    }

    /// PBKDF2 with HMAC (RFC 8018, section 5.2) of this hash.
    pub(crate) fn pbkdf2(self, passphrase: &[u8], salt: &[u8], iterations: u32, out: &mut [u8]) {
        for (index, part) in (1..).zip(out.chunks_mut(self.digest_bytes())) {
            let whole = self.pbkdf2_block(passphrase, salt, iterations, index, part, &|_| {
                ControlFlow::Continue(())
            });
            debug_assert!(whole.is_continue());
        }
    }

    /// Computes one block of PBKDF2's output: the one at `index`, counted from 1, each as long as a
    /// digest. The blocks are independent, so several cores can make a long key. `out` takes the
    /// start of the block.
    ///
    /// `done` is called with the number of iterations since its last call, and may end the work. In
    /// that case the content of `out` is not usable.
    pub(crate) fn pbkdf2_block(
        self,
        passphrase: &[u8],
        salt: &[u8],
        iterations: u32,
        index: u32,
        out: &mut [u8],
        done: &dyn Fn(u32) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        dispatch!(
            self,
            block_of,
            block_of_simple,
            (passphrase, salt, iterations, index, out, done)
        )
    }
}

/// Iterations between two looks at whether to go on: a few milliseconds.
const ITERATIONS_AT_ONCE: u32 = 4096;

fn block_of<D: EagerHash>(
    passphrase: &[u8],
    salt: &[u8],
    iterations: u32,
    index: u32,
    out: &mut [u8],
    done: &dyn Fn(u32) -> ControlFlow<()>,
) -> ControlFlow<()> {
    iterated::<Hmac<D>>(passphrase, salt, iterations, index, out, done)
}

fn block_of_simple<D>(
    passphrase: &[u8],
    salt: &[u8],
    iterations: u32,
    index: u32,
    out: &mut [u8],
    done: &dyn Fn(u32) -> ControlFlow<()>,
) -> ControlFlow<()>
where
    D: Digest + BlockSizeUser + Clone,
{
    iterated::<SimpleHmac<D>>(passphrase, salt, iterations, index, out, done)
}

/// RFC 8018's function F.
fn iterated<P: KeyInit + Update + FixedOutput + Clone>(
    passphrase: &[u8],
    salt: &[u8],
    iterations: u32,
    index: u32,
    out: &mut [u8],
    done: &dyn Fn(u32) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let keyed = <P as KeyInit>::new_from_slice(passphrase).expect("HMAC takes keys of any length");
    let mut first = keyed.clone();
    first.update(salt);
    first.update(&index.to_be_bytes());
    let mut link = first.finalize_fixed();
    out.copy_from_slice(&link[..out.len()]);
    let mut left = iterations - 1;
    while left > 0 {
        let now = left.min(ITERATIONS_AT_ONCE);
        for _ in 0..now {
            let mut next = keyed.clone();
            next.update(&link);
            link = next.finalize_fixed();
            for (sum, byte) in out.iter_mut().zip(&link) {
                *sum ^= byte;
            }
        }
        left -= now;
        done(now)?;
    }
    link.zeroize();
    done(1)
}

fn digest_of<D: Digest>(parts: &[&[u8]], out: &mut [u8]) {
    let mut state = D::new();
    for part in parts {
        state.update(part);
    }
    let mut digest: Output<D> = state.finalize();
    out.copy_from_slice(&digest);
    digest.zeroize();
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
