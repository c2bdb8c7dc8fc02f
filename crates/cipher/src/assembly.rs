//! From a specification and a key to a cipher: how keys are cut, and which
//! mode meets which IV generator.

use crate::algorithm::Visitor;
use crate::block::BlockCipher;
use crate::cascade::cascade;
use crate::iv::{Counted, Elephant, Essiv, Ivs, Lmk, Tcw};
use crate::mode::{BlockMode, Blocks, Cbc, Ctr, Ecb, LRW_KEY_BYTES, Lrw, Sectors, Xts};
use crate::multikey::MultiKey;
use crate::{Algorithm, Backend, CipherSpec, IvGenerator, KeyedCipher, Mode, SectorLayout};

/// The cipher of `spec`: `key`, `layout` and `backend` are possible for it.
pub(crate) fn assemble(
    spec: &CipherSpec,
    key: &[u8],
    layout: SectorLayout,
    backend: Backend,
) -> KeyedCipher {
    if spec.is_cascade() {
        return cascade(spec, key, layout, backend);
    }
    let (keys, extra) = key.split_at(key.len() - spec.extra_key_bytes(key.len()));
    let mut ciphers: Vec<_> = keys
        .chunks_exact(keys.len() / spec.key_count())
        .map(|key| {
            let one = OneKey {
                mode: spec.mode(),
                iv: spec.iv(),
                key,
                extra,
                layout,
                backend,
            };
            one.cipher(spec.algorithms()[0])
        })
        .collect();
    match ciphers.len() {
        1 => ciphers.remove(0),
        _ => KeyedCipher {
            backend: ciphers[0].backend,
            constant_time: ciphers[0].constant_time,
            sectors: Box::new(MultiKey { ciphers }),
        },
    }
}

/// One key of one cipher, and all else that makes a sector cipher of it.
pub(crate) struct OneKey<'a> {
    pub(crate) mode: Mode,
    pub(crate) iv: Option<IvGenerator>,
    /// The mode's key.
    pub(crate) key: &'a [u8],
    /// The IV generator's.
    pub(crate) extra: &'a [u8],
    pub(crate) layout: SectorLayout,
    pub(crate) backend: Backend,
}

impl OneKey<'_> {
    /// The sector cipher of `algorithm`, which has the backend.
    pub(crate) fn cipher(self, algorithm: Algorithm) -> KeyedCipher {
        let backend = self.backend;
        algorithm
            .visit(backend, self)
            .expect("CipherSpec asks for backends that there are")
    }

    /// The modes for blocks of any size.
    fn any<C: BlockCipher<N>, const N: usize>(self, keyed: impl Fn(&[u8]) -> C) -> KeyedCipher {
        let cipher = keyed(self.key);
        match self.mode {
            Mode::Cbc => self.sectors::<C, N>(Cbc { cipher }, keyed),
            Mode::Ctr => self.sectors::<C, N>(Ctr { cipher }, keyed),
            Mode::Ecb => self.sectors::<C, N>(Ecb { cipher }, keyed),
            Mode::Xts | Mode::Lrw => {
                unreachable!("CipherSpec refuses {} for {N}-byte blocks", self.mode)
            }
        }
    }

    fn sectors<C: BlockCipher<N>, const N: usize>(
        self,
        mode: impl BlockMode<N> + 'static,
        keyed: impl Fn(&[u8]) -> C,
    ) -> KeyedCipher {
        let ivs = match self.iv {
            Some(IvGenerator::Essiv(hash)) => {
                Box::new(Essiv::new(keyed, hash, self.key, self.layout))
            }
            iv => keyless_ivs(self.mode, iv, self.extra, self.layout),
        };
        // LRW's steps depend on the index, which is no secret as long as it
        // comes from a counter.
        let public_index = self.mode != Mode::Lrw || self.iv.is_none_or(IvGenerator::is_public);
        KeyedCipher {
            sectors: Box::new(Sectors {
                mode,
                ivs,
                layout: self.layout,
            }),
            backend: C::BACKEND,
            constant_time: C::CONSTANT_TIME && public_index,
        }
    }
}

impl Visitor for OneKey<'_> {
    type Output = KeyedCipher;

    fn wide<C: BlockCipher<16>>(self, keyed: impl Fn(&[u8]) -> C) -> KeyedCipher {
        match self.mode {
            Mode::Xts => {
                let mode = Xts::new(&keyed, self.key);
                self.sectors::<C, 16>(mode, keyed)
            }
            Mode::Lrw => {
                let (key, tweak_key) = self.key.split_at(self.key.len() - LRW_KEY_BYTES);
                let mode = Lrw::new(keyed(key), tweak_key);
                self.sectors::<C, 16>(mode, keyed)
            }
            Mode::Cbc | Mode::Ctr | Mode::Ecb => self.any::<C, 16>(keyed),
        }
    }

    fn narrow<C: BlockCipher<8>>(self, keyed: impl Fn(&[u8]) -> C) -> KeyedCipher {
        self.any::<C, 8>(keyed)
    }
}

/// The IV generators that do not need the data's cipher; `extra` is their key.
pub(crate) fn keyless_ivs<const N: usize>(
    mode: Mode,
    iv: Option<IvGenerator>,
    extra: &[u8],
    layout: SectorLayout,
) -> Box<dyn Ivs<N>> {
    match iv {
        None | Some(IvGenerator::Null) => Box::new(Counted::null(layout)),
        Some(IvGenerator::Plain) => Box::new(Counted::plain(layout)),
        Some(IvGenerator::Plain64) => Box::new(Counted::plain64(layout)),
        Some(IvGenerator::Plain64Be) => Box::new(Counted::plain64be(layout)),
        Some(IvGenerator::Benbi) => {
            // To the kernel, CTR is a stream cipher: its unit is the byte.
            let unit_bytes = if mode == Mode::Ctr { 1 } else { N };
            Box::new(Counted::benbi(unit_bytes, layout))
        }
        Some(IvGenerator::Eboiv) => Box::new(Counted::eboiv(layout)),
        Some(IvGenerator::Elephant) => Box::new(Elephant::new(extra, layout)),
        Some(IvGenerator::Lmk) => {
            let seed = (!extra.is_empty()).then_some(extra);
            Box::new(Lmk::new(seed, layout))
        }
        Some(IvGenerator::Tcw) => Box::new(Tcw::<N>::new(extra, layout)),
        Some(IvGenerator::Essiv(_)) => unreachable!("ESSIV needs the data's cipher"),
    }
}

/// `algorithm` under `key` as blocks only, and whether it is constant-time.
pub(crate) fn blocks(algorithm: Algorithm, key: &[u8], backend: Backend) -> AnyBlocks {
    algorithm
        .visit(backend, BlocksOnly { key })
        .expect("CipherSpec asks for backends that there are")
}

/// A keyed block cipher of either block size.
pub(crate) enum AnyBlocks {
    Wide(Box<dyn Blocks<16>>, bool),
    Narrow(Box<dyn Blocks<8>>, bool),
}

struct BlocksOnly<'a> {
    key: &'a [u8],
}

impl Visitor for BlocksOnly<'_> {
    type Output = AnyBlocks;

    fn wide<C: BlockCipher<16>>(self, keyed: impl Fn(&[u8]) -> C) -> AnyBlocks {
        AnyBlocks::Wide(Box::new(keyed(self.key)), C::CONSTANT_TIME)
    }

    fn narrow<C: BlockCipher<8>>(self, keyed: impl Fn(&[u8]) -> C) -> AnyBlocks {
        AnyBlocks::Narrow(Box::new(keyed(self.key)), C::CONSTANT_TIME)
    }
}
