//! Other people's libraries and the built-in engine agree, sector by sector.

use cipher::{Algorithm, CipherSpec, IvSector, Key, SectorCipher, SectorLayout, SectorSize};
use cryptmark_lab::target::peer::{Absent, Library, Wanted};

#[test]
fn every_library_and_the_engine_agree() {
    let mut compared = 0;
    for library in Library::ALL {
        for algorithm in Algorithm::ALL {
            for mode in ["xts", "cbc"] {
                // XTS is not defined for 8-byte blocks.
                let Ok(spec) = format!("{algorithm}-{mode}-plain64").parse::<CipherSpec>() else {
                    continue;
                };
                for size in spec.key_sizes() {
                    for sector in [SectorSize::B512, SectorSize::B4096] {
                        compared += u32::from(agree(library, spec, size, sector));
                    }
                }
            }
        }
    }
    println!("{compared} combinations of library, cipher, key and sector size compared");
}

/// Whether the library has the cipher; panics where both differ.
fn agree(library: Library, spec: CipherSpec, key_bytes: usize, size: SectorSize) -> bool {
    let layout = SectorLayout {
        size,
        large_iv: false,
    };
    let key: Vec<u8> = (0..key_bytes).map(|i| (i * 7 + 1) as u8).collect();
    let (algorithm, mode) = (spec.algorithms()[0].to_string(), spec.mode().to_string());
    let wanted = Wanted {
        algorithm: &algorithm,
        mode: &mode,
        key: &key,
    };
    let peer = match library.open(wanted, layout) {
        Ok(peer) => peer,
        Err(error @ Absent::NotInstalled { .. }) => {
            println!("skipped: {error}");
            return false;
        }
        Err(Absent::NoCipher { .. }) => return false,
    };
    let engine = spec.cipher(&Key::from(key), layout, None).unwrap();
    let plain: Vec<u8> = (0..32768_u32).map(|i| ((i * 31) >> 3) as u8).collect();
    for first in [0, 8, u64::from(u32::MAX) - 7] {
        let (mut ours, mut theirs) = (plain.clone(), plain.clone());
        engine.encrypt(IvSector::new(first), &mut ours);
        peer.encrypt(IvSector::new(first), &mut theirs);
        assert!(
            ours == theirs,
            "{} {spec} {key_bytes} bytes {size:?}",
            library.name()
        );
        peer.decrypt(IvSector::new(first), &mut theirs);
        assert!(
            theirs == plain,
            "{} {spec} decrypts otherwise",
            library.name()
        );
    }
    true
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
