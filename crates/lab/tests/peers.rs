//! Other people's libraries and the built-in engine agree, sector by sector.

use cipher::{
    Algorithm, CipherSpec, IvSector, Key, KeyedCipher, SectorCipher, SectorLayout, SectorSize,
};
use cryptmark_lab::system::peer::{Absent, Library, Peer, Wanted};
use std::sync::Barrier;

const MODES: [&str; 4] = ["xts", "cbc", "ctr", "ecb"];

#[test]
fn every_library_and_the_engine_agree() {
    for library in Library::ALL {
        if !is_here(library) {
            continue;
        }
        for mode in MODES {
            let mut compared = 0;
            for algorithm in Algorithm::ALL {
                let Some(spec) = spec(algorithm, mode) else {
                    continue;
                };
                for size in spec.key_sizes() {
                    for sector in [SectorSize::B512, SectorSize::B4096] {
                        compared += u32::from(agree(library, spec, size, sector));
                    }
                }
            }
            println!(
                "{}: {compared} combinations of cipher, key and sector size in {mode} compared",
                library.name()
            );
            assert!(compared > 0, "{} has nothing in {mode}", library.name());
        }
    }
}

/// The ciphers that each library has in a default build. The test would reveal
/// a name that a library does not know.
#[test]
fn no_cipher_is_lost() {
    let expected: [(Library, &[&str]); 6] = [
        (
            Library::OpenSsl,
            &[
                "aes-xts",
                "camellia-cbc",
                "blowfish-cbc",
                "cast5-cbc",
                "des-cbc",
                "des3_ede-cbc",
                "aria-ctr",
                "sm4-cbc",
                "aes-ecb",
            ],
        ),
        (
            Library::Libgcrypt,
            &[
                "aes-xts",
                "serpent-xts",
                "twofish-xts",
                "camellia-xts",
                "blowfish-cbc",
                "cast5-cbc",
                "des-ctr",
                "des3_ede-cbc",
                "aes-ecb",
            ],
        ),
        (
            Library::Nettle,
            &[
                "aes-xts",
                "serpent-xts",
                "twofish-xts",
                "camellia-xts",
                "blowfish-cbc",
                "cast5-cbc",
                "des-ctr",
                "des3_ede-cbc",
                "aes-ecb",
            ],
        ),
        (
            Library::Botan,
            &[
                "aes-xts",
                "serpent-xts",
                "twofish-xts",
                "camellia-xts",
                "aria-xts",
                "sm4-xts",
                "blowfish-cbc",
                "cast5-cbc",
                "des-ctr",
                "des3_ede-cbc",
                "aes-ecb",
            ],
        ),
        (
            Library::RustCrypto,
            &[
                "aes-xts",
                "serpent-xts",
                "twofish-xts",
                "camellia-xts",
                "cast6-xts",
                "kuznyechik-xts",
                "sm4-xts",
                "aria-xts",
                "blowfish-cbc",
                "blowfish_le-cbc",
                "cast5-cbc",
                "des-ctr",
                "des3_ede-cbc",
                "aes-ecb",
            ],
        ),
        (
            Library::AfAlg,
            &["aes-xts", "aes-cbc", "aes-ctr", "aes-ecb"],
        ),
    ];
    for (library, ciphers) in expected {
        if !is_here(library) {
            continue;
        }
        for name in ciphers {
            let (algorithm, mode) = name.split_once('-').unwrap();
            let known = |known: &Algorithm| known.name() == algorithm;
            let algorithm = Algorithm::ALL.into_iter().find(known).unwrap();
            let spec = spec(algorithm, mode).unwrap();
            let longest = *spec.key_sizes().last().unwrap();
            assert!(
                agree(library, spec, longest, SectorSize::B512),
                "{} has no {name}",
                library.name()
            );
        }
    }
}

/// `None` if the cipher does not exist: XTS is not defined for 8-byte blocks.
fn spec(algorithm: Algorithm, mode: &str) -> Option<CipherSpec> {
    let iv = match mode {
        "ecb" => "",
        _ => "-plain64",
    };
    format!("{algorithm}-{mode}{iv}").parse().ok()
}

/// Whether the library is on this machine; prints a note if it is not.
fn is_here(library: Library) -> bool {
    let wanted = Wanted {
        algorithm: "aes",
        mode: "cbc",
        key: &[0; 16],
    };
    match library.open(wanted, SectorLayout::default()) {
        Err(
            error @ (Absent::NotInstalled { .. }
            | Absent::NotInKernel { .. }
            | Absent::NotBuilt { .. }),
        ) => {
            println!("skipped: {error}");
            false
        }
        _ => true,
    }
}

/// Whether the library has the cipher; panics if the two results differ.
fn agree(library: Library, spec: CipherSpec, key_bytes: usize, size: SectorSize) -> bool {
    let layout = SectorLayout {
        size,
        large_iv: false,
    };
    let key = key(key_bytes);
    let (algorithm, mode) = (spec.algorithms()[0].to_string(), spec.mode().to_string());
    let wanted = Wanted {
        algorithm: &algorithm,
        mode: &mode,
        key: &key,
    };
    let Ok(peer) = library.open(wanted, layout) else {
        return false;
    };
    let engine = spec.cipher(&Key::from(key), layout, None).unwrap();
    // The second sector of the last pair is beyond 32 bits.
    let last = u64::from(u32::MAX) + 1 - layout.iv_step();
    for first in [0, 8, last] {
        same(&peer, &engine, first);
    }
    true
}

fn key(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|i| (i * 7 + 1) as u8).collect()
}

/// Both encrypt two sectors from `first` on alike, and the peer decrypts them.
fn same(peer: &Peer, engine: &KeyedCipher, first: u64) {
    let length = 2 * peer.layout().size.bytes();
    let plain: Vec<u8> = (0..length).map(|i| ((i * 31) >> 3) as u8).collect();
    let (mut ours, mut theirs) = (plain.clone(), plain.clone());
    engine.encrypt(IvSector::new(first), &mut ours);
    peer.encrypt(IvSector::new(first), &mut theirs);
    assert!(ours == theirs, "{peer:?} from {first}");
    peer.decrypt(IvSector::new(first), &mut theirs);
    assert!(theirs == plain, "{peer:?} decrypts otherwise");
}

/// One peer shared by threads, and peers opened by many threads at once.
#[test]
fn threads_do_not_disturb_each_other() {
    const THREADS: u64 = 8;
    let layout = SectorLayout::default();
    for library in Library::ALL {
        if !is_here(library) {
            continue;
        }
        for mode in MODES {
            let spec = spec(Algorithm::Aes, mode).unwrap();
            let bytes = *spec.key_sizes().last().unwrap();
            let keys = key(bytes);
            let wanted = Wanted {
                algorithm: "aes",
                mode,
                key: &keys,
            };
            let shared = library.open(wanted, layout).unwrap();
            let engine = spec.cipher(&Key::from_slice(&keys), layout, None).unwrap();
            let start = Barrier::new(THREADS as usize);
            std::thread::scope(|scope| {
                for thread in 0..THREADS {
                    let (start, shared, engine) = (&start, &shared, &engine);
                    scope.spawn(move || {
                        start.wait();
                        let own = library.open(wanted, layout).unwrap();
                        for first in 0..64 {
                            same(&own, engine, first);
                            same(shared, engine, first + thread);
                        }
                    });
                }
            });
        }
    }
}

#[cfg(feature = "rustcrypto")]
#[test]
#[should_panic(expected = "whole sectors")]
fn half_a_sector_is_refused() {
    let wanted = Wanted {
        algorithm: "aes",
        mode: "xts",
        key: &key(64),
    };
    let peer = Library::RustCrypto
        .open(wanted, SectorLayout::default())
        .unwrap();
    peer.encrypt(IvSector::new(0), &mut [0; 768]);
}

/// A key that a library does not take is refused before it reads beyond its end.
#[test]
fn keys_of_no_length_are_refused() {
    for library in Library::ALL {
        for algorithm in Algorithm::ALL {
            for mode in MODES {
                for length in [0, 1, 3, 65, 113] {
                    let wanted = Wanted {
                        algorithm: algorithm.name(),
                        mode,
                        key: &key(length),
                    };
                    let opened = library.open(wanted, SectorLayout::default());
                    assert!(opened.is_err(), "{} {wanted:?}", library.name());
                }
            }
        }
    }
}

#[test]
fn what_no_library_has_is_named() {
    let wanted = Wanted {
        algorithm: "enigma",
        mode: "xts",
        key: &[0; 64],
    };
    for library in Library::ALL {
        let Err(error) = library.open(wanted, SectorLayout::default()) else {
            panic!("{} has enigma", library.name());
        };
        assert!(error.to_string().contains(library.name()), "{error}");
    }
}
