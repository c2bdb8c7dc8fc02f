//! Whole specifications, one sector at a time: dm-crypt's numbering and IV
//! generators as its source describes them, and VeraCrypt's cascades.

use super::{
    Aes, Anubis, Aria, Blowfish, BlowfishLittleEndian, Camellia, Cast5, Cast6, Des, Khazad,
    Kuznyechik, Null, ReferenceCipher, Seed, Serpent, Sm4, TripleDes, Twofish, crypt_ctr,
    decrypt_adiantum, decrypt_cbc, decrypt_hctr2, decrypt_lrw, decrypt_xts, elephant,
    encrypt_adiantum, encrypt_cbc, encrypt_hctr2, encrypt_lrw, encrypt_xts, md5, tcw,
};
use crate::{Algorithm, CipherSpec, IvGenerator, IvSector, Mode, SectorLayout, StreamCipher};

/// Direction of a cipher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From plaintext to ciphertext.
    Encrypt,
    /// From ciphertext to plaintext.
    Decrypt,
}

/// Encrypts or decrypts the sectors `data`, the first of which has IV number
/// `first`. `key` and `layout` are possible for `spec`.
pub fn crypt_sectors(
    direction: Direction,
    spec: CipherSpec,
    key: &[u8],
    layout: SectorLayout,
    first: IvSector,
    data: &mut [u8],
) {
    let sector_bytes = layout.size.bytes();
    let mut n = first;
    for sector in data.chunks_exact_mut(sector_bytes) {
        if spec.is_cascade() {
            cascade(direction, spec, key, layout, n, sector);
        } else {
            let units = sector_bytes as u64 / 512 / layout.iv_step();
            let unit = n.get().wrapping_mul(units);
            let (key, extra) = cut(spec, key, unit);
            let pass = Pass {
                cipher: ReferenceMode::of(spec.algorithms()[0]),
                mode: spec.mode(),
                iv: spec.iv(),
                key,
                extra,
            };
            pass.crypt(direction, n.get(), sector);
        }
        n = n.advance(1, layout);
    }
}

/// The key of the 512-byte unit `unit`, and what the IV generator gets.
fn cut(spec: CipherSpec, key: &[u8], unit: u64) -> (&[u8], &[u8]) {
    let count = spec.key_count();
    let block = ReferenceMode::of(spec.algorithms()[0]).block_bytes;
    let extra = match spec.iv() {
        Some(IvGenerator::Tcw) => block + 16,
        Some(IvGenerator::Elephant) => key.len() / 2,
        Some(IvGenerator::Lmk) if !key.len().is_multiple_of(count) => key.len() / (count + 1),
        _ => 0,
    };
    let (keys, extra) = key.split_at(key.len() - extra);
    let len = keys.len() / count;
    let nth = (unit % count as u64) as usize;
    (&keys[nth * len..][..len], extra)
}

/// A pass for every cipher, in the order of encryption, which is the name's
/// reversed.
fn cascade(
    direction: Direction,
    spec: CipherSpec,
    key: &[u8],
    layout: SectorLayout,
    n: IvSector,
    sector: &mut [u8],
) {
    let ciphers: Vec<Algorithm> = spec.algorithms().iter().rev().copied().collect();
    let lengths: Vec<usize> = ciphers
        .iter()
        .map(|cipher| *cipher.key_sizes().last().expect("a key size"))
        .collect();
    let total: usize = lengths.iter().sum();
    assert_eq!(sector.len(), layout.size.bytes());
    let block_bytes = ciphers[0].block_bytes();
    if spec.mode() == Mode::Cbc && ciphers.iter().all(|c| c.block_bytes() == block_bytes) {
        let (seeds, mut keys) = key.split_at(key.len() - total);
        let mut keyed = Vec::new();
        for (cipher, length) in ciphers.into_iter().zip(lengths) {
            let (key, rest) = keys.split_at(length);
            keyed.push((ReferenceMode::of(cipher), key));
            keys = rest;
        }
        outer_cbc(direction, spec, &keyed, seeds, n.get(), sector);
        return;
    }
    let mut passes = Vec::new();
    let mut offset = 0;
    for (cipher, length) in ciphers.into_iter().zip(lengths) {
        let cipher = ReferenceMode::of(cipher);
        let (key, extra) = match spec.mode() {
            Mode::Xts => (
                [&key[offset..][..length], &key[total + offset..][..length]].concat(),
                &key[..0],
            ),
            Mode::Lrw => (
                [&key[32 + offset..][..length], &key[..16]].concat(),
                &key[..0],
            ),
            _ => {
                let before = key.len() - total;
                let seeds = before.min(cipher.block_bytes + 16);
                (key[before + offset..][..length].to_vec(), &key[..seeds])
            }
        };
        offset += length;
        passes.push((cipher, key, extra));
    }
    if direction == Direction::Decrypt {
        passes.reverse();
    }
    for (cipher, key, extra) in passes {
        let pass = Pass {
            cipher,
            mode: spec.mode(),
            iv: spec.iv(),
            key: &key,
            extra,
        };
        pass.crypt(direction, n.get(), sector);
    }
}

/// One CBC around the ciphers in a row, each with its key.
fn outer_cbc(
    direction: Direction,
    spec: CipherSpec,
    keyed: &[(ReferenceMode, &[u8])],
    seeds: &[u8],
    n: u64,
    sector: &mut [u8],
) {
    let (cipher, key) = keyed[0];
    let block_bytes = cipher.block_bytes;
    let pass = Pass {
        cipher,
        mode: Mode::Cbc,
        iv: spec.iv(),
        key,
        extra: seeds,
    };
    let tcw = spec.iv() == Some(IvGenerator::Tcw);
    let whitening = || &seeds[block_bytes..][..16];
    if tcw && direction == Direction::Decrypt {
        tcw::whiten(whitening(), n, sector);
    }
    let mut previous = pass.iv(n, sector);
    for block in sector.chunks_exact_mut(block_bytes) {
        let ciphertext = block.to_vec();
        match direction {
            Direction::Encrypt => {
                add(block, &previous);
                for (cipher, key) in keyed {
                    cipher.crypt(direction, Mode::Ecb, key, &[], block);
                }
                previous = block.to_vec();
            }
            Direction::Decrypt => {
                for (cipher, key) in keyed.iter().rev() {
                    cipher.crypt(direction, Mode::Ecb, key, &[], block);
                }
                add(block, &previous);
                previous = ciphertext;
            }
        }
    }
    if tcw && direction == Direction::Encrypt {
        tcw::whiten(whitening(), n, sector);
    }
}

/// One cipher in one mode over one sector.
pub(crate) struct Pass<'a> {
    pub(crate) cipher: ReferenceMode,
    pub(crate) mode: Mode,
    pub(crate) iv: Option<IvGenerator>,
    /// The mode's key.
    pub(crate) key: &'a [u8],
    /// The IV generator's.
    pub(crate) extra: &'a [u8],
}

impl Pass<'_> {
    /// Encrypts or decrypts sector `n` in place.
    pub(crate) fn crypt(&self, direction: Direction, n: u64, sector: &mut [u8]) {
        let offset = n.wrapping_mul(sector.len() as u64);
        let whitening = || &self.extra[self.cipher.block_bytes..];
        let run = |iv: &[u8], sector: &mut [u8]| {
            self.cipher
                .crypt(direction, self.mode, self.key, iv, sector);
        };
        match (self.iv, direction) {
            (Some(IvGenerator::Lmk), Direction::Encrypt) => {
                let iv = self.lmk(n, sector);
                run(&iv, sector);
            }
            (Some(IvGenerator::Lmk), Direction::Decrypt) => {
                run(&vec![0; self.cipher.block_bytes], sector);
                let iv = self.lmk(n, sector);
                add(sector, &iv);
            }
            (Some(IvGenerator::Tcw), Direction::Encrypt) => {
                run(&self.iv(n, sector), sector);
                tcw::whiten(whitening(), n, sector);
            }
            (Some(IvGenerator::Tcw), Direction::Decrypt) => {
                tcw::whiten(whitening(), n, sector);
                run(&self.iv(n, sector), sector);
            }
            (Some(IvGenerator::Elephant), Direction::Encrypt) => {
                elephant::encrypt(self.extra, offset, sector);
                run(&self.iv(n, sector), sector);
            }
            (Some(IvGenerator::Elephant), Direction::Decrypt) => {
                run(&self.iv(n, sector), sector);
                elephant::decrypt(self.extra, offset, sector);
            }
            _ => run(&self.iv(n, sector), sector),
        }
    }

    /// The IV of sector `n`, where it does not depend on the data.
    fn iv(&self, n: u64, sector: &[u8]) -> Vec<u8> {
        let mut iv = vec![0; self.cipher.iv_bytes(self.mode)];
        let last_8 = iv.len() - 8;
        match self.iv {
            None | Some(IvGenerator::Null | IvGenerator::Lmk) => {}
            Some(IvGenerator::Plain) => iv[..4].copy_from_slice(&n.to_le_bytes()[..4]),
            Some(IvGenerator::Plain64) => iv[..8].copy_from_slice(&n.to_le_bytes()),
            Some(IvGenerator::Plain64Be) => iv[last_8..].copy_from_slice(&n.to_be_bytes()),
            Some(IvGenerator::Benbi) => {
                let unit = match self.mode {
                    Mode::Ctr => 1,
                    _ => self.cipher.block_bytes as u64,
                };
                let count = n.wrapping_mul(512 / unit).wrapping_add(1);
                iv[last_8..].copy_from_slice(&count.to_be_bytes());
            }
            Some(IvGenerator::Essiv(hash)) => {
                iv[..8].copy_from_slice(&n.to_le_bytes());
                let key = hash.digest(self.key);
                self.cipher
                    .crypt(Direction::Encrypt, Mode::Ecb, &key, &[], &mut iv);
            }
            Some(IvGenerator::Eboiv | IvGenerator::Elephant) => {
                let offset = n.wrapping_mul(sector.len() as u64);
                iv[..8].copy_from_slice(&offset.to_le_bytes());
                let mut zeros = vec![0; iv.len()];
                self.cipher
                    .crypt(Direction::Encrypt, self.mode, self.key, &iv, &mut zeros);
                iv = zeros;
            }
            Some(IvGenerator::Tcw) => {
                iv.copy_from_slice(&self.extra[..self.cipher.block_bytes]);
                for half in iv.chunks_exact_mut(8) {
                    add(half, &n.to_le_bytes());
                }
            }
        }
        iv
    }

    fn lmk(&self, n: u64, sector: &[u8]) -> Vec<u8> {
        let mut message = Vec::new();
        if !self.extra.is_empty() {
            message.extend(&self.extra[..16]);
            message.resize(64, 0);
        }
        message.extend(&sector[16..]);
        message.extend((n as u32).to_le_bytes());
        message.extend(((n >> 32) as u32 & 0x00ff_ffff | 0x8000_0000).to_le_bytes());
        message.extend(4024_u32.to_le_bytes());
        message.extend([0; 4]);
        md5::state_after(&message)[..self.cipher.block_bytes].to_vec()
    }
}

fn add(bytes: &mut [u8], other: &[u8]) {
    for (byte, other) in bytes.iter_mut().zip(other) {
        *byte ^= other;
    }
}

/// A reference cipher in any mode, chosen at run time.
#[derive(Clone, Copy)]
pub struct ReferenceMode {
    /// Bytes in a block.
    pub block_bytes: usize,
    crypt: fn(Direction, Mode, &[u8], &[u8], &mut [u8]),
}

impl ReferenceMode {
    /// The reference of `algorithm`.
    pub fn of(algorithm: Algorithm) -> Self {
        match algorithm {
            Algorithm::Aes => Self::wide::<Aes>(),
            Algorithm::Serpent => Self::wide::<Serpent>(),
            Algorithm::Twofish => Self::wide::<Twofish>(),
            Algorithm::Camellia => Self::wide::<Camellia>(),
            Algorithm::Cast6 => Self::wide::<Cast6>(),
            Algorithm::Kuznyechik => Self::wide::<Kuznyechik>(),
            Algorithm::Sm4 => Self::wide::<Sm4>(),
            Algorithm::Aria => Self::wide::<Aria>(),
            Algorithm::Anubis => Self::wide::<Anubis>(),
            Algorithm::Seed => Self::wide::<Seed>(),
            Algorithm::Blowfish => Self::narrow::<Blowfish>(),
            Algorithm::BlowfishLe => Self::narrow::<BlowfishLittleEndian>(),
            Algorithm::Cast5 => Self::narrow::<Cast5>(),
            Algorithm::Des => Self::narrow::<Des>(),
            Algorithm::TripleDes => Self::narrow::<TripleDes>(),
            Algorithm::Khazad => Self::narrow::<Khazad>(),
            Algorithm::Null => Self::wide::<Null>(),
        }
    }

    /// Bytes of an IV in `mode`: a block, or Adiantum's and HCTR2's tweak.
    pub fn iv_bytes(&self, mode: Mode) -> usize {
        match mode {
            Mode::Adiantum(_) | Mode::Hctr2 => 32,
            _ => self.block_bytes,
        }
    }

    /// Encrypts or decrypts one data unit of whole blocks in place; `key` is
    /// the mode's, `iv` of the mode's length, which ECB ignores.
    pub fn crypt(&self, direction: Direction, mode: Mode, key: &[u8], iv: &[u8], unit: &mut [u8]) {
        (self.crypt)(direction, mode, key, iv, unit);
    }

    /// The reference of a cipher with 16-byte blocks.
    pub fn wide<C: ReferenceCipher>() -> Self {
        Self {
            block_bytes: 16,
            crypt: |direction, mode, key, iv, unit| {
                let rounds = |stream| match stream {
                    StreamCipher::XChaCha12 => 12,
                    StreamCipher::XChaCha20 => 20,
                };
                let crypt = match (mode, direction) {
                    (Mode::Adiantum(stream), Direction::Encrypt) => {
                        return encrypt_adiantum::<C>(rounds(stream), key, iv, unit);
                    }
                    (Mode::Adiantum(stream), Direction::Decrypt) => {
                        return decrypt_adiantum::<C>(rounds(stream), key, iv, unit);
                    }
                    (Mode::Hctr2, Direction::Encrypt) => {
                        return encrypt_hctr2::<C>(key, iv, unit);
                    }
                    (Mode::Hctr2, Direction::Decrypt) => {
                        return decrypt_hctr2::<C>(key, iv, unit);
                    }
                    (Mode::Xts, Direction::Encrypt) => encrypt_xts::<C>,
                    (Mode::Xts, Direction::Decrypt) => decrypt_xts::<C>,
                    _ => return any::<C, 16>(direction, mode, key, iv, unit),
                };
                crypt(key, iv.try_into().expect("a block"), unit);
            },
        }
    }

    /// The reference of a cipher with 8-byte blocks.
    pub fn narrow<C: ReferenceCipher<8>>() -> Self {
        Self {
            block_bytes: 8,
            crypt: any::<C, 8>,
        }
    }
}

/// The modes for blocks of any size.
fn any<C: ReferenceCipher<N>, const N: usize>(
    direction: Direction,
    mode: Mode,
    key: &[u8],
    iv: &[u8],
    unit: &mut [u8],
) {
    let block = || iv.try_into().expect("a block");
    match (mode, direction) {
        (Mode::Cbc, Direction::Encrypt) => encrypt_cbc::<C, N>(key, block(), unit),
        (Mode::Cbc, Direction::Decrypt) => decrypt_cbc::<C, N>(key, block(), unit),
        (Mode::Lrw, Direction::Encrypt) => encrypt_lrw::<C, N>(key, block(), unit),
        (Mode::Lrw, Direction::Decrypt) => decrypt_lrw::<C, N>(key, block(), unit),
        (Mode::Ctr, _) => crypt_ctr::<C, N>(key, block(), unit),
        (Mode::Ecb, _) => {
            let cipher = C::new(key);
            for block in unit.as_chunks_mut::<N>().0 {
                *block = match direction {
                    Direction::Encrypt => cipher.encrypt(*block),
                    Direction::Decrypt => cipher.decrypt(*block),
                };
            }
        }
        (Mode::Xts | Mode::Adiantum(_) | Mode::Hctr2, _) => {
            unreachable!("not defined for {N}-byte blocks")
        }
    }
}
