//! From a specification and a key to a cipher: how keys are cut, and which
//! mode meets which IV generator.

use zeroize::Zeroize;

use crate::algorithm::Visitor;
#[cfg(target_arch = "aarch64")]
use crate::arch::{AesCe, Neon};
#[cfg(target_arch = "x86_64")]
use crate::arch::{AesNi, Avx2, Avx512, Vaes512};
use crate::block::BlockCipher;
use crate::block::lanes::{AnyCpu, Lanes};
use crate::cascade::cascade;
use crate::iv::{Counted, Elephant, Essiv, Ivs, Lmk, Tcw};
use crate::mode::{
    Adiantum, BlockMode, Blocks, Cbc, Ctr, Ecb, HashEncryptHash, Hctr2, Lrw, Sectors, Wide, Xts,
};
use crate::multikey::MultiKey;
use crate::{
    Algorithm, Backend, CipherSpec, IvGenerator, KeyedCipher, Mode, SectorLayout, StreamCipher,
};

const LISTED: &str = "CipherSpec asks for backends that there are";

/// The cipher of `spec`: `key`, `layout` and `backend` are possible for it.
pub(crate) fn assemble(
    spec: &CipherSpec,
    key: &[u8],
    layout: SectorLayout,
    backend: Backend,
) -> KeyedCipher {
    on_wiped_stack(|| match spec.is_cascade() {
        true => cascade(spec, key, layout, backend),
        false => multi_key(spec, key, layout, backend),
    })
}

/// One cipher under one key or several.
fn multi_key(spec: &CipherSpec, key: &[u8], layout: SectorLayout, backend: Backend) -> KeyedCipher {
    let (keys, extra) = key.split_at(key.len() - spec.extra_key_bytes(key.len()));
    let key_bytes = keys.len() / spec.key_count();
    let mut ciphers: Vec<_> = (0..spec.key_count())
        .map(|nth| {
            // The null cipher's key is empty.
            let key = &keys[nth * key_bytes..][..key_bytes];
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
        on_wiped_stack(|| algorithm.visit(self.backend, self)).expect(LISTED)
    }

    /// The modes for blocks of any size.
    fn any<C: BlockCipher<N>, const N: usize>(self, keyed: impl Fn(&[u8]) -> C) -> KeyedCipher {
        let cipher = || keyed(self.key);
        match self.mode {
            Mode::Cbc => self.sectors::<C, N>(Cbc { cipher: cipher() }, keyed),
            Mode::Ctr => self.sectors::<C, N>(Ctr { cipher: cipher() }, keyed),
            Mode::Ecb => self.sectors::<C, N>(Ecb { cipher: cipher() }, keyed),
            Mode::Lrw => {
                let (key, tweak_key) = self.key.split_at(self.key.len() - N);
                let secret_index = self.iv.is_some_and(|iv| !iv.is_public());
                let mode = Lrw::new(keyed(key), tweak_key, secret_index);
                self.sectors::<C, N>(mode, keyed)
            }
            Mode::Xts | Mode::Adiantum(_) | Mode::Hctr2 => {
                unreachable!("CipherSpec refuses {} for {N}-byte blocks", self.mode)
            }
        }
    }

    /// What [`Wide`] is of: modes that make a whole sector one block.
    pub(crate) fn wide_parts<C: BlockCipher<16>>(
        &self,
        keyed: impl Fn(&[u8]) -> C,
    ) -> Box<dyn HashEncryptHash> {
        let block = |key: &[u8]| -> Box<dyn Blocks<16>> { Box::new(keyed(key)) };
        match self.mode {
            Mode::Adiantum(stream) => adiantum(self.key, stream, C::BACKEND, block),
            Mode::Hctr2 => hctr2(block(self.key), C::BACKEND),
            mode => unreachable!("in {mode} a sector is many blocks"),
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
        KeyedCipher {
            sectors: Box::new(Sectors {
                mode,
                ivs,
                layout: self.layout,
            }),
            backend: C::BACKEND,
            constant_time: C::CONSTANT_TIME && self.iv.is_none_or(IvGenerator::is_constant_time),
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
            // None of their IV generators needs the data's cipher.
            Mode::Adiantum(_) | Mode::Hctr2 => KeyedCipher {
                sectors: Box::new(Sectors {
                    mode: Wide {
                        parts: self.wide_parts(keyed),
                    },
                    ivs: keyless_ivs(self.mode, self.iv, self.extra, self.layout),
                    layout: self.layout,
                }),
                backend: C::BACKEND,
                constant_time: C::CONSTANT_TIME,
            },
            Mode::Cbc | Mode::Lrw | Mode::Ctr | Mode::Ecb => self.any::<C, 16>(keyed),
        }
    }

    fn narrow<C: BlockCipher<8>>(self, keyed: impl Fn(&[u8]) -> C) -> KeyedCipher {
        self.any::<C, 8>(keyed)
    }
}

/// Adiantum by the registers that `backend`'s CPUs have.
fn adiantum(
    key: &[u8],
    stream: StreamCipher,
    backend: Backend,
    block: impl FnOnce(&[u8]) -> Box<dyn Blocks<16>>,
) -> Box<dyn HashEncryptHash> {
    if backend == Backend::Portable {
        return adiantum_on(AnyCpu, key, stream, block);
    }
    #[cfg(target_arch = "x86_64")]
    if matches!(backend, Backend::Vaes512 | Backend::Avx512)
        && let Some(cpu) = Avx512::detect()
    {
        return adiantum_on(cpu, key, stream, block);
    }
    #[cfg(target_arch = "x86_64")]
    if let Some(cpu) = Avx2::detect() {
        return adiantum_on(cpu, key, stream, block);
    }
    #[cfg(target_arch = "aarch64")]
    if let Some(cpu) = Neon::detect() {
        return adiantum_on(cpu, key, stream, block);
    }
    adiantum_on(AnyCpu, key, stream, block)
}

fn adiantum_on<L: Lanes>(
    lanes: L,
    key: &[u8],
    stream: StreamCipher,
    block: impl FnOnce(&[u8]) -> Box<dyn Blocks<16>>,
) -> Box<dyn HashEncryptHash> {
    let key = key.try_into().expect("CipherSpec takes 32 bytes");
    match stream {
        StreamCipher::XChaCha12 => Box::new(Adiantum::<L, 12>::new(key, lanes, block)),
        StreamCipher::XChaCha20 => Box::new(Adiantum::<L, 20>::new(key, lanes, block)),
    }
}

/// HCTR2, its hash by the CPU's instruction unless `backend` is portable.
fn hctr2(cipher: Box<dyn Blocks<16>>, backend: Backend) -> Box<dyn HashEncryptHash> {
    if backend == Backend::Portable {
        return Box::new(Hctr2::new(cipher, AnyCpu));
    }
    #[cfg(target_arch = "x86_64")]
    if matches!(backend, Backend::Vaes512 | Backend::Avx512)
        && let Some(cpu) = Vaes512::detect()
    {
        return Box::new(Hctr2::new(cipher, cpu));
    }
    #[cfg(target_arch = "x86_64")]
    if let Some(cpu) = AesNi::detect() {
        return Box::new(Hctr2::new(cipher, cpu));
    }
    #[cfg(target_arch = "aarch64")]
    if let Some(cpu) = AesCe::detect() {
        return Box::new(Hctr2::new(cipher, cpu));
    }
    Box::new(Hctr2::new(cipher, AnyCpu))
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
            let unit_bytes = match mode {
                // To the kernel, CTR is a stream cipher: its unit is the byte.
                Mode::Ctr => 1,
                // And that of a wide cipher is its block cipher's block.
                Mode::Adiantum(_) | Mode::Hctr2 => 16,
                _ => N,
            };
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
    on_wiped_stack(|| algorithm.visit(backend, BlocksOnly { key })).expect(LISTED)
}

/// Does `work`, whose result has its secrets on the heap, and overwrites the
/// stack it used: schedules are returned by value, and every move leaves a
/// copy.
fn on_wiped_stack<T>(work: impl FnOnce() -> T) -> T {
    // Neither is inlined, so that both have the same stack.
    #[inline(never)]
    fn call<T>(work: impl FnOnce() -> T) -> T {
        work()
    }
    #[inline(never)]
    fn wipe() {
        /// Words; more than key setup takes.
        const ROOM: usize = 16_384;
        [0_u64; ROOM].zeroize();
    }
    let output = call(work);
    wipe();
    output
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
