//! Ciphers of 8-byte blocks over whole groups of them: what a kernel in byte
//! planes leaves to do.

use super::sectors::InPlanes;
use super::{Planes, Work};
use crate::Backend;
use crate::block::BlockCipher;

/// A keyed cipher for as many blocks as there are bytes in a register.
///
/// Both methods are `#[inline(always)]`, as those of [`Work`] are. `rows` are
/// 8 registers of whole blocks, one after the other in memory.
pub(crate) trait HalfKernel<P: Planes>: Send + Sync + 'static {
    /// Encrypts every block.
    fn encrypt(&self, planes: P, rows: [P::Vector; 8]) -> [P::Vector; 8];

    /// Decrypts every block.
    fn decrypt(&self, planes: P, rows: [P::Vector; 8]) -> [P::Vector; 8];
}

type Block = [u8; 8];

impl<P: Planes, K: HalfKernel<P>> BlockCipher<8> for InPlanes<P, K> {
    const BACKEND: Backend = P::BACKEND;
    const CONSTANT_TIME: bool = true;

    fn encrypt_blocks(&self, blocks: &mut [Block]) {
        let kernel = &self.kernel;
        self.planes.enter(Blocks::<K, true> { kernel, blocks });
    }

    fn decrypt_blocks(&self, blocks: &mut [Block]) {
        let kernel = &self.kernel;
        self.planes.enter(Blocks::<K, false> { kernel, blocks });
    }
}

/// Most blocks in a group.
const MOST: usize = 64;

/// Encrypts or decrypts every block in place. What is left over takes a group
/// of its own.
struct Blocks<'a, K, const ENCRYPT: bool> {
    kernel: &'a K,
    blocks: &'a mut [Block],
}

impl<P: Planes, K: HalfKernel<P>, const ENCRYPT: bool> Work<P> for Blocks<'_, K, ENCRYPT> {
    #[inline(always)]
    fn run(self, planes: P) {
        let mut padded = [[0; 8]; MOST];
        for group in self.blocks.chunks_mut(P::WIDE) {
            let whole = group.len() == P::WIDE;
            let blocks = if whole {
                &mut *group
            } else {
                padded[..group.len()].copy_from_slice(group);
                &mut padded[..P::WIDE]
            };
            let mut rows = [planes.splat(0); 8];
            for (row, bytes) in rows.iter_mut().zip(blocks.as_flattened().chunks(P::WIDE)) {
                *row = planes.load(bytes);
            }
            let rows = if ENCRYPT {
                self.kernel.encrypt(planes, rows)
            } else {
                self.kernel.decrypt(planes, rows)
            };
            let bytes = blocks.as_flattened_mut().chunks_mut(P::WIDE);
            for (row, bytes) in rows.into_iter().zip(bytes) {
                planes.store(row, bytes);
            }
            if !whole {
                group.copy_from_slice(&padded[..group.len()]);
            }
        }
    }
}
