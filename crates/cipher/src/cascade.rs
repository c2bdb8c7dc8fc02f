//! VeraCrypt's and TrueCrypt's cascades: several ciphers, each with its own
//! key, one after the other.
//!
//! ```text
//! name              aes-twofish-serpent
//! encryption        serpent, then twofish, then aes
//! key, XTS          serpent twofish aes | serpent twofish aes    data keys, tweak keys
//! key, LRW and tcw  32 bytes | serpent twofish aes               tweak key or seeds first
//! key, other CBC    serpent twofish aes
//! ```
//!
//! In XTS every cipher has its own pass. LRW with one tweak key in every pass
//! is LRW over the ciphers in a row, because between two of them the tweak
//! cancels out. CBC is one over the ciphers in a row where their blocks have
//! one size, and a pass for each where not.
//!
//! Source: VeraCrypt, src/Volume/EncryptionAlgorithm.cpp; TrueCrypt 4.3a for
//! the modes before XTS.

use zeroize::Zeroizing;

use crate::assembly::{AnyKeyed, OneKey, blocks, keyless_ivs};
use crate::block::Keyed;
use crate::iv::WHITENING_BYTES;
use crate::mode::{Cbc, Chain, GROUP, Lrw, Sectors, assert_whole};
use crate::spec::CASCADE_SECRET_BYTES;
use crate::{
    Algorithm, Backend, CipherSpec, IvGenerator, IvSector, KeyedCipher, Mode, SectorCipher,
    SectorLayout,
};

/// The cascade of `spec`: `key`, `layout` and `backend` are possible for it.
pub(crate) fn cascade(
    spec: &CipherSpec,
    key: &[u8],
    layout: SectorLayout,
    backend: Backend,
) -> KeyedCipher {
    let ciphers = || spec.algorithms().iter().rev().copied();
    let layers: Vec<_> = match spec.mode() {
        Mode::Xts => {
            let (data_keys, tweak_keys) = key.split_at(key.len() / 2);
            cut(ciphers(), data_keys)
                .zip(cut(ciphers(), tweak_keys))
                .map(|((cipher, data_key), (_, tweak_key))| {
                    let key = Zeroizing::new([data_key, tweak_key].concat());
                    layer(spec, cipher, &key, &[], layout, backend)
                })
                .collect()
        }
        _ => {
            let keys: usize = ciphers().map(Algorithm::longest_key).sum();
            let (secret, keys) = key.split_at(key.len() - keys);
            let block_bytes = spec.algorithms()[0].block_bytes();
            if ciphers().all(|cipher| cipher.block_bytes() == block_bytes) {
                return in_a_row(spec, secret, cut(ciphers(), keys), layout, backend);
            }
            cut(ciphers(), keys)
                .map(|(cipher, key)| layer(spec, cipher, key, secret, layout, backend))
                .collect()
        }
    };
    KeyedCipher {
        backend,
        constant_time: layers.iter().all(KeyedCipher::constant_time),
        sectors: Box::new(Layers { layers }),
    }
}

/// `keys` cut into the keys of `ciphers`.
fn cut(
    ciphers: impl Iterator<Item = Algorithm>,
    keys: &[u8],
) -> impl Iterator<Item = (Algorithm, &[u8])> {
    let mut rest = keys;
    ciphers.map(move |cipher| {
        let (key, after) = rest.split_at(cipher.longest_key());
        rest = after;
        (cipher, key)
    })
}

/// The pass of one cipher.
fn layer(
    spec: &CipherSpec,
    cipher: Algorithm,
    key: &[u8],
    secret: &[u8],
    layout: SectorLayout,
    backend: Backend,
) -> KeyedCipher {
    let one = OneKey {
        mode: spec.mode(),
        iv: spec.iv(),
        key,
        extra: seeds(spec.iv(), secret, cipher.block_bytes()),
        layout,
        backend: nearest(cipher, backend),
    };
    one.cipher(cipher)
}

/// The seeds that `tcw` takes from the bytes before the keys; empty for other IV generators.
fn seeds(iv: Option<IvGenerator>, secret: &[u8], block_bytes: usize) -> &[u8] {
    match iv {
        Some(IvGenerator::Tcw) => &secret[..block_bytes + WHITENING_BYTES],
        _ => &[],
    }
}

/// One mode over all ciphers.
fn in_a_row<'a>(
    spec: &CipherSpec,
    secret: &[u8],
    keys: impl Iterator<Item = (Algorithm, &'a [u8])>,
    layout: SectorLayout,
    backend: Backend,
) -> KeyedCipher {
    let (mut wide, mut narrow) = (Vec::new(), Vec::new());
    let mut constant_time = true;
    for (cipher, key) in keys {
        let backend = nearest(cipher, backend);
        constant_time &= cipher.is_constant_time(backend);
        match blocks(cipher, key, backend) {
            AnyKeyed::Wide(blocks) => wide.push(blocks),
            AnyKeyed::Narrow(blocks) => narrow.push(blocks),
        }
    }
    if spec.mode() == Mode::Lrw {
        let ciphers = Box::new(Chain { ciphers: wide });
        // No IV generator of a cascade's LRW has a key.
        let mode = Lrw::new(ciphers, &secret[..16], false);
        return KeyedCipher {
            sectors: Box::new(Sectors {
                mode,
                ivs: keyless_ivs(Mode::Lrw, spec.iv(), &[], layout),
                layout,
            }),
            backend,
            constant_time,
        };
    }
    if narrow.is_empty() {
        outer_cbc(wide, spec, secret, layout, backend, constant_time)
    } else {
        outer_cbc(narrow, spec, secret, layout, backend, constant_time)
    }
}

/// One CBC around ciphers of one block size, in the order of encryption.
fn outer_cbc<const N: usize>(
    ciphers: Vec<Keyed<N>>,
    spec: &CipherSpec,
    secret: &[u8],
    layout: SectorLayout,
    backend: Backend,
    constant_time: bool,
) -> KeyedCipher {
    let iv = spec.iv();
    let cipher = Box::new(Chain { ciphers });
    KeyedCipher {
        sectors: Box::new(Sectors {
            mode: Cbc { cipher },
            ivs: keyless_ivs::<N>(Mode::Cbc, iv, seeds(iv, secret, N), layout),
            layout,
        }),
        backend,
        constant_time,
    }
}

/// The backend of `cipher` that is `wanted`, or the next slower one that it
/// has, or its slowest.
fn nearest(cipher: Algorithm, wanted: Backend) -> Backend {
    let rank = |backend| Backend::ALL.iter().position(|&other| other == backend);
    cipher
        .backends()
        .find(|&backend| rank(backend) >= rank(wanted))
        .or_else(|| cipher.backends().last())
        .expect("every cipher has a backend that runs on every CPU")
}

/// Passes over the data in the order of encryption.
struct Layers {
    layers: Vec<KeyedCipher>,
}

impl SectorCipher for Layers {
    fn layout(&self) -> SectorLayout {
        self.layers[0].layout()
    }

    fn encrypt(&self, first: IvSector, data: &mut [u8]) {
        groups(first, self.layout(), data, |first, group| {
            for layer in &self.layers {
                layer.encrypt(first, group);
            }
        });
    }

    fn decrypt(&self, first: IvSector, data: &mut [u8]) {
        groups(first, self.layout(), data, |first, group| {
            for layer in self.layers.iter().rev() {
                layer.decrypt(first, group);
            }
        });
    }
}

/// Calls `work` for groups of sectors that stay in the L2 cache from one layer
/// to the next.
fn groups(
    first: IvSector,
    layout: SectorLayout,
    data: &mut [u8],
    work: impl Fn(IvSector, &mut [u8]),
) {
    assert_whole(data, layout);
    let mut first = first;
    for group in data.chunks_mut(GROUP * layout.size.bytes()) {
        work(first, group);
        first = first.advance(GROUP as u64, layout);
    }
}

const _: () = assert!(CASCADE_SECRET_BYTES >= 16 + WHITENING_BYTES);
