//! Encrypts or decrypts sectors with the engine, for `cargo xtask arm-model`.
//!
//! Usage: `arm-model-engine SPEC BACKEND KEY_BYTES encrypt|decrypt`. The program makes two passes
//! over its sectors. Its first two writes to the standard output enclose the second pass. Then it
//! prints a digest of the sectors. `peer.c` does the same with libraries.

#![forbid(unsafe_code)]

use std::error::Error;

use cipher::{Backend, CipherSpec, IvSector, Key, SectorCipher, SectorLayout, SectorSize};

const SECTORS: usize = 128;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [spec, backend, key_bytes, direction] = arguments.as_slice() else {
        return Err("SPEC BACKEND KEY_BYTES encrypt|decrypt".into());
    };
    let spec: CipherSpec = spec.parse()?;
    let backend: Backend = backend.parse()?;
    let key = (0..key_bytes.parse()?).map(|i: usize| (7 * i + 1) as u8);
    let layout = SectorLayout {
        size: SectorSize::B4096,
        large_iv: false,
    };
    let cipher = spec.cipher(&Key::new(key.collect()), layout, Some(backend))?;
    let mut data = vec![0; SECTORS * layout.size.bytes()];
    let mut pass = || match direction == "encrypt" {
        true => cipher.encrypt(IvSector::new(0), &mut data),
        false => cipher.decrypt(IvSector::new(0), &mut data),
    };
    pass();
    println!("begin");
    pass();
    println!("end");
    println!("{:016x}", digest(&data));
    Ok(())
}

/// FNV-1a's step, over words of 64 bits.
fn digest(data: &[u8]) -> u64 {
    let (words, _) = data.as_chunks();
    words.iter().fold(0xcbf2_9ce4_8422_2325, |digest, &word| {
        (digest ^ u64::from_le_bytes(word)).wrapping_mul(0x100_0000_01b3)
    })
}
