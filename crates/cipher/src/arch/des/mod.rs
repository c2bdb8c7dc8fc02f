//! DES and Triple DES with AVX-512: a bit of 512 blocks in each register, lines of many
//! sectors at a time; and [few blocks](serial) one by one.

mod lines;
mod serial;
mod turned;

use self::lines::Lines;
use self::serial::Serial;
use self::turned::Turned;
use super::{Avx512, Avx512Bytes};
use crate::block::Keyed;
use crate::block::des::planes::{passes, row};
use crate::block::des::{Block, Cpu, Pass, RoundKey, Rounds};
use crate::block::registers::Registers;
use crate::mode::cbc;

/// Bits of a register.
const LANES: usize = 64 * row::<Avx512>();

impl Cpu for Avx512 {
    fn few(self, keys: &[RoundKey]) -> Option<Keyed<8>> {
        let cpu = Avx512Bytes::detect()?;
        Some(Box::new(Serial::new(cpu, keys)))
    }

    fn crypt(self, rounds: Rounds<'_>, blocks: &mut [Block]) {
        passes(LANES, blocks, |blocks| {
            let pass = Pass { rounds, blocks };
            match Turned::detect(self) {
                Some(turned) => turned.enter(pass),
                None => self.enter(pass),
            }
        });
    }

    fn encrypt_cbc(self, rounds: Rounds<'_>, ivs: &[Block], sector_bytes: usize, data: &mut [u8]) {
        for (ivs, data) in ivs.chunks(LANES).zip(data.chunks_mut(LANES * sector_bytes)) {
            if ivs.len() % 8 != 0 {
                cbc::encrypt(ivs, sector_bytes, data, &|blocks| {
                    self.crypt(rounds, blocks)
                });
                continue;
            }
            let lines = Lines::<true> {
                rounds,
                ivs,
                sector_bytes,
                data,
            };
            match Turned::detect(self) {
                Some(turned) => turned.enter(lines),
                None => self.enter(lines),
            }
        }
    }

    fn decrypt_cbc(self, rounds: Rounds<'_>, ivs: &[Block], sector_bytes: usize, data: &mut [u8]) {
        let lines = Lines::<false> {
            rounds,
            ivs,
            sector_bytes,
            data,
        };
        match Turned::detect(self) {
            Some(turned) => turned.enter(lines),
            None => self.enter(lines),
        }
    }
}
