//! Modes that make a whole sector one block: Adiantum and HCTR2 are both hash,
//! encrypt, hash.
//!
//! ```text
//! sector = rest and 16 bytes          H the hash of tweak and rest
//! before = 16 bytes + H(rest)         after = E(before)
//! rest   = rest ⊕ stream(before, after)
//! 16 bytes = after − H(rest)
//! ```
//!
//! Backwards `after` comes first. The block cipher takes the middle blocks of a
//! whole group of sectors in one call, because a cipher with many lanes takes as
//! long for one block.

use super::{BlockMode, GROUP};
use crate::block::{Block, BlockCipher};

/// Length of a tweak, which is the IV.
pub(super) const TWEAK_BYTES: usize = 32;

/// The parts in which these modes differ.
///
/// `data` are units of `unit_bytes`, 16 at least, and of everything else there
/// is one a unit.
pub(crate) trait HashEncryptHash: Send + Sync {
    /// The block cipher of the middle blocks.
    fn cipher(&self) -> &dyn BlockCipher<16>;

    /// The initial value of a hash of `tweak` and `rest_bytes` further bytes.
    fn header(&self, tweak: &[u8; TWEAK_BYTES], rest_bytes: usize) -> u128;

    /// Writes the 16 bytes of every unit plus the hash of the rest to `sums`.
    fn add_hashes(&self, headers: &[u128], unit_bytes: usize, data: &[u8], sums: &mut [Block]);

    /// Adds to every rest the stream of its middle block, plain and encrypted,
    /// and replaces the 16 bytes by `sums` minus the hash of the new rest.
    fn finish(
        &self,
        headers: &[u128],
        unit_bytes: usize,
        data: &mut [u8],
        middle: [&[Block]; 2],
        sums: &[Block],
    );
}

/// A mode of these parts.
pub(crate) struct Wide {
    pub(crate) parts: Box<dyn HashEncryptHash>,
}

impl BlockMode<TWEAK_BYTES> for Wide {
    fn encrypt(&self, tweaks: &mut [[u8; TWEAK_BYTES]], data: &mut [u8]) {
        run::<true>(&*self.parts, tweaks, data);
    }

    fn decrypt(&self, tweaks: &mut [[u8; TWEAK_BYTES]], data: &mut [u8]) {
        run::<false>(&*self.parts, tweaks, data);
    }

    fn encrypt_zeros(&self, _: &mut [[u8; TWEAK_BYTES]]) {
        unreachable!("no IV generator of CipherSpec's makes a tweak through the mode");
    }
}

fn run<const ENCRYPT: bool>(
    parts: &dyn HashEncryptHash,
    tweaks: &[[u8; TWEAK_BYTES]],
    data: &mut [u8],
) {
    // Clearing room for a group takes longer than a small sector.
    match tweaks.len() {
        1 => run_in::<1, ENCRYPT>(parts, tweaks, data),
        _ => run_in::<GROUP, ENCRYPT>(parts, tweaks, data),
    }
}

fn run_in<const ROOM: usize, const ENCRYPT: bool>(
    parts: &dyn HashEncryptHash,
    tweaks: &[[u8; TWEAK_BYTES]],
    data: &mut [u8],
) {
    let unit_bytes = data.len() / tweaks.len();
    let mut headers = [0; ROOM];
    let headers = &mut headers[..tweaks.len()];
    for (header, tweak) in headers.iter_mut().zip(tweaks) {
        *header = parts.header(tweak, unit_bytes - 16);
    }
    let mut first = [[0; 16]; ROOM];
    let first = &mut first[..tweaks.len()];
    parts.add_hashes(headers, unit_bytes, data, first);
    let mut second = [[0; 16]; ROOM];
    let second = &mut second[..tweaks.len()];
    second.copy_from_slice(first);
    let middle = if ENCRYPT {
        parts.cipher().encrypt_blocks(second);
        [&*first, &*second]
    } else {
        parts.cipher().decrypt_blocks(second);
        [&*second, &*first]
    };
    parts.finish(headers, unit_bytes, data, middle, second);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assembly::OneKey;
    use crate::block::AnyKeying;
    use crate::{Algorithm, Mode, SectorLayout, StreamCipher};

    fn hex(digits: &str) -> Vec<u8> {
        (0..digits.len() / 2)
            .map(|i| u8::from_str_radix(&digits[2 * i..][..2], 16).unwrap())
            .collect()
    }

    /// Linux's crypto/testmgr.h, by every backend, alone and in groups.
    fn known_answers(lines: &str, mode: Mode, cipher_and_mode: [&str; 2]) -> usize {
        let mut count = 0;
        for line in lines.lines() {
            let fields: Vec<&str> = line.split('\t').collect();
            if fields[1..3] != cipher_and_mode {
                continue;
            }
            let [key, tweak, plain, cipher] = [4, 5, 7, 8].map(|field: usize| hex(fields[field]));
            let tweak: [u8; TWEAK_BYTES] = tweak.try_into().unwrap();
            for backend in Algorithm::Aes.backends() {
                let one = OneKey {
                    mode,
                    iv: None,
                    key: &key,
                    extra: &[],
                    layout: SectorLayout::default(),
                    backend,
                };
                // Without the IV generator, for tweaks and units of any kind.
                let Some(AnyKeying::Wide(keying)) = Algorithm::Aes.keying(backend) else {
                    panic!("AES has blocks of 16 bytes");
                };
                let keyed = Wide {
                    parts: one.wide_parts(&keying),
                };
                for units in [1, 2, 17, GROUP] {
                    let mut tweaks = vec![tweak; units];
                    let mut data = plain.repeat(units);
                    keyed.encrypt(&mut tweaks, &mut data);
                    assert!(data == cipher.repeat(units), "{} {backend}", fields[0]);
                    keyed.decrypt(&mut tweaks, &mut data);
                    assert!(data == plain.repeat(units), "{} {backend}", fields[0]);
                }
            }
            count += 1;
        }
        count
    }

    #[test]
    fn adiantum() {
        let lines = include_str!("../../tests/vectors/adiantum.tsv");
        for stream in StreamCipher::ALL {
            let cipher = format!("{stream},aes");
            let mode = Mode::Adiantum(stream);
            assert_eq!(known_answers(lines, mode, ["adiantum", &cipher]), 4);
        }
    }

    #[test]
    fn hctr2() {
        let lines = include_str!("../../tests/vectors/aes-hctr2.tsv");
        assert_eq!(known_answers(lines, Mode::Hctr2, ["aes", "hctr2"]), 10);
    }
}
