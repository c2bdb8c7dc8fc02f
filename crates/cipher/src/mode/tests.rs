//! Modes and IV generators over ciphers made for this.

use crate::assembly::OneKey;
use crate::block::{AnyKeying, BlockCipher};
use crate::reference::sectors::Pass;
use crate::reference::{Direction, ReferenceCipher, ReferenceMode};
use crate::{Backend, EssivHash, IvGenerator, IvSector, Mode, SectorLayout, SectorSize};

/// Odd, so that it has an inverse modulo 2⁶⁴.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// One multiplication under a key of 8 bytes or a longer one's first 8: enough
/// to tell every wrong order of steps from the right one, and no cipher.
struct Toy(u64);

impl Toy {
    fn of(key: &[u8]) -> Self {
        Self(u64::from_le_bytes(key[..8].try_into().unwrap()))
    }

    fn forwards(&self, block: [u8; 8]) -> [u8; 8] {
        let mixed = (u64::from_le_bytes(block) ^ self.0).wrapping_mul(FACTOR);
        (mixed.rotate_left(29) ^ self.0).to_be_bytes()
    }

    fn backwards(&self, block: [u8; 8]) -> [u8; 8] {
        // Newton's iteration doubles the correct bits of the inverse, from 3.
        let inverse = (0..5).fold(FACTOR, |x, _| {
            x.wrapping_mul(2_u64.wrapping_sub(x.wrapping_mul(FACTOR)))
        });
        let mixed = (u64::from_be_bytes(block) ^ self.0).rotate_right(29);
        (mixed.wrapping_mul(inverse) ^ self.0).to_le_bytes()
    }
}

impl BlockCipher<8> for Toy {
    fn encrypt_blocks(&self, blocks: &mut [[u8; 8]]) {
        for block in blocks {
            *block = self.forwards(*block);
        }
    }

    fn decrypt_blocks(&self, blocks: &mut [[u8; 8]]) {
        for block in blocks {
            *block = self.backwards(*block);
        }
    }
}

impl ReferenceCipher<8> for Toy {
    fn new(key: &[u8]) -> Self {
        Self::of(key)
    }

    fn encrypt(&self, plain: [u8; 8]) -> [u8; 8] {
        self.forwards(plain)
    }

    fn decrypt(&self, cipher: [u8; 8]) -> [u8; 8] {
        self.backwards(cipher)
    }
}

#[test]
fn sectors_of_8_byte_blocks_equal_the_reference() {
    let keying = AnyKeying::Narrow(Box::new(|key| Box::new(Toy::of(key))));
    for mode in [Mode::Cbc, Mode::Ctr, Mode::Ecb] {
        equals_the_reference(&keying, ReferenceMode::narrow::<Toy>(), mode);
    }
}

/// Checks `mode` over a cipher that takes the first bytes of a key, with every IV
/// generator that it has, in every layout of sectors.
pub(crate) fn equals_the_reference(keying: &AnyKeying, reference: ReferenceMode, mode: Mode) {
    use IvGenerator::{Benbi, Eboiv, Essiv, Lmk, Null, Plain, Plain64, Plain64Be, Tcw};
    let key: Vec<u8> = (7..39).collect();
    let block_bytes = match keying {
        AnyKeying::Wide(_) => 16,
        AnyKeying::Narrow(_) => 8,
    };
    let seeds: Vec<u8> = (100..).take(block_bytes + 16).collect();
    let ivs: &[IvGenerator] = match mode {
        Mode::Cbc => &[Essiv(EssivHash::Sha256), Eboiv, Lmk, Tcw],
        Mode::Xts | Mode::Lrw => &[Essiv(EssivHash::Sha256), Eboiv],
        Mode::Ctr | Mode::Ecb => &[Essiv(EssivHash::Sha256)],
        Mode::Adiantum(_) | Mode::Hctr2 => &[],
    };
    for &iv in [Null, Plain, Plain64, Plain64Be, Benbi].iter().chain(ivs) {
        let (extra, sizes) = match iv {
            Lmk | Tcw => (&*seeds, &SectorSize::ALL[..1]),
            _ => (&[][..], &SectorSize::ALL[..]),
        };
        for (size, large_iv) in sizes
            .iter()
            .flat_map(|size| [(*size, true), (*size, false)])
        {
            let layout = SectorLayout { size, large_iv };
            for first in [0, (1 << 32) - 3, u64::MAX - 1] {
                let one = OneKey {
                    mode,
                    iv: Some(iv),
                    key: &key,
                    extra,
                    layout,
                    backend: Backend::Portable,
                };
                let cipher = one.sectors_of(keying);
                let pass = Pass {
                    cipher: reference,
                    mode,
                    iv: Some(iv),
                    key: &key,
                    extra,
                };
                let first = IvSector::new(first);
                let plain: Vec<u8> = (0..67 * size.bytes())
                    .map(|i| i.wrapping_mul(i) as u8)
                    .collect();
                let mut expected = plain.clone();
                let sectors = expected.chunks_exact_mut(size.bytes());
                for (nth, sector) in sectors.enumerate() {
                    let n = first.advance(nth as u64, layout).get();
                    pass.crypt(Direction::Encrypt, n, sector);
                }
                let mut data = plain.clone();
                cipher.encrypt(first, &mut data);
                assert!(data == expected, "{mode} {iv} {layout:?} {first:?}");
                cipher.decrypt(first, &mut data);
                assert!(data == plain, "{mode} {iv} {layout:?} {first:?}");
            }
        }
    }
}
