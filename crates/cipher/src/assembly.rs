//! From a specification and a key to a cipher: how keys are cut, and which
//! mode meets which IV generator.

use zeroize::Zeroize;

#[cfg(target_arch = "aarch64")]
use crate::arch::{AesCe, Neon};
#[cfg(target_arch = "x86_64")]
use crate::arch::{AesNi, Avx2, Avx512, Vaes512};
use crate::block::registers::AnyCpu;
use crate::block::{AnyKeying, Keyed, Keying};
use crate::cascade::cascade;
use crate::iv::{Counted, Elephant, Essiv, Ivs, Lmk, Tcw};
use crate::mode::{
    Adiantum, BlockMode, Cbc, Ctr, Ecb, HashEncryptHash, Hctr2, Lrw, Sectors, Wide, Xts,
};
use crate::multikey::MultiKey;
use crate::{
    Algorithm, Backend, CipherSpec, IvGenerator, KeyedCipher, Mode, SectorCipher, SectorLayout,
    StreamCipher,
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
    pub(crate) fn cipher(&self, algorithm: Algorithm) -> KeyedCipher {
        let iv_is_constant_time = self.iv.is_none_or(IvGenerator::is_constant_time);
        KeyedCipher {
            sectors: on_wiped_stack(|| {
                self.sectors_of(&algorithm.keying(self.backend).expect(LISTED))
            }),
            backend: self.backend,
            constant_time: algorithm.is_constant_time(self.backend) && iv_is_constant_time,
        }
    }

    /// The mode and the IV generator over the cipher that `keying` makes.
    pub(crate) fn sectors_of(&self, keying: &AnyKeying) -> Box<dyn SectorCipher> {
        match keying {
            AnyKeying::Wide(keying) => self.wide(keying),
            AnyKeying::Narrow(keying) => self.any(keying),
        }
    }

    /// All modes, for blocks of 16 bytes.
    fn wide(&self, keying: &Keying<16>) -> Box<dyn SectorCipher> {
        match self.mode {
            Mode::Xts => self.sectors(Xts::new(keying, self.key), keying),
            // None of their IV generators needs the data's cipher.
            Mode::Adiantum(_) | Mode::Hctr2 => Box::new(Sectors {
                mode: Wide {
                    parts: self.wide_parts(keying),
                },
                ivs: keyless_ivs(self.mode, self.iv, self.extra, self.layout),
                layout: self.layout,
            }),
            Mode::Cbc | Mode::Lrw | Mode::Ctr | Mode::Ecb => self.any(keying),
        }
    }

    /// The modes for blocks of any size.
    fn any<const N: usize>(&self, keying: &Keying<N>) -> Box<dyn SectorCipher> {
        let cipher = || keying(self.key);
        match self.mode {
            Mode::Cbc => self.sectors(Cbc { cipher: cipher() }, keying),
            Mode::Ctr => self.sectors(Ctr { cipher: cipher() }, keying),
            Mode::Ecb => self.sectors(Ecb { cipher: cipher() }, keying),
            Mode::Lrw => {
                let (key, tweak_key) = self.key.split_at(self.key.len() - N);
                let secret_index = self.iv.is_some_and(|iv| !iv.is_public());
                let mode = Lrw::new(keying(key), tweak_key, secret_index);
                self.sectors(mode, keying)
            }
            Mode::Xts | Mode::Adiantum(_) | Mode::Hctr2 => {
                unreachable!("CipherSpec refuses {} for {N}-byte blocks", self.mode)
            }
        }
    }

    /// The parts of a [`Wide`], for the modes that make a whole sector one block.
    pub(crate) fn wide_parts(&self, keying: &Keying<16>) -> Box<dyn HashEncryptHash> {
        match self.mode {
            Mode::Adiantum(stream) => adiantum(self.key, stream, self.backend, keying),
            Mode::Hctr2 => hctr2(keying(self.key), self.backend),
            mode => unreachable!("in {mode} a sector is many blocks"),
        }
    }

    fn sectors<const N: usize>(
        &self,
        mode: impl BlockMode<N> + 'static,
        keying: &Keying<N>,
    ) -> Box<dyn SectorCipher> {
        let ivs = match self.iv {
            Some(IvGenerator::Essiv(hash)) => {
                Box::new(Essiv::new(keying, hash, self.key, self.layout))
            }
            Some(IvGenerator::Elephant) => elephant(self.extra, self.layout, self.backend),
            iv => keyless_ivs(self.mode, iv, self.extra, self.layout),
        };
        Box::new(Sectors {
            mode,
            ivs,
            layout: self.layout,
        })
    }
}

/// The registers that a backend's CPUs have.
enum AnyRegisters {
    Portable(AnyCpu),
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512),
    #[cfg(target_arch = "aarch64")]
    Neon(Neon),
}

impl AnyRegisters {
    fn of(backend: Backend) -> Self {
        if backend == Backend::Portable {
            return Self::Portable(AnyCpu);
        }
        #[cfg(target_arch = "x86_64")]
        if matches!(backend, Backend::Vaes512 | Backend::Avx512)
            && let Some(cpu) = Avx512::detect()
        {
            return Self::Avx512(cpu);
        }
        #[cfg(target_arch = "x86_64")]
        if let Some(cpu) = Avx2::detect() {
            return Self::Avx2(cpu);
        }
        #[cfg(target_arch = "aarch64")]
        if let Some(cpu) = Neon::detect() {
            return Self::Neon(cpu);
        }
        Self::Portable(AnyCpu)
    }
}

/// Adiantum by the registers that `backend`'s CPUs have.
fn adiantum(
    key: &[u8],
    stream: StreamCipher,
    backend: Backend,
    block: &Keying<16>,
) -> Box<dyn HashEncryptHash> {
    let key = key.try_into().expect("CipherSpec takes 32 bytes");
    match AnyRegisters::of(backend) {
        AnyRegisters::Portable(cpu) => Box::new(Adiantum::new(key, stream, cpu, block)),
        #[cfg(target_arch = "x86_64")]
        AnyRegisters::Avx2(cpu) => Box::new(Adiantum::new(key, stream, cpu, block)),
        #[cfg(target_arch = "x86_64")]
        AnyRegisters::Avx512(cpu) => Box::new(Adiantum::new(key, stream, cpu, block)),
        #[cfg(target_arch = "aarch64")]
        AnyRegisters::Neon(cpu) => Box::new(Adiantum::new(key, stream, cpu, block)),
    }
}

/// BitLocker's diffuser under `key`, by the registers that `backend`'s CPUs have.
fn elephant<const N: usize>(key: &[u8], layout: SectorLayout, backend: Backend) -> Box<dyn Ivs<N>> {
    // Sector keys are AES keys for every cipher of the data.
    let mut backends = [backend].into_iter().chain(Algorithm::Aes.backends());
    let aes = backends.find_map(|backend| Algorithm::Aes.keying(backend));
    let Some(AnyKeying::Wide(aes)) = aes else {
        unreachable!("AES has a portable backend")
    };
    let aes = aes(key);
    match AnyRegisters::of(backend) {
        AnyRegisters::Portable(cpu) => Box::new(Elephant::new(aes, layout, cpu)),
        #[cfg(target_arch = "x86_64")]
        AnyRegisters::Avx2(cpu) => Box::new(Elephant::new(aes, layout, cpu)),
        #[cfg(target_arch = "x86_64")]
        AnyRegisters::Avx512(cpu) => Box::new(Elephant::new(aes, layout, cpu)),
        #[cfg(target_arch = "aarch64")]
        AnyRegisters::Neon(cpu) => Box::new(Elephant::new(aes, layout, cpu)),
    }
}

/// HCTR2, its hash by the CPU's instruction unless `backend` is portable.
fn hctr2(cipher: Keyed<16>, backend: Backend) -> Box<dyn HashEncryptHash> {
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

/// The IV generators that need no block cipher; `extra` is their key.
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
        Some(IvGenerator::Lmk) => {
            let seed = (!extra.is_empty()).then_some(extra);
            Box::new(Lmk::new(seed, layout))
        }
        Some(IvGenerator::Tcw) => Box::new(Tcw::<N>::new(extra, layout)),
        Some(IvGenerator::Essiv(_) | IvGenerator::Elephant) => {
            unreachable!("they need a block cipher")
        }
    }
}

/// `algorithm` under `key` as blocks only.
pub(crate) fn blocks(algorithm: Algorithm, key: &[u8], backend: Backend) -> AnyKeyed {
    on_wiped_stack(|| match algorithm.keying(backend).expect(LISTED) {
        AnyKeying::Wide(keying) => AnyKeyed::Wide(keying(key)),
        AnyKeying::Narrow(keying) => AnyKeyed::Narrow(keying(key)),
    })
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
pub(crate) enum AnyKeyed {
    Wide(Keyed<16>),
    Narrow(Keyed<8>),
}
