//! DES and Triple DES (FIPS 46-3), bit-sliced and constant-time.
//!
//! Bit i of many blocks stands in one register: see [`planes`]. A pass over all
//! lanes of the registers costs the same however few blocks are asked for.
//!
//! DES keys can be found by trying them all, and 64-bit blocks repeat after 2³² of them. Both
//! ciphers are here to read old data, not to protect new data.

pub(crate) mod gates;
pub(crate) mod planes;
pub(crate) mod sbox;

use zeroize::Zeroize;

use self::planes::Planes;
use super::BlockCipher;
use super::registers::Registers;
use crate::mode::cbc;
use crate::work::Work;

/// One block of DES.
pub(crate) type Block = [u8; 8];

/// Rounds of one DES.
pub(crate) const ROUNDS: usize = 16;

/// The 48 bits that a round adds, each as a word of equal bits.
pub(crate) type RoundKey = [u64; 48];

/// The rounds of DES, or of DES three times for Triple DES.
#[derive(Clone, Copy)]
pub(crate) struct Rounds<'a> {
    /// Those of encryption, in its order.
    pub(crate) keys: &'a [RoundKey],
    decrypt: bool,
}

impl<'a> Rounds<'a> {
    pub(crate) fn encryption(keys: &'a [RoundKey]) -> Self {
        Self {
            keys,
            decrypt: false,
        }
    }

    pub(crate) fn decryption(keys: &'a [RoundKey]) -> Self {
        Self {
            keys,
            decrypt: true,
        }
    }

    /// That of the `nth` round.
    #[inline(always)]
    fn key(self, nth: usize) -> &'a RoundKey {
        if self.decrypt {
            &self.keys[self.keys.len() - 1 - nth]
        } else {
            &self.keys[nth]
        }
    }
}

/// A CPU that encrypts and decrypts.
pub(crate) trait Cpu: Copy + Send + Sync + 'static {
    /// Does these rounds with every block in place.
    fn crypt(self, rounds: Rounds<'_>, blocks: &mut [Block]);

    /// Does [`BlockCipher::encrypt_cbc`] by the rounds of encryption.
    fn encrypt_cbc(self, rounds: Rounds<'_>, ivs: &[Block], sector_bytes: usize, data: &mut [u8]) {
        cbc::encrypt(ivs, sector_bytes, data, &|blocks| {
            self.crypt(rounds, blocks)
        });
    }

    /// Does [`BlockCipher::decrypt_cbc`] by the rounds of decryption.
    fn decrypt_cbc(self, rounds: Rounds<'_>, ivs: &[Block], sector_bytes: usize, data: &mut [u8]) {
        cbc::decrypt(ivs, sector_bytes, data, &|blocks| {
            self.crypt(rounds, blocks)
        });
    }

    /// A cipher that takes less time for few blocks, if there is one.
    fn few(self, _keys: &[RoundKey]) -> Option<super::Keyed<8>> {
        None
    }
}

/// The most blocks that [`Cpu::few`] takes less time for than a pass over 512 lanes. The measured
/// limit is 25.
const FEW: usize = 24;

/// A key schedule, and the CPU that works by it.
struct Keyed<C, const KEYS: usize> {
    cpu: C,
    round_keys: Box<[RoundKey; KEYS]>,
    few: Option<super::Keyed<8>>,
}

impl<C: Cpu, const KEYS: usize> Keyed<C, KEYS> {
    fn new(cpu: C, round_keys: Box<[RoundKey; KEYS]>) -> Self {
        let few = cpu.few(&round_keys[..]);
        Self {
            cpu,
            round_keys,
            few,
        }
    }

    fn few(&self, blocks: usize) -> Option<&dyn BlockCipher<8>> {
        self.few.as_deref().filter(|_| blocks <= FEW)
    }

    fn encrypt(&self, blocks: &mut [Block]) {
        match self.few(blocks.len()) {
            Some(few) => few.encrypt_blocks(blocks),
            None => self
                .cpu
                .crypt(Rounds::encryption(&self.round_keys[..]), blocks),
        }
    }

    fn decrypt(&self, blocks: &mut [Block]) {
        match self.few(blocks.len()) {
            Some(few) => few.decrypt_blocks(blocks),
            None => self
                .cpu
                .crypt(Rounds::decryption(&self.round_keys[..]), blocks),
        }
    }

    fn decrypt_cbc(&self, ivs: &[Block], sector_bytes: usize, data: &mut [u8]) {
        match self.few(data.len() / size_of::<Block>()) {
            Some(few) => few.decrypt_cbc(ivs, sector_bytes, data),
            None => {
                let rounds = Rounds::decryption(&self.round_keys[..]);
                self.cpu.decrypt_cbc(rounds, ivs, sector_bytes, data);
            }
        }
    }

    fn encrypt_cbc(&self, ivs: &[Block], sector_bytes: usize, data: &mut [u8]) {
        match self.few(ivs.len()) {
            Some(few) => few.encrypt_cbc(ivs, sector_bytes, data),
            None => {
                let rounds = Rounds::encryption(&self.round_keys[..]);
                self.cpu.encrypt_cbc(rounds, ivs, sector_bytes, data);
            }
        }
    }
}

impl<C, const KEYS: usize> Drop for Keyed<C, KEYS> {
    fn drop(&mut self) {
        self.round_keys.as_flattened_mut().zeroize();
    }
}

/// By passes over the bits of registers, and nothing else.
#[derive(Clone, Copy)]
pub(crate) struct ByPasses<R>(pub(crate) R);

impl<R: Registers> Cpu for ByPasses<R> {
    fn crypt(self, rounds: Rounds<'_>, blocks: &mut [Block]) {
        planes::passes(64 * planes::row::<R>(), blocks, |blocks| {
            self.0.enter(Pass { rounds, blocks });
        });
    }
}

/// As many blocks as there are bits in a register.
pub(crate) struct Pass<'a> {
    pub(crate) rounds: Rounds<'a>,
    pub(crate) blocks: &'a mut [Block],
}

impl<C: Planes> Work<C> for Pass<'_> {
    #[inline(always)]
    fn run(self, cpu: C) {
        planes::pass(cpu, self.rounds, self.blocks);
    }
}

/// DES with a key of 64 bits, of which it uses 56.
pub(crate) struct Des<C>(Keyed<C, ROUNDS>);

impl<C: Cpu> Des<C> {
    /// The cipher under a key of 8 bytes, whose parity bits are ignored.
    pub(crate) fn new(key: &[u8], cpu: C) -> Self {
        let mut round_keys = Box::new([[0; 48]; ROUNDS]);
        schedule(key, &mut round_keys[..]);
        Self(Keyed::new(cpu, round_keys))
    }
}

impl<C: Cpu> BlockCipher<8> for Des<C> {
    fn side_by_side(&self) -> usize {
        512
    }

    fn encrypt_blocks(&self, blocks: &mut [Block]) {
        self.0.encrypt(blocks);
    }

    fn decrypt_blocks(&self, blocks: &mut [Block]) {
        self.0.decrypt(blocks);
    }

    fn encrypt_cbc(&self, ivs: &[Block], sector_bytes: usize, data: &mut [u8]) {
        self.0.encrypt_cbc(ivs, sector_bytes, data);
    }

    fn decrypt_cbc(&self, ivs: &[Block], sector_bytes: usize, data: &mut [u8]) {
        self.0.decrypt_cbc(ivs, sector_bytes, data);
    }
}

/// Triple DES with two or three keys: encryption, decryption and encryption.
pub(crate) struct TripleDes<C>(Keyed<C, { 3 * ROUNDS }>);

impl<C: Cpu> TripleDes<C> {
    /// The cipher under a key of 24 bytes, or of 16 where the third key of DES
    /// is the first once more; parity bits are ignored.
    pub(crate) fn new(key: &[u8], cpu: C) -> Self {
        let mut round_keys = Box::new([[0; 48]; 3 * ROUNDS]);
        let third = if key.len() == 16 { 0 } else { 16 };
        for (des, first_byte) in [0, 8, third].into_iter().enumerate() {
            let rounds = &mut round_keys[des * ROUNDS..][..ROUNDS];
            schedule(&key[first_byte..][..8], rounds);
            if des == 1 {
                rounds.reverse();
            }
        }
        Self(Keyed::new(cpu, round_keys))
    }
}

impl<C: Cpu> BlockCipher<8> for TripleDes<C> {
    fn side_by_side(&self) -> usize {
        512
    }

    fn encrypt_blocks(&self, blocks: &mut [Block]) {
        self.0.encrypt(blocks);
    }

    fn decrypt_blocks(&self, blocks: &mut [Block]) {
        self.0.decrypt(blocks);
    }

    fn encrypt_cbc(&self, ivs: &[Block], sector_bytes: usize, data: &mut [u8]) {
        self.0.encrypt_cbc(ivs, sector_bytes, data);
    }

    fn decrypt_cbc(&self, ivs: &[Block], sector_bytes: usize, data: &mut [u8]) {
        self.0.decrypt_cbc(ivs, sector_bytes, data);
    }
}

/// The key schedule of FIPS 46-3, appendix 1, as places in the key: nothing is
/// loaded or decided by its bits.
fn schedule(key: &[u8], round_keys: &mut [RoundKey]) {
    /// Left shifts up to and including each round.
    const SHIFTS: [usize; ROUNDS] = [1, 2, 4, 6, 8, 10, 12, 14, 15, 17, 19, 21, 23, 25, 27, 28];
    #[rustfmt::skip]
    const PC1: [usize; 56] = [
        57, 49, 41, 33, 25, 17, 9, 1, 58, 50, 42, 34, 26, 18,
        10, 2, 59, 51, 43, 35, 27, 19, 11, 3, 60, 52, 44, 36,
        63, 55, 47, 39, 31, 23, 15, 7, 62, 54, 46, 38, 30, 22,
        14, 6, 61, 53, 45, 37, 29, 21, 13, 5, 28, 20, 12, 4,
    ];
    #[rustfmt::skip]
    const PC2: [usize; 48] = [
        14, 17, 11, 24, 1, 5, 3, 28, 15, 6, 21, 10,
        23, 19, 12, 4, 26, 8, 16, 7, 27, 20, 13, 2,
        41, 52, 31, 37, 47, 55, 30, 40, 51, 45, 33, 48,
        44, 49, 39, 56, 34, 53, 46, 42, 50, 36, 29, 32,
    ];
    for (round_key, shifts) in round_keys.iter_mut().zip(SHIFTS) {
        for (word, place) in round_key.iter_mut().zip(PC2) {
            let (half, place) = ((place - 1) / 28, (place - 1) % 28);
            let bit = PC1[28 * half + (place + shifts) % 28] - 1;
            *word = u64::from(key[bit / 8] >> (7 - bit % 8) & 1).wrapping_neg();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ByPasses, Cpu, Des, TripleDes};
    use crate::block::registers::AnyCpu;
    use crate::block::tests;
    use crate::reference;

    fn des<C: Cpu>(cpu: C) {
        let keyed = |key: &[u8]| Des::new(key, cpu);
        tests::known_answers::<reference::Des, _, 8>("des", keyed);
        tests::equals_reference::<reference::Des, _, 8>(&[8], keyed);
        tests::agrees_with::<des::Des, _, 8>(&[8], keyed);
    }

    fn triple_des<C: Cpu>(cpu: C) {
        let keyed = |key: &[u8]| TripleDes::new(key, cpu);
        tests::known_answers::<reference::TripleDes, _, 8>("des3_ede", keyed);
        tests::equals_reference::<reference::TripleDes, _, 8>(&[16, 24], keyed);
        tests::agrees_with::<des::TdesEde2, _, 8>(&[16], keyed);
        tests::agrees_with::<des::TdesEde3, _, 8>(&[24], keyed);
    }

    #[test]
    fn portable_des() {
        des(ByPasses(AnyCpu));
    }

    #[test]
    fn portable_triple_des() {
        triple_des(ByPasses(AnyCpu));
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn avx2() {
        let Some(cpu) = crate::arch::Avx2::detect() else {
            println!("skipped: this CPU has no AVX2");
            return;
        };
        des(ByPasses(cpu));
        triple_des(ByPasses(cpu));
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn avx512() {
        let Some(cpu) = crate::arch::Avx512::detect() else {
            println!("skipped: this CPU has no AVX-512");
            return;
        };
        des(cpu);
        triple_des(cpu);
    }

    #[cfg(target_arch = "aarch64")]
    #[test]
    fn neon() {
        let Some(cpu) = crate::arch::Neon::detect() else {
            println!("skipped: this CPU has no NEON");
            return;
        };
        des(ByPasses(cpu));
        triple_des(ByPasses(cpu));
    }
}
