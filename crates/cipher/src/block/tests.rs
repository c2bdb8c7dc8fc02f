//! The checks of every block cipher: known answers, its reference, and independent implementations.

use std::fs;
use std::path::Path;

use aes::cipher::{BlockCipherEncrypt, KeyInit};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::BlockCipher;
use crate::reference::ReferenceCipher;

/// Tests that call a function with the proof of each register width.
#[cfg(target_arch = "x86_64")]
macro_rules! in_planes {
    ($check:ident) => {
        #[test]
        fn avx2() {
            match crate::arch::Avx2Planes::<crate::arch::ByNibbles>::detect() {
                Some(planes) => $check(planes),
                None => println!("skipped: this CPU has no AVX2"),
            }
        }

        #[test]
        fn avx2_by_aes() {
            match crate::arch::Avx2Planes::<crate::arch::ByAes>::detect() {
                Some(planes) => $check(planes),
                None => println!("skipped: this CPU has no AVX2 with AES-NI"),
            }
        }

        #[test]
        fn gfni256() {
            match crate::arch::Avx2Planes::<crate::arch::ByGfni>::detect() {
                Some(planes) => $check(planes),
                None => println!("skipped: this CPU has no AVX2 with GFNI"),
            }
        }

        #[test]
        fn avx512() {
            match crate::arch::Avx512Bytes::detect() {
                Some(planes) => $check(planes),
                None => println!("skipped: this CPU has no AVX-512 VBMI with GFNI"),
            }
        }
    };
}

/// Tests that call a function with the proof of each register width.
#[cfg(target_arch = "aarch64")]
macro_rules! in_planes {
    ($check:ident) => {
        #[test]
        fn neon() {
            match crate::arch::Neon::detect() {
                Some(planes) => $check(planes),
                None => println!("skipped: this CPU has no NEON"),
            }
        }
    };
}

/// Tests that call a function with the proof of each register width that has words.
#[cfg(target_arch = "x86_64")]
macro_rules! in_words {
    ($check:ident) => {
        #[test]
        fn avx2() {
            match crate::arch::Avx2Planes::<crate::arch::ByNibbles>::detect() {
                Some(planes) => $check(planes),
                None => println!("skipped: this CPU has no AVX2"),
            }
        }

        #[test]
        fn avx512() {
            match crate::arch::Avx512Bytes::detect() {
                Some(planes) => {
                    $check(planes);
                    $check(planes.by_rows());
                }
                None => println!("skipped: this CPU has no AVX-512 VBMI with GFNI"),
            }
        }
    };
}

#[cfg(target_arch = "aarch64")]
pub(crate) use in_planes as in_words;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(crate) use in_planes;
#[cfg(target_arch = "x86_64")]
pub(crate) use in_words;

/// In blocks: around every number that a cipher might take at once.
const COUNTS: [usize; 20] = [
    0, 1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 64, 65, 129, 511, 512, 700,
];

/// Keys of each length.
const KEYS: usize = 3;

/// One known answer, of one block or more.
struct Vector {
    id: String,
    key: Vec<u8>,
    plain: Vec<u8>,
    cipher: Vec<u8>,
}

/// Checks reference `R` and the cipher that `keyed` makes against the rows
/// for ECB under `tests/vectors`.
pub(crate) fn known_answers<R, C, const N: usize>(name: &str, keyed: impl Fn(&[u8]) -> C)
where
    R: ReferenceCipher<N>,
    C: BlockCipher<N>,
{
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let own = vectors(&crate_folder.join(format!("tests/vectors/{name}.tsv")));
    assert!(!own.is_empty(), "{name} has no known answers");
    println!("{name}: {} vectors of the project", own.len());
    for vector in &own {
        let id = &vector.id;
        let reference = R::new(&vector.key);
        for (plain, cipher) in vector.plain.chunks(N).zip(vector.cipher.chunks(N)) {
            let (plain, cipher) = (plain.try_into().unwrap(), cipher.try_into().unwrap());
            assert_eq!(reference.encrypt(plain), cipher, "reference {id}");
            assert_eq!(reference.decrypt(cipher), plain, "reference {id}");
        }
        let ours = keyed(&vector.key);
        let mut data = vector.plain.clone();
        ours.encrypt_blocks(data.as_chunks_mut().0);
        assert_eq!(data, vector.cipher, "{id} {}", std::any::type_name::<C>());
        ours.decrypt_blocks(data.as_chunks_mut().0);
        assert_eq!(data, vector.plain, "{id} {}", std::any::type_name::<C>());
    }
}

/// Checks the cipher that `keyed` makes against reference `R` for random keys
/// of `key_lengths` bytes.
pub(crate) fn equals_reference<R, C, const N: usize>(
    key_lengths: &[usize],
    keyed: impl Fn(&[u8]) -> C,
) where
    R: ReferenceCipher<N>,
    C: BlockCipher<N>,
{
    same(key_lengths, keyed, |key, blocks| {
        let reference = R::new(key);
        for block in blocks {
            *block = reference.encrypt(*block);
        }
    });
}

/// Checks the cipher that `keyed` makes against `P` of the RustCrypto project
/// for random keys of `key_lengths` bytes.
pub(crate) fn agrees_with<P, C, const N: usize>(key_lengths: &[usize], keyed: impl Fn(&[u8]) -> C)
where
    P: BlockCipherEncrypt + KeyInit,
    C: BlockCipher<N>,
{
    same(key_lengths, keyed, |key, blocks| {
        let peer = P::new_from_slice(key).expect("a key length of both");
        for block in blocks {
            peer.encrypt_block((&mut block[..]).try_into().expect("blocks of N bytes"));
        }
    });
}

/// Both directions, for every number of blocks, where `encrypt` gives the
/// right ciphertext under a key.
fn same<C, const N: usize>(
    key_lengths: &[usize],
    keyed: impl Fn(&[u8]) -> C,
    encrypt: impl Fn(&[u8], &mut [[u8; N]]),
) where
    C: BlockCipher<N>,
{
    let mut random = Xoshiro256PlusPlus::seed_from_u64(N as u64);
    for &key_length in key_lengths {
        for _ in 0..KEYS {
            let mut key = vec![0; key_length];
            random.fill_bytes(&mut key);
            let mut plain = vec![[0; N]; COUNTS[COUNTS.len() - 1]];
            random.fill_bytes(plain.as_flattened_mut());
            let mut expected = plain.clone();
            encrypt(&key, &mut expected);
            let ours = keyed(&key);
            for count in COUNTS {
                let mut data = plain[..count].to_vec();
                ours.encrypt_blocks(&mut data);
                let what = format!(
                    "{count} blocks, key of {key_length} bytes, {}",
                    std::any::type_name::<C>()
                );
                assert!(data == expected[..count], "{what}");
                ours.decrypt_blocks(&mut data);
                assert!(data == plain[..count], "decrypting {what}");
            }
        }
    }
}

/// The rows for ECB, which hold whole blocks.
fn vectors(file: &Path) -> Vec<Vector> {
    let text = fs::read_to_string(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    let mut lines = text.lines();
    let head = lines.next().expect("a line with the names of the columns");
    let names: Vec<&str> = head.trim_start_matches('#').split('\t').collect();
    lines
        .map(|line| line.split('\t').collect::<Vec<_>>())
        .filter_map(|fields| {
            let field = |name| fields[names.iter().position(|n| *n == name).expect(name)];
            (field("mode") == "ecb").then(|| Vector {
                id: field("id").to_owned(),
                key: hex(field("key")),
                plain: hex(field("plaintext")),
                cipher: hex(field("ciphertext")),
            })
        })
        .collect()
}

fn hex(digits: &str) -> Vec<u8> {
    let (pairs, []) = digits.as_bytes().as_chunks::<2>() else {
        panic!("{digits} has an odd digit");
    };
    pairs
        .iter()
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}
