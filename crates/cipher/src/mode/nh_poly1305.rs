//! Adiantum's hash: NH over 1024-byte parts, then Poly1305 over their hashes.
//!
//! ```text
//! NHₚ = Σ (m₀ + k₀)(m₂ + k₂) + (m₁ + k₁)(m₃ + k₃)  mod 2⁶⁴
//! ```
//!
//! over the 16-byte units m of a part and the key's words k from unit p on, for
//! p from 0 to 3. Source: Crowley and Biggers, "Adiantum: length-preserving
//! encryption for entry-level processors", 2018, sections 5 and 6.

use zeroize::Zeroize;

use crate::block::Block;
use crate::block::registers::{MOST_LANES, Registers};

/// Bytes that one NH hash takes in.
const PART: usize = 1024;

const PASSES: usize = 4;

/// Units of the NH key: a part's and those that the last pass is further on.
const NH_UNITS: usize = PART / 16 + PASSES - 1;

/// Bytes of the whole key: Poly1305's for headers and for messages, and NH's.
pub(super) const KEY_BYTES: usize = 32 + 16 * NH_UNITS;

/// The keys of both hashes, wiped when dropped.
pub(super) struct HashKey {
    header: Point,
    message: Point,
    /// NH's units with their middle words exchanged, so that factors are
    /// neighbours.
    nh: [Block; NH_UNITS],
}

impl HashKey {
    /// Cuts `bytes` into the keys.
    pub(super) fn new(bytes: &[u8; KEY_BYTES]) -> Self {
        let blocks: &[Block] = bytes.as_chunks().0;
        let mut nh = [[0; 16]; NH_UNITS];
        nh.copy_from_slice(&blocks[2..]);
        for unit in &mut nh {
            for i in 4..8 {
                unit.swap(i, i + 4);
            }
        }
        Self {
            header: Point::new(&blocks[0]),
            message: Point::new(&blocks[1]),
            nh,
        }
    }

    /// The hash of `tweak` and the length in bytes of the message.
    pub(super) fn header(&self, tweak: &[u8; 32], message_bytes: usize) -> u128 {
        let mut sum = Sum::default();
        sum.add(&self.header, 8 * message_bytes as u128);
        for block in tweak.as_chunks().0 {
            sum.add(&self.header, u128::from_le_bytes(*block));
        }
        sum.finish()
    }

    /// The hash of `message`, filled up with zeros to whole units.
    #[inline(always)]
    pub(super) fn message<R: Registers>(&self, cpu: R, message: &[u8]) -> u128 {
        let mut sum = Sum::default();
        for part in message.chunks(PART) {
            for [low, high] in nh(cpu, &self.nh, part).as_chunks().0 {
                sum.add(&self.message, u128::from(*high) << 64 | u128::from(*low));
            }
        }
        sum.finish()
    }
}

impl Drop for HashKey {
    fn drop(&mut self) {
        self.header.0.zeroize();
        self.message.0.zeroize();
        self.nh.zeroize();
    }
}

/// Masks of any number of lanes, the first or the last of a register.
const WINDOW: [Block; 3 * MOST_LANES] = {
    let mut window = [[0; 16]; 3 * MOST_LANES];
    let mut i = MOST_LANES;
    while i < 2 * MOST_LANES {
        window[i] = [0xff; 16];
        i += 1;
    }
    window
};

#[inline(always)]
fn nh<R: Registers>(cpu: R, key: &[Block; NH_UNITS], part: &[u8]) -> [u64; PASSES] {
    let mut sums = [cpu.splat([0; 4]); PASSES];
    let mut registers = part.chunks_exact(16 * R::LANES);
    let mut unit = 0;
    for register in &mut registers {
        let units = cpu.swap_middle(cpu.load(register));
        for (pass, sum) in sums.iter_mut().enumerate() {
            let factors = cpu.add_words(units, cpu.load(key[unit + pass..].as_flattened()));
            *sum = cpu.add_pairs(*sum, cpu.multiply_pairs(factors));
        }
        unit += R::LANES;
    }
    let rest = registers.remainder();
    if !rest.is_empty() {
        let count = rest.len().div_ceil(16);
        let mut padded = [[0; 16]; MOST_LANES];
        let (last, mask) = if part.len() > 16 * R::LANES && part.len().is_multiple_of(16) {
            // The register that ends with the message, without the units before.
            unit -= R::LANES - count;
            let (_, last) = part.split_at(part.len() - 16 * R::LANES);
            (last, &WINDOW[MOST_LANES + count - R::LANES..])
        } else {
            padded.as_flattened_mut()[..rest.len()].copy_from_slice(rest);
            (padded.as_flattened(), &WINDOW[2 * MOST_LANES - count..])
        };
        // Lanes that are not of the message add nothing if their key is zero too.
        let mask = cpu.load(mask.as_flattened());
        let units = cpu.and(cpu.swap_middle(cpu.load(last)), mask);
        for (pass, sum) in sums.iter_mut().enumerate() {
            let key = cpu.and(cpu.load(key[unit + pass..].as_flattened()), mask);
            let factors = cpu.add_words(units, key);
            *sum = cpu.add_pairs(*sum, cpu.multiply_pairs(factors));
        }
    }
    // The sums over a lane of all passes come before those of the next lane.
    let columns = cpu.columns(sums);
    let of_lane = PASSES / R::LANES;
    let mut stored = [[0; 16]; PASSES];
    for i in 0..of_lane {
        let mut sum = columns[i];
        for lane in 1..R::LANES {
            sum = cpu.add_pairs(sum, columns[lane * of_lane + i]);
        }
        cpu.store(sum, stored[i * R::LANES..].as_flattened_mut());
    }
    let mut hashes = [0; PASSES];
    for (hash, pair) in hashes.iter_mut().zip(stored) {
        let pair = u128::from_le_bytes(pair);
        *hash = (pair as u64).wrapping_add((pair >> 64) as u64);
    }
    hashes
}

const LIMB_44: u64 = (1 << 44) - 1;
const LIMB_42: u64 = (1 << 42) - 1;

/// Where Poly1305 evaluates: limbs of 44, 44 and 42 bits.
struct Point([u64; 3]);

impl Point {
    /// A key with the bits cleared that RFC 8439, section 2.5, clears.
    fn new(bytes: &Block) -> Self {
        let r = u128::from_le_bytes(*bytes) & 0x0fff_fffc_0fff_fffc_0fff_fffc_0fff_ffff;
        Self(limbs(r))
    }
}

fn limbs(x: u128) -> [u64; 3] {
    [
        x as u64 & LIMB_44,
        (x >> 44) as u64 & LIMB_44,
        (x >> 88) as u64,
    ]
}

/// Poly1305's sum modulo 2¹³⁰ − 5, in the limbs of [`Point`].
#[derive(Default)]
struct Sum([u64; 3]);

impl Sum {
    /// Adds `block` and the bit above it, and multiplies.
    #[inline(always)]
    fn add(&mut self, point: &Point, block: u128) {
        let [a, b, c] = limbs(block);
        let [r0, r1, r2] = point.0;
        let (r0, r1, r2) = (u128::from(r0), u128::from(r1), u128::from(r2));
        let h0 = u128::from(self.0[0] + a);
        let h1 = u128::from(self.0[1] + b);
        let h2 = u128::from(self.0[2] + (c | 1 << 40));
        // Limbs above 130 bits come back times 5, and 4 for 132 − 130.
        let (s1, s2) = (20 * r1, 20 * r2);
        let d0 = h0 * r0 + h1 * s2 + h2 * s1;
        let d1 = h0 * r1 + h1 * r0 + h2 * s2 + (d0 >> 44);
        let d2 = h0 * r2 + h1 * r1 + h2 * r0 + (d1 >> 44);
        // Nothing wraps, but a check for it would branch on a secret.
        let over = ((d2 >> 42) as u64).wrapping_mul(5);
        let low = (d0 as u64 & LIMB_44).wrapping_add(over);
        self.0 = [
            low & LIMB_44,
            (d1 as u64 & LIMB_44) + (low >> 44),
            d2 as u64 & LIMB_42,
        ];
    }

    /// The sum modulo 2¹³⁰ − 5, then modulo 2¹²⁸.
    fn finish(self) -> u128 {
        let [mut a, mut b, mut c] = self.0;
        // As above, nothing wraps.
        for _ in 0..2 {
            c = c.wrapping_add(b >> 44);
            b &= LIMB_44;
            a = a.wrapping_add((c >> 42).wrapping_mul(5));
            c &= LIMB_42;
            b = b.wrapping_add(a >> 44);
            a &= LIMB_44;
        }
        // At least 2¹³⁰ − 5 exactly if adding 5 carries out of 130 bits. The sum
        // is taken again with that carry: compilers make a branch of a choice.
        let d = a + 5;
        let e = b + (d >> 44);
        let f = c + (e >> 44);
        a += 5 * (f >> 42);
        b += a >> 44;
        c += b >> 44;
        (a, b, c) = (a & LIMB_44, b & LIMB_44, c & LIMB_42);
        u128::from(c) << 88 | u128::from(b) << 44 | u128::from(a)
    }
}
