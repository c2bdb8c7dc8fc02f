//! Any bytes as a cipher, a key and sectors: what the fuzzer and a test with
//! random bytes drive.

use cryptmark_cipher::reference::{Direction, crypt_sectors};
use cryptmark_cipher::{
    Algorithm, CipherSpec, EssivHash, IvGenerator, IvSector, Key, Mode, SectorCipher, SectorLayout,
    StreamCipher,
};

/// The reference takes its time.
const MOST_BYTES: usize = 32 << 10;

/// Reads numbers from the front of the input; zeros when it is used up.
struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn byte(&mut self) -> usize {
        let Some((&first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        first.into()
    }

    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.byte() % choices.len()]
    }

    fn number(&mut self) -> u64 {
        (0..8).fold(0, |number, _| number << 8 | self.byte() as u64)
    }

    /// The rest of the input, repeated with a different offset each time.
    fn bytes(&mut self, len: usize) -> Vec<u8> {
        let rest = self.0;
        (0..len)
            .map(|i| {
                let byte = rest.get(i % rest.len().max(1)).copied().unwrap_or(0);
                byte.wrapping_add((i / rest.len().max(1) * 167) as u8)
            })
            .collect()
    }

    fn spec(&mut self) -> CipherSpec {
        let mut notation = self.one_of(&Algorithm::ALL).to_string();
        match self.byte() {
            more @ 0..32 => {
                for _ in 0..=more % 2 {
                    notation += &format!("-{}", self.one_of(&Algorithm::ALL));
                }
            }
            keys @ 32..64 => notation += &format!(":{}", 1 << (keys % 7)),
            _ => {}
        }
        let mode = self.one_of(&Mode::ALL);
        notation += &format!("-{mode}");
        if matches!(mode, Mode::Adiantum(_)) {
            notation.insert_str(0, &format!("{},", self.one_of(&StreamCipher::ALL)));
        }
        match self.one_of(&IvGenerator::ALL) {
            IvGenerator::Essiv(_) => {
                notation += &format!("-essiv:{}", self.one_of(&EssivHash::ALL))
            }
            iv => notation += &format!("-{iv}"),
        }
        // Parts that do not fit together are refused; a known specification takes their place.
        let known = self.one_of(CipherSpec::KNOWN);
        notation
            .parse()
            .unwrap_or_else(|_| known.parse().expect("KNOWN are specifications"))
    }
}

/// Panics where a backend of this CPU differs from the reference.
pub fn backend_equals_reference(input: &[u8]) {
    let mut input = Input(input);
    let spec = input.spec();
    let key_bytes = input.one_of(&spec.key_sizes());
    let layout = SectorLayout {
        size: input.one_of(spec.sector_sizes()),
        large_iv: input.byte() % 2 == 1,
    };
    let first = IvSector::new(input.number());
    let most = (MOST_BYTES / layout.size.bytes()).min(70);
    let bytes = input.byte() % (most + 1) * layout.size.bytes();
    let offset = input.byte() % 64;
    let key = input.bytes(key_bytes);
    let plain = input.bytes(bytes);

    let mut encrypted = plain.clone();
    let mut decrypted = plain.clone();
    for (direction, data) in [
        (Direction::Encrypt, &mut encrypted),
        (Direction::Decrypt, &mut decrypted),
    ] {
        crypt_sectors(direction, spec, &key, layout, first, data);
    }
    let key = Key::new(key);
    for backend in spec.backends() {
        let cipher = spec.cipher(&key, layout, Some(backend)).expect("listed");
        let what = || format!("{spec} {backend} {key:?} {layout:?} {first:?} {bytes} bytes");
        let mut around = vec![0xee; offset + bytes + 64];
        let range = offset..offset + bytes;
        around[range.clone()].copy_from_slice(&plain);
        cipher.encrypt(first, &mut around[range.clone()]);
        assert!(around[range.clone()] == encrypted, "encryption: {}", what());
        cipher.decrypt(first, &mut around[range.clone()]);
        assert!(around[range.clone()] == plain, "and back: {}", what());
        cipher.decrypt(first, &mut around[range.clone()]);
        assert!(around[range.clone()] == decrypted, "decryption: {}", what());
        let outside = around[..offset].iter().chain(&around[range.end..]);
        assert!(outside.copied().all(|byte| byte == 0xee), "{}", what());
    }
}
