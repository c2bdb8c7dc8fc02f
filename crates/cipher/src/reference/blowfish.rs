//! Blowfish as in Schneier, "Description of a New Variable-Length Key, 64-Bit
//! Block Cipher (Blowfish)" (1993).

use super::ReferenceCipher;
use crate::block::blowfish::pi;

/// Blowfish with a key of 32 to 448 bits.
pub struct Blowfish {
    p: [u32; 18],
    s: [[u32; 256]; 4],
}

impl ReferenceCipher<8> for Blowfish {
    /// "Generating the Subkeys".
    fn new(key: &[u8]) -> Self {
        let mut this = Self { p: pi::P, s: pi::S };
        let mut key = key.iter().cycle();
        for p in &mut this.p {
            let bytes = [(); 4].map(|()| *key.next().expect("a key is not empty"));
            *p ^= u32::from_be_bytes(bytes);
        }
        let mut block = (0, 0);
        for i in 0..9 {
            block = this.crypt(block, &this.p);
            (this.p[2 * i], this.p[2 * i + 1]) = block;
        }
        for sbox in 0..4 {
            for i in 0..128 {
                block = this.crypt(block, &this.p);
                (this.s[sbox][2 * i], this.s[sbox][2 * i + 1]) = block;
            }
        }
        this
    }

    fn encrypt(&self, plain: [u8; 8]) -> [u8; 8] {
        bytes(self.crypt(words(plain), &self.p))
    }

    fn decrypt(&self, cipher: [u8; 8]) -> [u8; 8] {
        let mut p = self.p;
        p.reverse();
        bytes(self.crypt(words(cipher), &p))
    }
}

/// Blowfish as TrueCrypt applied it: the words of a block are little endian,
/// those of the key are not.
pub struct BlowfishLittleEndian(Blowfish);

impl ReferenceCipher<8> for BlowfishLittleEndian {
    fn new(key: &[u8]) -> Self {
        Self(Blowfish::new(key))
    }

    fn encrypt(&self, plain: [u8; 8]) -> [u8; 8] {
        reverse_words(self.0.encrypt(reverse_words(plain)))
    }

    fn decrypt(&self, cipher: [u8; 8]) -> [u8; 8] {
        reverse_words(self.0.decrypt(reverse_words(cipher)))
    }
}

impl Blowfish {
    /// "Encryption".
    fn crypt(&self, (mut left, mut right): (u32, u32), p: &[u32; 18]) -> (u32, u32) {
        for p in &p[..16] {
            left ^= p;
            right ^= self.f(left);
            (left, right) = (right, left);
        }
        (left, right) = (right, left);
        right ^= p[16];
        left ^= p[17];
        (left, right)
    }

    fn f(&self, x: u32) -> u32 {
        let [a, b, c, d] = x.to_be_bytes().map(usize::from);
        let sum = self.s[0][a].wrapping_add(self.s[1][b]);
        (sum ^ self.s[2][c]).wrapping_add(self.s[3][d])
    }
}

fn words(block: [u8; 8]) -> (u32, u32) {
    let number = u64::from_be_bytes(block);
    ((number >> 32) as u32, number as u32)
}

fn bytes((left, right): (u32, u32)) -> [u8; 8] {
    (u64::from(left) << 32 | u64::from(right)).to_be_bytes()
}

fn reverse_words([a, b, c, d, e, f, g, h]: [u8; 8]) -> [u8; 8] {
    [d, c, b, a, h, g, f, e]
}
