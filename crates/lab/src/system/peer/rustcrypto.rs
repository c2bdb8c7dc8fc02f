//! RustCrypto's crates, built into this program: block ciphers in the modes
//! of the crates `xts-mode`, `cbc` and `ctr`, each keyed once and given an IV
//! for every sector. No unsafe here; the crates find AES-NI by themselves.

use super::{Keyed, Opened, Wanted};
use aes::cipher::array::ArraySize;
use aes::cipher::consts::{U8, U16};
use aes::cipher::{
    Array, BlockCipherDecrypt, BlockCipherEncrypt, BlockModeDecrypt, BlockModeEncrypt,
    BlockSizeUser, InnerIvInit, KeyInit, StreamCipherCore,
};
use ctr::flavors::{Ctr64BE, Ctr128BE};
use ctr::{CtrCore, CtrFlavor};
use xts_mode::Xts128;

/// The crates as `Cargo.lock` holds them; a test keeps this right.
pub(super) const VERSIONS: &[(&str, &str)] = &[
    ("aes", "0.9.4"),
    ("aria", "0.2.0"),
    ("blowfish", "0.10.0"),
    ("camellia", "0.2.1"),
    ("cast5", "0.12.0"),
    ("cast6", "0.2.0"),
    ("cbc", "0.2.1"),
    ("ctr", "0.10.1"),
    ("des", "0.9.0"),
    ("kuznyechik", "0.9.0"),
    ("serpent", "0.6.0"),
    ("sm4", "0.6.0"),
    ("twofish", "0.8.0"),
    ("xts-mode", "0.6.0"),
];

pub(super) fn open(wanted: Wanted<'_>) -> Opened {
    Ok((version(wanted), keyed(wanted)))
}

/// The versions of the crates in use, `aes 0.9.4, xts-mode 0.6.0`. The crates
/// have no common version.
fn version(wanted: Wanted<'_>) -> String {
    let cipher = match wanted.algorithm {
        "blowfish_le" => "blowfish",
        "des3_ede" => "des",
        own => own,
    };
    let mode = match wanted.mode {
        "xts" => "xts-mode",
        own => own,
    };
    let used: Vec<String> = [cipher, mode]
        .iter()
        .filter_map(|name| VERSIONS.iter().find(|(known, _)| known == name))
        .map(|(name, version)| format!("{name} {version}"))
        .collect();
    used.join(", ")
}

fn keyed(wanted: Wanted<'_>) -> Option<Box<dyn Keyed>> {
    match (wanted.algorithm, wanted.cipher_bits()?) {
        ("aes", 128) => wide::<aes::Aes128>(wanted),
        ("aes", 192) => wide::<aes::Aes192>(wanted),
        ("aes", 256) => wide::<aes::Aes256>(wanted),
        ("aria", 128) => wide::<aria::Aria128>(wanted),
        ("aria", 192) => wide::<aria::Aria192>(wanted),
        ("aria", 256) => wide::<aria::Aria256>(wanted),
        ("camellia", 128) => wide::<camellia::Camellia128>(wanted),
        ("camellia", 192) => wide::<camellia::Camellia192>(wanted),
        ("camellia", 256) => wide::<camellia::Camellia256>(wanted),
        ("cast6", _) => wide::<cast6::Cast6>(wanted),
        ("kuznyechik", _) => wide::<kuznyechik::Kuznyechik>(wanted),
        ("serpent", _) => wide::<serpent::Serpent>(wanted),
        ("sm4", _) => wide::<sm4::Sm4>(wanted),
        ("twofish", _) => wide::<twofish::Twofish>(wanted),
        ("blowfish", _) => narrow::<blowfish::Blowfish>(wanted),
        ("blowfish_le", _) => narrow::<blowfish::BlowfishLE>(wanted),
        ("cast5", _) => narrow::<cast5::Cast5>(wanted),
        ("des", _) => narrow::<des::Des>(wanted),
        ("des3_ede", 128) => narrow::<des::TdesEde2>(wanted),
        ("des3_ede", _) => narrow::<des::TdesEde3>(wanted),
        _ => None,
    }
}

/// A cipher that can do both directions.
trait Both: BlockCipherEncrypt + BlockCipherDecrypt {}

impl<C: BlockCipherEncrypt + BlockCipherDecrypt> Both for C {}

/// A cipher with 16-byte blocks; `None` if it takes no key of that length.
fn wide<C>(wanted: Wanted<'_>) -> Option<Box<dyn Keyed>>
where
    C: Both + BlockSizeUser<BlockSize = U16> + KeyInit + Send + 'static,
{
    if wanted.mode == "xts" {
        let (data, tweak) = wanted.key.split_at(wanted.key.len() / 2);
        let (data, tweak) = (C::new_from_slice(data), C::new_from_slice(tweak));
        return Some(Box::new(Xts(Xts128::new(data.ok()?, tweak.ok()?))));
    }
    let cipher = C::new_from_slice(wanted.key).ok()?;
    match wanted.mode {
        "ctr" => Some(Box::new(Ctr::<C, Ctr128BE>::new(cipher))),
        _ => chained(cipher, wanted),
    }
}

/// A cipher with 8-byte blocks; `None` if it takes no key of that length.
fn narrow<C>(wanted: Wanted<'_>) -> Option<Box<dyn Keyed>>
where
    C: Both + BlockSizeUser<BlockSize = U8> + KeyInit + Send + 'static,
{
    let cipher = C::new_from_slice(wanted.key).ok()?;
    match wanted.mode {
        "ctr" => Some(Box::new(Ctr::<C, Ctr64BE>::new(cipher))),
        _ => chained(cipher, wanted),
    }
}

fn chained<C: Both + Send + 'static>(cipher: C, wanted: Wanted<'_>) -> Option<Box<dyn Keyed>> {
    match wanted.mode {
        "cbc" => Some(Box::new(Cbc(cipher))),
        "ecb" => Some(Box::new(Ecb(cipher))),
        _ => None,
    }
}

/// The sector as blocks.
fn blocks<N: ArraySize>(sector: &mut [u8]) -> &mut [Array<u8, N>] {
    let (blocks, rest) = Array::slice_as_chunks_mut(sector);
    debug_assert!(rest.is_empty());
    blocks
}

/// The IV, cut to a block.
fn block<N: ArraySize>(iv: &[u8; 16]) -> &Array<u8, N> {
    Array::slice_as_array(&iv[..N::USIZE]).expect("a block has 8 or 16 bytes")
}

struct Xts<C: BlockSizeUser<BlockSize = U16>>(Xts128<C>);

impl<C> Keyed for Xts<C>
where
    C: Both + BlockSizeUser<BlockSize = U16> + Send,
{
    fn encrypt(&mut self, iv: &[u8; 16], sector: &mut [u8]) {
        self.0.encrypt_sector(sector, (*iv).into());
    }

    fn decrypt(&mut self, iv: &[u8; 16], sector: &mut [u8]) {
        self.0.decrypt_sector(sector, (*iv).into());
    }
}

struct Cbc<C>(C);

impl<C: Both + Send> Keyed for Cbc<C> {
    fn encrypt(&mut self, iv: &[u8; 16], sector: &mut [u8]) {
        cbc::Encryptor::inner_iv_init(&self.0, block(iv)).encrypt_blocks(blocks(sector));
    }

    fn decrypt(&mut self, iv: &[u8; 16], sector: &mut [u8]) {
        cbc::Decryptor::inner_iv_init(&self.0, block(iv)).decrypt_blocks(blocks(sector));
    }
}

struct Ecb<C>(C);

impl<C: Both + Send> Keyed for Ecb<C> {
    fn encrypt(&mut self, _iv: &[u8; 16], sector: &mut [u8]) {
        self.0.encrypt_blocks(blocks(sector));
    }

    fn decrypt(&mut self, _iv: &[u8; 16], sector: &mut [u8]) {
        self.0.decrypt_blocks(blocks(sector));
    }
}

/// `F` is the whole block as counter.
struct Ctr<C, F> {
    cipher: C,
    flavor: std::marker::PhantomData<F>,
}

impl<C, F> Ctr<C, F> {
    fn new(cipher: C) -> Self {
        Self {
            cipher,
            flavor: std::marker::PhantomData,
        }
    }
}

impl<C: Both + Send, F: CtrFlavor<C::BlockSize> + Send> Keyed for Ctr<C, F> {
    fn encrypt(&mut self, iv: &[u8; 16], sector: &mut [u8]) {
        CtrCore::<&C, F>::inner_iv_init(&self.cipher, block(iv))
            .apply_keystream_blocks(blocks(sector));
    }

    fn decrypt(&mut self, iv: &[u8; 16], sector: &mut [u8]) {
        self.encrypt(iv, sector);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_versions_are_those_of_the_lock_file() {
        let lock = include_str!("../../../../../Cargo.lock");
        let manifest = include_str!("../../../Cargo.toml");
        for (name, version) in VERSIONS {
            let entry = format!("name = \"{name}\"\nversion = \"{version}\"\n");
            assert!(lock.contains(&entry), "{name} is not {version}");
            assert!(manifest.contains(&format!("\n{name} = ")), "{name}");
        }
    }
}
