//! Every backend equals the reference, at the lengths, alignments and IVs
//! where kernels go wrong.

use cryptmark_cipher::{
    Algorithm, CipherSpec, IvGenerator, IvSector, Key, KeyedCipher, Mode, SectorCipher,
    SectorLayout, SectorSize, Sharing,
};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use cryptmark_cipher::reference::{Direction, crypt_sectors};

/// In sectors: around every power of two that a kernel might take at once, and
/// what is left over for fewer lanes.
const LENGTHS: [usize; 22] = [
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 17, 24, 31, 32, 33, 48, 63, 64, 65,
];

/// The same of sectors of 512 bytes, for ciphers with more lanes.
const MORE: [usize; 3] = [127, 128, 129];

/// The same of a cipher with a lane for each of 512 blocks.
const MOST: [usize; 5] = [192, 256, 511, 512, 513];

/// Before, at and after the carries of 32 and 64-bit sector numbers.
const CARRIES: [u64; 7] = [
    0,
    1,
    (1 << 32) - 2,
    (1 << 32) - 1,
    1 << 32,
    u64::MAX - 1,
    u64::MAX,
];

/// The first cipher of each block size in every mode with every IV generator
/// that this build has, every other cipher in every mode, and multi-key ciphers
/// and cascades of each kind.
fn specs() -> Vec<CipherSpec> {
    let mut specs = Vec::new();
    for cipher in Algorithm::ALL {
        let same_blocks = |other: &Algorithm| other.block_bytes() == cipher.block_bytes();
        let is_first = Algorithm::ALL.into_iter().find(same_blocks) == Some(cipher);
        for mode in Mode::ALL {
            let stream = match mode {
                Mode::Adiantum(stream) => format!("{stream},"),
                _ => String::new(),
            };
            for iv in IvGenerator::ALL {
                if is_first || matches!(iv, IvGenerator::Plain64 | IvGenerator::Essiv(_)) {
                    let notation = format!("{stream}{cipher}-{mode}-{iv}");
                    specs.extend(notation.parse::<CipherSpec>());
                }
            }
        }
    }
    let more = [
        "aes-ecb",
        "cipher_null-ecb",
        "xchacha20,aes-adiantum-plain64",
        "aes-cbc-essiv:md5",
        "twofish:8-xts-plain64",
        "aes:2-cbc-essiv:sha256",
        "serpent:4-lrw-benbi",
        "aes:64-cbc-lmk",
        "aes:2-cbc-tcw",
        "aes-twofish-serpent",
        "serpent-aes-xts-plain",
        "twofish-serpent-cbc-tcw",
        "serpent-twofish-aes-cbc-null",
        "anubis-twofish-cbc-plain",
        "blowfish-cast5-cbc-tcw",
        "aes-blowfish-cbc-tcw",
        "aes-twofish-lrw-benbi",
        "aes-twofish-serpent-lrw-plain64",
    ];
    specs.extend(more.map(|notation| notation.parse::<CipherSpec>().unwrap()));
    specs
}

fn layouts(spec: CipherSpec) -> impl Iterator<Item = SectorLayout> {
    spec.sector_sizes()
        .iter()
        .copied()
        .flat_map(|size| [false, true].map(|large_iv| SectorLayout { size, large_iv }))
}

/// All but sectors of 512 bytes, of which both layouts are the same.
fn larger(spec: CipherSpec) -> impl Iterator<Item = SectorLayout> {
    layouts(spec).filter(|layout| layout.size > SectorSize::B512)
}

fn random(seed: u64, bytes: usize) -> Vec<u8> {
    let mut data = vec![0; bytes];
    Xoshiro256PlusPlus::seed_from_u64(seed).fill_bytes(&mut data);
    data
}

fn each_backend(
    spec: CipherSpec,
    key: &[u8],
    layout: SectorLayout,
    mut check: impl FnMut(&KeyedCipher),
) {
    let key = Key::from_slice(key);
    for backend in spec.backends() {
        let cipher = spec.cipher(&key, layout, Some(backend)).unwrap();
        assert_eq!(cipher.backend(), backend);
        assert_eq!(cipher.layout(), layout, "{spec}");
        check(&cipher);
    }
}

/// Both directions between `plain` and the reference's ciphertext.
fn assert_equal(cipher: &KeyedCipher, what: &str, first: IvSector, plain: &[u8], expected: &[u8]) {
    let mut data = plain.to_vec();
    cipher.encrypt(first, &mut data);
    assert!(data == expected, "{what} {} {first:?}", cipher.backend());
    cipher.decrypt(first, &mut data);
    assert!(data == plain, "{what} {} {first:?}", cipher.backend());
}

#[test]
fn every_length_of_sectors_of_512_bytes() {
    for known in CipherSpec::KNOWN {
        let spec: CipherSpec = known.parse().unwrap();
        every_length(spec, SectorLayout::default(), &LENGTHS);
        every_length(spec, SectorLayout::default(), &MORE);
    }
}

/// Apart from those of 512 bytes, because it takes minutes in emulation.
#[test]
fn every_length_of_larger_sectors() {
    for known in CipherSpec::KNOWN {
        let spec: CipherSpec = known.parse().unwrap();
        for layout in larger(spec).filter(|layout| !layout.large_iv) {
            every_length(spec, layout, &LENGTHS);
        }
    }
}

#[test]
fn every_length_that_512_lanes_tell_apart() {
    for notation in ["des-cbc-plain64be", "des3_ede-cbc-null"] {
        every_length(notation.parse().unwrap(), SectorLayout::default(), &MOST);
    }
}

fn every_length(spec: CipherSpec, layout: SectorLayout, lengths: &[usize]) {
    let key = random(1, spec.default_key_size());
    let first = IvSector::new(1_000_000);
    let plain = random(2, lengths[lengths.len() - 1] * layout.size.bytes());
    let mut expected = plain.clone();
    crypt_sectors(Direction::Encrypt, spec, &key, layout, first, &mut expected);
    each_backend(spec, &key, layout, |cipher| {
        for length in lengths {
            let bytes = length * layout.size.bytes();
            let what = format!("{spec} {length} × {}", layout.size.bytes());
            assert_equal(cipher, &what, first, &plain[..bytes], &expected[..bytes]);
        }
    });
}

#[test]
fn every_carry_of_sectors_of_512_bytes() {
    for spec in specs() {
        every_carry(spec, SectorLayout::default());
    }
}

/// Apart from those of 512 bytes, because it takes minutes in emulation.
#[test]
fn every_carry_of_larger_sectors() {
    for spec in specs() {
        for layout in larger(spec) {
            every_carry(spec, layout);
        }
    }
}

fn every_carry(spec: CipherSpec, layout: SectorLayout) {
    let key = random(3, spec.default_key_size());
    for first in CARRIES.map(IvSector::new) {
        let plain = random(4, 2 * layout.size.bytes());
        let mut expected = plain.clone();
        crypt_sectors(Direction::Encrypt, spec, &key, layout, first, &mut expected);
        each_backend(spec, &key, layout, |cipher| {
            let what = format!("{spec} {layout:?}");
            assert_equal(cipher, &what, first, &plain, &expected);
        });
    }
}

#[test]
fn every_key_size() {
    for spec in specs() {
        for size in spec.key_sizes() {
            let key = random(size as u64, size);
            let plain = random(5, 3 * 512);
            let first = IvSector::new(77);
            let layout = SectorLayout::default();
            let (mut expected, mut back) = (plain.clone(), plain.clone());
            crypt_sectors(Direction::Encrypt, spec, &key, layout, first, &mut expected);
            crypt_sectors(Direction::Decrypt, spec, &key, layout, first, &mut back);
            each_backend(spec, &key, layout, |cipher| {
                let what = format!("{spec} key of {size} bytes");
                assert_equal(cipher, &what, first, &plain, &expected);
                let mut data = plain.clone();
                cipher.decrypt(first, &mut data);
                assert!(data == back, "{what}: decryption of random bytes");
            });
        }
    }
}

#[test]
fn every_misalignment() {
    for spec in specs() {
        let key = random(6, spec.default_key_size());
        let layout = SectorLayout::default();
        let first = IvSector::new(5);
        let plain = random(7, 9 * 512);
        let mut expected = plain.clone();
        crypt_sectors(Direction::Encrypt, spec, &key, layout, first, &mut expected);
        each_backend(spec, &key, layout, |cipher| {
            for offset in 0..=64 {
                let mut around = vec![0xee; offset + plain.len() + 64];
                let range = offset..offset + plain.len();
                around[range.clone()].copy_from_slice(&plain);
                cipher.encrypt(first, &mut around[range.clone()]);
                assert!(around[range.clone()] == expected, "{spec} at {offset}");
                cipher.decrypt(first, &mut around[range.clone()]);
                assert!(around[range.clone()] == plain, "{spec} at {offset}");
                assert!(around[..range.start].iter().all(|&byte| byte == 0xee));
                assert!(around[range.end..].iter().all(|&byte| byte == 0xee));
            }
        });
    }
}

#[test]
fn a_run_is_its_sectors_one_by_one() {
    for known in CipherSpec::KNOWN {
        let spec: CipherSpec = known.parse().unwrap();
        let key = random(8, spec.default_key_size());
        for layout in layouts(spec) {
            each_backend(spec, &key, layout, |cipher| {
                for first in [0, (1 << 32) - 2, u64::MAX - 1].map(IvSector::new) {
                    let plain = random(9, 66 * layout.size.bytes());
                    let mut run = plain.clone();
                    cipher.encrypt(first, &mut run);
                    let mut single = plain.clone();
                    let sectors = single.chunks_mut(layout.size.bytes());
                    for (nth, sector) in sectors.enumerate() {
                        cipher.encrypt(first.advance(nth as u64, layout), sector);
                    }
                    assert!(run == single, "{spec} {layout:?} {first:?}");
                    cipher.decrypt(first, &mut run);
                    assert!(run == plain, "{spec} {layout:?} {first:?}");
                }
            });
        }
    }
}

/// The fuzzer's test, with fixed pseudo-random inputs.
#[test]
fn random_inputs() {
    for seed in 0..400 {
        let input = random(seed, 40 + seed as usize % 300);
        crate::any_input::backend_equals_reference(&input);
    }
    crate::any_input::backend_equals_reference(&[]);
}

#[test]
fn several_cores_do_what_one_does() {
    for spec in specs() {
        let key = Key::from_slice(&random(12, spec.default_key_size()));
        // Where it is possible, sectors of which one is not one IV further on.
        let sizes = spec.sector_sizes();
        let layout = SectorLayout {
            size: sizes[1.min(sizes.len() - 1)],
            large_iv: false,
        };
        let sector = layout.size.bytes();
        let cipher = || spec.cipher(&key, layout, None).unwrap();
        let one = cipher();
        for (cores, part) in [(0, 1), (1, 1), (2, 0), (2, 3), (3, 7), (4, 64)] {
            let shared = cipher().shared(Sharing {
                cores,
                part: part * sector,
            });
            let shared = shared.unwrap();
            assert_eq!(shared.layout(), layout);
            assert_eq!(shared.backend(), one.backend());
            assert_eq!(shared.constant_time(), one.constant_time());
            let part = part.max(1);
            let lengths = [
                0,
                1,
                part,
                2 * part - 1,
                2 * part,
                2 * part + 1,
                5 * part + 2,
            ];
            for (length, first) in lengths.into_iter().zip(CARRIES) {
                let first = IvSector::new(first);
                let plain = random(13, length * sector);
                let mut expected = plain.clone();
                one.encrypt(first, &mut expected);
                let mut data = plain.clone();
                shared.encrypt(first, &mut data);
                assert!(data == expected, "{spec} {cores} cores {length} sectors");
                shared.decrypt(first, &mut data);
                assert!(data == plain, "{spec} {cores} cores {length} sectors");
            }
        }
    }
}

#[test]
fn several_threads_may_share_at_once() {
    let spec: CipherSpec = "aes-xts-plain64".parse().unwrap();
    let key = Key::from_slice(&random(14, 64));
    let cipher = || spec.cipher(&key, SectorLayout::default(), None).unwrap();
    let one = cipher();
    let shared = cipher().shared(Sharing {
        cores: 3,
        part: 4096,
    });
    let shared = shared.unwrap();
    std::thread::scope(|scope| {
        for seed in 0..4 {
            let (one, shared) = (&one, &shared);
            scope.spawn(move || {
                let first = IvSector::new(seed);
                for _ in 0..50 {
                    let plain = random(seed, 64 * 1024);
                    let (mut expected, mut data) = (plain.clone(), plain.clone());
                    one.encrypt(first, &mut expected);
                    shared.encrypt(first, &mut data);
                    assert!(data == expected);
                    shared.decrypt(first, &mut data);
                    assert!(data == plain);
                }
            });
        }
    });
}

#[test]
fn data_that_are_no_whole_sectors_panic() {
    // One of every way to cut a run; each panic prints, so not all of them.
    for notation in [
        "aes-xts-plain64",
        "aes:64-cbc-lmk",
        "aes-twofish-xts-plain64",
    ] {
        let spec: CipherSpec = notation.parse().unwrap();
        let key = random(10, spec.default_key_size());
        let largest = spec.sector_sizes()[spec.sector_sizes().len() - 1];
        let layout = SectorLayout {
            size: largest,
            large_iv: false,
        };
        let whole = largest.bytes();
        each_backend(spec, &key, layout, |cipher| {
            for bytes in [1, 16, whole / 2, whole - 1, whole + 1, whole + 16] {
                let run = std::panic::AssertUnwindSafe(|| {
                    cipher.encrypt(IvSector::new(0), &mut vec![0; bytes]);
                });
                assert!(std::panic::catch_unwind(run).is_err(), "{bytes} bytes");
            }
        });
    }
}
