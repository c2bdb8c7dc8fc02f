//! The weaknesses of disk ciphers, however well they are built: data for code that warns, refuses
//! or advises.

use std::fmt;

use crate::{Algorithm, CipherSpec, IvGenerator, Mode};

/// Why a cipher, a mode or an IV generator should not protect new data.
///
/// `Display` is a clause about the cipher, such as "equal blocks of data show
/// as equal blocks on the disk".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Weakness {
    /// `cipher_null`.
    NoEncryption,
    /// Every key can be tried: DES.
    ShortKey {
        /// Bits of the key that count.
        bits: u32,
    },
    /// Blocks of 64 bits: two of ciphertext are likely to be equal before one
    /// key has encrypted this much, and tell the difference of two plaintexts.
    SmallBlock {
        /// In bytes, 2³² blocks for each key.
        limit: u64,
    },
    /// ECB.
    EqualBlocksShow,
    /// `null`: no sector differs from the next.
    EqualSectorsShow,
    /// CTR: who has a sector from before and from after a change has the
    /// difference of the plaintexts.
    ChangesShow,
    /// CBC with IVs that can be known beforehand: a file can be made whose
    /// presence shows on the disk (watermarking).
    PredictableIvs,
    /// `plain`: numbers of 32 bits.
    RepeatedIvs {
        /// In bytes of the volume, where it counts 512-byte units.
        limit: u64,
    },
    /// LRW: the tweak key follows from ciphertext of itself, so it must never
    /// be stored inside its own volume. XTS was made for this reason.
    SelfEncryption,
    /// `tcw`: whitening by a CRC, which is linear.
    LinearWhitening,
    /// `lmk`: IVs by MD5, made for loop-AES.
    OldHash,
}

/// 2³² blocks of 8 bytes.
const SMALL_BLOCK_LIMIT: u64 = 8 << 32;

/// 2³² units of 512 bytes.
const PLAIN_LIMIT: u64 = 512 << 32;

impl CipherSpec {
    /// The weaknesses of this cipher, the worst first. Most ciphers have none.
    ///
    /// A cascade has a weakness of its ciphers if all of them have it.
    ///
    /// Source: docs/CIPHERS.md gives the reasons and where they come from.
    pub fn weaknesses(&self) -> Vec<Weakness> {
        let all = |weak: fn(&Algorithm) -> bool| self.algorithms().iter().all(weak);
        let mut weaknesses = Vec::new();
        if all(|cipher| *cipher == Algorithm::Null) {
            return vec![Weakness::NoEncryption];
        }
        if !self.is_cascade() && all(|cipher| *cipher == Algorithm::Des) {
            weaknesses.push(Weakness::ShortKey { bits: 56 });
        }
        match (self.mode(), self.iv()) {
            (Mode::Ecb, _) => weaknesses.push(Weakness::EqualBlocksShow),
            (Mode::Ctr, _) => weaknesses.push(Weakness::ChangesShow),
            (_, Some(IvGenerator::Null)) => weaknesses.push(Weakness::EqualSectorsShow),
            (Mode::Cbc, Some(iv)) if iv.is_public() => weaknesses.push(Weakness::PredictableIvs),
            _ => {}
        }
        if all(|cipher| cipher.block_bytes() == 8) {
            let limit = SMALL_BLOCK_LIMIT * self.key_count() as u64;
            weaknesses.push(Weakness::SmallBlock { limit });
        }
        match (self.mode(), self.iv()) {
            (Mode::Ecb, _) => {}
            (_, Some(IvGenerator::Plain)) => {
                weaknesses.push(Weakness::RepeatedIvs { limit: PLAIN_LIMIT });
            }
            (_, Some(IvGenerator::Tcw)) => weaknesses.push(Weakness::LinearWhitening),
            (_, Some(IvGenerator::Lmk)) => weaknesses.push(Weakness::OldHash),
            _ => {}
        }
        if self.mode() == Mode::Lrw {
            weaknesses.push(Weakness::SelfEncryption);
        }
        weaknesses
    }
}

impl fmt::Display for Weakness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoEncryption => f.write_str("nothing is encrypted"),
            Self::ShortKey { bits } => {
                write!(
                    f,
                    "all keys of {bits} bits can be tried: in 1998 that took 56 hours"
                )
            }
            Self::SmallBlock { limit } => write!(
                f,
                "blocks of 64 bits repeat by chance within {} GiB and reveal what plaintexts have \
                 in common",
                limit >> 30
            ),
            Self::EqualBlocksShow => {
                f.write_str("equal blocks of data show as equal blocks on the disk")
            }
            Self::EqualSectorsShow => {
                f.write_str("equal sectors of data show as equal sectors on the disk")
            }
            Self::ChangesShow => f.write_str(
                "an observer of a sector before and after a rewrite learns the difference of the \
                 data",
            ),
            Self::PredictableIvs => f.write_str(
                "IVs are predictable, so a crafted file can be recognised on the disk \
                 (watermarking)",
            ),
            Self::RepeatedIvs { limit } => write!(
                f,
                "IVs repeat after {} TiB, so equal sectors show",
                limit >> 40
            ),
            Self::SelfEncryption => f.write_str(
                "the tweak key can be computed if it is ever stored inside the volume itself",
            ),
            Self::LinearWhitening => {
                f.write_str("the whitening is linear and hides little; made for old TrueCrypt")
            }
            Self::OldHash => f.write_str("IVs depend on MD5; made for loop-AES"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Weakness::*;
    use super::*;

    #[test]
    fn each_specification_has_its_own() {
        let small = SmallBlock { limit: 32 << 30 };
        let plain = RepeatedIvs { limit: 2 << 40 };
        for (notation, weaknesses) in [
            ("aes-xts-plain64", &[][..]),
            ("aes-xts-plain", &[plain]),
            ("aes-xts-null", &[EqualSectorsShow]),
            ("aes-cbc-essiv:sha256", &[]),
            ("aes-cbc-eboiv", &[]),
            ("aes-cbc-elephant", &[]),
            ("aes-cbc-plain64", &[PredictableIvs]),
            ("aes-cbc-plain64be", &[PredictableIvs]),
            ("aes-cbc-benbi", &[PredictableIvs]),
            ("aes-cbc-plain", &[PredictableIvs, plain]),
            ("aes-cbc-null", &[EqualSectorsShow]),
            ("aes-cbc-tcw", &[LinearWhitening]),
            ("aes:64-cbc-lmk", &[OldHash]),
            ("aes-lrw-benbi", &[SelfEncryption]),
            ("aes-ctr-plain64", &[ChangesShow]),
            ("aes-ecb", &[EqualBlocksShow]),
            ("aes-ecb-plain", &[EqualBlocksShow]),
            ("cast5-cbc-essiv:md5", &[small]),
            ("blowfish:2-cbc-eboiv", &[SmallBlock { limit: 64 << 30 }]),
            (
                "des-cbc-plain",
                &[ShortKey { bits: 56 }, PredictableIvs, small, plain],
            ),
            ("des3_ede-cbc-plain64", &[PredictableIvs, small]),
            ("des-ecb", &[ShortKey { bits: 56 }, EqualBlocksShow, small]),
            ("aes-twofish-serpent", &[]),
            ("xchacha12,aes-adiantum-plain64", &[]),
            ("aes-hctr2-plain", &[plain]),
            ("cipher_null-ecb", &[NoEncryption]),
            ("blowfish-aes-cbc-tcw", &[LinearWhitening]),
            ("blowfish-cast5-cbc-tcw", &[small, LinearWhitening]),
        ] {
            let spec: CipherSpec = notation.parse().unwrap();
            assert_eq!(spec.weaknesses(), weaknesses, "{notation}");
        }
    }

    #[test]
    fn sentences_say_their_numbers() {
        let said = SmallBlock { limit: 32 << 30 }.to_string();
        assert!(said.contains("within 32 GiB"), "{said}");
        let said = RepeatedIvs { limit: 2 << 40 }.to_string();
        assert!(said.contains("after 2 TiB"), "{said}");
    }
}
