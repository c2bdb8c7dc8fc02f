//! Sectors by the reference implementations: what every backend must equal.

use cryptmark_cipher::reference::{Aes, Serpent, Twofish, decrypt_xts, encrypt_xts};
use cryptmark_cipher::{Algorithm, CipherSpec, IvGenerator, IvSector, SectorLayout};

/// Direction of a sector cipher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Encrypt,
    Decrypt,
}

/// Encrypts or decrypts a run of sectors as IEEE 1619 and dm-crypt describe it.
pub fn sectors(
    direction: Direction,
    spec: CipherSpec,
    key: &[u8],
    layout: SectorLayout,
    first: IvSector,
    data: &mut [u8],
) {
    for (nth, sector) in data.chunks_exact_mut(layout.size.bytes()).enumerate() {
        let number = first.advance(nth as u64, layout).get();
        let number = match spec.iv() {
            IvGenerator::Plain => number & 0xffff_ffff,
            IvGenerator::Plain64 => number,
        };
        let mut iv = [0; 16];
        iv[..8].copy_from_slice(&number.to_le_bytes());
        xts(direction, spec.algorithm(), key, iv, sector);
    }
}

/// Encrypts or decrypts one data unit in XTS mode.
pub fn xts(direction: Direction, algorithm: Algorithm, key: &[u8], iv: [u8; 16], unit: &mut [u8]) {
    let crypt = match (direction, algorithm) {
        (Direction::Encrypt, Algorithm::Aes) => encrypt_xts::<Aes>,
        (Direction::Encrypt, Algorithm::Serpent) => encrypt_xts::<Serpent>,
        (Direction::Encrypt, Algorithm::Twofish) => encrypt_xts::<Twofish>,
        (Direction::Decrypt, Algorithm::Aes) => decrypt_xts::<Aes>,
        (Direction::Decrypt, Algorithm::Serpent) => decrypt_xts::<Serpent>,
        (Direction::Decrypt, Algorithm::Twofish) => decrypt_xts::<Twofish>,
    };
    crypt(key, iv, unit);
}
