//! Adiantum as in Crowley, Biggers, "Adiantum: length-preserving encryption for
//! entry-level processors", 2018, sections 2 to 6.

use super::{ReferenceCipher, add_xchacha};

/// Encrypts one unit of 16 bytes or more in place; XChaCha has `rounds`.
pub fn encrypt_adiantum<C: ReferenceCipher>(
    rounds: usize,
    key: &[u8],
    tweak: &[u8],
    unit: &mut [u8],
) {
    let keys = Keys::<C>::new(rounds, key);
    let (left, right) = unit.split_last_chunk_mut().expect("16 bytes at least");
    let middle = u128::from_le_bytes(*right).wrapping_add(keys.hash(tweak, left));
    let middle = keys.cipher.encrypt(middle.to_le_bytes());
    keys.add_stream(&middle, left);
    let middle = u128::from_le_bytes(middle);
    *right = middle.wrapping_sub(keys.hash(tweak, left)).to_le_bytes();
}

/// Decrypts one unit in place, as [`encrypt_adiantum`] encrypted it.
pub fn decrypt_adiantum<C: ReferenceCipher>(
    rounds: usize,
    key: &[u8],
    tweak: &[u8],
    unit: &mut [u8],
) {
    let keys = Keys::<C>::new(rounds, key);
    let (left, right) = unit.split_last_chunk_mut().expect("16 bytes at least");
    let middle = u128::from_le_bytes(*right).wrapping_add(keys.hash(tweak, left));
    keys.add_stream(&middle.to_le_bytes(), left);
    let middle = u128::from_le_bytes(keys.cipher.decrypt(middle.to_le_bytes()));
    *right = middle.wrapping_sub(keys.hash(tweak, left)).to_le_bytes();
}

/// The keys that are derived from the key of 32 bytes.
struct Keys<C> {
    rounds: usize,
    stream: [u8; 32],
    cipher: C,
    /// Poly1305's for tweaks, Poly1305's for NH's hashes, and NH's.
    hash: [u8; 16 + 16 + 1072],
}

impl<C: ReferenceCipher> Keys<C> {
    fn new(rounds: usize, key: &[u8]) -> Self {
        let stream = key.try_into().expect("32 bytes");
        let mut derived = [0; 32 + 16 + 16 + 1072];
        let mut iv = [0; 32];
        iv[0] = 1;
        add_xchacha(rounds, &stream, &iv, &mut derived);
        let (cipher, hash) = derived.split_at(32);
        Self {
            rounds,
            stream,
            cipher: C::new(cipher),
            hash: hash.try_into().expect("what is left"),
        }
    }

    /// The stream of the nonce that is the middle block, a one and zeros.
    fn add_stream(&self, middle: &[u8; 16], left: &mut [u8]) {
        let mut iv = [0; 32];
        iv[..16].copy_from_slice(middle);
        iv[16] = 1;
        add_xchacha(self.rounds, &self.stream, &iv, left);
    }

    /// Poly1305 of the length in bits and the tweak, plus Poly1305 of the NH
    /// hashes of every 1024 bytes, filled up with zeros to whole units of 16.
    fn hash(&self, tweak: &[u8], left: &[u8]) -> u128 {
        let (tweak_key, rest) = self.hash.split_at(16);
        let (message_key, nh_key) = rest.split_at(16);
        let bits = 8 * left.len() as u128;
        let header = [&bits.to_le_bytes(), tweak].concat();
        let hashes: Vec<u8> = left
            .chunks(1024)
            .flat_map(|part| {
                let mut part = part.to_vec();
                part.resize(part.len().next_multiple_of(16), 0);
                nh(nh_key, &part)
            })
            .collect();
        poly1305(tweak_key, &header).wrapping_add(poly1305(message_key, &hashes))
    }
}

/// Four passes, each with the key 16 bytes further on.
fn nh(key: &[u8], message: &[u8]) -> Vec<u8> {
    let word = |bytes: &[u8], i: usize| {
        u32::from_le_bytes(bytes[4 * i..][..4].try_into().expect("4 bytes"))
    };
    (0..4)
        .flat_map(|pass| {
            let mut sum = 0_u64;
            for unit in 0..message.len() / 16 {
                let term = |i: usize| {
                    let key = word(&key[16 * pass..], 4 * unit + i);
                    u64::from(word(message, 4 * unit + i).wrapping_add(key))
                };
                sum = sum.wrapping_add(term(0).wrapping_mul(term(2)));
                sum = sum.wrapping_add(term(1).wrapping_mul(term(3)));
            }
            sum.to_le_bytes()
        })
        .collect()
}

/// Poly1305 (RFC 8439, section 2.5) of whole blocks, without the addition of
/// the nonce's part.
fn poly1305(key: &[u8], message: &[u8]) -> u128 {
    let r = u128::from_le_bytes(key.try_into().expect("16 bytes"));
    let r = r & 0x0fff_fffc_0fff_fffc_0fff_fffc_0fff_ffff;
    let mut sum = Element::default();
    for block in message.as_chunks().0 {
        let low = u128::from_le_bytes(*block);
        sum = sum.plus(Element { high: 1, low }).times(r);
    }
    sum.low
}

/// A number below 2¹³⁰ − 5.
#[derive(Clone, Copy, Default)]
struct Element {
    high: u8,
    low: u128,
}

impl Element {
    fn plus(self, other: Self) -> Self {
        let (low, carry) = self.low.overflowing_add(other.low);
        let high = self.high + other.high + u8::from(carry);
        // 2¹³⁰ is 5; and the sum is less than twice the modulus.
        let reduced = low.checked_add(5);
        match (high, reduced) {
            (0..3, _) | (3, Some(_)) => Self { high, low },
            (3, None) => Self {
                high: 0,
                low: low.wrapping_add(5),
            },
            (_, Some(low)) => Self {
                high: high - 4,
                low,
            },
            (_, None) => Self {
                high: high - 3,
                low: low.wrapping_add(5),
            },
        }
    }

    /// Bit by bit.
    fn times(self, factor: u128) -> Self {
        let mut product = Self::default();
        for i in (0..128).rev() {
            product = product.plus(product);
            if factor >> i & 1 == 1 {
                product = product.plus(self);
            }
        }
        product
    }
}
